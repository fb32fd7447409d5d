"""Outlines are as short as the evidence allows, and nothing else changes: sites hold together and touch as before."""

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, sobel
from skimage.measure import label

import spinseg as ss
from effort import effort
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.outlines import RADIUS, Window, _steepest_change, nearby_pairs, shorten_outlines
from spinseg.image.render import boundaries
from spinseg.image.superpixels import superpixels
from spinseg.partition.pairs import separation_probability


def expected_length(sites, weight, draws):
    """The definition, draw by draw and pixel by pixel."""
    total, (height, width) = 0.0, sites.shape
    for draw in draws:
        labels = np.append(draw, -1)[sites]
        for dy, dx, nearness in zip(*Window.of(RADIUS), strict=True):
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
    graph = region_adjacency(sites)
    pairs = nearby_pairs(graph)
    return shorten_outlines(sites, weight, graph, pairs, separation_probability(draws, pairs), is_free=is_free)


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
    for y, x in np.argwhere(boundaries(sites)):
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


@pytest.mark.parametrize("seed", range(3))
def test_where_it_ends_no_pixel_makes_outlines_shorter(seed):
    sites, weight, draws = problem(seed, (15, 16), 6)
    while not np.array_equal(sites, better := shortened(sites, weight, draws)):
        sites = better
    length = expected_length(sites, weight, draws)
    others = [expected_length(other, weight, draws) for other in moves(sites)]
    assert len(others) > 10 and min(others) > length * (1 - 1e-6)


def zigzag(height=40, width=60, tooth=6, depth=3):
    """Two sites with a boundary of teeth."""
    row = height // 2 + depth * ((np.arange(width) // tooth) % 2)
    return (np.arange(height)[:, None] >= row).astype(np.int32)


def climbs(upper):
    """How far the lower end of the upper side rises and falls, from column to column."""
    return np.abs(np.diff(np.count_nonzero(upper, axis=0))).sum()


def test_only_what_draws_keep_apart_is_shortened_and_only_without_evidence():
    sites, apart = zigzag(tooth=6), np.array([[0, 1]], np.int32)
    ones = np.ones(sites.shape)
    assert climbs(shortened(sites, ones, apart) == 0) < climbs(sites == 0) / 2
    np.testing.assert_array_equal(shortened(sites, ones, 0 * apart), sites)
    four = sites * 2 + (np.arange(60) >= 30)  # the upper two are always together, and the lower two
    assert climbs(shortened(four, ones, np.array([[0, 0, 1, 1]], np.int32)) < 2) < climbs(sites == 0) / 2
    sites = zigzag(tooth=10)
    ridge = boundaries(sites)  # on both sides of the boundary, all along the teeth
    weight = np.where(ridge, 1e-4, np.where(binary_dilation(ridge), 1e-2, 1.0))
    assert climbs(shortened(sites, weight, apart) == 0) > 0.9 * climbs(sites == 0)


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
    edge = boundaries(inner.astype(np.int32))
    assert np.mean(found.boundary_probability[edge] > 0.5) > 0.95
