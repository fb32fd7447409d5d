"""Scores of probabilities and draws against annotators."""

import numpy as np
import pytest

from spinseg.graph.adjacency import region_adjacency
from studies.evaluation.calibration import (
    N_BINS,
    Reliability,
    annotated_separation,
    energy_distance,
    site_votes,
)
from studies.evaluation.metrics import rand_index


def test_the_sums_are_those_of_the_definitions():
    rng = np.random.default_rng(0)
    p, h, w = rng.random(400), rng.integers(0, 6, 400) / 5, rng.integers(1, 30, 400)
    found = Reliability.of(p, h, w)
    assert found.brier == pytest.approx(np.average((p - h) ** 2, weights=w))
    assert found.log_loss == pytest.approx(
        np.average(-h * np.log(p.clip(0.005, 0.995)) - (1 - h) * np.log(1 - p.clip(0.005, 0.995)), weights=w)
    )
    errors = []
    for low in np.arange(N_BINS) / N_BINS:
        part = (p >= low) & (p < low + 1 / N_BINS)
        errors.append(abs(w[part] @ (p - h)[part]))
    assert found.calibration_error == pytest.approx(sum(errors) / w.sum())
    halves = Reliability.of(p[:150], h[:150], w[:150]).plus(Reliability.of(p[150:], h[150:], w[150:]))
    assert halves.brier == pytest.approx(found.brier) and halves.log_loss == pytest.approx(found.log_loss)
    known = np.arange(400) % 2 == 0
    unknown = Reliability.of(p, np.where(known, h, np.nan), w)
    assert unknown.brier == pytest.approx(np.average((p - h)[known] ** 2, weights=w[known]))
    assert Reliability.of(p[:0], h[:0], w[:0]).brier == 0


def test_a_site_belongs_where_an_annotator_has_most_of_it():
    rng = np.random.default_rng(2)
    sites = np.arange(20).reshape(4, 5).repeat(3, axis=0).repeat(3, axis=1).astype(np.int32)
    edges = region_adjacency(sites).edges
    color = 0x20304F  # labels may be colors
    people = [color * rng.integers(0, 3, sites.shape) for _ in range(4)]
    expected = np.zeros(len(edges))
    for labels in people:
        most = [np.bincount(labels[sites == s] // color).argmax() for s in range(20)]
        expected += [most[i] != most[j] for i, j in edges]
    np.testing.assert_allclose(annotated_separation(sites, edges, people), expected / 4)
    blank = [np.where(sites == 7, -1, labels) for labels in people]
    unknown = np.isnan(annotated_separation(sites, edges, blank))
    np.testing.assert_array_equal(unknown, (edges == 7).any(axis=1))
    votes = site_votes(sites, people[0])
    assert votes.shape == (20, 3) and votes.sum() == sites.size


def test_the_energy_distance_is_that_of_rand_indices():
    rng = np.random.default_rng(3)
    sites = np.arange(30).reshape(5, 6).repeat(4, axis=0).repeat(4, axis=1).astype(np.int32)
    draws = rng.integers(0, 4, (3, 30)).astype(np.int32)
    people = [rng.integers(0, 3, sites.shape) for _ in range(2)]

    def apart(a, b):
        return 1 - rand_index(a, b)

    images = [draw[sites] for draw in draws]
    expected = 2 * np.mean([apart(a, b) for a in images for b in people])
    expected -= np.mean([apart(images[i], images[j]) for i in range(3) for j in range(3) if i != j])
    expected -= np.mean([apart(a, b) for a in people for b in people])
    assert energy_distance(draws, sites, people) == pytest.approx(expected)
