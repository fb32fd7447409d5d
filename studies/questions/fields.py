"""Other fields than photography: spinseg, called as a user would, beside the recipe that people use there.

Each row is a kind of image, rendered with exact ground truth or loaded with an expert's: the mean over three images
(or, of one image, over three random seeds) and the range. Without ground truth only the number of regions is given.
`ARI` is the adjusted Rand index, and `F1` that of objects above an intersection over union of .5. Settings of
felzenszwalb, of the Gabor filters and of the watershed of stones were chosen on other seeds; the other recipes were not
tuned. Seconds are of one processor, the mean over runs.
"""

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from skimage.filters import gabor_kernel, threshold_local, threshold_multiotsu, threshold_otsu
from skimage.segmentation import felzenszwalb, watershed

import spinseg as ss
from spinseg._errors import MissingExtra
from studies.evaluation.baselines.library import import_extra
from studies.evaluation.baselines.objects import basins, bright_objects, cut_touching, otsu_watershed
from studies.evaluation.metrics import adjusted_rand_index
from studies.evaluation.objects import object_scores
from studies.questions import field_images as images
from studies.questions import object_images as objects
from studies.questions.field_images import Sample

N_SEEDS = 3
ROLES = {"outlines": 0, "one_each": 1}
NEEDS_SKLEARN = "it needs scikit-learn: pip install 'spinseg[sklearn]'"
GABOR_3 = "Gabor + k-means given 3"
Labels = NDArray[np.integer[Any]]


class Case(NamedTuple):
    """A kind of image, the preset of the call (None: the default call), the score, and a recipe with its name.

    `roles` are those of the channels, as `segment` takes them.
    """

    name: str
    sample: Callable[[int], Sample]
    preset: str | None
    score: str
    recipe: str = ""
    their_labels: Callable[[Sample], Labels] | None = None
    roles: Mapping[str, Any] = MappingProxyType({})


# --- the recipes ---


def bands_felzenszwalb(sample: Sample) -> Labels:
    """Return the regions of Felzenszwalb and Huttenlocher on the logarithms of bands."""
    bands = np.log(sample.image)
    bands = (bands - bands.min()) / np.ptp(bands)
    return felzenszwalb(bands, scale=30, sigma=1.5, min_size=200, channel_axis=-1)


def k_means(sample: Sample) -> Labels:
    """Return k-means of the logarithms of bands, given the true number of kinds."""
    values = np.log(sample.image).reshape(-1, sample.image.shape[-1])
    return _clusters(values, np.unique(sample.truth).size).reshape(sample.truth.shape)


def multi_otsu(sample: Sample) -> Labels:
    """Return the classes of Otsu's thresholds after a slight blur, given three."""
    smooth = ndimage.gaussian_filter(sample.image, 1.0)
    return np.digitize(smooth, threshold_multiotsu(smooth, 3))


def mixture(sample: Sample) -> Labels:
    """Return the most probable of three Gaussians for each pixel of the mask."""
    module = import_extra("sklearn.mixture", NEEDS_SKLEARN)
    labels, values = np.full(sample.image.shape, -1), sample.image[sample.mask][:, None]
    labels[sample.mask] = module.GaussianMixture(3, n_init=2, random_state=0).fit_predict(values)
    return labels


def local_threshold(sample: Sample) -> Labels:
    """Return what exceeds the weighted mean around it."""
    smooth = ndimage.gaussian_filter(sample.image, 1.0)
    return (smooth > threshold_local(smooth, 101)).astype(np.int32)


def intensity_basins(sample: Sample) -> Labels:
    """Return the h-minima watershed of the smoothed intensities, from 0 to 1."""
    smooth = ndimage.gaussian_filter(sample.image / sample.image.max(), 1.5)
    return basins(smooth, 0.05)


def bright_basins(sample: Sample) -> Labels:
    """Return the h-maxima watershed of the smoothed intensities."""
    return basins(1 - ndimage.gaussian_filter(sample.image, 1.0), 0.1)


def peaks(sample: Sample) -> Labels:
    """Return what exceeds Otsu's threshold around each maximum."""
    smooth = ndimage.gaussian_filter(sample.image, 1.0)
    return cut_touching(smooth > threshold_otsu(smooth), min_distance=4, min_size=5)


def volume_watershed(sample: Sample) -> Labels:
    """Return the same as `otsu_watershed`, of a volume."""
    gray = bright_objects(ndimage.gaussian_filter(sample.image.astype(float), 1.0))
    return cut_touching(gray > threshold_otsu(gray), min_distance=3, min_size=30)


def log_otsu(sample: Sample) -> Labels:
    """Return what exceeds Otsu's threshold of logarithms, cut by a watershed of distances."""
    smooth = ndimage.gaussian_filter(np.log(np.maximum(sample.image, 1.0)), 1.0)
    return cut_touching(smooth > threshold_otsu(smooth), min_distance=7, min_size=30)


