"""Changes of a photograph."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from spinseg.partition.numbering import in_order

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


def painted(image: Picture, annotations: list[NDArray], seed: int) -> tuple[Picture, list[NDArray]]:
    """Return a part of a photograph with rectangles and ellipses painted on it, which all annotators have drawn.

    Half of them are painted on a ground of one color, which nobody divides. The part has random sides.
    """
    rng = np.random.default_rng(seed)
    rows, columns = (int(rng.integers(60, length + 1)) for length in image.shape[:2])
    image, annotations = image[:rows, :columns].copy(), [drawn[:rows, :columns].copy() for drawn in annotations]
    if seed % 2:
        image[:] = _color(rng, image.shape[2:])
        annotations = [np.zeros_like(drawn) for drawn in annotations]
    y, x = np.mgrid[:rows, :columns]
    for shape in range(rng.integers(1, 4)):
        angle = rng.uniform(0, np.pi) * rng.integers(0, 2)
        dy, dx = y - rng.uniform(0, rows), x - rng.uniform(0, columns)
        least, most = 0.1 * min(rows, columns), 0.4 * min(rows, columns)
        u = np.abs(np.cos(angle) * dx - np.sin(angle) * dy) / rng.uniform(least, most)
        v = np.abs(np.sin(angle) * dx + np.cos(angle) * dy) / rng.uniform(least, most)
        within = (np.maximum(u, v) if rng.integers(0, 2) else np.hypot(u, v)) < 1
        image[within] = _color(rng, image.shape[2:])
        for drawn in annotations:
            drawn[within] = 1_000 + shape
    return image, [in_order(drawn) for drawn in annotations]


def _color(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return any color, or one whose channels are 0 or 255."""
    return (255 * rng.integers(0, 2, shape) if rng.integers(0, 2) else rng.integers(0, 256, shape)).astype(np.uint8)
