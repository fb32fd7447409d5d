"""Files of all formats are decoded without loss, upright, with channels last, and docs/howto/files.md says how."""

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
import tifffile
from image_files import ALPHA, DEEP, GRAY, RGB, RGBA, png, refusal, saved
from kinds_of_files import KINDS, OPACITY, table
from PIL import Image, ImageCms, ImageOps, features

from spinseg._errors import InvalidInput
from spinseg.image.io import read_image, read_mask, read_picture
from spinseg.image.layout import Reading, count_pixels
from spinseg.image.picture import as_picture, checked_mask

LZW = {"compression": "tiff_lzw"}
LOSSLESS = [
    *(("PNG", {}, array) for array in (RGB, RGBA, GRAY, DEEP)),
    *(("BMP", {}, array) for array in (RGB, GRAY)),
    ("WEBP", {"lossless": True}, RGB),
    ("WEBP", {"lossless": True, "exact": True}, RGBA),
    *(("TIFF", LZW, array) for array in (RGB, RGBA, DEEP, GRAY.astype(np.float32) / 7, DEEP.astype(np.int32) * 1000)),
    ("TIFF", {"compression": "tiff_adobe_deflate"}, RGB),
    *(("JPEG2000", {"irreversible": False}, array) for array in (RGB, DEEP) if features.check("jpg_2000")),
]


@pytest.mark.parametrize("form, options, array", LOSSLESS)
def test_what_is_stored_without_loss_is_read_without_loss(form, options, array, tmp_path):
    found = read_image(saved(tmp_path / "picture", array, form, **options))
    np.testing.assert_array_equal(found, array, strict=True)
    assert found.flags.writeable and found.flags.c_contiguous
    assert np.array_equal(read_picture(tmp_path / "picture").codes, as_picture(array).codes)


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "GIF"])
def test_one_bit_is_black_and_white_and_a_palette_becomes_colors(form, tmp_path):
    bits = GRAY > 100
    found = read_image(saved(tmp_path / "bits", Image.fromarray(bits), form))
    assert np.array_equal(as_picture(found).codes, as_picture(bits).codes)
    if form == "TIFF" and tifffile.__version__ >= "2026":  # before, it needed another library for this
        packed = read_image(saved(tmp_path / "bits", Image.fromarray(bits), "TIFF", compression="group4"))
        assert np.array_equal(packed, bits * np.uint8(255))
    indexed = Image.fromarray(RGB).quantize(16)
    expected = np.asarray(indexed.convert("RGB"))
    np.testing.assert_array_equal(read_image(saved(tmp_path / "p", indexed, form)), expected, strict=True)
    if form in ("PNG", "GIF"):
        found = read_image(saved(tmp_path / "p", indexed, form, transparency=3))
        opaque = found[..., 3] == 255
        assert np.array_equal(found[..., 3] == 0, np.asarray(indexed) == 3) and opaque.any()
        assert np.array_equal(found[opaque, :3], expected[opaque])


def test_gray_with_transparency_is_laid_over_white_like_color(tmp_path):
    both = Image.merge("LA", [Image.fromarray(GRAY), Image.fromarray(ALPHA)])
    expected = np.dstack([GRAY, GRAY, GRAY, ALPHA])
    for form, options in (("PNG", {}), ("TIFF", {}), ("TIFF", LZW)):
        np.testing.assert_array_equal(read_image(saved(tmp_path / "la", both, form, **options)), expected, strict=True)
    for gray, full in ((GRAY, 255), (DEEP, 65535)):
        found = read_image(saved(tmp_path / "keyed", gray, "PNG", transparency=int(gray[0, 0])))
        expected = np.dstack([gray, gray, gray, np.where(gray == gray[0, 0], 0, full).astype(gray.dtype)])
        np.testing.assert_array_equal(found, expected, strict=True)
        assert np.array_equal(read_picture(tmp_path / "keyed").inside, gray != gray[0, 0])
    for kind, n_channels in (("unspecified", 4), ("unassalpha", 3)):  # infrared, and opacity
        tifffile.imwrite(tmp_path / "four.tif", RGBA, photometric="rgb", extrasamples=[kind])
        assert read_picture(tmp_path / "four.tif").n_channels == n_channels


def test_cmyk_in_a_jpeg_becomes_rgb(tmp_path):
    found = read_image(saved(tmp_path / "photo.png", Image.fromarray(RGB).convert("CMYK"), "JPEG", quality=95))
    assert found.shape == RGB.shape and np.abs(found.astype(int) - RGB).mean() < 10


