"""Images of other fields than photography, each with exact ground truth or an expert's: what `fields` segments."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tifffile
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data
from skimage.measure import label
from skimage.segmentation import find_boundaries

from studies import scenes
from studies.evaluation.datasets import data_root

SHAPE = (256, 256)
N_CROPS = 8  # kinds of crops of the fields
LEVELS = np.array([0.25, 0.5, 0.75])  # of the phases, which differ by .25
LIGHT = 0.9  # natural logarithm of the brightest over the darkest light on the coins
Array = NDArray[Any]


class Sample(NamedTuple):
    """An image, its ground truth, -1 where it is unknown, and where to segment; None for everywhere."""

    image: Array
    truth: Array
    mask: NDArray[np.bool_] | None = None


def six_bands(seed: int, looks: float) -> tuple[Sample, Sample]:
    """Return fields of eight crops in six bands, with speckle of variance 1 / looks: truth by field, and by crop."""
    rng = np.random.default_rng([seed, 1])
    rows, columns = np.indices(SHAPE)
    plot = np.zeros(SHAPE, np.int64)
    for place in (0.25, 0.5, 0.75):  # straight lines across, and down
        for along in (rows + rng.normal(0, 0.12) * columns, columns + rng.normal(0, 0.12) * rows):
            plot = 2 * plot + (along > (place + rng.uniform(-0.06, 0.06)) * along.max())
    plot = np.unique(plot, return_inverse=True)[1].reshape(SHAPE)
    crop = rng.permutation(np.arange(plot.max() + 1) % N_CROPS)[plot]
    image = scenes.speckle(rng.uniform(0.15, 1, (N_CROPS, 6))[crop], rng, looks)
    return Sample(image, label(crop, background=-1, connectivity=1) - 1), Sample(image, crop)


def three_phases(seed: int, noise: float) -> Sample:
    """Return three phases of equal area, whose intensities are LEVELS, with Gaussian noise."""
    rng = np.random.default_rng([seed, 2])
    field = scenes.smooth_noise(SHAPE, 8.0, rng)
    phase = np.digitize(field, np.quantile(field, [1 / 3, 2 / 3]))
    return Sample(np.clip(LEVELS[phase] + rng.normal(0, noise, SHAPE), 0, 1), phase)


def brain_slice(seed: int, noise: float, bias: float) -> Sample:
    """Return an axial slice of the ICBM 152 template (T1): fluid, gray and white matter, as its maps say.

    `noise` is a share of the brightest voxel of the brain. The bias field goes from 1 - bias / 2 to 1 + bias / 2.
    """
    t1, inside, tissue = _brain()
    at = t1.shape[2] // 2 + 6 * (seed - 1)
    plane, here = t1[..., at] / t1[inside].max(), inside[..., at]
    rng = np.random.default_rng([seed, 3])
    low, high = 1 - bias / 2, 1 + bias / 2
    field = high * scenes.light(plane.shape, float(np.log(high / low)), rng)
    image = np.maximum(plane * field + rng.normal(0, noise, plane.shape), 0) * here
    return Sample(image, np.where(here, tissue[..., at], -1), here)


@cache
def _brain() -> tuple[Array, NDArray[np.bool_], Array]:
    from studies.questions.volumes import brain  # which needs extras

    return brain()


def coins_in_uneven_light(seed: int) -> Sample:
    """Return textured discs of one brightness on a darker ground, under light that falls to 40 %."""
    rng = np.random.default_rng([seed, 4])
    rows, columns = np.indices(SHAPE)
    centers = np.stack(np.meshgrid(*[np.arange(32, 256, 64)] * 2), axis=-1).reshape(-1, 2) + rng.uniform(-6, 6, (16, 2))
    radii = rng.uniform(14, 24, 16)
    discs = [np.hypot(rows - y, columns - x) < radius for (y, x), radius in zip(centers, radii, strict=True)]
    truth = np.any(discs, axis=0)
    level = np.where(truth, 0.64, 0.4) * (1 + 0.06 * scenes.smooth_noise(SHAPE, 2.0, rng))
    image = level * scenes.light(SHAPE, LIGHT, rng) + rng.normal(0, 0.02, SHAPE)
    return Sample(np.clip(image, 0, 1), truth.astype(np.int32))


def stones(seed: int) -> Sample:
    """Return stones of several gray levels with dark gaps between them; every stone is an object."""
    rng = np.random.default_rng([seed, 5])
    labels = scenes.grains(SHAPE, rng).labels
    gap = ndimage.distance_transform_edt(~find_boundaries(labels))
    level = rng.uniform(0.45, 0.8, labels.max() + 1)[labels] * (1 + 0.05 * scenes.smooth_noise(SHAPE, 2.0, rng))
    image = level * (1 - 0.6 * np.exp(-0.5 * (gap / 1.5) ** 2)) + rng.normal(0, 0.03, SHAPE)
    return Sample(np.clip(image, 0, 1), labels + 1)


def stars(seed: int) -> Sample:
    """Return forty blurred spots on a dark sky; a star is where it exceeds half of its peak."""
    rng = np.random.default_rng([seed, 6])
    rows, columns = np.indices(SHAPE)
    grid = np.stack(np.meshgrid(*[np.arange(16, 256, 32)] * 2), axis=-1).reshape(-1, 2)
    centers = rng.permutation(grid)[:40] + rng.uniform(-8, 8, (40, 2))
    image, truth = np.full(SHAPE, 0.05), np.zeros(SHAPE, np.int32)
    for number, (y, x) in enumerate(centers, 1):
        spot = np.exp(-0.5 * ((rows - y) ** 2 + (columns - x) ** 2) / rng.uniform(2, 4) ** 2)
        image += rng.uniform(0.3, 0.9) * spot
        truth[spot > 0.5] = number
    return Sample(np.clip(image + rng.normal(0, 0.02, SHAPE), 0, 1), truth)


def gravel_in_grass(seed: int) -> Sample:
    """Return an ellipse of one texture in another, of the same mean and variance of intensities."""
    rng = np.random.default_rng([seed, 7])

    def patch(texture: Array) -> Array:
        row, column = rng.integers(0, 512 - SHAPE[0], 2)
        found = texture[row : row + SHAPE[0], column : column + SHAPE[1]].astype(float)
        return (found - found.mean()) / found.std()

    rows, columns = np.indices(SHAPE)
    y, x = rng.uniform(110, 146, 2)
    truth = ((rows - y) / rng.uniform(55, 85)) ** 2 + ((columns - x) / rng.uniform(55, 85)) ** 2 < 1
    image = np.where(truth, patch(data.gravel()), patch(data.grass()))
    return Sample(np.clip(0.5 + 0.17 * image, 0, 1), truth.astype(np.int32))


def bundled(name: str, seed: int) -> Sample:
    """Return a part of an image of scikit-image, without ground truth; the retina whole, at a quarter of its size."""
    image = getattr(data, name)()
    if name == "retina":
        return Sample(image[::4, ::4], np.full((353, 353), -1))
    row, column = (np.random.default_rng([seed, 8]).integers(0, length - side + 1) for length, side in _room(image))
    return Sample(image[row : row + SHAPE[0], column : column + SHAPE[1]], np.full(SHAPE, -1))


def _room(image: Array) -> list[tuple[int, int]]:
    return list(zip(image.shape[:2], SHAPE, strict=True))


def cells_in_3d(seed: int) -> Sample:
    """Return StarDist's sample of nuclei in a volume, with its instances."""
    folder = data_root() / "extra" / "cells"
    return Sample(tifffile.imread(folder / "nuclei_img3d.tif"), tifffile.imread(folder / "nuclei_mask3d.tif"))


def plant_cells(seed: int) -> Sample:
    """Return a part of the maize sample, whose cells fill the plane, with its instances."""
    folder = data_root() / "extra" / "cells"
    image, truth = (tifffile.imread(folder / f"maize_clsm{suffix}.tif") for suffix in ("", "_labels"))
    row, column = [(60, 60), (60, 330), (330, 190)][seed % 3]
    part = slice(row, row + SHAPE[0]), slice(column, column + SHAPE[1])
    pieces = np.zeros(SHAPE, np.int32)  # a cell that the edge of the part cuts in two is two
    for cell in np.unique(truth[part]):
        found, _ = ndimage.label(truth[part] == cell)
        pieces[found > 0] = found[found > 0] + pieces.max()
    return Sample(image[part], pieces)
