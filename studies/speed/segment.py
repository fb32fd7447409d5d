"""Processor time of segmenting one photograph, compared with methods of other packages; every method on one thread.

The other methods have the settings with which `python -m studies evaluate` scores them. Times are multiples of that of
scikit-image's SLIC, which is measured just before and after: the speed of a shared machine changes from second to
second.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.segmentation import slic

import spinseg as ss
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.picture import as_picture
from spinseg.pictures import PICTURES
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.schedule import Schedule, sample_posterior
from studies.evaluation.baselines import library

REPEATS = 5


def photograph() -> NDArray[np.uint8]:
    """Return a photograph of 481 x 321 pixels."""
    with Image.open(PICTURES["coffee"].path) as image:
        return np.asarray(image)[40:361, 60:541]


def mean_shift(image: NDArray[np.uint8]) -> NDArray | None:
    """Return the image after OpenCV's mean-shift filter with the paper's bandwidths; None without the extra [cv]."""
    try:
        import cv2
    except ImportError:
        return None
    cv2.setNumThreads(1)
    return cv2.pyrMeanShiftFiltering(image, 20, 15)


def ratio(call: Callable[[], object], unit: Callable[[], object]) -> float:
    """Return the processor time of a call over that of another: the median of several, taken in turns."""
    taken = []
    for _ in range(REPEATS):
        before, of_call, after = processor_time(unit), processor_time(call), processor_time(unit)
        taken.append(2 * of_call / (before + after))
    return float(np.median(taken))


def processor_time(call: Callable[[], object]) -> float:
    """Return the seconds that a call took of the processor."""
    began = time.process_time()
    call()
    return time.process_time() - began


def stages(image: NDArray[np.uint8], preset: str) -> dict[str, Callable[[], object]]:
    """Return a call for each stage of `segment`, with one thread."""
    chosen = Preset.known[preset]()
    problem, schedule = prepare(image, chosen), Schedule.of(chosen)
    found = {
        "sites and posterior": lambda: prepare(image, chosen),
        "graph": lambda: region_adjacency(problem.sites),
        "sampling": lambda: sample_posterior(problem.model, chosen, schedule, 0, workers=1),
    }
    return found | ({"maps": lambda: chosen.maps(problem.working_image)} if isinstance(chosen, Photo) else {})


def study() -> dict[str, object]:
    """Return times as multiples of that of scikit-image's SLIC, and those of each stage of `segment`."""
    image = photograph()
    network, values = BoundaryNetwork.fitted(), as_picture(image).values
    unit = partial(slic, image, n_segments=image[..., 0].size // 60)
    for preset in Preset.known:  # load the compiled code
        ss.segment(image, preset, chains=1, sweeps=2, workers=1, rng=0)
    calls: dict[str, Callable[[], object]] = {
        "spinseg photo": lambda: ss.segment(image, "photo", workers=1, rng=0),
        "spinseg paper": lambda: ss.segment(image, "paper", chains=1, workers=1, rng=0),
        "boundary network": lambda: network.log_odds(values),
        "skimage felzenszwalb": lambda: library.felzenszwalb(image),
        "skimage quickshift": lambda: library.quickshift(image),
        "skimage slic + merge_hierarchical": lambda: library.slic_merged(image),
    }
    if mean_shift(image) is not None:
        calls["OpenCV mean shift"] = lambda: mean_shift(image)
    for preset in Preset.known:
        calls |= {f"{preset}: {name}": call for name, call in stages(image, preset).items()}
    return {f"{name} / skimage slic": ratio(call, unit) for name, call in calls.items()}
