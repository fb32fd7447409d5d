"""Scenes of textures: regions of equal brightness and contrast that differ in nothing but their pattern."""

from collections.abc import Callable

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree

from studies.scenes.parts import (
    Floats,
    Labels,
    Scene,
    Shape,
    cells,
    connected,
    log_uniform,
    smooth_noise,
    stained,
    wide_noise,
)

UNLIKE = 0.35  # how much patterns of a scene differ at least, as `_look` tells
TRIES = 24
SEEN = 160  # pixels of a pattern that are compared
BOX = 45  # pixels within which patterns have the same mean and variance
Pattern = Callable[[Shape, np.random.Generator], Floats]


def textures(shape: Shape, rng: np.random.Generator) -> Scene:
    """Regions of the same brightness that differ in the scale of their noise."""
    labels, _ = cells(shape, rng, rng.uniform(50, 110), jitter=1.0)
    n_kinds = int(rng.integers(2, 5))
    kinds = rng.integers(n_kinds, size=labels.max() + 1)
    scales = np.geomspace(0.6, rng.uniform(4, 8), n_kinds)
    images = [
        0.5 + rng.uniform(0.06, 0.15) * smooth_noise(shape, scale * rng.uniform(0.8, 1.25, 2), rng) for scale in scales
    ]
    level = np.choose(kinds[labels], images)
    labels, sources = connected(kinds[labels])
    return Scene(stained(level, rng), labels, sources)


def mosaics(shape: Shape, rng: np.random.Generator) -> Scene:
    """A mosaic of patterns of equal mean and variance."""
    number = int(rng.integers(2, 6))
    layout = rng.integers(3)
    if layout == 0:
        pieces, _ = cells(shape, rng, rng.uniform(0.25, 0.6) * min(shape), jitter=1.0)
        kind = rng.integers(number, size=pieces.max() + 1)[pieces]
    elif layout == 1:  # bands and bays
        field = wide_noise(shape, rng.uniform(0.08, 0.2) * min(shape), rng)
        kind = np.digitize(field, np.quantile(field, np.linspace(0, 1, min(number, 4) + 1)[1:-1]))
    else:  # a checkerboard
        pieces = _checkerboard(shape, rng)
        kind = rng.integers(number, size=pieces.max() + 1)[pieces]
    return _filled(kind, rng)


def inlays(shape: Shape, rng: np.random.Generator) -> Scene:
    """One or a few areas of one pattern within another."""
    y, x = np.indices(shape)
    kind, bumps = np.zeros(shape, np.int64), 1 + 0.12 * wide_noise(shape, 25, rng)
    for i in range(1, int(rng.integers(1, 4)) + 1):
        half = rng.uniform(0.12, 0.36, 2) * min(shape)
        dy, dx = (y - rng.uniform(0.15, 0.85) * shape[0]) / half[0], (x - rng.uniform(0.15, 0.85) * shape[1]) / half[1]
        distance = np.hypot(dy, dx) * bumps if rng.random() < 0.7 else np.maximum(abs(dy), abs(dx))
        kind[distance < 1] = i if rng.random() < 0.5 else 1
    return _filled(kind, rng)


def _checkerboard(shape: Shape, rng: np.random.Generator) -> Labels:
    """Return the number of the rectangle of each pixel, from 4 to 16 of them."""
    index = []
    for length in shape:
        n = int(rng.integers(2, 5))
        cuts = (np.arange(1, n) + rng.uniform(-0.2, 0.2, n - 1)) * length / n
        index.append(np.digitize(np.arange(length), cuts))
    return (4 * index[0][:, None] + index[1][None]).astype(np.int32)


def _filled(kind: np.ndarray, rng: np.random.Generator) -> Scene:
    """Return the scene whose regions are filled by patterns, one for each kind."""
    labels, sources = connected(kind, least=150)
    patterns = _unlike(kind.shape, int(sources.max()) + 1, rng)
    labels, sources = connected((sources % len(patterns))[labels])
    level = np.choose(sources[labels], patterns)
    level = 0.5 + rng.uniform(0.09, 0.2) * level + rng.choice([0, 0.04]) * rng.normal(size=sources.size)[labels]
    return Scene(stained(np.maximum(level, 0), rng), labels, sources)


def _unlike(shape: Shape, number: int, rng: np.random.Generator) -> list[Floats]:
    """Return patterns that look different: of different families; or some of one, in another size or turned."""
    found, looks = list[Floats](), list[Floats]()
    for _ in range(TRIES):
        if found and rng.random() < 0.3:
            pattern = _varied(found[-1], rng)
        else:
            pattern = standardized(PATTERNS[rng.integers(len(PATTERNS))](shape, rng))
        look = _look(pattern)
        if all(np.abs(look - other).max() > UNLIKE for other in looks):
            found.append(pattern)
            looks.append(look)
        if len(found) == number:
            break
    return found


