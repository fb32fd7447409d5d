"""Codebooks of color words, and statistics of sites: histograms of words, means, sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_gradient_magnitude

from spinseg._validation import check_int, finite_array, invalid
from spinseg.graph.adjacency import checked_sites, pixel_table
from spinseg.image.kernels.pixels import add_to_sites, find_nearest
from spinseg.image.layout import ChannelAxis
from spinseg.image.picture import Picture, as_picture, cielab

RNG = int | np.random.Generator | None

CELL_BITS = 6  # the color lookup table has 64 cells along each of red, green and blue


@dataclass(frozen=True, eq=False)
class Codebook:
    """A codebook of color words: every pixel is assigned the word nearest to its color.

    To keep one, save its `colors`, as with `numpy.save`.

    Attributes
    ----------
    colors : (n_words, n_channels) array of float32
        In the units of `Picture.colors`, which are CIELAB for images in color.

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> ss.Codebook.general().words(np.zeros((2, 3, 3), np.uint8)).shape
    (2, 3)
    """

    colors: NDArray[np.float32]

    def __post_init__(self) -> None:
        array = finite_array("colors", self.colors, (None, None)).astype(np.float32)
        if array.size == 0:
            invalid("colors", "hold at least one word", array.shape)
        array.flags.writeable = False
        object.__setattr__(self, "colors", array)

    def __len__(self) -> int:
        return len(self.colors)

    def __repr__(self) -> str:
        return f"Codebook(n_words={len(self)}, n_channels={self.colors.shape[1]})"

    @classmethod
    def general(cls, n_words: int = 120) -> Codebook:
        """Return the codebook for photographs that comes with the package, made by scripts/make_codebook.py."""
        with files("spinseg.image").joinpath("data/general_codebooks.npz").open("rb") as file, np.load(file) as stored:
            if isinstance(n_words, str) or str(n_words) not in stored.files:
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
    ) -> Codebook:
        """Fit a codebook by k-means to the pixels of an image (an array or a Picture) or of an iterable of images.

        20,000 pixels of a single image are sampled, or 2,000 of each of several. The codebook is smaller than `n_words`
        if these have fewer colors. Words are sorted by lightness.
        """
        n_words = check_int("n_words", n_words, at_least=1)
        rng = np.random.default_rng(rng)
        count = 2_000
        if isinstance(images, (Picture, np.ndarray)):
            images, count = [images], 20_000
        sample = []
        for image in images:
            picture = as_picture(image, channel_axis=channel_axis)
            codes = picture.codes if picture.inside is None else picture.codes[picture.inside]
            pixels = codes.reshape(-1, picture.n_channels)
            if len(pixels) > count:
                pixels = pixels[rng.choice(len(pixels), count, replace=False)]
            sample.append(Picture(pixels, channel_kind=picture.channel_kind).colors)
        n_channels = sorted({pixels.shape[1] for pixels in sample})
        if not sample:
            invalid("images", "hold at least one image", sample)
        if len(n_channels) > 1:
            invalid("images", "have equally many channels", n_channels)
        words = k_means(np.concatenate(sample), n_words, rng)
        return cls(words[np.lexsort(words.T[::-1])])

    def words(self, image: Picture | ArrayLike, *, channel_axis: ChannelAxis = "auto") -> NDArray[np.int32]:
        """Return the word of every pixel, an array of the image's shape.

        For color, sRGB is divided into 64 x 64 x 64 cells, and a pixel gets the word nearest to the middle of
        its cell, computed once for each cell that occurs. Otherwise every pixel is compared with every word.
        """
        picture = as_picture(image, channel_axis=channel_axis)
        if picture.n_channels != self.colors.shape[1]:
            invalid("image", f"have the codebook's {self.colors.shape[1]} channels", picture.n_channels)
        if not picture.is_color:
            return nearest_center(picture.colors.reshape(-1, picture.n_channels), self.colors).reshape(picture.shape)
        width, n_cells = 1 << (16 - CELL_BITS), (1 << CELL_BITS,) * 3
        red, green, blue = np.moveaxis(picture.codes // np.uint16(width), -1, 0)
        cells = np.ravel_multi_index((red, green, blue), n_cells)
        table = np.zeros(n_cells, np.int32).ravel()
        table[cells] = 1
        used = np.flatnonzero(table)
        steps = np.stack(np.unravel_index(used, n_cells), axis=1)
        table[used] = nearest_center(cielab((steps * width + width // 2).astype(np.uint16)), self.colors)
        return table[cells]


def site_histograms(words: ArrayLike, sites: ArrayLike, n_words: int) -> sparse.csr_array:
    """Count the pixels of each word in each site: int32, (n_sites, n_words)."""
    array, n_sites = checked_sites(sites)
    words = np.asarray(words)
    if words.shape != array.shape:
        invalid("words", f"have the sites' shape {array.shape}", words.shape)
    inside = array >= 0
    rows, columns = array[inside], words[inside]
    if columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= n_words:
        invalid("words", f"be whole numbers from 0 to {n_words - 1}", columns)
    ones = np.ones(rows.size, np.int32)
    counts = sparse.coo_array((ones, (rows, columns)), shape=(n_sites, n_words)).tocsr()
    counts.sort_indices()
    return counts


def site_means(values: ArrayLike, sites: ArrayLike) -> NDArray[np.float64]:
    """Return the mean over each site, (n_sites, n_channels), of values with or without a last axis of channels."""
    array, n_sites = checked_sites(sites)
    table = pixel_table("values", values, array.shape)
    totals, sizes = np.zeros((n_sites, table.shape[1])), np.zeros(n_sites, np.int64)
    add_to_sites(np.require(table, None, ("C", "W")), np.require(array.ravel(), None, "W"), totals, sizes)
    return totals / np.maximum(sizes, 1)[:, None]


def pixel_positions(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the coordinates of every pixel, (*shape, n_axes), scaled to 0..100 along the longest axis."""
    coordinates = np.meshgrid(*(np.arange(length, dtype=np.float32) for length in shape), indexing="ij")
    return np.stack(coordinates, axis=-1) * np.float32(100 / max(shape))


