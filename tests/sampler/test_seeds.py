"""Seeds: the posterior over connected partitions that keep them, against enumeration, and all that runs on top."""

import itertools
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
from spinseg.graph.merging import absorb_small, merge_heights
from spinseg.model.seeds import connect_seeds, keeps_seeds, partition_with_seeds
from spinseg.sampler import starts
from spinseg.sampler.estimates import expected_binder, expected_vi, minimize_binder, minimize_vi
from spinseg.sampler.pack import pack

# By the name of a layout: the edges of a graph and the seed of each site.
PATH = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
CYCLE = [*PATH, [5, 0]]
GRID = [[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]]
WHEEL = [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [1, 2], [2, 3], [3, 4], [4, 5], [5, 1]]
LAYOUTS = {
    "two apart": (GRID, [1, 0, 0, 0, 0, 2]),
    "three apart": (GRID, [1, 0, 2, 0, 3, 0]),
    "neighbors together": (GRID, [1, 1, 0, 0, 0, 0]),
    "corners together": (GRID, [1, 0, 0, 0, 0, 1]),
    "together around another": (WHEEL, [2, 1, 0, 1, 0, 0]),
    "two ways around": (CYCLE, [1, 0, 0, 1, 0, 0]),
    "one way barred": (CYCLE, [1, 0, 0, 1, 0, 2]),
    "two of each": (WHEEL, [0, 1, 1, 0, 2, 2]),
    "three pieces": (WHEEL, [0, 5, 0, 5, 0, 5]),
    "ends of a path": (PATH, [3, 0, 0, 0, 0, 7]),
}


def model_of(
    layout: str,
    likelihood: str = "product",
    prior: str = "dirichlet process",
    limits: Mapping[str, int] = MappingProxyType({}),
    sign: str = "mixed",
) -> ss.Model | None:
    """A model with seeds; None where sizes and seeds leave no partition."""
    edges, seeds = LAYOUTS[layout]
    beta = np.random.default_rng(3).uniform(0.2, 1.2, len(edges))
    beta *= np.resize([1, -1, 1, 1, -1.5], beta.size) if sign == "mixed" else 1
    of_data, of_sizes = model_cases.likelihoods(6)[likelihood], model_cases.priors(**limits)[prior]
    model = ss.Model(ss.SiteGraph(6, edges), of_data, of_sizes, beta, connected=True, power=0.6, seeds=seeds)
    return exact.possible(model)


CASES = exact.Cases(
    model_of,
    connected=True,
    layout=list(LAYOUTS),
    likelihood=["histogram", "gaussian", "product", "flat"],
    prior=["potts", "dirichlet process", "pitman-yor", "tempered process"],
    limits=[{}, {"min_size": 2}, {"max_size": 4}, {"min_size": 2, "max_size": 4}],
    sign=["positive", "mixed"],
)


@pytest.mark.parametrize("iteration", exact.tried(connected=True))
def test_one_iteration_leaves_the_posterior_invariant(iteration):
    CASES.check_covering(iteration, effort(4_000, 100_000))


@exhaustive
@pytest.mark.parametrize("iteration", CASES.iterations)
def test_one_iteration_leaves_many_posteriors_invariant(iteration):
    CASES.check_random(iteration, 300, 4_000)


def test_the_posterior_is_that_without_seeds_given_that_they_are_kept():
    """The definition, from the labels of single pairs of sites."""
    for edges, seeds in effort([LAYOUTS["two of each"], LAYOUTS["together around another"]], [*LAYOUTS.values()]):
        graph, likelihood, prior = ss.SiteGraph(6, edges), ss.PoissonGamma([1, 0, 4, 2, 2, 7]), ss.PitmanYor(0.8, 0.4)
        free = ss.Model(graph, likelihood, prior, 0.3, connected=True)
        model = ss.Model(graph, likelihood, prior, 0.3, connected=True, seeds=seeds)
        seeded = [i for i in range(6) if seeds[i]]
        for row in exact.partitions(6):
            pairs = itertools.combinations(seeded, 2)
            kept = all((row[i] == row[j]) == (seeds[i] == seeds[j]) for i, j in pairs)
            assert model.log_posterior(row) == (free.log_posterior(row) if kept else -math.inf)
            assert model.allows(row) == (model.log_posterior(row) > -math.inf)


