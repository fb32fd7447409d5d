"""Scenes of nuclei that are crowded: sheets, rows, rings, pairs and packed ones, in fluorescence and in tissue."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from studies.scenes.parts import (
    Floats,
    Labels,
    Outlines,
    Scene,
    Shape,
    connected,
    ellipses,
    log_uniform,
    merged,
    packed,
    smooth_noise,
    stained,
    wide_noise,
)

MOST = 600  # objects of a scene, for speed
STAINS = np.array([[0.65, 0.70, 0.29], [0.27, 0.57, 0.78], [0.07, 0.6, 0.11]])  # hematoxylin, DAB and eosin absorb


def crowds(shape: Shape, rng: np.random.Generator) -> Scene:
    """Nuclei that touch, in rows, sheets and rings, whose borders are weak or cannot be seen."""
    outlines = layout(shape, rng)
    labels, sources, nearest = _drawn(shape, outlines, rng)
    radius = float(np.median(outlines.axes))
    dome = np.sqrt(1 - np.minimum(nearest, 1) ** 2) ** rng.choice([0.15, 0.4, 1])
    spread = 0.0 if rng.random() < 0.3 else rng.uniform(0, 0.6)
    own = np.exp(rng.normal(0, spread, len(outlines.centers) + 1))[sources][labels]
    inside = own * dome * np.maximum(1 + rng.uniform(0, 0.3) * smooth_noise(shape, rng.uniform(1, 4), rng), 0)
    gap = rng.uniform(0.1, 0.7) if rng.random() < 0.5 else 0.0
    inside *= 1 - gap * np.exp(-0.5 * (seams(labels, sources) / rng.uniform(0.6, 1.2)) ** 2)
    if rng.random() < 0.25:  # stripes of stronger expression
        inside *= _stripes(shape, rng)
    level = np.where(sources[labels] > 0, inside, 0.0)
    level = ndimage.gaussian_filter(level, radius * rng.uniform(0.02, 0.16))
    level += rng.uniform(0, 0.6) * ndimage.gaussian_filter(level, 1.5 * radius) + rng.uniform(0, 0.12)
    image = merged([level], rng) if rng.random() < 0.25 else stained(level, rng)
    return Scene(image, labels, (sources > 0).astype(np.int64), sources > 0)


def tissue(shape: Shape, rng: np.random.Generator) -> Scene:
    """Nuclei in stained tissue, which absorb light: blue, or some of them brown, on pale fibers and white gaps."""
    outlines = layout(shape, rng)
    labels, sources, nearest = _drawn(shape, outlines, rng)
    count = len(outlines.centers) + 1
    rim = 1 + rng.uniform(-0.2, 0.5) * np.minimum(nearest, 1) ** 3
    grain = np.maximum(1 + rng.uniform(0.1, 0.45) * smooth_noise(shape, rng.uniform(0.8, 2.5), rng), 0.1)
    dye = rng.uniform(0.6, 1.8) * np.exp(rng.normal(0, rng.uniform(0.1, 0.4), count))[sources][labels]
    dye = np.where(sources[labels] > 0, dye * rim * grain, 0)
    is_brown = (rng.random(count) < rng.choice([0, 0, 0.3, 0.7]))[sources][labels]
    fibers = np.exp(rng.uniform(0.2, 0.6) * smooth_noise(shape, rng.uniform(0.8, 6, 2), rng))
    ground = rng.uniform(0.05, 0.45) * fibers * np.exp(0.3 * wide_noise(shape, 20, rng))
    if rng.random() < 0.4:
        ground *= wide_noise(shape, 30, rng) > rng.uniform(-1.5, -0.3)
    layers = [ndimage.gaussian_filter(layer, 0.7) for layer in (dye * ~is_brown, dye * is_brown, ground)]
    colors = np.clip(STAINS + rng.normal(0, 0.08, (3, 3)), 0.02, 1)
    colors[2] = rng.choice([0, 1]) * colors[2] + rng.uniform(0.05, 0.3, 3)
    image = np.exp(-np.tensordot(np.stack(layers, axis=-1), colors, 1) * rng.uniform(0.8, 1.6))
    return Scene(image * rng.uniform(0.85, 1, 3), labels, (sources > 0).astype(np.int64), sources > 0)


def _drawn(shape: Shape, outlines: Outlines, rng: np.random.Generator) -> tuple[Labels, NDArray[np.int64], Floats]:
    """Return the regions of objects and their background, the object of each, and how far out each pixel lies."""
    owner, nearest = ellipses(shape, outlines, rng)
    labels, sources = connected(owner)
    return labels, sources, nearest


def seams(labels: Labels, sources: NDArray[np.int64]) -> Floats:
    """Return the distance of each pixel to the border between two objects; borders to the background do not count."""
    owner, edge = sources[labels], np.zeros(labels.shape, bool)
    for here, there in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        apart = (labels[here] != labels[there]) & (owner[here] > 0) & (owner[there] > 0)
        edge[here] |= apart
        edge[there] |= apart
    return ndimage.distance_transform_edt(~edge) if edge.any() else np.full(labels.shape, 1e3)


def _stripes(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return factors that change along one axis in a few waves, from dim to 1."""
    along = np.arange(shape[1]) / shape[1]
    wave = 0.5 + 0.5 * np.tanh(3 * np.sin(2 * np.pi * (rng.uniform(1, 7) * along + rng.random())))
    return rng.uniform(0.15, 0.6) + wave[None] * 0.7


