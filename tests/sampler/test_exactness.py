"""One iteration from exact draws of the posterior must give exact draws: every likelihood x prior x limits x move x sign.

`make test` runs a covering array, in which any two of these factors take all pairs of their values, with many draws;
`make test-all` runs the full product, with fewer draws a case.
"""

import itertools
import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import kstest

import exact
import model_cases
import spinseg as ss
from covering import pairwise
from effort import effort, exhaustive

N_SITES = 5
SIGNS = {"positive": exact.POSITIVE, "mixed": exact.MIXED}


class Iteration(NamedTuple):
    """What is done once: a sweep with such bonds, or none, and attempts at other moves."""

    lam: float | str | None
    splits: int = 0
    regroups: int = 0
    local: float = 0.0
    moves: str = "gsw"
    exchanges: int = 0


ITERATIONS = {
    "single sites": Iteration(0.0),
    "Swendsen-Wang": Iteration(1.0),
    "strong bonds": Iteration(10.0),
    "data-driven bonds": Iteration("data-driven"),
    "local single sites": Iteration(0.0, local=0.8),
    "local bonds": Iteration(3.0, local=0.8),
    "splits and merges": Iteration("none", splits=2, moves="auto"),
    "regroupings": Iteration("none", regroups=3, moves="auto"),
    "all of auto": Iteration(None, splits=2, regroups=2, moves="auto", exchanges=2),
    "exchanges": Iteration("none", exchanges=3),
}


class Case(NamedTuple):
    iteration: str
    likelihood: str
    prior: str
    limits: dict[str, int]
    sign: str


FACTORS = {
    "iteration": list(ITERATIONS),
    "likelihood": list(model_cases.likelihoods(N_SITES)),
    "prior": list(model_cases.priors()),
    "limits": model_cases.LIMITS,
    "sign": list(SIGNS),
}


@cache
def covering() -> list[Case]:
    return [Case(**row) for row in pairwise(FACTORS)]


def check(cases, n_draws):
    """Every p-value plausible, and all uniform together; a false alarm has probability 1e-6 a case and 1e-5 a call."""
    graph, kept = exact.graph(N_SITES)
    likelihoods = model_cases.likelihoods(N_SITES)
    p_values = {}
    for counters, case in enumerate(cases):
        prior = model_cases.priors(**case.limits)[case.prior]
        model = ss.Model(graph, likelihoods[case.likelihood], prior, SIGNS[case.sign][kept])
        how = ITERATIONS[case.iteration]._asdict()
        how["lam"] = model_cases.bond_rule(case.likelihood, how["lam"], graph.n_edges)
        p_values[str(case)], _ = exact.iterated(model, n_draws=n_draws, seed=counters, **how)
    worst = min(p_values, key=p_values.get)
    assert p_values[worst] > 1e-6, (worst, p_values[worst])
    assert kstest(list(p_values.values()), "uniform").pvalue > 1e-5


def test_the_cases_cover_all_pairs():
    found = {
        (a, str(getattr(case, a)), b, str(getattr(case, b)))
        for case in covering()
        for a, b in itertools.combinations(FACTORS, 2)
    }
    for a, b in itertools.combinations(FACTORS, 2):
        for pair in itertools.product(FACTORS[a], FACTORS[b]):
            assert (a, str(pair[0]), b, str(pair[1])) in found
    assert len(covering()) < 1.2 * len(FACTORS["iteration"]) * max(len(FACTORS["prior"]), len(FACTORS["likelihood"]))


@pytest.mark.parametrize("iteration", list(ITERATIONS)[:: effort(2, 1)])
def test_one_iteration_leaves_the_posterior_invariant(iteration):
    check([case for case in covering() if case.iteration == iteration], effort(12_000, 50_000))


@exhaustive
@pytest.mark.parametrize("iteration", ITERATIONS)
@pytest.mark.parametrize("likelihood", FACTORS["likelihood"])
def test_one_iteration_leaves_every_posterior_invariant(iteration, likelihood):
    others = itertools.product(FACTORS["prior"], FACTORS["limits"], FACTORS["sign"])
    check([Case(iteration, likelihood, *other) for other in others], 4_000)


@pytest.mark.parametrize("temperature", effort([3.0], [0.5, 3.0]))
@pytest.mark.parametrize(
    ("lam", "splits", "regroups"), effort([(3.0, 2, 3)], [(0.0, 0, 0), (3.0, 0, 0), ("none", 2, 0), ("none", 0, 3)])
)
def test_tempered_moves_leave_the_tempered_posterior_invariant(lam, splits, regroups, temperature):
    graph, kept = exact.graph(6)
    model = ss.Model(graph, model_cases.likelihoods(6)["product"], ss.DirichletProcess(1.3), exact.MIXED[kept])
    assert exact.iterated(model, lam, 50_000, 1, temperature=temperature, splits=splits, regroups=regroups)[0] > 1e-6


@pytest.mark.parametrize("limits", effort(model_cases.LIMITS[-1:], model_cases.LIMITS), ids=str)
def test_a_whole_iteration_of_auto_on_six_sites(limits):
    graph, kept = exact.graph(6)
    model = ss.Model(
        graph, model_cases.likelihoods(6)["histogram"], ss.PitmanYor(0.8, 0.4, **limits), exact.MIXED[kept]
    )
    assert exact.iterated(model, None, 50_000, 2, moves="auto", splits=10, regroups=3)[0] > 1e-6


def test_a_prior_with_holes_in_sizes_and_numbers_of_clusters():
    graph, kept = exact.graph(6)
    log_v = lambda k: 0.0 if k in (2, 3) else -math.inf  # noqa: E731
    log_w = lambda m: -math.inf if m == 2 else 0.3 * m  # noqa: E731
    model = ss.Model(graph, model_cases.likelihoods(6)["poisson"], ss.TabulatedPrior(log_v, log_w), exact.MIXED[kept])
    for lam, splits, regroups in ((0.0, 0, 0), (3.0, 0, 0), ("none", 3, 0), ("none", 0, 3)):
        assert exact.iterated(model, lam, 50_000, 3, splits=splits, regroups=regroups)[0] > 1e-6


@pytest.mark.parametrize("max_table", [0, 12, 40])
def test_bins_without_a_table_are_evaluated_to_the_same(max_table):
    graph, kept = exact.graph(6)
    likelihood = model_cases.likelihoods(6)["two histograms"]
    model = ss.Model(graph, likelihood, ss.DirichletProcess(1.3), exact.MIXED[kept])
    _, tabulated = exact.iterated(model, 3.0, 5000, 4)
    _, direct = exact.iterated(model, 3.0, 5000, 4, max_table=max_table)
    np.testing.assert_array_equal(tabulated, direct)


@pytest.mark.parametrize("limits", model_cases.LIMITS, ids=str)
@pytest.mark.parametrize("sign", effort(["mixed"], list(SIGNS)))
def test_every_possible_partition_is_reached_and_no_other(limits, sign):
    graph, kept = exact.graph(N_SITES)
    model = ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.3, **limits), 2 * SIGNS[sign][kept])
    chains = ss.sample(model, sweeps=40_000, chains=2, moves="auto", rng=5)
    visited = exact.frequencies(chains.labels.reshape(-1, N_SITES)) > 0
    np.testing.assert_array_equal(visited, np.exp(exact.log_probabilities(model)) > 0)
