"""The greedy start, against the plain search that recomputes the posterior for every merge."""

import numpy as np
import pytest

import model_cases
import spinseg as ss
from effort import effort, exhaustive
from spinseg.sampler import starts
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
