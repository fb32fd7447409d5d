"""Sites and the graph of those that touch: against loops over pixels, and properties over kinds, shapes and masks."""

import itertools
from collections import Counter

import numpy as np
import pytest
from skimage import data
from skimage.measure import label

import spinseg.image.superpixels as module
from spinseg.graph.adjacency import edge_means, region_adjacency
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.features import site_means, site_sizes
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels

PHOTO = data.chelsea()[60:160, 100:230]
KINDS = ["slic", "watershed", "felzenszwalb", "grid", "pixels"]


def assert_sites(sites, shape, inside=None):
    """Int32, numbered in reading order, connected, and just where they should be."""
    assert sites.dtype == np.int32 and sites.shape == shape
    assert np.array_equal(sites >= 0, np.ones(shape, bool) if inside is None else inside)
    numbers, first = np.unique(sites[sites >= 0], return_index=True)
    assert numbers.tolist() == list(range(len(numbers))) and np.all(np.diff(first) > 0)
    assert label(sites + 1, connectivity=1, background=0).max() == len(numbers)


@pytest.mark.parametrize("kind", KINDS)
def test_sites_of_a_photograph(kind):
    sites = superpixels(PHOTO, kind=kind)
    assert_sites(sites, PHOTO.shape[:2])
    if kind != "pixels":
        wanted = PHOTO.shape[0] * PHOTO.shape[1] / 60
        assert abs(sites.max() + 1 - wanted) < 0.2 * wanted
        assert site_sizes(sites).min() >= 15


@pytest.mark.parametrize("kind", KINDS[:4])
@pytest.mark.parametrize("n_sites", [1, 7, 60, 1000])
def test_as_many_sites_as_asked(kind, n_sites):
    sites = superpixels(PHOTO, kind=kind, n_sites=n_sites)
    assert_sites(sites, PHOTO.shape[:2])
    assert n_sites / 1.5 <= sites.max() + 1 <= 1.5 * n_sites


@pytest.mark.parametrize("n_sites", [100, 300, 700])
def test_the_watershed_makes_up_for_what_is_merged(n_sites):
    inside = np.hypot(*(np.mgrid[:100, :130] - 50)) < 49
    for mask in (None, inside):
        found = superpixels(PHOTO, kind="watershed", n_sites=n_sites, mask=mask).max() + 1
        assert 0.95 <= found / n_sites <= 1.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 7), (9, 1), (3, 40), (1, 1, 1), (2, 2, 2), (5, 1, 6), (6, 9, 8)])
@pytest.mark.parametrize("content", ["constant", "noise"])
def test_any_shape_and_any_content(kind, shape, content):
    image = np.full(shape, 0.5)
    if content == "noise":
        image = np.random.default_rng(1).random(shape)
    if kind == "felzenszwalb" and len(shape) == 3:
        with pytest.raises(ValueError, match=r"^kind must be another than 'felzenszwalb' for a volume; received 'felz"):
            superpixels(image, kind=kind, channel_axis=None)
        return
    for n_sites in [None] if kind == "pixels" else [None, 1, 3, 10**6]:
        sites = superpixels(image, kind=kind, n_sites=n_sites, channel_axis=None)
        assert_sites(sites, shape)
        if n_sites == 1 and kind != "felzenszwalb":
            assert sites.max() == 0
        if n_sites == 10**6 and kind in ("slic", "watershed", "grid"):
            assert sites.max() + 1 == image.size


@pytest.mark.parametrize("kind", KINDS)
def test_every_site_lies_inside_the_mask(kind):
    rng = np.random.default_rng(3)
    rows, columns = np.ogrid[:100, :130]
    disc = (rows - 50) ** 2 + (columns - 60) ** 2 < 35**2
    for mask in [disc, disc & (rng.random(disc.shape) < 0.7), rng.random(disc.shape) < 0.1]:
        sites = superpixels(PHOTO, kind=kind, mask=mask)
        assert_sites(sites, mask.shape, mask)
        if kind != "pixels":  # a fragment is left only where it touches nothing
            alone = np.bincount(region_adjacency(sites).edges.ravel(), minlength=sites.max() + 1) == 0
            assert np.all(alone | (site_sizes(sites) >= 15))


def test_pixels_outside_the_mask_do_not_count():
    image = (PHOTO / 255.0)[..., 0]
    mask = np.zeros(image.shape, bool)
    mask[20:60, 30:90] = True
    expected = superpixels(image, mask=mask)
    assert np.array_equal(superpixels(np.where(mask, image, np.nan), mask=mask), expected)
    assert np.array_equal(superpixels(image[20:60, 30:90]), expected[20:60, 30:90])


@pytest.mark.parametrize("kind", KINDS)
def test_value_range_order_in_memory_and_repetition_do_not_matter(kind):
    expected = superpixels(PHOTO, kind=kind)
    kept = PHOTO.copy()
    for same in [PHOTO, PHOTO / 255, PHOTO.astype(np.float32), PHOTO.astype(np.uint16) * 257, np.asfortranarray(PHOTO)]:
        assert np.array_equal(superpixels(same, kind=kind), expected)
    assert np.array_equal(superpixels(PHOTO, kind=kind, mask=np.ones((100, 130), bool)), expected)
    assert np.array_equal(PHOTO, kept)


