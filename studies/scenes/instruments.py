"""What instruments make of a scene: blur, uneven light, noise, debris, and a dark or an inverted image."""

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy import ndimage

from studies.scenes.parts import Change, Flags, Floats, Scene, Shape, connected, log_uniform

LARGE = 30  # pixels: larger specks of debris are objects
SPECKS = 7


def observe(scene: Scene, rng: np.random.Generator, out_of_focus: Change | None = None, noisy: float = 1.0) -> Scene:
    """Return the scene as an instrument records it: with blur, uneven light, noise, and some gain.

    `noisy` multiplies the share of images with noise.
    """
    image = scene.image
    for change, share in (
        (out_of_focus or blur, 0.7),
        (uneven_light, 0.4),
        (shot_noise, 0.6 * noisy),
        (speckle, 0.15 * noisy),
        (read_noise, 0.5 * noisy),
    ):
        if rng.random() < share:
            image = change(image, rng)
    image = unit_range(image)
    if rng.random() < 0.25:
        image = 1 - image
    if rng.random() < 0.3:  # a dark image
        image = image * rng.uniform(0.08, 0.5) + rng.uniform(0, 0.1)
    return replace(scene, image=image)


def unit_range(image: Floats) -> Floats:
    """Return intensities without negative ones, divided by the largest."""
    return np.clip(image, 0, None) / max(float(image.max()), 1e-9)


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
    photons = log_uniform(rng, 4, 500)
    return rng.poisson(np.maximum(image, 0) * photons) / photons


def speckle(image: Floats, rng: np.random.Generator, looks: float | None = None) -> Floats:
    """Return the image with multiplicative noise, as of radar, whose variance is 1 / looks."""
    looks = rng.uniform(3, 40) if looks is None else looks
    return image * rng.gamma(looks, 1 / looks, image.shape)


def read_noise(image: Floats, rng: np.random.Generator) -> Floats:
    """Return the image with Gaussian noise, in some images correlated over a pixel, in some strong."""
    noise = rng.normal(size=image.shape)
    if rng.random() < 0.3:
        noise = ndimage.gaussian_filter(noise, (*[0.8] * (image.ndim - 1), 0))
        noise /= max(float(noise.std()), 1e-9)
    level = rng.uniform(0.01, 0.13) if rng.random() < 0.7 else rng.uniform(0.13, 0.3)
    return image + level * noise


# --- what is too bright, and pixels that are dead ---


def debris(scene: Scene, rng: np.random.Generator) -> Scene:
    """Return the scene with specks or a scratch 5 to 60 times as bright as all else, and with dead pixels.

    Specks of more than `LARGE` pixels are objects; of smaller ones, scratches and pixels, the truth knows nothing.
    """
    shape = scene.labels.shape
    bright, specks = np.zeros(shape), np.zeros(shape, np.int64)
    for number in range(1, int(rng.integers(1, SPECKS)) + 1):
        within = _speck(shape, rng)
        bright = np.maximum(bright, within * rng.uniform(0.4, 1))
        if np.count_nonzero(within) > LARGE:
            specks[within] = number
    if rng.random() < 0.3:
        bright = np.maximum(bright, _scratch(shape, rng) * rng.uniform(0.3, 1))
    bright = ndimage.gaussian_filter(bright, rng.uniform(0.3, 0.9))
    usual = float(np.percentile(scene.image, 99.5))
    color = rng.uniform(0.3, 1, scene.image.shape[-1])
    image = scene.image + usual * log_uniform(rng, 5, 60) * bright[..., None] * color
    if rng.random() < 0.3:  # saturated
        image = np.minimum(image, usual * log_uniform(rng, 3, 30))
    if rng.random() < 0.3:
        image[rng.random(shape) < log_uniform(rng, 1e-5, 1e-3)] = 0
    return _with_objects(replace(scene, image=unit_range(image)), specks)


def _speck(shape: Shape, rng: np.random.Generator) -> Flags:
    """Return the pixels of a speck of dust or a crystal, most often a small one."""
    y, x = np.indices(shape)
    dy, dx = y - rng.uniform(0, shape[0]), x - rng.uniform(0, shape[1])
    angle, radius, stretch = rng.uniform(0, np.pi), log_uniform(rng, 0.6, 7), rng.uniform(1, 2.2)
    u, v = np.cos(angle) * dx - np.sin(angle) * dy, np.sin(angle) * dx + np.cos(angle) * dy
    waves = 1 + 0.2 * np.cos(3 * np.arctan2(v, u) + rng.uniform(0, 2 * np.pi))
    return np.hypot(u / stretch, v * stretch) < radius * waves


def _scratch(shape: Shape, rng: np.random.Generator) -> Flags:
    """Return the pixels of a thin line across a part of the image."""
    y, x = np.indices(shape)
    angle = rng.uniform(0, np.pi)
    dy, dx = y - rng.uniform(0, shape[0]), x - rng.uniform(0, shape[1])
    along, across = np.cos(angle) * dx + np.sin(angle) * dy, np.cos(angle) * dy - np.sin(angle) * dx
    bend = rng.normal(0, 0.002)
    return (np.abs(across - bend * along**2) < rng.uniform(0.5, 1.2)) & (np.abs(along) < rng.uniform(15, 120))


def _with_objects(scene: Scene, added: np.ndarray) -> Scene:
    """Return the scene with more objects on top of it, numbered from 1, which are of a kind of their own."""
    if not added.any():
        return scene
    n_regions = scene.kinds.size
    labels, sources = connected(np.where(added > 0, n_regions + added, scene.labels))
    is_new = sources >= n_regions
    old = np.minimum(sources, n_regions - 1)
    kinds = np.where(is_new, scene.kinds.max() + 1, scene.kinds[old])
    objects = None if scene.objects is None else scene.objects[old] | is_new
    return replace(scene, labels=labels, kinds=kinds, objects=objects)
