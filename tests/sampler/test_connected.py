"""Posteriors over connected partitions: every move against enumeration, and all that runs on top of the moves."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from chain_cases import assert_books
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


def model_of(
    graph: str,
    likelihood: str = "product",
    prior: str = "dirichlet process",
    limits: Mapping[str, int] = MappingProxyType({}),
    sign: str = "mixed",
    power: float = 0.5,
) -> ss.Model | None:
    """A model of connected clusters; None where the limits leave no partition."""
    sites, beta = graph_named(graph), couplings(graph, sign)
    try:
        of_sizes, of_data = model_cases.priors(**limits)[prior], model_cases.likelihoods(sites.n_sites)[likelihood]
        return exact.possible(ss.Model(sites, of_data, of_sizes, beta, connected=True, power=power))
    except ValueError:  # such sizes cannot add up to the number of sites
        return None


CASES = exact.Cases(
    model_of,
    connected=True,
    graph=list(GRAPHS),
    likelihood=list(model_cases.likelihoods(6)),
    prior=list(model_cases.priors()),
    limits=LIMITS,
    sign=["positive", "mixed"],
    power=[1.0, 0.3, 2.5],
)
EACH_MOVE = [{"lam": 0.0}, {"lam": 3.0}, *({"lam": "none", move: 3} for move in exact.moves_of(connected=True))]


@pytest.mark.parametrize("iteration", exact.tried(connected=True))
def test_one_iteration_leaves_the_posterior_invariant(iteration):
    CASES.check_covering(iteration, effort(8_000, 100_000))


@exhaustive
@pytest.mark.parametrize("iteration", CASES.iterations)
def test_one_iteration_leaves_many_posteriors_invariant(iteration):
    CASES.check_random(iteration, 400, 4_000)


@pytest.mark.parametrize("temperature", effort([3.0], [0.5, 3.0]))
@pytest.mark.parametrize("how", EACH_MOVE, ids=str)
def test_tempered_moves_leave_the_tempered_posterior_invariant(how, temperature):
    assert exact.iterated(model_of("grid"), n_draws=40_000, seed=1, temperature=temperature, **how)[0] > 1e-6


def test_a_prior_with_holes_in_sizes_and_numbers_of_clusters():
    likelihood, prior = model_cases.likelihoods(6)["poisson"], model_cases.prior_with_holes()
    model = ss.Model(graph_named("grid"), likelihood, prior, couplings("grid", "mixed"), connected=True)
    for how in EACH_MOVE:
        assert exact.iterated(model, n_draws=40_000, seed=3, **how)[0] > 1e-6


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("graph", list(GRAPHS)[:: effort(2, 1)])
def test_every_possible_partition_is_reached_and_no_other(graph, limits):
    model = model_of(graph, "flat", limits=limits, power=1.0)
    if model is None:
        pytest.skip("no partition of these sizes is connected")
    chains = ss.sample(model, sweeps=effort(1_500, 20_000), chains=2, rng=5)
    exact.check_reached(model, chains.labels, above=0.01)


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


def test_a_sampled_concentration():
    model = model_of("grid")
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
    model = model_of(graph, limits=limits)
    if model is None:
        pytest.skip("no partition of these sizes is connected")
    found = ss.find_map(model, 2, rng=0).log_posterior
    assert found == pytest.approx(exact.best_log_posterior(model), abs=1e-9)


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


LINE, TORN = ss.SiteGraph.grid((1, 6)), ss.SiteGraph(4, [[0, 1], [1, 2]])
COMPONENT = "min_size must be at most the sites of the smallest component of the graph"


def connected(graph: ss.SiteGraph, prior: ss.PartitionPrior | None = None, **limits: int) -> ss.Model:
    return ss.Model(graph, ss.Flat(), prior or ss.DirichletProcess(1.0, **limits), connected=True)


REFUSED = {  # the rule: what breaks it
    "power must be a finite number above 0: got 0": lambda: ss.Model(LINE, ss.Flat(), ss.Potts(2), power=0),
    "power must be a finite number": lambda: ss.Model(LINE, ss.Flat(), ss.Potts(2), power=math.inf),
    "connected must be True or False: got 'yes'": lambda: ss.Model(LINE, ss.Flat(), ss.Potts(2), connected="yes"),
    f"{COMPONENT}, 1, where clusters are co": lambda: connected(TORN, min_size=2),
    COMPONENT: lambda: connected(ss.SiteGraph(3, np.empty((0, 2), int)), min_size=3),
    "the size of each component of the graph must be a sum of cluster sizes from min_size 2 to max_size 2: g": (
        lambda: connected(ss.SiteGraph(5, [[0, 1], [1, 2], [3, 4]]), min_size=2, max_size=2)
    ),
    "prior must allow some partition of 4 sites into 2..4 clusters: got 'Potts'": (
        lambda: connected(TORN, ss.Potts(1))
    ),
    "init must have connected clusters: got '2 clusters in 3 pieces'": (
        lambda: ss.sample(connected(LINE), 2, 1, init=[0, 0, 1, 1, 0, 0])
    ),
    "init must be a partition that the prior allows": (
        lambda: ss.sample(connected(LINE, min_size=2), 2, 1, init=[0, 1, 1, 1, 1, 1])
    ),
    r"prior must fit the graph, which has no partition into 2\.\.3 connected clusters of 2\.\.3 sites: got 'Di": (
        lambda: ss.sample(connected(graph_named("star"), min_size=2, max_size=3), 2, 1)
    ),
}


@pytest.mark.parametrize(("message", "make"), REFUSED.items(), ids=REFUSED)
def test_what_is_refused(message, make):
    with pytest.raises(ValueError, match=message):
        make()


def test_without_edges_each_site_is_a_cluster():
    model = ss.Model(ss.SiteGraph(3, np.empty((0, 2), int)), ss.Flat(), ss.DirichletProcess(1.0), connected=True)
    chains = ss.sample(model, 5, 1, rng=0)
    assert (chains.labels == [0, 1, 2]).all()


def test_power_is_the_weight_of_likelihood_and_couplings():
    graph, likelihood, prior = graph_named("grid"), model_cases.likelihoods(6)["product"], ss.PitmanYor(0.8, 0.4)
    beta, rng = couplings("grid", "mixed"), np.random.default_rng(0)
    nothing = ss.Model(graph, ss.Flat(), prior)
    plain, half = (ss.Model(graph, likelihood, prior, beta, power=power) for power in (1.0, 0.3))
    for _ in range(10):
        z = rng.integers(0, 3, 6)
        of_sizes = nothing.log_posterior(z)
        assert half.log_posterior(z) - of_sizes == pytest.approx(0.3 * (plain.log_posterior(z) - of_sizes))
