"""Posteriors over connected partitions: every move against enumeration, and all that runs on top of the moves."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import kstest

import exact
import model_cases
import spinseg as ss
from chain_cases import KINDS, assert_books, assert_same
from covering import pairwise
from effort import effort, exhaustive
from spinseg.sampler import plan as plan_module
from spinseg.sampler.pack import pack
from spinseg.sampler.starts import starting_labels

GRAPHS = {
    "path": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]],
    "cycle": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]],
    "star": [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5]],
    "grid": [[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]],
    "two components": [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5]],
    "five of a wheel": [[0, 1], [0, 2], [0, 3], [0, 4], [1, 2], [2, 3], [3, 4]],
}
LIMITS = [*model_cases.LIMITS, {"min_size": 3}]


def graph_named(name: str) -> ss.SiteGraph:
    return ss.SiteGraph(5 if name.startswith("five") else 6, GRAPHS[name])


def couplings(name: str, sign: str) -> np.ndarray:
    """Of the edges of a graph."""
    beta = np.random.default_rng(3).uniform(0.2, 1.2, len(GRAPHS[name]))
    return beta * np.resize([1, -1, 1, 1, -1.5], beta.size) if sign == "mixed" else beta


class Iteration(NamedTuple):
    """What is done once: a sweep with such bonds, or none, and attempts along growth orders, fewer of many sites."""

    lam: float | str | None
    growths: int = 0
    growth_limit: float = math.inf
    moves: str = "gsw"
    exchanges: int = 0


ITERATIONS = {
    "single sites": Iteration(0.0),
    "Swendsen-Wang": Iteration(1.0),
    "strong bonds": Iteration(10.0),
    "data-driven bonds": Iteration("data-driven"),
    "one growth": Iteration("none", 1),
    "several growths": Iteration("none", 4),
    "growths of few sites": Iteration("none", 4, 2.0),
    "all of auto": Iteration(None, 3, moves="auto", exchanges=2),
    "exchanges": Iteration("none", exchanges=3),
}


class Case(NamedTuple):
    iteration: str
    graph: str
    likelihood: str
    prior: str
    limits: dict[str, int]
    sign: str
    power: float


FACTORS = {
    "iteration": list(ITERATIONS),
    "graph": list(GRAPHS),
    "likelihood": list(model_cases.likelihoods(6)),
    "prior": list(model_cases.priors()),
    "limits": LIMITS,
    "sign": ["positive", "mixed"],
    "power": [1.0, 0.3, 2.5],
}


@cache
def covering() -> list[Case]:
    return [Case(**row) for row in pairwise(FACTORS)]


def model_of(case: Case) -> ss.Model | None:
    """The model of a case; None where the limits leave no connected partition."""
    graph = graph_named(case.graph)
    likelihood = model_cases.likelihoods(graph.n_sites)[case.likelihood]
    beta = couplings(case.graph, case.sign)
    try:
        prior = model_cases.priors(**case.limits)[case.prior]
        model = ss.Model(graph, likelihood, prior, beta, connected=True, power=case.power)
    except ValueError:  # such sizes cannot add up to the number of sites
        return None
    with np.errstate(invalid="ignore"):
        return None if np.isnan(exact.log_probabilities(model)).any() else model


def check(cases: list[Case], n_draws: int) -> None:
    """Every p-value plausible, and all uniform together; a false alarm has probability 1e-6 a case and 1e-5 a call."""
    p_values = {}
    for seed, case in enumerate(cases):
        model = model_of(case)
        if model is not None:
            how = ITERATIONS[case.iteration]._asdict()
            how["lam"] = model_cases.bond_rule(case.likelihood, how["lam"], model.graph.n_edges)
            p_values[str(case)], _ = exact.iterated(model, n_draws=n_draws, seed=seed, **how)
    worst = min(p_values, key=p_values.get)
    assert len(p_values) > len(cases) / 2
    assert p_values[worst] > 1e-6, (worst, p_values[worst])
    # A p-value is 1 where only one partition is possible.
    assert kstest([p for p in p_values.values() if p < 1], "uniform").pvalue > 1e-5


@pytest.mark.parametrize("iteration", list(ITERATIONS)[:: effort(2, 1)])
def test_one_iteration_leaves_the_posterior_invariant(iteration):
    check([case for case in covering() if case.iteration == iteration], effort(8_000, 100_000))


@exhaustive
@pytest.mark.parametrize("iteration", ITERATIONS)
def test_one_iteration_leaves_many_posteriors_invariant(iteration):
    rng = np.random.default_rng(6)
    others = {name: values for name, values in FACTORS.items() if name != "iteration"}
    rows = [{name: values[rng.integers(len(values))] for name, values in others.items()} for _ in range(400)]
    check([Case(iteration=iteration, **row) for row in rows], 4_000)


@pytest.mark.parametrize("temperature", effort([3.0], [0.5, 3.0]))
@pytest.mark.parametrize(("lam", "growths"), [(0.0, 0), (3.0, 0), ("none", 3)])
def test_tempered_moves_leave_the_tempered_posterior_invariant(lam, growths, temperature):
    case = Case("single sites", "grid", "product", "dirichlet process", {}, "mixed", 0.5)
    assert exact.iterated(model_of(case), lam, 40_000, 1, temperature=temperature, growths=growths)[0] > 1e-6


def test_a_prior_with_holes_in_sizes_and_numbers_of_clusters():
    log_v = lambda k: 0.0 if k in (2, 3) else -math.inf  # noqa: E731
    log_w = lambda m: -math.inf if m == 2 else 0.3 * m  # noqa: E731
    likelihood, prior = model_cases.likelihoods(6)["poisson"], ss.TabulatedPrior(log_v, log_w)
    model = ss.Model(graph_named("grid"), likelihood, prior, couplings("grid", "mixed"), connected=True)
    for lam, growths in ((0.0, 0), (3.0, 0), ("none", 3)):
        assert exact.iterated(model, lam, 40_000, 3, growths=growths)[0] > 1e-6


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("graph", list(GRAPHS)[:: effort(2, 1)])
def test_every_possible_partition_is_reached_and_no_other(graph, limits):
    model = model_of(Case("all of auto", graph, "flat", "dirichlet process", limits, "mixed", 1.0))
    if model is None:
        pytest.skip("no partition of these sizes is connected")
    chains = ss.sample(model, sweeps=effort(1_500, 20_000), chains=2, rng=5)
    visited = exact.frequencies(chains.labels.reshape(-1, model.graph.n_sites)) > 0
    probabilities = np.exp(exact.log_probabilities(model))
    assert not visited[probabilities == 0].any()
    assert visited[probabilities > 0.01].all()


@exhaustive
@pytest.mark.xdist_group("exchangeable")  # one process compiles its steps
@pytest.mark.parametrize("limits", [{}, {"min_size": 2}, {"max_size": 4}], ids=str)
def test_a_prior_without_tables(limits):
    prior = ss.ExchangeablePrior(lambda sizes: -0.2 * float(np.square(sizes).sum()) / 6, **limits)
    model = ss.Model(
        graph_named("grid"), model_cases.likelihoods(6)["product"], prior, couplings("grid", "mixed"), connected=True
    )
    chains = ss.sample(model, effort(800, 8_000), 2, burn_in=50, thin=3, rng=1)
    probabilities = np.exp(exact.log_probabilities(model))
    assert exact.p_value(exact.frequencies(chains.labels.reshape(-1, 6)), probabilities) > 1e-5


def lattice(name="product", prior=None, side=12, *, power=0.5, min_size=1) -> ss.Model:
    """A model on a square lattice, with couplings of either sign."""
    graph = ss.SiteGraph.grid((side, side))
    beta = np.random.default_rng(1).normal(0.3, 0.6, graph.n_edges)
    likelihood = model_cases.likelihoods(side * side, 1)[name]
    prior = prior or ss.DirichletProcess(2.0, min_size=min_size)
    return ss.Model(graph, likelihood, prior, beta, connected=True, power=power)


@pytest.mark.parametrize("limits", [{}, {"min_size": 3}, {"max_size": 20}, {"min_size": 2, "max_size": 60}], ids=str)
@pytest.mark.parametrize("name", effort(["product"], list(model_cases.likelihoods(4))))
@pytest.mark.parametrize("many", [False, True])
def test_the_books_are_kept(name, limits, many, monkeypatch):
    if many:
        monkeypatch.setattr(plan_module, "MANY_SITES", 50)
        monkeypatch.setattr(plan_module, "GROWTH_LIMIT", 40.0)
    model = lattice(name, ss.PitmanYor(5.0, 0.3, **limits))
    visited = 0
    for init in ("one", "singletons", "greedy"):
        chains = ss.sample(model, sweeps=40, chains=1, init=init, rng=2)
        assert_books(model, chains, every=7)
        visited += len(np.unique(chains.labels[0], axis=0))
    assert visited > 10


def test_the_scratch_space_is_clean_after_each_sweep():
    model = lattice(min_size=2)
    chain = ss.Sampler(model, 60, 1, rng=3).runners[0]
    for t in range(1, 61):
        chain.advance(t)
        assert not chain.state.place.any() and not chain.state.spin.any()


def test_each_move_is_proposed_and_accepted():
    chains = ss.sample(lattice(prior=ss.TemperedProcess(1.0, power=0.0), power=0.2), 300, 2, rng=0)
    for move in ("split", "merge", "redraw", "regroup"):
        assert (chains.acceptance[move] > 0).all() and (chains.acceptance[move] < 1).all()
    plain = ss.sample(lattice(), 5, 2, "gsw", rng=4)
    assert all(np.isnan(rate).all() for rate in plain.acceptance.values())


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_is_the_same_as_never_having_stopped(kind, tmp_path):
    model, keywords = lattice(side=8), {"chains": 2, "burn_in": 20, "thin": 3, **KINDS[kind]}
    whole = ss.sample(model, 90, rng=5, **keywords)
    if kind != "concentration":  # whose log posterior is the joint one
        assert_books(model, whole)
    ss.sample(model, 41, rng=5, checkpoint=tmp_path / "on.npz", **keywords)
    assert_same(ss.sample(model, 90, resume_from=tmp_path / "on.npz", workers=1, **keywords), whole)


def test_chains_of_another_posterior_are_not_resumed():
    model, plain = lattice(side=6), lattice(side=6)
    plain = ss.Model(plain.graph, plain.likelihood, plain.prior, plain.beta, power=plain.power)
    half = ss.Model(model.graph, model.likelihood, model.prior, model.beta, connected=True, power=0.25)
    chains = ss.sample(model, 5, 1, rng=0)
    for other in (plain, half):
        with pytest.raises(ValueError, match="resume_from must hold chains of this model"):
            ss.sample(other, 9, 1, resume_from=chains)


def test_tempered_and_with_a_sampled_concentration():
    model = ss.Model(
        graph_named("grid"),
        model_cases.likelihoods(6)["product"],
        ss.DirichletProcess(1.3),
        couplings("grid", "mixed"),
        connected=True,
        power=0.6,
    )
    probabilities = np.exp(exact.log_probabilities(model))
    chains = ss.sample(model, effort(500, 12_000), 4, temperatures=[1, 1.6], burn_in=100, thin=5, rng=3)
    assert exact.p_value(exact.frequencies(chains.labels.reshape(-1, 6)), probabilities) > 1e-5
    assert (chains.swap_rate > 0.2).all()

    # The concentration by a grid: P(partition) is a mixture over it, with the prior of sizes normalized.
    chains = ss.sample(model, effort(500, 12_000), 4, concentration_prior=(2.0, 1.0), burn_in=100, thin=5, rng=4)
    rows, steps = exact.partitions(6), np.linspace(0.005, 20, 4000)
    flat = np.array([model.log_posterior(row) for row in rows]) - np.log(1.3) * (rows.max(axis=1) + 1)
    normalizer = sum(np.log(steps + i) for i in range(6))
    weight = np.array([np.exp(np.log(steps) - steps + (k + 1) * np.log(steps) - normalizer).sum() for k in range(6)])
    mixture = np.exp(flat - flat.max()) * weight[rows.max(axis=1)]
    assert exact.p_value(exact.frequencies(chains.labels.reshape(-1, 6)), mixture / mixture.sum()) > 1e-5


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("graph", effort(["grid"], list(GRAPHS)))
def test_the_mode_is_the_best_connected_partition(graph, limits):
    model = model_of(Case("all of auto", graph, "product", "dirichlet process", limits, "mixed", 0.5))
    if model is None:
        pytest.skip("no partition of these sizes is connected")
    best = max(model.log_posterior(row) for row in exact.partitions(model.graph.n_sites))
    assert ss.find_map(model, 2, rng=0).log_posterior == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("init", ["one", "singletons", "greedy"])
@pytest.mark.parametrize(
    "limits", [{}, {"min_size": 3}, {"max_size": 7}, {"min_size": 4, "max_size": 12}, {"min_size": 20}], ids=str
)
def test_starts_are_allowed(init, limits):
    rng = np.random.default_rng(4)
    grid = ss.SiteGraph.grid((7, 9))
    torn = ss.SiteGraph(126, np.concatenate([grid.edges, grid.edges + 63]))  # two components
    shaken = ss.SiteGraph(63, grid.edges[rng.random(grid.n_edges) < 2])
    for graph in (shaken, torn):
        for prior in (ss.DirichletProcess(1.0, **limits), ss.Potts(40, **limits)):
            model = ss.Model(graph, ss.Flat(), prior, rng.normal(0.2, 0.5, graph.n_edges), connected=True)
            labels = starting_labels(model, pack(model, np.maximum(model.beta, 0)), init)
            assert model.log_posterior(labels) > -np.inf
            n_components = graph.component_sizes.size
            if init == "one" and "max_size" not in limits:
                assert labels.max() + 1 == n_components
            if init == "singletons":
                most = min(getattr(prior, "n_labels", 999), graph.n_sites // limits.get("min_size", 1))
                assert labels.max() + 1 >= 0.4 * most


def one_line(match: str):
    return pytest.raises(ValueError, match=match)


def test_what_is_refused():
    graph, prior, line = ss.SiteGraph(4, [[0, 1], [1, 2]]), ss.DirichletProcess, ss.SiteGraph.grid((1, 6))
    with one_line("power must be a finite number above 0; received 0"):
        ss.Model(graph, ss.Flat(), prior(1.0), power=0)
    with one_line("power must be"):
        ss.Model(graph, ss.Flat(), prior(1.0), power=math.inf)
    with one_line("connected must be True or False; received 'yes'"):
        ss.Model(graph, ss.Flat(), prior(1.0), connected="yes")
    with one_line(
        "min_size must be at most the sites of the smallest component of the graph, 1, where clusters are co"
    ):
        ss.Model(graph, ss.Flat(), prior(1.0, min_size=2), connected=True)
    with one_line("min_size must be at most the sites of the smallest component"):
        ss.Model(ss.SiteGraph(3, np.empty((0, 2), int)), ss.Flat(), prior(1.0, min_size=3), connected=True)
    with one_line(
        "the size of each component of the graph must be a sum of cluster sizes from min_size 2 to max_size 2; r"
    ):
        ss.Model(
            ss.SiteGraph(5, [[0, 1], [1, 2], [3, 4]]), ss.Flat(), prior(1.0, min_size=2, max_size=2), connected=True
        )
    with one_line(r"prior must allow some partition of 4 sites into 2..4 clusters; received 'Potts'"):
        ss.Model(graph, ss.Flat(), ss.Potts(1), connected=True)
    model = ss.Model(line, ss.Flat(), prior(1.0), connected=True)
    with one_line("init must have connected clusters; received '2 clusters in 3 pieces'"):
        ss.sample(model, 2, 1, init=[0, 0, 1, 1, 0, 0])
    with one_line("init must be a partition that the prior allows"):
        ss.sample(ss.Model(line, ss.Flat(), prior(1.0, min_size=2), connected=True), 2, 1, init=[0, 1, 1, 1, 1, 1])
    star = ss.Model(graph_named("star"), ss.Flat(), prior(1.0, min_size=2, max_size=3), connected=True)
    with one_line("init must be labels: no division into connected blocks that the prior allows was found"):
        ss.sample(star, 2, 1)


def test_without_edges_each_site_is_a_cluster():
    model = ss.Model(ss.SiteGraph(3, np.empty((0, 2), int)), ss.Flat(), ss.DirichletProcess(1.0), connected=True)
    chains = ss.sample(model, 5, 1, rng=0)
    assert (chains.labels == [0, 1, 2]).all()


def test_one_compiled_signature_serves_connected_and_other_models():
    from spinseg.sampler.kernels.iterations import run_iterations

    for model in (lattice(side=5), model_cases.lattice(side=5)):
        ss.sample(model, 2, 1, rng=0)
    assert len(getattr(run_iterations, "signatures", [()])) == 1


def test_power_is_the_weight_of_likelihood_and_couplings():
    graph, likelihood, prior = graph_named("grid"), model_cases.likelihoods(6)["product"], ss.PitmanYor(0.8, 0.4)
    beta, rng = couplings("grid", "mixed"), np.random.default_rng(0)
    nothing = ss.Model(graph, ss.Flat(), prior)
    plain, half = (ss.Model(graph, likelihood, prior, beta, power=power) for power in (1.0, 0.3))
    for _ in range(10):
        z = rng.integers(0, 3, 6)
        of_sizes = nothing.log_posterior(z)
        assert half.log_posterior(z) - of_sizes == pytest.approx(0.3 * (plain.log_posterior(z) - of_sizes))
