"""Colour words, and what every site is described by: how often it shows each word, its mean colour, its size."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from zipfile import BadZipFile
from zlib import error as DeflateError

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_gradient_magnitude

from spinseg._validation import check_int, finite_array, invalid
from spinseg.image.adjacency import checked_sites, per_pixel
from spinseg.image.picture import ChannelAxis, Picture, as_picture, cielab
from spinseg.parallel.atomic import atomic_write

RNG = int | np.random.Generator | None

CELL_BITS = 6  # the colour lookup table has 64 cells along each of red, green and blue
FORMAT = "spinseg codebook 1"


@dataclass(frozen=True, eq=False)
class Codebook:
    """Colour words: every pixel counts as the word nearest to its colour.

    Attributes
    ----------
    colours : (n_words, n_channels) array of float32
        In the units of `Picture.colours`: CIELAB where there are three channels.

    Examples
    --------
    >>> Codebook.general().words(np.zeros((2, 3, 3), np.uint8)).shape
    (2, 3)
    """

    colours: NDArray[np.float32]

    def __post_init__(self) -> None:
        array = finite_array("colours", self.colours, (None, None)).astype(np.float32)
        if array.size == 0:
            invalid("colours", "hold at least one word", array.shape)
        array.flags.writeable = False
        object.__setattr__(self, "colours", array)

    def __len__(self) -> int:
        return len(self.colours)

    def __repr__(self) -> str:
        return f"Codebook(n_words={len(self)}, n_channels={self.colours.shape[1]})"

    @classmethod
    def general(cls, n_words: int = 120) -> "Codebook":
        """The codebook that comes with the package, for photographs (scripts/make_codebook.py says from what)."""
        with files("spinseg.image").joinpath("data/general_codebooks.npz").open("rb") as file, np.load(file) as stored:
            if str(n_words) not in stored.files:
                invalid("n_words", f"be one of {', '.join(stored.files)} for the general codebook", n_words)
            return cls(stored[str(n_words)])

    @classmethod
    def fit(
        cls,
        images: Picture | NDArray | Iterable[Picture | ArrayLike],
        n_words: int = 120,
        *,
        channel_axis: ChannelAxis = "auto",
        rng: RNG = None,
    ) -> "Codebook":
        """Words fitted by k-means to pixels of an image (an array or a Picture), or of a collection (anything else).

        20,000 pixels of one image, or 2,000 of each of several, are looked at. There are fewer words than asked
        where those have fewer colours. Words come in order of lightness.
        """
        n_words = check_int("n_words", n_words, at_least=1)
        rng = np.random.default_rng(rng)
        count = 2_000
        if isinstance(images, (Picture, np.ndarray)):
            images, count = [images], 20_000
        sample = [_some_pixels(as_picture(image, channel_axis=channel_axis), count, rng) for image in images]
        if not sample:
            invalid("images", "hold at least one image", sample)
        if len({pixels.shape[1] for pixels in sample}) > 1:
            invalid("images", "have equally many channels", sorted({pixels.shape[1] for pixels in sample}))
        words = k_means(np.concatenate(sample), n_words, rng)
        return cls(words[np.lexsort(words.T[::-1])])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Codebook":
        """The codebook that `save` wrote."""
        try:
            with open(path, "rb") as file, np.load(file) as stored:
                known = str(stored["format"]) == FORMAT
                colours = stored["colours"]
        except FileNotFoundError:
            invalid("path", "be a file", str(path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, BadZipFile, DeflateError):
            known = False
        if not known:
            invalid("path", "be a codebook that spinseg saved", str(path))
        return cls(colours)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the codebook; under its name there is the whole of it or nothing."""
        content = {"format": np.array(FORMAT), "colours": self.colours}
        atomic_write(path, lambda file: np.savez_compressed(file, **content))  # type: ignore[arg-type]

    def words(self, image: Picture | ArrayLike, *, channel_axis: ChannelAxis = "auto") -> NDArray[np.int32]:
        """The word of every pixel, in the image's shape.

        Colours are looked up in a table of 64 x 64 x 64 cells of sRGB, filled where the image has colours: a pixel
        gets the word nearest to the middle of its cell. Other channels are compared with every word.
        """
        picture = as_picture(image, channel_axis=channel_axis)
        if picture.n_channels != self.colours.shape[1]:
            invalid("image", f"have the codebook's {self.colours.shape[1]} channels", picture.n_channels)
        if picture.n_channels != 3:
            return nearest(picture.colours.reshape(-1, picture.n_channels), self.colours).reshape(picture.shape)
        red, green, blue = (picture.codes[..., c].astype(np.int32) >> (16 - CELL_BITS) for c in range(3))
        cells = (red << 2 * CELL_BITS) | (green << CELL_BITS) | blue
        table = np.zeros(1 << 3 * CELL_BITS, np.int32)
        table[cells] = 1
        used = np.flatnonzero(table)
        table[used] = nearest(_cell_colours(used), self.colours)
        return table[cells]


