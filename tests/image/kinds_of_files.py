"""Kinds of files that people bring, made here, and the table of how each is read.

    python tests/image/kinds_of_files.py

prints the table that docs/howto/files.md holds.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tifffile
from image_files import saved
from PIL import Image

DOWN, ACROSS = np.mgrid[:90, :120]
GRAY = np.uint8((DOWN // 15 * 40 + ACROSS // 20 * 5) % 256)  # from black to nearly white, in steps
RGB = np.dstack([GRAY, GRAY[::-1], 255 - GRAY])
OPACITY = np.where(ACROSS < 30, 0, 255).astype(np.uint8)
TWELVE = GRAY.astype(np.uint16) * 16 + 7
SIXTEEN = GRAY.astype(np.uint16) * 250 + 9
FIVE = np.stack([np.roll(TWELVE, 9 * channel, axis=1) for channel in range(5)])  # channels first
LAST = np.moveaxis(FIVE, 0, -1)
RGB_FIRST, SIXTEEN_RGB = np.ascontiguousarray(np.moveaxis(RGB, -1, 0)), RGB.astype(np.uint16) * 250 + 9
PAGES = np.stack([np.roll(SIXTEEN, 3 * page, axis=0) for page in range(20)])
INT16 = (PAGES[:17] // 16).astype(np.int16)
FLOAT, SIGNED = np.float32(GRAY / 255), GRAY / 255 * 2000 - 500
FLOAT_PAGES = PAGES.astype(np.float32)
TURNED = Image.Exif()
TURNED[274] = 6  # by a quarter
PALETTE, CMYK = Image.fromarray(RGB).quantize(16), Image.fromarray(RGB).convert("CMYK")
RGBA, INFRARED = np.dstack([RGB, OPACITY]), np.dstack([RGB, np.roll(GRAY, 30)])


def save_zarr(path: Path, array: np.ndarray, axes: str = "", version: str = "0.5") -> Path:
    """Write an array as Zarr without names of axes, or as OME-Zarr 0.4, which is of Zarr 2, or 0.5, of Zarr 3."""
    import zarr

    if not axes:
        zarr.create_array(str(path), data=array, chunks=array.shape)
        return path
    group = zarr.open_group(str(path), mode="w", zarr_format=2 if version == "0.4" else 3)
    group.create_array("0", data=array, chunks=array.shape)
    named = [{"name": name, "type": "channel" if name == "c" else "space"} for name in axes]
    about = {"multiscales": [{"version": version, "axes": named, "datasets": [{"path": "0"}]}]}
    group.attrs.update(about if version == "0.4" else {"ome": about})
    return path


def save_nifti(path: Path, array: np.ndarray, kind: str = "Nifti1Image") -> Path:
    """Write an array as NIfTI; compressed if the name says so."""
    import nibabel

    nibabel.save(getattr(nibabel, kind)(array, np.eye(4)), path)
    return path


class Kind(NamedTuple):
    """A kind of file: its name in the table, the file's name, how it is written, and the pixels that must be read.

    `pixels` are (*shape, n_channels) in the numbers of the file, gray as one channel; `low` and `high` are the numbers
    of no and of full intensity.
    """

    name: str
    file: str
    write: Callable[[Path], object]
    pixels: np.ndarray
    low: float = 0
    high: float = 255
    needs: str = ""  # the package of an extra


def made(write: Callable[..., object], array: Any, *args: Any, **options: Any) -> Callable[[Path], object]:
    """Return what writes an array, given a path."""
    return lambda path: write(path, array, *args, **options)


tiff, pages = partial(made, tifffile.imwrite), partial(made, tifffile.imwrite, photometric="minisblack")
png, zarr, nifti = partial(made, saved, form="PNG"), partial(made, save_zarr), partial(made, save_nifti)
gray16, gray_pages = SIXTEEN[..., None], PAGES[..., None]
planar = tiff(np.moveaxis(RGB, -1, 0), photometric="rgb", planarconfig="separate")
KINDS = [
    Kind("8 bits, gray", "gray.png", png(GRAY), GRAY[..., None]),
    Kind("12 bits, gray", "twelve.tif", tiff(TWELVE), TWELVE[..., None], 7, 3607),
    Kind("16 bits, gray, PNG", "sixteen.png", png(SIXTEEN), gray16, 0, 65535),
    Kind("16 bits, gray, TIFF", "sixteen.tif", tiff(SIXTEEN), gray16, 0, 65535),
    Kind("floating point", "float.tif", tiff(FLOAT), FLOAT[..., None], 0, 1),
    Kind("NumPy array", "float.npy", made(np.save, SIGNED), SIGNED[..., None], -500, SIGNED.max()),
    Kind("RGB", "rgb.bmp", made(saved, RGB, "BMP"), RGB),
    Kind("RGBA", "rgba.png", png(RGBA), RGBA),
    Kind("palette", "palette.png", png(PALETTE), np.asarray(PALETTE.convert("RGB"))),
    Kind("CMYK", "cmyk.tif", made(saved, CMYK, "TIFF"), np.asarray(CMYK.convert("RGB"))),
    Kind("turned by EXIF", "turned.png", png(RGB, exif=TURNED), np.rot90(RGB, -1)),
    Kind("planar RGB", "planar.tif", planar, RGB),
    Kind("RGB, 16 bits", "rgb16.tif", tiff(SIXTEEN_RGB, photometric="rgb"), SIXTEEN_RGB, 0, 65535),
    Kind("3 channels, not RGB", "three.tif", pages(LAST[..., :3], planarconfig="contig"), LAST[..., :3], 7, 3607),
    Kind("3 channels, ImageJ", "cells.tif", tiff(RGB_FIRST, imagej=True, metadata={"axes": "CYX"}), RGB),
    Kind("RGB and near infrared, no names", "infrared.npy", made(np.save, INFRARED), INFRARED),
    Kind("3 channels of counts", "counts.npy", made(np.save, LAST[..., :3]), LAST[..., :3], 7, 3607),
    Kind("5 channels first, ImageJ", "five.tif", tiff(FIVE, imagej=True, metadata={"axes": "CYX"}), LAST, 7, 3607),
    Kind("5 channels last, one page", "last.tif", pages(LAST, planarconfig="contig"), LAST, 7, 3607),
    Kind("5 channels last, no names", "unnamed.tif", pages(LAST), LAST, 7, 3607),
    Kind("5 channels first, no names", "first.tif", pages(FIVE), FIVE[..., None], 7, 3607),
    Kind("multi-page TIFF", "pages.tif", pages(PAGES), gray_pages, 0, 65535),
    Kind("OME-TIFF", "five.ome.tif", tiff(FIVE, metadata={"axes": "CYX"}), LAST, 7, 3607),
    Kind("OME-Zarr 0.4", "four.zarr", zarr(FIVE[None, :, None], "tczyx", "0.4"), LAST, 7, 3607, "zarr"),
    Kind("OME-Zarr 0.5", "half.zarr", zarr(FIVE, "cyx"), LAST, 7, 3607, "zarr"),
    Kind("OME-Zarr, 3 channels", "cells.zarr", zarr(FIVE[:3], "cyx"), LAST[..., :3], 7, 3607, "zarr"),
    Kind("OME-Zarr, 3 channels, 8 bits", "slide.zarr", zarr(RGB_FIRST, "cyx"), RGB, needs="zarr"),
    Kind("Zarr, no names", "plain.zarr", zarr(RGB), RGB, needs="zarr"),
    Kind("NIfTI", "volume.nii", nifti(INT16), INT16[..., None], 0, 3516, "nibabel"),
    Kind("NIfTI, gzip", "volume.nii.gz", nifti(FLOAT_PAGES), FLOAT_PAGES[..., None], 0, 65535, "nibabel"),
]


def table(folder: Path) -> str:
    """The table of how each kind is read, in Markdown; it needs all extras."""
    from spinseg.image.io import read_picture

    lines = ["| kind | file | read as | to change it |", "|---|---|---|---|"]
    for kind in KINDS:
        kind.write(folder / kind.file)
        reading = read_picture(folder / kind.file).reading
        otherwise = "" if reading.otherwise is None else reading.otherwise.split(", use ")[1]
        lines.append(f"| {kind.name} | `{kind.file}` | {reading} | {otherwise} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.stdout.write(table(Path(place)) + "\n")
