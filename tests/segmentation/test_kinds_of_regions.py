"""The preset for objects on a background: kinds of regions, how probable they are, and where they are shown."""

import json

import numpy as np
import pytest

import spinseg as ss
from spinseg.partition.pairs import kind_shares, majority_kinds, same_kind_probability


def discs(noise: float = 0.03) -> np.ndarray:
    """Six bright discs, two of which touch, and two of middle brightness on a dark ground."""
    y, x = np.indices((96, 128))
    image = np.full(y.shape, 0.1)
    for row, column in ((20, 20), (20, 42), (20, 100), (70, 20), (70, 60), (70, 104)):
        image[np.hypot(y - row, x - column) < 11] = 0.9
    for row, column in ((20, 70), (48, 82)):
        image[np.hypot(y - row, x - column) < 9] = 0.45
    return np.clip(image + np.random.default_rng(0).normal(0, noise, y.shape), 0, 1)


@pytest.fixture(scope="module")
def found():
    return ss.segment(discs(), "objects", count_weight=0.02, sweeps=60, rng=0)


def kind_at(found, row, column):
    return found.kinds[found.labels[row, column] - found.start_label]


def test_regions_that_look_alike_are_of_one_kind(found):
    ground, bright = kind_at(found, 2, 2), kind_at(found, 20, 20)
    assert ground == 0 and bright != ground
    assert all(kind_at(found, *place) == bright for place in ((20, 100), (70, 20), (70, 60), (70, 104)))
    assert kind_at(found, 20, 70) == kind_at(found, 48, 82) != ground
    assert found.labels[20, 20] != found.labels[70, 60]  # and yet they are two regions


def test_the_probability_that_two_regions_are_of_one_kind(found):
    same, label = found.same_kind, found.labels - found.start_label
    assert same.shape == (found.n_clusters, found.n_clusters)
    np.testing.assert_allclose(same, same.T)
    assert same.min() >= 0 and same.max() <= 1 + 1e-12
    assert same[label[70, 20], label[70, 104]] > 0.9 > 0.1 > same[label[70, 20], label[2, 2]]


def test_shares_and_majorities_of_kinds_by_hand():
    regions, area = np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 1.0, 1.0])
    draws = np.array([[0, 1, 1, 1], [0, 0, 0, 1]])
    np.testing.assert_allclose(kind_shares(regions, draws[0], area), [[0.25, 0.75], [0, 1]])
    np.testing.assert_array_equal(majority_kinds(regions, draws, area), [[1, 1], [0, 0]])
    np.testing.assert_allclose(same_kind_probability(regions, draws, area)[0], [(0.625 + 1) / 2, (0.75 + 0.5) / 2])


def test_kinds_are_in_the_table_the_report_and_the_files(found, tmp_path):
    rows = found.region_rows
    assert [row["kind"] for row in rows] == [int(found.kinds[row["label"] - 1]) for row in rows]
    found.save(tmp_path, names=["report.html", "result.json"])
    page = (tmp_path / "report.html").read_text()
    assert f"regions of {found.kinds.max() + 1} kinds" in page and "Kinds of regions" in page and ">Kind</th>" in page
    assert json.loads((tmp_path / "result.json").read_text())["regions"][0]["kind"] == rows[0]["kind"]


def test_other_presets_have_no_kinds():
    found = ss.segment(discs(), "measured", sweeps=5, rng=0)
    assert found.kinds is None and found.same_kind is None and "kind" not in found.region_rows[0]


def test_another_detail_has_kinds_of_its_own(found):
    finer = found.at(0.9)
    assert finer.kinds.size == finer.n_clusters
    assert kind_at(finer, 70, 20) == kind_at(finer, 70, 104) != kind_at(finer, 2, 2)


def test_a_volume_has_kinds():
    z, y, x = np.indices((16, 40, 60))
    inside = [np.hypot(np.hypot(z - 8, y - 20), x - c) < 7 for c in (14, 44)]
    found = ss.segment((inside[0] | inside[1]) * 0.8 + 0.1, "objects", count_weight=0.02, sweeps=30, rng=0)
    label = found.labels - 1
    assert found.kinds[label[8, 20, 14]] == found.kinds[label[8, 20, 44]] != found.kinds[label[0, 0, 0]]


def test_a_wrong_prior_of_kinds_is_refused():
    with pytest.raises(ValueError, match="kinds must be a PartitionPrior"):
        ss.Objects(kinds=3)