@pytest.mark.parametrize("limits", [{}, {"min_size": 2}], ids=str)
@pytest.mark.parametrize("layout", list(LAYOUTS)[:: effort(2, 1)])
def test_every_possible_partition_is_reached_and_no_other(layout, limits):
    """A partition of probability 0.02 stays away by chance with a probability far below 1e-6.

    Where three seeds share six sites by two, no move leads from one partition to the next: each has to exchange sites.
    """
    model = model_of(layout, "flat", limits=limits)
    if model is None or (limits and layout == "three apart"):
        pytest.skip("no partition of these sizes keeps the seeds, or none can be left")
    chains = ss.sample(model, sweeps=effort(1_000, 20_000), chains=2, init="opposite", rng=5)
    exact.check_reached(model, chains.labels, above=0.02)


def test_chains_of_a_mixture_keep_the_seeds_of_all_components():
    edges, seeds = LAYOUTS["one way barred"]
    graph, likelihood = ss.SiteGraph(6, edges), model_cases.likelihoods(6)["histogram"]
    prior = ss.DirichletProcess(1.0)
    betas = np.outer([-0.3, 0.6], np.ones(graph.n_edges))
    mixture = ss.Model(graph, likelihood, prior, betas, connected=True, seeds=seeds)
    chains = ss.sample(mixture, effort(2_000, 20_000), 2, burn_in=50, thin=4, init="dispersed", rng=2)
    for d in range(2):
        assert exact.p_of_draws(mixture.component(d), chains.labels[:, chains.component == d]) > 1e-6


def test_the_mode_is_the_best_partition_that_keeps_the_seeds():
    for layout in effort(["three apart", "two ways around"], list(LAYOUTS)):
        model = model_of(layout)
        found = ss.find_map(model, 2, sweeps=200, rng=0).log_posterior
        assert found == pytest.approx(exact.best_log_posterior(model), abs=1e-9)


def scattered(side: int = 12, min_size: int = 1, **limits: int) -> ss.Model:
    """A model on a square lattice, with seeds in several pieces."""
    graph = ss.SiteGraph.grid((side, side))
    beta = np.random.default_rng(1).normal(0.3, 0.6, graph.n_edges)
    seeds = np.zeros((side, side), int)
    seeds[1, 1:4] = seeds[9, 2] = 4
    seeds[2, 8] = seeds[10, 8] = seeds[11, 11] = 9
    seeds[6, 5] = 2
    prior = ss.DirichletProcess(2.0, min_size=min_size, **limits)
    likelihood = model_cases.likelihoods(side * side, 1)["product"]
    return ss.Model(graph, likelihood, prior, beta, connected=True, power=0.5, seeds=seeds.ravel())


@pytest.mark.parametrize("init", ["one", "singletons", "greedy"])
@pytest.mark.parametrize("limits", [{}, {"min_size": 3}, {"max_size": 60}], ids=str)
def test_starts_and_draws_are_allowed_and_the_books_kept(init, limits):
    model = scattered(**limits)
    labels = starts.starting_labels(model, pack(model, np.maximum(model.beta, 0)), init)
    assert model.allows(labels)
    if init == "one" and "max_size" not in limits:
        assert labels.max() == 2  # one cluster for each seed
    chains = ss.sample(model, 30, 1, init=init, rng=2)
    assert len(np.unique(chains.labels[0], axis=0)) > 10
    assert_books(model, chains)


def test_labels_that_do_not_keep_the_seeds_are_changed_to_start_from():
    model, rng = scattered(), np.random.default_rng(0)
    for k in (1, 3, 20):
        labels = model.graph.pieces(rng.integers(0, k, model.graph.n_sites).astype(np.int32))
        labels = starts.starting_labels(model, pack(model, np.maximum(model.beta, 0)), labels)
        assert model.allows(labels)
    before = ss.sample(model, 20, 2, rng=1).last_labels
    after = ss.sample(model, 1, 2, lam=0.0, init=before, rng=1)
    assert all(model.allows(draw) for draw in after.labels[:, 0])


def test_a_partition_with_seeds_keeps_what_it_can():
    """Two clusters become one, a third one is cut, and the fourth one stays as it is."""
    graph, labels = ss.SiteGraph.grid((4, 8)), np.repeat(np.arange(4), 2)[None].repeat(4, 0).ravel().astype(np.int32)
    seeds = np.zeros((4, 8), np.int64)
    seeds[0, 0] = seeds[3, 3] = 1
    seeds[0, 4], seeds[3, 5] = 2, 3
    found = partition_with_seeds(labels, graph, seeds.ravel(), np.ones(graph.n_edges)).reshape(4, 8)
    assert keeps_seeds(found.ravel(), seeds.ravel()) and graph.is_connected(found.ravel())
    assert np.unique(found).size == 4
    assert np.unique(found[:, :4]).size == 1 and np.unique(found[:, 6:]).size == 1
    assert np.unique(found[:, 4:6]).size == 2


