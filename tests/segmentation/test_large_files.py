"""`segment_large` reads the pixels that `segment` reads, of every kind of file, and keeps how it read them."""

import importlib.util
import json
from dataclasses import replace

import numpy as np
import pytest
import tifffile
from PIL import Image

from command import spinseg
from large_runs import open_array
from spinseg._errors import InvalidInput
from spinseg.image.io import read_picture
from spinseg.segmentation.large.files import open_picture, shared_image
from spinseg.segmentation.large.segment_large import segment_large

pytest.importorskip("dask.array", reason="the extra [distributed] is not installed")
zarr = pytest.importorskip("zarr", reason="the extra [zarr] is not installed")

DOWN, ACROSS = np.mgrid[:80, :100]
GRAY = np.uint8((DOWN // 15 * 40 + ACROSS // 20 * 5) % 256)
RGB = np.dstack([GRAY, GRAY[::-1], 255 - GRAY])
OPACITY = np.where(ACROSS < 30, 0, np.where(ACROSS < 60, 128, 255)).astype(np.uint8)
RGBA = np.dstack([RGB, OPACITY])
FIVE = np.stack([np.roll(GRAY, 9 * channel, axis=1) for channel in range(5)]).astype(np.uint16) * 16
WHOLE = (slice(0, 80), slice(0, 100))
FAST = {"n_sites": 40, "tile": 128, "sweeps": 2, "jobs": 1, "rng": 0}


def tiff(array, **options):
    return lambda path: tifffile.imwrite(path, array, **options)


def pillow(form, image, **options):
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    return lambda path: image.save(path, form, **options)


def nifti(path):
    import nibabel

    nibabel.save(nibabel.Nifti1Image(GRAY.astype(np.float32)[..., None], np.eye(4)), path)


def turned():
    exif = Image.Exif()
    exif[274] = 6
    return exif


FILES = {
    "bool.tif": tiff(GRAY > 100),
    "int16.tif": tiff(GRAY.astype(np.int16) * 30 - 2000, tile=(32, 32)),
    "uint32.tif": tiff(GRAY.astype(np.uint32) * 10**6),
    "float32.tif": tiff(np.float32(GRAY / 255), tile=(32, 32)),
    "float64.tif": tiff(GRAY / 255 * 1e4 - 7),
    "planar.tif": tiff(np.moveaxis(RGB, -1, 0), photometric="rgb", planarconfig="separate"),
    "opacity.tif": tiff(RGBA, photometric="rgb", extrasamples=["unassalpha"], tile=(32, 32)),
    "deep-opacity.tif": tiff(RGBA.astype(np.uint16) * 257, photometric="rgb", extrasamples=["unassalpha"]),
    "declared.tif": tiff(np.dstack([RGB, np.roll(GRAY, 9)]), photometric="rgb", extrasamples=["unassalpha"]),
    "infrared.tif": tiff(RGBA, photometric="rgb", extrasamples=["unspecified"]),
    "five.ome.tif": tiff(FIVE, metadata={"axes": "CYX"}),
    "last.tif": tiff(np.moveaxis(FIVE, 0, -1), photometric="minisblack", planarconfig="contig"),
    "infrared.npy": lambda path: np.save(path, np.dstack([RGB, np.roll(GRAY, 9)])),
    "infrared.zarr": lambda path: zarr.create_array(
        str(path), data=np.dstack([RGB, np.roll(GRAY, 9)]), chunks=(32, 32, 4)
    ),
    "opacity.zarr": lambda path: zarr.create_array(str(path), data=RGBA, chunks=(32, 32, 4)),
    "unnamed.tif": tiff(np.moveaxis(FIVE, 0, -1), photometric="minisblack"),
    "turned.tif": tiff(RGB, photometric="rgb", extratags=[(274, 3, 1, 6, True)]),
    "palette.tif": pillow("TIFF", Image.fromarray(RGB).quantize(16)),
    "cmyk.tif": pillow("TIFF", Image.fromarray(RGB).convert("CMYK")),
    "lzw.tif": pillow("TIFF", RGB, compression="tiff_lzw"),
    "gray.png": pillow("PNG", GRAY),
    "opacity.png": pillow("PNG", RGBA),
    "turned.jpg": pillow("JPEG", RGB, exif=turned()),
    "float.zarr": lambda path: zarr.create_array(str(path), data=GRAY / 255, chunks=(32, 32)),
    "float.npy": lambda path: np.save(path, GRAY / 255),
    "flat.nii": nifti,
}


@pytest.mark.parametrize("name", FILES)
def test_the_pixels_are_those_that_segment_reads(name, tmp_path):
    if name == "flat.nii" and importlib.util.find_spec("nibabel") is None:
        pytest.skip("the extra [nifti] is not installed")
    FILES[name](tmp_path / name)
    expected = read_picture(tmp_path / name)
    opened = open_picture(tmp_path / name)
    ends = opened.inferred_range()
    box = tuple(slice(0, length) for length in opened.array.shape[:2])
    reading = replace(opened.reading, intensity_range=ends)
    found = opened._replace(reading=replace(reading, channel_kind=None)).part(box)
    assert np.abs(found.codes.astype(int) - expected.codes).max() <= (
        129 if expected.reading.has_opacity else 0
    )  # half a step
    assert reading.with_doubt == expected.reading.with_doubt
    assert (opened.parts is None) == (
        name in ("palette.tif", "cmyk.tif", "lzw.tif") or not name.endswith((".tif", ".zarr"))
    )


@pytest.mark.parametrize("kind", ["bands.tif", "strips.tif", "cyx.zarr", "yxc.zarr", "plain.tif"])
def test_little_of_a_file_is_read_for_a_small_part(kind, tmp_path, monkeypatch):
    """Also where bands lie one behind the other. A file that has no parts is read once."""
    side = 3200 if kind == "plain.tif" else 1600
    array = np.broadcast_to(np.arange(side, dtype=np.uint16), (4, side, side)).copy()
    last = np.ascontiguousarray(np.moveaxis(array, 0, -1))
    write = {
        "bands.tif": tiff(array, photometric="minisblack", planarconfig="separate", tile=(64, 64)),
        "strips.tif": tiff(last, photometric="minisblack", planarconfig="contig", rowsperstrip=8),
        "plain.tif": tiff(array, photometric="minisblack", planarconfig="separate"),
        "cyx.zarr": lambda path: zarr.create_array(str(path), data=array, chunks=(1, 64, 64)),
        "yxc.zarr": lambda path: zarr.create_array(str(path), data=last, chunks=(64, 64, 4)),
    }
    write[kind](tmp_path / kind)
    opened, read, take = open_picture(tmp_path / kind, "auto", "measured"), [], zarr.Array.__getitem__

    def counted(array, box):
        found = take(array, box)
        read.append(np.size(found))
        return found

    monkeypatch.setattr(zarr.Array, "__getitem__", counted)
    part = opened._pixels((slice(700, 764), slice(800, 864)))
    assert part.shape == (64, 64, 4) and part[0, :, 0].tolist() == list(range(800, 864))
    assert (not read) == (kind == "plain.tif") == (opened.parts is None)
    assert sum(read) <= 4 * 1024 * 1024


def test_a_given_axis_and_range_are_kept_and_another_is_another_run(tmp_path):
    tifffile.imwrite(tmp_path / "three.tif", FIVE[:3], photometric="minisblack")
    given = {"channel_axis": 0, "intensity_range": (0, 4095)}
    found = segment_large(tmp_path / "three.tif", tmp_path / "out", **given, **FAST)
    reading = "3 measured channels of 100 x 80 pixels, 16 bits, intensities from 0 to 4095"
    assert found.read_as == f"{reading}; if its channels are colors, use channel_kind='color'"
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    assert told["read_as"] == reading and "channel_kind='color'" in told["read_otherwise"]
    assert told["intensity_range"] == [0, 4095] and told["warning"] is None
    for other in ({"intensity_range": (0, 4000)}, {"channel_axis": -3}, {"channel_kind": "color"}):
        with pytest.raises(InvalidInput, match=r"holds the result of another run [^\n]*$"):
            segment_large(tmp_path / "three.tif", tmp_path / "out", **given | other, **FAST)
    for wrong in ({"channel_axis": 3}, {"intensity_range": (1, 0)}, {"channel_kind": "rgb"}):
        with pytest.raises(InvalidInput, match=rf"^{next(iter(wrong))} must [^\n]*$"):
            segment_large(tmp_path / "three.tif", tmp_path / "wrong", **given | wrong, **FAST)
    assert not (tmp_path / "wrong").exists()


def test_the_command_says_once_how_a_doubtful_file_was_read(tmp_path):
    np.save(tmp_path / "infrared.npy", RGBA[..., [0, 1, 2, 0]])
    options = ("--sweeps", 2, "--n-sites", 20, "--jobs", 1)
    run = spinseg("large", tmp_path / "infrared.npy", "--out", tmp_path / "out", *options, check=0)
    assert run.stderr.count("is opacity") == 1 and "use --channel-kind color" in run.stderr


def test_polygons_of_too_many_pixels_are_refused_before_the_work(tmp_path, monkeypatch):
    np.save(tmp_path / "picture.npy", FIVE[0])
    monkeypatch.setattr("spinseg.segmentation.large.result.MAX_PIXELS", FIVE[0].size - 1)
    with pytest.raises(InvalidInput, match=r"^the image must have at most 7,999 pixels for polygons: got [^\n]*$"):
        segment_large(tmp_path / "picture.npy", tmp_path / "out", also=["regions.geojson"], **FAST)
    assert not (tmp_path / "out").exists()


def test_four_channels_without_opacity_stay_four_in_other_processes(tmp_path):
    np.save(tmp_path / "infrared.npy", RGBA)
    with shared_image(open_picture(tmp_path / "infrared.npy", -1), tmp_path, 64) as source:
        assert np.array_equal(open_array(*source).compute(), RGBA)


def test_a_file_that_is_read_whole_is_segmented_like_the_same_pixels_in_parts(tmp_path):
    Image.fromarray(RGBA).save(tmp_path / "a.png")
    FILES["opacity.tif"](tmp_path / "a.tif")
    whole, parts = (segment_large(tmp_path / f"a.{suffix}", tmp_path / suffix, **FAST) for suffix in ("png", "tif"))
    assert np.array_equal(whole.partition, parts.partition) and whole.graph.n_sites > 20
    assert whole.read_as == parts.read_as == str(read_picture(tmp_path / "a.png").reading)


def test_one_region_for_a_picture_of_contrast_gets_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.large.joining.MIN_PROBABILITY", 1.0)
    np.save(tmp_path / "bright.npy", (ACROSS > 50) * 0.8)
    bright = segment_large(tmp_path / "bright.npy", tmp_path / "bright", **FAST)
    assert "came back as one region" in bright.warning and bright.verdict.startswith(bright.warning)
    assert json.loads((tmp_path / "bright" / "result.json").read_text())["warning"] == bright.warning


def test_metadata_that_lie_and_numbers_that_are_none_get_one_line(tmp_path):
    path = tmp_path / "five.ome.tif"
    FILES["five.ome.tif"](path)
    path.write_bytes(path.read_bytes().replace(b'SizeC="5"', b'SizeC="9"'))
    with pytest.raises(InvalidInput, match=r"must have metadata that fit its pages: got [^\n]*$"):
        open_array(path)
    image = RGB / 255
    image[..., 1] = np.nan
    np.save(tmp_path / "nan.npy", image)
    with pytest.raises(InvalidInput, match=r"^image must hold finite numbers: got 'nan in channel 1 of 3'$"):
        segment_large(tmp_path / "nan.npy", tmp_path / "out", **FAST)
    assert not (tmp_path / "out").exists()


def test_nodata_does_not_hide_the_picture_and_is_reported(tmp_path):
    numbers = np.where(np.random.default_rng(0).random(GRAY.shape) < 0.01, -9999, GRAY * 4.0).astype(np.float32)
    tifffile.imwrite(tmp_path / "a.tif", numbers)
    found = segment_large(tmp_path / "a.tif", tmp_path / "out", **FAST)
    assert found.read_as.endswith("intensities from 0 to 880, pixels of -9999 (nodata) as black")
    assert open_picture(tmp_path / "a.tif").inferred_range() == found.reading.intensity_range


@pytest.mark.parametrize("dtype, value, shade", [("u2", 65535, "white"), ("f4", 7777, "white"), ("i2", -555, "black")])
def test_nodata_that_a_file_declares_does_not_hide_the_picture(dtype, value, shade, tmp_path):
    numbers = np.where(ACROSS < 10, value, GRAY * 2.0).astype(dtype)
    tifffile.imwrite(tmp_path / "a.tif", numbers, extratags=[(42113, "s", 0, str(value), True)])
    found = segment_large(tmp_path / "a.tif", tmp_path / "out", **FAST)
    assert found.read_as.endswith(f", pixels of {value} (nodata) as {shade}")
    assert found.reading.intensity_range == read_picture(tmp_path / "a.tif").reading.intensity_range
    opened = open_picture(tmp_path / "a.tif")
    elsewhere = opened._replace(reading=replace(opened.reading, nodata=1e9))
    assert elsewhere.nodata_note((0, 440)) == "" and elsewhere.inferred_range()[1 if value > 0 else 0] == value
    all_missing = opened._replace(array=opened.array[:, :10])
    assert all_missing.inferred_range() == elsewhere._replace(array=opened.array[:, :10]).inferred_range()
