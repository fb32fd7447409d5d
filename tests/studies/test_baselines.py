"""Baselines: known regions found, steps against slow definitions, units, seeds, refusals, missing extras."""

import sys
from functools import partial

import numpy as np
import pytest
from skimage import graph, segmentation
from skimage.measure import label

from spinseg.partition.numbering import by_first_appearance
from studies.evaluation.baselines import mean_shift as steps
from studies.evaluation.baselines.library import felzenszwalb, gaussian_mixture, quickshift, slic_merged
from studies.evaluation.baselines.mean_shift import (
    close_pairs,
    connected_pieces,
    mean_shift,
    merge_pieces,
    pairs_of_small,
)
from studies.evaluation.metrics import adjusted_rand_index

COLORS = np.array([(60, 60, 60), (200, 80, 60), (70, 160, 90), (220, 220, 120), (60, 80, 200)])

# Small settings for small pictures.
METHODS = {
    "mean_shift": lambda image: mean_shift(image, spatial_bandwidth=8, min_size=20),
    "felzenszwalb": lambda image: felzenszwalb(image, scale=1000, sigma=0, min_size=20),
    "quickshift": lambda image: quickshift(image, kernel_size=3),
    "slic_merged": lambda image: slic_merged(image, n_segments=100),
    "gaussian_mixture": lambda image: gaussian_mixture(image, n_components=5),
}
NEEDS = {"mean_shift": "cv2", "gaussian_mixture": "sklearn"}
every_method = pytest.mark.parametrize("name", METHODS)


