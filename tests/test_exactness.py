"""One sweep from exact draws of the posterior must give exact draws: every likelihood x prior x bond strength x sign."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import kstest

import exact
import spinseg as ss
import zoo

N_SITES = 5
LAMS = [0.0, 0.5, 1.0, 3.0, 10.0, "data-driven"]


def bonds(name, lam, graph):
    """The bond rule; for Flat, which has no data to drive bonds, numbers per edge."""
    if lam != "data-driven":
        return lam
    if name == "flat":
        return np.linspace(0.0, 4.0, graph.n_edges)
    return ss.DataDriven(4.0, 0.5, "hellinger" if "histogram" in name else "euclidean")


@pytest.mark.parametrize("name", zoo.likelihoods(N_SITES))
def test_one_sweep_leaves_the_posterior_invariant(name):
    likelihood = zoo.likelihoods(N_SITES)[name]
    graph, kept = exact.graph(N_SITES)
    p_values = {}
    cases = itertools.product(zoo.LIMITS, zoo.priors(), LAMS, ("positive", "mixed"))
    for seed, (limits, prior, lam, sign) in enumerate(cases):
        beta = (exact.POSITIVE if sign == "positive" else exact.MIXED)[kept]
        model = ss.Model(graph, likelihood, zoo.priors(**limits)[prior], beta)
        p_values[str(limits), prior, lam, sign], _ = exact.swept(model, bonds(name, lam, graph), 8000, seed)
    worst = min(p_values, key=p_values.get)
    assert len(p_values) == 4 * 7 * 6 * 2
    assert p_values[worst] > 1e-6, (worst, p_values[worst])
    assert kstest(list(p_values.values()), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("temperature", [0.5, 3.0])
@pytest.mark.parametrize("lam", [0.0, 3.0])
def test_tempered_sweeps_leave_the_tempered_posterior_invariant(lam, temperature):
    graph, kept = exact.graph(6)
    model = ss.Model(graph, zoo.likelihoods(6)["product"], ss.DirichletProcess(1.3), exact.MIXED[kept])
    assert exact.swept(model, lam, 100_000, 1, temperature=temperature)[0] > 1e-4


def test_lambda_drawn_afresh_and_six_sites():
    graph, kept = exact.graph(6)
    model = ss.Model(graph, zoo.likelihoods(6)["histogram"], ss.PitmanYor(0.8, 0.4, min_size=2), exact.POSITIVE[kept])
    assert exact.swept(model, None, 200_000, 2, moves="auto")[0] > 1e-4


def test_a_prior_with_holes_in_sizes_and_numbers_of_clusters():
    graph, kept = exact.graph(6)
    log_v = lambda k: 0.0 if k in (2, 3) else -math.inf  # noqa: E731
    log_w = lambda m: -math.inf if m == 2 else 0.3 * m  # noqa: E731
    model = ss.Model(graph, zoo.likelihoods(6)["poisson"], ss.TabulatedPrior(log_v, log_w), exact.MIXED[kept])
    for lam in (0.0, 3.0):
        assert exact.swept(model, lam, 100_000, 3)[0] > 1e-4


@pytest.mark.parametrize("max_table", [0, 12, 40])
def test_bins_without_a_table_are_evaluated_to_the_same(max_table):
    graph, kept = exact.graph(6)
    likelihood = zoo.likelihoods(6)["two histograms"]
    model = ss.Model(graph, likelihood, ss.DirichletProcess(1.3), exact.MIXED[kept])
    _, tabulated = exact.swept(model, 3.0, 5000, 4)
    _, direct = exact.swept(model, 3.0, 5000, 4, max_table=max_table)
    np.testing.assert_array_equal(tabulated, direct)


@pytest.mark.parametrize("limits", zoo.LIMITS, ids=str)
@pytest.mark.parametrize("sign", ["positive", "mixed"])
def test_every_possible_partition_is_reached_and_no_other(limits, sign):
    graph, kept = exact.graph(N_SITES)
    beta = (exact.POSITIVE if sign == "positive" else exact.MIXED)[kept]
    model = ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.3, **limits), 2 * beta)
    chains = ss.sample(model, sweeps=40_000, chains=2, moves="auto", rng=5)
    visited = exact.frequencies(chains.labels.reshape(-1, N_SITES)) > 0
    np.testing.assert_array_equal(visited, np.exp(exact.log_probabilities(model)) > 0)