@pytest.mark.parametrize("kind", ["slic", "watershed", "grid"])
@pytest.mark.parametrize("n_channels", [None, 3, 7])
def test_volumes(kind, n_channels):
    shape = (12, 20, 24)
    image = np.random.default_rng(0).random(shape if n_channels is None else (*shape, n_channels))
    sites = superpixels(image, kind=kind)
    assert_sites(sites, shape)
    assert 48 < sites.max() + 1 < 192


def test_sites_follow_colours():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 31:] = (200, 30, 30)
    for kind, slack in [("slic", 0), ("watershed", 1), ("felzenszwalb", 0)]:  # a slope is a pixel wide on either side
        sites = superpixels(image, kind=kind)
        assert not set(sites[:, : 31 - slack].ravel()) & set(sites[:, 31 + slack :].ravel())


def test_colour_varies_less_within_sites_than_within_those_of_skimage_alone():
    from skimage.segmentation import slic

    colors = as_picture(PHOTO).colors
    left = []
    for sites in [superpixels(PHOTO), slic(PHOTO, n_segments=PHOTO.shape[0] * PHOTO.shape[1] // 60, start_label=0)]:
        left.append(np.square(colors - site_means(colors, sites)[sites]).sum())
    assert left[0] < left[1]


def test_fragments_join_the_neighbour_of_the_nearest_colour():
    pieces = np.array([[0, 0, 0, 0], [0, 1, 2, 2], [2, 2, 2, 2]])
    for value, expected in [(1.0, 0), (9.0, 2)]:
        colors = np.array([0.0, value, 10.0])[pieces][..., None]
        joined = module._merge_fragments(pieces, colors, min_size=2)
        assert joined[1, 1] == joined[{0: (0, 0), 2: (2, 0)}[expected]]
        assert len(np.unique(joined)) == 2


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"kind": "snic"}, f"kind must be one of {str(KINDS)[1:-1]}; received 'snic'"),
        ({"n_sites": 0}, "n_sites must be a whole number of at least 1; received 0"),
        ({"n_sites": 2.5}, "n_sites must be a whole number of at least 1; received 2.5"),
        ({"kind": "pixels", "n_sites": 4}, "n_sites must be None where every pixel is a site; received 4"),
        ({"compactness": 0}, "compactness must be a finite number above 0; received 0"),
        ({"mask": np.ones((2, 2), bool)}, "mask must have the image's shape (100, 130); received (2, 2)"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(keywords, message):
    with pytest.raises(ValueError) as caught:
        superpixels(PHOTO, **keywords)
    assert str(caught.value) == message


def brute_adjacency(sites):
    """Edge -> boundary length, by a loop over pixels and axes; sorted."""
    found = Counter()
    for place in itertools.product(*map(range, sites.shape)):
        for axis in range(sites.ndim):
            other = tuple(p + (a == axis) for a, p in enumerate(place))
            if other[axis] == sites.shape[axis]:
                continue
            pair = sites[place], sites[other]
            if pair[0] != pair[1] and min(pair) >= 0:
                found[min(pair), max(pair)] += 1
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


def test_pixels_as_sites_give_the_grid_graph():
    for shape in [(4, 6), (3, 4, 5), (1, 1)]:
        found = region_adjacency(superpixels(np.zeros(shape), kind="pixels", channel_axis=None))
        expected = SiteGraph.grid(shape)
        assert sorted(map(tuple, expected.edges.tolist())) == list(map(tuple, found.edges.tolist()))
        assert np.all(found.length == 1)


def test_no_edge_crosses_the_outside():
    assert region_adjacency([[0, -1, 1]]).n_edges == 0


@pytest.mark.parametrize(
    ("sites", "message"),
    [
        ([[0.0, 1.0]], "sites must be whole numbers; received 'float64'"),
        ([[-2, 1]], "sites must number pixels from 0, some of them, with -1 outside; received [[-2 1]]"),
        ([[-1, -1]], "sites must number pixels from 0, some of them, with -1 outside; received [[-1 -1]]"),
        (np.zeros((0, 3), int), "sites must number pixels from 0, some of them, with -1 outside; received []"),
    ],
)
def test_bad_sites_are_refused_in_one_line(sites, message):
    with pytest.raises(ValueError) as caught:
        region_adjacency(sites)
    assert str(caught.value) == message


def test_means_along_edges_follow_the_order_of_the_graph():
    rng = np.random.default_rng(3)
    sites = superpixels(rng.random((20, 30)), n_sites=12)
    adjacency = region_adjacency(sites)
    ones = edge_means(sites, adjacency.edges, np.ones(sites.shape))
    np.testing.assert_array_equal(ones, 1)
    largest = edge_means(sites, adjacency.edges, sites.astype(float))
    np.testing.assert_array_equal(largest, adjacency.edges.max(axis=1))


def test_the_watershed_floods_the_relief_it_is_given():
    relief = np.random.default_rng(0).random((30, 40))
    relief[:, 13] += 5
    relief[15, [4, 30]] = -1
    sites = superpixels(np.zeros((30, 40, 3)), kind="watershed", n_sites=2, relief=relief)
    assert len(np.unique(sites[:, :13])) == len(np.unique(sites[:, 14:])) == 1 and sites[0, 0] != sites[0, 39]
    with pytest.raises(ValueError, match=r"relief must have shape \(30, 40\)"):
        superpixels(np.zeros((30, 40, 3)), kind="watershed", n_sites=2, relief=relief.T)