def method(name):
    """The method, where what it needs is installed."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    return METHODS[name]


@pytest.fixture
def cv2():
    return pytest.importorskip("cv2", reason="OpenCV is not installed")


@pytest.fixture(scope="module")
def shapes():
    """Two discs and two rectangles on a background, and the noisy picture of them."""
    rows, columns = np.mgrid[:72, :96]
    truth = np.zeros((72, 96), np.int32)
    truth[(rows - 20) ** 2 + (columns - 20) ** 2 < 150] = 1
    truth[(rows - 50) ** 2 + (columns - 30) ** 2 < 200] = 2
    truth[10:30, 50:85] = 3
    truth[45:65, 60:80] = 4
    noise = np.random.default_rng(0).normal(0, 2, (72, 96, 3))
    return truth, np.clip(np.rint(COLORS[truth] + noise), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def photograph():
    from skimage.data import astronaut

    return astronaut()[::4, ::4]


def are_connected(labels):
    return label(labels, background=-1, connectivity=1).max() == labels.max() + 1


def same_partition(one, other):
    return np.array_equal(by_first_appearance(np.asarray(one)), by_first_appearance(np.asarray(other)))


# All methods; `test_evaluation.py` has their labels and seeds


@pytest.mark.parametrize("name", ["mean_shift", "felzenszwalb", "slic_merged"])  # the others divide by position
def test_flat_shapes_are_found_and_a_flat_picture_is_one_region(name, shapes):
    truth, image = shapes
    assert adjusted_rand_index(method(name)(image), truth) > (0.99 if name == "mean_shift" else 0.9)
    assert not METHODS[name](np.full((30, 40, 3), 90, np.uint8)).any()


@every_method
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (2, 2)])
def test_tiny_pictures(name, shape):
    assert method(name)(np.zeros(shape, np.uint8)).shape == shape


@every_method
def test_grey_float_and_opaque_pictures_are_the_same_as_8_bit_rgb(name, photograph):
    run = method(name)
    grey = photograph[..., 1]
    before = grey.copy()
    expected = run(np.stack([grey] * 3, axis=-1))
    assert np.array_equal(run(grey), expected) and np.array_equal(grey, before)
    assert np.array_equal(run(grey / 255), expected)
    assert np.array_equal(run(np.dstack([grey] * 3 + [np.full_like(grey, 255)])), expected)


@every_method
@pytest.mark.parametrize("shape", [(6, 7, 2), (5, 6, 7), (3, 5, 6, 3)], ids=["two channels", "volume", "colour volume"])
def test_what_is_no_picture_is_refused_in_one_line(name, shape):
    run = method(name)
    with pytest.raises(ValueError, match="image must be a gray or color picture") as caught:
        run(np.zeros(shape, np.uint8))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "setting"),
    [
        (mean_shift, {"spatial_bandwidth": 0}),
        (mean_shift, {"range_bandwidth": -1}),
        (mean_shift, {"min_size": 0.5}),
        (mean_shift, {"colors": "hsv"}),
        (felzenszwalb, {"scale": 0}),
        (felzenszwalb, {"sigma": -1}),
        (felzenszwalb, {"min_size": 0}),
        (quickshift, {"kernel_size": 0.5}),
        (quickshift, {"max_dist": 0}),
        (quickshift, {"ratio": -1}),
        (quickshift, {"seed": -1}),
        (slic_merged, {"n_segments": 0}),
        (slic_merged, {"compactness": 0}),
        (slic_merged, {"threshold": 0}),
        (gaussian_mixture, {"n_components": 0}),
        (gaussian_mixture, {"seed": 2**32}),
    ],
)
def test_wrong_settings_are_named(call, setting):
    with pytest.raises(ValueError, match=f"{next(iter(setting))} must "):
        call(np.zeros((4, 4), np.uint8), **setting)


@pytest.mark.parametrize(
    ("call", "module", "line"),
    [
        (mean_shift, "cv2", "mean_shift needs OpenCV: pip install 'spinseg[cv]'"),
        (gaussian_mixture, "sklearn.mixture", "gaussian_mixture needs scikit-learn: pip install 'spinseg[sklearn]'"),
    ],
)
def test_a_missing_extra_is_named_in_one_line(call, module, line, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as caught:
        call(np.zeros((20, 20), np.uint8))
    assert str(caught.value) == line


# Mean shift, step by step


def slow_pieces(values, reach):
    """Flood fill, pixel by pixel."""
    height, width = values.shape[:2]
    found = np.full((height, width), -1)
    for start in np.ndindex(height, width):
        if found[start] < 0:
            found[start], waiting = found.max() + 1, [start]
            while waiting:
                y, x = waiting.pop()
                for place in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                    inside = 0 <= place[0] < height and 0 <= place[1] < width
                    if inside and found[place] < 0 and all(abs(values[y, x] - values[place]) < reach):
                        found[place] = found[start]
                        waiting.append(place)
    return found


def slow_touching(regions):
    """The regions beside each region."""
    found = {int(r): set() for r in np.unique(regions)}
    for one, other in ((regions[1:], regions[:-1]), (regions[:, 1:], regions[:, :-1])):
        for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True):
            if a != b:
                found[a].add(b)
                found[b].add(a)
    return found


def slow_join(regions, pairs):
    """One pair after the other, all pixels of the second getting the number of the first."""
    group = {int(r): int(r) for r in np.unique(regions)}
    for one, other in pairs:
        old, new = group[other], group[one]
        group = {r: new if g == old else g for r, g in group.items()}
    return np.vectorize(group.get)(regions)


def slow_fused(regions, values, reach):
    while True:
        modes = {r: values[regions == r].mean(axis=0) for r in np.unique(regions).tolist()}
        touching = slow_touching(regions)
        near = [(r, s) for r in touching for s in touching[r] if np.linalg.norm(modes[r] - modes[s]) < reach]
        if not near:
            return regions
        regions = slow_join(regions, near)


def slow_absorbed(regions, values, smallest):
    while True:
        modes = {r: values[regions == r].mean(axis=0) for r in np.unique(regions).tolist()}
        touching = slow_touching(regions)
        small = [r for r in touching if (regions == r).sum() < smallest and touching[r]]
        if not small:
            return regions
        nearest = [(r, min(touching[r], key=lambda s: np.linalg.norm(modes[r] - modes[s]))) for r in small]
        regions = slow_join(regions, nearest)


@pytest.mark.parametrize("seed", range(12))
def test_steps_equal_their_slow_definitions(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 14, 2))
    values = rng.integers(0, 6, (*shape, 3)) + rng.normal(0, 0.1, (*shape, 3))
    values = values.astype(np.float32)
    pieces = connected_pieces(values, 1.5)
    assert same_partition(pieces, slow_pieces(values, 1.5))

    pieces = label(rng.integers(0, 3, shape), background=-1, connectivity=1).astype(np.int32) - 1
    for reach in (0.5, 1.5, 2.5):
        joined = merge_pieces(pieces, values, partial(close_pairs, distance=reach))
        assert same_partition(joined, slow_fused(pieces, values, reach))
    for smallest in (1, 3, 10, 1000):
        left = merge_pieces(pieces, values, partial(pairs_of_small, min_size=smallest))
        assert same_partition(left, slow_absorbed(pieces, values, smallest))


def test_no_region_is_smaller_than_asked_and_all_are_connected(cv2, photograph):
    for min_size in (1, 30, 300):
        labels = mean_shift(photograph, spatial_bandwidth=6, min_size=min_size)
        assert np.bincount(labels.ravel()).min() >= min_size and are_connected(labels)
    assert not mean_shift(photograph, spatial_bandwidth=6, min_size=10**6).any()


def test_colours_are_luv_of_the_numbers_as_they_are(cv2):
    grey = np.array([[0, 30, 128, 255]], np.uint8)
    luv = steps.edison_luv(np.stack([grey] * 3, axis=-1))
    np.testing.assert_allclose(luv[0, 1:, 0], 116 * np.cbrt(grey[0, 1:] / 255) - 16, atol=0.02)
    np.testing.assert_allclose(luv[..., 1:], 0, atol=0.02)
    red = steps.edison_luv(np.array([[[255, 0, 0]]], np.uint8))
    np.testing.assert_allclose(red[0, 0], (53.24, 175.02, 37.76), atol=0.2)  # CIE, D65


@pytest.mark.parametrize("patch", [None, (255, 0, 0)], ids=["alone", "beside red"])
def test_the_range_bandwidth_is_in_units_of_luv(cv2, patch):
    low, high = 100, 130
    gap = 116 * (np.cbrt(high / 255) - np.cbrt(low / 255))  # 10.3 of lightness
    image = np.full((40, 60, 3), low, np.uint8)
    image[:, 30:] = high
    if patch is not None:  # what else is in the picture has no say
        image[:10, :10] = patch
    for factor, parts in ((0.95, 2), (2.1, 1)):
        labels = mean_shift(image, spatial_bandwidth=4, range_bandwidth=factor * gap, min_size=1, colors="luv")
        assert labels.max() + 1 == parts + (patch is not None)


def slow_filtered(levels, spatial_radius, radius):
    """Each pixel to the mean of a square of pixels, those of a near colour, until its place rests; all rounded."""
    settled = np.empty_like(levels)
    for start in np.ndindex(levels.shape[:2]):
        place, colour = np.array(start), levels[start].astype(int)
        for _ in range(100):
            low = np.maximum(place - spatial_radius, 0)
            window = levels[tuple(slice(a, b) for a, b in zip(low, place + spatial_radius + 1, strict=True))].astype(
                int
            )
            near = np.square(window - colour).sum(axis=-1) <= radius**2
            moved = np.rint(np.argwhere(near).mean(axis=0) + low).astype(int)
            rests = (moved == place).all()
            place, colour = moved, np.rint(window[near].mean(axis=0)).astype(int)
            if rests:
                break
        settled[start] = colour
    return settled


def test_the_filter_ends_where_pixels_rest(cv2, photograph):
    levels = np.ascontiguousarray(photograph[40:70, 40:75])
    settled = steps.apply_filter(levels, 5, 30)
    expected = slow_filtered(levels, 5, 30)
    assert np.mean((settled == expected).all(axis=-1)) > 0.99  # a half may be rounded either way
    assert (expected != levels).any(axis=-1).mean() > 0.9


@pytest.mark.parametrize("fails", [False, True])
def test_opencv_has_one_thread_and_gets_its_number_back(cv2, fails, monkeypatch):
    before, seen = cv2.getNumThreads(), []
    filtering = cv2.pyrMeanShiftFiltering

    def watched(*arguments, **settings):
        seen.append(cv2.getNumThreads())
        if fails:
            raise RuntimeError("out of order")
        return filtering(*arguments, **settings)

    monkeypatch.setattr(cv2, "pyrMeanShiftFiltering", watched)
    try:
        cv2.setNumThreads(2)
        chosen = cv2.getNumThreads()
        if fails:
            with pytest.raises(RuntimeError):
                mean_shift(np.zeros((5, 5), np.uint8))
        else:
            mean_shift(np.zeros((5, 5), np.uint8))
        assert seen == [1] and cv2.getNumThreads() == chosen
    finally:
        cv2.setNumThreads(before)


# The libraries' own


def test_felzenszwalb_and_quickshift_are_scikit_images(photograph):
    theirs = segmentation.felzenszwalb(photograph, scale=50, sigma=0.5, min_size=40)
    assert same_partition(felzenszwalb(photograph, scale=50, sigma=0.5, min_size=40), theirs)
    for image in (photograph, np.zeros((60, 60, 3), np.uint8)):  # on a flat picture the seed decides
        theirs = segmentation.quickshift(image, kernel_size=3, max_dist=6, ratio=0.9, rng=5)
        assert same_partition(quickshift(image, kernel_size=3, max_dist=6, ratio=0.9, seed=5), theirs)
    assert not same_partition(quickshift(image, max_dist=6, kernel_size=3, seed=6), theirs)
    assert quickshift(image, max_dist=6, kernel_size=3, seed=2**32 - 1).shape == image.shape[:2]


def test_merging_is_scikit_images_gallery_example(photograph):
    def weight(rag, src, dst, n):
        return {"weight": np.linalg.norm(rag.nodes[dst]["mean color"] - rag.nodes[n]["mean color"])}

    def merge(rag, src, dst):
        rag.nodes[dst]["total color"] += rag.nodes[src]["total color"]
        rag.nodes[dst]["pixel count"] += rag.nodes[src]["pixel count"]
        rag.nodes[dst]["mean color"] = rag.nodes[dst]["total color"] / rag.nodes[dst]["pixel count"]

    sites = segmentation.slic(photograph, compactness=30, n_segments=150, start_label=0)
    rag = graph.rag_mean_color(photograph, sites, connectivity=1)
    theirs = graph.merge_hierarchical(sites, rag, 35, False, True, merge, weight)
    ours = slic_merged(photograph, n_segments=150, compactness=30, threshold=35)
    assert 1 < theirs.max() + 1 < sites.max()
    assert same_partition(ours, theirs)


def test_a_mixture_finds_colours(shapes):
    method("gaussian_mixture")
    truth, image = shapes
    assert adjusted_rand_index(gaussian_mixture(image, n_components=8), truth) > 0.6
    assert gaussian_mixture(image, n_components=1).max() == 0
    assert gaussian_mixture(image, n_components=10**6).max() < 72 * 96 / 60 * 1.5  # no more than sites


def test_a_fit_cut_short_is_no_error(shapes, monkeypatch):
    method("gaussian_mixture")
    from sklearn.mixture import BayesianGaussianMixture

    fit = BayesianGaussianMixture.fit_predict
    monkeypatch.setattr(BayesianGaussianMixture, "fit_predict", lambda self, x: fit(self.set_params(max_iter=1), x))
    assert gaussian_mixture(shapes[1], n_components=5).max() > 0