def gradient_magnitude(colors: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Return sqrt(sum over channels of |gradient|^2) at the scale of a Gaussian, in pixels."""
    magnitudes = [gaussian_gradient_magnitude(channel, scale) for channel in np.moveaxis(colors, -1, 0)]
    return np.sqrt(np.sum(np.square(magnitudes), axis=0))


def site_sizes(sites: ArrayLike) -> NDArray[np.int64]:
    """Count the pixels of each site, (n_sites,)."""
    array, n_sites = checked_sites(sites)
    return np.bincount(array.ravel() + 1, minlength=n_sites + 1)[1:]


def k_means(points: NDArray[np.float32], n_words: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the centers of at most `n_words` clusters, by Lloyd's algorithm from a k-means++ start.

    Arthur and Vassilvitskii, SODA 2007. All centers differ, and each has at least one point.
    """
    centers = points[_kmeans_plus_plus(points, n_words, rng)]
    for _ in range(30):
        assigned = nearest_center(points, centers)
        sizes = np.bincount(assigned, minlength=len(centers))
        sums = np.stack([np.bincount(assigned, channel, len(centers)) for channel in points.T], axis=1)
        moved = (sums[sizes > 0] / sizes[sizes > 0, None]).astype(np.float32)
        if moved.shape == centers.shape and np.allclose(moved, centers, rtol=0, atol=0.01):
            return moved
        centers = moved
    return centers


def nearest_center(points: NDArray[np.float32], centers: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the index of the center c nearest to each point p, the first of these: argmin |c|^2 / 2 - c.p."""
    half_norms, found = np.square(centers).sum(axis=1) / 2, np.empty(len(points), np.int32)
    points, columns = (np.require(part, np.float32, ("C", "W")) for part in (points, centers.T))
    find_nearest(points, columns, half_norms, np.empty_like(half_norms), found)
    return found


def _kmeans_plus_plus(points: NDArray[np.float32], count: int, rng: np.random.Generator) -> list[int]:
    """Draw points, each in proportion to its squared distance from the nearest one before, and return their indices."""
    chosen = [int(rng.integers(len(points)))]
    distances = np.full(len(points), np.inf)
    while len(chosen) < count:
        distances = np.minimum(distances, np.square(points - points[chosen[-1]]).sum(axis=1, dtype=np.float64))
        total = np.cumsum(distances)
        if total[-1] == 0:  # no other color is left
            break
        chosen.append(min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(points) - 1))
    return chosen
