"""Scenes of thin things: vessels and roads, and printed pages."""

from itertools import pairwise

import numpy as np
from scipy import ndimage

from studies.scenes.parts import Floats, Scene, Shape, connected, log_uniform, smooth_noise, stained, wide_noise

CORNERS = np.array([[0, 0], [0, 0.6], [0.5, 0], [0.5, 0.6], [1, 0], [1, 0.6], [0.5, 0.3]])  # of letters


def vessels(shape: Shape, rng: np.random.Generator) -> Scene:
    """Branching vessels or roads on an uneven ground: thin regions."""
    inside = np.zeros(shape, bool)
    for _ in range(int(rng.integers(1, 5))):
        start, angle = rng.uniform(0, 1, 2) * shape, rng.uniform(0, 2 * np.pi)
        _branch(inside, start, angle, log_uniform(rng, 1.6, 6), rng, 0)
    labels, sources = connected(inside.astype(np.int64), least=20)
    ground = (
        1 + rng.uniform(0.02, 0.2) * wide_noise(shape, 30, rng) + rng.uniform(0, 0.08) * smooth_noise(shape, 2, rng)
    )
    contrast = rng.uniform(0.2, 0.7) * rng.choice([-1, 1])
    depth = 0.6 + 0.4 * np.minimum(ndimage.distance_transform_edt(inside) / 2, 1)
    level = np.maximum(ground * (1 + contrast * np.where(sources[labels] > 0, depth, 0)), 0.01)
    return Scene(stained(level, rng), labels, sources, sources > 0)


def _branch(
    inside: np.ndarray, place: Floats, angle: float, width: float, rng: np.random.Generator, depth: int
) -> None:
    """Draw a winding line into a mask, and lines that leave it."""
    shape, turn = inside.shape, 0.0
    for step in range(int(rng.uniform(0.3, 1.2) * max(shape) / 2)):
        turn = 0.9 * turn + rng.normal(0, 0.02)
        angle += turn
        place = place + 2 * np.array([np.sin(angle), np.cos(angle)])
        if not ((place > -10) & (place < np.array(shape) + 10)).all():
            return
        rows, columns = (
            slice(max(0, int(c - width) - 1), max(0, min(n, int(c + width) + 2)))
            for c, n in zip(place, shape, strict=True)
        )
        y, x = np.ogrid[rows, columns]
        inside[rows, columns] |= (y - place[0]) ** 2 + (x - place[1]) ** 2 < width**2
        if depth < 3 and step > 8 and rng.random() < 0.025:
            _branch(inside, place, angle + rng.choice([-1, 1]) * rng.uniform(0.4, 1.1), 0.7 * width, rng, depth + 1)


def pages(shape: Shape, rng: np.random.Generator) -> Scene:
    """Lines of letters or handwriting on uneven paper: each stroke of ink that is connected is an object."""
    height = log_uniform(rng, 8, 34)
    pen, slant = max(height * rng.uniform(0.05, 0.11), 0.7), rng.normal(0, 0.15)
    fine = np.ones(2 * np.array(shape), bool)  # of half a pixel, without the paths of the pen
    for base in np.arange(height, shape[0] + height, height * rng.uniform(1.5, 2.3)):
        at = rng.uniform(0, 2 * height)
        while at < shape[1]:
            at += height * (rng.uniform(0.6, 0.9) if rng.random() < 0.85 else 1.4)
            path = 2 * np.array([base, at]) + 2 * height * _letter(slant, rng)
            inside = ((path >= 0) & (path < fine.shape)).all(axis=1)
            fine[tuple(path[inside].astype(int).T)] = False
    ink = ndimage.distance_transform_edt(fine)[::2, ::2] < 2 * pen
    labels, sources = connected(ink.astype(np.int64), least=6)
    paper = 1 + rng.uniform(0, 0.2) * wide_noise(shape, 60, rng) + rng.uniform(0, 0.05) * smooth_noise(shape, 1.5, rng)
    through = 1 - rng.choice([0, 0.12]) * ndimage.gaussian_filter(ink[:, ::-1].astype(float), 1.5)
    dark = rng.uniform(0.3, 0.95) * np.maximum(1 + rng.uniform(0, 0.3) * wide_noise(shape, 9, rng), 0.2)
    level = np.maximum(paper * through * (1 - np.where(sources[labels] > 0, np.minimum(dark, 0.97), 0)), 0.01)
    return Scene(stained(level, rng), labels, sources, sources > 0)


def _letter(slant: float, rng: np.random.Generator) -> Floats:
    """Return the path of a pen that writes a made-up letter of height 1: strokes and arcs between corners."""
    path = CORNERS[rng.choice(len(CORNERS), int(rng.integers(3, 5)), replace=False)]
    t = np.linspace(0, 1, 80)[:, None]
    strokes = []
    for start, end in pairwise(path):
        bulge = rng.choice([0, 0, 0.25, -0.25]) * np.sin(np.pi * t)
        strokes.append(start + t * (end - start) + bulge * (end - start)[::-1] * [1, -1])
    y, x = np.concatenate(strokes).T
    return np.stack([-y, x + slant * y], axis=1)
