"""Outlines at full size: photographs enlarged four times, and the time that a picture of 12 megapixels takes.

Of ten training photographs of BSDS300, the share of annotators' boundary pixels with an outline within two pixels is
compared between the photograph, whose answer is known, and the photograph enlarged four times, whose labels are looked
at where the pixels of the photograph lie. "Without refinement" has the outlines of the reduced picture, in stairs. The
time of 12 megapixels is that of a bundled picture, enlarged, with the noise of a camera.
"""

import time
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import distance_transform_edt
from skimage.segmentation import slic

import spinseg as ss
from spinseg.image import outlines as refinement
from spinseg.pictures import PICTURES
from studies.evaluation.boundaries import outlines
from studies.evaluation.datasets import bsds, data_root

FACTOR = 4
TOLERANCE = 2  # pixels of the photograph
N_PHOTOGRAPHS = 10
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


def boundary_recall(labels: NDArray[np.int32], annotations: list[NDArray]) -> float:
    """Return the share of annotators' boundary pixels near an outline of the labels, its mean over annotators."""
    distance = distance_transform_edt(outlines(labels) == 0)
    drawn = [outlines(annotation) > 0 for annotation in annotations]
    return float(np.mean([np.mean(distance[each] <= TOLERANCE) for each in drawn if each.any()]))


def unrefined(found: ss.Segmentation) -> NDArray[np.int32]:
    """Return the labels of the same draws with the outlines of the reduced picture."""
    with patch.object(refinement, "shorten_outlines", lambda sites, *others, **options: sites):
        return ss.segment(found.picture, rng=found.seed, workers=1, progress=False).labels


def study() -> dict[str, object]:
    """Return recall and times."""
    examples = bsds(data_root(), "train")
    recalls = []
    for example in examples[:: len(examples) // N_PHOTOGRAPHS]:
        image, annotations = example.image(), list(example.annotations())
        found = [ss.segment(each, rng=0, workers=1, progress=False) for each in (image, enlarged(image, FACTOR))]
        middle = slice(FACTOR // 2, None, FACTOR)
        labels = [found[0].labels, found[1].labels[middle, middle], unrefined(found[1])[middle, middle]]
        recalls.append([boundary_recall(each, annotations) for each in labels])
    own, refined, stairs = np.mean(recalls, axis=0)
    figures: dict[str, object] = {
        "recall at 2 pixels": f"{own:.4f}",
        "enlarged four times": f"{refined:.4f}, {refined / own:.1%} of it",
        "enlarged four times, without refinement": f"{stairs:.4f}, {stairs / own:.1%} of it",
    }
    image = twelve_megapixels()
    ss.segment(image[::8, ::8], rng=0, sweeps=2)  # loads compiled code
    clock = [time.perf_counter()]
    ss.segment(image, rng=0, workers=1, progress=False)
    clock.append(time.perf_counter())
    with patch.object(refinement, "shorten_outlines", lambda sites, *others, **options: sites):
        ss.segment(image, rng=0, workers=1, progress=False)
    clock.append(time.perf_counter())
    slic(image, n_segments=1600, start_label=0)
    clock.append(time.perf_counter())
    ours, before, other = np.diff(clock)
    figures[f"{MEGAPIXELS} megapixels, seconds"] = (
        f"segment {ours:.1f}, without refinement {before:.1f}, SLIC of scikit-image {other:.1f}; "
        f"{ours / other:.2f} times SLIC"
    )
    return figures
