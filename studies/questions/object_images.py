"""Rendered images of objects on which one linear range of intensity, or one role for all channels, fails.

They share no drawing with `studies.scenes`, on which networks are trained: outlines are polygons, blur is an average of
pixels or of several Gaussians, and cells are relaxed. So what is learned there is tested here on other renders.
"""

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree
from skimage import data
from skimage.draw import polygon
from skimage.transform import resize

from studies.questions.field_images import SHAPE, Array, Sample

READ_NOISE = 30  # of 255
DEBRIS = 80  # times as bright as nuclei
N_NUCLEI = 36
NETD = 0.08  # noise of a thermal camera in kelvins


# --- nuclei ---


def nuclei_with_debris(seed: int) -> Sample:
    """Return nuclei in 16 bits beside a few specks that are 80 times as bright, which count neither way."""
    rng = np.random.default_rng([seed, 21])
    truth = nuclei(rng)
    level = 200 + _soft(truth, rng) * rng.uniform(500, 900, truth.max() + 1)[truth]
    specks = np.zeros(SHAPE, bool)
    for _ in range(5):
        rows, columns = _outline(rng.uniform(0, 256, 2), rng.uniform(3, 8), 0.3, rng)
        specks[polygon(rows, columns, SHAPE)] = True
    level += DEBRIS * 700 * ndimage.uniform_filter(specks.astype(float), 3)
    image = np.clip(rng.poisson(level) + rng.normal(0, 15, SHAPE), 0, 65535).astype(np.uint16)
    return Sample(image, np.where(ndimage.binary_dilation(specks, iterations=2), -1, truth))


def noisy_nuclei(seed: int) -> Sample:
    """Return nuclei in 8 bits with Gaussian noise of READ_NOISE gray levels."""
    rng = np.random.default_rng([seed, 22])
    truth = nuclei(rng)
    level = 50 + _soft(truth, rng) * rng.uniform(70, 120, truth.max() + 1)[truth]
    return Sample(np.clip(np.rint(level + rng.normal(0, READ_NOISE, SHAPE)), 0, 255).astype(np.uint8), truth)


def nuclei(rng: np.random.Generator) -> Array:
    """Return bumpy polygons, numbered from 1; a third of them have a neighbor that they touch."""
    truth, number = np.zeros(SHAPE, np.int32), 0
    places = np.stack(np.meshgrid(*[np.arange(21, 256, 42)] * 2), axis=-1).reshape(-1, 2)
    for place in rng.permutation(places)[:N_NUCLEI] + rng.uniform(-8, 8, (N_NUCLEI, 2)):
        radius, direction = rng.uniform(8, 13), rng.uniform(0, 2 * np.pi)
        beside = place + 1.6 * radius * np.array([np.sin(direction), np.cos(direction)])
        for center in (place, beside)[: 1 + (rng.random() < 0.3)]:
            rows, columns = polygon(*_outline(center, radius, 0.06, rng), SHAPE)
            free = truth[rows, columns] == 0
            if free.mean() < 0.6:
                continue
            number += 1
            truth[rows[free], columns[free]] = number
    return truth


