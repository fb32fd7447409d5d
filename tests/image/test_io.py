"""Masks are read, and label images and RGB images are written so that other tools read them back."""

import subprocess
import sys

import numpy as np
import pytest
import tifffile
from image_files import ALPHA, DEEP, GRAY, RGB, saved
from PIL import Image
from skimage import io as skio

from spinseg.image.io import read_image, read_mask, write_labels_png, write_labels_tif, write_png
from spinseg.image.render import label_colors


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
    hidden = np.dstack([blue + 9, ALPHA])  # colors count where they are not transparent
    assert np.array_equal(read_mask(saved(tmp_path / "mask", hidden, "PNG")), ALPHA > 0)
    np.save(tmp_path / "mask.npy", np.where(inside, -0.5, np.nan))
    assert np.array_equal(read_mask(tmp_path / "mask.npy"), inside)
    volume = np.stack([inside, ~inside, inside, inside, inside])
    tifffile.imwrite(tmp_path / "mask.tif", volume.astype(np.uint16), photometric="minisblack")
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.tif"), volume, strict=True)
    six = np.dstack([0 * blue, blue])
    tifffile.imwrite(tmp_path / "mask.tif", six, photometric="minisblack", planarconfig="contig")
    np.testing.assert_array_equal(read_mask(tmp_path / "mask.tif"), inside, strict=True)


def some_labels(n, shape=(30, 40)):
    """Labels from -1 to n - 1, all of them there."""
    return np.resize(np.arange(-1, n, dtype=np.int32), shape)


@pytest.mark.parametrize(
    "first, n, shape, dtype",
    [
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
    expected = labels.astype(dtype)
    write_labels_tif(tmp_path / "labels.tif", labels)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "labels.tif"), expected, strict=True)
    if shape[0] != 3:  # three planes scikit-image takes for red, green and blue, whatever the file says
        np.testing.assert_array_equal(skio.imread(tmp_path / "labels.tif"), expected)
    np.testing.assert_array_equal(read_image(tmp_path / "labels.tif"), expected, strict=True)
    with Image.open(tmp_path / "labels.tif") as image:
        assert image.n_frames == (shape[0] if len(shape) == 3 else 1)
        np.testing.assert_array_equal(np.asarray(image), expected.reshape(-1, *shape[-2:])[0])


def assert_read_back(path, expected):
    np.testing.assert_array_equal(skio.imread(path), expected, strict=True)
    np.testing.assert_array_equal(read_image(path), expected, strict=True)


@pytest.mark.parametrize("n", [0, 1, 14, 255, 256, 65535])
def test_the_indices_of_a_label_png_are_the_labels_and_many_are_16_bit_gray(n, tmp_path):
    labels, colors = some_labels(n, (256, 256)), label_colors(n + 3)
    write_labels_png(tmp_path / "labels.png", labels, colors)
    if n > 255:
        assert_read_back(tmp_path / "labels.png", np.where(labels < 0, 65535, labels).astype(np.uint16))
        return
    assert (tmp_path / "labels.png").read_bytes()[24:26] == bytes([8, 3])  # 8 bits, indexed
    with Image.open(tmp_path / "labels.png") as image:
        expected = np.where(labels < 0, 255, labels).astype(np.uint8)
        np.testing.assert_array_equal(np.asarray(image), expected, strict=True)
    assert_read_back(tmp_path / "labels.png", np.vstack([colors[:n], np.full((1, 3), 255, np.uint8)])[labels])


def test_images_read_back_and_the_same_data_give_the_same_bytes(tmp_path):
    for pixels in (RGB, GRAY, DEEP, DEEP.astype(">u2"), RGB[::-1, ::2]):
        write_png(tmp_path / "a.png", pixels)
        assert_read_back(tmp_path / "a.png", pixels.astype(pixels.dtype.newbyteorder("=")))
        write_png(tmp_path / "b.png", pixels.copy())
        assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    for name in ("a", "b"):
        write_labels_tif(tmp_path / f"{name}.tif", some_labels(5, (4, 30, 40)))
        write_labels_png(tmp_path / f"{name}.png", np.asfortranarray(some_labels(5)).astype(np.int64), label_colors(5))
    for suffix in ("tif", "png"):
        content = (tmp_path / f"a.{suffix}").read_bytes()
        assert content == (tmp_path / f"b.{suffix}").read_bytes()
        assert b"tIME" not in content and b"/tmp" not in content
    with tifffile.TiffFile(tmp_path / "a.tif") as written:
        assert "DateTime" not in written.pages[0].tags


def test_importing_loads_neither_pillow_nor_tifffile():
    script = "import sys, spinseg.image.io; print(*sorted({'PIL', 'tifffile', 'skimage', 'scipy'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert run.stdout.split() == []
