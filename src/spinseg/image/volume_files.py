"""Volumes: NIfTI, decoded by nibabel, and folders of Zarr with or without the metadata of OME-NGFF. Both need an extra.

Axes of NIfTI are in the order in which nibabel has them, so that labels fit its arrays.
"""

import gzip
import io
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.image.decoding import check_numbers, check_size, decoding, unprinted
from spinseg.image.layout import EMPTY, Reading

_AXES = "XYZTC"  # the fifth holds the components of a vector
_HEADER_BYTES = 540  # of NIfTI 2, the longer one
_MAX_OFFSET = 2**24  # bytes of header and extensions

_LETTERS = dict.fromkeys(("c", "ch", "channel", "channels", "band", "bands"), "C")  # by the name of an axis
_LETTERS |= {"t": "T", "time": "T", "z": "Z", "y": "Y", "x": "X"}


def decode_nifti(name: str, form: str, file: BinaryIO, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the array in a NIfTI file, which may be compressed by gzip; `form` is "NIfTI" or "gzip"."""
    stream: Any = gzip.GzipFile(fileobj=file) if form == "gzip" else file
    with decoding(name, "NIfTI"):
        head = stream.read(_HEADER_BYTES)
        stream.seek(0)
    image_class = _image_class(name, head)
    with unprinted("nibabel.global"), decoding(name, "NIfTI"):
        header = image_class.header_class.from_fileobj(io.BytesIO(head))
        shape, dtype, offset = header.get_data_shape(), header.get_data_dtype(), header.get_data_offset()
    check_size(name, tuple(map(int, shape)), max_pixels)
    if offset > _MAX_OFFSET:  # all before it would be unpacked and read
        invalid(name, f"have its numbers in the first {_MAX_OFFSET} bytes", offset)
    if len(shape) > len(_AXES):
        invalid(name, f"have at most {len(_AXES)} axes", shape)
    colors = dtype.names or ()
    if not colors:
        check_numbers(name, dtype)
    with unprinted("nibabel.global"), decoding(name, "NIfTI"):
        array = np.asanyarray(image_class.from_stream(stream).dataobj)
    axes = "".join(EMPTY if length == 1 and axis >= 2 else _AXES[axis] for axis, length in enumerate(array.shape))
    if colors:
        array, axes = np.stack([array[color] for color in colors], axis=-1), f"{axes}S"
    return array, Reading("NIfTI", axes, len(colors) == 4, channel_kind="color" if colors else "measured")


def _image_class(name: str, head: bytes) -> Any:
    """Return the class of nibabel that reads files which begin with these bytes."""
    if head[344:348] == b"ni1\0" or head[4:8] == b"ni2\0":
        invalid(name, "be one NIfTI file, .nii or .nii.gz, with header and numbers", "the header alone (.hdr)")
    if head[344:348] != b"n+1\0" and head[4:8] != b"n+2\0":
        invalid(name, "be an image; of compressed files only NIfTI, .nii.gz, is read", "another compressed file")
    try:
        import nibabel
    except ImportError:
        raise MissingExtra(f"{name}: NIfTI files need nibabel: pip install 'spinseg[nifti]'") from None
    return nibabel.Nifti2Image if head[4:8] == b"n+2\0" else nibabel.Nifti1Image


def decode_zarr(name: str, path: str, max_pixels: int) -> tuple[NDArray[Any], Reading]:
    """Return the array in a folder of Zarr, of the finest level where there are several."""
    with decoding(name, "Zarr"):
        array, stored = open_zarr(name, path)
    check_numbers(name, np.dtype(array.dtype))
    check_size(name, array.shape, max_pixels, stored.axes)
    with decoding(name, "Zarr"):
        return np.asarray(array[...]), stored


def open_zarr(name: str, path: str) -> tuple[Any, Reading]:
    """Return the array of a folder of Zarr without reading its numbers, and how it is stored.

    In a group it is the finest level of the first image that OME-NGFF describes. Chunks that are not there hold the
    fill value, as Zarr has it.
    """
    try:
        import zarr
    except ImportError:
        raise MissingExtra("folders of Zarr need zarr: pip install 'spinseg[zarr]'") from None
    found = zarr.open(path, mode="r")
    names: Sequence[Any] = ()
    if isinstance(found, zarr.Group):
        scale, found = _multiscale(zarr, found)
        names = [axis["name"] if isinstance(axis, dict) else axis for axis in scale.get("axes", [])]
        found = found[scale["datasets"][0]["path"]]
    elif found.metadata.zarr_format == 3:
        names = found.metadata.dimension_names or ()
    if not names or any(not each for each in names):
        return found, Reading("Zarr")
    if len(names) != len(found.shape):
        rule = f"have the {len(names)} axes that its metadata name, {', '.join(map(str, names))}"
        invalid(name, rule, tuple(found.shape))
    letters = [_LETTERS.get(str(each).lower(), "A") for each in names]
    axes = [EMPTY if n == 1 and each not in "YXC" else each for each, n in zip(letters, found.shape, strict=True)]
    return found, Reading("OME-Zarr", "".join(axes), has_opacity=False)


def _multiscale(zarr: Any, group: Any) -> tuple[dict[str, Any], Any]:
    """Return the first multiscale image of a group, and the group that holds it: itself, or its first series."""
    attributes = dict(group.attrs)
    attributes = attributes.get("ome", attributes)
    if "multiscales" in attributes:
        return attributes["multiscales"][0], group
    series = group.get("0")
    if isinstance(series, zarr.Group):
        return _multiscale(zarr, series)
    raise ValueError("no array, and no multiscales of OME-NGFF")