def _outline(center: Array, radius: float, bumps: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the corners of a polygon around a place, whose radius changes smoothly."""
    corners = ndimage.gaussian_filter1d(rng.normal(0, 1, 48), 4, mode="wrap") * 4
    angle = np.linspace(0, 2 * np.pi, 48, endpoint=False)
    along = radius * (1 + bumps * corners) * (1 + rng.uniform(0, 0.25) * np.cos(2 * angle + rng.uniform(0, 6)))
    return center[0] + along * np.sin(angle), center[1] + along * np.cos(angle)


def _soft(truth: Array, rng: np.random.Generator) -> Array:
    """Return objects as 0 and 1, out of focus, with clumps of chromatin."""
    clumps = ndimage.uniform_filter(rng.uniform(0.4, 1.6, SHAPE), 5)
    return ndimage.uniform_filter(ndimage.uniform_filter((truth > 0) * clumps, 3), 3)


# --- cells ---


def membrane_and_nucleus(seed: int, is_merged: bool = False) -> Sample:
    """Return cells that fill the plane: membranes in one channel and nuclei in the other; or in cyan and red."""
    rng = np.random.default_rng([seed, 23])
    truth, centers = relaxed_cells(rng)
    other = (ndimage.maximum_filter(truth, 3) != truth) | (ndimage.minimum_filter(truth, 3) != truth)
    uneven = 0.7 + 0.6 * resize(rng.random((9, 9)), SHAPE, order=3)
    membrane = ndimage.uniform_filter(other.astype(float), 3) * uneven + 0.12
    nucleus = np.full(SHAPE, 0.06)
    for center in centers:
        rows, columns = polygon(*_outline(center + rng.normal(0, 1.5, 2), rng.uniform(4.5, 7), 0.04, rng), SHAPE)
        nucleus[rows, columns] = rng.uniform(0.5, 1)
    channels = [rng.poisson(60 * channel) / 60 for channel in (membrane, ndimage.uniform_filter(nucleus, 3))]
    if is_merged:
        colors = np.array([[0, 1, 1], [1, 0, 0]])
        return Sample(np.clip(255 * np.stack(channels, axis=-1) @ colors / 1.5, 0, 255).astype(np.uint8), truth)
    return Sample(np.stack(channels, axis=-1), truth)


def relaxed_cells(rng: np.random.Generator) -> tuple[Array, Array]:
    """Return cells of about one size, numbered from 1, and their centers: points that moved to the middle of theirs."""
    centers, places = rng.uniform(0, 256, (80, 2)), np.indices(SHAPE).reshape(2, -1).T
    for _ in range(5):
        owner = cKDTree(centers).query(places)[1]
        sizes = np.maximum(np.bincount(owner, minlength=len(centers)), 1)[:, None]
        centers = np.stack([np.bincount(owner, axis, len(centers)) for axis in places.T], axis=1) / sizes
    return 1 + cKDTree(centers).query(places)[1].reshape(SHAPE).astype(np.int32), centers


# --- sky, heat and texture ---


def crowded_sky(seed: int) -> Sample:
    """Return sixty stars and ten galaxies over three decades of brightness, above a sky that is not even.

    A source is where it exceeds twice the standard deviation of the noise, and is the strongest one.
    """
    rng = np.random.default_rng([seed, 24])
    rows, columns = np.indices(SHAPE)
    noise, sources = 12.0, []
    for number in range(70):
        y, x = rng.uniform(4, 252, 2)
        peak = noise * 10 ** (0.8 + 2.2 * rng.random() ** 2.5)
        if number < 60:
            r2 = (rows - y) ** 2 + (columns - x) ** 2  # a core, and wings
            sources.append(peak * (0.9 * np.exp(-r2 / 7) + 0.1 * np.exp(-r2 / 45)))
        else:
            angle, long = rng.uniform(0, np.pi), rng.uniform(3, 8)
            u = np.cos(angle) * (columns - x) + np.sin(angle) * (rows - y)
            v = np.cos(angle) * (rows - y) - np.sin(angle) * (columns - x)
            sources.append(min(peak, 40 * noise) * np.exp(-np.sqrt(u**2 + (v / rng.uniform(0.4, 0.9)) ** 2 + 1) / long))
    stack = np.array(sources)
    truth = np.where(stack.sum(axis=0) > 2 * noise, 1 + stack.argmax(axis=0), 0)
    truth = np.where(np.bincount(truth.ravel(), minlength=71)[truth] >= 5, truth, 0)
    sky = 400 + 60 * rows / 256 - 40 * (columns / 256) ** 2
    image = rng.normal(sky + stack.sum(axis=0), np.sqrt(noise**2 + stack.sum(axis=0)))
    return Sample(np.clip(np.rint(image), 0, 65535).astype(np.uint16), truth)


def warm_objects(seed: int) -> Sample:
    """Return twelve objects one kelvin above their surroundings, which change by more, and two that are very hot."""
    rng = np.random.default_rng([seed, 25])
    kelvin = 290 + 5 * resize(rng.random((4, 4)), SHAPE, order=3)
    truth = np.zeros(SHAPE, np.int32)
    places = np.stack(np.meshgrid(*[np.arange(32, 256, 64)] * 2), axis=-1).reshape(-1, 2)
    for number, place in enumerate(rng.permutation(places)[:14] + rng.uniform(-10, 10, (14, 2)), 1):
        rows, columns = polygon(*_outline(place, rng.uniform(7, 14), 0.05, rng), SHAPE)
        truth[rows, columns] = number
    kelvin += np.concatenate([[0], np.full(12, 1.0), [45, 90]])[truth]
    kelvin = ndimage.uniform_filter(kelvin, 3) + rng.normal(0, NETD, SHAPE)
    return Sample(np.rint(100 * kelvin).astype(np.uint16), truth)


def texture_mosaic(seed: int) -> Sample:
    """Return grass, gravel and brick at half their size, of equal mean and variance, in three areas that meet."""
    rng = np.random.default_rng([seed, 26])
    direction = rng.uniform(0, 2 * np.pi) + np.arange(3) * 2 * np.pi / 3 + rng.uniform(-0.4, 0.4, 3)
    points = 128 + rng.uniform(30, 90, (3, 1)) * np.stack([np.sin(direction), np.cos(direction)], axis=1)
    truth = cKDTree(points).query(np.indices(SHAPE).reshape(2, -1).T)[1].reshape(SHAPE)
    patterns = [
        texture.reshape(256, 2, 256, 2).mean(axis=(1, 3)) for texture in (data.grass(), data.gravel(), data.brick())
    ]
    patterns = [np.rot90((each - each.mean()) / each.std(), int(rng.integers(4))) for each in patterns]
    return Sample(np.clip(0.5 + 0.17 * np.choose(truth, patterns), 0, 1), truth.astype(np.int32))
