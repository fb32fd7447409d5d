"""Labels count from 1, the largest first, with 0 outside, in memory and on disk alike; or from 0."""

import numpy as np
import pytest
from PIL import Image
from skimage.io import imread
from skimage.measure import regionprops

import spinseg as ss
from spinseg.image.render import label_colors
from spinseg.partition.numbering import label_image, largest_first

KEYWORDS = {"sweeps": 20, "chains": 1, "rng": 0}


@pytest.fixture(scope="module")
def mask():
    inside = np.ones((60, 90), bool)
    inside[:8] = inside[:, 70:] = False
    return inside


@pytest.fixture(scope="module")
def picture():
    image = np.random.default_rng(0).normal(60, 4, (60, 90, 3))
    image[12:40, 5:30] += 130
    image[20:50, 40:75, 0] += 150
    return np.clip(image, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module", params=["photo", "classes", "paper"])
def found(request, picture, mask):
    return ss.segment(picture, request.param, mask=mask, **KEYWORDS)


def test_the_largest_cluster_is_1_and_the_outside_0(found, mask):
    areas = np.bincount(found.labels.ravel())
    assert found.n_clusters == areas.size - 1 > 1 and areas[0] == np.count_nonzero(~mask)
    assert (np.diff(areas[1:]) <= 0).all() and ((found.labels == 0) == ~mask).all()
    np.testing.assert_array_equal(label_image(found.partition, found.sites, start_label=1), found.labels)


def test_others_see_every_region(found):
    props = regionprops(found.labels)
    assert [each.label for each in props] == list(range(1, found.n_clusters + 1))
    for label in range(1, found.n_clusters + 1):
        rows = [row for row in found.region_rows if row["label"] == label]
        assert sum(row["area"] for row in rows) == props[label - 1].area
        if len(rows) == 1:
            assert rows[0]["centroid"] == pytest.approx(props[label - 1].centroid, abs=0.01)
            assert rows[0]["bbox"] == list(props[label - 1].bbox)
    assert [row["region"] for row in found.region_rows] == list(range(1, len(found.region_rows) + 1))


def test_labels_may_start_at_0(found, picture, mask, tmp_path):
    other = ss.segment(picture, found.preset, mask=mask, start_label=0, **KEYWORDS)
    np.testing.assert_array_equal(other.labels, found.labels - 1)
    np.testing.assert_array_equal(other.partition, found.partition)
    np.testing.assert_array_equal(other.hierarchy.labels(0.5), found.hierarchy.labels(0.5) - 1)
    assert [row["label"] for row in other.region_rows] == [row["label"] - 1 for row in found.region_rows]
    assert "start_label=0" in other.python_code and "start_label" not in found.python_code
    for name, each in (("one", found), ("zero", other)):
        each.save(tmp_path / name)
        np.testing.assert_array_equal(imread(tmp_path / name / "labels.tif"), each.labels)
    with Image.open(tmp_path / "one" / "labels.png") as image:
        np.testing.assert_array_equal(np.asarray(image), found.labels)
    with Image.open(tmp_path / "zero" / "labels.png") as image:
        np.testing.assert_array_equal(np.asarray(image), np.where(other.labels < 0, 255, other.labels))
    colors = np.concatenate([np.full((1, 3), 255, np.uint8), label_colors(found.n_clusters)])
    for name in ("one", "zero"):  # the same colors, and white outside
        np.testing.assert_array_equal(imread(tmp_path / name / "labels.png"), colors[found.labels])
    np.testing.assert_array_equal(imread(tmp_path / "one" / "overlay.png"), imread(tmp_path / "zero" / "overlay.png"))


def test_clusters_of_equal_area_keep_their_order():
    partition, pixels = np.array([0, 1, 2, 1], np.int32), np.array([3, 1, 3, 2])
    assert largest_first(partition, pixels).tolist() == [0, 1, 2, 1]
    assert largest_first(partition, np.array([3, 1, 4, 2])).tolist() == [1, 2, 0, 2]
