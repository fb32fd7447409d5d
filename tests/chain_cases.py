"""Kinds of chains, for tests that run over all of them, and what it means that two runs are the same."""

from dataclasses import replace

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
    names = (
        "labels",
        "kinds",
        "log_posterior",
        "n_clusters",
        "best_labels",
        "best_kinds",
        "concentration",
        "swap_rate",
    )
    for name in names:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.best_log_posterior == b.best_log_posterior
    for move, rate in a.acceptance.items():
        np.testing.assert_array_equal(rate, b.acceptance[move])


def with_traces(chains, labels=None, burn_in=0, **traces):
    """Chains with these traces of every sweep, each of which is a draw after the burn-in."""
    n_chains, n_sweeps = next(iter(traces.values())).shape
    if labels is None:
        labels = np.zeros((n_chains, n_sweeps - burn_in, chains.labels.shape[2]), np.int32)
    sweep = np.arange(burn_in + 1, burn_in + labels.shape[1] + 1)
    draws = {"labels": labels, "sweep": sweep, "component": np.zeros(sweep.size, int)}
    return replace(chains, **draws, burn_in=burn_in, thin=1, _traces=traces)


def assert_books(model, chains, every=1):
    """Log posterior and number of clusters of each `every`-th draw, and the best partition, are those of the labels."""
    log_posterior, n_clusters = chains.log_posterior, chains.n_clusters
    assert log_posterior.shape == n_clusters.shape == chains.labels.shape[:2]
    for c, d in np.ndindex(n_clusters[:, ::every].shape):
        d = n_clusters.shape[1] - 1 - every * d
        labels, kinds = chains.labels[c, d], None if chains.kinds is None else chains.kinds[c, d]
        assert n_clusters[c, d] == labels.max() + 1
        exact = model.component(chains.component[d]).log_posterior(labels, kinds)
        assert np.isfinite(exact) and log_posterior[c, d] == pytest.approx(exact, abs=1e-7)
    best = model.component(model.n_components // 2).log_posterior(chains.best_labels, chains.best_kinds)
    assert chains.best_log_posterior == pytest.approx(best, abs=1e-7)
