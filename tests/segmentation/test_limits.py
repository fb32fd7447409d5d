"""The result says what kind of image it was taken for, and warns, with a call to try, if parts that differ share a region."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import spinseg as ss
from spinseg.pictures import PICTURES
from spinseg.segmentation.verdict import SPLIT_LIMITS, split_warning
from studies.evaluation.metrics import adjusted_rand_index
from studies.scenes import membranes

FAST = {"sweeps": 6, "rng": 0, "workers": 1}
Y, X = np.indices((60, 90))
CELLS = 1.0 * np.any([np.hypot(Y - 30, X - x) < 12 for x in (25, 60)], axis=0)
PHOTOGRAPH = ss.as_picture(ss.read_picture(PICTURES["cat"].path).rgb[::2, ::2])
ONE = np.ones(CELLS.shape, np.int32)


@pytest.fixture(scope="module")
def cells():
    return ss.segment(CELLS, **FAST)


def test_a_measured_image_is_said_to_be_taken_for_one(cells, tmp_path):
    assert cells.preset == ss.Measured() and cells.taken_for == "a measured image (microscopy, raster, scan)"
    reported = (
        f"Taken for {cells.taken_for}; use preset='photo' if it is a photograph. These probabilities have not been"
    )
    assert reported in cells.verdict and cells.verdict.endswith("except microscope images of cell nuclei.")
    cells.save(tmp_path, ["report.html", "result.json"])
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept["taken_for"] == cells.taken_for and reported in kept["verdict"] and kept["calibrated"] is False
    assert f"Taken for {cells.taken_for}; use preset=" in (tmp_path / "report.html").read_text()
    assert ss.segment(CELLS, "photo", **FAST).preset == ss.Photo()  # the call that it names


def test_a_photograph_is_one_that_probabilities_were_validated_for():
    found = ss.segment(PHOTOGRAPH, **FAST)
    assert found.taken_for == "a photograph" == found.at(0.9).taken_for and found.calibrated
    assert found.verdict.endswith(
        "Taken for a photograph; the probabilities have been validated on everyday photographs."
    )
    other = ss.segment(PHOTOGRAPH, n_sites=100, **FAST)
    assert "Taken for a photograph. These probabilities have not been validated" in other.verdict


@pytest.mark.parametrize("preset", ["photo", "measured", "classes"])
def test_what_you_named_is_no_guess(preset):
    found = ss.segment(CELLS, preset, **FAST)
    assert found.taken_for is None is found.summary()["taken_for"] and "Taken for" not in found.verdict


def test_a_volume_is_no_photograph():
    assert "Taken for" not in ss.segment(np.stack([CELLS[:30, :40]] * 4), channel_axis=None, **FAST).verdict


def test_parts_that_differ_in_a_region_get_a_warning_and_a_call_by_kind_and_preset(cells):
    picture = cells.picture
    warning = split_warning(picture, ONE, ss.Photo())
    assert warning.startswith("Large regions have parts of clearly different intensity")
    assert warning.endswith("If they belong apart, try preset='measured'.")
    assert split_warning(picture, ONE, ss.Measured()).endswith("a larger detail, such as detail=0.9 instead of 0.5.")
    assert "detail=1 instead of 0.9" in split_warning(picture, ONE, ss.Measured(detail=0.9))
    assert split_warning(picture, ONE, ss.Classes()) is None  # it asks for no evidence of a boundary
    assert cells.warning is None is split_warning(picture, cells._region_image, ss.Photo())
    doubtful = (
        "a larger detail, such as detail=0.9 instead of 0.65; preset='measured' if it is not a photograph; "
        "or preset='classes' for materials and textures"
    )
    assert ss.Photo().advice(PHOTOGRAPH) == doubtful and ss.Paper().advice(PHOTOGRAPH) == ss.Paper().finer


def test_a_region_that_swallowed_an_object_shows_in_the_verdict(cells):
    joined = replace(cells, partition=np.where(cells.partition == 2, 0, cells.partition).astype(np.int32))
    assert joined.n_clusters == 2 and "parts of clearly different intensity" in joined.warning
    assert joined.verdict.startswith(joined.warning) and joined.summary()["warning"] == joined.warning


def test_photographs_are_allowed_parts_of_different_intensity(monkeypatch):
    """A gain between the limits is reported for a measured image alone."""
    between = (SPLIT_LIMITS["photograph"] + SPLIT_LIMITS["measured"]) / 2
    monkeypatch.setattr("spinseg.segmentation.verdict.split_gain", lambda *_: between)
    assert split_warning(PHOTOGRAPH, ONE, ss.Photo()) is None
    assert split_warning(ss.as_picture(CELLS), ONE, ss.Photo()) is not None


def test_the_call_for_a_volume_works():
    ball = 1.0 * (np.linalg.norm(np.indices((12, 24, 24)) - np.array([6, 12, 12])[:, None, None, None], axis=0) < 5)
    call = ss.Photo().advice(ss.as_picture(ball, channel_axis=None))
    assert call == "preset='classes'"
    assert eval(f"ss.segment(image, {call})", {"ss": ss, "image": ball}).n_clusters == 2


def test_the_call_that_a_warning_names_finds_the_cells():
    """Walls of cells are no boundaries of a photograph: the preset misses them, says so, and names the one that sees them."""
    before, after = [], []
    for seed in range(3):
        scene = membranes((96, 96), np.random.default_rng([seed, 39]))
        image = scene.image.mean(axis=-1)
        image = (image - image.min()) / np.ptp(image)
        found = ss.segment(image, "photo", sweeps=20, rng=seed, workers=1)
        if found.warning is None:
            continue
        assert found.warning in found.verdict and found.summary()["warning"] == found.warning
        (named,) = re.findall("preset='measured'", found.warning)
        call = f"ss.segment(image, {named}, sweeps=20, rng=seed)"
        before.append(adjusted_rand_index(found.labels, scene.labels))
        after.append(adjusted_rand_index(eval(call, {"ss": ss, "image": image, "seed": seed}).labels, scene.labels))
    assert before and np.mean(after) > np.mean(before) + 0.2