# --- where they lie ---


def layout(shape: Shape, rng: np.random.Generator) -> Outlines:
    """Return the outlines of objects in one of five arrangements."""
    radius = log_uniform(rng, 4.5, 22)
    arrangement = (_sheet, _rows, _ring, _packed, _pairs)[rng.integers(5)]
    centers, axes, angles = arrangement(shape, radius, rng)
    if len(centers) > MOST:  # those around a place
        near = np.argsort(np.hypot(*(centers - rng.uniform(0.3, 0.7, 2) * shape).T))[:MOST]
        centers, axes, angles = centers[near], axes[near], angles[near]
    return Outlines(centers, axes, angles, waves=rng.uniform(0.01, 0.07), power=rng.choice([2, 2, 2.4]))


Places = tuple[Floats, Floats, Floats]


def _axes(count: int, radius: float, longer: float, rng: np.random.Generator) -> Floats:
    """Return half axes whose mean is about `radius`: the first is longer than the second by a factor."""
    size = radius * np.clip(rng.lognormal(0, rng.uniform(0.02, 0.2), (count, 1)), 0.6, 1.5)
    stretch = np.sqrt(longer) * np.exp(rng.normal(0, 0.08, (count, 1)))
    return size * np.concatenate([stretch, 1 / stretch], axis=1)


def _sheet(shape: Shape, radius: float, rng: np.random.Generator) -> Places:
    """Return a jittered hexagonal grid, in some scenes with holes."""
    pitch, jitter = 2 * radius * rng.uniform(0.85, 1.25), rng.uniform(0.05, 0.5)
    grid = np.indices([int(shape[0] / pitch / 0.87) + 3, int(shape[1] / pitch) + 3]).reshape(2, -1).T - 1.0
    grid[:, 1] += 0.5 * (grid[:, 0] % 2)
    centers = (grid * [0.87, 1] + rng.uniform(-0.5, 0.5, grid.shape) * jitter) * pitch
    if rng.random() < 0.5:
        hole = wide_noise(shape, 3 * radius, rng) < rng.uniform(-1, 0.8)
        inside = np.clip(centers, 0, np.array(shape) - 1).astype(int)
        centers = centers[~hole[tuple(inside.T)]]
    return centers, _axes(len(centers), radius, rng.uniform(1, 1.4), rng), rng.uniform(0, np.pi, len(centers))


def _rows(shape: Shape, radius: float, rng: np.random.Generator) -> Places:
    """Return bent parallel rows of objects that touch along them."""
    longer, angle = rng.uniform(1, 2.2), rng.uniform(0, np.pi)
    across, along = radius * np.sqrt(longer), radius / np.sqrt(longer)
    reach = 0.75 * max(shape)
    rows = np.arange(-reach, reach, 2 * across * rng.uniform(0.95, 2.2))
    steps = np.arange(-reach, reach, 2 * along * rng.uniform(0.8, 1.15))
    v, u = (axis.ravel() for axis in np.meshgrid(rows, steps, indexing="ij"))
    u = u + rng.normal(0, 0.15 * along, u.size) + rng.uniform(0, 2 * along, len(rows)).repeat(len(steps))
    bend, length = rng.uniform(0, 25), rng.uniform(80, 250)
    v = v + bend * np.sin(u / length * 2 * np.pi) + rng.normal(0, 0.1 * across, v.size)
    turn = np.arctan(bend * 2 * np.pi / length * np.cos(u / length * 2 * np.pi))
    y, x = np.cos(angle) * v + np.sin(angle) * u, np.cos(angle) * u - np.sin(angle) * v
    centers = np.stack([y, x], axis=1) + np.array(shape) / 2
    kept = ((centers > -radius) & (centers < np.array(shape) + radius)).all(axis=1) & (rng.random(v.size) < 0.93)
    direction = angle + turn + np.pi / 2  # the long axis lies across the row
    return centers[kept], _axes(kept.sum(), radius, longer, rng), -direction[kept]


