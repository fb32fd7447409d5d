"""Rendered images with exact ground truth: what microscopes, scanners and satellites see, beside photographs.

`render(kind, shape, rng)` draws the objects of a scene, and what an instrument makes of them: blur, uneven light, shot
noise, speckle, debris, a dark or an inverted image. The same seed gives the same scene. Intensities are linear, from 0
to 1, and not stretched: with debris or stars, nearly all pixels may lie below .01, so stretch them before you look.
Only NumPy and SciPy are needed, so that the machine that trains can render.
"""

from collections.abc import Callable

import numpy as np

from studies.scenes.basic import blobs, fields, grains, membranes, phases, shapes
from studies.scenes.cells import cells_with_nuclei, plant_cells
from studies.scenes.instruments import blur, debris, light, observe, read_noise, shot_noise, speckle, uneven_light
from studies.scenes.lines import pages, vessels
from studies.scenes.nuclei import crowds, tissue
from studies.scenes.parts import Change, Floats, Labels, Scene, Shape, connected, smooth_noise
from studies.scenes.patterns import inlays, mosaics, textures
from studies.scenes.sky import stars, telescope, thermal, thermal_camera

__all__ = [
    "RENDERERS",
    "WEIGHTS",
    "Change",
    "Floats",
    "Labels",
    "Scene",
    "Shape",
    "blur",
    "connected",
    "debris",
    "in_three_channels",
    "light",
    "observe",
    "random_kind",
    "read_noise",
    "render",
    "shot_noise",
    "smooth_noise",
    "speckle",
    "uneven_light",
]

DEBRIS_SHARE = 0.12  # of scenes
OF_TEXTURE = ("textures", "mosaics", "inlays")  # which noise hides easily
RENDERERS: dict[str, Callable[[Shape, np.random.Generator], Scene]] = {
    renderer.__name__: renderer
    for renderer in (
        blobs,
        membranes,
        grains,
        fields,
        phases,
        textures,
        shapes,
        cells_with_nuclei,
        crowds,
        stars,
        thermal,
        mosaics,
        inlays,
        plant_cells,
        tissue,
        vessels,
        pages,
    )
}
# How often to draw each kind, relative to 1.
WEIGHTS = dict.fromkeys(RENDERERS, 1.0) | {
    "cells_with_nuclei": 2.5,
    "crowds": 2.5,
    "plant_cells": 1.5,
    "mosaics": 1.5,
    "shapes": 0.7,
    "pages": 0.5,
    "vessels": 0.5,
}


def random_kind(rng: np.random.Generator) -> str:
    """Return one of `RENDERERS` with a probability in proportion to its weight."""
    weights = np.array([WEIGHTS[kind] for kind in RENDERERS])
    return list(RENDERERS)[rng.choice(len(weights), p=weights / weights.sum())]


def render(kind: str, shape: Shape, rng: np.random.Generator) -> Scene:
    """Return a scene of one of `RENDERERS`, as an instrument records it, or a drawing."""
    scene = RENDERERS[kind](shape, rng)
    if kind == "stars":
        return telescope(scene, rng)
    if kind == "thermal":
        return thermal_camera(scene, rng)
    if kind == "shapes" and rng.random() < 0.6:
        return scene
    seen = observe(scene, rng, noisy=0.4 if kind in OF_TEXTURE else 1.0)
    return debris(seen, rng) if rng.random() < DEBRIS_SHARE else seen


def in_three_channels(image: Floats) -> Floats:
    """Return an image of any number of channels in three, stretched to the range from 0 to 1.

    One channel is repeated, three stay. Others become the components that `segment` analyzes.
    """
    if image.shape[-1] not in (1, 3):
        from spinseg.image.components import three_components  # needs lazy-loader, but nothing that compiles

        return three_components(image).astype(np.float64)
    low, high = np.percentile(image, [0.5, 99.8])
    return np.broadcast_to(np.clip((image - low) / max(high - low, 1e-9), 0, 1), (*image.shape[:-1], 3))
