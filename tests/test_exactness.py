"""One iteration from exact draws of the posterior must give exact draws: every likelihood x prior x move x sign."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import kstest

import exact
import spinseg as ss
import zoo

N_SITES = 5
LAMS = [0.0, 1.0, 10.0, "data-driven"]
SIGNS = {"positive": exact.POSITIVE, "mixed": exact.MIXED}


def bonds(name, lam, graph):
    """The bond rule; for Flat, which has no data to drive bonds, numbers per edge."""
    if lam != "data-driven":
        return lam
    if name == "flat":
        return np.linspace(0.0, 4.0, graph.n_edges)
    return ss.DataDriven(4.0, 0.5, "hellinger" if "histogram" in name else "euclidean")


def check_p_values(p_values):
    """All plausible, and uniform together."""
    worst = min(p_values, key=p_values.get)
    assert p_values[worst] > 1e-6, (worst, p_values[worst])
    assert kstest(list(p_values.values()), "uniform").pvalue > 1e-4


@pytest.mark.parametrize("name", zoo.likelihoods(N_SITES))
def test_one_sweep_leaves_the_posterior_invariant(name):
    likelihood = zoo.likelihoods(N_SITES)[name]
    graph, kept = exact.graph(N_SITES)
    p_values = {}
    cases = itertools.product(zoo.LIMITS, zoo.priors(), LAMS, SIGNS)
    for seed, (limits, prior, lam, sign) in enumerate(cases):
        model = ss.Model(graph, likelihood, zoo.priors(**limits)[prior], SIGNS[sign][kept])
        p_values[str(limits), prior, lam, sign], _ = exact.iterated(model, bonds(name, lam, graph), 2000, seed)
    assert len(p_values) == 4 * 7 * 4 * 2
    check_p_values(p_values)


@pytest.mark.parametrize("name", zoo.likelihoods(N_SITES))
def test_a_local_sweep_leaves_the_posterior_invariant(name):
    likelihood = zoo.likelihoods(N_SITES)[name]
    graph, kept = exact.graph(N_SITES)
    p_values = {}
    cases = itertools.product(zoo.LIMITS, zoo.priors(), (0.0, 3.0), SIGNS)
    for seed, (limits, prior, lam, sign) in enumerate(cases):
        model = ss.Model(graph, likelihood, zoo.priors(**limits)[prior], SIGNS[sign][kept])
        p_values[str(limits), prior, lam, sign], _ = exact.iterated(model, lam, 2000, seed, local=0.8)
    assert len(p_values) == 4 * 7 * 2 * 2
    check_p_values(p_values)


ITERATIONS = {  # bonds, attempts to split or merge, attempts to regroup
    "splits and merges": ("none", 2, 0),
    "regroupings": ("none", 0, 3),
    "all of auto": (None, 2, 2),
}


@pytest.mark.parametrize("iteration", ITERATIONS)
@pytest.mark.parametrize("name", zoo.likelihoods(N_SITES))
def test_other_moves_leave_the_posterior_invariant_alone_and_after_a_sweep(name, iteration):
    likelihood = zoo.likelihoods(N_SITES)[name]
    graph, kept = exact.graph(N_SITES)
    lam, splits, regroups = ITERATIONS[iteration]
    p_values = {}
    cases = itertools.product(zoo.LIMITS, zoo.priors(), SIGNS)
    for seed, (limits, prior, sign) in enumerate(cases):
        model = ss.Model(graph, likelihood, zoo.priors(**limits)[prior], SIGNS[sign][kept])
        p, _ = exact.iterated(model, lam, 2500, seed, moves="auto", splits=splits, regroups=regroups)
        p_values[str(limits), prior, sign] = p
    assert len(p_values) == 4 * 7 * 2
    check_p_values(p_values)


@pytest.mark.parametrize("temperature", [0.5, 3.0])
@pytest.mark.parametrize(("lam", "splits", "regroups"), [(0.0, 0, 0), (3.0, 0, 0), ("none", 2, 0), ("none", 0, 3)])
def test_tempered_moves_leave_the_tempered_posterior_invariant(lam, splits, regroups, temperature):
    graph, kept = exact.graph(6)
    model = ss.Model(graph, zoo.likelihoods(6)["product"], ss.DirichletProcess(1.3), exact.MIXED[kept])
    assert exact.iterated(model, lam, 100_000, 1, temperature=temperature, splits=splits, regroups=regroups)[0] > 1e-4


@pytest.mark.parametrize("limits", zoo.LIMITS, ids=str)
def test_a_whole_iteration_of_auto_on_six_sites(limits):
    graph, kept = exact.graph(6)
    model = ss.Model(graph, zoo.likelihoods(6)["histogram"], ss.PitmanYor(0.8, 0.4, **limits), exact.MIXED[kept])
    assert exact.iterated(model, None, 100_000, 2, moves="auto", splits=10, regroups=3)[0] > 1e-4


def test_a_prior_with_holes_in_sizes_and_numbers_of_clusters():
    graph, kept = exact.graph(6)
    log_v = lambda k: 0.0 if k in (2, 3) else -math.inf  # noqa: E731
    log_w = lambda m: -math.inf if m == 2 else 0.3 * m  # noqa: E731
    model = ss.Model(graph, zoo.likelihoods(6)["poisson"], ss.TabulatedPrior(log_v, log_w), exact.MIXED[kept])
    for lam, splits, regroups in ((0.0, 0, 0), (3.0, 0, 0), ("none", 3, 0), ("none", 0, 3)):
        assert exact.iterated(model, lam, 100_000, 3, splits=splits, regroups=regroups)[0] > 1e-4


@pytest.mark.parametrize("max_table", [0, 12, 40])
def test_bins_without_a_table_are_evaluated_to_the_same(max_table):
    graph, kept = exact.graph(6)
    likelihood = zoo.likelihoods(6)["two histograms"]
    model = ss.Model(graph, likelihood, ss.DirichletProcess(1.3), exact.MIXED[kept])
    _, tabulated = exact.iterated(model, 3.0, 5000, 4)
    _, direct = exact.iterated(model, 3.0, 5000, 4, max_table=max_table)
    np.testing.assert_array_equal(tabulated, direct)


@pytest.mark.parametrize("limits", zoo.LIMITS, ids=str)
@pytest.mark.parametrize("sign", SIGNS)
def test_every_possible_partition_is_reached_and_no_other(limits, sign):
    graph, kept = exact.graph(N_SITES)
    model = ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.3, **limits), 2 * SIGNS[sign][kept])
    chains = ss.sample(model, sweeps=40_000, chains=2, moves="auto", rng=5)
    visited = exact.frequencies(chains.labels.reshape(-1, N_SITES)) > 0
    np.testing.assert_array_equal(visited, np.exp(exact.log_probabilities(model)) > 0)