def test_what_is_left_out_of_a_file_is_said(tmp_path):
    def phrase(name):
        return str(read_picture(tmp_path / name).reading)

    deep = np.dstack([DEEP, DEEP // 2, DEEP // 3])
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in deep)
    (tmp_path / "deep.png").write_bytes(png(40, 30, 16, 2, rows))
    np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), (deep >> 8).astype(np.uint8), strict=True)
    assert phrase("deep.png").endswith("8 bits, intensities from 0 to 255, the upper 8 of 16 bits")
    first, *others = [Image.fromarray(np.full((6, 8, 3), level, np.uint8)) for level in (200, 90, 10)]
    for form, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("PNG", {})):
        saved(tmp_path / "film", first, form, save_all=True, append_images=others, **options)
        assert np.array_equal(read_image(tmp_path / "film"), np.asarray(first))
        assert phrase("film").endswith(", the first of 3 frames")
    other = Image.fromarray(np.zeros((9, 9), np.uint8))
    saved(tmp_path / "two.tif", GRAY, "TIFF", save_all=True, append_images=[other])
    assert phrase("two.tif").endswith(", the first of 2 series")
    saved(tmp_path / "plain.png", DEEP, "PNG")
    assert read_picture(tmp_path / "plain.png").reading.note == ""


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_stand_upright(orientation, tmp_path):
    exif = Image.Exif()
    exif[274] = orientation

    def turned(pixels):
        image = Image.fromarray(pixels)
        image.getexif()[274] = orientation
        return np.asarray(ImageOps.exif_transpose(image))

    stored = np.asarray(Image.open(saved(tmp_path / "plain.jpg", RGB, "JPEG")))
    for form, options, pixels in (("PNG", {}, RGB), ("WEBP", {"lossless": True}, RGB), ("JPEG", {}, stored)):
        found = read_image(saved(tmp_path / "turned", RGB, form, exif=exif, **options))
        np.testing.assert_array_equal(found, turned(pixels), strict=True)
    for options in ({}, LZW):
        found = read_image(saved(tmp_path / "turned.tif", RGB, "TIFF", tiffinfo={274: orientation}, **options))
        np.testing.assert_array_equal(found, turned(RGB), strict=True)
    tag, volume = [(274, 3, 1, orientation, True)], np.stack([DEEP, DEEP + 1])
    tifffile.imwrite(tmp_path / "v.tif", volume, photometric="minisblack", extratags=tag)
    assert np.array_equal(read_image(tmp_path / "v.tif"), np.stack([turned(plane) for plane in volume]))
    planar = np.moveaxis(RGB, -1, 0)
    tifffile.imwrite(tmp_path / "p.tif", planar, photometric="rgb", planarconfig="separate", extratags=tag)
    assert np.array_equal(read_image(tmp_path / "p.tif"), turned(RGB))


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


@pytest.mark.parametrize("dtype", ["u1", "u4", "i2", "i4", "f8", ">u2", ">f4"])
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
        assert as_picture(found, channel_axis=None).shape == shape


