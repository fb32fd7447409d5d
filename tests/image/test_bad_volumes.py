"""Stacks, channels and volumes that cannot be read get one line: the name, the rule, and what was found."""

import gzip
import json
import logging
import os
import struct
import sys
from functools import partial

import numpy as np
import pytest
import tifffile
from image_files import DEEP, refusal
from kinds_of_files import FIVE, save_nifti, save_zarr

from spinseg._errors import MissingExtra
from spinseg.image.io import read_image, read_picture
from spinseg.image.picture import as_picture

pytest.importorskip("nibabel", reason="the extra [nifti] is not installed")
zarr = pytest.importorskip("zarr", reason="the extra [zarr] is not installed")

VOLUME = np.stack([DEEP, DEEP // 2, DEEP // 3]).astype(np.int16)


def replaced(path, before, after):
    """Change some bytes of a file, which must be there."""
    content = path.read_bytes()
    assert before in content and len(before) == len(after)
    path.write_bytes(content.replace(before, after))
    return path


OME, IMAGEJ, PLAIN = {"metadata": {"axes": "CYX"}}, {"imagej": True, "metadata": {"axes": "CYX"}}, {}
LIES = {
    "more channels": (OME, b'SizeC="5"', b'SizeC="9"'),
    "fewer channels": (OME, b'SizeC="5"', b'SizeC="3"'),
    "wider": (OME, b'SizeX="120"', b'SizeX="180"'),
    "ImageJ": (IMAGEJ, b"channels=5", b"channels=9"),
    "plain": (PLAIN, b"[5, 90, 120]", b"[7, 90, 120]"),
}


@pytest.mark.parametrize("lie", LIES)
def test_metadata_that_do_not_fit_the_pages_are_refused(lie, tmp_path):
    options, before, after = LIES[lie]
    path = tmp_path / ("five.ome.tif" if options is OME else "five.tif")
    tifffile.imwrite(path, FIVE, photometric="minisblack", **options)
    read_picture(path)
    text = refusal(read_picture, replaced(path, before, after))
    assert text.startswith(f"{path} must ")
    assert options is PLAIN or "must have metadata that fit its pages; received " in text


def test_ome_zarr_whose_metadata_lie_is_refused(tmp_path):
    for version in ("0.4", "0.5"):
        save_zarr(tmp_path / version, FIVE, "yx", version)
        text = refusal(read_picture, tmp_path / version)
        assert "must have the 2 axes that its metadata name, y, x; received (5, 90, 120)" in text
    save_zarr(tmp_path / "longer", FIVE, "cyx", "0.5")
    about = replaced(tmp_path / "longer" / "0" / "zarr.json", b"120", b"240")
    assert str(tmp_path / "longer") in refusal(read_picture, tmp_path / "longer")
    about.unlink()
    assert "must be a whole Zarr file" in refusal(read_picture, tmp_path / "longer")


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("kept", [0, 0.5, 0.98])
def test_a_truncated_chunk_is_refused(version, kept, tmp_path):
    save_zarr(tmp_path / "cut", FIVE, "cyx", version)
    chunk = max((path for path in tmp_path.rglob("*") if path.is_file()), key=os.path.getsize)
    os.truncate(chunk, int(kept * os.path.getsize(chunk)))
    assert f"{tmp_path / 'cut'} must be a whole Zarr file" in refusal(read_picture, tmp_path / "cut")


def test_a_group_without_an_image_and_a_folder_of_something_else_are_refused(tmp_path):
    zarr.open_group(str(tmp_path / "group"), mode="w")
    assert "no multiscales" in refusal(read_picture, tmp_path / "group")
    (tmp_path / "other").mkdir()
    assert "received 'a folder'" in refusal(read_picture, tmp_path / "other")
    (tmp_path / "other" / "zarr.json").write_text("[]")
    assert "must be a whole Zarr file" in refusal(read_picture, tmp_path / "other")


@pytest.mark.parametrize("place", ["filters", "compressor"])
@pytest.mark.parametrize("dtype", ["|u1", "|O"])
def test_no_pickle_in_zarr_is_run(place, dtype, tmp_path):
    """Metadata that call the chunks of an array pickled make some versions of zarr run them."""
    folder = tmp_path / "picture.zarr"
    folder.mkdir()
    about = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": dtype, "fill_value": 0, "order": "C"}
    about |= {"filters": None, "compressor": None}
    about[place] = [{"id": "pickle", "protocol": 0}] if place == "filters" else {"id": "pickle", "protocol": 0}
    (folder / ".zarray").write_text(json.dumps(about))
    (folder / "0.0").write_bytes(f"cos\nmkdir\n(S'{tmp_path / 'made'}'\ntR.".encode())
    assert str(folder) in refusal(read_picture, folder) and not (tmp_path / "made").exists()


def test_nifti_of_both_versions_axes_and_colors(tmp_path):
    assert np.array_equal(read_image(save_nifti(tmp_path / "2.nii", VOLUME, "Nifti2Image")), VOLUME)
    flat = save_nifti(tmp_path / "flat.nii", VOLUME[:1].transpose(1, 2, 0))
    assert read_picture(flat).shape == DEEP.shape
    color = np.zeros((4, 5, 6), [("R", "u1"), ("G", "u1"), ("B", "u1")])
    color["G"] = 200
    found = read_picture(save_nifti(tmp_path / "color.nii", color))
    assert found.shape == (4, 5, 6) and found.rgb[0, 0, 0].tolist() == [0, 200, 0]
    times = save_nifti(tmp_path / "times.nii", np.stack([VOLUME, VOLUME + 1], axis=-1))
    text = refusal(read_picture, times)
    assert "channel_axis names their axis" in text and "axes XYZT of (3, 30, 40, 2)" in text
    assert read_picture(times, channel_axis=3).codes.shape == (*VOLUME.shape, 2)


@pytest.mark.parametrize(
    ("place", "numbers", "says"),
    [
        (42, struct.pack("<3h", 30_000, 30_000, 30_000), "at most"),
        (42, struct.pack("<h", -3), "at least one pixel"),
        (108, struct.pack("<f", 2.0**30), "must have its numbers in the first"),  # after a gigabyte of extensions
        (344, b"ni1\0", "the header alone"),
        (0, struct.pack("<i", 347) + bytes(66) + struct.pack("<h", -252), "must "),  # nibabel would log this
    ],
)
def test_a_nifti_whose_header_lies_is_refused_and_nothing_is_logged(place, numbers, says, tmp_path, caplog):
    path = save_nifti(tmp_path / "a.nii", VOLUME)
    content = bytearray(path.read_bytes())
    content[place : place + len(numbers)] = numbers
    path.write_bytes(gzip.compress(content + bytes(2**20)) if place == 108 else content)
    assert says in refusal(read_image, path) and not caplog.records
    logging.getLogger("nibabel.global").warning("of somebody else")
    assert len(caplog.records) == 1


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_channel_that_is_not_finite_is_named(value, tmp_path):
    image = FIVE.astype(np.float32)
    image[3] = value
    tifffile.imwrite(tmp_path / "five.tif", image, **IMAGEJ)
    for keywords in ({}, {"intensity_range": (0, 4095)}):
        text = refusal(partial(read_picture, tmp_path / "five.tif", **keywords))
        assert text == f"image must hold finite numbers; received '{value} in channel 3 of 5'"
    text = refusal(partial(as_picture, np.full((9, 9, 2), value), channel_axis=-1))
    assert text.endswith("in channels 0, 1 of 2'")


@pytest.mark.parametrize(("package", "extra"), [("nibabel", "nifti"), ("zarr", "zarr")])
def test_without_its_reader_a_file_gets_the_line_that_names_the_extra(package, extra, tmp_path, monkeypatch):
    path = save_nifti(tmp_path / "a.nii", VOLUME) if extra == "nifti" else save_zarr(tmp_path / "a.zarr", FIVE, "cyx")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"^[^\n]*pip install '[^\n]*spinseg\[{extra}\][^\n]*$"):
        read_picture(path)
