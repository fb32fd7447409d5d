"""Objects on a background: their F1, the recipes that find them, and nuclei as a dataset with groups."""

import json

import numpy as np
import pytest
from photographs import new, write_png
from scipy import ndimage
from scipy.optimize import linear_sum_assignment

import spinseg as ss
from command import study
from spinseg._run import executor
from studies.evaluation.baselines import objects as recipes
from studies.evaluation.benchmark import evaluate
from studies.evaluation.calibration import annotated_separation
from studies.evaluation.datasets import nuclei
from studies.evaluation.methods import OBJECT_METHODS, Method
from studies.evaluation.objects import object_scores
from studies.evaluation.results import read_rows
from studies.evaluation.summary import scores_by_group, summarize


def matched_f1(labels, truth, above):
    """F1 from masks, one for each object, and the matching that has the most pairs above a threshold."""
    background = max(np.unique(labels), key=lambda label: np.count_nonzero(labels == label))
    found = [labels == label for label in np.unique(labels) if label != background]
    true = [truth == label for label in np.unique(truth) if label != 0]
    overlap = np.array([[(a & b).sum() / (a | b).sum() for b in true] for a in found]).reshape(len(found), len(true))
    pairs = linear_sum_assignment(overlap > above, maximize=True)
    return 2 * np.count_nonzero(overlap[pairs] > above) / (len(found) + len(true))


def blobs(rng, n, shape=(48, 64)):
    """Squares on a background, which hide each other, with numbers in any order."""
    image = np.zeros(shape, np.int32)
    for number in rng.permutation(np.arange(1, 3 * n))[:n]:
        row, column, side = rng.integers(0, 40), rng.integers(0, 56), rng.integers(3, 12)
        image[row : row + side, column : column + side] = number
    return image


def test_f1_is_that_of_the_best_matching_of_masks():
    rng, seen = np.random.default_rng(0), []
    for _ in range(30):
        truth = blobs(rng, 12)
        labels = np.roll(truth, rng.integers(-1, 2, 2), axis=(0, 1))
        labels = np.where(labels == 0, 77, labels)  # the largest, though not the lowest
        labels[rng.integers(0, 30) :, rng.integers(0, 60)] = 99
        seen.append(object_scores(labels, truth))
        assert seen[-1] == pytest.approx([matched_f1(labels, truth, above) for above in (0.5, 0.75)])
    assert len({found.f_75 for found in seen}) > 5 and any(found.f_75 < found.f_50 for found in seen)


def test_f1_of_label_images_made_by_hand():
    truth = np.array([[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 0]])
    assert object_scores(truth + 5, truth) == (1.0, 1.0)
    joined = np.where(truth > 0, 1, 0)  # intersection over union is .5, which is not above .5
    assert object_scores(joined, truth) == (0.0, 0.0)
    one_too_small = np.where(np.arange(17) == 7, 0, truth)  # .75, which is not above .75
    assert object_scores(one_too_small, truth) == (1.0, 0.5)
    assert object_scores(np.zeros_like(truth), truth) == (0.0, 0.0)
    assert object_scores(truth, np.zeros_like(truth)) == (0.0, 0.0)
    assert object_scores(np.zeros_like(truth), np.zeros_like(truth)) == (1.0, 1.0)
    left_out = np.where(truth == 2, -1, truth)
    assert object_scores(np.where(truth == 2, 9, truth), left_out) == (1.0, 1.0)
    cells = np.repeat([1, 2, 3], 4)[None]  # that fill the plane: the largest is an object, too
    assert object_scores(cells, cells) == (1.0, 1.0)
    assert object_scores(np.minimum(cells, 2), cells) == pytest.approx((0.4, 0.4))


def scene(seed=0, shape=(80, 96)):
    """Discs, some of which touch, and the image of dark ones in uneven light."""
    rows, columns = np.indices(shape)
    centers = [(20, 20), (20, 39), (55, 30), (55, 70), (30, 75)]
    distance = np.array([np.hypot(rows - y, columns - x) for y, x in centers])
    truth = np.where(distance.min(axis=0) < 11, distance.argmin(axis=0) + 1, 0)
    gray = 0.75 + 0.1 * columns / shape[1] - 0.4 * (truth > 0)
    gray += np.random.default_rng(seed).normal(0, 0.02, shape)
    return np.rint(255 * gray).astype(np.uint8), truth


@pytest.mark.parametrize("recipe", [recipes.otsu_watershed, recipes.local_watershed])
def test_recipes_find_dark_objects_as_they_find_bright_ones(recipe):
    image, truth = scene()
    for seen in (image, 255 - image, np.stack([image] * 3, axis=-1)):
        labels = recipe(seen)
        assert labels.dtype == np.int32 and np.array_equal(np.unique(labels), np.arange(6))
        assert object_scores(labels, truth).f_50 == 1.0
    assert not recipes.basins(np.full((9, 9), 0.3), 0.1).any()  # without a minimum there is one basin
    assert not recipe(np.full((40, 50), 90, np.uint8)).any()


def test_objects_are_the_rarer_side_of_the_threshold():
    gray = np.full((10, 10), 0.2)
    gray[:4] = 0.9
    assert recipes.bright_objects(gray) is gray
    gray[:6] = 0.9
    np.testing.assert_allclose(recipes.bright_objects(gray), np.where(gray > 0.5, 0, 0.7))


