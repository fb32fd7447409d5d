"""Graphs and models: what they accept, what they refuse, and properties over random ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import model_cases
import spinseg as ss
from chain_cases import assert_books
from effort import effort


def test_the_graph_keeps_edges_in_order_and_lists_neighbours():
    graph = ss.SiteGraph(4, [[3, 1], [0, 1], [2, 0]])
    assert graph.n_edges == 3 and graph.edges.tolist() == [[3, 1], [0, 1], [2, 0]]
    neighbors = [graph.neighbors[graph.start[i] : graph.start[i + 1]].tolist() for i in range(4)]
    edges = [graph.edge_of[graph.start[i] : graph.start[i + 1]].tolist() for i in range(4)]
    assert neighbors == [[1, 2], [0, 3], [0], [1]]
    assert edges == [[1, 2], [1, 0], [2], [0]]
    assert repr(graph) == "SiteGraph of 4 sites and 3 edges"


@pytest.mark.parametrize(
    ("n_sites", "edges", "message"),
    [
        (0, [], r"n_sites must be a whole number of at least 1; received 0"),
        (2.5, [], r"n_sites must be a whole number of at least 1; received 2.5"),
        (3, [[0, 0]], r"edges must join two different sites, unless simplify=True drops loops; received \[0 0\]"),
        (3, [[0, 1], [2, 1], [1, 0]], r"edges must hold each pair of sites once, unless .*; received \[1 0\]"),
        (3, [[0, 3]], r"edges must join sites 0..2; received \[0 3\]"),
        (3, [[-1, 2]], r"edges must join sites 0..2; received \[-1  ?2\]"),
        (3, [[0.0, 1.0]], r"edges must be whole numbers; received 'float64'"),
        (3, [0, 1], r"edges must have shape \(n_edges, 2\); received \(2,\)"),
    ],
)
def test_bad_graphs_are_refused(n_sites, edges, message):
    with pytest.raises(ValueError, match=message):
        ss.SiteGraph(n_sites, edges)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda g: ss.Model(g, ss.PoissonGamma([1, 2]), ss.Potts(2)),
            r"likelihood must have the graph's 3 sites; received 2",
        ),
        (lambda g: ss.Model(g, ss.Flat(), ss.Potts(2), beta=math.inf), r"beta must be finite; received .*inf"),
        (lambda g: ss.Model(g, ss.Flat(), ss.Potts(2), beta=[0.1, math.nan]), r"beta must be finite; received .*nan"),
        (lambda g: ss.Model(g, ss.Flat(), ss.Potts(2), beta=[0.1]), r"beta must have shape \(2\); received \(1,\)"),
        (
            lambda g: ss.Model(g, ss.Flat(), ss.Potts(2), beta=[[1.0]]),
            r"beta must have shape \(any, 2\); received \(1, 1\)",
        ),
        (lambda g: ss.Model(g, ss.Flat(), ss.Potts(2), beta=np.empty((0, 2))), r"beta must have one or more rows"),
        (lambda g: ss.Model(g, ss.Flat(), ss.Potts(2), beta="x"), r"beta must be an array of numbers"),
        (lambda g: ss.Model(g, ss.Flat(), ss.Potts(2, min_size=4)), r"min_size must be at most n_sites, 3; received 4"),
        (
            lambda g: ss.Model(g, ss.Flat(), ss.Potts(2, max_size=1)),
            r"max_size must satisfy max_size \* n_labels >= n_sites, 2 labels, 3 sites; received 1",
        ),
        (
            lambda g: ss.Model(g, ss.Flat(), ss.DirichletProcess(1, min_size=2, max_size=2)),
            r"n_sites must be a sum of cluster sizes from min_size 2 to max_size 2; received 3",
        ),
        (
            lambda g: ss.Model(g, ss.Flat(), ss.TabulatedPrior(lambda k: -math.inf, lambda m: 0.0)),
            r"prior must allow some partition of 3 sites",
        ),
        (lambda g: ss.Model(g, ss.Flat(), 3), r"prior must be a PartitionPrior; received 3"),
        (lambda g: ss.Model(g, None, ss.Potts(2)), r"likelihood must be a Likelihood; received None"),
        (
            lambda g: ss.Model(g, ss.Flat(), ss.Potts(2)).log_posterior([0, 1]),
            r"labels must have one entry per site, shape \(3,\); received \(2,\)",
        ),
        (lambda g: ss.Model(g, ss.Flat(), ss.Potts(2)).log_posterior([0, 1, 0.5]), r"labels must be whole numbers"),
        (lambda g: ss.sample(g), r"model must be a Model"),
    ],
)
def test_bad_models_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(ss.SiteGraph(3, [[0, 1], [1, 2]]))


@pytest.mark.parametrize("edges", [[], [[0, 1], [3, 4]]], ids=["no edges", "disconnected"])
@pytest.mark.parametrize("n_sites", [1, 5])
def test_one_site_no_edges_and_disconnected_graphs_work(n_sites, edges):
    graph = ss.SiteGraph(n_sites, [edge for edge in edges if max(edge) < n_sites])
    model = ss.Model(graph, ss.PoissonGamma(np.arange(n_sites)), ss.DirichletProcess(1.0), beta=0.5)
    for moves in ("gsw", "auto"):
        chains = ss.sample(model, sweeps=20, chains=2, moves=moves, rng=0)
        assert_books(model, chains)


def test_labels_are_names_only():
    model = ss.Model(
        ss.SiteGraph(4, [[0, 1], [2, 3]]), model_cases.likelihoods(4)["product"], ss.PitmanYor(1.0, 0.2), [0.5, -0.5]
    )
    assert model.log_posterior([5, 5, -3, 9]) == model.log_posterior([0, 0, 1, 2])


@st.composite
def small_models(draw):
    """A random graph, likelihood, prior with limits, and couplings."""
    n_sites = draw(st.integers(1, 7))
    pairs = [(i, j) for i in range(n_sites) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    beta = draw(st.lists(st.floats(-3, 3), min_size=len(edges), max_size=len(edges)))
    likelihood = model_cases.likelihoods(n_sites, draw(st.integers(0, 99)))[
        draw(st.sampled_from(sorted(model_cases.likelihoods(1))))
    ]
    limits = draw(st.sampled_from([{}, {"min_size": 2}, {"max_size": 4}]))
    prior = model_cases.priors(**limits)[draw(st.sampled_from(sorted(model_cases.priors())))]
    try:
        return ss.Model(ss.SiteGraph(n_sites, edges), likelihood, prior, beta)
    except ValueError as error:
        assert "min_size must be at most" in str(error)
        return None


@given(
    model=small_models(),
    seed=st.integers(0, 2**32),
    lam=st.sampled_from([None, 0.5, 4.0]),
    init=st.sampled_from(["one", "singletons"]),
)
@settings(max_examples=effort(20, 150), deadline=None)
def test_chains_on_random_models_stay_legal_and_keep_their_books(model, seed, lam, init):
    if model is None:
        return
    chains = ss.sample(model, sweeps=15, chains=2, lam=lam, init=init, rng=seed)
    assert_books(model, chains)
