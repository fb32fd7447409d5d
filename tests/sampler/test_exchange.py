"""Exchanges of sites between clusters, which matter where the prior leaves clusters no room, and what chains can reach."""

import warnings

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from chain_cases import assert_books
from effort import effort, exhaustive
from spinseg.sampler.plan import is_limited, unreachable

RING = ss.SiteGraph(6, [[i, (i + 1) % 6] for i in range(6)])
SIX, EIGHT = ss.SiteGraph.grid((2, 3)), ss.SiteGraph.grid((2, 4))
# Graph, smallest and largest size, and whether clusters are connected. Before there were exchanges, chains never visited
# from a third to all but a tenth of the probability of each.
NO_ROOM = {
    "2 x 3, sizes 3": (SIX, 3, 3, False),
    "2 x 3, sizes 3 to 4": (SIX, 3, 4, False),
    "2 x 3, sizes 3 to 5": (SIX, 3, 5, False),
    "2 x 3, sizes 2": (SIX, 2, 2, False),
    "2 x 4, sizes 4": (EIGHT, 4, 4, False),
    "2 x 4, sizes 4 to 7": (EIGHT, 4, 7, False),
    "2 x 3, sizes 2, connected": (SIX, 2, 2, True),
    "2 x 4, sizes 4, connected": (EIGHT, 4, 4, True),
    "2 x 4, sizes 2, connected": (EIGHT, 2, 2, True),
    "ring, sizes 3, connected": (RING, 3, 3, True),
}


def model_named(name: str, likelihood="flat", prior=ss.DirichletProcess, seeds=None) -> ss.Model:
    graph, min_size, max_size, connected = NO_ROOM[name]
    beta = np.random.default_rng(1).normal(0.2, 0.5, graph.n_edges)
    of_sites = model_cases.likelihoods(graph.n_sites)[likelihood]
    limits = {"min_size": min_size, "max_size": max_size}
    return ss.Model(graph, of_sites, prior(1.5, **limits), beta, connected=connected, seeds=seeds)


@pytest.mark.parametrize("likelihood", effort(["product"], list(model_cases.likelihoods(6))))
@pytest.mark.parametrize("name", NO_ROOM)
def test_exchanges_leave_the_posterior_invariant(name, likelihood):
    model = model_named(name, likelihood)
    for iteration in ("exchange", "all of auto"):
        how = exact.iterations(connected=model.connected)[iteration]
        assert exact.iterated(model, n_draws=effort(10_000, 100_000), seed=1, **how)[0] > 1e-6


@pytest.mark.parametrize("name", NO_ROOM)
def test_every_partition_is_reached_where_clusters_have_no_room(name):
    model = model_named(name)
    chains = ss.sample(model, sweeps=1_500, chains=2, rng=5)
    exact.check_reached(model, chains.labels, above=0.01)
    assert (chains.acceptance["exchange"] > 0).all()


@pytest.mark.parametrize("seeds", [[1, 0, 0, 0, 0, 2], [1, 0, 0, 0, 1, 0], [1, 0, 2, 0, 3, 0]], ids=str)
def test_exchanges_keep_seeds(seeds):
    model = model_named("2 x 3, sizes 2, connected" if max(seeds) == 3 else "ring, sizes 3, connected", seeds=seeds)
    chains = ss.sample(model, sweeps=300, chains=2, rng=3)
    exact.check_reached(model, chains.labels)


def test_the_mode_is_found_where_clusters_have_no_room():
    path = ss.SiteGraph(6, [[i, i + 1] for i in range(5)])
    prior = ss.DirichletProcess(1.0, min_size=3, max_size=3)
    model = ss.Model(path, ss.DiagonalGaussian([0, 9, 0, 9, 0, 9]), prior)
    assert ss.find_map(model, rng=0).labels.tolist() == [0, 1, 0, 1, 0, 1]
    chains = ss.sample(model, sweeps=200, chains=4, rng=0)
    assert (chains.labels[:, -1] == [0, 1, 0, 1, 0, 1]).all(axis=1).sum() >= 3


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("prior", [ss.DirichletProcess, lambda _, **limits: ss.Potts(9, **limits)])
def test_the_books_are_kept(prior, connected):
    graph = ss.SiteGraph.grid((6, 6))
    beta = np.random.default_rng(1).normal(0.1, 0.5, graph.n_edges)
    likelihood = model_cases.likelihoods(36)["product"]
    model = ss.Model(graph, likelihood, prior(1.5, min_size=4, max_size=6), beta, connected=connected, power=0.3)
    chains = ss.sample(model, sweeps=60, chains=2, rng=2)
    assert (chains.acceptance["exchange"] > 0).all()
    assert_books(model, chains, every=7)


