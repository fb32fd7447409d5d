"""Time of segmenting one photograph, compared with methods of other packages; every method on one thread.

The other methods have the settings with which `spinseg evaluate` scores them.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.segmentation import slic

import spinseg as ss
from spinseg.evaluation.baselines import library
from spinseg.image.adjacency import region_adjacency
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.pictures import PICTURES
from spinseg.segmentation.image_model import maps_for, picture_posterior
from spinseg.segmentation.presets import PRESETS
from spinseg.segmentation.segment import sample_posterior

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


def seconds(*calls: Callable[[], object]) -> list[float]:
    """Return the least time of each call; the calls take turns, so that a busy machine slows all alike."""
    least = [np.inf] * len(calls)
    for _ in range(REPEATS):
        for i, call in enumerate(calls):
            began = time.perf_counter()
            call()
            least[i] = min(least[i], time.perf_counter() - began)
    return least


def stages(image: NDArray[np.uint8], preset: str) -> dict[str, float]:
    """Return the least time of each stage of `segment`, with one thread."""
    settings = PRESETS[preset]
    least: dict[str, float] = {}
    for _ in range(REPEATS):
        clock = [time.perf_counter()]
        picture = as_picture(image)
        maps = maps_for(picture, settings)
        clock.append(time.perf_counter())
        relief = None if maps is None else maps.relief
        each = settings.pixels_per_site_of(image[..., 0].size)
        sites = superpixels(picture, kind=settings.sites, pixels_per_site=each, relief=relief)
        clock.append(time.perf_counter())
        adjacency = region_adjacency(sites)
        clock.append(time.perf_counter())
        model = picture_posterior(picture, sites, adjacency, settings, maps)
        clock.append(time.perf_counter())
        sample_posterior(model, settings, settings.init, 0, workers=1)
        clock.append(time.perf_counter())
        for name, taken in zip(("maps", "sites", "graph", "features", "sampling"), np.diff(clock), strict=True):
            least[name] = min(least.get(name, np.inf), float(taken))
    return least


def study() -> dict[str, object]:
    """Return times as multiples of that of scikit-image's SLIC, and those of each stage of `segment`."""
    image = photograph()
    network, values = BoundaryNetwork.fitted(), as_picture(image).values
    for preset in PRESETS:  # load the compiled code
        ss.segment(image, preset, chains=1, sweeps=2, workers=1, rng=0)
    calls: dict[str, Callable[[], object]] = {
        "skimage slic": lambda: slic(image, n_segments=image[..., 0].size // 60),
        "spinseg photo": lambda: ss.segment(image, "photo", workers=1, rng=0),
        "spinseg paper": lambda: ss.segment(image, "paper", chains=1, workers=1, rng=0),
        "boundary network": lambda: network.log_odds(values),
        "skimage felzenszwalb": lambda: library.felzenszwalb(image),
        "skimage quickshift": lambda: library.quickshift(image),
        "skimage slic + merge_hierarchical": lambda: library.slic_merged(image),
    }
    if mean_shift(image) is not None:
        calls["OpenCV mean shift"] = lambda: mean_shift(image)
    taken = dict(zip(calls, seconds(*calls.values()), strict=True))
    unit = taken["skimage slic"]
    figures: dict[str, object] = {f"{name} / skimage slic": value / unit for name, value in taken.items()}
    for preset in PRESETS:
        parts = stages(image, preset)
        figures |= {f"{preset}: {name} / skimage slic": value / unit for name, value in parts.items()}
        before = sum(value for name, value in parts.items() if name != "sampling")
        figures[f"{preset}: all before sampling / skimage slic"] = before / unit
    figures["skimage slic, seconds"] = unit
    figures["quickshift / spinseg photo"] = taken["skimage quickshift"] / taken["spinseg photo"]
    figures["slic + merge_hierarchical / spinseg photo"] = (
        taken["skimage slic + merge_hierarchical"] / taken["spinseg photo"]
    )
    return figures