def smooth_otsu(sample: Sample) -> Labels:
    """Return the same of intensities, blurred by more, against noise."""
    return otsu_watershed(sample.image, sigma=2.0)


def from_nuclei(sample: Sample) -> Labels:
    """Return the watershed of the membranes from the nuclei, given which channel has which."""
    image = sample.image / sample.image.max()
    membrane, nucleus = (image[..., 1], image[..., 0]) if image.shape[-1] == 3 else (image[..., 0], image[..., 1])
    smooth = ndimage.gaussian_filter(nucleus, 1.5)
    markers, _ = ndimage.label(ndimage.binary_opening(smooth > threshold_otsu(smooth), iterations=2))
    return watershed(ndimage.gaussian_filter(membrane, 1.0), markers)


def above_background(sample: Sample) -> Labels:
    """Return what exceeds the background by three times its noise, cut at its maxima."""
    image = sample.image.astype(float)
    rest = image - ndimage.median_filter(image[::4, ::4], 17).repeat(4, axis=0).repeat(4, axis=1)
    smooth = ndimage.gaussian_filter(rest, 0.8)
    noise = 1.48 * np.median(np.abs(smooth - np.median(smooth)))
    above = smooth > np.median(smooth) + 3 * noise
    maxima = (smooth == ndimage.maximum_filter(smooth, 5)) & above
    found = watershed(-smooth, ndimage.label(maxima)[0], mask=above)
    return np.where(np.bincount(found.ravel())[found] >= 5, found, 0)


def above_surroundings(sample: Sample) -> Labels:
    """Return what exceeds the median around it by half a kelvin."""
    image = ndimage.gaussian_filter(sample.image / 100, 1.0)
    around = ndimage.median_filter(image[::4, ::4], 17).repeat(4, axis=0).repeat(4, axis=1)
    found, _ = ndimage.label(ndimage.binary_opening(image - around > 0.5, iterations=2))
    return found


def gabor_k_means(sample: Sample) -> Labels:
    """Return k-means of log energies of Gabor filters at four scales and four angles, given the number."""
    energies = []
    for frequency in (0.05, 0.1, 0.2, 0.4):
        for angle in np.arange(4) * np.pi / 4:
            kernel = gabor_kernel(frequency, theta=angle)
            parts = [ndimage.convolve(sample.image - 0.5, part, mode="reflect") for part in (kernel.real, kernel.imag)]
            energies.append(np.log(ndimage.gaussian_filter(np.hypot(*parts), 9.0)))
    table = np.stack(energies, axis=-1).reshape(-1, len(energies))
    number = np.unique(sample.truth).size
    return _clusters((table - table.mean(axis=0)) / table.std(axis=0), number).reshape(sample.truth.shape)


def _clusters(values: NDArray[np.floating[Any]], number: int) -> Labels:
    """Return k-means of the rows of a table."""
    return import_extra("sklearn.cluster", NEEDS_SKLEARN).KMeans(number, n_init=3, random_state=0).fit_predict(values)


# --- the table ---


def cases() -> list[Case]:
    """Return the rows of the table."""
    found = []
    for amount, looks in (("low", 30.0), ("high", 3.0)):
        name = f"six bands, {amount} speckle (variance 1/{looks:g})"
        fields, kinds = (lambda seed, i=i, looks=looks: images.six_bands(seed, looks)[i] for i in (0, 1))
        found += [
            Case(f"{name}, fields", fields, None, "ARI", "felzenszwalb of log bands", bands_felzenszwalb),
            Case(f"{name}, kinds", kinds, "classes", "ARI", "k-means of log bands, given the number", k_means),
        ]
    for noise in (0.05, 0.12):
        sample = partial(images.three_phases, noise=noise)
        name = f"three phases, .25 apart, noise {noise:g}"
        found.append(Case(name, sample, "classes", "ARI", "blur, multi-Otsu given 3", multi_otsu))
    for noise in (0.02, 0.05, 0.09):
        for bias in (0.2, 0.4):
            sample = partial(images.brain_slice, noise=noise, bias=bias)
            name = f"T1 brain slice, noise {noise:.0%}, bias {bias:.0%}"
            found.append(Case(name, sample, "classes", "ARI", "Gaussian mixture given 3", mixture))
    coins = images.coins_in_uneven_light
    found.append(Case("coins in uneven light", coins, "classes", "ARI", "local threshold", local_threshold))
    found.append(Case("stones", images.stones, None, "F1", "h-maxima watershed of intensity", bright_basins))
    found.append(Case("stars", images.stars, None, "F1", "Otsu + watershed", peaks))
    found += _object_cases()
    for preset in (None, "classes"):
        mosaic = objects.texture_mosaic
        found.append(Case("mosaic of grass, gravel and brick", mosaic, preset, "ARI", GABOR_3, gabor_k_means))
    for preset in (None, "classes"):
        grass = images.gravel_in_grass
        found.append(Case("gravel in grass", grass, preset, "ARI", "Gabor + k-means given 2", gabor_k_means))
    found.append(Case("nuclei in 3-D", images.cells_in_3d, None, "F1", "Otsu + watershed", volume_watershed))
    name = "plant cells with stained walls"
    found.append(Case(name, images.plant_cells, None, "F1", "h-minima watershed of intensity", intensity_basins))
    for name in ("gravel", "brick", "coins", "retina"):
        found.append(Case(f"{name} of scikit-image", partial(images.bundled, name), None, "regions"))
    return found


