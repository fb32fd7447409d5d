"""Seeds on the pixels of an image: how they are read, reduced with it, and given sites of their own."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import distance_transform_edt, find_objects
from scipy.sparse.csgraph import maximum_bipartite_matching
from skimage.measure import label
from skimage.segmentation import watershed

from spinseg._validation import check_array, check_int, integer_array, invalid
from spinseg.image.io import read_image
from spinseg.image.layout import Ints

SeedPoints = Mapping[int, Sequence[Sequence[int]]]
Seeds = ArrayLike | SeedPoints | str | os.PathLike[str]

# Rules that scribbles may break, too.
INSIDE = "lie inside the mask, and where the image is neither masked nor transparent"
ONE_NUMBER = "give each pixel one number"
APART = "lie {step} pixels apart at least, since the image is analyzed at 1/{step} of its size"


def seed_image(seeds: Seeds, shape: tuple[int, ...], inside: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return the seed of every pixel of an image of this shape, 0 where it has none.

    `seeds` is a label image, in which 0 and negative numbers are no seeds; a file that holds one; or the pixels of each
    seed, {seed: [(row, column), ..]}. They must lie `inside` the mask.
    """
    if isinstance(seeds, Mapping):
        image = _drawn_points(seeds, shape)
    else:
        array = read_seeds(seeds) if isinstance(seeds, (str, os.PathLike)) else check_array("seeds", seeds)
        if array.shape != shape:
            invalid("seeds", f"have the image's shape {shape}", array.shape)
        image = np.maximum(integer_array("seeds", array).astype(np.int64), 0)
    if not image.any():
        invalid("seeds", "be a positive number at some pixel", "none")
    outside = np.zeros(shape, bool) if inside is None else (image > 0) & ~inside
    if outside.any():
        place = tuple(int(axis[0]) for axis in np.nonzero(outside))
        invalid("seeds", INSIDE, place)
    return image


def read_seeds(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the label image in a file; of an image with a palette, the indices. A gray image may have channels."""
    from PIL import Image, UnidentifiedImageError

    array = read_image(path)
    try:
        with Image.open(path) as picture:
            if picture.mode == "P":
                return np.array(picture)
    except UnidentifiedImageError:  # which only says that another reader has read it
        return array
    is_color = array.ndim == 3 and array.shape[-1] in (3, 4) and array.dtype == np.uint8
    if not is_color:
        return array
    if (array[..., :3] != array[..., :1]).any() or (array[..., 3:] != 255).any():
        invalid("seeds", "be an image of one number per pixel, without colors or transparency", os.fspath(path))
    return array[..., 0]


def _drawn_points(seeds: SeedPoints, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The seed of every pixel, from the pixels of each seed."""
    image = np.zeros(shape, np.int64)
    for seed, points in seeds.items():
        number = check_int("seeds", seed, at_least=1)
        places = integer_array("seeds", points)
        if places.ndim != 2 or places.shape[1] != len(shape):
            invalid("seeds", f"have a list of pixels for each number, of {len(shape)} coordinates each", points)
        beyond = ((places < 0) | (places >= np.array(shape))).any(axis=1)
        if beyond.any():
            invalid("seeds", f"be pixels of the image, of shape {shape}", tuple(places[beyond][0].tolist()))
        where = tuple(places.T)
        twice = (image[where] > 0) & (image[where] != number)
        if twice.any():
            invalid("seeds", ONE_NUMBER, tuple(places[twice][0].tolist()))
        image[where] = number
    return image


def reduced_seeds(image: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Return the seed of each block of `step` pixels along each axis; every seed keeps a block at least.

    A block with pixels of several seeds goes to one that has no other block or, if there is none, to the lowest.
    """
    if step == 1:
        return image
    shape = tuple(-(-length // step) for length in image.shape)
    places = np.unravel_index(np.flatnonzero(image > 0), image.shape)  # a tenth of the time of np.nonzero
    block = np.ravel_multi_index(tuple(axis // step for axis in places), shape)
    pairs = np.unique(np.stack([block, image[places]], axis=1), axis=0)
    blocks, n_seeds = np.unique(pairs[:, 0], return_counts=True)
    shared = np.isin(pairs[:, 0], blocks[n_seeds > 1])
    reduced = np.zeros(int(np.prod(shape)), np.int64)
    reduced[pairs[::-1, 0]] = pairs[::-1, 1]  # of several, the lowest: the last assignment stays
    needy = shared & ~np.isin(pairs[:, 1], pairs[~shared, 1])  # of seeds without a block of their own
    found, row = np.unique(pairs[needy, 1], return_inverse=True)
    claimed, column = np.unique(pairs[needy, 0], return_inverse=True)
    index = row.ravel().astype(np.int32), column.ravel().astype(np.int32)  # no other type before SciPy 1.15
    claims = sparse.coo_array((np.ones(row.size), index), shape=(found.size, claimed.size))
    match = maximum_bipartite_matching(claims.tocsr(), perm_type="column") if found.size else np.empty(0, np.int64)
    if (match < 0).any():
        seed = int(found[match < 0][0])
        invalid("seeds", APART, f"seed {seed}", step=step, seeds=[seed])
    reduced[claimed[match]] = found
    return reduced.reshape(shape)


def cut_sites(sites: Ints, seeds: NDArray[np.int64], relief: NDArray[Any] | None) -> Ints:
    """Return sites, not numbered in order, with one seed at most: others are cut by a watershed of the relief."""
    seeded = (seeds > 0) & (sites >= 0)
    pairs = np.unique(np.stack([sites[seeded], seeds[seeded]], axis=1), axis=0)
    found, n_seeds = np.unique(pairs[:, 0], return_counts=True)
    result, boxes = sites.copy(), find_objects(sites + 1)
    for site in found[n_seeds > 1].tolist():
        box = boxes[site]
        own = sites[box] == site
        numbers, markers = np.unique(np.where(own, seeds[box], 0), return_inverse=True)
        ground = np.zeros(own.shape) if relief is None else relief[box]
        basins = watershed(ground, markers.reshape(own.shape) + (numbers[0] > 0), mask=own)
        pieces = label(np.where(own, basins + 1, 0), connectivity=1)
        result[box][pieces > 1] = result.max() + pieces[pieces > 1] - 1
    return result


def seeds_of_sites(sites: Ints, seeds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the seed of each site, 0 where it has none; a site has pixels of one seed at most."""
    found = np.zeros(int(sites.max()) + 1, np.int64)
    seeded = (seeds > 0) & (sites >= 0)
    found[sites[seeded]] = seeds[seeded]
    return found


def with_own_seeds(sites: Ints, site_seeds: NDArray[np.int64], seeds: NDArray[np.int64]) -> Ints:
    """Return sites in which every pixel with a seed lies in the nearest site of this seed, as after a reduction."""
    present = np.append(site_seeds, 0)[sites]
    wrong = (seeds > 0) & (present != seeds)
    if not wrong.any():
        return sites
    result = sites.copy()
    for seed in np.unique(seeds[wrong]).tolist():
        nearest = distance_transform_edt(present != seed, return_distances=False, return_indices=True)
        pixels = wrong & (seeds == seed)
        result[pixels] = sites[tuple(axis[pixels] for axis in nearest)]
    return result