def test_pages_that_pillow_decodes_are_planes(tmp_path):
    frames = [Image.fromarray(plane) for plane in (GRAY, GRAY // 2, GRAY // 3)]
    path = saved(tmp_path / "c.tif", frames[0], "TIFF", save_all=True, append_images=frames[1:], **LZW)
    np.testing.assert_array_equal(read_image(path), np.stack(frames), strict=True)


@pytest.mark.parametrize(
    ("shape", "has_channels", "otherwise"),
    [
        ((128, 128, 16), True, "none"),
        ((136, 136, 17), False, None),
        ((40, 60, 5), True, "none"),
        ((39, 60, 5), False, None),  # less than eight times as long
        ((16, 20, 30), False, "0"),
        ((17, 20, 30), False, None),
        ((9, 9, 1), True, None),
        ((9, 9, 4), True, "2"),  # the fourth may be opacity or not
        ((4, 9, 9, 3), True, None),
        ((9, 9), False, None),
    ],
)
def test_axes_without_names_are_judged_by_their_lengths(shape, has_channels, otherwise):
    layout = Reading().laid_out(shape)
    assert (layout.channel_axis == len(shape) - 1) == has_channels
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert as_picture(np.ones(shape)).reading.otherwise == layout.otherwise
    assert not caught
    assert bool(layout.otherwise) == bool(otherwise)
    if otherwise:
        assert f"use channel_axis={otherwise.capitalize()}" in layout.otherwise
        assert Reading().laid_out(shape, None if otherwise == "none" else int(otherwise)).otherwise is None


@pytest.mark.parametrize(
    "axes, shape, spatial, channels",
    [
        ("ZCYX", (7, 5, 30, 40), (0, 2, 3), 1),
        ("TYX", (3, 30, 40), (0, 1, 2), None),
        ("ZYX", (30, 40, 3), (0, 1, 2), None),  # three pixels wide, if the file says so
        ("_C_YX", (1, 5, 1, 30, 40), (3, 4), 1),
        ("CYXS", (1, 30, 40, 1), (1, 2), None),
        ("QYX", (30, 40, 3), (0, 1), 2),
        ("IYXS", (7, 30, 40, 3), (0, 1, 2), 3),
    ],
)
def test_names_are_believed(axes, shape, spatial, channels):
    layout = Reading(axes=axes).laid_out(shape)
    assert (layout.spatial_axes, layout.channel_axis) == (spatial, channels)
    array = np.arange(np.prod(shape)).reshape(shape)
    kept = [*spatial] if channels is None else [*spatial, channels]
    moved = array.transpose(*kept, *(axis for axis in range(len(shape)) if axis not in kept))
    expected = moved.reshape(*(shape[i] for i in spatial), -1)
    np.testing.assert_array_equal(layout.arrange(array), expected, strict=True)


@pytest.mark.parametrize(
    "axes, shape", [("TZCYX", (3, 4, 2, 8, 9)), ("CYXS", (2, 8, 9, 3)), ("X", (9,)), ("TZYX", (2, 3, 8, 9))]
)
def test_what_is_neither_picture_nor_volume_is_refused(axes, shape):
    with pytest.raises(InvalidInput, match=rf"^a.tif must hold one image or volume, [^\n]*axes {axes} of "):
        Reading(axes=axes).laid_out(shape, name="a.tif")
    with pytest.raises(InvalidInput, match=r"must have two or three axes, and one of channels or none"):
        Reading().laid_out((2, 3, 4, 5, 6))


def test_up_to_four_channels_count_once():
    assert count_pixels((30, 40, 4)) == count_pixels((4, 30, 40), "CYX") == count_pixels((30, 40)) == 1200
    assert count_pixels((30, 40, 5)) == count_pixels((5, 30, 40)) == count_pixels((5, 30, 40), "CYX") == 6000


@pytest.mark.parametrize(
    ("shape", "dtype", "phrase"),
    [
        ((5, 6), bool, "an image of 6 x 5 pixels, gray, 1 bit, intensities from 0 to 1"),
        ((20, 5, 6), "i2", "a volume of 20 planes of 6 x 5 pixels, gray, 16 bits with sign, intensities from 0 to 1"),
        ((1, 5, 6, 1), float, "a volume of 1 plane of 6 x 5 pixels, gray"),
        ((2, 5, 6, 7), "f4", "7 channels of a volume of 2 planes of 6 x 5 pixels, 32-bit"),
        ((5, 6, 4), float, "an image of 6 x 5 pixels, color with opacity, 64-bit"),
        ((5, 6, 4), "u1", "4 channels of 6 x 5 pixels, 8 bits"),
    ],
)
def test_phrases_of_volumes_types_and_opacity(shape, dtype, phrase):
    assert str(as_picture(np.ones(shape, dtype)).reading).startswith(phrase)


DOCS = Path(__file__).parents[2] / "docs" / "howto" / "files.md"


# Short axes without a name, and channels of which the file does not say whether they are colors.
DOUBTFUL = ("unnamed.tif", "first.tif", "infrared.npy", "counts.npy", "cells.zarr", "slide.zarr")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.file)
def test_pixels_channels_and_intensities_are_those_of_the_file(kind, tmp_path):
    if kind.needs:
        pytest.importorskip(kind.needs, reason="an extra is not installed")
    kind.write(tmp_path / kind.file)
    stored = read_image(tmp_path / kind.file)
    np.testing.assert_array_equal(stored.reshape(kind.pixels.shape), kind.pixels, strict=True)
    picture = read_picture(tmp_path / kind.file)
    reading = picture.reading
    assert (*reading.shape, reading.n_channels) == kind.pixels.shape
    assert bool(reading.otherwise) == (kind.file in DOUBTFUL)
    np.testing.assert_allclose(reading.intensity_range, (kind.low, kind.high), rtol=1e-6)
    expected = np.rint(((kind.pixels.astype(np.float64) - kind.low) / (kind.high - kind.low)).clip(0, 1) * 65535)
    if reading.has_opacity:
        assert kind.name == "RGBA" and np.array_equal(picture.inside, OPACITY > 0)
        expected = np.where(OPACITY[..., None] > 0, expected[..., :3], 65535)
    assert np.array_equal(picture.codes, np.broadcast_to(expected, picture.codes.shape))


def test_the_table_in_the_documentation_is_what_is_read(tmp_path):
    for package in ("zarr", "nibabel"):
        pytest.importorskip(package, reason="an extra is not installed")
    text = DOCS.read_text(encoding="utf-8")
    assert table(tmp_path) in text and "python tests/image/kinds_of_files.py" in text


@pytest.mark.parametrize("given, shape, n_channels", [(0, (90, 120), 5), (None, (5, 90, 120), 1), (-3, (90, 120), 5)])
def test_a_given_axis_is_counted_in_the_order_of_the_file(given, shape, n_channels, tmp_path):
    """With and without names, and wherever the program itself would put the channels."""
    for kind in KINDS:
        if kind.file in ("five.tif", "five.ome.tif", "first.tif"):
            kind.write(tmp_path / kind.file)
            reading = read_picture(tmp_path / kind.file, channel_axis=given).reading
            assert (reading.shape, reading.n_channels) == (shape, n_channels) and reading.otherwise is None


PHOTO, OPAQUE = Image.fromarray(RGB), Image.fromarray(RGBA)
LAB = ImageCms.buildTransform(ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), "RGB", "LAB")
KEYED = PHOTO.quantize(16)
KEYED.info["transparency"] = 3
IN_MEMORY = {
    "1": PHOTO.convert("1"),
    "L": PHOTO.convert("L"),
    "LA": OPAQUE.convert("LA"),
    "La": OPAQUE.convert("LA").convert("La"),
    "P": PHOTO.quantize(16),
    "P, one color transparent": KEYED,
    "PA": PHOTO.quantize(16).convert("PA"),
    "RGBX": PHOTO.convert("RGBX"),
    "RGBA": OPAQUE,
    "RGBa": OPAQUE.convert("RGBa"),
    "CMYK": PHOTO.convert("CMYK"),
    "YCbCr": PHOTO.convert("YCbCr"),
    "HSV": PHOTO.convert("HSV"),
    "LAB": ImageCms.applyTransform(PHOTO, LAB),
    "I;16": Image.fromarray(DEEP),
    "F": Image.fromarray(GRAY.astype(np.float32)),
}


