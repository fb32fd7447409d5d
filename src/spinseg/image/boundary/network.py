"""Small convolutional networks that find boundaries, run as matrix products.

`studies/training/train_boundary_net.py` trains and describes them: a U-Net of plain convolutions, whose finest layers
work at half the picture's size. Only NumPy is needed here: each convolution is one matrix product for each block of
rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from itertools import product

import numpy as np
from numpy.typing import NDArray

RADII = (1, 3)  # pixels, within which a boundary counts
CELL = 32  # pixels along each side that one pixel of the coarsest layer stands for
BORDER = CELL // 2  # pixels by which an image is mirrored before its first; about as many after its last
MIN_SIDE = 6 * CELL  # pixels: a small picture is continued to this size, since the network is used to see as much
REACH = 6 * CELL  # pixels: farther ones have no influence (30 + 124 in the layers up and down, and less than a cell)
WINDOW = 32 * CELL  # pixels along each side that are done at a time, so that memory stays bounded
SIZES = {"photograph": (1.0,), "measured": (1.0, 1.4)}  # at which an image is seen, relative to its own
MAX_ENLARGED = 1_000_000  # pixels of an image that is enlarged, so that its log-odds take seconds
BLOCK_BYTES = 2**20  # of the matrix of neighborhoods that a product takes at a time: about what a processor keeps near

SUMMARIZED = ("down4", "up3", "up2", "up1")  # layers by which the kind of an image is recognized

Maps = NDArray[np.float32]


class BoundaryNetwork:
    """The convolutions of the network by name: `down00`, `down01`, `lateral0`, `up0`, .. and `head`.

    Attributes
    ----------
    weights : dict of arrays
        `<name>.weight`, (n_out, n_in, size, size), and `<name>.bias`, (n_out,).
    """

    def __init__(self, weights: dict[str, NDArray[np.floating]]) -> None:
        self.weights = {name: np.ascontiguousarray(array, np.float32) for name, array in weights.items()}
        self.n_levels = sum(name.startswith("down") and name.endswith("0.weight") for name in weights)

    @classmethod
    @lru_cache
    def fitted(cls, kind: str = "photograph") -> BoundaryNetwork:
        """Return the network of the package for photographs, or for measured images."""
        with files("spinseg.image").joinpath(f"data/{kind}_network.npz").open("rb") as file, np.load(file) as stored:
            return cls(dict(stored))

    def log_odds(self, rgb: Maps, min_side: int = MIN_SIDE) -> Maps:
        """Return the log-odds of a boundary within each of RADII of each pixel of (height, width, 3), from 0 to 1.

        An image is continued to `min_side` pixels along each side, a multiple of CELL.
        """
        height, width = rgb.shape[:2]
        if max(height, width) <= WINDOW + 2 * REACH:
            return self._log_odds(rgb, min_side)
        found = np.empty((len(RADII), height, width), np.float32)
        for window in product(*(range(0, length, WINDOW) for length in (height, width))):
            own = tuple(slice(start, start + WINDOW) for start in window)
            seen = tuple(span_seen(span, length) for span, length in zip(own, (height, width), strict=True))
            inner = tuple(slice(o.start - s.start, o.stop - s.start) for o, s in zip(own, seen, strict=True))
            found[:, *own] = self._log_odds(rgb[seen])[:, *inner]
        return found

    def mean_log_odds(self, rgb: Maps, sizes: Iterable[float]) -> Maps:
        """Return the mean of the log-odds of the image at several sizes, relative to its own, each brought back to it.

        A size above 1 is left out where the image would have more than MAX_ENLARGED pixels.
        """
        height, width = rgb.shape[:2]
        used = [size for size in sizes if size <= 1 or height * width * size**2 <= MAX_ENLARGED]
        found = []
        for size in used:
            seen = resized(np.moveaxis(rgb, -1, 0), (max(round(size * height), 1), max(round(size * width), 1)))
            found.append(resized(self.log_odds(np.ascontiguousarray(np.moveaxis(seen, 0, -1))), (height, width)))
        return np.mean(found, axis=0, dtype=np.float32)

    def _log_odds(self, rgb: Maps, min_side: int = MIN_SIDE) -> Maps:
        """Return the log-odds of the whole image at once."""
        continued, spans = _continued(rgb, min_side)
        return self.convolve_all(continued)[:, *spans]

    def features(self, rgb: Maps) -> NDArray[np.float32]:
        """Return mean and standard deviation of each map of the layers SUMMARIZED over the whole image."""
        found = {name: x.reshape(len(x), -1) for name, x in self._layers(_continued(rgb)[0]) if name in SUMMARIZED}
        return np.concatenate([f(found[name], axis=1) for name in SUMMARIZED for f in (np.mean, np.std)])

    def convolve_all(self, rgb: Maps) -> Maps:
        """Return the output of the network, (2, height, width), whose sides are multiples of CELL."""
        _, x = deque(self._layers(rgb), maxlen=1)[0]
        _, h, w = x.shape
        blocks = x.reshape(-1, 2, 2, h, w).transpose(0, 3, 1, 4, 2)
        return blocks.reshape(-1, 2 * h, 2 * w)

    def _layers(self, rgb: Maps) -> Iterator[tuple[str, Maps]]:
        """Yield the name and the maps of each layer that later ones read, from the finest down and up again."""
        n, height, width = rgb.shape
        blocks = (rgb - np.float32(0.5)).reshape(n, height // 2, 2, width // 2, 2)
        x = blocks.transpose(0, 2, 4, 1, 3).reshape(4 * n, height // 2, width // 2)  # blocks of 2 x 2 are channels
        levels = []
        for level in range(self.n_levels):
            if level > 0:
                tall = np.maximum(x[:, ::2], x[:, 1::2])
                x = np.maximum(tall[..., ::2], tall[..., 1::2])
            x = self._block(f"down{level}1", self._block(f"down{level}0", x))
            yield f"down{level}", x
            levels.append(x)
        for level in range(self.n_levels - 2, -1, -1):
            below, x = self._block(f"lateral{level}", x), levels.pop(level)
            n, h, w = x.shape
            x = x.reshape(n, h // 2, 2, w // 2, 2)
            x += below[:, :, None, :, None]  # each pixel of the coarser layer four times
            x = self._block(f"up{level}", x.reshape(n, h, w))
            yield f"up{level}", x
        yield "head", self._block("head", x, rectified=False)

    def _block(self, name: str, x: Maps, rectified: bool = True) -> Maps:
        """Return a convolution and, as a rule, its positive part."""
        y = convolve(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])
        return np.maximum(y, 0, out=y) if rectified else y


def _continued(rgb: Maps, min_side: int = MIN_SIDE) -> tuple[Maps, tuple[slice, ...]]:
    """Return an image, (height, width, 3), as maps that are mirrored beyond its edges, and where it lies in them."""
    spans = [_mirrored_span(length, min_side) for length in rgb.shape[:2]]
    beyond = [(span.start, total - span.stop) for span, total in spans]
    return np.moveaxis(np.pad(rgb, [*beyond, (0, 0)], mode="symmetric"), -1, 0), tuple(span for span, _ in spans)


def _mirrored_span(length: int, min_side: int) -> tuple[slice, int]:
    """Return where an image of this length lies along an axis once it is continued, and how long that is.

    Where cells begin depends on where the image begins alone, so that a part of it that begins with a cell serves.
    """
    if length < min_side - 2 * BORDER:
        before = (min_side - length) // 2
        return slice(before, before + length), min_side
    return slice(BORDER, BORDER + length), -(-(BORDER + length + BORDER // 2) // CELL) * CELL


def resized(maps: Maps, shape: tuple[int, int]) -> Maps:
    """Return maps, (n, height, width), at another size: interpolated linearly, or means where they become smaller."""
    from PIL import Image

    if maps.shape[1:] == shape:
        return maps
    return np.stack([np.asarray(Image.fromarray(each).resize(shape[::-1], Image.Resampling.BILINEAR)) for each in maps])


def span_seen(span: slice, length: int) -> slice:
    """Return the pixels along an axis, of `length`, that the log-odds of a span depend on, from the start of a cell."""
    return slice(max(0, span.start // CELL * CELL - REACH), min(length, -(-span.stop // CELL) * CELL + REACH))


def convolve(x: Maps, weight: Maps, bias: Maps) -> Maps:
    """Return the convolution of maps, (n_in, height, width), which are 0 outside, with (n_out, n_in, size, size)."""
    n_out, n_in, size, _ = weight.shape
    _, height, width = x.shape
    y = np.empty((n_out, height, width), np.float32)
    if size == 1:
        np.matmul(weight[:, :, 0, 0], x.reshape(n_in, -1), out=y.reshape(n_out, -1))
    else:
        border = size // 2
        around = np.pad(x, ((0, 0), (border, border), (border, border)))
        matrix = weight.reshape(n_out, -1)
        n_rows = max(1, BLOCK_BYTES // (4 * n_in * size * size * width))
        near = np.empty((n_in, size, size, min(n_rows, height), width), np.float32)
        for first in range(0, height, n_rows):
            rows = min(n_rows, height - first)
            for down in range(size):
                for across in range(size):
                    source = around[:, first + down : first + down + rows, across : across + width]
                    near[:, down, across, :rows] = source
            block = near[..., :rows, :].reshape(matrix.shape[1], -1)
            y[:, first : first + rows] = (matrix @ block).reshape(n_out, rows, width)
    y += bias[:, None, None]
    return y
