"""Files of microscopes, CZI by Zeiss and LIF by Leica, decoded by the readers of bioio."""

from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

from spinseg._errors import MissingExtra
from spinseg.image.formats.stored import StoredArray, check_size, decoding
from spinseg.image.layout import CHANNEL_NAMES, EMPTY


def decode_microscope_file(name: str, form: str, file: BinaryIO, max_pixels: int) -> StoredArray:
    """Return the first scene of a CZI or LIF file."""
    reader = _reader(name, form)
    with decoding(name, form):
        image = reader(file.name)
        order, shape = str(image.dims.order), tuple(map(int, image.shape))
    axes = "".join(
        EMPTY if length == 1 and letter not in f"YX{CHANNEL_NAMES}" else letter
        for letter, length in zip(order, shape, strict=True)
    )
    check_size(name, shape, max_pixels, axes)
    with decoding(name, form):
        array = np.asarray(image.data)
    n_scenes = len(image.scenes)
    return StoredArray(array, form, axes, False, f"the first of {n_scenes} scenes" if n_scenes > 1 else "")


def _reader(name: str, form: str) -> Any:
    """Return the class of bioio that reads a format."""
    package = f"bioio_{form.lower()}"
    try:
        return import_module(package).Reader
    except ImportError:
        needed = package.replace("_", "-")
        raise MissingExtra(
            f"{name}: {form} files need bioio and {needed}: pip install 'spinseg[microscopes]'"
        ) from None
