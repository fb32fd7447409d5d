"""Kinds of images that the evidence of a boundary differs for: photographs, and what an instrument measured."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from spinseg._validation import invalid
from spinseg.image.boundary.network import SIZES, BoundaryNetwork, convolve
from spinseg.image.components import ENDS, three_components
from spinseg.image.intensity import MAX_CODE
from spinseg.image.layout import ChannelAxis, Mask
from spinseg.image.picture import Picture, as_picture

SIDE = 128  # pixels of the thumbnail by which the kind is recognized
# Of the mean over views, above which an image is taken for a photograph: the lowest that 98 % of training nuclei of
# BBBC038 and of rendered scenes stay below. `train_kind_net.py` prints it, by cross-validation.
LEAST_LOG_ODDS = -1.6


def stretched(picture: Picture, inside: Mask | None = None) -> Picture:
    """Return an image in the three channels that the network for measured images reads.

    Gray and color are stretched so that nearly all values inside fill the range; measured channels become components.
    """
    if picture.is_color:
        seen = picture.codes if inside is None else picture.codes[inside]
        low, high = np.percentile(seen, ENDS)
        values = np.clip((picture.codes - low) / max(high - low, 1.0), 0, 1)
    else:
        values = three_components(picture.codes, inside)
    return Picture(np.rint(values * MAX_CODE).astype(np.uint16))


def kind_of_image(picture: Picture) -> str:
    """Return "photograph", or "measured" for volumes, for measured channels, and for what does not look like one.

    A small network (`studies/training/train_kind_net.py`) judges a thumbnail of gray and color images.
    """
    if len(picture.shape) != 2 or not picture.is_color:
        return "measured"
    seen = photograph_log_odds(stretched(picture, picture.inside).rgb)
    return "photograph" if seen > LEAST_LOG_ODDS else "measured"


def boundary_strength(image: Picture | ArrayLike, *, channel_axis: ChannelAxis = "auto") -> NDArray[np.float32]:
    """Return how many of those who divide the image would draw a boundary within a pixel, 0 to 1, (H, W).

    It is what the network for this kind of image sees, before any posterior: its lines are about three pixels wide, and
    need not close. `Segmentation.boundary_probability` has lines that do.

    Parameters
    ----------
    image : Picture or array
        Of one plane, with any number of channels.
    channel_axis : int, None or "auto"
        As in `as_picture`.

    Examples
    --------
    >>> image = np.zeros((60, 90)); image[:, 45:] = 1
    >>> int(boundary_strength(image)[30].argmax())
    44
    """
    picture = as_picture(image, channel_axis=channel_axis)
    if len(picture.shape) != 2:
        invalid("image", "be of one plane", f"shape {picture.shape}")
    kind = kind_of_image(picture)
    seen = picture if kind == "photograph" else stretched(picture, picture.inside)
    return expit(BoundaryNetwork.fitted(kind).mean_log_odds(seen.values, SIZES[kind])[0])


def photograph_log_odds(rgb: NDArray[np.uint8]) -> float:
    """Return the log-odds that a stretched image is a photograph: the mean over views, which misleads less than one."""
    return float(np.mean([_log_odds_of_view(view) for view in thumbnails(rgb)]))


def thumbnails(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return views of an image: it, its mirror image, and four parts of two thirds of its height and width."""
    parts = [[slice(0, -(-2 * side // 3)), slice(side // 3, None)] for side in rgb.shape[:2]]
    views = [rgb, rgb[:, ::-1], *(rgb[rows, columns] for rows in parts[0] for columns in parts[1])]
    return np.stack([thumbnail(view) for view in views])


def thumbnail(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return an image in SIDE x SIDE pixels, whatever its shape."""
    from PIL import Image

    return np.asarray(Image.fromarray(np.ascontiguousarray(rgb)).resize((SIDE, SIDE), Image.Resampling.BOX))


def _log_odds_of_view(small: NDArray[np.uint8]) -> float:
    blocks = (small / 255 - 0.5).reshape(SIDE // 2, 2, SIDE // 2, 2, 3)
    x = blocks.transpose(4, 1, 3, 0, 2).reshape(12, SIDE // 2, SIDE // 2).astype(np.float32)
    weights = _weights()
    for level in range(len(weights) // 2 - 1):
        if level > 0:
            tall = np.maximum(x[:, ::2], x[:, 1::2])
            x = np.maximum(tall[..., ::2], tall[..., 1::2])
        x = convolve(x, weights[f"layers.{level}.weight"], weights[f"layers.{level}.bias"])
        np.maximum(x, 0, out=x)
    return float(weights["head.weight"][0] @ x.mean(axis=(1, 2)) + weights["head.bias"][0])


@lru_cache
def _weights() -> dict[str, NDArray[np.float32]]:
    with files("spinseg.image").joinpath("data/kind_network.npz").open("rb") as file, np.load(file) as stored:
        return {name: array.astype(np.float32) for name, array in stored.items()}
