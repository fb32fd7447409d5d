"""Files and volumes that cannot be read get one line: the name, the rule, and what was found; names and threads."""

import gzip
import json
import logging
import os
import struct
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import tifffile
from image_files import DEEP, RGB, jpeg, npy, png, refusal, saved, tiff, webp
from kinds_of_files import FIVE, save_nifti, save_zarr
from PIL import Image

from spinseg._errors import MissingExtra
from spinseg._run.atomic import atomic_write
from spinseg.image.decoders import check_size
from spinseg.image.io import MAX_PIXELS, read_image, read_mask, read_picture, write_png
from spinseg.image.picture import as_picture

needs_nibabel = pytest.mark.skipif(find_spec("nibabel") is None, reason="the extra [nifti] is not installed")
needs_zarr = pytest.mark.skipif(find_spec("zarr") is None, reason="the extra [zarr] is not installed")
LIMIT = f"at most {MAX_PIXELS} pixels"


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "'an empty file'"),
        ("Grüße aus Köln ".encode() * 100, "'text'"),
        (b"BMW is a car", "'text'"),
        (bytes(1000), r"b'\x00"),
        (b"\0\0\0\x18ftypheic" + bytes(90), "ftypheic"),
        (b"RIFF\x10\0\0\0WAVEfmt " + bytes(90), "WebP"),
        (png(30000, 30000, 8, 2), f"{LIMIT}: got (30000, 30000)"),
        (png(11000, 11000, 8, 2), "PNG file is damaged"),  # of a size for which Image.open would warn
        (b"GIF89a" + struct.pack("<HH", 30000, 30000) + b"\0\0\0,\0\0\0\0\1\0\1\0\0\2\0;", LIMIT),
        (b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54, 40, 30000, 30000, 1, 24, 0, 0, 0, 0, 0, 0), LIMIT),
        (webp(13000, 13000), "WebP"),
        (jpeg(30000, 30000), f"{LIMIT}: got (30000, 30000)"),
        (tiff(30000, 30000), f"{LIMIT}: got (30000, 30000)"),
        (tiff(0, 5), "at least one pixel"),
        (tiff(50, 50), "TIFF file is damaged"),
        (b"II*\0\x08\0\0\0", "TIFF file is damaged"),
        (b"MM\0*" + b"\xff" * 90, "TIFF file is damaged"),
        (npy((2**40, 2**40)), LIMIT),
        (npy((50, 50)), "NPY file is damaged"),
        (npy((2, 2), "<c8") + bytes(32), "hold numbers: got 'complex64'"),
        (npy((4,)) + bytes(4), "one image or volume, with or without channels: got (4,)"),
        (b"\x93NUMPY\x01", "NPY file is damaged"),
        (b"ZISRAWFILE" + bytes(90), "read it with bioio, and give the array: got 'a CZI file'"),
        (b"\x70\0\0\0" + bytes(90), "read it with bioio, and give the array: got 'a LIF file'"),
        (gzip.compress(b"not a volume" * 90, mtime=0), "another compressed file"),
    ],
)
def test_what_is_no_picture_gets_one_line_and_no_warning_print_or_log(content, says, tmp_path, capfd, caplog):
    path = tmp_path / "some photo.jpg"
    path.write_bytes(content)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        text = refusal(read_image, path)
    assert text.startswith((f"{path} must ", f"cannot read {path}: ")) and says in text
    assert not warned and capfd.readouterr() == ("", "") and not caplog.records


def test_a_pickle_is_not_run(tmp_path):
    (tmp_path / "x.npy").write_bytes(npy((1, 1), "|O") + f"cos\nmkdir\n(S'{tmp_path / 'made'}'\ntR.".encode())
    assert "NPY file is damaged" in refusal(read_image, tmp_path / "x.npy")
    assert not (tmp_path / "made").exists()
    np.load(tmp_path / "x.npy", allow_pickle=True)
    assert (tmp_path / "made").exists()  # so the pickle works