@pytest.mark.parametrize("mode", IN_MEMORY)
def test_an_image_of_pillow_is_read_in_colors_and_not_in_the_numbers_of_its_mode(mode):
    image = IN_MEMORY[mode]
    picture = as_picture(image)
    has_opacity = mode[-1] in "Aa" or image is KEYED
    assert picture.is_color and bool(picture.reading.has_opacity) == has_opacity
    assert picture.reading.form == "array" and picture.reading.otherwise is None
    inside = np.ones(picture.shape, bool) if picture.inside is None else picture.inside
    if mode in ("1", "L", "I;16", "F"):
        assert np.array_equal(picture.codes, as_picture(np.asarray(image)).codes)
    else:
        opacity = np.asarray((image.convert("LA") if mode == "La" else image).convert("RGBA"))[..., 3]
        assert np.array_equal(inside, opacity > 0)
        seen = inside & (opacity == 255)
        colors = np.asarray(PHOTO.convert("L").convert("RGB")) if mode in ("LA", "La") else RGB
        assert np.abs(picture.rgb[seen].astype(int) - colors[seen]).mean() < 12


@pytest.mark.parametrize("kind", ["palette.png", "cmyk.tif", "rgba.png", "rgb.bmp", "sixteen.png"])
def test_a_file_and_its_image_of_pillow_are_read_alike(kind, tmp_path):
    next(each for each in KINDS if each.file == kind).write(tmp_path / kind)
    with Image.open(tmp_path / kind) as image:
        found, expected = as_picture(image), read_picture(tmp_path / kind)
    assert np.array_equal(found.codes, expected.codes) and str(found.reading) == str(expected.reading)
    assert (found.inside is None) == (expected.inside is None)


def test_a_mask_of_pillow_is_read_as_its_file(tmp_path):
    is_dark = np.median(GRAY) > GRAY
    bright = Image.frombytes("P", (40, 30), is_dark.tobytes())
    bright.putpalette([255, 255, 255, 0, 0, 0])  # index 0 is white
    saved(tmp_path / "mask.png", bright, "PNG")
    for mask in (bright, bright.convert("RGB"), bright.convert("L"), bright.convert("1")):
        assert np.array_equal(checked_mask(mask), read_mask(tmp_path / "mask.png"))
    assert np.array_equal(checked_mask(bright), ~is_dark)


def test_an_image_of_pillow_that_cannot_be_decoded_is_one_line(tmp_path):
    content = saved(tmp_path / "a.png", RGB, "PNG").read_bytes()
    (tmp_path / "a.png").write_bytes(content[: len(content) // 2])
    with Image.open(tmp_path / "a.png") as image:
        assert refusal(as_picture, image).startswith("cannot read image: the PNG file is damaged")
