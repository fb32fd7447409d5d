"""The estimate from draws: it keeps the prior and the seeds also where the loss speaks against them."""

from dataclasses import replace

import numpy as np
import pytest

import spinseg as ss
from spinseg.model.seeds import keeps_seeds
from spinseg.sampler.estimate_search import improved

PRIOR = ss.Photo().prior


def estimate(draws, edges, seeds, prior=PRIOR, **options):
    """The graph, and the partition that is estimated from these draws of a posterior with seeds."""
    graph = ss.SiteGraph(len(seeds), edges)
    model = ss.Model(graph, ss.Flat(), prior, 0.0, connected=True, seeds=seeds)
    assert all(keeps_seeds(np.array(draw), model.seeds) and graph.is_connected(np.array(draw)) for draw in draws)
    chains = ss.sample(model, 1, rng=0)
    chains = replace(chains, labels=np.array([draws], np.int32), component=np.zeros(len(draws), np.intp))
    return graph, ss.Photo(**options).estimated(chains, model, 0)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_sites_of_a_seed_stay_together_whichever_way_joins_them(loss):
    """Sites 0 and 1 are joined by one of six ways of two sites, each in one draw; the loss alone takes none."""
    ways = np.arange(2, 14).reshape(6, 2)
    edges = np.sort(np.concatenate([[[0, a], [a, b], [1, b]] for a, b in ways]), axis=1)
    draws = [np.where(np.isin(np.arange(14), [0, 1, *way]), 0, np.arange(14)) for way in ways]
    draws = [np.unique(draw, return_inverse=True)[1] for draw in draws]
    seeds = np.array([1, 1, *[0] * 12])
    graph, found = estimate(draws, edges, seeds, estimate=loss)
    minimize = ss.minimize_vi if loss == "vi" else ss.minimize_binder
    alone = minimize(draws, graph=graph, rng=0).labels
    assert alone[0] != alone[1]  # so that the test can fail
    assert found[0] == found[1] and graph.is_connected(found)


def test_a_region_that_is_too_small_joins_none_with_another_seed():
    """Site 3, alone in every draw, touches a region with another seed and one with none."""
    edges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    limited = ss.TemperedProcess(min_size=2)
    _, found = estimate([[0, 0, 0, 1, 2, 2]] * 3, edges, np.array([2, 0, 0, 1, 0, 0]), prior=limited)
    assert found.tolist() == [0, 0, 0, 1, 1, 1]


PRIORS = [  # which the least loss breaks in about half of these cases
    ss.Potts(3),
    ss.DirichletProcess(1.0, max_size=9),
    ss.DirichletProcess(1.0, min_size=4, max_size=9),
]


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("kind", ["free", "connected", "seeds", "mixture"])
def test_the_estimate_is_a_partition_that_the_posterior_allows_and_no_worse_than_a_draw(kind, prior, loss):
    graph, seeds = ss.SiteGraph.grid((4, 6)), np.zeros(24, int)
    seeds[[0, 5, 18]] = 1, 2, 3
    how = {"connected": kind != "free", "seeds": seeds if kind == "seeds" else None}
    model = ss.Model(graph, ss.Flat(), prior, 0.3, **how)
    if kind == "mixture":
        model = ss.Model(graph, model.likelihood, prior, [model.beta, 2 * model.beta], connected=True)
    chains = ss.sample(model, 120, 2, init="greedy", burn_in=60, rng=1)
    found = ss.Photo(prior=prior, estimate=loss).estimated(chains, model, 0)
    assert model.allows(found)
    if kind == "mixture":
        return  # whose estimate is from the draws of one detail
    expected = ss.expected_vi if loss == "vi" else ss.expected_binder
    draws = chains.labels.reshape(-1, 24)
    assert expected(draws, found) <= np.median([expected(draws, draw) for draw in draws[::7]])


def test_labels_keep_the_prior_at_every_detail_and_in_every_chain():
    image = np.random.default_rng(0).random((48, 64))
    image[:, 20:] += 0.5
    for prior in (ss.Potts(3), ss.DirichletProcess(1.0, max_size=25)):
        seg = ss.segment(image, prior=prior, estimate="binder", sweeps=8, rng=0)
        for detail in (0.0, 0.5, 1.0):
            assert seg.model.allows(seg.at(detail).partition)
        for chain in range(2):
            assert seg.model.allows(seg.preset.estimated(seg.chains, seg.model, 0, chain))


def test_small_regions_of_classes_are_kept():
    """Discs of a third of a percent of the picture, of one class, are regions of their own."""
    image = np.random.default_rng(0).normal(0.2, 0.02, (90, 120))
    centers = [(row, column) for row in (20, 45, 70) for column in (20, 60, 100)]
    rows, columns = np.indices(image.shape)
    for row, column in centers:
        image[np.hypot(rows - row, columns - column) < 3.5] += 0.6
    how = {"regions": True, "sweeps": 12, "chains": 1, "rng": 0}
    seg = ss.segment(image, "classes", **how)
    found = [int(seg.labels[center]) for center in centers]
    assert len(set(found)) == len(centers) and 1 not in found and seg.n_clusters <= 2 * len(centers)
    coarse = ss.segment(image, "classes", min_region=4.0, **how)
    assert coarse.n_clusters < len(centers)  # none has four sites


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_search_from_one_start_lowers_the_loss_of_connected_partitions(loss):
    graph = ss.SiteGraph.grid((6, 7))
    draws = ss.sample(ss.Model(graph, ss.Flat(), ss.Potts(3), 0.6), 60, 1, burn_in=20, rng=0).labels[0]
    pieces = np.array([ss.regions_of(draw, graph) for draw in draws])
    expected = ss.expected_vi if loss == "vi" else ss.expected_binder
    for start in (pieces[-1], np.zeros(42, np.int32), np.arange(42, dtype=np.int32)):
        found = improved(start, pieces, loss, graph=graph, max_draws=100, rng=0)
        assert graph.is_connected(found) and expected(pieces, found) <= expected(pieces, start) + 1e-9
    assert expected(pieces, found) < expected(pieces, start)  # from single sites
