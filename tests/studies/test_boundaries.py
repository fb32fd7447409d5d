"""Scores of boundaries, probabilities and draws against annotators: by their definitions, and where they are known."""

from functools import reduce

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, gaussian_filter
from skimage.morphology import thin

from spinseg.graph.adjacency import region_adjacency
from studies.evaluation.boundaries import (
    THRESHOLDS,
    BoundaryBenchmark,
    BoundaryCounts,
    boundary_map,
    match_pixels,
    outlines,
    thinned,
)
from studies.evaluation.calibration import N_BINS, Reliability, annotated_separation, energy_distance, site_votes
from studies.evaluation.metrics import boundary_pixels, rand_index


def best_matching(apart, distance):
    """The most pairs within a distance, each row and column once, and the least sum of theirs, by trying every choice."""
    if not apart.size:
        return 0, 0.0
    choices = [best_matching(apart[1:], distance)]
    for j in np.flatnonzero(apart[0] <= distance):
        pairs, total = best_matching(np.delete(apart[1:], j, axis=1), distance)
        choices.append((pairs + 1, total + apart[0, j]))
    return min(choices, key=lambda found: (-found[0], found[1]))


def test_as_many_pixels_are_matched_as_an_exhaustive_search_can_and_as_close_ones():
    rng = np.random.default_rng(0)
    sizes = set()
    for _ in range(60):
        found, true = (np.argwhere(rng.random((4, 5)) < rng.uniform(0.1, 0.4))[:6] for _ in range(2))
        distance = rng.choice([0.0, 1.0, 1.5, 2.5])
        apart = np.linalg.norm(found[:, None] - true[None], axis=2)
        of_found, of_true = match_pixels(found, true, distance)
        pairs, total = best_matching(apart, distance)
        assert of_found.sum() == of_true.sum() == pairs
        # Those that are matched can be paired with each other, at the same cost.
        assert best_matching(apart[np.ix_(of_found, of_true)], distance) == (pairs, pytest.approx(total))
        sizes.add(pairs)
    assert len(sizes) > 3


def lines(*columns, shape=(60, 80)):
    """A label image with a boundary before each of these columns."""
    labels = np.zeros(shape, np.int64)
    for column in columns:
        labels[:, column:] += 1
    return labels


def test_probabilities_are_drawn_where_labels_are():
    rng = np.random.default_rng(3)
    sites = rng.integers(0, 6, (9, 11)).repeat(3, axis=0).repeat(2, axis=1).astype(np.int32)
    sites[4:7, 5:9] = -1
    edges = region_adjacency(sites).edges
    np.testing.assert_array_equal(boundary_map(sites, edges, np.ones(len(edges))), boundary_pixels(sites))
    values = rng.random(len(edges))
    drawn, expected = boundary_map(sites, edges, values), np.zeros(sites.shape)
    by_pair = {tuple(pair): value for pair, value in zip(edges.tolist(), values.tolist(), strict=True)}
    for i, j in np.argwhere(sites >= 0).tolist():
        block = [(i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)]
        for a, b in ((0, 1), (0, 2), (1, 3), (2, 3)):
            if max(block[a][0], block[b][0]) < sites.shape[0] and max(block[a][1], block[b][1]) < sites.shape[1]:
                pair = tuple(sorted((int(sites[block[a]]), int(sites[block[b]]))))
                expected[i, j] = max(expected[i, j], by_pair.get(pair, 0.0))
    np.testing.assert_array_equal(drawn, expected)


REACH = int(0.05 * np.hypot(60, 80))  # pixels, at the tolerance of these cases


@pytest.mark.parametrize(
    ("drawn", "people", "found", "correct", "recalled", "true"),
    [  # boundaries before these columns; counts in lines
        ([30], [[30], [30]], 1, 1, 2, 2),
        ([30 + REACH], [[30], [30]], 1, 1, 2, 2),
        ([31 + REACH], [[30], [30]], 1, 0, 0, 2),
        ([30, 32], [[30]], 2, 1, 1, 1),  # a second line beside a true one is an error
        ([30, 32], [[30]] * 5, 2, 1, 5, 5),  # and annotators do not share it among them
        ([20, 60], [[20], [20, 60], [60]], 2, 2, 4, 4),  # correct if any annotator has it; recall is over all
        ([20], [[20], [20, 60], [60]], 1, 1, 2, 4),
        ([20, 40], [[20], [20, 60], [60]], 2, 1, 2, 4),
        ([], [[]], 0, 0, 0, 0),
        ([], [[20]], 0, 0, 0, 1),
    ],
)
def test_lines_are_matched_one_to_one_within_the_distance(drawn, people, found, correct, recalled, true):
    probability = sum((outlines(lines(column)) for column in drawn), np.zeros((60, 80)))
    counts = BoundaryCounts.of(probability, [lines(*columns) for columns in people], tolerance=0.05)
    for values, expected in zip(counts, (found, correct, recalled), strict=False):
        assert set(values) == {60 * expected}
    assert counts.true == 60 * true
    precision, recall = correct / found if found else 1.0, recalled / true if true else 1.0
    assert (counts.precision[0], counts.recall[0]) == (precision, recall)
    assert counts.f[0] == pytest.approx(2 * precision * recall / ((precision + recall) or 1.0))


