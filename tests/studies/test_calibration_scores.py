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


def test_told_as_seen_is_calibrated_and_sure_of_the_wrong_is_not():
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    drawn, ones = (rng.random(p.size) < p).astype(float), np.ones(p.size)
    assert Reliability.of(p, drawn, ones).calibration_error < 0.01
    assert Reliability.of(np.round(p), drawn, ones).calibration_error == pytest.approx(0.25, abs=0.01)
    assert Reliability.of(p, drawn, ones).brier < Reliability.of(np.round(p), drawn, ones).brier
    unknown = np.where(np.arange(p.size) % 2, np.nan, drawn)
    assert sum(Reliability.of(p, unknown, ones).weight) == p.size / 2
    assert Reliability.of(p[:0], p[:0], ones[:0]).brier == 0


def test_a_site_belongs_where_an_annotator_has_most_of_it():
    rng = np.random.default_rng(2)
    sites = np.arange(20).reshape(4, 5).repeat(3, axis=0).repeat(3, axis=1).astype(np.int32)
    edges = region_adjacency(sites).edges
    people = [rng.integers(0, 3, sites.shape) for _ in range(4)]
    expected = np.zeros(len(edges))
    for labels in people:
        most = [np.bincount(labels[sites == s]).argmax() for s in range(20)]
        expected += [most[i] != most[j] for i, j in edges]
    np.testing.assert_allclose(annotated_separation(sites, edges, people), expected / 4)
    blank = [np.where(sites == 7, -1, labels) for labels in people]
    unknown = np.isnan(annotated_separation(sites, edges, blank))
    np.testing.assert_array_equal(unknown, (edges == 7).any(axis=1))
    assert site_votes(sites, people[0]).sum() == sites.size


def test_annotations_may_have_colors_for_labels():
    sites = np.arange(400, dtype=np.int32).reshape(20, 20).repeat(2, axis=0).repeat(2, axis=1)
    edges = region_adjacency(sites).edges
    labels = (sites % 7).astype(np.int64)
    colors = labels * 0x20304F + 0x10
    assert site_votes(sites, colors).shape == (400, 7)
    np.testing.assert_array_equal(
        annotated_separation(sites, edges, [colors]), annotated_separation(sites, edges, [labels])
    )


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


def test_draws_from_among_the_annotators_are_near_them():
    sites = np.arange(64).reshape(8, 8).repeat(2, axis=0).repeat(2, axis=1).astype(np.int32)
    people = [np.arange(64) % k for k in (2, 5, 9)]
    images = [labels[sites] for labels in people]
    alike = np.array([people[i] for i in np.arange(60) % 3], np.int32)
    one = np.repeat(people[0][None], 60, axis=0).astype(np.int32)
    assert abs(energy_distance(alike, sites, images)) < 0.02 < energy_distance(one, sites, images)
