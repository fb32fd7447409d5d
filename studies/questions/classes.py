"""Kinds that `Classes` finds in what microscopes, scanners and satellites see, beside methods given the number.

Scores are adjusted Rand indices of the pixels, with the number of kinds found in brackets, one for each random seed: of
phases of a material, from clean to hopeless; of a slice of a brain with noise and uneven light; of coins in uneven
light; of fields in six bands; of textures, beside k-means of Gabor filters; and last, how well `Classes` covers what
annotators outline in photographs.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage import data, filters
from skimage.morphology import closing, disk
from sklearn.mixture import GaussianMixture

import spinseg as ss
from studies import scenes
from studies.evaluation.datasets import bsds, data_root
from studies.evaluation.metrics import adjusted_rand_index, mean_over_annotators, segmentation_covering
from studies.questions.field_images import Sample
from studies.questions.field_images import gravel_in_grass as gravel_ellipse
from studies.questions.fields import gabor_k_means
from studies.questions.volumes import brain

SEEDS = (101, 102, 103)  # constants were chosen with others
SIDE = 192
N_PHOTOGRAPHS = 10
N_BANDS = 6


class Case(NamedTuple):
    """An image, the kind of every pixel, and which pixels are inside."""

    image: NDArray[np.floating]
    truth: NDArray[np.integer]
    inside: NDArray[np.bool_] | None = None


def phases(noise: float, rng: np.random.Generator, contrast: float = 0.25, correlation: float = 0.0) -> Case:
    """Return three phases whose levels lie `contrast` apart, with Gaussian noise that is smooth over `correlation`."""
    field = scenes.smooth_noise((SIDE, SIDE), 9.0, rng)
    truth = np.digitize(field, np.quantile(field, [0.35, 0.7]))
    grain = scenes.smooth_noise((SIDE, SIDE), correlation, rng)
    return Case(np.clip(0.5 + contrast * (truth - 1) + noise * grain, 0, 1), truth)


def slice_of_brain(noise: float, bias: float, rng: np.random.Generator) -> Case:
    """Return the middle slice of the template, under a field that varies by `bias`, with noise."""
    t1, inside, truth = brain()
    middle = (slice(None), slice(None), t1.shape[2] // 2)
    t1, inside, truth = t1[middle], inside[middle], truth[middle]
    field = scenes.light(t1.shape, -np.log(1 - bias), rng) if bias else 1.0
    return Case(np.clip(t1 * field + rng.normal(0, noise, t1.shape), 0, 1), truth, inside)


def coins(rng: np.random.Generator) -> Case:
    """Return coins in uneven light; what is darker than its surroundings, without holes and specks, is background."""
    image = data.coins() / 255
    around = ndimage.percentile_filter(ndimage.gaussian_filter(image, 2)[::4, ::4], 20, 24)
    flat = ndimage.gaussian_filter(image, 1) - ndimage.zoom(around, np.divide(image.shape, around.shape), order=1)
    solid = ndimage.binary_fill_holes(closing(flat > filters.threshold_otsu(flat), disk(3)))
    return Case(image, ndimage.binary_opening(solid, disk(6)).astype(int))


def six_bands(looks: float, rng: np.random.Generator) -> Case:
    """Return fields of a few crops in six bands with speckle."""
    while (scene := scenes.fields((SIDE, SIDE), rng)).image.shape[-1] != N_BANDS:
        pass
    return Case(scenes.speckle(scene.image, rng, looks), scene.kinds[scene.labels])


def textures(rng: np.random.Generator) -> Case:
    """Return regions of the same brightness that differ in their texture."""
    scene = scenes.textures((256, 256), rng)
    return Case(scene.image, scene.kinds[scene.labels])


def gravel_in_grass(rng: np.random.Generator) -> Case:
    """Return discs of gravel inlaid in grass of the same mean and spread of brightness."""
    row, column = rng.integers(0, 512 - 256, 2)
    grass, gravel = (x[row : row + 256, column : column + 256] / 255 for x in (data.grass(), data.gravel()))
    gravel = (gravel - gravel.mean()) / gravel.std() * grass.std() + grass.mean()
    y, x = np.mgrid[:256, :256]
    centers, radii = rng.uniform(60, 196, (2, 2)), rng.uniform(35, 60, 2)
    inlaid = np.any([np.hypot(y - c[0], x - c[1]) < r for c, r in zip(centers, radii, strict=True)], axis=0)
    return Case(np.clip(np.where(inlaid, gravel, grass), 0, 1), inlaid.astype(int))


def inlay(rng: np.random.Generator, inner: NDArray[np.floating], outer: NDArray[np.floating]) -> Case:
    """Return one texture in another, both of mean 0, in an outline that is smooth over 32 pixels."""
    field = scenes.smooth_noise(inner.shape, 32, rng)
    truth = field > np.median(field)
    return Case(np.clip(0.5 + 0.15 * np.where(truth, inner, outer), 0, 1), truth.astype(int))


def noises(inner: float | tuple[float, float], outer: float | tuple[float, float], rng: np.random.Generator) -> Case:
    """Return noise that is smooth over other distances inside than outside, of equal mean and variance."""
    return inlay(rng, *(scenes.smooth_noise((256, 256), np.array(scale), rng) for scale in (inner, outer)))


def smooth_in_rough(rng: np.random.Generator) -> Case:
    """Return weak noise in noise of five times its standard deviation."""
    weak, strong = (scenes.smooth_noise((256, 256), 1.0, rng) for _ in range(2))
    return inlay(rng, 0.2 * weak, strong)


def stripes(rng: np.random.Generator) -> Case:
    """Return bent stripes in two directions."""
    y, x = np.indices((256, 256))
    bent = [np.cos(a) * y + np.sin(a) * x + 2 * scenes.smooth_noise(y.shape, 10.0, rng) for a in (0.3, 1.5)]
    return inlay(rng, *(1.4 * np.sin(2 * np.pi * u / 8) for u in bent))


def halves(rng: np.random.Generator) -> Case:
    """Return a bright and a dark half, which light alone does not explain."""
    truth = np.arange(SIDE)[None].repeat(SIDE, 0) // (SIDE // 2)
    return Case(0.3 + 0.3 * truth + rng.normal(0, 0.05, truth.shape), truth)


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "phases, noise 0": lambda rng: phases(0, rng),
    "phases, noise .05": lambda rng: phases(0.05, rng),
    "phases, noise .12": lambda rng: phases(0.12, rng),
    "phases, noise .12 over .8 pixels": lambda rng: phases(0.12, rng, correlation=0.8),
    "phases, noise .25": lambda rng: phases(0.25, rng),
    "phases, noise 1": lambda rng: phases(1.0, rng),
    "noise alone, .12": lambda rng: phases(0.12, rng, contrast=0)._replace(truth=np.zeros((SIDE, SIDE), int)),
    **{
        f"brain, noise {noise:.0%}, bias {bias:.0%}": partial(slice_of_brain, noise, bias)
        for noise in (0.02, 0.05, 0.09)
        for bias in (0.0, 0.2, 0.4)
    },
    "coins": coins,
    "bright and dark half": halves,
    "six bands, 30 looks": lambda rng: six_bands(30, rng),
    "six bands, 4 looks": lambda rng: six_bands(4, rng),
}
TEXTURES: dict[str, Callable[[np.random.Generator], Case]] = {
    "fine in coarse noise": lambda rng: noises(1.0, 3.0, rng),
    "noise in two directions": lambda rng: noises((1.0, 4.0), (4.0, 1.0), rng),
    "stripes in two directions": stripes,
    "smooth in rough": smooth_in_rough,
    "textures": textures,
    "discs of gravel in grass": gravel_in_grass,
    "gravel in grass": lambda rng: Case(*gravel_ellipse(int(rng.integers(1000, 10**6)))[:2]),
}


def mixture(case: Case) -> float:
    """Return the adjusted Rand index of a Gaussian mixture of the pixels that is given the number of kinds."""
    inside = np.ones(case.truth.shape, bool) if case.inside is None else case.inside
    values = case.image[inside].reshape(np.count_nonzero(inside), -1)
    n_kinds = np.unique(case.truth[inside]).size
    found = GaussianMixture(n_kinds, n_init=2, random_state=0).fit(values[::5]).predict(values)
    return adjusted_rand_index(found, case.truth[inside])


def gabor(case: Case) -> float:
    """Return the adjusted Rand index of k-means of Gabor filters that is given the number of kinds."""
    image = case.image if case.image.ndim == 2 else case.image.mean(axis=-1)
    return adjusted_rand_index(gabor_k_means(Sample(image, case.truth)), case.truth)


class Outcome(NamedTuple):
    """The adjusted Rand index of `Classes`, its number of kinds, its seconds, and the index of the mixture."""

    score: float
    n_kinds: int
    seconds: float
    mixture: float


def outcome(case: Case, seed: int) -> Outcome:
    """Return how well `Classes` finds the kinds of a case."""
    axis, white = None if case.image.ndim == 2 else -1, max(1.0, float(case.image.max()))
    start = time.perf_counter()
    found = ss.segment(case.image, "classes", mask=case.inside, channel_axis=axis, intensity_range=(0, white), rng=seed)
    seconds = time.perf_counter() - start
    inside = np.ones(case.truth.shape, bool) if case.inside is None else case.inside
    score = adjusted_rand_index(found.labels[inside], case.truth[inside])
    return Outcome(score, found.n_clusters, seconds, mixture(case))


def study() -> dict[str, object]:
    """Return the indices of each case, and the covering of photographs."""
    figures: dict[str, object] = {}
    for name, make in (CASES | TEXTURES).items():
        rows = [outcome(make(np.random.default_rng(seed)), seed) for seed in SEEDS]
        figures[name] = " ".join(f"{row.score:.3f} ({row.n_kinds})" for row in rows)
        figures[f"{name}, mixture"] = " ".join(f"{row.mixture:.3f}" for row in rows)
        if name in TEXTURES:
            figures[f"{name}, Gabor + k-means"] = " ".join(
                f"{gabor(make(np.random.default_rng(s))):.3f}" for s in SEEDS
            )
        figures[f"{name}, seconds"] = float(np.mean([row.seconds for row in rows]))
        print(f"{name}: {figures[name]}", file=sys.stderr)
    examples = bsds(data_root() / "bsds300", "train")
    found, start = [], time.perf_counter()
    for example in examples[:: len(examples) // N_PHOTOGRAPHS][:N_PHOTOGRAPHS]:
        labels = ss.segment(example.image(), "classes", rng=0).labels
        found.append(mean_over_annotators(segmentation_covering, labels, example.annotations()))
    figures["photographs, covering"] = float(np.mean(found))
    figures["photographs, seconds each"] = (time.perf_counter() - start) / N_PHOTOGRAPHS
    return figures
