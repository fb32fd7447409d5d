"""Metrics against slow definitions, other libraries and stored answers."""

import json
import math
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import skimage.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from effort import effort
from studies.evaluation.metrics import (
    adjusted_rand_index,
    boundary_scores,
    contingency,
    global_consistency_error,
    mean_over_annotators,
    probabilistic_rand_index,
    rand_index,
    scores,
    segmentation_covering,
    variation_of_information,
)

GOLDEN = Path(os.environ.get("SPINSEG_GOLDEN", Path(__file__).parents[3] / "shared" / "golden")) / "metrics.json"
OF_TWO = [rand_index, adjusted_rand_index, variation_of_information, global_consistency_error, segmentation_covering]


@st.composite
def images(draw, count=2, lowest=0, smallest=1, sides=7):
    """Label images of one shape, with at least one pixel that all of them label."""
    shape = draw(array_shapes(min_dims=2, max_dims=2, min_side=smallest, max_side=sides))
    drawn = [draw(arrays(np.int64, shape, elements=st.integers(lowest, 4))) for _ in range(count)]
    for image in drawn:
        image.flat[0] = max(image.flat[0], 0)
    return drawn


def regions(image):
    """The set of pixels of every region."""
    return [set(np.flatnonzero(image.ravel() == label).tolist()) for label in np.unique(image)]


def slow_gce(labels, truth):
    """Pixel by pixel: the share of its region that is outside its other region."""

    def error(one, other):
        total = 0.0
        for pixel in range(one.size):
            here, there = (next(r for r in regions(image) if pixel in r) for image in (one, other))
            total += len(here - there) / len(here)
        return total / one.size

    return min(error(labels, truth), error(truth, labels))


def slow_covering(labels, truth):
    covered = [len(r) * max(len(r & s) / len(r | s) for s in regions(labels)) for r in regions(truth)]
    return sum(covered) / truth.size


def library_voi(labels, truth):
    return sum(skimage.metrics.variation_of_information(truth, labels))  # two conditional entropies, in bits too


def library_score(name):
    return lambda labels, truth: getattr(pytest.importorskip("sklearn.metrics"), name)(truth, labels)


OTHERS = [library_score("rand_score"), library_score("adjusted_rand_score"), library_voi, slow_gce, slow_covering]


@pytest.mark.parametrize(("metric", "other"), [*zip(OF_TWO, OTHERS, strict=True)])
@given(pair=images(lowest=-1, sides=5), number=st.sampled_from([1, 2**60]))  # the second is too large for a table
@settings(max_examples=effort(30, 60), deadline=None)
def test_each_equals_its_slow_definition_or_that_of_another_library(metric, other, pair, number):
    kept = (pair[0] >= 0) & (pair[1] >= 0)
    found = metric(number * pair[0], number * pair[1])
    assert found == pytest.approx(other(pair[0][kept], pair[1][kept]), abs=1e-12)
    if (pair[0] == pair[1])[kept].all():  # without an error of rounding
        assert found == float(metric not in (variation_of_information, global_consistency_error))


@pytest.mark.skipif(not GOLDEN.exists(), reason=f"{GOLDEN} is not here: set SPINSEG_GOLDEN to its folder")
def test_stored_answers():
    cases = json.loads(GOLDEN.read_text())
    assert cases
    for case in cases:
        pair = case["segmentation"], case["truth"]
        assert rand_index(*pair) == pytest.approx(case["rand"], abs=1e-12)
        assert variation_of_information(*pair) == pytest.approx(case["variation_of_information_bits"], abs=1e-12)
        assert segmentation_covering(*pair) == pytest.approx(case["covering_of_truth"], abs=1e-12)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32, np.uint64])
def test_integer_types_and_memory_order_are_of_no_account(dtype):
    labels, truth = np.random.default_rng(3).integers(0, 9, (2, 12, 15))
    for change in (np.asarray, np.asfortranarray):
        assert scores(change(labels.astype(dtype)), [truth.astype(dtype)]) == scores(labels, [truth])


@pytest.mark.parametrize("n_regions", [(20, 30), (5000, 4000)], ids=["dense", "sparse"])
def test_the_table_equals_one_counted_pixel_by_pixel(n_regions):
    rng = np.random.default_rng(4)
    labels, truth = (rng.integers(0, n, (90, 60)) for n in n_regions)
    found = contingency(labels, truth)
    table = np.zeros(n_regions, int)
    np.add.at(table, (labels, truth), 1)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    assert np.array_equal(np.transpose([found.row, found.column]), np.argwhere(table.T))  # in the order it promises
    assert np.array_equal(found.shared, table.T[found.row, found.column])
    assert np.array_equal(found.row_sizes, table.sum(axis=0))
    assert np.array_equal(found.column_sizes, table.sum(axis=1))


