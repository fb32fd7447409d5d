"""Folders of Zarr, of version 2 or 3, with or without the metadata of OME-NGFF."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.image.formats.stored import StoredArray, check_numbers, check_size, decoding
from spinseg.image.layout import EMPTY

_CHANNEL_NAMES = ("c", "ch", "channel", "channels", "band", "bands")
_SPACE_AND_TIME = ("t", "z", "y", "x", "time")


def decode_zarr(name: str, path: str, max_pixels: int) -> StoredArray:
    """Return the array in a folder of Zarr, of the finest level where there are several."""
    with decoding(name, "Zarr"):
        array, axes = open_zarr(name, path)
    check_numbers(name, np.dtype(array.dtype))
    check_size(name, array.shape, max_pixels, axes)
    with decoding(name, "Zarr"):
        return StoredArray(np.asarray(array[...]), "OME-Zarr" if axes else "Zarr", axes, False if axes else None)


def open_zarr(name: str, path: str) -> tuple[Any, str]:
    """Return the array of a folder of Zarr without reading its numbers, and a letter for each axis that has a name.

    In a group it is the finest level of the first image that OME-NGFF describes. Chunks that are not there hold the
    fill value, as Zarr has it.
    """
    zarr = zarr_library()
    found = zarr.open(path, mode="r")
    names: Sequence[Any] = ()
    if isinstance(found, zarr.Group):
        scale, found = _multiscale(zarr, found)
        names = [axis["name"] if isinstance(axis, dict) else axis for axis in scale.get("axes", [])]
        found = found[scale["datasets"][0]["path"]]
    elif found.metadata.zarr_format == 3:
        names = found.metadata.dimension_names or ()
    if not names or any(not each for each in names):
        return found, ""
    if len(names) != len(found.shape):
        rule = f"have the {len(names)} axes that its metadata name, {', '.join(map(str, names))}"
        invalid(name, rule, tuple(found.shape))
    letters = [_letter(str(each).lower()) for each in names]
    return found, "".join(
        EMPTY if length == 1 and letter not in "YXC" else letter
        for letter, length in zip(letters, found.shape, strict=True)
    )


def _letter(axis: str) -> str:
    """Return the letter for the name of an axis; "column" is none of channels, whatever it begins with."""
    if axis in _CHANNEL_NAMES:
        return "C"
    return axis[0].upper() if axis in _SPACE_AND_TIME else "A"


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


def zarr_library() -> Any:
    """Return the package zarr."""
    try:
        import zarr
    except ImportError:
        raise MissingExtra("folders of Zarr need zarr: pip install 'spinseg[zarr]'") from None
    return zarr
