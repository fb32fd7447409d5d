"""The probability of a boundary at every pixel, by the network alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from spinseg._validation import invalid
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.layout import ChannelAxis
from spinseg.image.picture import Picture, as_picture


def boundary_strength(image: Picture | ArrayLike, *, channel_axis: ChannelAxis = "auto") -> NDArray[np.float32]:
    """Return how many of those who divide the picture would draw a boundary within a pixel, 0 to 1, (H, W).

    It is what the network of the preset "photo" sees in gray and color pictures, before any posterior: its lines are
    about three pixels wide, and need not close. `Segmentation.boundary_probability` has lines that do.

    Parameters
    ----------
    image : Picture or array
        With one channel or three.
    channel_axis : int, None or "auto"
        As in `as_picture`.

    Examples
    --------
    >>> image = np.zeros((60, 90)); image[:, 45:] = 1
    >>> int(boundary_strength(image)[30].argmax())
    44
    """
    picture = as_picture(image, channel_axis=channel_axis)
    if len(picture.shape) != 2 or picture.n_channels != 3:
        what = f"shape {picture.shape} and {picture.n_channels} channels"
        invalid("image", "be a gray or a color picture of one plane", what)
    return expit(BoundaryNetwork.fitted().log_odds(picture.values)[0])
