"""Simulation-based calibration: partition and data drawn from the model, inferred, and the ranks checked."""

import numpy as np
import pytest
from scipy.stats import chisquare

import exact
import spinseg as ss
from effort import effort

N_SITES, N_DATA, N_DRAWS = 6, effort(60, 300), 19
PRIORS = {
    "dirichlet process": ss.DirichletProcess(1.2),
    "pitman-yor of at least two": ss.PitmanYor(0.7, 0.3, min_size=2),
}


def poisson(labels, rng):
    """Data of the Poisson model at a partition."""
    rates = rng.gamma(2.0, 1 / 0.5, labels.max() + 1)
    return ss.PoissonGamma(rng.poisson(rates[labels]), shape=2.0, rate=0.5)


def gaussian(labels, rng):
    """Data of the normal model at a partition."""
    precision = rng.gamma(3.0, 1 / 2.0, labels.max() + 1)
    means = rng.normal(1.0, 1 / np.sqrt(0.3 * precision))
    values = rng.normal(means[labels], 1 / np.sqrt(precision[labels]))
    return ss.DiagonalGaussian(values[:, None], mean=1.0, kappa=0.3, shape=3.0, rate=2.0)


CASES = [(prior, draw_data) for prior in PRIORS for draw_data in (poisson, gaussian)]


@pytest.mark.parametrize(
    ("prior", "draw_data", "connected"),
    effort([(*CASES[3], True)], [(*case, connected) for case in CASES for connected in (False, True)]),
)
def test_ranks_are_uniform(prior, draw_data, connected):
    check_ranks(prior, draw_data, connected)


@pytest.mark.parametrize(("prior", "draw_data"), CASES[: effort(1, None)])
def test_ranks_of_regions_of_kinds_are_uniform(prior, draw_data):
    check_ranks(prior, draw_data, True, ss.DirichletProcess(0.8))


def check_ranks(prior, draw_data, connected, kinds=None):
    graph, kept = exact.graph(N_SITES)
    beta = exact.MIXED[kept]
    if connected:  # on a small grid
        graph = ss.SiteGraph.grid((2, 3))
        beta = beta[: graph.n_edges]
    nothing = ss.Model(graph, ss.Flat(), PRIORS[prior], beta, connected=connected, kinds=kinds)
    rows = exact.states_of(nothing)
    probabilities = np.exp(exact.log_probabilities(nothing))
    rng = np.random.default_rng(7)
    ranks = {"clusters": [], "edge agreement": [], "log likelihood": []}
    ranks |= {} if kinds is None else {"kinds": [], "same kind": []}
    for seed, row in enumerate(rng.choice(len(rows), N_DATA, p=probabilities)):
        truth = tuple(part.astype(np.int32) for part in rows[row].reshape(-1, N_SITES))  # labels, and kinds if any
        model = ss.Model(graph, draw_data(truth[-1], rng), PRIORS[prior], beta, connected=connected, kinds=kinds)
        chains = ss.sample(model, 400, 1, burn_in=20, thin=20, rng=seed, workers=1)
        states = [truth, *zip(*(draws[0] for draws in (chains.labels, chains.kinds) if draws is not None), strict=True)]
        assert len(states) == N_DRAWS + 1
        draws = [state[0] for state in states]
        a, b = graph.edges[2]
        quantities = {
            "clusters": [z.max() for z in draws],
            "edge agreement": [z[a] == z[b] for z in draws],
            "log likelihood": [model.log_posterior(*state) - nothing.log_posterior(*state) for state in states],
        }
        if kinds is not None:
            quantities["kinds"] = [state[1].max() for state in states]
            quantities["same kind"] = [state[1][0] == state[1][-1] for state in states]
        for name, values in quantities.items():
            values = np.array(values, float)
            same = np.isclose(values[1:], values[0], rtol=0, atol=1e-9)
            below = (values[1:] < values[0]) & ~same
            ranks[name].append(below.sum() + rng.integers(same.sum() + 1))  # ties are broken at random
    for name, found in ranks.items():
        counts = np.bincount(found, minlength=N_DRAWS + 1).reshape(10, 2).sum(axis=1)
        assert chisquare(counts).pvalue > 1e-5, name  # false alarms: about 2e-4 in all 24
