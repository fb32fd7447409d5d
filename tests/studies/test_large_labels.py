"""Labels may be any whole numbers, such as packed colors: neither time nor memory grows with them."""

import tracemalloc

import numpy as np
import pytest

import spinseg as ss
from spinseg.image.render import outlines
from studies.evaluation.answers import Answer, score_answer
from studies.evaluation.calibration import energy_distance
from studies.evaluation.metrics import scores

HALVES = np.repeat([[0, 1]], 12, axis=1).repeat(20, axis=0)
IMAGE = np.where(HALVES, 200, 20).astype(np.uint8)
GRAPH = ss.SiteGraph.grid((4,))
DRAWS = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])
TAKE_LABELS = {
    "energy distance": lambda k: energy_distance(np.arange(2)[None], HALVES.astype(np.int32), [k * HALVES, 1 - HALVES]),
    "scores of an answer": lambda k: score_answer(Answer(k * HALVES), [k * HALVES, 1 - HALVES]),
    "scores": lambda k: scores(k * HALVES, [k * HALVES]),
    "mean colors": lambda k: (ss.mean_colors(IMAGE, 1 + k * HALVES), ss.mean_colors(IMAGE, k * HALVES)),
    "overlay": lambda k: (ss.overlay(IMAGE, 1 + k * HALVES), ss.overlay(IMAGE, k * HALVES)),
    "outlines": lambda k: outlines(k * HALVES - 1),
    "graph of regions": lambda k: ss.SiteGraph.from_regions(k * HALVES).edges,
    "sites": lambda k: ss.superpixels(IMAGE, kind=k * HALVES),
    "regions": lambda k: ss.regions_of(k * DRAWS[0], GRAPH),
    "estimate": lambda k: ss.minimize_vi(k * DRAWS, rng=0).labels,
    "loss": lambda k: ss.expected_binder(k * DRAWS, k * DRAWS[0]),
    "credible ball": lambda k: ss.credible_ball(k * DRAWS, k * DRAWS[0]).radius,
    "start": lambda k: ss.sample(ss.Model(GRAPH, ss.Flat(), ss.Potts(2)), 2, init=k * DRAWS[0], rng=0).labels,
}


@pytest.mark.parametrize("name", TAKE_LABELS)
@pytest.mark.parametrize("k", [10**7, 2**40])
def test_large_labels_change_nothing_and_take_no_memory(name, k):
    small = TAKE_LABELS[name](1)
    tracemalloc.start()
    try:
        large = TAKE_LABELS[name](k)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 5e7
    np.testing.assert_equal(large, small)


def test_large_seeds_are_told_apart():
    with pytest.raises(ss.InvalidInput, match="connected without passing another seed"):
        ss.Model(GRAPH, ss.Flat(), ss.DirichletProcess(1.0), connected=True, seeds=[1, 2**32 + 1, 1, 0])


def test_sites_with_wide_gaps_are_refused():
    for number in (10**8, 2**31, 2**40):
        with pytest.raises(ss.InvalidInput, match=r"^sites must be numbered from 0 .* SiteGraph\.from_regions"):
            ss.region_adjacency(number * HALVES)
    assert ss.region_adjacency(1000 * HALVES).n_sites == 1001
