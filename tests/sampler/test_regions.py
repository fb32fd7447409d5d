"""Regions: connected pieces, and where the small ones go."""

import numpy as np
import pytest
from skimage.measure import label

from spinseg.graph.adjacency import region_adjacency, regions_of
from spinseg.graph.merging import absorb_small
from spinseg.image.superpixels import superpixels
from spinseg.partition.pairs import cohesion


@pytest.fixture
def pieces():
    rng = np.random.default_rng(1)
    sites = superpixels(rng.random((60, 70, 3)), kind="grid", n_sites=200)
    adjacency = region_adjacency(sites)
    labels = rng.integers(0, 4, adjacency.n_sites)
    return sites, adjacency, labels, rng.normal(size=adjacency.n_edges)


def test_regions_are_the_connected_pieces_of_the_picture(pieces):
    sites, adjacency, labels, _ = pieces
    regions = regions_of(labels, adjacency)
    expected = label(labels[sites] + 1, connectivity=1)
    pairs = set(zip(regions[sites].ravel().tolist(), expected.ravel().tolist(), strict=True))
    assert len(pairs) == regions.max() + 1 == expected.max()


@pytest.mark.parametrize("smallest", [0, 30, 200, 10_000])
def test_small_regions_join_the_neighbour_that_couples_most(pieces, smallest):
    sites, adjacency, labels, beta = pieces
    area = np.bincount(sites.ravel())
    regions = regions_of(labels, adjacency)
    found = absorb_small(regions, adjacency, beta, smallest, length=adjacency.length, area=area)
    assert np.bincount(found, area).min() >= min(smallest, area.sum())

    slow = regions.copy()  # one at a time, everything counted anew
    while True:
        sizes = np.bincount(slow, area)
        sizes = np.where(sizes > 0, sizes, np.inf)
        small = int(np.lexsort((np.arange(sizes.size), sizes))[0])
        if sizes[small] >= smallest or np.isfinite(sizes).sum() == 1:
            break
        ends = slow[adjacency.edges]
        score = {}
        for other in np.unique(ends[(ends == small).any(axis=1)]):
            between = np.sort(ends, axis=1) == sorted((small, int(other)))
            shared = between.all(axis=1)
            if other != small:
                score[int(other)] = beta[shared].sum() / adjacency.length[shared].sum()
        slow[slow == small] = max(score, key=lambda r: (score[r], -r))
    same = set(zip(found.tolist(), slow.tolist(), strict=True))
    assert len(same) == found.max() + 1 == np.unique(slow).size


@pytest.mark.parametrize("step", [1, 10**6], ids=["dense table", "sparse table"])
def test_cohesion_counts_pairs_of_sites(pieces, step):
    _, adjacency, labels, _ = pieces
    rng = np.random.default_rng(2)
    draws = step * rng.integers(0, 3, (2, 5, labels.size))
    regions = regions_of(labels, adjacency)
    found = cohesion(draws, regions)
    for r in range(regions.max() + 1):
        sites = np.flatnonzero(regions == r)
        pairs = [draws[..., a] == draws[..., b] for i, a in enumerate(sites) for b in sites[:i]]
        assert found[r] == pytest.approx(np.mean(pairs) if pairs else 1.0)
