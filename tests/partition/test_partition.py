"""Partitions: their numbers, contingency tables, connected regions and cohesion."""

import numpy as np
import pytest
from skimage.measure import label

from spinseg.graph.adjacency import region_adjacency, regions_of
from spinseg.image.superpixels import superpixels
from spinseg.partition.contingency import binder_of, contingency_table, rand_index_of, vi_of
from spinseg.partition.numbering import by_first_appearance, in_order
from spinseg.partition.pairs import cohesion


@pytest.mark.parametrize("shape", [(), (0,), (1,), (40,), (5, 7), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint64])
@pytest.mark.parametrize("spread", ["dense", "sparse"])
def test_numbers_follow_the_order_of_labels_or_of_their_first_appearance(shape, dtype, spread):
    names = np.array([3, 9, 4, 0] if spread == "dense" else [5, np.iinfo(dtype).max, 120, np.iinfo(dtype).min], dtype)
    labels = names[np.random.default_rng(0).integers(0, 4, shape)]
    flat = labels.ravel().tolist()
    for found, expected in ((in_order(labels), sorted(set(flat))), (by_first_appearance(labels), dict.fromkeys(flat))):
        rank = {name: number for number, name in enumerate(expected)}
        assert found.shape == shape and found.ravel().tolist() == [rank[name] for name in flat]
    assert by_first_appearance(labels).dtype == np.int32


@pytest.mark.parametrize("n_labels", [3, 60], ids=["dense", "sparse"])
def test_an_item_of_weight_w_counts_as_w_items(n_labels):
    rng = np.random.default_rng(0)
    a, b, weights = rng.integers(0, n_labels, 40), rng.integers(0, n_labels, 40), rng.integers(1, 9, 40)
    weighted = contingency_table(a, b, weights)
    repeated = contingency_table(a.repeat(weights), b.repeat(weights))
    for found, expected in zip(weighted, repeated, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    pairs = [(i, j) for i in range(weights.sum()) for j in range(i)]
    first, second = a.repeat(weights), b.repeat(weights)
    alike = [(first[i] == first[j]) == (second[i] == second[j]) for i, j in pairs]
    assert rand_index_of(weighted) == pytest.approx(np.mean(alike))
    assert binder_of(weighted) == pytest.approx(1 - np.mean(alike))
    assert vi_of(weighted) == pytest.approx(vi_of(repeated)) and vi_of(contingency_table(a, a, weights)) == 0


@pytest.fixture
def pieces():
    rng = np.random.default_rng(1)
    sites = superpixels(rng.random((60, 70, 3)), kind="grid", n_sites=200)
    graph = region_adjacency(sites)
    return sites, graph, rng.integers(0, 4, graph.n_sites)


def test_regions_are_the_connected_pieces_of_the_picture(pieces):
    sites, graph, labels = pieces
    regions = regions_of(labels, graph)
    expected = label(labels[sites], background=-1, connectivity=1)
    np.testing.assert_array_equal(by_first_appearance(expected), regions[sites])


@pytest.mark.parametrize("step", [1, 10**6], ids=["dense table", "sparse table"])
def test_cohesion_counts_pairs_of_sites(pieces, step):
    _, graph, labels = pieces
    rng = np.random.default_rng(2)
    draws = step * rng.integers(0, 3, (2, 5, labels.size))
    regions = regions_of(labels, graph)
    found = cohesion(draws, regions)
    for r in range(regions.max() + 1):
        sites = np.flatnonzero(regions == r)
        pairs = [draws[..., a] == draws[..., b] for i, a in enumerate(sites) for b in sites[:i]]
        assert found[r] == pytest.approx(np.mean(pairs) if pairs else 1.0)
