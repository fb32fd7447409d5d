"""Rendered cells with a membrane and a nucleus each, for tests of roles of channels and of blobs."""

from typing import NamedTuple

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter
from scipy.spatial import cKDTree


class Cells(NamedTuple):
    """The cell of every pixel, the nucleus, 0 for none, and an image with membranes and nuclei as its channels."""

    truth: np.ndarray
    nuclei: np.ndarray
    image: np.ndarray


def rendered_cells(seed, shape=(150, 180), n_cells=18, noise=0.05, nucleus=0.5, gaps=0.0, everywhere=True):
    """Voronoi cells, with gaps in this share of the membranes, that fill the plane or have background around them."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.mgrid[: shape[0], : shape[1]], axis=-1)
    points = rng.uniform((0, 0), shape, (n_cells, 2))
    for _ in range(3):  # of Lloyd's algorithm: cells become about equally large
        owner = cKDTree(points).query(grid)[1]
        points = np.stack([grid[owner == cell].mean(axis=0) for cell in range(n_cells)])
    truth = cKDTree(points).query(grid + 2 * smooth_field(rng, (*shape, 2), 10))[1] + 1
    if not everywhere:
        from_middle = np.abs(points / shape - 0.5).max(axis=1)
        truth[np.isin(truth, 1 + np.flatnonzero(from_middle > 0.35))] = 0
    line = np.zeros(shape)
    line[:, :-1] += truth[:, :-1] != truth[:, 1:]
    line[:-1] += truth[:-1] != truth[1:]
    holes = smooth_field(rng, shape, 6)
    membranes = np.where(holes >= np.quantile(holes, gaps), np.minimum(line, 1), 0)
    nuclei = np.zeros(shape, int)
    for cell in np.unique(truth[truth > 0]):
        paint_nucleus(nuclei, truth == cell, cell, nucleus * rng.uniform(0.8, 1.1), rng)
    brightness = rng.uniform(0.4, 0.8, n_cells + 1)[nuclei] * (nuclei > 0)
    channels = [0.1 + 1.3 * gaussian_filter(membranes, 1.0), 0.1 + gaussian_filter(brightness, rng.uniform(0.8, 1.5))]
    return Cells(truth, nuclei, np.clip(np.dstack(channels) + rng.normal(0, noise, (*shape, 2)), 0, 1))


def smooth_field(rng, shape, width):
    """Smooth noise of standard deviation 1."""
    field = gaussian_filter(rng.normal(size=shape), (width, width, 0)[: len(shape)])
    return field / field.std()


def paint_nucleus(nuclei, cell, number, share, rng):
    """An ellipse of about this share of the diameter of a cell, somewhere in it: it may touch its neighbors."""
    depth = distance_transform_edt(cell)
    radius = share * np.sqrt(np.count_nonzero(cell) / np.pi)
    places = np.argwhere(depth > 0.8 * min(radius, depth.max()))
    rows, columns = np.moveaxis(np.indices(cell.shape), 0, -1).transpose(2, 0, 1) - rng.choice(places)[:, None, None]
    angle, stretch = rng.uniform(0, np.pi), rng.uniform(0.8, 1)
    along, across = rows * np.cos(angle) + columns * np.sin(angle), columns * np.cos(angle) - rows * np.sin(angle)
    nuclei[cell & (np.hypot(along * stretch, across / stretch) < radius)] = number


def f1_of_objects(truth, labels):
    """F1 of objects at an intersection over union of .5; 0 is no object."""
    table = np.zeros((truth.max() + 1, labels.max() + 1))
    np.add.at(table, (truth, labels), 1)
    union = table.sum(axis=1, keepdims=True) + table.sum(axis=0) - table
    hits = np.count_nonzero(table[1:, 1:] > 0.5 * union[1:, 1:])
    return 2 * hits / (np.unique(truth[truth > 0]).size + np.unique(labels[labels > 0]).size)