def test_giants_are_refused_before_they_are_read(tmp_path):
    (tmp_path / "big.npy").write_bytes(npy((2**20, 2**20)))
    os.truncate(tmp_path / "big.npy", 128 + 2**40)  # a hole: no disk is used
    assert f"at most {MAX_PIXELS} pixels" in refusal(read_image, tmp_path / "big.npy")
    check_size("x", (2**13, 2**14, 4), MAX_PIXELS)
    refusal(check_size, "x", (2**13, 2**14, 5), MAX_PIXELS)


Image.init()
FORMS = ("PNG", "JPEG", "JPEG2000", "GIF", "WEBP", "BMP", "TIFF")  # Pillow may be built without one
STACK = np.stack([DEEP] * 5)
WHOLE = {form: partial(saved, image=RGB, form=form) for form in FORMS if Image.SAVE.get(form)}
for kind, options in {"plain": {}, "unnamed": {"metadata": None}, "big": {"bigtiff": True, "compression": 8}}.items():
    WHOLE[f"{kind} stack"] = partial(tifffile.imwrite, data=STACK, photometric="minisblack", **options)
if find_spec("nibabel"):
    WHOLE |= {f"stack{suffix}": partial(save_nifti, array=STACK) for suffix in (".nii", ".nii.gz")}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_truncated_file_is_refused(kind, tmp_path):
    path = tmp_path / kind
    WHOLE[kind](path)
    assert read_image(path).shape == (STACK if "stack" in kind else RGB).shape
    content = path.read_bytes()
    for kept in (0.1, 0.3, 0.6, 0.95):
        path.write_bytes(content[: int(kept * len(content))])
        assert "file is damaged" in refusal(read_image, path)