def _object_cases() -> list[Case]:
    """Return the rows in which objects are much dimmer than something else, or are seen in two channels."""
    merged, channels = (partial(objects.membrane_and_nucleus, is_merged=is_merged) for is_merged in (True, False))
    seeded = "watershed of membranes from nuclei"
    return [
        Case("membranes and nuclei, two channels", channels, None, "F1", seeded, from_nuclei),
        Case("membranes and nuclei, with their roles", channels, None, "F1", seeded, from_nuclei, ROLES),
        Case("membranes and nuclei, cyan and red", merged, None, "F1", seeded, from_nuclei),
        Case("nuclei with bright debris", objects.nuclei_with_debris, None, "F1", "log Otsu + watershed", log_otsu),
        Case("nuclei, noise of 30 of 255", objects.noisy_nuclei, None, "F1", "Otsu + watershed", smooth_otsu),
        Case("stars and galaxies", objects.crowded_sky, None, "F1", "background + threshold", above_background),
        Case("objects one kelvin warmer", objects.warm_objects, None, "F1", "local threshold", above_surroundings),
    ]


def scored(case: Case, labels: Labels, truth: Labels) -> float:
    """Return the score of a label image; NaN without ground truth."""
    if case.score == "regions":
        return float("nan")
    return object_scores(labels, truth).f_50 if case.score == "F1" else adjusted_rand_index(labels, truth)


def row(case: Case, n_seeds: int = N_SEEDS) -> dict[str, Any]:
    """Return what a row of the table holds: the call, scores and numbers of clusters, and those of the recipe."""
    ours, theirs, numbers, seconds, true = [], [], [], [], []
    for seed in range(n_seeds):
        sample = case.sample(seed)
        start = time.process_time()
        call = partial(ss.segment, sample.image, mask=sample.mask, rng=seed, workers=1, **case.roles)
        found = call() if case.preset is None else call(preset=case.preset)
        seconds.append(time.process_time() - start)
        ours.append(scored(case, np.where(found.labels > 0, found.labels, -1), sample.truth))
        numbers.append(found.n_clusters)
        true.append(np.unique(sample.truth[sample.truth >= 0]).size)
        if case.their_labels is not None:
            theirs.append(scored(case, case.their_labels(sample), sample.truth))
    roles = ", ".join(f"{name}={channel}" for name, channel in case.roles.items())
    facts = {
        "call": roles or case.preset or "default",
        "score": case.score,
        "spinseg": ours,
        "found": numbers,
        "true": true,
    }
    return facts | {"recipe": case.recipe, "recipe_scores": theirs, "seconds": float(np.mean(seconds))}


def text(facts: dict[str, Any]) -> str:
    """Return a row as the cells of a table in Markdown."""
    numbers, true = facts["found"], facts["true"]
    found = ", ".join(f"{n} ({t})" if t else f"{n}" for n, t in zip(numbers, true, strict=True))
    flag = " **one region**" if 1 in numbers and max(true) != 1 else ""
    ours = "-" if facts["score"] == "regions" else f"{facts['score']} {_spread(facts['spinseg'])}"
    theirs = (
        f"{facts['recipe']} {_spread(facts['recipe_scores'])}" if facts["recipe_scores"] else facts["recipe"] or "-"
    )
    return f"{facts['call']} | {ours} | {found}{flag} | {theirs} | {facts['seconds']:.1f}"


def _spread(values: list[float]) -> str:
    """Return the mean and the range.

    Examples
    --------
    >>> _spread([0.5, 0.75, 1.0])
    '.75 (.50-1.00)'
    """
    mean, low, high = (f"{value:.2f}".replace("0.", ".", 1) for value in (np.mean(values), min(values), max(values)))
    return f"{mean} ({low}-{high})"


def study(only: str = "") -> dict[str, object]:
    """Return the rows of the table, by kind of image; or those whose names contain a text."""
    figures: dict[str, object] = {"image": "call | spinseg | found (true) | recipe | seconds"}
    chosen = [case for case in cases() if only.lower() in case.name.lower()]
    if not chosen:
        names = "; ".join(sorted({case.name for case in cases()}))
        raise ValueError(f"no row contains {only!r}. There are: {names}")
    for case in chosen:
        name = case.name if case.name not in figures else f"{case.name}, {case.preset}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that chains do not agree, say: scores tell
                figures[name] = text(row(case))
        except (MissingExtra, ImportError, FileNotFoundError) as error:
            figures[name] = f"skipped: {error}"
        print(f"{name}: {figures[name]}", file=sys.stderr, flush=True)
    return figures
