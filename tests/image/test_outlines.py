"""Outlines are as short as the evidence allows, of regions and of classes; sites hold together and touch as before."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, sobel
from skimage.measure import label
from skimage.segmentation import find_boundaries

import spinseg as ss
from effort import effort
from spinseg.graph.adjacency import region_adjacency
from spinseg.image import outlines
from spinseg.image.kernels.outlines import shorten
from spinseg.image.outlines import (
    OUTLINE_COUPLING,
    RADIUS,
    SitePairs,
    _steepest_change,
    refine_classes,
    shorten_outlines,
    window_around,
    with_connected_regions,
    word_log_frequencies,
)
from spinseg.image.superpixels import superpixels
from studies.evaluation.metrics import adjusted_rand_index


def expected_length(sites, weight, draws):
    """The definition, draw by draw and pixel by pixel."""
    total, (height, width) = 0.0, sites.shape
    for draw in draws:
        labels = np.append(draw, -1)[sites]
        for dy, dx, nearness in zip(*window_around(RADIUS), strict=True):
            here = slice(max(-dy, 0), height - max(dy, 0)), slice(max(-dx, 0), width - max(dx, 0))
            there = slice(max(dy, 0), height + min(dy, 0)), slice(max(dx, 0), width + min(dx, 0))
            known = (labels[here] >= 0) & (labels[there] >= 0)
            apart = known & (labels[here] != labels[there])
            total += nearness * (weight[here] * weight[there])[apart].sum()
    return total / len(draws)


def problem(seed, shape, n_sites, n_draws=4, mask=None):
    """Sites, the weight of each pixel, and random draws."""
    rng = np.random.default_rng(seed)
    sites = superpixels(rng.random(shape), kind="watershed", n_sites=n_sites, mask=mask)
    weight = np.exp(-2 * rng.random(shape)).astype(np.float32)
    return sites, weight, rng.integers(0, 3, (n_draws, sites.max() + 1)).astype(np.int32)


def shortened(sites, weight, draws, is_free=None):
    is_free = np.ones(sites.shape, bool) if is_free is None else is_free
    return shorten_outlines(sites, weight, SitePairs.of(region_adjacency(sites), draws), is_free)


@pytest.mark.parametrize("seed", range(4))
def test_outlines_get_shorter_and_sites_touch_as_before(seed):
    mask, free = np.ones((40, 50), bool), np.random.default_rng(seed).random((40, 50)) < 0.8
    mask[:9, : 6 * seed] = False
    sites, weight, draws = problem(seed, (40, 50), 40, mask=mask)
    before = sites.copy()
    moved = shortened(sites, weight, draws, free)
    np.testing.assert_array_equal(sites, before)
    np.testing.assert_array_equal(moved[~free], sites[~free])
    assert np.count_nonzero(moved != sites) > 20
    assert expected_length(moved, weight, draws) < expected_length(sites, weight, draws)
    np.testing.assert_array_equal(moved < 0, sites < 0)
    np.testing.assert_array_equal(region_adjacency(moved).edges, region_adjacency(sites).edges)
    assert label(moved, background=-1, connectivity=1).max() == sites.max() + 1


def moves(sites):
    """Sites in which one pixel has gone over to a neighbor: those around it of its own hold together without it, and the
    same sites touch.
    """
    edges = region_adjacency(sites).edges
    for y, x in np.argwhere(find_boundaries(sites)):
        for there in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if min(there) >= 0 and there[0] < sites.shape[0] and there[1] < sites.shape[1]:
                other = sites.copy()
                other[y, x] = sites[there]
                own = np.pad(sites, 1, constant_values=-1)[y : y + 3, x : x + 3] == sites[y, x]
                own[1, 1] = False
                pieces = label(own, connectivity=1)[[0, 1, 1, 2], [1, 0, 2, 1]]
                whole = np.unique(pieces[pieces > 0]).size == 1
                if other[y, x] != sites[y, x] and whole and np.array_equal(region_adjacency(other).edges, edges):
                    yield other


@pytest.mark.parametrize("seed", range(4))
def test_a_pixel_waits_once(seed, monkeypatch):
    # with pixels that wait twice, the row of those of the next pass overflowed on small pictures of many outlines
    def shorten_once(*args):
        waiting, is_waiting, n_passes = args[5], args[6], args[8]
        assert n_passes > 1
        waiting[1] = -1
        n_moved = shorten(*args[:8], 1, *args[9:])
        next_pass = waiting[1][waiting[1] >= 0]
        assert n_moved > 3 and next_pass.size > 8
        np.testing.assert_array_equal(np.sort(next_pass), np.flatnonzero(is_waiting))

    monkeypatch.setattr(outlines, "shorten", shorten_once)
    shortened(*problem(seed, (24, 30), 40))


@pytest.mark.parametrize("seed", range(3))
def test_where_it_ends_no_pixel_makes_outlines_shorter(seed):
    sites, weight, draws = problem(seed, (15, 16), 6)
    while not np.array_equal(sites, better := shortened(sites, weight, draws)):
        sites = better
    length = expected_length(sites, weight, draws)
    others = [expected_length(other, weight, draws) for other in moves(sites)]
    assert len(others) > 10 and min(others) > length * (1 - 1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (64, 9), (65, 7), (130, 20)])
def test_the_steepest_change_is_that_of_sobels_filter(shape):
    codes = np.random.default_rng(0).integers(0, 65536, (*shape, 3)).astype(np.uint16)
    steps = [np.hypot(*(sobel(channel, axis, float, mode="nearest") for axis in (0, 1))) for channel in codes.T]
    np.testing.assert_allclose(_steepest_change(codes), np.max(steps, axis=0).T / 8, rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("shape", effort([(550, 600)], [(550, 600), (1501, 1203)]))
def test_a_large_picture_has_outlines_without_stairs(shape):
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    disc = np.hypot(rows - 0.45 * shape[0], columns - 0.5 * shape[1]) < 0.31 * min(shape)
    noise = np.random.default_rng(0).normal(0, 8, (*shape, 3))
    image = (np.where(disc[..., None], [200, 150, 60], [40, 60, 120]) + noise).clip(0, 255).astype(np.uint8)
    found = ss.segment(image, sweeps=20, chains=1, rng=0)
    inner = found.labels == found.labels[int(0.45 * shape[0]), shape[1] // 2]
    wrong = np.count_nonzero(inner != disc) / (2 * np.pi * 0.31 * min(shape))  # pixels for each pixel of the outline
    assert wrong < 0.35  # with stairs of two pixels it is 0.5, and with stairs of three 0.75
    edge = find_boundaries(inner.astype(np.int32))
    assert np.mean(found.boundary_probability[edge] > 0.5) > 0.95


N_WORDS = 6


def phantom(rng, shape, noise):
    """A picture or volume of three materials with noise, and the materials."""
    field = gaussian_filter(rng.normal(size=shape), 5)
    materials = np.digitize(field, np.quantile(field, [0.15, 0.6]))
    return np.clip(0.2 + 0.3 * materials + rng.normal(0, noise, shape), 0, 1).astype(np.float32), materials


def class_problem(rng, shape):
    """Sites of a phantom, the class of each, and the word of each pixel; some pixels are outside."""
    values, materials = phantom(rng, shape, 0.1)
    inside = np.ones(shape, bool)
    inside[..., -3:] = False
    sites = superpixels(values, kind="grid", pixels_per_site=20, mask=inside, channel_axis=None)
    means = np.bincount(sites[inside], materials[inside]) / np.bincount(sites[inside])
    words = np.minimum((values * N_WORDS).astype(np.int32), N_WORDS - 1)
    return sites, np.rint(means).astype(np.int32), words


def fit(classes, words, log_frequency, coupling):
    """How well the pixels fit: frequencies of words, and pairs of touching pixels of one class."""
    inside = classes >= 0
    total = log_frequency[classes[inside], words[inside]].sum()
    for axis in range(classes.ndim):
        a, b = np.delete(classes, -1, axis), np.delete(classes, 0, axis)
        total += coupling * np.count_nonzero((a == b) & (a >= 0))
    return total


@pytest.mark.parametrize("shape", [(20, 26), (6, 10, 12)])
def test_no_single_move_fits_better(shape):
    sites, class_of, words = class_problem(np.random.default_rng(0), shape)
    refined = refine_classes(sites, class_of, words, N_WORDS)
    how = words, word_log_frequencies(sites, class_of, words, N_WORDS), OUTLINE_COUPLING[len(shape)]
    before, classes = (np.append(class_of, -1)[each] for each in (sites, refined))
    reached = fit(classes, *how)
    assert reached > fit(before, *how) and np.array_equal(refined < 0, sites < 0)
    sizes = np.bincount(refined[refined >= 0], minlength=len(class_of))
    assert sizes.min() >= 1
    padded, steps = np.pad(classes, 1, constant_values=-1), np.eye(len(shape), dtype=int)
    for place in np.argwhere((classes >= 0) & (sizes[refined] > 1)):
        for step in (*steps, *-steps):
            other = classes.copy()
            other[tuple(place)] = padded[tuple(place + step + 1)]
            assert other[tuple(place)] < 0 or fit(other, *how) <= reached + 1e-9


def test_frequencies_are_those_of_a_class_with_one_more_of_each_word():
    found = np.exp(word_log_frequencies(np.array([[0, 0, 1, -1]]), np.array([0, 1]), np.array([[2, 0, 2, 1]]), 3))
    assert found == pytest.approx(np.array([[2 / 5, 1 / 5, 2 / 5], [1 / 4, 1 / 4, 2 / 4]]))


def test_no_site_loses_its_last_pixel_and_nothing_moves_where_there_is_one_class():
    sites = np.zeros((7, 7), np.int32)
    sites[3, 3] = 1
    for class_of in ([0, 1], [0, 0]):
        assert np.array_equal(refine_classes(sites, np.array(class_of, np.int32), np.zeros((7, 7), int), 2), sites)


@pytest.mark.parametrize("shape", [(90, 110), (24, 30, 36)])
def test_materials_are_found_wherever_they_are(shape):
    values, materials = phantom(np.random.default_rng(2), shape, 0.08)
    found = ss.segment(values, "classes", channel_axis=None, sweeps=60, rng=0)
    assert found.n_clusters == 3
    assert adjusted_rand_index(found.labels, materials) > 0.8
    assert np.array_equal(found.partition[found.sites] + 1, found.labels)


def test_pieces_cut_off_from_their_region_join_a_touching_one():
    rng = np.random.default_rng(0)
    sites = (np.arange(20)[:, None] // 5 * 4 + np.arange(24) // 6).astype(np.int32)
    region_of = (np.arange(16) // 4).astype(np.int32)
    sites = np.where(rng.random(sites.shape) < 0.1, rng.integers(0, 16, sites.shape), sites).astype(np.int32)
    sites[0, :3] = -1
    found = with_connected_regions(sites, region_of)
    assert np.array_equal(found < 0, sites < 0) and np.unique(found[found >= 0]).size == 16
    regions = np.append(region_of, -1)[found]
    assert all(label(regions == region, connectivity=1).max() == 1 for region in range(4))
    assert np.array_equal(with_connected_regions(found, region_of), found)
