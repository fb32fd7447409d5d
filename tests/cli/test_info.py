"""The command says how files are read, and takes what to read otherwise."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile

from command import spinseg

FAST = ["--preset", "paper", "--sweeps", "4", "--chains", "1", "--jobs", "1"]
FIRST = np.zeros((5, 48, 60), np.uint16)
FIRST[:, 10:40, 15:45] = 1000 * np.arange(1, 6)[:, None, None]
DOUBT = "if axis 0 holds 5 channels, use --channel-axis 0"


@pytest.fixture
def stack(tmp_path):
    tifffile.imwrite(tmp_path / "stack.tif", FIRST, photometric="minisblack")
    return str(tmp_path / "stack.tif")


def test_info_says_how_each_file_would_be_read_and_segments_nothing(stack, album, tmp_path):
    good, bad = album
    run = spinseg("info", stack, bad[0], good[0], check=2)
    volume = "a volume of 5 planes of 60 x 48 pixels, gray, 16 bits, intensities from 0 to 5000"
    color = "an image of 40 x 30 pixels, color, 8 bits, intensities from 0 to 255"
    assert run.stdout.splitlines() == [f"{stack}: {volume}; {DOUBT}", f"{good[0]}: {color}"]
    assert run.stderr.startswith(f"spinseg: {bad[0]} must be ") and run.stderr.count("\n") == 1
    assert not any(path.is_dir() for path in tmp_path.iterdir())


def test_info_takes_the_axis_and_the_range_and_tells_programs(stack):
    run = spinseg("info", stack, "--channel-axis", "0", "--intensity-range", "-5", "4095", "--json", check=0)
    (found,) = json.loads(run.stdout)["images"]
    assert found["read_as"] == "5 channels of 60 x 48 pixels, 16 bits, intensities from -5 to 4095"
    assert (found["form"], found["stored_shape"], found["axes"]) == ("TIFF", [5, 48, 60], "QYX")
    assert (found["n_channels"], found["channel_axis"], found["number_type"]) == (5, 0, "uint16")
    assert found["intensity_range"] == [-5, 4095] and found["otherwise"] is None and found["error"] is None
    three = Path(stack).with_name("three.npy")
    np.save(three, FIRST[:3])
    for kind, says in (("color", "an image of 60 x 48 pixels, color"), ("measured", "3 measured channels")):
        run = spinseg("info", three, "--channel-axis", "0", "--channel-kind", kind, check=0)
        assert run.stdout.startswith(f"{three}: {says}") and "--channel-kind" not in run.stdout
    run = spinseg("info", stack, "--channel-axis", "3", "--json", check=2)
    assert "channel_axis must be" in json.loads(run.stdout)["images"][0]["error"]
    assert run.stderr.startswith(
        f"spinseg: {stack}: --channel-axis must be None, 'auto' or an axis of the image of 3 axes"
    )


@pytest.mark.parametrize(
    "given, says",
    [
        (["--channel-axis", "last"], "--channel-axis must be auto, none or the number of an axis: got 'last'"),
        (["--channel-kind", "rgb"], "--channel-kind must be one of 'auto', 'color', 'measured': got 'rgb'"),
        (["--intensity-range", "5", "1"], "--intensity-range must be a finite number above 5: got 1.0"),
        (["--intensity-range", "0", "nan"], "--intensity-range must be a finite number above 0: got nan"),
    ],
)
@pytest.mark.parametrize("command", ["segment", "info", "large"])
def test_a_wrong_axis_or_range_is_one_line(command, given, says, stack, tmp_path):
    out = [] if command == "info" else ["--out", tmp_path / "out"]
    run = spinseg(command, stack, *given, *out, check=2)
    assert run.stderr.count("\n") == 1 and says in run.stderr and run.stdout == "" and not (tmp_path / "out").exists()


def test_segment_says_once_how_a_doubtful_file_was_read(stack, photo, tmp_path):
    run = spinseg("segment", stack, photo, "--out", tmp_path / "out", *FAST, check=0)
    lines = [line for line in run.stderr.splitlines() if "read as" in line]
    assert lines == [f"{stack} was read as {reported(tmp_path / 'out' / 'stack')['read_as']}; {DOUBT}"]
    assert "read as" not in run.stdout


def reported(folder):
    return json.loads((Path(folder) / "result.json").read_text())


def test_a_given_axis_and_range_are_used_and_doubted_no_more(stack, tmp_path):
    given = ["--channel-axis", "0", "--intensity-range", "0", "4095"]
    run = spinseg("segment", stack, "--out", tmp_path, *given, *FAST, "--json", check=0)
    (found,) = json.loads(run.stdout)["images"]
    assert found["read_as"] == "5 channels of 60 x 48 pixels, 16 bits, intensities from 0 to 4095"
    assert found["shape"] == [48, 60] and "read as" not in run.stderr
    assert "channel_axis=0, intensity_range=(0.0, 4095.0)" in found["python"]
    assert (found["channel_axis"], found["intensity_range"]) == (0, [0, 4095])


def test_an_axis_that_one_picture_lacks_does_not_keep_the_others_from_being_done(stack, tmp_path):
    np.save(tmp_path / "flat.npy", FIRST[0])
    run = spinseg(
        "segment", tmp_path / "flat.npy", stack, "--out", tmp_path / "out", "--channel-axis", "2", *FAST, check=2
    )
    assert "flat.npy: --channel-axis must be" in run.stderr and reported(tmp_path / "out" / "stack")["shape"] == [5, 48]
    assert not (tmp_path / "out" / "flat").exists()


def test_more_than_three_pictures_get_one_line_of_warnings(tmp_path):
    for name in "abcd":
        np.save(tmp_path / f"{name}.npy", FIRST[0] / 1e5)
    run = spinseg("segment", *sorted(tmp_path.glob("*.npy")), "--out", tmp_path / "out", *FAST, check=0)
    assert "Parts that differ share a region: a.npy, b.npy, c.npy, d.npy." in run.stdout
