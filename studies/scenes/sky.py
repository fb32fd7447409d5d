"""Scenes in which a few things are far brighter than the rest: stars and galaxies, and what a thermal camera sees."""

from dataclasses import replace

import numpy as np
from scipy import ndimage

from studies.scenes.instruments import unit_range
from studies.scenes.parts import (
    Floats,
    Outlines,
    Scene,
    Shape,
    around,
    connected,
    ellipses,
    log_uniform,
    smooth_noise,
    wide_noise,
)

MOST_STARS = 350
FEWEST = 7  # pixels of a source
GALAXY = 80.0  # the highest peak of one
FULL = 0.25  # the share of the sky beyond which there are no more galaxies


# --- stars ---


def stars(shape: Shape, rng: np.random.Generator) -> Scene:
    """Stars and galaxies over three decades of brightness; a source is where it can be seen above the sky.

    Intensities are in units of the standard deviation of the sky's noise, which `telescope` adds.
    """
    count = int(log_uniform(rng, 6, MOST_STARS) * min(1, np.prod(shape) / 320**2)) + 2
    seeing, beta = log_uniform(rng, 1.5, 4.5), rng.uniform(2.2, 4.5)
    faintest, slope = rng.uniform(3, 8), rng.uniform(0.6, 1.2)
    peaks = faintest * np.minimum(rng.random(count) ** (-1 / slope), 1000)
    is_galaxy = rng.random(count) < rng.choice([0, 0.2, 0.6])
    limit = rng.uniform(1.2, 2.2)  # of the surface brightness of a source
    light, strongest, owner = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
    centers = rng.uniform(0, 1, (count, 2)) * shape
    for i, (center, peak) in enumerate(zip(centers, peaks, strict=True), 1):
        draw = _galaxy if is_galaxy[i - 1] and np.mean(light > limit) < FULL else _star
        window, profile = draw(center, peak, seeing, beta, shape, rng)
        above = profile > strongest[window]
        if np.count_nonzero(above & (profile > limit)) < FEWEST:
            continue  # nobody would see it
        light[window] += profile
        owner[window][above] = i
        strongest[window][above] = profile[above]
    labels, sources = connected(np.where(light > limit, owner, 0), least=FEWEST - 2)
    return Scene(light[..., None], labels, (sources > 0).astype(np.int64), sources > 0)


Part = tuple[tuple[slice, ...], Floats]


def _star(center: Floats, peak: float, seeing: float, beta: float, shape: Shape, rng: np.random.Generator) -> Part:
    """Return a window and the profile of Moffat in it."""
    reach = seeing * np.sqrt((peak / 0.05) ** (1 / beta)) + 3
    window = around(center, reach, shape)
    y, x = np.ogrid[window]
    return window, peak / (1 + ((y - center[0]) ** 2 + (x - center[1]) ** 2) / seeing**2) ** beta


def _galaxy(center: Floats, peak: float, seeing: float, beta: float, shape: Shape, rng: np.random.Generator) -> Part:
    """Return a window and the profile of Sersic in it, blurred."""
    size, index, peak = seeing * log_uniform(rng, 0.8, 3.5), rng.choice([0.7, 1, 1.5]), min(peak, GALAXY)
    window = around(center, size * np.log(peak / 0.05) ** index + 4, shape)
    y, x = np.ogrid[window]
    angle, flat = rng.uniform(0, np.pi), rng.uniform(0.25, 1)
    dy, dx = y - center[0], x - center[1]
    u, v = np.cos(angle) * dx - np.sin(angle) * dy, (np.sin(angle) * dx + np.cos(angle) * dy) / flat
    profile = peak * np.exp(-((np.hypot(u, v) / size) ** (1 / index)))
    return window, ndimage.gaussian_filter(profile, seeing * 0.6)


