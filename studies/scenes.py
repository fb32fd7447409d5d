"""Rendered images with exact ground truth: what microscopes, scanners and satellites see, beside photographs.

`render(kind, shape, rng)` draws the objects of a scene, and `observe` what an instrument makes of them: blur, uneven
light, shot noise, speckle, a dark or an inverted image. The same seed gives the same scene. Only NumPy and SciPy are
needed, so that the machine that trains can render.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Shape = tuple[int, ...]
Change = Callable[[Floats, np.random.Generator], Floats]


@dataclass(frozen=True, eq=False)
class Scene:
    """An image and its ground truth.

    Attributes
    ----------
    image : (height, width, n_channels) array
        From 0 to 1.
    labels : (height, width) array
        The region of each pixel, from 0 on; every region is connected.
    kinds : (n_regions,) array
        The kind of each region, such as the phase of a material; regions of a kind look alike.
    """

    image: Floats
    labels: Labels
    kinds: NDArray[np.int64]


# --- the objects ---


def blobs(shape: Shape, rng: np.random.Generator) -> Scene:
    """Roundish objects on a background, some of which touch, such as nuclei."""
    radius = float(np.exp(rng.uniform(np.log(4), np.log(26))))
    count = max(1, int(rng.uniform(0.02, 0.5) * shape[0] * shape[1] / (np.pi * radius**2)))
    centers = rng.uniform(0, 1, (count, 2)) * shape
    if rng.random() < 0.6:  # in groups
        groups = rng.uniform(0, 1, (max(1, count // 6), 2)) * shape
        centers = groups[rng.integers(len(groups), size=count)] + rng.normal(0, 2 * radius, (count, 2))
    y, x = np.indices(shape)
    nearest, owner = np.full(shape, np.inf), np.zeros(shape, np.int64)
    for i, (row, column) in enumerate(centers, 1):
        reach = int(2.6 * radius) + 2
        window = tuple(
            slice(max(0, int(c) - reach), max(0, min(n, int(c) + reach)))
            for c, n in zip((row, column), shape, strict=True)
        )
        angle, stretch = rng.uniform(0, np.pi), np.exp(rng.uniform(-0.35, 0.35))
        dy, dx = y[window] - row, x[window] - column
        u, v = np.cos(angle) * dx - np.sin(angle) * dy, np.sin(angle) * dx + np.cos(angle) * dy
        bearing = np.arctan2(v, u)
        waves = 1 + sum(rng.normal(0, 0.07) * np.cos(k * bearing + rng.uniform(0, 2 * np.pi)) for k in (2, 3, 4))
        size = np.clip(rng.lognormal(0, 0.2), 0.6, 1.6)
        distance = np.hypot(u * stretch, v / stretch) / (radius * size * waves)
        closer = distance < np.minimum(nearest[window], 1)
        nearest[window][closer], owner[window][closer] = distance[closer], i
    labels, sources = connected(owner)
    brightness = np.exp(rng.normal(0, rng.uniform(0.05, 0.35), count + 1))
    inside = brightness[sources][labels] * (1 + rng.uniform(0, 0.35) * smooth_noise(shape, rng.uniform(1.5, 6), rng))
    inside *= 1 - rng.uniform(0, 0.3) * np.where(np.isfinite(nearest), nearest, 0) ** 2  # less at the rim
    haze = rng.uniform(0, 0.25) * (1 + rng.uniform(0, 0.6) * smooth_noise(shape, radius * 3, rng))
    level = np.where(sources[labels] > 0, haze + inside, haze)
    return Scene(_channels(level, rng), labels, (sources > 0).astype(np.int64))


def membranes(shape: Shape, rng: np.random.Generator, spacing: tuple[float, float] = (12, 45)) -> Scene:
    """Cells that fill the plane or the volume, with stained walls; `spacing` has the least and the largest width."""
    labels, border = _cells(shape, rng, rng.uniform(*spacing), jitter=rng.uniform(0.3, 1))
    width = rng.uniform(0.7, 2.2)
    wall = np.exp(-0.5 * (border / width) ** 2) * (1 + rng.uniform(0, 0.5) * smooth_noise(shape, 8, rng))
    inside = rng.uniform(0, 0.35) * np.exp(rng.normal(0, 0.4, labels.max() + 1))[labels]
    inside *= 1 + rng.uniform(0, 0.5) * smooth_noise(shape, rng.uniform(1, 4), rng)
    return Scene(_channels(inside + wall, rng), labels, np.zeros(labels.max() + 1, np.int64))


def grains(shape: Shape, rng: np.random.Generator, spacing: tuple[float, float] = (14, 60)) -> Scene:
    """Grains of a metal or a rock, of a few gray levels, with dark or bright lines between some of them."""
    labels, border = _cells(shape, rng, rng.uniform(*spacing), jitter=1.0)
    n_kinds = int(rng.integers(2, 7))
    kinds = rng.integers(n_kinds, size=labels.max() + 1)
    levels = rng.uniform(0.2, 1, n_kinds)
    level = levels[kinds][labels] + rng.normal(0, 0.04, labels.max() + 1)[labels]
    line = np.exp(-0.5 * (border / rng.uniform(0.5, 1.2)) ** 2)
    level += rng.choice([-0.4, -0.2, 0.3]) * line + rng.uniform(0, 0.08) * smooth_noise(shape, 2, rng)
    return Scene(_channels(np.maximum(level, 0), rng), labels, kinds)


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
    return Scene(_channels(levels[sources][labels], rng), labels, sources)


def textures(shape: Shape, rng: np.random.Generator) -> Scene:
    """Regions of the same brightness that differ in their texture."""
    labels, _ = _cells(shape, rng, rng.uniform(50, 110), jitter=1.0)
    n_kinds = int(rng.integers(2, 5))
    kinds = rng.integers(n_kinds, size=labels.max() + 1)
    scales = np.geomspace(0.6, rng.uniform(4, 8), n_kinds)
    images = [
        0.5 + rng.uniform(0.06, 0.15) * smooth_noise(shape, scale * rng.uniform(0.8, 1.25, 2), rng) for scale in scales
    ]
    level = np.choose(kinds[labels], images)
    labels, sources = connected(kinds[labels])
    return Scene(_channels(level, rng), labels, sources)


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
    return Scene(colors[sources][labels], labels, sources)


RENDERERS: dict[str, Callable[[Shape, np.random.Generator], Scene]] = {
    renderer.__name__: renderer for renderer in (blobs, membranes, grains, fields, phases, textures, shapes)
}


# --- the instrument ---


def observe(scene: Scene, rng: np.random.Generator, out_of_focus: Change | None = None) -> Scene:
    """Return the scene as an instrument records it: with blur, uneven light, noise, and some gain."""
    image = scene.image
    for change, share in (
        (out_of_focus or blur, 0.7),
        (uneven_light, 0.4),
        (shot_noise, 0.6),
        (speckle, 0.15),
        (read_noise, 0.5),
    ):
        if rng.random() < share:
            image = change(image, rng)
    image = np.clip(image, 0, None) / max(float(image.max()), 1e-9)
    if rng.random() < 0.25:
        image = 1 - image
    if rng.random() < 0.3:  # a dark image
        image = image * rng.uniform(0.08, 0.5) + rng.uniform(0, 0.1)
    return replace(scene, image=image)


def blur(image: Floats, rng: np.random.Generator) -> Floats:
    """Return the image out of focus by up to two pixels."""
    return ndimage.gaussian_filter(image, (*[rng.uniform(0.4, 2.0)] * (image.ndim - 1), 0), mode="reflect")


def uneven_light(image: Floats, rng: np.random.Generator) -> Floats:
    """Return the image under a smooth multiplicative field."""
    return image * light(image.shape[:-1], rng.uniform(0.15, 0.7), rng)[..., None]


def light(shape: Shape, strength: float, rng: np.random.Generator) -> Floats:
    """Return a smooth field around 1 whose logarithm is a polynomial of the second degree from 0 to -`strength`."""
    axes = np.meshgrid(*(np.linspace(-1, 1, length) for length in shape), indexing="ij")
    basis = np.stack([*axes, *(a * b for a, b in combinations(axes, 2)), *(a**2 for a in axes)])
    field = np.tensordot(rng.normal(size=len(basis)), basis, 1)
    return np.exp(strength * (field - field.max()) / max(float(np.ptp(field)), 1e-9))


def shot_noise(image: Floats, rng: np.random.Generator) -> Floats:
    """Return the image counted in photons, a few or many."""
    photons = float(np.exp(rng.uniform(np.log(8), np.log(500))))
    return rng.poisson(np.maximum(image, 0) * photons) / photons


def speckle(image: Floats, rng: np.random.Generator, looks: float | None = None) -> Floats:
    """Return the image with multiplicative noise, as of radar, whose variance is 1 / looks."""
    looks = rng.uniform(3, 40) if looks is None else looks
    return image * rng.gamma(looks, 1 / looks, image.shape)


def read_noise(image: Floats, rng: np.random.Generator) -> Floats:
    """Return the image with Gaussian noise, in some images correlated over a pixel."""
    noise = rng.normal(size=image.shape)
    if rng.random() < 0.3:
        noise = ndimage.gaussian_filter(noise, (*[0.8] * (image.ndim - 1), 0))
        noise /= max(float(noise.std()), 1e-9)
    return image + rng.uniform(0.01, 0.13) * noise


def render(kind: str, shape: Shape, rng: np.random.Generator) -> Scene:
    """Return a scene of one of `RENDERERS`, as an instrument records it, or a drawing."""
    scene = RENDERERS[kind](shape, rng)
    return scene if kind == "shapes" and rng.random() < 0.6 else observe(scene, rng)


# --- parts ---


def smooth_noise(shape: Shape, scale: float | Floats, rng: np.random.Generator) -> Floats:
    """Return Gaussian noise of mean 0 and variance 1 that is smooth over `scale` pixels."""
    noise = ndimage.gaussian_filter(rng.normal(size=shape), scale, mode="wrap")
    return (noise - noise.mean()) / max(float(noise.std()), 1e-9)


def _cells(shape: Shape, rng: np.random.Generator, spacing: float, jitter: float) -> tuple[Labels, Floats]:
    """Return cells of a warped Voronoi diagram, and the distance of each pixel to the border of its cell."""
    n_axes = len(shape)
    grid = np.indices([int(length / spacing) + 3 for length in shape]).reshape(n_axes, -1).T - 1.0
    points = (
        grid + 0.5 * (grid[:, :1] % 2) * np.eye(n_axes)[-1] + rng.uniform(-0.5, 0.5, grid.shape) * jitter
    ) * spacing
    places = np.indices(shape).reshape(n_axes, -1).T + 0.0
    warp = rng.uniform(0, 0.12) * spacing
    places += warp * np.stack([smooth_noise(shape, spacing / 4, rng).ravel() for _ in range(n_axes)], axis=1)
    distance, owner = cKDTree(points).query(places, 2)
    labels, _ = connected(owner[:, 0].reshape(shape))
    return labels, ((distance[:, 1] - distance[:, 0]) / 2).reshape(shape)


def connected(owner: NDArray[np.integer], least: int = 9) -> tuple[Labels, NDArray[np.int64]]:
    """Return the connected pieces of an image, and the owner of each; those below `least` pixels join the nearest."""
    pieces, n_pieces = np.zeros(owner.shape, np.int64), 0
    for value in np.unique(owner):
        found, n_found = ndimage.label(owner == value)
        pieces[found > 0] = found[found > 0] + n_pieces - 1
        n_pieces += n_found
    small = (np.bincount(pieces.ravel()) < least)[pieces]
    if small.any() and not small.all():
        nearest = ndimage.distance_transform_edt(small, return_distances=False, return_indices=True)
        return connected(owner[tuple(nearest)], least=0)
    sources = np.zeros(n_pieces, np.int64)
    sources[pieces.ravel()] = owner.ravel()
    return pieces.astype(np.int32), sources


def _channels(level: Floats, rng: np.random.Generator) -> Floats:
    """Return a gray image in one channel, or in some scenes stained in three."""
    level = level / max(float(level.max()), 1e-9)
    if rng.random() < 0.75:
        return level[..., None]
    ground, stain = rng.uniform(0, 1, 3), rng.uniform(0, 1, 3)
    return ground + level[..., None] * (stain - ground)


def in_three_channels(image: Floats) -> Floats:
    """Return an image of any number of channels in three, stretched to the range from 0 to 1.

    One channel is repeated, three stay. Others become the components that `segment` analyzes.
    """
    if image.shape[-1] not in (1, 3):
        from spinseg.image.components import three_components  # needs lazy-loader, but nothing that compiles

        return three_components(image).astype(np.float64)
    low, high = np.percentile(image, [0.5, 99.8])
    return np.broadcast_to(np.clip((image - low) / max(high - low, 1e-9), 0, 1), (*image.shape[:-1], 3))
