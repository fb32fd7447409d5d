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
PAGES = np.stack([np.roll(SIXTEEN, 3 * page, axis=0) for page in range(20)])


def tiff(array: np.ndarray, **options: Any) -> Callable[[Path], object]:
    """Return what writes an array as TIFF."""
    return partial(tifffile.imwrite, data=array, **options)


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
    low: float
    high: float
    needs: str = ""  # the package of an extra


def last(array: np.ndarray) -> np.ndarray:
    """Channels first to channels last."""
    return np.moveaxis(array, 0, -1)


INT16 = (PAGES[:17] // 16).astype(np.int16)
FLOAT, SIGNED = np.float32(GRAY / 255), GRAY / 255 * 2000 - 500
FLOAT_PAGES = PAGES.astype(np.float32)
TURNED = Image.Exif()
TURNED[274] = 6  # by a quarter
PALETTE, CMYK = Image.fromarray(RGB).quantize(16), Image.fromarray(RGB).convert("CMYK")
RGBA = np.dstack([RGB, OPACITY])
PLANAR = {"photometric": "rgb", "planarconfig": "separate"}
ONE_PAGE = {"photometric": "minisblack", "planarconfig": "contig"}
IMAGEJ = {"imagej": True, "metadata": {"axes": "CYX"}}
KINDS = [
    Kind("8 bits, gray", "gray.png", partial(saved, image=GRAY, form="PNG"), GRAY[..., None], 0, 255),
    Kind("12 bits, gray", "twelve.tif", tiff(TWELVE), TWELVE[..., None], 7, 3607),
    Kind("16 bits, gray, PNG", "sixteen.png", partial(saved, image=SIXTEEN, form="PNG"), SIXTEEN[..., None], 0, 65535),
    Kind("16 bits, gray, TIFF", "sixteen.tif", tiff(SIXTEEN), SIXTEEN[..., None], 0, 65535),
    Kind("floating point", "float.tif", tiff(FLOAT), FLOAT[..., None], 0, 1),
    Kind("NumPy array", "float.npy", partial(np.save, arr=SIGNED), SIGNED[..., None], -500, SIGNED.max()),
    Kind("RGB", "rgb.bmp", partial(saved, image=RGB, form="BMP"), RGB, 0, 255),
    Kind("RGBA", "rgba.png", partial(saved, image=RGBA, form="PNG"), RGBA, 0, 255),
    Kind(
        "palette", "palette.png", partial(saved, image=PALETTE, form="PNG"), np.asarray(PALETTE.convert("RGB")), 0, 255
    ),
    Kind("CMYK", "cmyk.tif", partial(saved, image=CMYK, form="TIFF"), np.asarray(CMYK.convert("RGB")), 0, 255),
    Kind("turned by EXIF", "turned.png", partial(saved, image=RGB, form="PNG", exif=TURNED), np.rot90(RGB, -1), 0, 255),
    Kind("planar RGB", "planar.tif", tiff(np.moveaxis(RGB, -1, 0), **PLANAR), RGB, 0, 255),
    Kind("5 channels first, ImageJ", "five.tif", tiff(FIVE, **IMAGEJ), last(FIVE), 7, 3607),
    Kind("5 channels last, one page", "last.tif", tiff(last(FIVE), **ONE_PAGE), last(FIVE), 7, 3607),
    Kind("5 channels last, no names", "unnamed.tif", tiff(last(FIVE), photometric="minisblack"), last(FIVE), 7, 3607),
    Kind("5 channels first, no names", "first.tif", tiff(FIVE, photometric="minisblack"), FIVE[..., None], 7, 3607),
    Kind("multi-page TIFF", "pages.tif", tiff(PAGES, photometric="minisblack"), PAGES[..., None], 0, 65535),
    Kind("OME-TIFF", "five.ome.tif", tiff(FIVE, metadata={"axes": "CYX"}), last(FIVE), 7, 3607),
    Kind(
        "OME-Zarr 0.4",
        "four.zarr",
        partial(save_zarr, array=FIVE[None, :, None], axes="tczyx", version="0.4"),
        last(FIVE),
        7,
        3607,
        "zarr",
    ),
    Kind("OME-Zarr 0.5", "half.zarr", partial(save_zarr, array=FIVE, axes="cyx"), last(FIVE), 7, 3607, "zarr"),
    Kind("Zarr, no names", "plain.zarr", partial(save_zarr, array=RGB), RGB, 0, 255, "zarr"),
    Kind("NIfTI", "volume.nii", partial(save_nifti, array=INT16), INT16[..., None], 0, 3516, "nibabel"),
    Kind(
        "NIfTI, gzip",
        "volume.nii.gz",
        partial(save_nifti, array=FLOAT_PAGES),
        FLOAT_PAGES[..., None],
        0,
        65535,
        "nibabel",
    ),
]


def table(folder: Path) -> str:
    """The table of how each kind is read, in Markdown; it needs all extras."""
    from spinseg.image.io import read_picture

    lines = ["| kind | file | read as | to say otherwise |", "|---|---|---|---|"]
    for kind in KINDS:
        kind.write(folder / kind.file)
        reading = read_picture(folder / kind.file).reading
        otherwise = "" if reading.otherwise is None else reading.otherwise.split(", give ")[1]
        lines.append(f"| {kind.name} | `{kind.file}` | {reading} | {otherwise} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        sys.stdout.write(table(Path(place)) + "\n")