@pytest.mark.parametrize("seeds", list(itertools.permutations([1, 2, 5])))
def test_clusters_of_single_seeds_stay_apart_whatever_their_numbers(seeds):
    graph, labels = ss.SiteGraph(3, PATH[:2]), np.arange(3, dtype=np.int32)
    assert partition_with_seeds(labels, graph, np.array(seeds), np.ones(2)).tolist() == [0, 1, 2]


def test_paths_between_the_pieces_of_a_seed_are_cheap_and_meet_no_other():
    graph = ss.SiteGraph.grid((5, 5))
    seeds = np.zeros((5, 5), np.int64)
    seeds[0, 0] = seeds[0, 4] = 1
    seeds[0, 2] = seeds[4, 2] = 2
    with pytest.raises(ValueError, match="seeds must have sites that can be connected, each seed for itself: no such"):
        connect_seeds(graph, seeds.ravel(), np.ones(graph.n_edges))  # one has to cross the other
    seeds[4, 2] = 0
    rows, columns = graph.edges // 5, graph.edges % 5
    cheap = (rows == 4).all(axis=1) | (columns == 0).all(axis=1) | (columns == 4).all(axis=1)
    cost = np.where(cheap, 0.01, 1.0)  # around, along three sides
    held = connect_seeds(graph, seeds.ravel(), cost).reshape(5, 5)
    assert (held[4] == 1).all() and (held[:, 0] == 1).all() and (held[:, 4] == 1).all()
    assert held[0, 2] == 2 and np.count_nonzero(held == 2) == 1


@pytest.mark.parametrize("layout", list(LAYOUTS)[:: effort(2, 1)])
def test_estimates_that_keep_the_seeds_are_the_best_of_all(layout):
    """Against all partitions of six sites that are connected and keep the seeds; draws need not be connected."""
    edges, seeds = LAYOUTS[layout]
    graph, seeds, rng = ss.SiteGraph(6, edges), np.array(seeds), np.random.default_rng(3)
    keeping = np.array([row for row in exact.partitions(6) if keeps_seeds(row, seeds)])
    rows = keeping[[graph.is_connected(row) for row in keeping]]
    fewest = int(rows.max(axis=1).min()) + 1
    for _ in range(effort(1, 20)):
        for possible, limit in ((rows, None), (keeping, None), (rows, fewest), (rows, fewest + 1)):
            draws = possible[rng.integers(0, len(possible), 6)]
            few = rows[rows.max(axis=1) < (limit or 6)]
            for minimize, loss in ((minimize_vi, expected_vi), (minimize_binder, expected_binder)):
                found = minimize(draws, graph=graph, seeds=seeds, max_clusters=limit, rng=0)
                assert keeps_seeds(found.labels, seeds) and graph.is_connected(found.labels)
                assert limit is None or found.labels.max() < limit
                assert found.expected_loss == pytest.approx(min(loss(draws, row) for row in few), abs=1e-9)


@pytest.mark.parametrize("minimize", [minimize_vi, minimize_binder])
def test_parts_without_seeds_are_searched_beside_those_with_seeds(minimize):
    """Two halves of a path that no draw joins, long enough for a search each. Seeds are in the first one alone."""
    graph = ss.SiteGraph(240, [[i, i + 1] for i in range(239)])
    seeds, rng = np.zeros(240, np.int64), np.random.default_rng(0)
    seeds[[10, 30]], seeds[100] = 1, 2
    cut = np.zeros((6, 240), bool)
    cut[:, 1:] = rng.random((6, 239)) < 0.1
    cut[:, 11:31] = False
    cut[:, [60, 120]] = True
    draws = np.cumsum(cut, axis=1)
    found = minimize(draws, graph=graph, seeds=seeds, rng=0).labels
    assert graph.is_connected(found) and keeps_seeds(found, seeds)
    assert not set(found[:120]) & set(found[120:])


def test_estimates_of_many_sites_keep_the_seeds():
    model = scattered()
    draws = ss.sample(model, 60, 2, rng=3).labels
    for minimize in (minimize_vi, minimize_binder):
        assert model.allows(minimize(draws, graph=model.graph, seeds=model.seeds, rng=0).labels)


def test_estimates_keep_seeds_that_the_draws_connect_in_different_ways():
    """Sites 0 and 1 have five ways of one site between them: each is rare, so that no estimate would take one."""
    between = range(2, 7)
    edges = [[end, site] for site in between for end in (0, 1)] + [[site, 7] for site in between]
    graph, seeds = ss.SiteGraph(8, edges), [1, 1, 0, 0, 0, 0, 0, 2]
    draws = [[0 if site in (0, 1, way) else 1 for site in range(8)] for way in between]
    for minimize in (minimize_vi, minimize_binder):
        assert not keeps_seeds(minimize(draws, graph=graph, rng=0).labels, np.array(seeds))
        found = minimize(draws, graph=graph, seeds=seeds, rng=0).labels
        assert keeps_seeds(found, np.array(seeds)) and graph.is_connected(found)


