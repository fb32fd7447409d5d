"""Connected components against SciPy's."""

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

from spinseg.graph import edges
from spinseg.graph.edges import connected_components

SEED = np.random.default_rng(3).integers(1000)


@given(st.integers(1, 300), st.floats(0, 3), st.integers(0, 10**6))
def test_components_of_few_items_are_those_of_scipy(n_items, per_item, seed):
    pairs = np.random.default_rng([SEED, seed]).integers(0, n_items, (int(per_item * n_items), 2))
    links = sparse.coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(n_items, n_items))
    known = sparse.csgraph.connected_components(links, directed=False)[1]
    found = connected_components(n_items, pairs)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize("most", [0, 10**6])
def test_many_items_are_those_of_few(most, monkeypatch):
    monkeypatch.setattr(edges, "MAX_FEW_ITEMS", most)
    order = np.random.default_rng(3).permutation(30_000)
    paths = np.stack([order[:-1], order[1:]], axis=1)[np.arange(29_999) % 1000 != 999]  # 30 long ones
    labels = connected_components(30_000, paths)
    assert (labels[order].reshape(30, 1000) == labels[order[::1000], None]).all()
    _, first = np.unique(labels, return_index=True)
    assert len(first) == 30 and (np.diff(first) > 0).all()
