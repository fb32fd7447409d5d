"""Image files of all formats are decoded without loss, upright, and with channels last."""

import struct

import numpy as np
import pytest
import tifffile
from image_files import ALPHA, DEEP, GRAY, RGB, RGBA, png, refusal, saved
from PIL import Image

from spinseg.image.io import read_image, read_picture
from spinseg.image.picture import as_picture

LZW = {"compression": "tiff_lzw"}
LOSSLESS = [
    *(("PNG", {}, array) for array in (RGB, RGBA, GRAY, DEEP)),
    *(("BMP", {}, array) for array in (RGB, GRAY)),
    ("WEBP", {"lossless": True}, RGB),
    ("WEBP", {"lossless": True, "exact": True}, RGBA),
    *(("TIFF", {}, array) for array in (RGB, RGBA, DEEP)),
    *(("TIFF", LZW, array) for array in (RGB, RGBA, DEEP, GRAY.astype(np.float32) / 7, DEEP.astype(np.int32) * 1000)),
    ("TIFF", {"compression": "tiff_adobe_deflate"}, RGB),
]


@pytest.mark.parametrize("form, options, array", LOSSLESS)
def test_what_is_stored_without_loss_is_read_without_loss(form, options, array, tmp_path):
    found = read_image(saved(tmp_path / "picture", array, form, **options))
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.writeable and found.flags.c_contiguous
    assert np.array_equal(read_picture(tmp_path / "picture").codes, as_picture(array).codes)


def test_a_jpeg_is_read_whatever_its_name_says(tmp_path):
    found = read_image(saved(tmp_path / "photo.png", RGB, "JPEG", quality=95))
    assert found.shape == RGB.shape and np.abs(found.astype(int) - RGB).mean() < 5


def test_one_bit_is_black_and_white(tmp_path):
    bits = GRAY > 100
    for form in ("PNG", "BMP", "TIFF", "GIF"):
        found = read_image(saved(tmp_path / "bits", Image.fromarray(bits), form))
        assert np.array_equal(as_picture(found).codes, as_picture(bits).codes), form
    if tifffile.__version__ >= "2026":  # before, it needed another library for this
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
    both = Image.merge("LA", [Image.fromarray(GRAY), Image.fromarray(ALPHA)])
    expected = np.dstack([GRAY, GRAY, GRAY, ALPHA])
    for form, options in (("PNG", {}), ("TIFF", {}), ("TIFF", LZW)):
        np.testing.assert_array_equal(read_image(saved(tmp_path / "la", both, form, **options)), expected, strict=True)
    found = read_image(saved(tmp_path / "keyed", GRAY, "PNG", transparency=int(GRAY[0, 0])))
    assert np.array_equal(found[..., 3] == 0, GRAY[0, 0] == GRAY)
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
    for options in ({}, LZW):
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
    stack = np.stack([np.stack([DEEP + 9 * z + c for c in range(2)]) for z in range(5)])
    for options in ({"imagej": True}, {"ome": True}):
        tifffile.imwrite(path, stack, metadata={"axes": "ZCYX"}, **options)
        np.testing.assert_array_equal(read_image(path), np.moveaxis(stack, 1, -1), strict=True)
    unnamed = np.moveaxis(stack, 1, -1)
    tifffile.imwrite(path, unnamed, photometric="minisblack")
    np.testing.assert_array_equal(read_image(path), unnamed, strict=True)
    frames = [Image.fromarray(plane) for plane in (GRAY, GRAY // 2, GRAY // 3)]
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
    np.save(tmp_path / "nan.npy", np.where(inside, GRAY / 255, np.nan))
    assert read_picture(tmp_path / "nan.npy", mask=inside).shape == (30, 40)


def test_a_tiff_of_five_axes_is_refused(tmp_path):
    tifffile.imwrite(tmp_path / "5.tif", np.zeros((3, 4, 2, 8, 9), "u2"), imagej=True, metadata={"axes": "TZCYX"})
    assert "axes TZCYX of (3, 4, 2, 8, 9)" in refusal(read_image, tmp_path / "5.tif")