def _varied(pattern: Floats, rng: np.random.Generator) -> Floats:
    """Return a pattern turned by a right angle, or in another size."""
    height, width = pattern.shape
    if height == width and rng.random() < 0.5:
        return np.rot90(pattern)
    return standardized(ndimage.zoom(pattern, rng.uniform(1.5, 2.5), order=1)[:height, :width])


def _look(pattern: Floats) -> Floats:
    """Return what tells a pattern from another: logarithms of mean differences over some offsets, and the skewness."""
    seen = ndimage.gaussian_filter(pattern[:SEEN, :SEEN], 1.0)
    seen = seen / max(float(seen.std()), 1e-9)
    offsets = [(n * y, n * x) for n in (2, 5) for y, x in ((0, 1), (1, 1), (1, 0), (1, -1))]
    apart = [np.abs(seen - np.roll(seen, offset, (0, 1)))[8:-8, 8:-8].mean() for offset in offsets]
    return np.append(np.log(np.maximum(apart, 1e-3)), 0.4 * (seen**3).mean())


def standardized(pattern: Floats) -> Floats:
    """Return a pattern of mean 0 and variance 1, also in each of its parts, without extremes."""
    pattern = pattern - _mean_around(pattern)
    spread = np.sqrt(_mean_around(pattern**2))
    pattern = np.clip(pattern / np.maximum(spread, 1e-3 * max(float(spread.max()), 1e-9)), -3, 3)
    return (pattern - pattern.mean()) / max(float(pattern.std()), 1e-9)


def _mean_around(values: Floats) -> Floats:
    """Return the mean around each pixel, of a box that is applied twice."""
    return ndimage.uniform_filter(ndimage.uniform_filter(values, BOX, mode="reflect"), BOX, mode="reflect")


# --- patterns ---


