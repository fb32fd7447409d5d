"""Outlines at full size: photographs enlarged four times, and the time that an image of 12 megapixels takes.

Outlines of twelve training photographs of BSDS300, enlarged four times, are compared with those of annotators where the
pixels of the photograph lie, and with those of the photograph itself. "Without refinement" has the outlines of the
reduced image, in stairs; "watershed" floods the same reliefs from the eroded sites. The time of 12 megapixels is that
of a bundled image, enlarged, with the noise of a camera.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import distance_transform_edt, maximum_filter, minimum_filter
from skimage.segmentation import slic, watershed

import spinseg as ss
from spinseg.image import outlines as refinement
from spinseg.pictures import PICTURES
from studies.evaluation.boundaries import outlines
from studies.evaluation.datasets import bsds, data_root

FACTOR = 4
TOLERANCE = 2  # pixels of the photograph
ERODED_WIDTH = 7  # pixels of the window within which a site must be alone to be flooded from
N_PHOTOGRAPHS = 12
MEGAPIXELS = 12


def enlarged(image: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """Return a picture enlarged by cubic interpolation."""
    height, width = image.shape[:2]
    size = round(width * factor), round(height * factor)
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC))


def twelve_megapixels() -> NDArray[np.uint8]:
    """Return a bundled picture enlarged, with the noise of a camera."""
    with Image.open(PICTURES["coffee"].path) as opened:
        image = np.asarray(opened)
    image = enlarged(image, (MEGAPIXELS * 1e6 / image[..., 0].size) ** 0.5)
    noise = np.random.default_rng(0).normal(0, 4, image.shape)
    return np.clip(np.rint(image + noise), 0, 255).astype(np.uint8)


class Accuracy(NamedTuple):
    """How near outlines and those of annotators lie to each other, and how long they are.

    Attributes
    ----------
    recall : float
        Share of annotators' boundary pixels near an outline, its mean over annotators.
    precision : float
        Share of outlines' pixels near a boundary of any annotator.
    length : float
        Sides of pixels that outlines run along, in pixels of the photograph: ragged ones are longer.
    seconds : float
        To refine the outlines.
    """

    recall: float
    precision: float
    length: float
    seconds: float

    def __str__(self) -> str:
        f_measure = 2 * self.recall * self.precision / (self.recall + self.precision)
        return (
            f"recall {self.recall:.4f}, precision {self.precision:.4f}, F {f_measure:.4f}, "
            f"length {self.length:.0f}, {self.seconds:.2f} s"
        )


def accuracy(labels: NDArray[np.int32], annotations: list[NDArray], factor: int, seconds: float) -> Accuracy:
    """Return how near the outlines of a photograph enlarged by a factor lie to those of annotators."""
    length = sum(np.count_nonzero(np.diff(labels, axis=axis)) for axis in (0, 1)) / factor
    middle = slice(factor // 2, None, factor)
    found = outlines(labels[middle, middle]) > 0
    drawn = [each for each in (outlines(annotation) > 0 for annotation in annotations) if each.any()]
    distance, from_any = (distance_transform_edt(~marked) for marked in (found, np.any(drawn, axis=0)))
    recall = np.mean([np.mean(distance[each] <= TOLERANCE) for each in drawn])
    precision = np.mean(from_any[found] <= TOLERANCE) if found.any() else 1.0
    return Accuracy(float(recall), float(precision), length, seconds)


def stay(sites: NDArray[np.int32], *others: object, **options: object) -> NDArray[np.int32]:
    """Return the sites as they are, in place of `shorten_outlines`."""
    return sites


def flood(
    sites: NDArray[np.int32], weight: NDArray[np.float64], pairs: object, is_free: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Return a watershed of -log(weight) from the sites, eroded by three pixels, in place of `shorten_outlines`."""
    inner = maximum_filter(sites, ERODED_WIDTH) == minimum_filter(sites, ERODED_WIDTH)
    lost = np.setdiff1d(sites, sites[inner])  # thin sites stay as they are
    markers = np.where(inner | np.isin(sites, lost) | ~is_free, sites + 1, 0)
    return watershed(-np.log(weight), markers, mask=sites >= 0).astype(np.int32) - 1


Refinement = Callable[..., NDArray[np.int32]]  # with the arguments of `shorten_outlines`
REFINEMENTS: dict[str, Refinement] = {
    "refined": refinement.shorten_outlines,
    "without refinement": stay,
    "watershed": flood,
}


def segmented(image: NDArray[np.uint8], refine: Refinement) -> tuple[NDArray[np.int32], float]:
    """Return the labels with outlines refined by a function in place of `shorten_outlines`, and the time of that."""
    seconds = []

    def timed(*arguments: Any, **options: Any) -> NDArray[np.int32]:
        began = time.perf_counter()
        found = refine(*arguments, **options)
        seconds.append(time.perf_counter() - began)
        return found

    with patch.object(refinement, "shorten_outlines", timed):
        labels = ss.segment(image, rng=0, workers=1, progress=False).labels
    return labels, sum(seconds)


def study() -> dict[str, object]:
    """Return accuracy and times."""
    examples = bsds(data_root(), "train")
    found: dict[str, list[Accuracy]] = {}
    for example in examples[:: len(examples) // N_PHOTOGRAPHS][:N_PHOTOGRAPHS]:
        image, annotations = example.image(), list(example.annotations())
        cases: dict[str, tuple[int, Refinement]] = {"photograph": (1, refinement.shorten_outlines)}
        cases |= {f"enlarged four times, {name}": (FACTOR, refine) for name, refine in REFINEMENTS.items()}
        for name, (factor, refine) in cases.items():
            labels, seconds = segmented(enlarged(image, factor), refine)
            found.setdefault(name, []).append(accuracy(labels, annotations, factor, seconds))
    figures: dict[str, object] = {name: str(Accuracy(*np.mean(rows, axis=0))) for name, rows in found.items()}
    image = twelve_megapixels()
    ss.segment(image[::8, ::8], rng=0, sweeps=2)  # loads compiled code
    clock = [time.perf_counter()]
    ss.segment(image, rng=0, workers=1, progress=False)
    clock.append(time.perf_counter())
    segmented(image, stay)
    clock.append(time.perf_counter())
    slic(image, n_segments=1600, start_label=0)
    clock.append(time.perf_counter())
    ours, before, other = np.diff(clock)
    figures[f"{MEGAPIXELS} megapixels, seconds"] = (
        f"segment {ours:.1f}, without refinement {before:.1f}, SLIC of scikit-image {other:.1f}; "
        f"{ours / other:.2f} times SLIC"
    )
    return figures