def telescope(scene: Scene, rng: np.random.Generator) -> Scene:
    """Return the sky as a camera counts it: over an uneven background, with noise, hot pixels and cosmic rays."""
    shape, light = scene.labels.shape, scene.image[..., 0]
    sky, own = rng.uniform(5, 300), 0.3  # photons, and the share of the noise that reading adds
    slope = rng.normal(0, rng.uniform(0, 0.1), 2)
    y, x = np.indices(shape) / np.array(shape)[:, None, None] - 0.5
    background = sky * (1 + slope[0] * y + slope[1] * x + rng.uniform(0, 0.02) * wide_noise(shape, 60, rng))
    read = own * np.sqrt(sky)
    counts = rng.poisson(np.maximum(background, 0) + light * np.sqrt(sky)) + rng.normal(0, read, shape)
    counts += 0.0 if rng.random() < 0.5 else _cosmic_rays(shape, rng) * sky
    if rng.random() < 0.3:  # saturated
        counts = np.minimum(counts, sky + np.sqrt(sky) * log_uniform(rng, 300, 3000))
    floor = float(counts.min()) if rng.random() < 0.5 else 0.0
    return replace(scene, image=unit_range(counts[..., None] - floor))


def _cosmic_rays(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return short bright tracks of single pixels, and hot pixels."""
    hit = np.zeros(shape)
    for _ in range(int(rng.integers(1, 12))):
        length, angle = log_uniform(rng, 1, 14), rng.uniform(0, np.pi)
        along = np.arange(length)[:, None] * [np.sin(angle), np.cos(angle)]
        track = np.clip(rng.uniform(0, 1, 2) * shape + along, 0, np.array(shape) - 1).astype(int)
        hit[tuple(track.T)] = log_uniform(rng, 0.5, 50)
    hot = rng.random(shape) < log_uniform(rng, 1e-5, 5e-4)
    return hit + hot * rng.exponential(10, shape)


# --- heat ---


def thermal(shape: Shape, rng: np.random.Generator) -> Scene:
    """Objects a kelvin or a few above warm and cool surroundings, and a few very hot ones."""
    count, radius = int(rng.integers(1, 16)), log_uniform(rng, 5, 28)
    size = radius * np.exp(rng.uniform(-0.4, 0.4, (count, 1)))
    axes = size * np.exp(rng.uniform(0, 0.7, (count, 1)) * [-1, 1])
    power, angles = rng.choice([2, 2, 3, 8]), rng.choice([0.0, np.pi]) + rng.normal(0, rng.choice([0.1, 2]), count)
    outlines = Outlines(rng.uniform(0, 1, (count, 2)) * shape, axes, angles, 0.06 if power == 2 else 0.0, power)
    owner, nearest = ellipses(shape, outlines, rng)
    labels, sources = connected(owner)
    above = log_uniform(rng, 0.8, 4) * np.exp(rng.normal(0, 0.2, count + 1))
    hot = rng.random(count + 1) < 0.15
    above[hot] = rng.uniform(15, 150, hot.sum())
    above[0] = 0
    own = above[sources][labels] * (1 - rng.uniform(0, 0.4) * np.minimum(nearest, 1) ** 2)
    around_it = rng.uniform(0, 3) * wide_noise(shape, rng.uniform(40, 90), rng)
    around_it += rng.uniform(0, 0.25) * smooth_noise(shape, rng.uniform(1.5, 8), rng)
    level = (rng.uniform(273, 315) + around_it + own)[..., None]
    return Scene(level, labels, (sources > 0) * (1 + hot[sources].astype(np.int64)), sources > 0)


def thermal_camera(scene: Scene, rng: np.random.Generator) -> Scene:
    """Return temperatures as a thermal camera stores them: blurred, with noise of a tenth of a kelvin, in 16 bits."""
    image = ndimage.gaussian_filter(scene.image, (*[rng.uniform(0.5, 1.4)] * 2, 0))
    image = image + rng.normal(0, log_uniform(rng, 0.02, 0.3), image.shape)
    if rng.random() < 0.4:
        image = image + rng.normal(0, 0.08, (1, image.shape[1], 1))
    return replace(scene, image=np.clip(np.rint(100 * image), 0, 65535) / 65535)
