"""Baselines: known regions found, steps against slow definitions, units, refusals, missing extras."""

import sys
from functools import partial

import networkx as nx
import numpy as np
import pytest
from skimage import graph, segmentation
from skimage.measure import label

from spinseg.partition.numbering import by_first_appearance
from studies.evaluation.baselines import mean_shift as steps
from studies.evaluation.baselines.library import felzenszwalb, gaussian_mixture, quickshift, slic_merged
from studies.evaluation.baselines.mean_shift import mean_shift
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


@pytest.mark.parametrize("name", ["mean_shift", "felzenszwalb", "slic_merged"])  # the others divide by position
def test_flat_shapes_are_found_and_a_flat_picture_is_one_region(name, shapes):
    truth, image = shapes
    assert adjusted_rand_index(method(name)(image), truth) > (0.99 if name == "mean_shift" else 0.9)
    assert not METHODS[name](np.full((30, 40, 3), 90, np.uint8)).any()


@pytest.mark.parametrize("name", METHODS)
def test_every_kind_of_picture_is_read_and_what_is_none_is_refused(name, photograph):
    run, gray = method(name), photograph[..., 1].copy()
    expected = run(np.stack([gray] * 3, axis=-1))
    for same in (gray, gray / 255, np.dstack([gray] * 3 + [np.full_like(gray, 255)])):
        assert np.array_equal(run(same), expected)
    assert np.array_equal(gray, photograph[..., 1])
    for shape in [(1, 1), (1, 7), (2, 2)]:
        assert run(np.zeros(shape, np.uint8)).shape == shape
    with pytest.raises(ValueError, match=r"^image must be a gray or color picture[^\n]*$"):
        run(np.zeros((6, 7, 2), np.uint8))


@pytest.mark.parametrize(("call", "module"), [(mean_shift, "cv2"), (gaussian_mixture, "sklearn.mixture")])
def test_a_missing_extra_is_named_in_one_line(call, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"^{call.__name__} needs [^\n]*: pip install 'spinseg\[(cv|sklearn)\]'$"):
        call(np.zeros((20, 20), np.uint8))


def slow_join(regions, pairs):
    """Regions that a chain of pairs joins get the smallest number among them."""
    joined = regions.copy()
    for part in nx.connected_components(nx.Graph(pairs)):
        joined[np.isin(regions, list(part))] = min(part)
    return joined


def slow_merged(regions, values, choose):
    """Pairs that are chosen, given what touches each region and how far apart two are, join until none is left."""
    while True:
        modes = {r: values[regions == r].mean(axis=0) for r in np.unique(regions).tolist()}
        beside = nx.Graph((int(regions[a]), int(regions[b])) for a, b in nx.grid_2d_graph(*regions.shape).edges)
        touching = {r: {s for s in beside[r] if s != r} if r in beside else set() for r in modes}
        pairs = choose(regions, touching, lambda r, s: np.linalg.norm(modes[r] - modes[s]))  # noqa: B023
        if not pairs:
            return regions
        regions = slow_join(regions, pairs)


@pytest.mark.parametrize("seed", range(12))
def test_steps_equal_their_slow_definitions(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 14, 2))
    values = (rng.integers(0, 6, (*shape, 3)) + rng.normal(0, 0.1, (*shape, 3))).astype(np.float32)
    apart = np.arange(values[..., 0].size).reshape(shape)
    near = [(apart[a], apart[b]) for a, b in nx.grid_2d_graph(*shape).edges if all(abs(values[a] - values[b]) < 1.5)]
    assert same_partition(steps.connected_pieces(values, 1.5), slow_join(apart, near))

    pieces = label(rng.integers(0, 3, shape), background=-1, connectivity=1).astype(np.int32) - 1
    for reach in (0.5, 1.5, 2.5):

        def close(regions, touching, distance, reach=reach):
            return [(r, s) for r in touching for s in touching[r] if distance(r, s) < reach]

        joined = steps.merge_pieces(pieces, values, partial(steps.close_pairs, distance=reach))
        assert same_partition(joined, slow_merged(pieces, values, close))
    for smallest in (1, 3, 10, 1000):

        def small(regions, touching, distance, smallest=smallest):
            few = [r for r in touching if (regions == r).sum() < smallest and touching[r]]
            return [(r, min(touching[r], key=partial(distance, r))) for r in few]

        left = steps.merge_pieces(pieces, values, partial(steps.pairs_of_small, min_size=smallest))
        assert same_partition(left, slow_merged(pieces, values, small))


def test_no_region_is_smaller_than_asked_and_all_are_connected(cv2, photograph):
    for min_size in (1, 30, 300):
        labels = mean_shift(photograph, spatial_bandwidth=6, min_size=min_size)
        assert np.bincount(labels.ravel()).min() >= min_size and are_connected(labels)
    assert not mean_shift(photograph, spatial_bandwidth=6, min_size=10**6).any()


def test_colors_are_luv_of_the_numbers_as_they_are(cv2):
    gray = np.array([[0, 30, 128, 255]], np.uint8)
    luv = steps.edison_luv(np.stack([gray] * 3, axis=-1))
    np.testing.assert_allclose(luv[0, 1:, 0], 116 * np.cbrt(gray[0, 1:] / 255) - 16, atol=0.02)
    np.testing.assert_allclose(luv[..., 1:], 0, atol=0.02)
    red = steps.edison_luv(np.array([[[255, 0, 0]]], np.uint8))
    np.testing.assert_allclose(red[0, 0], (53.24, 175.02, 37.76), atol=0.2)  # CIE, D65


def test_the_range_bandwidth_is_in_units_of_luv(cv2):
    low, high = 100, 130
    gap = 116 * (np.cbrt(high / 255) - np.cbrt(low / 255))  # 10.3 of lightness
    image = np.full((40, 60, 3), low, np.uint8)
    image[:, 30:] = high
    image[:10, :10] = (255, 0, 0)  # what else is in the picture has no say
    for factor, parts in ((0.95, 3), (2.1, 2)):
        labels = mean_shift(image, spatial_bandwidth=4, range_bandwidth=factor * gap, min_size=1, colors="luv")
        assert labels.max() + 1 == parts


def test_the_filter_ends_where_pixels_rest(cv2, photograph):
    expected = cv2.pyrMeanShiftFiltering(photograph, 5, 30, maxLevel=0, termcrit=(3, 1000, 0))
    assert np.array_equal(steps.apply_filter(photograph, 5, 30), expected)


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


def test_a_mixture_finds_colors(shapes):
    method("gaussian_mixture")
    truth, image = shapes
    assert adjusted_rand_index(gaussian_mixture(image, n_components=8), truth) > 0.6
    assert gaussian_mixture(image, n_components=1).max() == 0
    assert gaussian_mixture(image, n_components=10**6).max() < 72 * 96 / 60 * 1.5  # no more than sites