def site_histograms(words: ArrayLike, sites: ArrayLike, n_words: int) -> sparse.csr_array:
    """How many pixels of each site show each word: int32 counts, (n_sites, n_words).

    Examples
    --------
    >>> site_histograms([[0, 2, 2]], [[0, 0, 1]], n_words=3).toarray()
    array([[1, 0, 1],
           [0, 0, 1]], dtype=int32)
    """
    array, n_sites = checked_sites(sites)
    shown = np.asarray(words)
    if shown.shape != array.shape:
        invalid("words", f"have the sites' shape {array.shape}", shown.shape)
    inside = array >= 0
    rows, columns = array[inside], shown[inside]
    if columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= n_words:
        invalid("words", f"be whole numbers from 0 to {n_words - 1}", columns)
    ones = np.ones(rows.size, np.int32)
    counts = sparse.coo_array((ones, (rows, columns)), shape=(n_sites, n_words)).tocsr()
    counts.sort_indices()
    return counts


def site_means(values: ArrayLike, sites: ArrayLike) -> NDArray[np.float64]:
    """Mean over the pixels of each site, (n_sites, n_channels), of values with or without a last axis of channels."""
    array, n_sites = checked_sites(sites)
    table = per_pixel("values", values, array.shape)
    places = array.ravel() + 1  # what lies outside is summed in place 0
    sums = [np.bincount(places, channel, n_sites + 1)[1:] for channel in table.T]
    return np.stack(sums, axis=1) / np.maximum(site_sizes(array), 1)[:, None]


def pixel_positions(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Where every pixel is, (*shape, n_axes), from 0 to 100 along the longest axis."""
    places = np.meshgrid(*(np.arange(length, dtype=np.float32) for length in shape), indexing="ij")
    return np.stack(places, axis=-1) * np.float32(100 / max(shape))


def gradient(colours: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Length of the colour gradient at a scale in pixels, the root of the sum of squares over channels."""
    slopes = [gaussian_gradient_magnitude(channel, scale) for channel in np.moveaxis(colours, -1, 0)]
    return np.sqrt(np.sum(np.square(slopes), axis=0))


def site_sizes(sites: ArrayLike) -> NDArray[np.int64]:
    """Number of pixels of each site, (n_sites,)."""
    array, n_sites = checked_sites(sites)
    return np.bincount(array.ravel() + 1, minlength=n_sites + 1)[1:]


def k_means(points: NDArray[np.float32], n_words: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Centres of at most `n_words` clusters of the points by Lloyd's algorithm from a k-means++ start.

    Arthur and Vassilvitskii, SODA 2007. No two centres are equal, and none is left without points.
    """
    centres = points[_spread_out(points, n_words, rng)]
    for _ in range(30):
        owner = nearest(points, centres)
        sizes = np.bincount(owner, minlength=len(centres))
        sums = np.stack([np.bincount(owner, channel, len(centres)) for channel in points.T], axis=1)
        moved = (sums[sizes > 0] / sizes[sizes > 0, None]).astype(np.float32)
        if moved.shape == centres.shape and np.allclose(moved, centres, rtol=0, atol=0.01):
            return moved
        centres = moved
    return centres


def nearest(points: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int32]:
    """The centre nearest to each point: argmin |c|^2 / 2 - c.p.

    A block of points at a time stays in cache, and without BLAS, whose threads cost more than products so thin.
    """
    halves = np.square(centres).sum(axis=1) / 2
    columns = np.ascontiguousarray(centres.T)
    found = np.empty(len(points), np.int32)
    for start in range(0, len(points), 1024):
        block = points[start : start + 1024]
        scores = np.repeat(halves[None], len(block), axis=0)
        for channel, column in zip(block.T, columns, strict=True):
            scores -= channel[:, None] * column
        found[start : start + 1024] = scores.argmin(axis=1)
    return found


def _spread_out(points: NDArray[np.float32], count: int, rng: np.random.Generator) -> list[int]:
    """Places of different points, each drawn with probability as its squared distance from those before it."""
    chosen = [int(rng.integers(len(points)))]
    gaps = np.full(len(points), np.inf)
    while len(chosen) < count:
        gaps = np.minimum(gaps, np.square(points - points[chosen[-1]]).sum(axis=1, dtype=np.float64))
        heights = np.cumsum(gaps)
        if heights[-1] == 0:  # no other colour is left
            break
        chosen.append(min(int(np.searchsorted(heights, rng.random() * heights[-1], side="right")), len(points) - 1))
    return chosen


def _some_pixels(picture: Picture, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Colours of pixels drawn from the inside of a picture, all of them where it has fewer."""
    pixels = (picture.codes if picture.inside is None else picture.codes[picture.inside]).reshape(
        -1, picture.n_channels
    )
    if len(pixels) > count:
        pixels = pixels[rng.choice(len(pixels), count, replace=False)]
    return Picture(pixels).colours


def _cell_colours(cells: NDArray[np.int64]) -> NDArray[np.float32]:
    """CIELAB of the middle of cells of the colour table."""
    last = (1 << CELL_BITS) - 1
    steps = np.stack([cells >> 2 * CELL_BITS, (cells >> CELL_BITS) & last, cells & last], axis=1)
    width = 1 << (16 - CELL_BITS)
    return cielab((steps * width + width // 2).astype(np.uint16))