def oriented_noise(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return noise of one wavelength and one direction, both with some spread."""
    fy, fx = np.meshgrid(*(np.fft.fftfreq(length) for length in shape), indexing="ij")
    frequency, angle = 1 / log_uniform(rng, 3, 16), rng.uniform(0, np.pi)
    radial = np.exp(-0.5 * (np.log(np.maximum(np.hypot(fy, fx), 1e-6) / frequency) / rng.uniform(0.2, 0.6)) ** 2)
    turn = np.sin(np.arctan2(fy, fx) - angle)
    power = radial * np.exp(-0.5 * (turn / log_uniform(rng, 0.08, 0.5)) ** 2)
    return np.fft.ifft2(np.fft.fft2(rng.normal(size=shape)) * power).real


def bandpass(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return noise of one wavelength in all directions: as spots and mazes of a reaction with diffusion if steep."""
    scale = log_uniform(rng, 1.0, 4.5)
    white = rng.normal(size=shape)
    noise = ndimage.gaussian_filter(white, scale, mode="wrap") - ndimage.gaussian_filter(
        white, 1.6 * scale, mode="wrap"
    )
    return np.tanh(rng.uniform(0.3, 4) * noise / noise.std() + rng.uniform(-1, 1))


def fractal(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return noise whose amplitude falls with a power of the frequency."""
    fy, fx = np.meshgrid(*(np.fft.fftfreq(length) for length in shape), indexing="ij")
    power = np.maximum(np.hypot(fy, fx), 0.01) ** -rng.uniform(0.3, 1.6)
    return np.fft.ifft2(np.fft.fft2(rng.normal(size=shape)) * power).real


def grating(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return stripes, straight or bent, sinusoidal or steep."""
    phase = 2 * np.pi * _along(shape, rng, rng.uniform(0, 2.5)) / log_uniform(rng, 4, 20)
    return np.tanh(rng.uniform(0.5, 4) * np.sin(phase)) + rng.uniform(0, 0.5) * rng.normal(size=shape)


def hatch(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return two gratings that cross, the stronger one at each pixel, or their product as in cloth."""
    period, angle = log_uniform(rng, 4, 16), rng.uniform(0, np.pi)
    y, x = np.indices(shape) + rng.uniform(0, 1.5) * np.stack([wide_noise(shape, 8, rng) for _ in range(2)])
    first, second = (
        np.sin(2 * np.pi * (np.cos(a) * y + np.sin(a) * x) / period)
        for a in (angle, angle + rng.uniform(0.3, 0.5) * np.pi)
    )
    crossed = np.maximum(first, second) if rng.random() < 0.6 else first * second
    return crossed + rng.uniform(0, 0.5) * rng.normal(size=shape)


def spots(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return discs on a jittered grid, bright or dark."""
    pitch = log_uniform(rng, 5, 18)
    grid = np.indices([int(length / pitch) + 3 for length in shape]).reshape(2, -1).T - 1.0
    grid[:, 1] += rng.choice([0, 0.5]) * (grid[:, 0] % 2)
    points = (grid + rng.uniform(-0.5, 0.5, grid.shape) * rng.uniform(0, 1)) * pitch
    distance = cKDTree(points).query(_places(shape))[0].reshape(shape)
    radius = pitch * rng.uniform(0.2, 0.4)
    return rng.choice([-1, 1]) / (1 + np.exp((distance - radius) / 0.7)) + rng.uniform(0, 0.15) * rng.normal(size=shape)


def pebbles(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return the cells of random points: their distances, their walls, or a gray level each."""
    size = log_uniform(rng, 5, 20)
    points = rng.uniform(-0.1, 1.1, (int(1.5 * np.prod(shape) / size**2) + 4, 2)) * shape
    distance, owner = cKDTree(points).query(_places(shape), 2)
    kind = rng.integers(3)
    if kind == 0:
        found = -distance[:, 0] / size
    elif kind == 1:
        found = -np.exp(-(distance[:, 1] - distance[:, 0]) / rng.uniform(0.8, 2))
    else:
        found = rng.normal(size=len(points))[owner[:, 0]]
    return found.reshape(shape) + rng.uniform(0, 0.1) * rng.normal(size=shape)


def bricks(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return rows of bricks with joints, upright or turned."""
    height = log_uniform(rng, 6, 18)
    width, joint = height * rng.uniform(1.5, 3), rng.uniform(0.8, 2)
    turn = rng.uniform(0, np.pi)
    y, x = np.indices(shape) + 0.5 * np.stack([wide_noise(shape, 8, rng) for _ in range(2)]) + 500.0
    v, u = np.cos(turn) * y - np.sin(turn) * x + 1000, np.sin(turn) * y + np.cos(turn) * x + 1000
    row = np.floor(v / height).astype(int)
    column = np.floor((u + 0.5 * width * (row % 2)) / width).astype(int)
    is_joint = (v % height < joint) | ((u + 0.5 * width * (row % 2)) % width < joint)
    level = rng.normal(0, rng.uniform(0.1, 0.5), 4096)[(row * 131 + column) % 4096]
    return np.where(is_joint, -rng.uniform(0.8, 2), level) + rng.uniform(0, 0.2) * rng.normal(size=shape)


def wood(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return the rings of a board: stripes of changing width, bent by smooth noise, with fibers."""
    along = _along(shape, rng, rng.uniform(2, 8))
    rings = np.sin(2 * np.pi * (along / log_uniform(rng, 6, 20) + 0.4 * wide_noise(shape, 40, rng)))
    fibers = smooth_noise(shape, np.array([0.6, 5])[:: rng.choice([-1, 1])], rng)
    return rings + 0.5 * np.abs(rings) + rng.uniform(0.1, 0.8) * fibers


def mixed_scales(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return noise whose strength changes from place to place, as clumps."""
    strength = np.exp(rng.uniform(0.5, 1) * smooth_noise(shape, log_uniform(rng, 3, 9), rng))
    return strength * smooth_noise(shape, log_uniform(rng, 0.5, 2), rng)


def threads(shape: Shape, rng: np.random.Generator) -> Floats:
    """Return thin lines in random directions, such as grass or fibers."""
    length, field = int(log_uniform(rng, 8, 30)), np.zeros(shape)
    count = int(np.prod(shape) * rng.uniform(0.6, 2) / length / 4)
    starts, angles = (
        rng.uniform(0, 1, (count, 2)) * shape,
        rng.normal(rng.uniform(0, np.pi), rng.uniform(0.2, 2), count),
    )
    steps = np.arange(length)[:, None]
    y = (starts[:, 0] + steps * np.sin(angles)).astype(int) % shape[0]
    x = (starts[:, 1] + steps * np.cos(angles)).astype(int) % shape[1]
    np.maximum.at(field, (y, x), np.broadcast_to(rng.uniform(0.3, 1, count), y.shape))
    return ndimage.gaussian_filter(field, rng.uniform(0.5, 0.9))


PATTERNS: tuple[Pattern, ...] = (
    oriented_noise,
    bandpass,
    fractal,
    grating,
    hatch,
    spots,
    pebbles,
    bricks,
    wood,
    mixed_scales,
    threads,
)


def _along(shape: Shape, rng: np.random.Generator, bend: float) -> Floats:
    """Return a coordinate in a random direction, bent by smooth noise."""
    angle, (y, x) = rng.uniform(0, np.pi), np.indices(shape)
    return np.cos(angle) * y + np.sin(angle) * x + bend * wide_noise(shape, rng.uniform(10, 30), rng)


def _places(shape: Shape) -> Floats:
    return np.indices(shape).reshape(2, -1).T.astype(float)
