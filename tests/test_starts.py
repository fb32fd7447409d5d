"""The greedy start, against the plain search that recomputes the posterior for every merge."""

import numpy as np
import pytest

import spinseg as ss
import zoo
from spinseg.image.adjacency import grid_graph
from spinseg.inference.pack import pack
from spinseg.inference.starts import greedy_labels, starting_labels


def plain_greedy(model):
    """Merge the touching pair whose merge gains most, until none does."""
    labels = np.arange(model.graph.n_sites)
    here = model.log_posterior(labels)
    while True:
        pairs = {tuple(sorted((labels[a], labels[b]))) for a, b in model.graph.edges if labels[a] != labels[b]}
        merged = [(model.log_posterior(np.where(labels == b, a, labels)), a, b) for a, b in pairs]
        best = max(merged, default=(-np.inf, 0, 0))
        if best[0] <= here:
            return here
        here, labels = best[0], np.where(labels == best[2], best[1], labels)


@pytest.mark.parametrize("name", zoo.likelihoods(4))
def test_the_greedy_start_is_the_plain_search(name):
    graph = grid_graph((4, 5))
    beta = np.random.default_rng(3).normal(0.3, 0.8, graph.n_edges)
    for prior in (ss.DirichletProcess(1.5), ss.Potts(3), ss.PitmanYor(0.5, 0.4)):
        model = ss.Model(graph, zoo.likelihoods(20, 5)[name], prior, beta)
        found = model.log_posterior(greedy_labels(pack(model, np.maximum(beta, 0))))
        if isinstance(prior, ss.Potts):
            assert found > -np.inf  # the plain search cannot leave forbidden numbers of clusters
        else:
            assert found == pytest.approx(plain_greedy(model), abs=1e-9)


@pytest.mark.parametrize("limits", [{"min_size": 4}, {"max_size": 3}, {"min_size": 2, "max_size": 6}], ids=str)
def test_the_greedy_start_is_legal(limits):
    graph = grid_graph((6, 6))
    model = ss.Model(graph, zoo.likelihoods(36)["histogram"], ss.DirichletProcess(1.0, **limits), 0.5)
    labels = starting_labels(model, pack(model, model.beta), "greedy")
    assert model.log_posterior(labels) > -np.inf


def test_sites_that_touch_nothing_stay_alone():
    model = ss.Model(ss.SiteGraph(3, np.empty((0, 2), int)), ss.Flat(), ss.DirichletProcess(0.1))
    assert greedy_labels(pack(model, np.empty(0))).tolist() == [0, 1, 2]
