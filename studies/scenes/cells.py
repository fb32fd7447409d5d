"""Scenes of cells with membranes or walls, in one channel or beside their nuclei in another."""

import numpy as np
from scipy import ndimage

from studies.scenes.parts import (
    Flags,
    Floats,
    Labels,
    Scene,
    Shape,
    around,
    border_distance,
    cells,
    connected,
    log_uniform,
    merged,
    packed,
    smooth_noise,
    stained,
    whitened,
    wide_noise,
)


def cells_with_nuclei(shape: Shape, rng: np.random.Generator) -> Scene:
    """Cells with stained membranes or bodies, and their nuclei in another channel or color: each cell is a region."""
    labels, is_cell = _cell_layout(shape, rng)
    border = border_distance(labels)
    cores = _nuclei_in(labels, border, is_cell, rng)
    if rng.random() < 0.7:
        outlines = membrane_stain(labels, border, is_cell, rng)
    else:
        outlines = _body_stain(labels, border, is_cell, rng)
    outlines = outlines * (1 - rng.choice([0, 0.5, 0.9]) * cores)
    own = np.exp(rng.normal(0, rng.uniform(0.05, 0.5), is_cell.size))[labels]
    grain = np.maximum(1 + rng.uniform(0, 0.35) * smooth_noise(shape, rng.uniform(1, 4), rng), 0)
    nuclei = cores * own * grain + rng.uniform(0, 0.12) + rng.choice([0, 0.15]) * outlines
    if rng.random() < 0.2:  # in one channel
        image = stained(outlines + rng.uniform(0.3, 1) * nuclei, rng)
    else:
        image = merged([outlines, nuclei], rng)
    return Scene(image, labels, is_cell.astype(np.int64), is_cell)


def _cell_layout(shape: Shape, rng: np.random.Generator) -> tuple[Labels, Flags]:
    """Return cells that fill the plane, or clusters of them on a background; and which regions are cells."""
    spacing = log_uniform(rng, 13, 75)
    labels, _ = cells(shape, rng, spacing, jitter=rng.uniform(0.3, 1))
    if rng.random() < 0.45:
        return labels, np.ones(labels.max() + 1, bool)
    ground = wide_noise(shape, spacing * rng.uniform(0.8, 2.5), rng)
    share = np.bincount(labels.ravel(), ground.ravel()) / np.bincount(labels.ravel())
    kept = share >= np.quantile(share, rng.uniform(0.15, 0.75))
    owner = np.where(kept[labels], labels + 1, 0)
    if rng.random() < 0.6:  # without corners
        owner[np.hypot(*whitened(labels)) > rng.uniform(0.75, 1.1)] = 0
    labels, sources = connected(owner)
    return labels, sources > 0


def _nuclei_in(labels: Labels, border: Floats, is_cell: Flags, rng: np.random.Generator) -> Floats:
    """Return how much of each pixel is nucleus: one in most cells, somewhere in the middle."""
    n, (v, u) = is_cell.size, whitened(labels)
    size = rng.uniform(0.28, 0.62) * np.clip(rng.lognormal(0, 0.15, n), 0.6, 1.4)
    size[(rng.random(n) < rng.uniform(0, 0.2)) | ~is_cell] = 1e-3
    y, x = rng.normal(0, 0.12, (2, n))
    bumps = 1 + 0.08 * smooth_noise(labels.shape, 4, rng)
    within = np.hypot(v - y[labels], u - x[labels]) * bumps < size[labels]
    return ndimage.gaussian_filter((within & (border > 1.5)).astype(float), rng.uniform(0.4, 1.2))


def membrane_stain(labels: Labels, border: Floats, is_cell: Flags, rng: np.random.Generator) -> Floats:
    """Return lines whose middle is the border of a cell, uneven along them, with gaps, above dim cells."""
    shape = labels.shape
    line = np.exp(-0.5 * (border / log_uniform(rng, 0.6, 2.2)) ** 2)
    line *= np.maximum(1 + rng.uniform(0, 0.5) * wide_noise(shape, rng.uniform(5, 25), rng), 0.1)
    if rng.random() < 0.4:
        line *= gaps(shape, rng.uniform(-2.2, -1.3), rng)
    own = np.exp(rng.normal(0, rng.uniform(0, 0.5), is_cell.size))[labels]
    inside = rng.uniform(0, 0.35) * own * np.maximum(1 + 0.3 * smooth_noise(shape, rng.uniform(1, 5), rng), 0)
    return line + np.where(is_cell[labels], inside, rng.uniform(0, 0.08))


def gaps(shape: Shape, level: float, rng: np.random.Generator) -> Floats:
    """Return factors from 0 to 1 that are small in patches, where smooth noise is below a level."""
    return 1 / (1 + np.exp(-6 * (smooth_noise(shape, rng.uniform(3, 7), rng) - level)))


