"""Kinds of chains, for tests that run over all of them, and what it means that two runs are the same."""

import itertools

import numpy as np
import pytest

KINDS = {
    "auto": {},
    "gsw": {"moves": "gsw", "lam": 3.0},
    "tempered": {"temperatures": [1.0, 1.2, 1.5]},
    "concentration": {"concentration_prior": (2.0, 1.0)},
}


def assert_same(a, b):
    """Two runs drew the same."""
    for name in ("labels", "log_posterior", "n_clusters", "best_labels", "concentration", "swap_rate"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.best_log_posterior == b.best_log_posterior
    for move, rate in a.acceptance.items():
        np.testing.assert_array_equal(rate, b.acceptance[move])


def assert_books(model, chains):
    """Running log posterior, number of clusters and best partition are those of the labels, of which all are kept."""
    for c, t in itertools.product(range(chains.n_chains), range(chains.n_sweeps - 1, -1, -4)):
        labels = chains.labels[c, t]
        assert chains.log_posterior[c, t] == pytest.approx(model.log_posterior(labels), abs=1e-7)
        assert chains.n_clusters[c, t] == labels.max() + 1
        assert not model.connected or model.graph.is_connected(labels)
    assert chains.best_log_posterior == pytest.approx(model.log_posterior(chains.best_labels), abs=1e-7)