def test_missing_files_folders_and_pipes_are_refused(tmp_path):
    text = refusal(read_image, tmp_path / "none.jpg", kind=FileNotFoundError)
    assert text == f"cannot read {tmp_path / 'none.jpg'}: no such file or directory"
    assert "got 'a folder without images'" in refusal(read_mask, str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    assert "got 'a pipe or a device'" in refusal(read_image, tmp_path / "pipe")
    refusal(read_image, tmp_path / ("x" * 300), kind=OSError)
    assert "a?b" in refusal(read_image, tmp_path / "a\nb", kind=FileNotFoundError)


@contextmanager
def nobody():
    """Without the rights of root, for whom every file can be read."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_without_permission_there_is_one_line():
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder) / "secret.png", RGB, "PNG")
        path.chmod(0)
        Path(folder).chmod(0o555)
        with nobody():
            text = refusal(read_image, path, kind=PermissionError)
            assert text == f"cannot read {path}: permission denied"
            text = refusal(atomic_write, path, lambda file: None, kind=PermissionError)
            assert text == f"cannot write {path}: permission denied"
        Path(folder).chmod(0o755)


def test_names_may_have_spaces_and_any_letters(tmp_path):
    for name in ("a photo.png", "Füße 写真.png", os.fsdecode(b"caf\xe9.png")):
        write_png(tmp_path / name, RGB)
        np.testing.assert_array_equal(read_image(str(tmp_path / name)), RGB)
        (tmp_path / name).write_bytes(b"text")
        refusal(read_image, tmp_path / name).encode()  # can be printed


def test_pillow_is_left_as_it_was_and_threads_do_not_mind(tmp_path):
    before = Image.MAX_IMAGE_PIXELS
    paths = [saved(tmp_path / form, RGB, form) for form in ("PNG", "BMP", "TIFF")] * 20
    (tmp_path / "bomb").write_bytes(png(30000, 30000, 8, 2))
    found = []
    threads = [threading.Thread(target=lambda path=path: found.append(read_image(path))) for path in paths]
    for thread in threads:
        thread.start()
        refusal(read_image, tmp_path / "bomb")
    for thread in threads:
        thread.join()
    assert len(found) == 60 and all(np.array_equal(one, RGB) for one in found)
    assert before == Image.MAX_IMAGE_PIXELS


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
    assert text.startswith((f"{path} must ", f"cannot read {path}: "))
    assert options is PLAIN or "must have metadata that fit its pages: got " in text


@needs_zarr
def test_ome_zarr_whose_metadata_lie_is_refused(tmp_path):
    for version in ("0.4", "0.5"):
        save_zarr(tmp_path / version, FIVE, "yx", version)
        text = refusal(read_picture, tmp_path / version)
        assert "must have the 2 axes that its metadata name, y, x: got (5, 90, 120)" in text
    save_zarr(tmp_path / "longer", FIVE, "cyx", "0.5")
    about = replaced(tmp_path / "longer" / "0" / "zarr.json", b"120", b"240")
    assert str(tmp_path / "longer") in refusal(read_picture, tmp_path / "longer")
    about.unlink()
    assert "Zarr file is damaged" in refusal(read_picture, tmp_path / "longer")


@needs_zarr
@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("kept", [0, 0.5, 0.98])
def test_a_truncated_chunk_is_refused(version, kept, tmp_path):
    save_zarr(tmp_path / "cut", FIVE, "cyx", version)
    chunk = max((path for path in tmp_path.rglob("*") if path.is_file()), key=os.path.getsize)
    os.truncate(chunk, int(kept * os.path.getsize(chunk)))
    assert f"cannot read {tmp_path / 'cut'}: the Zarr file is damaged" in refusal(read_picture, tmp_path / "cut")


@needs_zarr
def test_a_group_without_an_image_and_a_folder_of_something_else_are_refused(tmp_path):
    import zarr

    zarr.open_group(str(tmp_path / "group"), mode="w")
    assert "no multiscales" in refusal(read_picture, tmp_path / "group")
    (tmp_path / "other").mkdir()
    assert "got 'a folder without images'" in refusal(read_picture, tmp_path / "other")
    (tmp_path / "other" / "zarr.json").write_text("[]")
    assert "Zarr file is damaged" in refusal(read_picture, tmp_path / "other")


@needs_zarr
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


@needs_nibabel
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


@needs_nibabel
@pytest.mark.parametrize(
    ("place", "numbers", "says"),
    [
        (42, struct.pack("<3h", 30_000, 30_000, 30_000), "at most"),
        (42, struct.pack("<h", -3), "at least one pixel"),
        (108, struct.pack("<f", 2.0**30), "must have its numbers in the first"),  # after a gigabyte of extensions
        (344, b"ni1\0", "the header alone"),
        (0, struct.pack("<i", 347) + bytes(66) + struct.pack("<h", -252), "file is damaged"),  # nibabel would log this
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
        assert text == f"image must hold finite numbers: got '{value} in channel 3 of 5'"
    image[0, 5, 5] = np.nan  # in a channel that has numbers elsewhere
    assert refusal(partial(as_picture, image, channel_axis=0)).endswith("in channel 3 of 5'")
    assert as_picture(np.ma.masked_invalid(image[:3]), channel_axis=0).inside.sum() == image[0].size - 1
    text = refusal(partial(as_picture, np.full((9, 9, 2), value), channel_axis=-1))
    assert text.endswith("in channels 0, 1 of 2'")


@needs_zarr
@needs_nibabel
@pytest.mark.parametrize(("package", "extra"), [("nibabel", "nifti"), ("zarr", "zarr")])
def test_without_its_reader_a_file_gets_the_line_that_names_the_extra(package, extra, tmp_path, monkeypatch):
    path = save_nifti(tmp_path / "a.nii", VOLUME) if extra == "nifti" else save_zarr(tmp_path / "a.zarr", FIVE, "cyx")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"^[^\n]*pip install '[^\n]*spinseg\[{extra}\][^\n]*$"):
        read_picture(path)