def test_pairs_beyond_the_integers_of_the_machine():
    labels = np.zeros(400_000, int)  # the product of two counts of pairs is 6.4e21
    labels[::2] = 1
    assert adjusted_rand_index(labels, labels) == 1.0
    assert abs(adjusted_rand_index(labels, np.arange(400_000) // 2 % 2)) < 1e-5


@given(drawn=images(count=4, sides=4))
def test_the_probabilistic_rand_index_equals_its_definition_over_pairs(drawn):
    labels, *annotations = drawn
    if labels.size == 1:
        assert probabilistic_rand_index(labels, annotations) == 1.0
        return
    total = []
    for p, q in combinations(range(labels.size), 2):
        together = labels.flat[p] == labels.flat[q]
        share = np.mean([truth.flat[p] == truth.flat[q] for truth in annotations])
        total.append(together * share + (1 - together) * (1 - share))
    assert probabilistic_rand_index(labels, annotations) == pytest.approx(np.mean(total), abs=1e-12)


@given(drawn=images(count=4, lowest=-1))
def test_scores_are_the_means_over_annotators_and_the_boundary_scores(drawn):
    labels, *annotations = drawn
    found = scores(labels, annotations, tolerance=0.2)
    means = [mean_over_annotators(metric, labels, annotations) for metric in OF_TWO]
    assert found[:5] == pytest.approx(means, abs=1e-12)
    assert found.probabilistic_rand_index == probabilistic_rand_index(labels, annotations)
    assert found.segmentation_covering == means[4] and found.variation_of_information == means[2]
    assert found[5:] == boundary_scores(labels, annotations, tolerance=0.2)
    assert all(type(value) is float for value in found)
    assert scores(labels, np.stack(annotations)) == scores(labels, tuple(annotations))


def slow_boundary(labels):
    """Labeled pixels whose block of two by two has more than one label."""
    found = set()
    for row, column in np.ndindex(labels.shape):
        block = labels[row : row + 2, column : column + 2].ravel()
        if labels[row, column] >= 0 and len(set(block[block >= 0].tolist())) > 1:
            found.add((row, column))
    return found


def slow_boundary_scores(labels, annotations, tolerance):
    """All pairs of boundary pixels are measured."""
    judged = np.any([truth >= 0 for truth in annotations], axis=0)
    reach = tolerance * math.hypot(*labels.shape)
    drawn = slow_boundary(np.where(judged, labels, -1))
    true = [slow_boundary(np.where(labels >= 0, truth, -1)) for truth in annotations]
    matched = {p for p in drawn if any(math.dist(p, q) <= reach for edge in true for q in edge)}
    found = sum(any(math.dist(p, q) <= reach for q in drawn) for edge in true for p in edge)
    precision = len(matched) / len(drawn) if drawn else 1.0
    recall = found / sum(map(len, true)) if any(true) else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@given(drawn=images(count=3, lowest=-1), tolerance=st.sampled_from([0.0, 0.11, 0.3, 2.0]))
@settings(deadline=None)
def test_boundary_scores_equal_their_slow_definition(drawn, tolerance):
    labels, *annotations = drawn
    expected = slow_boundary_scores(labels, annotations, tolerance)
    assert boundary_scores(labels, annotations, tolerance=tolerance) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("shift", "expected"), [(4, 1.0), (-5, 0.0)])
def test_a_boundary_within_the_tolerance_matches_and_one_beyond_does_not(shift, expected):
    halves, shifted = (np.repeat([np.arange(481) >= x], 321, axis=0).astype(int) for x in (200, 200 + shift))
    assert boundary_scores(halves, [shifted]) == (expected,) * 3  # .0075 of the diagonal: 4.3 pixels


def test_volumes_have_all_scores():
    volume = np.zeros((4, 5, 6), int)
    volume[2:] = 1
    assert scores(volume, [volume]) == (1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0)
    assert boundary_scores(volume, [volume * 0])[:2] == (0.0, 1.0)


PAIR = np.array([[0, 1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rand_index([[0, -1]], [[-1, 0]]), r"labels and truth must have a pixel labeled in both, of 2: got"),
        (lambda: segmentation_covering([[0, 1]], [[0], [1]]), r"truth must have the shape of labels, \(1, 2\): got"),
        (lambda: contingency([[0.0, 1.0]], [[0, 1]]), "labels must be whole numbers: got 'float64'"),
        (lambda: scores(PAIR, []), r"annotations must be a list of label images, one or more: got \[\]"),
        (lambda: boundary_scores(PAIR, PAIR), "annotations must be a list of label images"),
        (lambda: probabilistic_rand_index(PAIR, [PAIR, PAIR.T]), r"annotations\[1\] must have the shape of labels, \(1, 2\)"),
        (lambda: boundary_scores(PAIR, [PAIR], tolerance=-0.1), "tolerance must be a finite number of at least 0"),
    ],
)  # fmt: skip
def test_wrong_input_gets_one_clear_line(call, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)
