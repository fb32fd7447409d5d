"""The greedy start, against the plain search that recomputes the posterior for every merge."""

import numpy as np
import pytest

import model_cases
import spinseg as ss
from effort import effort, exhaustive
from exact import partitions
from spinseg.sampler import start_search, starts
from spinseg.sampler.pack import pack
from spinseg.sampler.starts import greedy_labels, starting_labels


def touching(model, labels):
    """Pairs of clusters that touch."""
    return {tuple(sorted((labels[a], labels[b]))) for a, b in model.graph.edges if labels[a] != labels[b]}


def plain_rounds(model, most):
    """Merge, at once, all pairs that gain most for both of their clusters, until at most `most` clusters are left."""
    labels = np.arange(model.graph.n_sites)
    while np.unique(labels).size > most:
        here = model.log_posterior(labels)
        gain = {
            (a, b): model.log_posterior(np.where(labels == b, a, labels)) - here for a, b in touching(model, labels)
        }
        best = {c: max((pair for pair in gain if c in pair), key=gain.get, default=None) for c in np.unique(labels)}
        merged = [(a, b) for a, b in gain if best[a] == best[b] == (a, b) and gain[a, b] > 0]
        if not merged:
            break
        for a, b in merged:
            labels = np.where(labels == b, a, labels)
    return labels


def plain_greedy(model, labels=None):
    """Merge the touching pair whose merge gains most, until none does."""
    labels = np.arange(model.graph.n_sites) if labels is None else labels
    here = model.log_posterior(labels)
    while True:
        pairs = touching(model, labels)
        merged = [(model.log_posterior(np.where(labels == b, a, labels)), a, b) for a, b in pairs]
        best = max(merged, default=(-np.inf, 0, 0))
        if best[0] <= here:
            return here
        here, labels = best[0], np.where(labels == best[2], best[1], labels)


@pytest.mark.parametrize("name", effort(["poisson"], list(model_cases.likelihoods(4))))
def test_the_greedy_start_is_the_plain_search(name):
    graph = ss.SiteGraph.grid((4, 5))
    beta = np.random.default_rng(3).normal(0.3, 0.8, graph.n_edges)
    for prior in (ss.DirichletProcess(1.5), ss.Potts(3), ss.PitmanYor(0.5, 0.4)):
        model = ss.Model(graph, model_cases.likelihoods(20, 5)[name], prior, beta)
        found = model.log_posterior(greedy_labels(pack(model, np.maximum(beta, 0))))
        if isinstance(prior, ss.Potts):
            assert found > -np.inf  # the plain search cannot leave forbidden numbers of clusters
        else:
            assert found == pytest.approx(plain_greedy(model), abs=1e-9)


@exhaustive
@pytest.mark.parametrize("name", effort(["poisson"], list(model_cases.likelihoods(4))))
def test_of_many_sites_the_best_pairs_merge_at_once(name, monkeypatch):
    graph = ss.SiteGraph.grid((5, 6))
    beta = np.random.default_rng(4).normal(0.0, 1.0, graph.n_edges)
    for prior, most in ((ss.DirichletProcess(1.5), 1), (ss.PitmanYor(0.5, 0.4), 12), (ss.DirichletProcess(20.0), 20)):
        monkeypatch.setattr(starts, "MAX_PAIRWISE_CLUSTERS", most)
        model = ss.Model(graph, model_cases.likelihoods(30, 5)[name], prior, beta)
        rounds = plain_rounds(model, most)
        target = pack(model, np.maximum(beta, 0))
        assert (
            starts._merged_in_rounds(target, np.arange(30)).tolist()
            == np.unique(rounds, return_inverse=True)[1].tolist()
        )
        found = model.log_posterior(greedy_labels(target))
        assert found == pytest.approx(plain_greedy(model, rounds), abs=1e-9)


