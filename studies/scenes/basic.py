"""Scenes of a few parts: roundish objects, cells, grains, fields, phases, and drawings."""

import numpy as np

from studies.scenes.parts import (
    Outlines,
    Scene,
    Shape,
    cells,
    connected,
    ellipses,
    smooth_noise,
    stained,
)


def blobs(shape: Shape, rng: np.random.Generator) -> Scene:
    """Roundish objects on a background, some of which touch, such as nuclei."""
    radius = float(np.exp(rng.uniform(np.log(4), np.log(26))))
    count = max(1, int(rng.uniform(0.02, 0.5) * shape[0] * shape[1] / (np.pi * radius**2)))
    centers = rng.uniform(0, 1, (count, 2)) * shape
    if rng.random() < 0.6:  # in groups
        groups = rng.uniform(0, 1, (max(1, count // 6), 2)) * shape
        centers = groups[rng.integers(len(groups), size=count)] + rng.normal(0, 2 * radius, (count, 2))
    axes = radius * np.clip(rng.lognormal(0, 0.2, (count, 1)), 0.6, 1.6)
    axes = axes * np.exp(rng.uniform(-0.35, 0.35, (count, 1)) * [-1, 1])
    owner, nearest = ellipses(shape, Outlines(centers, axes, rng.uniform(0, np.pi, count)), rng)
    labels, sources = connected(owner)
    brightness = np.exp(rng.normal(0, rng.uniform(0.05, 0.35), count + 1))
    inside = brightness[sources][labels] * (1 + rng.uniform(0, 0.35) * smooth_noise(shape, rng.uniform(1.5, 6), rng))
    inside *= 1 - rng.uniform(0, 0.3) * np.where(np.isfinite(nearest), nearest, 0) ** 2  # less at the rim
    haze = rng.uniform(0, 0.25) * (1 + rng.uniform(0, 0.6) * smooth_noise(shape, radius * 3, rng))
    level = np.where(sources[labels] > 0, haze + inside, haze)
    return Scene(stained(level, rng), labels, (sources > 0).astype(np.int64), sources > 0)


def membranes(shape: Shape, rng: np.random.Generator, spacing: tuple[float, float] = (12, 45)) -> Scene:
    """Cells that fill the plane or the volume, with stained walls; `spacing` has the least and the largest width."""
    labels, border = cells(shape, rng, rng.uniform(*spacing), jitter=rng.uniform(0.3, 1))
    width = rng.uniform(0.7, 2.2)
    wall = np.exp(-0.5 * (border / width) ** 2) * (1 + rng.uniform(0, 0.5) * smooth_noise(shape, 8, rng))
    inside = rng.uniform(0, 0.35) * np.exp(rng.normal(0, 0.4, labels.max() + 1))[labels]
    inside *= 1 + rng.uniform(0, 0.5) * smooth_noise(shape, rng.uniform(1, 4), rng)
    n_cells = labels.max() + 1
    return Scene(stained(inside + wall, rng), labels, np.zeros(n_cells, np.int64), np.ones(n_cells, bool))


def grains(shape: Shape, rng: np.random.Generator, spacing: tuple[float, float] = (14, 60)) -> Scene:
    """Grains of a metal or a rock, of a few gray levels, with dark or bright lines between some of them."""
    labels, border = cells(shape, rng, rng.uniform(*spacing), jitter=1.0)
    n_kinds = int(rng.integers(2, 7))
    kinds = rng.integers(n_kinds, size=labels.max() + 1)
    levels = rng.uniform(0.2, 1, n_kinds)
    level = levels[kinds][labels] + rng.normal(0, 0.04, labels.max() + 1)[labels]
    line = np.exp(-0.5 * (border / rng.uniform(0.5, 1.2)) ** 2)
    level += rng.choice([-0.4, -0.2, 0.3]) * line + rng.uniform(0, 0.08) * smooth_noise(shape, 2, rng)
    return Scene(stained(np.maximum(level, 0), rng), labels, kinds)


def fields(shape: Shape, rng: np.random.Generator) -> Scene:
    """Fields of a few crops in several bands, cut by straight lines."""
    owner = np.zeros(shape, np.int64)
    y, x = np.indices(shape)
    for _ in range(int(rng.integers(3, 7))):  # a line divides all that it crosses
        angle = rng.choice([0.1, 0.1 + np.pi / 2]) + rng.normal(0, 0.15)
        along = np.cos(angle) * x + np.sin(angle) * y
        owner = 2 * owner + (along > rng.uniform(along.min(), along.max()))
    n_kinds, n_channels = int(rng.integers(3, 9)), int(rng.integers(1, 8))
    crop = rng.integers(n_kinds, size=owner.max() + 1)[owner]
    labels, kinds = connected(crop)  # fields of one crop that touch are one region
    spectra = rng.uniform(0.15, 1, (n_kinds, n_channels))
    image = spectra[kinds][labels] * (1 + rng.uniform(0, 0.15) * smooth_noise(shape, rng.uniform(1, 4), rng))[..., None]
    return Scene(image, labels, kinds)


def phases(shape: Shape, rng: np.random.Generator) -> Scene:
    """Two to four phases of a material, whose regions have random forms."""
    n_phases = int(rng.integers(2, 5))
    field = smooth_noise(shape, rng.uniform(4, 14), rng)
    phase = np.digitize(field, np.quantile(field, np.sort(rng.uniform(0.15, 0.85, n_phases - 1))))
    labels, sources = connected(phase, least=12)
    levels = np.linspace(rng.uniform(0.1, 0.4), rng.uniform(0.6, 1), n_phases)
    return Scene(stained(levels[sources][labels], rng), labels, sources)


def shapes(shape: Shape, rng: np.random.Generator) -> Scene:
    """A few rectangles and ellipses of one color each on a ground of one color, such as drawings and test pictures."""
    y, x = np.indices(shape)
    owner = np.zeros(shape, np.int64)
    for i in range(1, int(rng.integers(2, 6))):
        angle = rng.uniform(0, np.pi) * (rng.random() < 0.4)  # the others are upright
        dy, dx = y - rng.uniform(0, shape[0]), x - rng.uniform(0, shape[1])
        u, v = np.cos(angle) * dx - np.sin(angle) * dy, np.sin(angle) * dx + np.cos(angle) * dy
        u, v = np.abs([u, v]) / (rng.uniform(0.05, 0.4, 2) * min(shape))[:, None, None]
        owner[(np.maximum(u, v) if rng.random() < 0.6 else np.hypot(u, v)) < 1] = i
    labels, sources = connected(owner)
    n_channels = 3 if rng.random() < 0.3 else 1
    colors = rng.uniform(0, 1, (6, n_channels))
    if rng.random() < 0.3:
        colors = np.round(colors)
        colors[1:] = np.where((colors[1:] == colors[0]).all(axis=1, keepdims=True), 1 - colors[0], colors[1:])
    return Scene(colors[sources][labels], labels, sources, sources > 0)
