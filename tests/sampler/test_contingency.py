"""The contingency table of items that count more than once."""

import numpy as np
import pytest

from spinseg.partition.contingency import contingency_table, rand_index_of


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