def test_each_threshold_counts_what_reaches_it():
    probability = 0.9 * outlines(lines(20)) + 0.3 * outlines(lines(50)) + 0.32 * outlines(lines(70))
    counts = BoundaryCounts.of(probability, [lines(20, 70)])
    for threshold, found, f in zip(THRESHOLDS, counts.found, counts.f, strict=True):
        kept = [p >= threshold for p in (0.3, 0.32, 0.9)]
        assert found == 60 * sum(kept)
        correct = sum(kept[1:])
        assert f == pytest.approx(2 * correct / (2 + sum(kept)))
    alone = BoundaryCounts.of(probability >= 0.44, [lines(20, 70)])
    assert alone.found[0] == counts.found[10] and THRESHOLDS[10] == 0.44


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 5), (40, 60)])
def test_thinned_lines_are_those_of_skimage(shape):
    rng = np.random.default_rng(8)
    for share in (0.0, 0.3, 0.7, 0.9, 1.0):
        noise = rng.random(shape) < share
        blobs = gaussian_filter(rng.random(shape), 2) > 0.5
        for lines in (noise, binary_dilation(noise, iterations=2), blobs):
            np.testing.assert_array_equal(thinned(lines), thin(lines))


def test_wide_boundaries_are_thinned_and_pixels_that_nobody_labeled_do_not_count():
    wide = binary_dilation(outlines(lines(30)), iterations=2)
    counts = BoundaryCounts.of(wide, [lines(30)], tolerance=0.05)
    assert counts.found[0] == pytest.approx(60, abs=4) and counts.f[0] > 0.95
    truth = lines(20, 50)
    blank = np.where(np.arange(80) < 40, truth, -1)
    assert BoundaryCounts.of(outlines(truth), [blank]) == BoundaryCounts.of(outlines(lines(20)), [lines(20)])


def test_scores_over_pictures_come_from_summed_counts():
    rng, pictures = np.random.default_rng(2), []
    for true in rng.integers(200, 400, 5).tolist():
        size = np.sort(rng.integers(20, 600, THRESHOLDS.size))[::-1]
        correct = (np.sort(rng.uniform(0.2, 0.95, THRESHOLDS.size)) * size).astype(int)
        columns = size, correct, np.minimum(correct, true)
        pictures.append(BoundaryCounts(*(tuple(values.tolist()) for values in columns), true))
    found = BoundaryBenchmark.of(pictures)
    size, correct, recalled = (sum(np.array(one[k]) for one in pictures) for k in range(3))
    true = sum(one.true for one in pictures)
    precision, recall = correct / size, recalled / true
    assert found.ods == pytest.approx(max(2 * precision * recall / (precision + recall)))
    size, correct, recalled = 0, 0, 0
    for one in pictures:
        f = [2 * c * r / (c * one.true + r * s) for s, c, r in zip(*one[:3], strict=True)]
        best = int(np.argmax(f))
        size, correct, recalled = size + one.found[best], correct + one.correct[best], recalled + one.recalled[best]
    assert found.ois == pytest.approx(2 / (size / correct + true / recalled))
    assert found.average_precision == reduce(BoundaryCounts.plus, pictures).average_precision


def test_average_precision_is_the_area_under_the_curve():
    recall, precision = np.linspace(0.8, 0.2, THRESHOLDS.size), np.linspace(0.5, 1.0, THRESHOLDS.size)
    true, size = 10**6, np.full(THRESHOLDS.size, 10**6)
    columns = (size, precision * size, recall * true)
    counts = BoundaryCounts(*(tuple(values.round().astype(int).tolist()) for values in columns), true)
    assert counts.average_precision == pytest.approx(0.2 * 1.0 + 0.6 * 0.75, abs=0.01)
    fewer = BoundaryCounts(*((*values[:-2], 0, 0) for values in counts[:3]), true)  # which tell nothing
    assert fewer.average_precision == pytest.approx(counts.average_precision, abs=0.01)
    certain = BoundaryCounts.of(outlines(lines(20, 40)), [lines(20, 60)])  # half of it right, and half of all
    assert certain.average_precision == pytest.approx(0.5 * 0.5, abs=0.01)


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
