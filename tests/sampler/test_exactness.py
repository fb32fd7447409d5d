"""One iteration from exact draws of the posterior must give exact draws: every likelihood x prior x limits x move x sign.

`make test` runs a covering array, in which any two of these factors take all pairs of their values, with many draws;
`make test-all` runs the full product, with fewer draws a case.
"""

import itertools

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from effort import effort, exhaustive

N_SITES = 5
SIGNS = {"positive": exact.POSITIVE, "mixed": exact.MIXED}
LIKELIHOODS = model_cases.likelihoods(N_SITES)
EACH_MOVE = [{"lam": 0.0}, {"lam": 3.0}, *({"lam": "none", move: 3} for move in exact.moves_of(connected=False))]


def model_of(likelihood: str, prior: str, limits: dict[str, int], sign: str) -> ss.Model:
    graph, kept = exact.graph(N_SITES)
    return ss.Model(graph, LIKELIHOODS[likelihood], model_cases.priors(**limits)[prior], SIGNS[sign][kept])


CASES = exact.Cases(
    model_of,
    connected=False,
    likelihood=list(LIKELIHOODS),
    prior=list(model_cases.priors()),
    limits=model_cases.LIMITS,
    sign=list(SIGNS),
)


def test_the_cases_cover_all_pairs():
    factors = CASES.factors
    found = {(a, str(row[a]), b, str(row[b])) for row in CASES.covering for a, b in itertools.combinations(factors, 2)}
    for a, b in itertools.combinations(factors, 2):
        for pair in itertools.product(factors[a], factors[b]):
            assert (a, str(pair[0]), b, str(pair[1])) in found
    assert len(CASES.covering) < 1.2 * len(factors["iteration"]) * max(len(factors["prior"]), len(LIKELIHOODS))


@pytest.mark.parametrize("iteration", exact.tried(connected=False))
def test_one_iteration_leaves_the_posterior_invariant(iteration):
    CASES.check_covering(iteration, effort(12_000, 50_000))


@exhaustive
@pytest.mark.parametrize("iteration", CASES.iterations)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_one_iteration_leaves_every_posterior_invariant(iteration, likelihood):
    fixed = {"iteration": iteration, "likelihood": likelihood}
    factors = CASES.factors | {name: [value] for name, value in fixed.items()}
    CASES.check([dict(zip(factors, row, strict=True)) for row in itertools.product(*factors.values())], 4_000)


@pytest.mark.parametrize("temperature", effort([3.0], [0.5, 3.0]))
@pytest.mark.parametrize("how", effort([{"lam": 3.0, "split_or_merge": 2, "regroup": 3}], EACH_MOVE), ids=str)
def test_tempered_moves_leave_the_tempered_posterior_invariant(how, temperature):
    graph, kept = exact.graph(6)
    model = ss.Model(graph, model_cases.likelihoods(6)["product"], ss.DirichletProcess(1.3), exact.MIXED[kept])
    assert exact.iterated(model, n_draws=50_000, seed=1, temperature=temperature, **how)[0] > 1e-6


@pytest.mark.parametrize("limits", effort(model_cases.LIMITS[-1:], model_cases.LIMITS), ids=str)
def test_a_whole_iteration_of_auto_on_six_sites(limits):
    graph, kept = exact.graph(6)
    prior = ss.PitmanYor(0.8, 0.4, **limits)
    model = ss.Model(graph, model_cases.likelihoods(6)["histogram"], prior, exact.MIXED[kept])
    assert exact.iterated(model, None, 50_000, 2, moves="auto", split_or_merge=10, regroup=3)[0] > 1e-6


def test_a_prior_with_holes_in_sizes_and_numbers_of_clusters():
    graph, kept = exact.graph(6)
    model = ss.Model(graph, model_cases.likelihoods(6)["poisson"], model_cases.prior_with_holes(), exact.MIXED[kept])
    for how in EACH_MOVE:
        assert exact.iterated(model, n_draws=50_000, seed=3, **how)[0] > 1e-6


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
    exact.check_reached(model, chains.labels)
