"""The pipeline from a picture to files."""

import subprocess
import sys

import numpy as np
import pytest
from skimage.data import coffee
from skimage.io import imread

from spinseg.segment import segment


@pytest.fixture(scope="module")
def picture():
    return coffee()[100:200, 200:320]


def test_a_segmentation_has_the_shape_of_the_picture_and_repeats(picture):
    before = picture.copy()
    first = segment(picture, sweeps=60, chains=2, rng=3)
    again = segment(picture / 255.0, sweeps=60, chains=2, rng=3)
    np.testing.assert_array_equal(picture, before)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.labels.shape == first.sites.shape == first.boundary_probability.shape == picture.shape[:2]
    assert first.labels.dtype == np.int32 and set(np.unique(first.labels)) == set(range(first.n_clusters))
    assert first.boundary_probability.min() >= 0 and first.boundary_probability.max() <= 1
    assert first.model.log_posterior(first.chains.best_labels) == pytest.approx(first.chains.best_log_posterior)


def test_outside_the_mask_nothing_is_labelled(picture):
    mask = np.zeros(picture.shape[:2], bool)
    mask[20:70, 30:90] = True
    found = segment(picture, sweeps=20, chains=1, mask=mask, rng=0)
    assert ((found.labels == -1) == ~mask).all()
    assert not found.boundary_probability[~mask].any()


def test_saved_labels_read_back(picture, tmp_path):
    found = segment(picture, sweeps=20, chains=1, rng=0)
    found.save(tmp_path / "out")
    np.testing.assert_array_equal(imread(tmp_path / "out" / "labels.tif"), found.labels)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["boundary_probability.png", "labels.tif", "overlay.png"]


def test_the_demo_says_where_to_look(tmp_path):
    command = [sys.executable, "-m", "spinseg", "demo", "--out", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert str(tmp_path / "overlay.png") in run.stdout and (tmp_path / "overlay.png").exists()


def test_wrong_usage_is_one_line_and_exit_code_2():
    command = [sys.executable, "-m", "spinseg", "demo", "--seed", "-1"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.splitlines()[-1].startswith("spinseg: rng must be a whole number")
