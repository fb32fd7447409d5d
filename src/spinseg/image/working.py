"""The image that is analyzed: filled in outside the mask, and reduced where the original is large."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from skimage.measure import label
from skimage.segmentation import watershed

from spinseg.image.layout import Ints, Mask
from spinseg.image.picture import Picture


class WorkingCopy(NamedTuple):
    """The image that is analyzed: pixels outside the mask are filled in, and a large image is reduced.

    `picture` and `inside` are reduced by `step` along each axis; `original_inside` and `shape` are the original's.
    `keeps_parts` says that blocks inside are outside here, to keep parts of the mask apart. `texture` is what
    `texture_of` finds, where it is looked for.
    """

    picture: Picture
    inside: Mask | None
    step: int
    original_inside: Mask | None
    shape: tuple[int, ...]
    keeps_parts: bool = False
    texture: NDArray[np.float32] | None = None

    def to_original(self, values: NDArray[Any], outside: float) -> NDArray[Any]:
        """Return the values of this copy's pixels for the pixels of the original, and `outside` outside its mask."""
        for axis, length in enumerate(self.shape):
            if self.step > 1:
                values = np.repeat(values, self.step, axis=axis).take(np.arange(length), axis=axis)
        if self.original_inside is None:
            return values
        return np.where(self.original_inside, values, np.asarray(outside, values.dtype))

    def completed(self, sites: Ints) -> Ints:
        """Return sites of the original, made of this copy's, none of which has pixels of two parts of the mask."""
        if self.original_inside is None or not self.keeps_parts:
            return sites
        return sites_within_parts(sites, self.original_inside)


def working_copy(
    picture: Picture, inside: Mask | None, max_pixels: int | None, held: Mask | None = None
) -> WorkingCopy:
    """Return the image to analyze, of at most `max_pixels` pixels.

    Outside the mask every pixel gets the color of the nearest one inside, so that it adds no edges. A pixel of a
    reduced image is the mean of a block, and is inside as `reduce_mask` has it; pixels that are `held` are.
    """
    codes, reduced_inside, keeps_parts = picture.codes, inside, False
    if inside is not None:
        nearest = distance_transform_edt(~inside, return_distances=False, return_indices=True)
        codes = codes[tuple(nearest)]
    n_pixels, n_axes = int(np.prod(picture.shape)), len(picture.shape)
    step = 1 if max_pixels is None else max(1, int(np.ceil((n_pixels / max_pixels) ** (1 / n_axes))))
    if step > 1:
        codes = block_means(codes, step)
        if inside is not None:
            reduced_inside, keeps_parts = reduce_mask(inside, step, held)
    copy = Picture(codes, channel_kind=picture.channel_kind)
    return WorkingCopy(copy, reduced_inside, step, inside, picture.shape, keeps_parts)


def block_means(codes: NDArray[np.uint16], step: int) -> NDArray[np.uint16]:
    """Return the rounded means of blocks of `step` pixels along each axis but the last, which is that of channels."""
    shape = codes.shape[:-1]
    lengths = [np.diff(np.append(np.arange(0, length, step), length)) for length in shape]
    sizes = np.prod(np.meshgrid(*lengths, indexing="ij"), axis=0).astype(np.float32)
    means = reduce_blocks(codes, step, len(shape), np.add, np.uint64) / sizes[..., None]
    return np.rint(means).astype(np.uint16)


def any_in_blocks(marked: Mask, step: int) -> Mask:
    """Return which blocks of `step` pixels along each axis have a marked pixel."""
    return reduce_blocks(marked, step, marked.ndim, np.logical_or, np.bool_)


def reduce_blocks(
    values: NDArray[Any], step: int, n_axes: int, ufunc: np.ufunc, dtype: type[np.generic]
) -> NDArray[Any]:
    """Reduce each block of `step` along the first axes by `ufunc`; the last blocks may be smaller."""
    shape = [-(-length // step) for length in values.shape[:n_axes]] + list(values.shape[n_axes:])
    reduced = np.zeros(shape, dtype)
    for offsets in np.ndindex(*[step] * n_axes):  # ten times as fast as ufunc.reduceat
        part = values[tuple(slice(offset, None, step) for offset in offsets)]
        into = reduced[tuple(slice(length) for length in part.shape)]
        ufunc(into, part, out=into)
    return reduced


def reduce_mask(inside: Mask, step: int, held: Mask | None = None) -> tuple[Mask, bool]:
    """Return which blocks of `step` pixels along each axis are inside, and whether some are not to keep parts apart.

    A block is inside if any of its pixels is. But where two blocks touch in which most pixels inside belong to
    different parts of the mask, the one with fewer of them is outside: a line one pixel wide would separate nothing
    otherwise. The fullest block of each part, and blocks with a pixel that is `held`, stay inside.
    """
    part = label(inside, connectivity=1)
    shape = tuple(-(-length // step) for length in inside.shape)
    pixels = np.nonzero(inside)
    block = np.ravel_multi_index(tuple(axis // step for axis in pixels), shape)
    blocks, parts, counts = _counted_pairs(block, part[pixels])
    owner, fullness, kept = (np.zeros(int(np.prod(shape)), kind) for kind in (np.int64, np.int64, bool))
    owner[blocks], fullness[blocks] = parts, counts  # of repeated indices the last assignment stays
    n_parts = int(part.max())
    if n_parts > 1:
        fullest = np.zeros(n_parts, np.int64)
        fullest[parts - 1] = blocks
        owner[fullest], kept[fullest] = np.arange(1, n_parts + 1), True
    owner, fullness, kept = (each.reshape(shape) for each in (owner, fullness, kept))
    if held is not None:
        kept |= any_in_blocks(held, step)
    reduced = owner > 0
    for axis in range(inside.ndim):
        here, there = ((slice(None),) * axis + (side,) for side in (slice(-1), slice(1, None)))
        apart = (owner[here] != owner[there]) & (owner[here] > 0) & (owner[there] > 0)
        first = (fullness[here] < fullness[there]) | kept[there]
        reduced[here] &= ~(apart & first & ~kept[here])
        reduced[there] &= ~(apart & ~(first & ~kept[here]) & ~kept[there])
    return reduced, bool((reduced != (owner > 0)).any())


def sites_within_parts(sites: Ints, inside: Mask) -> Ints:
    """Return sites of an image at full size none of which has pixels of two parts of the mask.

    A pixel inside without a site, or with one that lies mostly in another part, gets the site of the nearest pixel of
    its own part, and keeps what it has where there is none.
    """
    part = label(inside, connectivity=1)
    known = inside & (sites >= 0)
    site, of_part, _ = _counted_pairs(sites[known], part[known])
    owner = np.zeros(int(sites.max()) + 2, np.int64)  # the last is that of no site
    owner[site] = of_part  # in which most of its pixels lie
    return flooded(sites, inside & (owner[sites] == part), inside)


def _counted_pairs(
    first: NDArray[np.integer], second: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the two numbers of each different pair, and how often it occurs, from the rarest on."""
    stride = int(second.max(initial=0)) + 1
    pairs, counts = np.unique(first.astype(np.int64) * stride + second, return_counts=True)
    order = np.argsort(counts, kind="stable")
    return *np.divmod(pairs[order], stride), counts[order]


def flooded(sites: Ints, kept: Mask, inside: Mask) -> Ints:
    """Return sites in which pixels inside that are not `kept` get the site of the nearest one, along pixels inside."""
    found = watershed(np.zeros(sites.shape, np.uint8), np.where(kept, sites + 1, 0), connectivity=1, mask=inside)
    return np.where(found > 0, found - 1, sites).astype(np.int32)
