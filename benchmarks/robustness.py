"""Robustness of `photo` to changes of a photograph: adjusted Rand indices between segmentations.

On 30 test photographs of BSDS300, evenly spaced by name; ground truth is not used. Each is segmented with another
seed, at half size, rotated by 90 degrees, in gray, with noise of standard deviation 10 (of 255), as a JPEG of quality
30 and a sixth brighter; the labels are compared with those of the unchanged photograph. The boundary weights were
fitted to half size, noise and JPEG, on other photographs, and there are separate weights for gray. The same is done
for Felzenszwalb and Huttenlocher's method, which has no seed.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from benchmarks.data import data_root
from benchmarks.versions import Picture, brighter, compressed, gray, halved, noisy
from spinseg.evaluation.baselines.library import felzenszwalb
from spinseg.evaluation.datasets import Example, bsds
from spinseg.evaluation.metrics import adjusted_rand_index

N_PHOTOGRAPHS = 30

# The change of a photograph, and the inverse change of its labels.
Change = tuple[Callable[[Picture], Picture], Callable[[NDArray, tuple[int, int]], NDArray]]


def unchanged(labels: NDArray, shape: tuple[int, int]) -> NDArray:
    """Return the labels."""
    return labels


def enlarged(labels: NDArray, shape: tuple[int, int]) -> NDArray:
    """Return labels at twice the size."""
    return np.pad(labels.repeat(2, axis=0).repeat(2, axis=1), ((0, 1), (0, 1)), mode="edge")[: shape[0], : shape[1]]


def rotated_back(labels: NDArray, shape: tuple[int, int]) -> NDArray:
    """Return labels rotated by -90 degrees."""
    return np.rot90(labels, -1)


CHANGES: dict[str, Change] = {
    "another seed": (lambda image: image, unchanged),
    "half size": (halved, enlarged),
    "rotated by 90 degrees": (lambda image: np.rot90(image).copy(), rotated_back),
    "grey": (gray, unchanged),
    "noise of standard deviation 10": (noisy, unchanged),
    "JPEG of quality 30": (compressed, unchanged),
    "a sixth brighter": (brighter, unchanged),
}


def photo(image: Picture, seed: int = 0) -> NDArray[np.int32]:
    """Return the labels of `photo` with one chain."""
    return ss.segment(image, chains=1, workers=1, rng=seed, progress=False).labels


def felzenszwalb_rgb(image: Picture) -> NDArray[np.int32]:
    """Return the labels of Felzenszwalb and Huttenlocher's method, a gray picture repeated to three channels."""
    return felzenszwalb(image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2))


def agreement(example: Example, method: Callable[..., NDArray[np.int32]]) -> list[float]:
    """Return for each change the adjusted Rand index with the original labels, and the ratio of numbers of labels."""
    image = example.image()
    own = method(image)
    found = []
    for name, (change, back) in CHANGES.items():
        seeded = partial(method, seed=1) if name == "another seed" and method is photo else method
        labels = back(seeded(change(image)), image.shape[:2])
        found += [adjusted_rand_index(labels, own), np.unique(labels).size / np.unique(own).size]
    return found


def study() -> dict[str, object]:
    """Return mean and lower quartile of the agreement, and the median ratio of the numbers of labels."""
    examples = bsds(data_root(), "test")
    examples = [examples[i] for i in np.linspace(0, len(examples) - 1, N_PHOTOGRAPHS).round().astype(int)]
    figures: dict[str, object] = {}
    for title, method in (("photo", photo), ("felzenszwalb", felzenszwalb_rgb)):
        with ProcessPoolExecutor() as pool:
            table = np.array(list(pool.map(partial(agreement, method=method), examples)))
        for i, name in enumerate(CHANGES):
            rand, ratio = table[:, 2 * i], table[:, 2 * i + 1]
            figures[f"{title}: {name}"] = (
                f"adjusted Rand {rand.mean():.2f}, a quarter below {np.quantile(rand, 0.25):.2f}, "
                f"labels x {np.median(ratio):.2f}"
            )
    return figures