@exhaustive
def test_an_exchangeable_prior_has_exchanges():
    prior = ss.ExchangeablePrior(lambda sizes: 0.0, min_size=3, max_size=3)
    model = ss.Model(ss.SiteGraph.grid((2, 3)), ss.Flat(), prior, 0.3)
    chains = ss.sample(model, sweeps=60, chains=1, rng=0)
    assert len(np.unique(chains.labels[0], axis=0)) > 5


def test_nothing_is_exchanged_where_clusters_can_merge():
    graph = ss.SiteGraph.grid((3, 4))
    free = [ss.DirichletProcess(1.0), ss.Potts(3), ss.DirichletProcess(1.0, min_size=4)]
    free += [ss.DirichletProcess(1.0, max_size=12), ss.ExchangeablePrior(lambda sizes: 0.0, min_size=2)]
    tight = [ss.DirichletProcess(1.0, max_size=11), ss.Potts(3, max_size=4)]
    tight += [ss.TabulatedPrior(lambda k: 0.0 if k == 2 else -np.inf, lambda m: 0.0)]
    tight += [ss.ExchangeablePrior(lambda sizes: 0.0, max_size=6)]
    for connected in (False, True):
        assert not any(is_limited(ss.Model(graph, ss.Flat(), prior, connected=connected)) for prior in free)
        assert all(is_limited(ss.Model(graph, ss.Flat(), prior, connected=connected)) for prior in tight)


def not_two(m: int) -> float:
    return -np.inf if m == 2 else 0.0


UNREACHABLE = {
    "hardly any cluster can be split": ("gsw", ss.DirichletProcess(1.0, min_size=2)),
    "no site can move where all clusters are full": ("gsw", ss.Potts(3, max_size=4)),
    "not every number between": ("auto", ss.TabulatedPrior(lambda k: 0.0 if k in (1, 3) else -np.inf, lambda m: 0.0)),
    "forbids some sizes between": ("auto", ss.TabulatedPrior(lambda k: 0.0, not_two)),
    "sizes from 3 to 4 leave no room to split or merge": ("auto", ss.DirichletProcess(1.0, min_size=3, max_size=4)),
}


@pytest.mark.parametrize("reason", UNREACHABLE)
def test_a_warning_says_what_chains_cannot_reach(reason):
    moves, prior = UNREACHABLE[reason]
    model = ss.Model(ss.SiteGraph.grid((3, 4)), ss.Flat(), prior, 0.5)
    with pytest.warns(UserWarning, match=reason) as warned:
        ss.sample(model, 2, 1, moves, rng=0)
    assert warned[0].filename == __file__ and str(warned[0].message).startswith("The chains cannot reach")
    if moves == "auto":
        with pytest.warns(UserWarning, match=reason):
            ss.find_map(model, 1, sweeps=2, rng=0)


def test_what_can_be_reached_gives_no_warning():
    graph = ss.SiteGraph.grid((3, 4))
    for prior in (ss.DirichletProcess(1.0), ss.Potts(3), ss.Potts(4, max_size=4), ss.DirichletProcess(1.0, max_size=3)):
        assert unreachable(ss.Model(graph, ss.Flat(), prior), "gsw") is None
    for limits in ({"min_size": 3}, {"min_size": 4, "max_size": 6}, {"min_size": 4, "max_size": 4}):
        assert unreachable(ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.0, **limits)), "auto") is None
    two_to_three = ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.0, min_size=2, max_size=3))
    assert unreachable(two_to_three, "auto") is None
    assert "at least 2 times min_size" in unreachable(two_to_three, "auto", splits_only=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.sample(two_to_three, 2, 1, rng=0)
