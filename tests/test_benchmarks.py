"""What the benchmarks compare with must be right too."""

import numpy as np
from benchmarks import ground_truth, kept, plain, reading

import exact
import model_cases
import spinseg as ss
from effort import exhaustive
from spinseg.image.picture import as_picture


@exhaustive
def test_the_plain_numpy_sweep_leaves_the_posterior_invariant():
    graph, kept = exact.graph(5)
    model = ss.Model(graph, model_cases.likelihoods(5)["histogram"], ss.DirichletProcess(1.3), exact.POSITIVE[kept])
    rng = np.random.default_rng(0)
    probabilities = np.exp(exact.log_probabilities(model))
    rows = exact.partitions(5)
    starts = rows[rng.choice(len(rows), 3000, p=probabilities)]
    swept = [plain.sweep(model, start, 3.0, rng) for start in starts]
    first_seen = np.array([[z.tolist().index(label) for label in z] for z in swept])
    numbered = np.array([np.unique(row, return_inverse=True)[1] for row in first_seen])
    assert exact.p_value(exact.frequencies(numbered), probabilities) > 1e-4


def test_sites_within_a_radius_are_neighbors():
    centers = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 3.0], [9.0, 0.0]])
    assert sorted(reading.neighbors_within(centers, 2.0).edges.tolist()) == [[0, 1], [1, 2]]


def test_nearest_sites_are_those_with_the_nearest_centers():
    centers = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 3.0], [9.0, 0.0]])
    assert reading.nearest_neighbors(centers, 1).edges.tolist() == [[0, 1], [0, 3], [1, 2]]


def test_sites_by_normalized_cuts_are_regular_and_follow_a_strong_edge():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 33:] = 220
    sites = reading.normalized_cuts(as_picture(image))
    sides = [np.unique(side) for side in (sites[:, :33], sites[:, 33:])]
    assert not np.intersect1d(*sides).size
    assert 30 <= sites.max() + 1 <= 90


def test_a_score_counts_clusters_and_their_pieces():
    labels = np.array([[0, 1, 0], [0, 1, 0]], np.int32)
    halves = np.array([[5, 5, 7], [5, 5, 7]], np.int32)
    score = reading.score_of(labels, [labels, halves])
    assert score.nearest_rand == 1 and score.rand < 1 and (score.clusters, score.pieces) == (2, 3)


def test_a_study_that_was_killed_finds_its_finished_results_again(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    monkeypatch.setenv("SPINSEG_KEEP", str(path))
    before = kept.Kept()
    before.put({"one": 0.1, "two": reading.Score(0.5, 0.75, 2, 3)})
    before.put({"three": 3})
    path.write_bytes(path.read_bytes()[:-2])
    after = kept.Kept()
    assert after["one"] == 0.1 and reading.Score(*after["two"]).pieces == 3 and "three" not in after
    after.put({"three": 4})
    assert kept.Kept().results == {"one": 0.1, "two": [0.5, 0.75, 2, 3], "three": 4}


def test_a_study_without_a_file_keeps_its_results_in_memory(monkeypatch):
    monkeypatch.delenv("SPINSEG_KEEP", raising=False)
    results = kept.Kept()
    results.put({"one": 1})
    assert "one" in results and results["one"] == 1 and "two" not in results


def test_pieces_of_a_class_that_do_not_touch_are_apart_in_the_finer_ground_truth():
    truth = np.full((40, 40), -1, np.int32)
    truth[:20, :15], truth[:20, 25:], truth[30:, :20], truth[39, 39] = 4, 4, 7, 7
    pieces = ground_truth.pieces_of(truth)
    assert np.array_equal(pieces < 0, (truth < 0) | (np.add.outer(np.arange(40), np.arange(40)) == 78))
    assert ground_truth.n_regions(truth) == 2 and ground_truth.n_regions(pieces) == 3
    assert pieces[0, 0] != pieces[0, 39] and np.unique(pieces[30:, :20]).size == 1
