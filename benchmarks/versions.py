"""Changes of a photograph."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Picture = NDArray[np.uint8]


def halved(image: Picture) -> Picture:
    """Return the image at half the size."""
    return np.asarray(Image.fromarray(image).resize((image.shape[1] // 2, image.shape[0] // 2), Image.Resampling.BOX))


def gray(image: Picture) -> Picture:
    """Return the image in gray."""
    return np.asarray(Image.fromarray(image).convert("L"))


def noisy(image: Picture, seed: int = 0) -> Picture:
    """Return the image with Gaussian noise of standard deviation 10."""
    noise = np.random.default_rng(seed).normal(0, 10, image.shape)
    return np.clip(np.rint(image + noise), 0, 255).astype(np.uint8)


def compressed(image: Picture) -> Picture:
    """Return the image after JPEG compression of quality 30."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=30)
    with Image.open(file) as opened:
        return np.asarray(opened)


def brighter(image: Picture) -> Picture:
    """Return the image a sixth brighter."""
    return np.clip(np.rint(image * (7 / 6)), 0, 255).astype(np.uint8)