def test_small_objects_are_background_and_the_others_are_numbered_from_1():
    mask = np.zeros((30, 60), bool)
    mask[2:5, 2:5] = mask[10:20, 10:20] = mask[10:20, 40:50] = True
    labels = recipes.cut_touching(mask, min_distance=5, min_size=20)
    assert np.array_equal(np.unique(labels), [0, 1, 2])
    mask[2:5, 2:5] = False
    assert np.array_equal(labels > 0, mask)


def test_the_default_call_is_that_of_a_user_with_the_probabilities_of_its_outlines(tmp_path):
    image, truth = (array[:40, :60] for array in scene())
    write_png(tmp_path / "image.png", image)
    answer = OBJECT_METHODS["spinseg"].answer(tmp_path / "image.png", 3)
    seg = ss.segment(tmp_path / "image.png", rng=3)
    assert np.array_equal(answer.labels, seg.labels - 1)
    reported = answer.probabilities
    largest = np.zeros(reported.sites.max() + 1)
    for column in (0, 1):
        np.maximum.at(largest, reported.edges[:, column], reported.separation)
    inside = ndimage.maximum(seg.boundary_probability, reported.sites, np.arange(largest.size))
    np.testing.assert_allclose(inside, largest, atol=1e-6)
    assert np.isfinite(annotated_separation(reported.sites, reported.edges, [truth])).all()


@pytest.mark.parametrize("name", [name for name in OBJECT_METHODS if name != "spinseg"])
def test_every_method_for_objects_labels_every_pixel_from_0(name):
    labels = OBJECT_METHODS[name].answer(scene()[0], 5).labels
    assert labels.shape == (80, 96) and labels.dtype == np.int32
    assert np.array_equal(np.unique(labels), np.arange(labels.max() + 1))


@pytest.fixture
def album(tmp_path, monkeypatch):
    """Four images of nuclei in two groups, which are scored by this process."""
    monkeypatch.setattr(
        executor, "run_in_processes", lambda work, tasks, jobs, started: executor._run_here(work, tasks, started)
    )
    root = tmp_path / "nuclei"
    for i in range(4):
        image, truth = scene(i)
        write_png(root / "train" / "images" / f"n{i}.png", 255 - image if i == 3 else image)
        write_png(root / "train" / "labels" / f"n{i}.png", truth, np.uint16)
    groups = "image,group,nuclei\nn0,stained,5\nn1,stained,5\nn2,stained,5\nn3,dark,5\n"
    new(root / "train" / "groups.csv").write_text(groups)
    return tmp_path


def half(image, seed):
    """The objects in the left half, alone."""
    labels = recipes.otsu_watershed(image)
    labels[:, 48:] = 0
    return labels


def test_scores_of_groups_are_means_over_their_images(album):
    examples = nuclei(album, "train")
    assert [e.group for e in examples] == ["stained"] * 3 + ["dark"] and examples == nuclei(album / "nuclei", "train")
    assert [e.annotations()[0].max() for e in examples] == [5] * 4
    (album / "nuclei" / "train" / "labels" / "n1.png").write_bytes(
        (album / "nuclei" / "train" / "images" / "n1.png").read_bytes()
    )  # whose ground truth is hopeless
    methods = [Method("half", "", half, ""), OBJECT_METHODS["otsu-watershed"]]
    rows = evaluate(examples, methods, album / "r.csv", dataset="nuclei train")
    assert read_rows(album / "r.csv") == rows == evaluate(examples, methods, album / "r.csv", dataset="nuclei train")
    of_half = {
        row.image: object_scores(half(e.image(), 0), e.annotations()[0])
        for row, e in zip(rows[::2], examples, strict=True)
    }
    assert {row.image: row.objects for row in rows[::2]} == of_half and of_half["n0"].f_50 == 0.75
    groups, summary = scores_by_group(rows), summarize(rows)[0]
    assert list(groups) == ["dark", "stained"] and list(groups["dark"]) == ["half", "otsu-watershed"]
    assert groups["dark"]["half"] == of_half["n3"]
    expected = np.mean([of_half[name] for name in ("n0", "n1", "n2")], axis=0)
    assert groups["stained"]["half"] == pytest.approx(tuple(expected))
    assert (summary.f_50, summary.f_75) == pytest.approx(tuple(np.mean(list(of_half.values()), axis=0)))


def test_the_command_prints_methods_and_groups(album):
    out = album / "out" / "r.csv"
    usual = ("evaluate", "nuclei", "--root", album, "--split", "train", "--jobs", 1, "--out", out)
    found = study(*usual, "--methods", "otsu-watershed,network-watershed")
    assert found.returncode == 0, found.stderr
    assert all(word in found.stdout for word in ("network-watershed", "F1, IoU > .75", "stained", "1.000 / ", "ECE"))
    found = json.loads(study(*usual, "--methods", "otsu-watershed", "--json").stdout)
    assert found["dataset"] == "nuclei train" and found["groups"]["dark"]["otsu-watershed"]["f_50"] == 1.0
    assert "Objects" in (album / "out" / "r.html").read_text()
    assert "felzenszwalb" in study("evaluate", "nuclei", "--methods", "list").stdout
    wrong = study(*usual[:4], "--split", "val", "--out", out)
    assert wrong.returncode == 2 and "train" in wrong.stderr
