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


def test_the_graph_keeps_edges_in_order_and_lists_neighbors():
    graph = ss.SiteGraph(4, [[3, 1], [0, 1], [2, 0]])
    assert graph.n_edges == 3 and graph.edges.tolist() == [[3, 1], [0, 1], [2, 0]]
    neighbors = [graph.neighbors[graph.start[i] : graph.start[i + 1]].tolist() for i in range(4)]
    edges = [graph.edge_of[graph.start[i] : graph.start[i + 1]].tolist() for i in range(4)]
    assert neighbors == [[1, 2], [0, 3], [0], [1]]
    assert edges == [[1, 2], [1, 0], [2], [0]]
    assert repr(graph) == "SiteGraph of 4 sites and 3 edges"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"likelihood": ss.PoissonGamma([1, 2])}, r"likelihood must have the graph's 3 sites: got 2"),
        ({"likelihood": None}, r"likelihood must be a Likelihood: got None"),
        ({"beta": [0.1, math.nan]}, r"beta must be finite: got .*nan"),
        ({"beta": [0.1]}, r"beta must have shape \(2\): got \(1,\)"),
        ({"beta": [[1.0]]}, r"beta must have shape \(any, 2\): got \(1, 1\)"),
        ({"beta": np.empty((0, 2))}, r"beta must have one or more rows"),
        ({"prior": 3}, r"prior must be a PartitionPrior: got 3"),
        ({"prior": ss.Potts(2, min_size=4)}, r"min_size must be at most n_sites, 3: got 4"),
        ({"prior": ss.Potts(2, max_size=1)}, r"max_size must satisfy max_size \* n_labels >= n_sites, 2 labels, 3 sites"),
        ({"prior": ss.DirichletProcess(1, min_size=2, max_size=2)}, r"n_sites must be a sum of cluster sizes from min_size"),
        ({"prior": ss.TabulatedPrior(lambda k: -math.inf, lambda m: 0.0)}, r"prior must allow some partition of 3 sites"),
        ({"labels": [0, 1]}, r"labels must have one entry per site, shape \(3,\): got \(2,\)"),
        ({"labels": [0, 1, 0.5]}, r"labels must be whole numbers"),
    ],
)  # fmt: skip
def test_bad_models_and_labels_are_refused(changes, message):
    given = {"graph": ss.SiteGraph(3, [[0, 1], [1, 2]]), "likelihood": ss.Flat(), "prior": ss.Potts(2), **changes}
    labels = given.pop("labels", [0, 0, 0])
    with pytest.raises(ValueError, match=message):
        ss.Model(**given).log_posterior(labels)


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
    moves = "gsw" if seed % 2 and model.prior.min_size == 1 else "auto"
    chains = ss.sample(model, sweeps=15, chains=2, moves=moves, lam=lam, init=init, rng=seed)
    assert_books(model, chains)
