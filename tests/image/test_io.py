"""Pictures come in from files of any kind, or one clear line does; files go out whole or not at all."""

import io
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image
from skimage import data
from skimage import io as skio

from spinseg.image import io as files
from spinseg.image.io import (
    MAX_PIXELS,
    read_image,
    read_mask,
    read_picture,
    write_labels_png,
    write_labels_tif,
    write_png,
)
from spinseg.image.picture import as_picture
from spinseg.image.render import label_colours
from spinseg.parallel.atomic import atomic_write

RGB = np.ascontiguousarray(data.astronaut()[100:130, 60:100])
GREY = RGB[..., 0].copy()
DEEP = GREY.astype(np.uint16) * 250 + 3  # nothing that 8 bits could hold
ALPHA = np.where(np.arange(40) < 10, 0, np.where(np.arange(40) < 20, 128, 255)).astype(np.uint8) * np.ones(
    (30, 1), "u1"
)
RGBA = np.dstack([RGB, ALPHA])


def saved(path, image, form, **options):
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, form, **options)
    return path


def png(width, height, depth, colour_type, rows=b"", extra=b""):
    """A PNG file by hand: what Pillow will not write, or what lies about its size."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff(width, height):
    """A TIFF file of 120 bytes that claims a size."""
    tags = ((256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1))
    tags += ((278, 4, height), (279, 4, 100))
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)


def jpeg(width, height):
    """A JPEG file that claims a size."""
    content = io.BytesIO()
    Image.fromarray(RGB).save(content, "JPEG")
    return content.getvalue().replace(struct.pack(">BHH", 8, 30, 40), struct.pack(">BHH", 8, height, width))


def webp(width, height):
    canvas = bytes(4) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    return b"RIFF" + struct.pack("<I", 22 + 90) + b"WEBPVP8X" + struct.pack("<I", 10) + canvas + bytes(90)


def npy(shape, dtype="|u1"):
    header = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def refusal(call, *args, kind=ValueError):
    """The one line of an error."""
    with pytest.raises(kind) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text and " must " in text and "; received " in text
    return text


# ---- what comes in -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form, options, array",
    [
        ("PNG", {}, RGB),
        ("PNG", {}, RGBA),
        ("PNG", {}, GREY),
        ("PNG", {}, DEEP),
        ("BMP", {}, RGB),
        ("BMP", {}, GREY),
        ("WEBP", {"lossless": True}, RGB),
        ("WEBP", {"lossless": True, "exact": True}, RGBA),
        ("TIFF", {}, RGB),
        ("TIFF", {}, RGBA),
        ("TIFF", {}, DEEP),
        ("TIFF", {"compression": "tiff_lzw"}, RGB),
        ("TIFF", {"compression": "tiff_lzw"}, RGBA),
        ("TIFF", {"compression": "tiff_lzw"}, DEEP),
        ("TIFF", {"compression": "tiff_lzw"}, GREY.astype(np.float32) / 7),
        ("TIFF", {"compression": "tiff_lzw"}, DEEP.astype(np.int32) * 1000),
        ("TIFF", {"compression": "tiff_adobe_deflate"}, RGB),
    ],
)
def test_what_is_stored_without_loss_is_read_without_loss(form, options, array, tmp_path):
    found = read_image(saved(tmp_path / "picture", array, form, **options))
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.writeable and found.flags.c_contiguous
    assert np.array_equal(read_picture(tmp_path / "picture").codes, as_picture(array).codes)


def test_a_jpeg_is_read_whatever_its_name_says(tmp_path):
    found = read_image(saved(tmp_path / "photo.png", RGB, "JPEG", quality=95))
    assert found.shape == RGB.shape and np.abs(found.astype(int) - RGB).mean() < 5


def test_one_bit_is_black_and_white(tmp_path):
    bits = GREY > 100
    for form in ("PNG", "BMP", "TIFF", "GIF"):
        found = read_image(saved(tmp_path / "bits", Image.fromarray(bits), form))
        assert np.array_equal(as_picture(found).codes, as_picture(bits).codes), form
    packed = read_image(saved(tmp_path / "bits", Image.fromarray(bits), "TIFF", compression="group4"))
    assert np.array_equal(packed, bits * np.uint8(255))


def test_a_palette_becomes_colours_with_and_without_transparency(tmp_path):
    indexed = Image.fromarray(RGB).quantize(16)
    expected = np.asarray(indexed.convert("RGB"))
    for form in ("PNG", "GIF", "TIFF", "BMP"):
        np.testing.assert_array_equal(read_image(saved(tmp_path / "p", indexed, form)), expected, strict=True)
    for form in ("PNG", "GIF"):
        found = read_image(saved(tmp_path / "p", indexed, form, transparency=3))
        assert np.array_equal(found[..., 3] == 0, np.asarray(indexed) == 3)
        opaque = found[..., 3] == 255
        assert opaque.any() and np.array_equal(found[opaque, :3], expected[opaque])


def test_grey_with_transparency_is_laid_over_white_like_colour(tmp_path):
    both = Image.merge("LA", [Image.fromarray(GREY), Image.fromarray(ALPHA)])
    expected = np.dstack([GREY, GREY, GREY, ALPHA])
    for form, options in (("PNG", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"})):
        np.testing.assert_array_equal(read_image(saved(tmp_path / "la", both, form, **options)), expected, strict=True)
    found = read_image(saved(tmp_path / "keyed", GREY, "PNG", transparency=int(GREY[0, 0])))
    assert np.array_equal(found[..., 3] == 0, GREY[0, 0] == GREY)
    deep = read_image(saved(tmp_path / "deep", DEEP, "PNG", transparency=int(DEEP[0, 0])))
    expected = np.dstack([DEEP, DEEP, DEEP, np.where(DEEP[0, 0] == DEEP, 0, 65535).astype(np.uint16)])
    np.testing.assert_array_equal(deep, expected, strict=True)
    assert np.array_equal(read_picture(tmp_path / "deep").inside, DEEP[0, 0] != DEEP)


def test_cmyk_becomes_rgb(tmp_path):
    cmyk = Image.fromarray(RGB).convert("CMYK")
    found = read_image(saved(tmp_path / "cmyk.jpg", cmyk, "JPEG", quality=95))
    assert found.shape == RGB.shape and np.abs(found.astype(int) - RGB).mean() < 10
    np.testing.assert_array_equal(read_image(saved(tmp_path / "cmyk.tif", cmyk, "TIFF")), RGB, strict=True)


def test_16_bit_colour_png_keeps_its_upper_8_bits(tmp_path):
    deep = np.dstack([DEEP, DEEP // 2, DEEP // 3])
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in deep)
    (tmp_path / "deep.png").write_bytes(png(40, 30, 16, 2, rows))
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), (deep >> 8).astype(np.uint8), strict=True)


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_comes_the_first_frame(form, tmp_path):
    first, *others = [Image.fromarray(np.full((6, 8, 3), level, np.uint8)) for level in (200, 90, 10)]
    options = {"lossless": True} if form == "WEBP" else {}
    found = read_image(saved(tmp_path / "film", first, form, save_all=True, append_images=others, **options))
    assert found.shape == (6, 8, 3) and (found == 200).all()


# ---- upright -------------------------------------------------------------------------------------------------------

TURNS = {
    1: RGB,
    2: RGB[:, ::-1],
    3: np.rot90(RGB, 2),
    4: RGB[::-1],
    5: RGB.swapaxes(0, 1),
    6: np.rot90(RGB, -1),
    7: np.rot90(RGB, 2).swapaxes(0, 1),
    8: np.rot90(RGB),
}


@pytest.mark.parametrize("orientation", TURNS)
def test_pictures_stand_upright(orientation, tmp_path):
    exif = Image.Exif()
    exif[274] = orientation
    for form, options in (("PNG", {}), ("WEBP", {"lossless": True})):
        found = read_image(saved(tmp_path / "turned", RGB, form, exif=exif, **options))
        np.testing.assert_array_equal(found, TURNS[orientation], strict=True)
    stored = np.asarray(Image.open(saved(tmp_path / "plain.jpg", RGB, "JPEG")))
    found = read_image(saved(tmp_path / "turned.jpg", RGB, "JPEG", exif=exif))
    turned = {8: np.rot90(stored), 6: np.rot90(stored, -1)}.get(orientation)
    assert found.shape == TURNS[orientation].shape and (turned is None or np.array_equal(found, turned))
    for options in ({}, {"compression": "tiff_lzw"}):
        found = read_image(saved(tmp_path / "turned.tif", RGB, "TIFF", tiffinfo={274: orientation}, **options))
        np.testing.assert_array_equal(found, TURNS[orientation], strict=True)


def test_planes_of_a_volume_and_planar_colours_stand_upright(tmp_path):
    tag = [(274, 3, 1, 6, True)]
    volume = np.stack([DEEP, DEEP + 1])
    tifffile.imwrite(tmp_path / "v.tif", volume, photometric="minisblack", extratags=tag)
    assert np.array_equal(read_image(tmp_path / "v.tif"), np.rot90(volume, -1, axes=(1, 2)))
    planar = np.moveaxis(RGB, -1, 0)
    tifffile.imwrite(tmp_path / "p.tif", planar, photometric="rgb", planarconfig="separate", extratags=tag)
    assert np.array_equal(read_image(tmp_path / "p.tif"), TURNS[6])


@pytest.mark.parametrize("order", "<>")
def test_damaged_exif_neither_warns_nor_hides_the_orientation(order, tmp_path):
    start = b"II*\0" if order == "<" else b"MM\0*"
    beyond = struct.pack(order + "HHII", 0x010F, 2, 5000, 60000)  # a maker's name far behind the end
    turn = struct.pack(order + "HHIHH", 274, 3, 1, 6, 0)
    exif = b"Exif\0\0" + start + struct.pack(order + "IH", 8, 9) + beyond + turn  # and seven entries that are missing
    saved(tmp_path / "x.jpg", RGB, "JPEG", exif=exif)
    content = (tmp_path / "x.jpg").read_bytes()
    (tmp_path / "x.jpg").write_bytes(content[:2] + content[20:])  # no JFIF header, like a camera's
    assert read_image(tmp_path / "x.jpg").shape == (40, 30, 3)
    (tmp_path / "y.jpg").write_bytes((content[:2] + content[20:]).replace(turn, b"\xff" * 12))
    assert read_image(tmp_path / "y.jpg").shape == RGB.shape


# ---- TIFF and NPY --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i2", "i4", "f4", "f8", ">u2", ">f4"])
@pytest.mark.parametrize("shape", [(30, 40), (7, 30, 40), (1, 1), (1, 9), (1, 30, 40)])
def test_tiff_and_npy_keep_numbers_and_shapes(dtype, shape, tmp_path):
    array = np.resize(DEEP, shape).astype(dtype)
    expected = array.astype(array.dtype.newbyteorder("="))
    tifffile.imwrite(tmp_path / "a.tif", array, photometric="minisblack", byteorder=">" if dtype[0] == ">" else "<")
    np.save(tmp_path / "a.npy", array)
    for name in ("a.tif", "a.npy"):
        found = read_image(tmp_path / name)
        np.testing.assert_array_equal(found, expected, strict=True)
        assert found.dtype.isnative
        assert as_picture(found).shape == shape


def test_channels_of_a_tiff_come_last_wherever_they_are_stored(tmp_path):
    path = tmp_path / "c.tif"
    planar = np.moveaxis(RGB, -1, 0)
    tifffile.imwrite(path, planar, photometric="rgb", planarconfig="separate")
    np.testing.assert_array_equal(read_image(path), RGB, strict=True)
    stack = np.stack([np.stack([DEEP + 9 * z + c for c in range(2)]) for z in range(5)])
    for options in ({"imagej": True}, {"ome": True}):
        tifffile.imwrite(path, stack, metadata={"axes": "ZCYX"}, **options)
        np.testing.assert_array_equal(read_image(path), np.moveaxis(stack, 1, -1), strict=True)
    unnamed = np.moveaxis(stack, 1, -1)
    tifffile.imwrite(path, unnamed, photometric="minisblack")
    np.testing.assert_array_equal(read_image(path), unnamed, strict=True)
    frames = [Image.fromarray(plane) for plane in (GREY, GREY // 2, GREY // 3)]
    saved(path, frames[0], "TIFF", save_all=True, append_images=frames[1:], compression="tiff_lzw")
    np.testing.assert_array_equal(read_image(path), np.stack(frames), strict=True)


def test_channels_are_told_from_planes_and_from_opacity(tmp_path):
    six = np.dstack([RGB, RGB // 2])
    tifffile.imwrite(tmp_path / "six.tif", six, photometric="minisblack", planarconfig="contig")
    assert read_picture(tmp_path / "six.tif").codes.shape == (30, 40, 6)
    tifffile.imwrite(tmp_path / "six.tif", np.moveaxis(six, -1, 0), imagej=True, metadata={"axes": "CYX"})
    assert read_picture(tmp_path / "six.tif").codes.shape == (30, 40, 6)
    tifffile.imwrite(tmp_path / "infrared.tif", RGBA, photometric="rgb", extrasamples=["unspecified"])
    assert read_picture(tmp_path / "infrared.tif").n_channels == 4
    tifffile.imwrite(tmp_path / "opacity.tif", RGBA, photometric="rgb", extrasamples=["unassalpha"])
    assert (read_picture(tmp_path / "opacity.tif").rgb[:, :10] == 255).all()
    inside = np.zeros((30, 40), bool)
    inside[:5] = True
    np.save(tmp_path / "nan.npy", np.where(inside, GREY / 255, np.nan))
    assert read_picture(tmp_path / "nan.npy", mask=inside).shape == (30, 40)


def test_a_tiff_of_five_axes_is_refused(tmp_path):
    tifffile.imwrite(tmp_path / "5.tif", np.zeros((3, 4, 2, 8, 9), "u2"), imagej=True, metadata={"axes": "TZCYX"})
    assert "axes TZCYX of (3, 4, 2, 8, 9)" in refusal(read_image, tmp_path / "5.tif")


# ---- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, says",
    [
        (b"", "'an empty file'"),
        (b"not a picture at all\n" * 40, "'text'"),
        ("Grüße aus Köln ".encode() * 100, "'text'"),
        (b"BMW is a car", "'text'"),
        (bytes(1000), r"b'\x00"),
        (b"\0\0\0\x18ftypheic" + bytes(90), "ftypheic"),
        (b"RIFF\x10\0\0\0WAVEfmt " + bytes(90), "WebP"),
        (png(30000, 30000, 8, 2), f"at most {MAX_PIXELS} pixels; received (30000, 30000)"),
        (png(11000, 11000, 8, 2), "whole PNG"),  # of a size for which Image.open would warn
        (
            b"GIF89a" + struct.pack("<HH", 30000, 30000) + b"\0\0\0,\0\0\0\0\1\0\1\0\0\2\0;",
            f"at most {MAX_PIXELS} pixels",
        ),
        (b"BM" + struct.pack("<IIIIiiHHIIiiII", 0, 0, 54, 40, 30000, 30000, 1, 24, 0, 0, 0, 0, 0, 0), "at most"),
        (webp(30000, 30000), "WebP"),
        (jpeg(30000, 30000), f"at most {MAX_PIXELS} pixels; received (30000, 30000)"),
        (tiff(30000, 30000), f"at most {MAX_PIXELS} pixels; received (30000, 30000)"),
        (tiff(2**32 - 1, 2**32 - 1), "at most"),
        (tiff(0, 5), "at least one pixel"),
        (tiff(50, 50), "whole TIFF"),
        (b"II*\0", "whole TIFF"),
        (b"II*\0\x08\0\0\0", "whole TIFF"),
        (b"MM\0*" + b"\xff" * 90, "whole TIFF"),
        (npy((2**40, 2**40)), f"at most {MAX_PIXELS} pixels"),
        (npy((50, 50)), "whole NPY"),
        (npy((2, 2), "<c8") + bytes(32), "hold numbers; received 'complex64'"),
        (npy((4,)) + bytes(4), "one picture or volume, with or without channels; received (4,)"),
        (npy((0, 4)), "pixel"),
        (b"\x93NUMPY\x01", "whole NPY"),
    ],
)
def test_what_is_no_picture_is_one_line(content, says, tmp_path):
    path = tmp_path / "some photo.jpg"
    path.write_bytes(content)
    text = refusal(read_image, path)
    assert text.startswith(f"{path} must ") and says in text


def test_nothing_is_printed_beside_that_line(tmp_path):
    script = (
        "import sys\n"
        "from spinseg.image.io import read_image\n"
        "for path in sys.argv[1:]:\n"
        "    try: read_image(path)\n"
        "    except ValueError: print('refused')\n"
    )
    contents = [png(11000, 11000, 8, 2), png(30000, 30000, 8, 2), jpeg(30000, 30000), webp(13000, 13000)]
    contents += [tiff(30000, 30000), b"II*\0\x08\0\0\0", b"II*\0\xff\xff\xff\x00", b"MM\0*" + b"\xff" * 90]
    for number, content in enumerate(contents):
        (tmp_path / str(number)).write_bytes(content)
    command = [sys.executable, "-c", script, *map(str, sorted(tmp_path.iterdir()))]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["refused"] * len(contents) and run.stderr == ""


def test_a_pickle_is_not_run(tmp_path):
    (tmp_path / "x.npy").write_bytes(npy((1, 1), "|O") + f"cos\nmkdir\n(S'{tmp_path / 'made'}'\ntR.".encode())
    assert "must be a whole NPY file" in refusal(read_image, tmp_path / "x.npy")
    assert not (tmp_path / "made").exists()
    np.load(tmp_path / "x.npy", allow_pickle=True)
    assert (tmp_path / "made").exists()  # so the pickle works


def test_giants_are_refused_before_they_are_read(tmp_path):
    (tmp_path / "big.npy").write_bytes(npy((2**20, 2**20)))
    os.truncate(tmp_path / "big.npy", 128 + 2**40)  # a hole: no disk is used
    assert f"at most {MAX_PIXELS} pixels" in refusal(read_image, tmp_path / "big.npy")
    files._affordable("x", (2**13, 2**14, 4), files.MAX_PIXELS)
    refusal(files._affordable, "x", (2**13, 2**14, 5), files.MAX_PIXELS)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
@pytest.mark.parametrize("kept", [0.1, 0.3, 0.9, 0.97])
def test_a_truncated_file_is_refused(form, kept, tmp_path):
    content = io.BytesIO()
    Image.fromarray(RGB).save(content, form)
    (tmp_path / "cut").write_bytes(content.getvalue()[: int(kept * len(content.getvalue()))])
    assert "must be a whole " in refusal(read_image, tmp_path / "cut")


def test_a_truncated_stack_is_refused(tmp_path):
    for options in ({}, {"compression": "zlib"}, {"metadata": None}, {"bigtiff": True, "compression": "zlib"}):
        tifffile.imwrite(tmp_path / "cut", np.stack([DEEP] * 5), photometric="minisblack", **options)
        assert read_image(tmp_path / "cut").shape == (5, 30, 40)
        content = (tmp_path / "cut").read_bytes()
        for kept in (0.3, 0.6, 0.95):
            (tmp_path / "cut").write_bytes(content[: int(kept * len(content))])
            assert "must be a whole TIFF" in refusal(read_image, tmp_path / "cut")


def test_missing_files_folders_and_pipes_are_refused(tmp_path):
    text = refusal(read_image, tmp_path / "none.jpg", kind=FileNotFoundError)
    assert text == f"{tmp_path / 'none.jpg'} must be a file that can be read; received No such file or directory"
    assert "received 'a folder'" in refusal(read_image, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "received 'a pipe or a device'" in refusal(read_image, tmp_path / "pipe")
    refusal(read_image, tmp_path / ("x" * 300), kind=OSError)
    assert "a?b" in refusal(read_image, tmp_path / "a\nb", kind=FileNotFoundError)
    refusal(read_mask, str(tmp_path), kind=ValueError)


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
            assert text == f"{path} must be a file that can be read; received Permission denied"
            text = refusal(atomic_write, path, lambda file: None, kind=PermissionError)
            assert text == f"{path} must be a file that can be written; received Permission denied"
        Path(folder).chmod(0o755)


def test_names_may_have_spaces_and_any_letters(tmp_path):
    for name in ("a photo.png", "Füße 写真.png", "ß.tif", os.fsdecode(b"caf\xe9.png")):
        write_png(tmp_path / name, RGB)
        np.testing.assert_array_equal(read_image(str(tmp_path / name)), RGB)
        (tmp_path / name).write_bytes(b"text")
        refusal(read_image, tmp_path / name).encode()  # can be printed
    np.save(tmp_path / "é ü.npy", GREY)
    np.testing.assert_array_equal(read_image(tmp_path / "é ü.npy"), GREY)


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


# ---- masks ---------------------------------------------------------------------------------------------------------


def test_a_mask_is_what_is_neither_black_nor_transparent(tmp_path):
    inside = np.zeros((30, 40), bool)
    inside[5:20, 7:31] = True
    for form in ("PNG", "BMP", "TIFF", "GIF"):
        for mask in (inside, inside * np.uint8(255), inside * np.uint8(1)):
            found = read_mask(saved(tmp_path / "mask", mask, form))
            np.testing.assert_array_equal(found, inside, strict=True)
    blue = np.zeros((30, 40, 3), np.uint8)
    blue[inside, 2] = 1
    assert np.array_equal(read_mask(saved(tmp_path / "mask", blue, "PNG")), inside)
    hidden = np.dstack([blue, ALPHA])
    assert np.array_equal(read_mask(saved(tmp_path / "mask", hidden, "PNG")), inside & (ALPHA > 0))
    clear = np.dstack([blue, inside * np.uint8(255)])
    clear[..., 0] = 9  # also where it is transparent
    assert np.array_equal(read_mask(saved(tmp_path / "mask", clear, "PNG")), inside)
    np.save(tmp_path / "mask.npy", np.where(inside, -0.5, np.nan))
    assert np.array_equal(read_mask(tmp_path / "mask.npy"), inside)
    volume = np.stack([inside, ~inside, inside, inside, inside])
    tifffile.imwrite(tmp_path / "mask.tif", volume.astype(np.uint16), photometric="minisblack")
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.tif"), volume, strict=True)
    six = np.zeros((30, 40, 6), np.uint8)
    six[inside, 5] = 1
    tifffile.imwrite(tmp_path / "mask.tif", six, photometric="minisblack", planarconfig="contig")
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.tif"), inside, strict=True)


# ---- what goes out -------------------------------------------------------------------------------------------------


def some_labels(n, shape=(30, 40)):
    """Labels from -1 to n - 1, all of them there."""
    return np.resize(np.arange(-1, n, dtype=np.int32), shape)


@pytest.mark.parametrize(
    "first, n, shape, dtype",
    [
        (0, 5, (30, 40), np.uint16),
        (0, 65536, (256, 256), np.uint16),
        (0, 65537, (257, 256), np.int32),
        (-1, 5, (30, 40), np.int32),
        (0, 5, (6, 30, 40), np.uint16),
        (-1, 5, (6, 30, 3), np.int32),
        (0, 5, (3, 30, 40), np.uint16),
        (0, 5, (1, 30, 40), np.uint16),
        (-1, 0, (1, 1), np.int32),
    ],
)
def test_label_tiffs_read_back_in_other_tools(first, n, shape, dtype, tmp_path):
    labels = np.resize(np.arange(first, n, dtype=np.int32), shape)
    kept = labels.copy()
    write_labels_tif(tmp_path / "labels.tif", labels)
    np.testing.assert_array_equal(labels, kept)
    expected = labels.astype(dtype)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "labels.tif"), expected, strict=True)
    if shape[0] != 3:  # three planes scikit-image takes for red, green and blue, whatever the file says
        np.testing.assert_array_equal(skio.imread(tmp_path / "labels.tif"), expected)
    np.testing.assert_array_equal(read_image(tmp_path / "labels.tif"), expected, strict=True)
    with Image.open(tmp_path / "labels.tif") as image:
        assert image.n_frames == (shape[0] if len(shape) == 3 else 1)
        np.testing.assert_array_equal(np.asarray(image), expected.reshape(-1, *shape[-2:])[0])


@pytest.mark.parametrize("n", [0, 1, 2, 14, 255])
def test_the_indices_of_a_label_png_are_the_labels(n, tmp_path):
    labels, colours = some_labels(n), label_colours(n + 3)
    write_labels_png(tmp_path / "labels.png", labels, colours)
    assert (tmp_path / "labels.png").read_bytes()[24:26] == bytes([8, 3])  # 8 bits, indexed
    with Image.open(tmp_path / "labels.png") as image:
        np.testing.assert_array_equal(
            np.asarray(image), np.where(labels < 0, 255, labels).astype(np.uint8), strict=True
        )
    shown = np.vstack([colours[:n], np.full((1, 3), 255, np.uint8)])[labels]
    np.testing.assert_array_equal(skio.imread(tmp_path / "labels.png"), shown, strict=True)
    np.testing.assert_array_equal(read_image(tmp_path / "labels.png"), shown, strict=True)


@pytest.mark.parametrize("n", [256, 65535])
def test_a_png_of_many_labels_is_16_bit_grey(n, tmp_path):
    labels = some_labels(n, (256, 256))
    write_labels_png(tmp_path / "labels.png", labels, label_colours(n))
    expected = np.where(labels < 0, 65535, labels).astype(np.uint16)
    np.testing.assert_array_equal(skio.imread(tmp_path / "labels.png"), expected, strict=True)
    np.testing.assert_array_equal(read_image(tmp_path / "labels.png"), expected, strict=True)


@pytest.mark.parametrize(
    "pixels", [RGB, GREY, DEEP, DEEP.astype(">u2"), RGB[::-1, ::2]], ids=["rgb", "8", "16", "big-endian", "view"]
)
def test_pictures_read_back(pixels, tmp_path):
    write_png(tmp_path / "out.png", pixels)
    expected = pixels.astype(pixels.dtype.newbyteorder("="))
    np.testing.assert_array_equal(skio.imread(tmp_path / "out.png"), expected, strict=True)
    np.testing.assert_array_equal(read_image(tmp_path / "out.png"), expected, strict=True)


def test_the_same_data_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_labels_tif(tmp_path / f"{name}.tif", some_labels(5, (4, 30, 40)))
        write_labels_png(tmp_path / f"{name}.png", np.asfortranarray(some_labels(5)).astype(np.int64), label_colours(5))
        write_png(tmp_path / f"{name}.rgb", RGB if name == "a" else RGB[::-1].copy()[::-1])
        write_png(tmp_path / f"{name}.grey", DEEP)
    for suffix in ("tif", "png", "rgb", "grey"):
        content = (tmp_path / f"a.{suffix}").read_bytes()
        assert content == (tmp_path / f"b.{suffix}").read_bytes()
        assert b"tIME" not in content and b"/tmp" not in content
    with tifffile.TiffFile(tmp_path / "a.tif") as written:
        assert "DateTime" not in written.pages[0].tags
    np.testing.assert_array_equal(skio.imread(tmp_path / "a.rgb"), RGB, strict=True)


@pytest.mark.parametrize(
    "call, args, says",
    [
        (write_labels_tif, ([[0, -2]],), "labels must be -1 outside"),
        (write_labels_tif, ([[0, 2**31]],), "below 2147483648; received 2147483648"),
        (write_labels_tif, ([[0.5]],), "labels must be whole numbers"),
        (write_labels_tif, ([1, 2],), "two or three axes"),
        (write_labels_tif, (np.zeros((0, 4), int),), "at least one pixel"),
        (write_labels_png, ([[0, 1]], label_colours(1)), "colours must be uint8 of shape (2, 3)"),
        (write_labels_png, ([[0, 1]], label_colours(2) / 255), "received 'float64"),
        (write_labels_png, ([[[0, 1]]], label_colours(2)), "one picture"),
        (write_labels_png, ([[0, 65535]], label_colours(2)), "at most 65535 labels"),
        (write_png, (RGBA,), "pixels must be uint8 of shape (H, W, 3)"),
        (write_png, (np.stack([RGB, RGB]),), "received 'uint8 of (2, 30, 40, 3)'"),
        (write_png, (GREY[0],), "received 'uint8 of (40,)'"),
        (write_png, (RGB.astype(np.uint16),), "received 'uint16 of (30, 40, 3)'"),
        (write_png, (RGB / 255,), "received 'float64"),
        (write_png, (RGB[:0],), "(0, 40, 3)"),
    ],
)
def test_what_cannot_be_written_is_one_line_and_no_file(call, args, says, tmp_path):
    assert says in refusal(call, tmp_path / "x", *args)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit, OSError])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(failure, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.extend(entry.name for entry in tmp_path.iterdir())
        raise failure

    with pytest.raises(failure):
        atomic_write(path, write)
    assert len(seen) == 2 and all(name == "out.txt" or name.startswith(".") for name in seen)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    script = (
        "import os, signal, sys\n"
        "from spinseg.parallel.atomic import atomic_write\n"
        "def write(file):\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "atomic_write(sys.argv[1], write)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert run.returncode == -signal.SIGKILL and path.read_text() == "old"


def test_a_full_disk_is_one_line_that_names_the_file(tmp_path):
    def write(file):
        raise OSError(28, "No space left on device")

    text = refusal(atomic_write, tmp_path / "out.tif", write, kind=OSError)
    assert text == f"{tmp_path / 'out.tif'} must be a file that can be written; received No space left on device"


def test_places_that_are_no_files_are_refused(tmp_path):
    assert "received 'a folder'" in refusal(atomic_write, tmp_path, lambda file: None)
    os.mkfifo(tmp_path / "pipe")
    assert "received 'a pipe or a device'" in refusal(atomic_write, tmp_path / "pipe", lambda file: None)
    refusal(atomic_write, tmp_path / "none" / "x", lambda file: None, kind=FileNotFoundError)


def test_what_is_written_can_be_read_by_others_and_links_stay(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    before = os.umask(0o022)
    try:
        atomic_write(tmp_path / "link", lambda file: file.write(b"new"))
        atomic_write(tmp_path / ("n" * 255), lambda file: np.savez(file, a=GREY))  # a name as long as it may be
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "file").read_bytes() == b"new"
    assert (tmp_path / "there" / "file").stat().st_mode & 0o777 == 0o644
    with np.load(tmp_path / ("n" * 255)) as arrays:
        np.testing.assert_array_equal(arrays["a"], GREY)


def test_threads_that_write_the_same_name_never_mix(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"a" * 3000)
    errors = []

    def work(letter):
        def write(file):
            for _ in range(3):
                file.write(letter * 1000)
                file.flush()

        try:
            for _ in range(100):
                atomic_write(path, write)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        seen.add(path.read_bytes())
    assert not errors and seen <= {b"a" * 3000, b"b" * 3000}
    assert list(tmp_path.iterdir()) == [path]


def test_importing_loads_neither_pillow_nor_tifffile():
    script = "import sys, spinseg.image.io; print(*sorted({'PIL', 'tifffile', 'skimage', 'scipy'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert run.stdout.split() == []