@pytest.mark.parametrize("limits", [{}, {"min_size": 3}, {"max_size": 20}, {"min_size": 5, "max_size": 30}], ids=str)
@pytest.mark.parametrize("init", starts.STARTS)
def test_starts_are_legal_and_as_coarse_or_fine_as_can_be(init, limits):
    model = model_cases.lattice(prior=ss.DirichletProcess(1.0, **limits))
    sizes = np.bincount(starting_labels(model, pack(model, model.beta), init))
    lowest, highest = limits.get("min_size", 1), limits.get("max_size", 144)
    assert sizes.min() >= lowest and sizes.max() <= highest
    assert init == "greedy" or sizes.size == (-(-144 // highest) if init == "one" else 144 // lowest)


def test_sites_that_touch_nothing_stay_alone():
    model = ss.Model(ss.SiteGraph(3, np.empty((0, 2), int)), ss.Flat(), ss.DirichletProcess(0.1))
    assert greedy_labels(pack(model, np.empty(0))).tolist() == [0, 1, 2]


def start_of(model, init="one"):
    return starting_labels(model, pack(model, model.beta), init)


def star(n_sites):
    return ss.SiteGraph(n_sites, [[0, site] for site in range(1, n_sites)])


def of_path(**sites):
    """Seeds on a path of 60 sites; `s2=[5, 6]` are the sites of seed 2."""
    seeds = np.zeros(60, int)
    for name, at in sites.items():
        seeds[at] = int(name[1:])
    return seeds


HARD = {  # graph, prior, seeds
    "a star with one pair": (star(4), ss.Potts(3, max_size=2), None),
    "a larger star with one pair": (star(60), ss.Potts(59, max_size=2), None),
    "little room": (ss.SiteGraph.grid((12, 12)), ss.DirichletProcess(1.0, min_size=7, max_size=8), None),
    "little room between seeds": (
        ss.SiteGraph.grid((1, 60)),
        ss.DirichletProcess(1.0, min_size=3, max_size=4),
        of_path(s1=[1, 2], s2=[5, 6], s3=[31]),
    ),
    "no size but 2 and 5": (
        ss.SiteGraph.grid((1, 9)),
        ss.TabulatedPrior(np.zeros(10), np.where(np.isin(np.arange(10), [2, 5]), 0.0, -np.inf)),
        None,
    ),
}


@pytest.mark.parametrize("annealed", [False, True])
@pytest.mark.parametrize("name", HARD)
def test_starts_are_found_where_the_limits_leave_few(name, annealed, monkeypatch):
    graph, prior, seeds = HARD[name]
    model = ss.Model(graph, ss.Flat(), prior, connected=True, seeds=seeds)
    if annealed:
        monkeypatch.setattr(start_search, "MAX_STEPS", 0)
    for init in starts.STARTS:
        assert model.allows(start_of(model, init))


def random_model(seed):
    """A model of few sites with limits of some kind, and often with seeds; None where its limits cannot be met."""
    rng = np.random.default_rng(seed)
    n_sites = int(rng.integers(4, 7))
    edges = [[i, int(rng.integers(i))] for i in range(1, n_sites)]
    edges += [[i, j] for i in range(n_sites) for j in range(i) if rng.random() < 0.2]
    graph = ss.SiteGraph(n_sites, edges, simplify=True)
    limits = {"min_size": int(rng.integers(1, 4)), "max_size": int(rng.integers(2, 5))}
    limits = {name: size for name, size in limits.items() if rng.random() < 0.7}
    seeds = None
    if rng.random() < 0.5:
        labels = graph.components(rng.random(graph.n_edges) < 0.5)
        seeds = np.where(rng.random(n_sites) < 0.5, labels + 1, 0)
    try:
        prior = [
            lambda: ss.Potts(int(rng.integers(1, n_sites + 1)), **limits),
            lambda: ss.TabulatedPrior(*np.where(rng.random((2, n_sites + 1)) < 0.4, -np.inf, 0.0), **limits),
            lambda: ss.ExchangeablePrior(lambda sizes: -np.inf if sizes[0] - sizes[-1] == 1 else 0.0, **limits),
        ][rng.integers(3)]()
        return ss.Model(graph, ss.Flat(), prior, connected=True, seeds=seeds)
    except ss.InvalidInput:
        return None


def test_the_search_finds_a_start_or_proves_that_there_is_none():
    n_found = n_impossible = 0
    for seed in range(effort(400, 4_000)):
        model = random_model(seed)
        if model is None:
            continue
        n_sites = model.graph.n_sites
        apart, exists = np.arange(n_sites, dtype=np.int32), any(model.allows(row) for row in partitions(n_sites))
        for init in ("one", "singletons"):
            if exists:
                assert model.allows(start_search.searched_start(model, apart, init)), seed
            else:
                with pytest.raises(ss.InvalidInput, match=r"prior must (fit the graph, which has no|allow some size)"):
                    start_search.searched_start(model, apart, init)
        n_found, n_impossible = n_found + exists, n_impossible + (not exists)
    assert min(n_found, n_impossible) > 20


@pytest.mark.parametrize("init", ["one", "singletons"])
def test_a_prior_without_tables_may_allow_what_is_left_after_clusters_of_other_sizes(init):
    prior = ss.ExchangeablePrior(lambda sizes: 0.0 if set(sizes.tolist()) == {2} else -np.inf)
    model = ss.Model(ss.SiteGraph.grid((1, 6)), ss.Flat(), prior, connected=True)
    found = start_search.searched_start(model, np.arange(6, dtype=np.int32), init)
    assert found.tolist() == [0, 0, 1, 1, 2, 2]


def test_where_not_all_partitions_are_tried_it_is_not_known_that_there_is_none(monkeypatch):
    model = ss.Model(star(6), ss.Flat(), ss.DirichletProcess(1.0, min_size=2, max_size=3), connected=True)
    monkeypatch.setattr(start_search, "MAX_STEPS", 0)
    expected = r"init must be labels: no partition into 2\.\.3 connected clusters of 2\.\.3 sites was found: got 'one'"
    with pytest.raises(ss.InvalidInput, match=expected):
        start_of(model)


def of_three(n_sites):
    """A prior of kinds with three regions each."""
    return ss.TabulatedPrior(np.zeros(n_sites + 1), np.where(np.arange(n_sites + 1) == 3, 0.0, -np.inf))


def test_a_number_of_regions_that_the_prior_of_kinds_allows_is_found():
    graph = ss.SiteGraph.grid((2, 5))
    model = ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.0), connected=True, kinds=of_three(10))
    for init in starts.STARTS:
        assert start_of(model, init).max() + 1 in (3, 6, 9)
    model = ss.Model(graph, ss.Flat(), ss.Potts(2), connected=True, kinds=of_three(10))
    with pytest.raises(ss.InvalidInput, match="kinds must allow some number of the regions that the prior allows"):
        start_of(model)
