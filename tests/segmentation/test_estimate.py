"""The estimate from draws: it keeps the seeds also where the loss, or the smallest size, speaks against them."""

from dataclasses import replace

import numpy as np
import pytest

import spinseg as ss
from spinseg.model.seeds import keeps_seeds
from spinseg.segmentation.estimate import estimated_partition
from spinseg.segmentation.presets import PHOTO


def estimate(draws, edges, seeds, **settings):
    """The graph, and the partition that is estimated from these draws of a posterior with seeds."""
    graph = ss.SiteGraph(len(seeds), edges)
    model = ss.Model(graph, ss.Flat(), ss.TemperedProcess(), 0.0, connected=True, seeds=seeds)
    assert all(keeps_seeds(np.array(draw), model.seeds) and graph.is_connected(np.array(draw)) for draw in draws)
    chains = ss.sample(model, 1, rng=0)
    chains = replace(chains, labels=np.array([draws], np.int32), component=np.zeros(len(draws), np.intp))
    return graph, estimated_partition(chains, model, replace(PHOTO, **settings), 0)


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
