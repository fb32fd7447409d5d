"""Robustness of `photo` to changes of a photograph: of its labels, and of the calibration of its probabilities.

Every third test photograph of BSDS300 is segmented with another seed, at half size, rotated by 90 degrees, in gray,
with noise of standard deviation 10 (of 255), as a JPEG of quality 30 and a sixth brighter. The labels are compared with
those of the unchanged photograph by the adjusted Rand index, without ground truth; the same is done for Felzenszwalb
and Huttenlocher's method, which has no seed. The probabilities, and those of the log-odds alone, are compared with the
annotators of the photograph: test photographs should be used rarely, so record each use in docs/evidence/notebook.md.
The weights of boundary cues were fitted to half size, noise and JPEG, on other photographs, and those for gray apart.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studies.evaluation.answers import EdgeProbabilities
from studies.evaluation.baselines.library import felzenszwalb
from studies.evaluation.calibration import Reliability, annotated_separation
from studies.evaluation.datasets import Example, bsds, data_root
from studies.evaluation.methods import METHODS, evidence_of
from studies.evaluation.metrics import adjusted_rand_index
from studies.questions.versions import Picture, brighter, compressed, gray, halved, noisy

N_PHOTOGRAPHS = 34
UNCHANGED = "unchanged"


class Change(NamedTuple):
    """A change of a photograph, with that of its annotations, and the inverse change of its labels."""

    image: Callable[[Picture], Picture] = lambda image: image
    annotation: Callable[[NDArray], NDArray] = lambda annotation: annotation
    back: Callable[[NDArray, tuple[int, int]], NDArray] = lambda labels, shape: labels
    seed: int = 0


def every_second(annotation: NDArray) -> NDArray:
    """Return an annotation at half the size."""
    rows, columns = (length // 2 for length in annotation.shape)
    return annotation[::2, ::2][:rows, :columns]


def enlarged(labels: NDArray, shape: tuple[int, int]) -> NDArray:
    """Return labels at twice the size."""
    return np.pad(labels.repeat(2, axis=0).repeat(2, axis=1), ((0, 1), (0, 1)), mode="edge")[: shape[0], : shape[1]]


CHANGES = {
    UNCHANGED: Change(),
    "another seed": Change(seed=1),
    "half size": Change(halved, every_second, enlarged),
    "rotated by 90 degrees": Change(
        lambda image: np.rot90(image).copy(), np.rot90, lambda labels, shape: np.rot90(labels, -1)
    ),
    "gray": Change(gray),
    "noise of standard deviation 10": Change(noisy),
    "JPEG of quality 30": Change(compressed),
    "a sixth brighter": Change(brighter),
}


class Outcome(NamedTuple):
    """What one change did to one photograph: agreement with its own labels, and the reliability of probabilities."""

    rand: float
    ratio: float  # of the numbers of labels
    rand_felzenszwalb: float
    photo: Reliability
    evidence: Reliability


def reliability(predicted: EdgeProbabilities, annotations: list[NDArray]) -> Reliability:
    """Return the reliability of probabilities against annotators."""
    return Reliability.of(
        predicted.separation, annotated_separation(predicted.sites, predicted.edges, annotations), predicted.length
    )


def felzenszwalb_rgb(image: Picture) -> NDArray[np.int32]:
    """Return the labels of Felzenszwalb and Huttenlocher's method, a gray picture repeated to three channels."""
    return felzenszwalb(image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2))


def outcomes(example: Example) -> list[Outcome]:
    """Return what each change does to a photograph; the first one is none."""
    image, shape, found = example.image(), example.image().shape[:2], []
    own: list[NDArray] = []
    for change in CHANGES.values():
        changed = change.image(image)
        annotations = [change.annotation(annotation) for annotation in example.annotations()]
        answer = METHODS["spinseg"].answer(changed, change.seed)
        labels = [change.back(each, shape) for each in (answer.labels, felzenszwalb_rgb(changed))]
        own = own or labels
        alike, alike_felzenszwalb = map(adjusted_rand_index, labels, own)
        assert answer.probabilities is not None  # a segmentation has them
        photo = reliability(answer.probabilities, annotations)
        evidence = reliability(evidence_of(changed)[0], annotations)
        ratio = np.unique(labels[0]).size / np.unique(own[0]).size
        found.append(Outcome(alike, ratio, alike_felzenszwalb, photo, evidence))
    return found


def study() -> dict[str, object]:
    """Return for each change the agreement of labels with those of the photograph itself, and the calibration."""
    examples = bsds(data_root(), "test")
    examples = [examples[i] for i in np.linspace(0, len(examples) - 1, N_PHOTOGRAPHS).round().astype(int)]
    with ProcessPoolExecutor() as pool:
        by_change = list(zip(*pool.map(outcomes, examples), strict=True))
    figures: dict[str, object] = {}
    for name, rows in zip(CHANGES, by_change, strict=True):
        if name != UNCHANGED:
            rand = np.array([row.rand for row in rows])
            figures[f"{name}, labels"] = (
                f"adjusted Rand {rand.mean():.2f}, a quarter below {np.quantile(rand, 0.25):.2f}, "
                f"labels x {np.median([row.ratio for row in rows]):.2f}; "
                f"felzenszwalb {np.mean([row.rand_felzenszwalb for row in rows]):.2f}"
            )
        for method in ("photo", "evidence"):
            together = reduce(Reliability.plus, [getattr(row, method) for row in rows])
            figures[f"{name}, {method}"] = (
                f"Brier {together.brier:.4f}, log loss {together.log_loss:.4f}, "
                f"calibration error {together.calibration_error:.3f}"
            )
    return figures
