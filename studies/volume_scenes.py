"""Rendered volumes with exact ground truth: nuclei, cells with walls, grains and phases in three dimensions.

`render_volume(kind, shape, rng)` draws the objects, and what an instrument makes of them: as `scenes.render`, with a
blur that is longer along the first axis, as that of a microscope, and with objects that are flat where its steps are
large.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import ndimage

from studies.scenes import Floats, Scene, Shape, connected, observe, smooth_noise
from studies.scenes.basic import grains, membranes, phases

RADII = (2.8, 11.0)  # voxels
SPACING = (9.0, 24.0)


def balls(shape: Shape, rng: np.random.Generator) -> Scene:
    """Ellipsoids on a background, some of which touch, such as nuclei."""
    radius = float(np.exp(rng.uniform(*np.log(RADII))))
    flat = np.array([rng.uniform(0.45, 1) if rng.random() < 0.4 else 1, 1, 1])  # large steps along the first axis
    count = max(2, int(rng.uniform(0.03, 0.45) * np.prod(shape) / (4.19 * radius**3 * flat[0])))
    centers = rng.uniform(0, 1, (count, 3)) * shape
    if rng.random() < 0.6:  # in groups
        groups = rng.uniform(0, 1, (max(1, count // 8), 3)) * shape
        centers = groups[rng.integers(len(groups), size=count)] + rng.normal(0, 1.8 * radius, (count, 3)) * flat
        centers %= shape
    nearest, owner = np.full(shape, np.inf), np.zeros(shape, np.int64)
    places = np.moveaxis(np.indices(shape), 0, -1)
    bumps = 1 + rng.uniform(0, 0.12) * smooth_noise(shape, radius / 2, rng)
    for i, center in enumerate(centers, 1):
        reach = int(2.2 * radius) + 2
        window = tuple(
            slice(max(0, int(c) - reach), max(0, min(n, int(c) + reach))) for c, n in zip(center, shape, strict=True)
        )
        offsets = places[window] - center
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        axes = np.exp(rng.uniform(-0.3, 0.3, 3)) * radius * np.clip(rng.lognormal(0, 0.15), 0.7, 1.5)
        distance = np.linalg.norm((offsets / flat) @ turn / axes, axis=-1) * bumps[window]
        closer = distance < np.minimum(nearest[window], 1)
        nearest[window][closer], owner[window][closer] = distance[closer], i
    labels, sources = connected(owner)
    brightness = np.exp(rng.normal(0, rng.uniform(0.05, 0.35), count + 1))
    inside = brightness[sources][labels] * (1 + rng.uniform(0, 0.3) * smooth_noise(shape, rng.uniform(1, 4), rng))
    inside *= 1 - rng.uniform(0, 0.8) * np.where(np.isfinite(nearest), nearest, 0) ** 2  # less at the rim
    cloud = smooth_noise(shape, radius * rng.uniform(0.8, 3), rng)  # out of focus
    haze = np.maximum(rng.uniform(0, 0.35) * (1 + rng.uniform(0, 0.8) * cloud), 0)
    level = np.where(sources[labels] > 0, haze + inside, haze)
    return Scene(level[..., None] / level.max(), labels, (sources > 0).astype(np.int64), sources > 0)


RENDERERS: dict[str, Callable[[Shape, np.random.Generator], Scene]] = {
    "balls": balls,
    "cells": partial(membranes, spacing=SPACING),
    "grains": partial(grains, spacing=SPACING),
    "phases": phases,
}


def long_blur(image: Floats, rng: np.random.Generator) -> Floats:
    """Return a volume out of focus by up to a voxel, and up to 2.5 times as much along the first axis."""
    scale = rng.uniform(0.3, 1.1)
    return ndimage.gaussian_filter(image, (scale * rng.uniform(1, 2.5), scale, scale, 0), mode="reflect")


def render_volume(kind: str, shape: Shape, rng: np.random.Generator) -> Scene:
    """Return a volume of one of `RENDERERS`, in one channel, as an instrument records it."""
    scene = RENDERERS[kind](shape, rng)
    clearest = scene.image.reshape(-1, scene.image.shape[-1]).std(axis=0).argmax()
    return observe(replace(scene, image=scene.image[..., [clearest]]), rng, long_blur)
