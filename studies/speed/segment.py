"""Processor time of segmenting one photograph, compared with methods of other packages; every method on one thread.

The other methods have the settings with which `python -m studies evaluate` scores them. Times are multiples of that of
scikit-image's SLIC, which is measured just before and after: the speed of a shared machine changes from second to
second.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.segmentation import slic

import spinseg as ss
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.picture import as_picture
from spinseg.pictures import PICTURES
from spinseg.sampler import sampler
from spinseg.sampler.sampler import Sampler
from spinseg.segmentation import schedule
from spinseg.segmentation.presets.preset import Preset
from studies.evaluation.baselines import library

REPEATS = 5
# What is timed, by the part of `segment` that it is: methods of a preset, and what every preset uses.
PARTS_OF_PRESET = {
    "maps": "maps and network",  # which work side by side
    "make_sites": "sites",
    "graph": "sites",
    "log_odds": "cues",
    "model": "posterior",
    "partition": "estimate",
    "refined_sites": "outlines",
}
PARTS = (
    (Sampler, "__init__", "tables"),
    (sampler, "starts_of_chains", "starts"),
    (sampler, "advance_all", "sampling"),
    (Sampler, "_combine", "combining"),
    (schedule, "may_stop", "stopping rule"),
)


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


def parts(image: NDArray[np.uint8], preset: str) -> dict[str, float]:
    """Return the processor seconds of each part of `segment`, less those of the parts within it, on one thread."""
    taken: dict[str, float] = defaultdict(float)
    running, since = ["the rest"], time.process_time()

    def book() -> None:
        nonlocal since
        now = time.process_time()
        taken[running[-1]] += now - since
        since = now

    def timed(call: Callable[..., Any], part: str) -> Callable[..., Any]:
        def timed_call(*args: Any, **how: Any) -> Any:
            book()
            running.append(part)
            try:
                return call(*args, **how)
            finally:
                book()
                running.pop()

        return timed_call

    of_preset = [(Preset.known[preset], name, part) for name, part in PARTS_OF_PRESET.items()]
    with ExitStack() as patches:
        for owner, name, part in (*of_preset, *PARTS):
            if hasattr(owner, name):
                patches.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name), part)))
        ss.segment(image, preset, workers=1, rng=0)
    book()
    return taken


def ratios_of_parts(
    image: NDArray[np.uint8], preset: str, unit: Callable[[], object], repeats: int = REPEATS
) -> dict[str, float]:
    """Return the processor time of each part of `segment` over that of another call, as `ratio` does."""
    found = []
    for _ in range(repeats):
        before, taken, after = processor_time(unit), parts(image, preset), processor_time(unit)
        found.append({name: 2 * seconds / (before + after) for name, seconds in taken.items()})
    return {name: float(np.median([each[name] for each in found])) for name in found[0]}


def study() -> dict[str, object]:
    """Return times as multiples of that of scikit-image's SLIC, and those of each part of `segment`."""
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
    found = {name: ratio(call, unit) for name, call in calls.items()}
    for preset in Preset.known:
        found |= {f"{preset}: {part}": taken for part, taken in ratios_of_parts(image, preset, unit).items()}
    return {f"{name} / skimage slic": taken for name, taken in found.items()}
