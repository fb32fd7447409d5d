"""Sites and the graph of those that touch: against loops over pixels, and properties over kinds, shapes and masks."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from image_files import refusal
from scipy.ndimage import gaussian_filter
from skimage import data
from skimage.measure import label
from skimage.morphology import reconstruction

import spinseg.image.superpixels as module
from spinseg.graph.adjacency import edge_means, region_adjacency
from spinseg.image.features import site_sizes
from spinseg.image.superpixels import basins, filled, superpixels
from studies.evaluation.metrics import adjusted_rand_index

PHOTO = data.chelsea()[60:160, 100:230]
KINDS = ["slic", "watershed", "grid", "pixels"]


def assert_sites(sites, shape, inside=None):
    """Int32, numbered in reading order, connected, and just where they should be."""
    assert sites.dtype == np.int32 and sites.shape == shape
    assert np.array_equal(sites >= 0, np.ones(shape, bool) if inside is None else inside)
    numbers, first = np.unique(sites[sites >= 0], return_index=True)
    assert numbers.tolist() == list(range(len(numbers))) and np.all(np.diff(first) > 0)
    assert label(sites + 1, connectivity=1, background=0).max() == len(numbers)


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("n_sites", [None, 1, 7, 60, 700])
def test_as_many_sites_as_asked(kind, n_sites):
    """The watershed makes up for what is merged, also inside a mask."""
    disc = np.hypot(*(np.mgrid[:100, :130] - 50)) < 49
    for mask in (None, disc):
        sites = superpixels(PHOTO, kind=kind, n_sites=n_sites, mask=mask)
        assert_sites(sites, PHOTO.shape[:2], mask)
        wanted = n_sites or np.count_nonzero(sites >= 0) / 60
        slack = 1.25 if n_sites is None else 1.1 if n_sites == 700 and kind == "watershed" else 1.5
        assert wanted / slack <= sites.max() + 1 <= slack * wanted
        assert n_sites is not None or site_sizes(sites).min() >= 15
    if n_sites is None:
        sites = superpixels(np.random.default_rng(0).random((12, 20, 24)), kind=kind)
        assert_sites(sites, (12, 20, 24))
        assert 48 < sites.max() + 1 < 192


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 7), (9, 1), (3, 40), (1, 1, 1), (5, 1, 6), (6, 9, 8)])
def test_any_shape_and_any_content(kind, shape):
    noise = np.random.default_rng(1).random((*shape, 7))
    for image, axis in ((np.full(shape, 0.5), None), (noise[..., 0], None), (noise, -1)):
        for n_sites in [None] if kind == "pixels" else [None, 1, 3, 10**6]:
            sites = superpixels(image, kind=kind, n_sites=n_sites, channel_axis=axis)
            assert_sites(sites, shape)
            if n_sites in (1, 10**6):
                assert sites.max() + 1 == min(n_sites, sites.size)


@pytest.mark.parametrize("kind", KINDS)
def test_every_site_lies_inside_the_mask_and_pixels_outside_do_not_count(kind):
    rng = np.random.default_rng(3)
    for mask in (rng.random((100, 130)) < 0.7, rng.random((100, 130)) < 0.1):
        sites = superpixels(PHOTO, kind=kind, mask=mask)
        assert_sites(sites, mask.shape, mask)
        if kind != "pixels":  # a fragment is left only where it touches nothing
            alone = np.bincount(region_adjacency(sites).edges.ravel(), minlength=sites.max() + 1) == 0
            assert np.all(alone | (site_sizes(sites) >= 15))
    mask, image = np.zeros((100, 130), bool), (PHOTO / 255)[..., 0]
    mask[20:60, 30:90] = True
    expected = superpixels(image, kind=kind, mask=mask)
    assert np.array_equal(superpixels(np.where(mask, image, np.nan), kind=kind, mask=mask), expected)
    assert np.array_equal(superpixels(image, kind=kind, mask=mask | True), superpixels(image, kind=kind))
    if kind == "slic":
        assert np.array_equal(superpixels(image[20:60, 30:90]), expected[20:60, 30:90])


def test_sites_follow_colors():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 31:] = (200, 30, 30)
    for kind, slack in [("slic", 0), ("watershed", 1)]:  # a slope is a pixel wide on either side
        sites = superpixels(image, kind=kind)
        assert not set(sites[:, : 31 - slack].ravel()) & set(sites[:, 31 + slack :].ravel())


def test_fragments_join_the_neighbor_of_the_nearest_color():
    pieces = np.array([[0, 0, 0, 0], [0, 1, 2, 2], [2, 2, 2, 2]])
    for value, expected in [(1.0, 0), (9.0, 2)]:
        colors = np.array([0.0, value, 10.0])[pieces][..., None]
        joined = module._merge_fragments(pieces, colors, min_size=2)
        assert joined[1, 1] == joined[{0: (0, 0), 2: (2, 0)}[expected]]
        assert len(np.unique(joined)) == 2


SITES = "sites must number pixels from 0, some of them, with -1 outside: got"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(superpixels, PHOTO, kind="snic"), f"kind must be one of {str(KINDS)[1:-1]}: got 'snic'"),
        (partial(superpixels, PHOTO, n_sites=2.5), "n_sites must be a whole number of at least 1: got 2.5"),
        (
            partial(superpixels, PHOTO, kind="pixels", n_sites=4),
            "n_sites must be None where every pixel is a site: got 4",
        ),
        (partial(superpixels, PHOTO, compactness=0), "compactness must be a finite number above 0: got 0"),
        (partial(superpixels, PHOTO, relief=np.ones(3)), "relief must have shape (100, 130): got (3,)"),
        (partial(region_adjacency, [[0.0, 1.0]]), "sites must be whole numbers: got 'float64'"),
        (partial(region_adjacency, [[-2, 1]]), f"{SITES} [[-2 1]]"),
        (partial(region_adjacency, [[-1, -1]]), f"{SITES} [[-1 -1]]"),
        (partial(region_adjacency, np.zeros((0, 3), int)), f"{SITES} []"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    assert refusal(call).startswith(message)


def brute_adjacency(sites):
    """Edge -> boundary length, by a loop over pixels and axes; sorted."""
    found = Counter()
    for place in np.ndindex(sites.shape):
        for axis, end in enumerate(sites.shape):
            other = tuple(p + (a == axis) for a, p in enumerate(place))
            if other[axis] < end and sites[place] != sites[other] and min(sites[place], sites[other]) >= 0:
                found[tuple(sorted((int(sites[place]), int(sites[other]))))] += 1
    return dict(sorted(found.items()))


@pytest.mark.parametrize("shape", [(9, 11), (4, 5, 6), (1, 8), (6, 1), (20,), None])
@pytest.mark.parametrize("lowest", [0, -1])
def test_region_adjacency_against_a_loop_over_pixels(shape, lowest):
    sites = superpixels(PHOTO) if shape is None else np.random.default_rng(5).integers(lowest, 8, shape)
    kept, expected = sites.copy(), brute_adjacency(sites)
    found = region_adjacency(sites)
    assert [tuple(edge) for edge in found.edges.tolist()] == list(expected)
    assert found.n_sites == sites.max() + 1
    assert found.weights.tolist() == found.length.tolist() == list(expected.values())
    assert np.array_equal(sites, kept)
    if sites.ndim > 1:  # means along edges follow the order of the graph
        largest = edge_means(sites, found.edges, sites.astype(float))
        np.testing.assert_array_equal(largest, found.edges.max(axis=1))


def test_the_watershed_floods_the_relief_it_is_given():
    relief = np.random.default_rng(0).random((30, 40))
    relief[:, 13] += 5
    relief[15, [4, 30]] = -1
    sites = superpixels(np.zeros((30, 40, 3)), kind="watershed", n_sites=2, relief=relief)
    assert len(np.unique(sites[:, :13])) == len(np.unique(sites[:, 14:])) == 1 and sites[0, 0] != sites[0, 39]


def test_basins_are_as_deep_as_asked_for():
    relief = np.tile(np.array([0, 1, 0, 3, 0, 3, 2.5, 3, 0], float).repeat(5), (20, 1))
    for depth, count in ((0.3, 5), (0.8, 4), (1.5, 3), (5, 1)):
        found = basins(relief, depth, 100)
        assert found.max() + 1 == count
    assert basins(relief, 0.3, 3).max() + 1 == 3  # deeper where there would be too many
    assert basins(np.zeros((4, 5)), 0.3, 10).max() == 0


@pytest.mark.parametrize("shape", [(1,), (40,), (1, 9), (23, 17), (60, 80), (7, 9, 8)])
def test_basins_are_filled_up_as_a_reconstruction_by_erosion_does(shape):
    rng = np.random.default_rng(0)
    for scale in (0, 1, 3):
        relief = gaussian_filter(rng.normal(size=shape), scale).astype(np.float32)
        for ground in (relief, np.round(2 * relief / np.ptp(relief, axis=None).clip(1e-3))):
            for depth in (0.01, 0.3, 10):
                expected = reconstruction(ground + np.float32(depth), ground, method="erosion")
                assert np.array_equal(filled(ground, depth), expected)


def test_basins_that_are_too_many_become_those_that_a_larger_depth_gives():
    rng = np.random.default_rng(0)
    for _ in range(3):
        relief = 5 * gaussian_filter(rng.normal(size=(120, 120)), 2)
        deeper = basins(relief, 0.8, 10_000)
        n = int(deeper.max()) + 1
        found = basins(relief, 0.1, n + n // 3)
        # Saddles are found along axes, and fillings also diagonally.
        assert 0.95 * n < found.max() + 1 < 1.2 * n and adjusted_rand_index(deeper, found) > 0.85


def test_basins_are_connected_and_every_part_of_a_mask_has_one():
    rng = np.random.default_rng(0)
    for shape in ((30, 40), (8, 12, 10)):
        relief, inside = gaussian_filter(rng.normal(size=shape), 1.5), np.ones(shape, bool)
        inside[:, shape[1] // 2] = False
        inside[0, 1], inside[1, 0] = False, False  # a corner on its own
        found = basins(relief, 0.01, 1000, inside)
        assert ((found >= 0) == inside).all() and found.max() > 3
        assert all(label(found == site, connectivity=1).max() == 1 for site in range(found.max() + 1))
