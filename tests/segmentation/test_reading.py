"""How a picture is read is kept with its segmentation; one region for an image of contrast gets a warning."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

import spinseg as ss
from spinseg.image.contrast import Contrast
from spinseg.image.layout import Reading
from spinseg.segmentation.batch import segment_file, segment_files
from spinseg.segmentation.files import report_of
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.verdict import one_region_warning

FAST = {"preset": "paper", "count_weight": 1.0, "sweeps": 6, "chains": 1, "rng": 0}
SQUARE = np.zeros((48, 60))
SQUARE[10:40, 15:45] = 1
READING = Reading(intensity_range=(0.0, 4.0))


@pytest.fixture(scope="module")
def dim():
    """A square that uses a fiftieth of the intensities from 0 to 1, and what becomes of it."""
    return ss.segment(0.02 * SQUARE, **FAST)


def test_one_region_for_hidden_contrast_says_which_range_to_try(dim, tmp_path):
    assert dim.n_clusters == 1 and dim.warning in dim.verdict
    assert "Try intensity_range=(0, 0.02)" in dim.warning and "from 0 to 1." in dim.warning
    dim.save(tmp_path)
    reported = json.loads((tmp_path / "result.json").read_text())
    assert reported["warning"] == dim.warning and reported["verdict"].startswith(dim.warning)
    page = (tmp_path / "report.html").read_text()
    for sentence in dim.warning.split(". "):
        assert page.count(sentence) == 1 and page.index(sentence) < page.index("<h2>")


def test_the_range_that_is_tried_divides_it_and_is_kept(tmp_path):
    found = ss.segment(0.02 * SQUARE, intensity_range=(0, 0.02), **FAST)
    assert found.n_clusters > 1 and found.warning is None
    assert found.read_as.endswith("intensities from 0 to 0.02")
    assert "intensity_range=(0, 0.02)" in found.python_code
    again = eval(found.python_code, {"ss": ss, "image": 0.02 * SQUARE})
    assert np.array_equal(again.labels, found.labels) and again.read_as == found.read_as
    reported = found.summary()
    assert reported["intensity_range"] == [0, 0.02] and reported["read_as"] == found.read_as
    assert reported["channel_axis"] == "auto" and reported["read_otherwise"] is None
    assert found.read_as in report_of(found)


def test_flat_pictures_get_no_warning():
    flat = ss.segment(np.full((40, 40), 0.5), **FAST)
    assert flat.n_clusters == 1 and flat.warning is None and "Try" not in flat.verdict


@pytest.mark.parametrize(
    "preset, doubt, says",
    [
        (ss.Photo(), None, "differ by 30% of full intensity. Try a larger detail, such as detail=0.9 instead of 0.65."),
        (ss.Photo(detail=1.0), None, "Try more superpixels, such as n_sites=2000."),
        (ss.Paper(), None, "Try preset='photo', or more superpixels, such as n_sites=2000."),
        (
            ss.Photo(),
            "if axis 0 holds 5 channels, use channel_axis=0",
            "Try another reading: if axis 0 holds 5 channels, use channel_axis=0; or a larger detail, such as detail=0.9 instead of 0.65.",
        ),
    ],
)
def test_visible_contrast_says_what_to_try(preset, doubt, says):
    warning = one_region_warning(Contrast(0.3, 0.01), replace(READING, otherwise=doubt), preset)
    assert warning.startswith("The image came back as one region despite visible contrast") and warning.endswith(says)
    assert one_region_warning(Contrast(0.3, 0.04), READING, preset) is None  # it may be noise


def test_a_range_is_given_in_the_numbers_of_the_picture():
    warning = one_region_warning(Contrast(0.05, 0, (0.25, 0.375)), READING, ss.Photo())
    assert "only 5% of the intensities from 0 to 4. Try intensity_range=(1, 1.5)" in warning
    assert "0.5%" in one_region_warning(Contrast(0.005, 0), None, ss.Photo())


@pytest.mark.parametrize(
    "wrong", [(1, 1), (2, 1), (1,), 5, ("a", 2), (0, np.nan), (0, np.inf), "0 1", (1, 2, 3), (True, 2)], ids=repr
)
def test_a_wrong_range_is_one_line(wrong):
    for call in (ss.segment, ss.as_picture):
        with pytest.raises(ss.InvalidInput, match=r"^intensity_range must [^\n]*: got [^\n]*$"):
            call(SQUARE, intensity_range=wrong)
    with pytest.raises(ss.InvalidInput, match=r"^intensity_range must be None for a Picture"):
        ss.segment(ss.as_picture(SQUARE), intensity_range=(0, 1))


def test_the_python_line_names_what_was_given():
    line = ss.Photo().call("a.tif", {"channel_axis": 0, "intensity_range": (np.float64(0), 4095), "rng": np.int64(3)})
    assert line == "ss.segment('a.tif', 'photo', channel_axis=0, intensity_range=(0.0, 4095), rng=3)"
    line = ss.Paper(beta=np.float64(0.3)).call(None, {"mask": "an array", "seeds": {1: [(0, 2)]}}, init="found.last")
    assert line == "ss.segment(image, 'paper', beta=0.3, init=found.last, mask=mask, seeds={1: [(0, 2)]})"


def test_a_result_that_was_read_otherwise_is_not_resumed(tmp_path):
    np.save(tmp_path / "a.npy", np.stack([SQUARE, 1 - SQUARE, SQUARE]))
    source, out = str(tmp_path / "a.npy"), tmp_path / "out"
    given = FAST | {"channel_axis": 0, "intensity_range": (0, 2)}
    first = segment_file(source, str(out / "a"), given)
    assert first.error is None and first.summary["read_as"].startswith("an image of 60 x 48 pixels, color")

    def resumed(**changes):
        ((_, outcome),) = segment_files([source], out, given | changes, resume=True)
        return outcome

    assert resumed().done_before
    assert "channel_axis 0, not None" in resumed(channel_axis=None).error
    assert "intensity_range [0.0, 2.0], not None" in resumed(intensity_range=None).error
    stored = json.loads((out / "a" / "result.json").read_text())
    (out / "a" / "result.json").write_text(json.dumps(stored | {"intensity_range": "damaged"}))
    assert "holds the result of another run" in resumed().error


def test_a_file_that_was_not_asked_for_before_is_written_on_resuming_also_of_a_volume(tmp_path):
    volume = np.zeros((4, 20, 20), np.uint8)
    volume[:, :, 10:] = 200
    np.save(tmp_path / "volume.npy", volume)
    keywords = {**FAST, "channel_axis": None}

    def run(**how):
        ((_, outcome),) = segment_files([str(tmp_path / "volume.npy")], str(tmp_path / "out"), keywords, **how)
        return outcome

    folder = run().folder
    assert run(resume=True).done_before
    again = run(resume=True, also=["regions.csv", "regions.geojson"])
    assert not again.done_before and os.path.exists(os.path.join(folder, "regions.csv"))
    assert run(resume=True, also=["regions.csv", "regions.geojson"]).done_before  # a volume has no polygons


def test_the_kind_of_channels_is_kept_repeated_and_described(tmp_path):
    counts = np.random.default_rng(1).poisson(np.dstack([30 + 300 * SQUARE, 90 + 0 * SQUARE, 300 - 200 * SQUARE]))
    found = ss.segment(counts.astype(np.uint16), **FAST)
    assert found.read_as.startswith("3 measured channels") and found.summary()["channel_kind"] == "auto"
    assert "channel_kind" not in found.python_code and found.preset.not_validated(found.picture, False)
    color = ss.segment(counts.astype(np.uint16), channel_kind="color", **FAST)
    assert color.read_as.startswith("an image of 60 x 48 pixels, color") and "channel_kind='color'" in color.python_code
    np.save(tmp_path / "a.npy", counts.astype(np.uint16))
    given = FAST | {"channel_kind": "color"}
    first = segment_file(str(tmp_path / "a.npy"), str(tmp_path / "out" / "a"), given)
    assert first.error is None and first.summary["channel_kind"] == "color"
    ((_, again),) = segment_files([str(tmp_path / "a.npy")], tmp_path / "out", FAST, resume=True)
    assert "channel_kind color, not auto" in again.error
    with pytest.raises(ss.InvalidInput, match=r"^channel_kind must be one of .*: got 'sRGB'$"):
        ss.segment(SQUARE, channel_kind="sRGB")


def test_three_measured_channels_are_analyzed_in_components_and_photographs_as_they_are():
    counts = np.random.default_rng(1).poisson(np.dstack([30 + 300 * SQUARE, 9e4 + 0 * SQUARE, 3e4 - 9e3 * SQUARE]))
    measured, color = (prepare(counts, ss.Photo(), channel_kind=kind) for kind in ("measured", "color"))
    assert np.array_equal(color.working_image.picture.codes, color.picture.codes)
    assert measured.working_image.picture.channel_kind == "measured" and measured.relief is not None
    inner = measured.working_image.picture.values[SQUARE == 1].mean(axis=0)
    assert np.abs(inner - measured.working_image.picture.values[SQUARE == 0].mean(axis=0)).max() > 0.5


NODATA = np.where(np.random.default_rng(3).random(SQUARE.shape) < 0.01, -9999, 300 + 100 * SQUARE)
COUNTS = np.random.default_rng(4).poisson(2e5 + 3e5 * SQUARE).astype(np.uint32)
FULL = np.dstack([0 * COUNTS + 65535, 500 + COUNTS // 400, 0 * COUNTS]).astype(np.uint16)
HARD = {
    "isolated nodata": (NODATA.astype(np.float32), f"{(NODATA < 0).sum()} pixels left out as nodata (-9999)", 2),
    "isolated nodata, signed": (NODATA.astype(np.int16), "left out as nodata (-9999)", 2),
    "isolated nodata in five channels": (np.dstack([NODATA] * 5).astype(np.float32), "left out as nodata (-9999)", 2),
    "32-bit counts": (COUNTS, "gray, 32 bits, intensities from", 2),
    "saturated and empty channels": (FULL, "3 measured channels", 2),
    "slices or channels": (np.stack([NODATA.clip(0)] * 5, 0).astype(np.uint16), "a volume of 5 planes", 2),
    "constant channels": (np.full((30, 40, 3), 7.5), "intensities from 0 to 255", 1),
}


@pytest.mark.filterwarnings("ignore:.*left out as nodata")
@pytest.mark.parametrize("name", HARD)
def test_hard_input_is_read_in_a_way_that_is_stated_as_an_array_and_as_a_file(name, tmp_path):
    image, says, least = HARD[name]
    np.save(tmp_path / "a.npy", image)
    for given in (image, str(tmp_path / "a.npy")):
        axis = None if name == "slices or channels" else "auto"
        found = ss.segment(given, "classes", channel_axis=axis, sweeps=20, chains=1, rng=0)
        assert says in found.read_as and found.n_clusters >= least, found.read_as
        assert np.isfinite(found.boundary_probability).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_left_out_of_files_and_arrays_get_a_call_that_works(value, tmp_path):
    image = np.dstack([300 + 100 * SQUARE] * 5)
    image[3, 4, 2] = image[30, 30, 0] = value
    with pytest.raises(ss.InvalidInput, match=r"np\.ma\.masked_invalid\(image\)") as refused:
        ss.segment(image, **FAST)
    call = str(refused.value).partition("in Python, ")[2].partition("): got")[0]
    found = ss.segment(eval(call, {"np": np, "image": image}), **FAST)
    assert (found.labels == 0).sum() == 2
    np.save(tmp_path / "a.npy", image)
    found = ss.segment(tmp_path / "a.npy", **FAST)
    assert f"2 pixels left out as nodata ({value})" in found.read_as and (found.labels == 0).sum() == 2
