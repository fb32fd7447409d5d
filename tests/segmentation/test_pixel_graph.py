"""Pixels and voxels as sites: their graph, and couplings by contrast."""

import itertools
import math

import numpy as np
import pytest
from spinseg.segmentation.image_model import contrast_couplings

from effort import effort
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.segmentation.presets import (
    CONTRAST_COUPLING_MIN,
    CONTRAST_COUPLING_RANGE,
)

SHAPES = [(1, 1), (1, 6), (5, 1), (4, 5), (1, 1, 1), (3, 1, 4), (2, 3, 4), (3, 4, 3)]


# ---- the graph -------------------------------------------------------------------------------------------------------


def masks(shape):
    """None, all, holes, one pixel, and pixels that touch nothing."""
    rng = np.random.default_rng(len(shape))
    yield None
    yield np.ones(shape, bool)
    for share in (0.4, 0.8):
        inside = rng.random(shape) < share
        inside.flat[-1] = True
        yield inside
    alone = np.zeros(shape, bool)
    alone.flat[alone.size // 2] = True
    yield alone
    yield np.indices(shape).sum(axis=0) % 2 == 0


def pairs(shape, connectivity, inside):
    """Pairs of neighbours by their sites in reading order, found by comparing all pixels, and how far apart they are."""
    pixels = [pixel for pixel in np.ndindex(*shape) if inside is None or inside[pixel]]
    found = {}
    for (i, a), (j, b) in itertools.combinations(enumerate(pixels), 2):
        apart = [abs(x - y) for x, y in zip(a, b, strict=True)]
        if max(apart) == 1 and sum(apart) <= connectivity:
            found[i, j] = math.sqrt(sum(apart))
    return len(pixels), found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_grid_joins_just_the_neighbours_of_each_pixel(shape):
    for connectivity, inside in itertools.product(range(1, len(shape) + 1), masks(shape)):
        graph = SiteGraph.grid(shape, connectivity=connectivity, inside=inside)
        n_sites, expected = pairs(shape, connectivity, inside)
        assert graph.n_sites == n_sites
        assert [tuple(edge) for edge in graph.edges.tolist()] == sorted(expected)
        assert graph.edges.dtype == np.int32


@pytest.mark.parametrize("wrong", [0, 3, 1.5, "two"])
def test_the_grid_refuses_neighbours_along_axes_that_there_are_not(wrong):
    with pytest.raises(ValueError, match="connectivity must be "):
        SiteGraph.grid((3, 4), connectivity=wrong)


# ---- couplings by contrast -------------------------------------------------------------------------------------------


# What a straight boundary cuts for each pixel of its length: all neighbors on its other side, over their distance.
ROOT2, ROOT3 = math.sqrt(2), math.sqrt(3)
CUT = {(2, 1): 1, (2, 2): 1 + 2 / ROOT2, (3, 1): 1, (3, 2): 1 + 4 / ROOT2, (3, 3): 1 + 4 / ROOT2 + 4 / ROOT3}


def contrast(image, connectivity, inside=None):
    """Edges and couplings, as a picture with pixels as sites has them."""
    seen = as_picture(image, channel_axis=-1)
    sites = superpixels(seen, kind="pixels", mask=inside)
    graph = SiteGraph.grid(seen.shape, connectivity=connectivity, inside=inside)
    return (
        seen,
        graph.edges,
        contrast_couplings(seen, sites, graph, connectivity),
    )


@pytest.mark.parametrize("shape", [(1, 7, 3), (6, 5, 3), (3, 4, 5, 3), (3, 4, 5)], ids=str)
def test_couplings_fall_with_contrast_and_distance(shape):
    image = np.random.default_rng(2).random(shape)
    for connectivity, inside in itertools.product(range(1, len(shape)), masks(shape[:-1])):
        seen, edges, beta = contrast(image, connectivity, inside)
        _, apart = pairs(shape[:-1], connectivity, inside)
        colors = seen.colors.astype(float)[... if inside is None else inside].reshape(-1, seen.n_channels)
        squares = {(i, j): ((colors[i] - colors[j]) ** 2).sum() for i, j in apart}
        usual = np.mean(list(squares.values())) if squares else 1.0
        assert beta.dtype == np.float64 and beta.shape == (len(apart),)
        for edge, value in zip(map(tuple, edges.tolist()), beta, strict=True):
            falling = CONTRAST_COUPLING_RANGE * math.exp(-squares[edge] / (2 * usual))
            cut = CUT[len(shape) - 1, connectivity] * apart[edge]
            assert value == pytest.approx((CONTRAST_COUPLING_MIN + falling) / cut, rel=1e-5)
    if len(shape) == 4:
        assert {round(d**2) for d in apart.values()} <= {1, 2, 3}


def test_in_a_flat_picture_every_coupling_is_the_strongest():
    _, edges, beta = contrast(np.full((4, 5, 3), 0.3), 2)
    steps = np.where(np.isin(edges[:, 1] - edges[:, 0], (1, 5)), 1.0, math.sqrt(2))
    np.testing.assert_allclose(beta, (CONTRAST_COUPLING_MIN + CONTRAST_COUPLING_RANGE) / (CUT[2, 2] * steps))
    assert contrast(np.full((1, 1, 3), 0.3), 1)[2].shape == (0,)


@pytest.mark.parametrize("shape", effort([(300, 300)], [(300, 300), (60, 60, 60)]), ids=str)
def test_a_straight_boundary_costs_the_same_whatever_the_connectivity(shape):
    half = (np.arange(shape[0]) < shape[0] // 2).reshape(-1, *[1] * (len(shape) - 1)) & np.ones(shape, bool)
    costs = []
    for connectivity in range(1, len(shape) + 1):
        _, edges, beta = contrast(np.full((*shape, 3), 0.3), connectivity)
        costs.append(beta[half.ravel()[edges[:, 0]] != half.ravel()[edges[:, 1]]].sum())
    np.testing.assert_allclose(costs, costs[0], rtol=0.03)  # at the ends of the boundary neighbors are missing