def _ring(shape: Shape, radius: float, rng: np.random.Generator) -> Places:
    """Return layers of objects along a closed curve, longer across it, as of the epithelium of an embryo."""
    radius = min(radius, 0.06 * min(shape))
    longer, middle = rng.uniform(1, 1.9), np.array(shape) * rng.uniform(0.4, 0.6, 2)
    half = np.array(shape) * rng.uniform(0.28, 0.48, 2)
    tilt, found = rng.normal(0, 0.3), []
    for layer in range(int(rng.integers(1, 4))):
        size = half - layer * 2 * radius * np.sqrt(longer) * rng.uniform(0.9, 1.2)
        if size.min() < 3 * radius:
            break
        t = _even_angles(size, 2 * radius / np.sqrt(longer) * rng.uniform(0.85, 1.2), rng)
        place = np.stack([size[0] * np.sin(t), size[1] * np.cos(t)], axis=1)
        place *= 1 + rng.normal(0, 0.1 * radius / size.mean(), (t.size, 1))
        normal = np.arctan2(np.sin(t) / size[0], np.cos(t) / size[1])
        found.append(np.column_stack([place, normal]))
    y, x, normal = np.concatenate(found).T
    centers = np.stack([np.cos(tilt) * y + np.sin(tilt) * x, np.cos(tilt) * x - np.sin(tilt) * y], axis=1) + middle
    return centers, _axes(len(y), radius, longer, rng), -tilt - normal


def _even_angles(size: Floats, pitch: float, rng: np.random.Generator) -> Floats:
    """Return angles of points at about equal distances along an ellipse, given its half axes."""
    dense = np.linspace(0, 2 * np.pi, 721)
    steps = np.hypot(size[0] * np.diff(np.sin(dense)), size[1] * np.diff(np.cos(dense)))
    length = np.concatenate([[0], np.cumsum(steps)])
    count = int(length[-1] / pitch)
    return np.interp((np.arange(count) + rng.normal(0, 0.08, count)) * length[-1] / count, length, dense)


def _packed(shape: Shape, radius: float, rng: np.random.Generator) -> Places:
    """Return objects of different sizes at random places that overlap by little, densely."""
    tries = min(1500, int(rng.uniform(1, 8) * shape[0] * shape[1] / (np.pi * radius**2)))
    radii = radius * np.clip(rng.lognormal(0, rng.uniform(0.05, 0.4), tries), 0.5, 2)
    centers, radii = packed(shape, radii, rng, overlap=rng.uniform(0, 0.3))
    axes = _axes(len(radii), 1.0, rng.uniform(1, 1.8), rng) * radii[:, None]
    return centers, axes, rng.normal(rng.uniform(0, np.pi), rng.choice([0.2, 2]), len(radii))


def _pairs(shape: Shape, radius: float, rng: np.random.Generator) -> Places:
    """Return objects of which many touch one other, with a neck between them, as nuclei that divide."""
    tries = int(rng.uniform(0.3, 1.5) * shape[0] * shape[1] / (np.pi * radius**2))
    centers, radii = packed(shape, np.full(max(tries, 2), 1.6 * radius), rng, overlap=0.2)
    angle, is_pair = rng.uniform(0, np.pi, len(radii)), rng.random(len(radii)) < 0.7
    apart = radius * rng.uniform(0.6, 0.95, len(radii)) * is_pair
    offset = apart[:, None] * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    centers = np.concatenate([centers - offset, (centers + offset)[is_pair]])
    angle = np.concatenate([angle, angle[is_pair]])
    return centers, _axes(len(centers), radius, rng.uniform(0.8, 1.2), rng), np.pi / 2 - angle
