"""Kinds of images that the evidence of a boundary differs for: photographs, and what an instrument measured."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.resources import files
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from spinseg._validation import invalid
from spinseg.image.boundary.network import SIZES, BoundaryNetwork, resized
from spinseg.image.components import ENDS, three_components
from spinseg.image.intensity import MAX_CODE
from spinseg.image.layout import ChannelAxis, Mask
from spinseg.image.picture import Picture, as_picture

SIDE = 256  # pixels, at most, of the sides of the views by which the kind is recognized

_kinds: WeakKeyDictionary[Picture, str] = WeakKeyDictionary()  # that were recognized


def stretched(picture: Picture, inside: Mask | None = None, like: Picture | None = None) -> Picture:
    """Return an image in the three channels that the network for measured images reads.

    Gray and color are stretched so that nearly all values inside fill the range; measured channels become components.
    Both follow from `like` instead, if it is given.
    """
    codes = None if like is None else like.codes
    if picture.is_color:
        seen = codes if codes is not None else picture.codes if inside is None else picture.codes[inside]
        low, high = np.percentile(seen, ENDS)
        values = np.clip((picture.codes - low) / max(high - low, 1.0), 0, 1)
    else:
        values = three_components(picture.codes, inside, codes)
    return Picture(np.rint(values * MAX_CODE).astype(np.uint16))


def kind_of_image(picture: Picture) -> str:
    """Return "photograph", or "measured" for volumes, for measured channels, and for what does not look like one.

    `studies/training/fit_kind.py` fits how gray and color images are judged.
    """
    if len(picture.shape) != 2 or not picture.is_color:
        return "measured"
    if picture not in _kinds:
        seen = photograph_log_odds(stretched(picture, picture.inside).rgb)
        _kinds[picture] = "photograph" if seen > 0 else "measured"
    return _kinds[picture]


def boundary_strength(image: Picture | ArrayLike, *, channel_axis: ChannelAxis = "auto") -> NDArray[np.float32]:
    """Return the share of annotators who would draw a boundary within a pixel, 0 to 1, (H, W).

    It is what the network for this kind of image sees, before any posterior: its lines are about three pixels wide, and
    need not close. `Segmentation.boundary_probability` has lines that do.

    Parameters
    ----------
    image : Picture or array
        Of one plane, with any number of channels.
    channel_axis : int, None or "auto"
        As in `as_picture`.

    Returns
    -------
    (H, W) array of float32
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> image = np.zeros((60, 90))
    >>> image[:, 45:] = 1
    >>> int(ss.boundary_strength(image)[30].argmax())
    44
    """
    picture = as_picture(image, channel_axis=channel_axis)
    if len(picture.shape) != 2:
        invalid("image", "be of one plane", f"shape {picture.shape}")
    kind = kind_of_image(picture)
    seen = picture if kind == "photograph" else stretched(picture, picture.inside)
    return expit(BoundaryNetwork.fitted(kind).mean_log_odds(seen.values, SIZES[kind])[0])


def photograph_log_odds(rgb: NDArray[np.uint8]) -> float:
    """Return the log-odds that a stretched image is a photograph: linear in what the network for others sees in it."""
    weights = _weights()
    return float(weights["weight"] @ kind_features(rgb) + weights["bias"])


def kind_features(rgb: NDArray[np.uint8], network: BoundaryNetwork | None = None) -> NDArray[np.float32]:
    """Return what a network, by default that for measured images, sees in an image: the mean over two views.

    These are the image reduced to SIDE pixels, and its middle as it is.
    """
    network = network or BoundaryNetwork.fitted("measured")
    values = np.moveaxis(np.divide(rgb, 255, dtype=np.float32), -1, 0)
    height, width = (max(round(min(1.0, SIDE / max(rgb.shape)) * length), 1) for length in rgb.shape[:2])
    middle = (slice(max(length - SIDE, 0) // 2, (length + SIDE) // 2) for length in rgb.shape[:2])
    views = [values[:, *middle]]
    if max(rgb.shape) > SIDE:  # else both are the whole image
        views.append(resized(values, (height, width)))
    with ThreadPoolExecutor(2) as pool:
        return np.mean(list(pool.map(lambda view: network.features(np.moveaxis(view, 0, -1)), views)), axis=0)


@lru_cache
def _weights() -> dict[str, NDArray[np.float32]]:
    with files("spinseg.image").joinpath("data/kind_weights.npz").open("rb") as file, np.load(file) as stored:
        return dict(stored)