def _body_stain(labels: Labels, border: Floats, is_cell: Flags, rng: np.random.Generator) -> Floats:
    """Return bright bodies of cells, dimmer toward their borders, with a dark gap or none where two touch."""
    spread = rng.uniform(0.1, 0.6)
    own = np.exp(rng.normal(0, spread, is_cell.size))[labels]
    depth = np.minimum(border / (0.3 * np.sqrt(labels.size / is_cell.size)), 1) ** rng.uniform(0.2, 1)
    gap = rng.uniform(0.25, 0.8) * np.exp(-0.5 * (border / rng.uniform(0.7, 1.6)) ** 2)
    grain = np.maximum(1 + rng.uniform(0.05, 0.4) * smooth_noise(labels.shape, rng.uniform(1, 4), rng), 0)
    body = own * grain * (1 - gap) * (1 - rng.uniform(0, 0.7) * (1 - depth))
    return np.where(is_cell[labels], body, 0) + rng.uniform(0, 0.12)


# --- plants ---


def plant_cells(shape: Shape, rng: np.random.Generator) -> Scene:
    """Cells of very different sizes with stained walls: uneven, with gaps, and thick where three cells meet."""
    labels, outside = _plant_layout(shape, rng)
    n, border = labels.max() + 1, border_distance(labels)
    width = log_uniform(rng, 0.6, 2.4) * np.maximum(1 + 0.3 * wide_noise(shape, 25, rng), 0.4)
    wall = np.exp(-0.5 * (border / width) ** 2)
    full = rng.uniform(0.8, 4)  # how far outside of the cells all is wall
    wall = np.maximum(wall, rng.uniform(0.5, 1) / (1 + np.exp(-3 * (outside - full))))
    wall *= np.exp(rng.uniform(0.1, 0.5) * wide_noise(shape, rng.uniform(8, 40), rng))
    wall *= np.exp(rng.normal(0, rng.uniform(0, 0.25), n))[labels]
    if rng.random() < 0.5:
        wall *= 0.15 + 0.85 * gaps(shape, rng.uniform(-2.2, -1.2), rng)
    own = rng.uniform(0, 0.25) * rng.gamma(rng.uniform(0.5, 3), size=n)[labels] * 0.5
    own *= np.exp(0.4 * wide_noise(shape, 12, rng)) * np.maximum(1 + 0.4 * smooth_noise(shape, 1.5, rng), 0)
    level = wall + np.minimum(own, 0.5)
    return Scene(stained(level, rng), labels, np.zeros(n, np.int64), np.ones(n, bool))


def _plant_layout(shape: Shape, rng: np.random.Generator) -> tuple[Labels, Floats]:
    """Return cells around packed circles, and the distance of each pixel to the nearest circle."""
    longer = rng.uniform(1.5, 3) if rng.random() < 0.25 else 1.0  # cells along an axis
    wide = np.array([shape[0] * longer, shape[1]])
    least, most = rng.uniform(5, 9), rng.uniform(14, 60)
    tries = min(2500, int(8 * wide.prod() / least**2))
    radii = least * (most / least) ** (rng.random(tries) ** rng.uniform(1, 3))
    large = np.clip(0.5 + 0.4 * wide_noise((int(wide[0]) + 1, shape[1]), most, rng), 0.05, 0.95)
    centers, radii = _sorted_by_field(large, radii, rng)
    owner, outside = np.full(shape, -1), np.full(shape, np.inf)
    warp = rng.uniform(0, 0.12) * least * np.stack([smooth_noise(shape, least / 2, rng) for _ in range(2)])
    y, x = np.indices(shape) + warp
    for i, (center, radius) in enumerate(zip(centers, radii, strict=True)):
        reach = radius + 1.5 * least
        rows, columns = around(center / [longer, 1], reach, shape)
        dy, dx = y[rows, columns] * longer - center[0], x[rows, columns] - center[1]
        distance = np.hypot(dy, dx) - radius
        closer = distance < outside[rows, columns]
        outside[rows, columns][closer], owner[rows, columns][closer] = distance[closer], i
    nearest = ndimage.distance_transform_edt(owner < 0, return_distances=False, return_indices=True)
    labels, _ = connected(owner[tuple(nearest)], least=20)
    return labels, np.minimum(outside, 10)


def _sorted_by_field(large: Floats, radii: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return packed circles: large ones lie where a field is high, small ones anywhere else."""
    half = np.median(radii)
    areas = large > rng.uniform(0.2, 0.8)
    centers, kept = packed(large.shape, radii[radii > half], rng, 0.05, areas)
    small, own = packed(large.shape, radii[radii <= half], rng, 0.05)
    apart = (
        np.hypot(*(small[:, None] - centers[None]).transpose(2, 0, 1)) - kept
        if len(centers)
        else np.ones((len(small), 1))
    )
    fits = (apart > 0.9 * own[:, None]).all(axis=1)
    return np.concatenate([centers, small[fits]]), np.concatenate([kept, own[fits]])