def test_small_regions_join_none_of_another_seed():
    line = ss.SiteGraph.grid((1, 5))
    area, beta = np.array([1, 9, 1, 9, 1]), np.array([0.0, 2.0, 1.0, 1.0])
    assert absorb_small(np.arange(5), line, beta, 5, area=area).tolist() == [0, 0, 0, 1, 1]
    seeds = np.array([0, 1, 2, 0, 0])
    assert absorb_small(np.arange(5), line, beta, 5, area=area, seeds=seeds).tolist() == [0, 0, 1, 1, 1]
    each = np.arange(1, 6)  # all have a seed
    assert absorb_small(np.arange(5), line, beta, 20, area=area, seeds=each).tolist() == [0, 1, 2, 3, 4]


def test_a_hierarchy_keeps_the_seeds_at_every_level():
    model, rng = scattered(), np.random.default_rng(5)
    graph = model.graph
    separation = rng.random(graph.n_edges)
    cores = connect_seeds(graph, model.seeds, separation + 0.01)
    heights = merge_heights(graph, separation, cores)
    counts = []
    for level in (0.0, 0.2, 0.5, 0.8, 1.0):
        labels = graph.components(heights <= level)
        assert keeps_seeds(labels, model.seeds)
        counts.append(labels.max() + 1)
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[2] > counts[-1] == 3


def test_seeds_that_say_nothing_change_nothing():
    edges, _ = LAYOUTS["two apart"]
    graph, likelihood, prior = ss.SiteGraph(6, edges), model_cases.likelihoods(6)["product"], ss.DirichletProcess(1.3)
    plain = ss.Model(graph, likelihood, prior, 0.3, connected=True)
    for seeds in ([0, 0, 0, -1, 0, -7], None):
        model = ss.Model(graph, likelihood, prior, 0.3, connected=True, seeds=seeds)
        assert model.seeds is None
        np.testing.assert_array_equal(ss.sample(model, 20, 1, rng=1).labels, ss.sample(plain, 20, 1, rng=1).labels)


def on_path(seeds, connected=True, min_size=1):
    prior = ss.DirichletProcess(1.0, min_size=min_size)
    return ss.Model(ss.SiteGraph(6, PATH), ss.Flat(), prior, connected=connected, seeds=seeds)


def estimate(seeds, **more):
    return minimize_vi([[0, 0, 1, 1, 1, 1]], graph=ss.SiteGraph(6, PATH), seeds=seeds, **more)


APART = "seeds must have sites that can be connected without passing another seed: got "
REFUSED = {  # the rule: what breaks it
    "seeds must not be given unless connected=True": lambda: on_path([1, 0, 0, 0, 0, 2], connected=False),
    r"seeds must have one entry per site, shape \(6,\): got \(5,\)": lambda: on_path([1, 0, 0, 0, 2]),
    "seeds must be whole numbers: got 'float64'": lambda: on_path([1.5, 0, 0, 0, 0, 2]),
    "seeds must be an array of numbers": lambda: on_path(["a"] * 6),
    f"{APART}'seed 1'": lambda: on_path([1, 0, 2, 0, 1, 0]),
    f"{APART}'seed 5'": lambda: ss.Model(
        ss.SiteGraph(4, [[0, 1], [2, 3]]), ss.Flat(), ss.DirichletProcess(1.0), connected=True, seeds=[5, 0, 0, 5]
    ),
    r"prior must fit the graph, which has no partition into 1\.\.2 connected clusters of 3\.\.6 sites that keep the": (
        lambda: ss.sample(on_path([1, 0, 2, 0, 3, 0], min_size=3), 2, 1)
    ),
    "seeds must be left out without a graph": lambda: minimize_vi([[0, 0, 1]], seeds=[1, 1, 0]),
    "labels must be draws that keep the seeds": lambda: estimate([1, 0, 1, 0, 0, 0]),
    "max_clusters must be at least 2, so that clusters can be connected and keep the seeds: got 1": (
        lambda: estimate([1, 0, 2, 0, 0, 0], max_clusters=1)
    ),
}


@pytest.mark.parametrize(("message", "make"), REFUSED.items(), ids=REFUSED)
def test_what_is_refused(message, make):
    with pytest.raises(ss.InvalidInput, match=message):
        make()
