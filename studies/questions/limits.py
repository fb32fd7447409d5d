"""How often a warning finds segmentations that are poor, and whether its hint helps.

Rows are kinds of images with a preset, some of which do not suit it, by score: F1 of objects for nuclei, the adjusted
Rand index for scenes, the covering for photographs. Limits were chosen on other training images and scenes.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from spinseg.image.contrast import split_gain
from studies import scenes
from studies.evaluation.datasets import Example, data_root, get_dataset
from studies.evaluation.metrics import adjusted_rand_index, mean_over_annotators, segmentation_covering
from studies.evaluation.objects import object_scores

N_NUCLEI, N_PHOTOGRAPHS, N_SCENES = 24, 30, 4  # of scenes: for each renderer
SHAPE, SEED = (160, 160), 40
GOOD, BAD = {"nuclei": 0.75, "scenes": 0.9}, 0.5  # scores of segmentations: above, and below
LIMITS = (0.01, 0.02, 0.04, 0.07, 0.15)  # of the gain


class Case(NamedTuple):
    """An image of a kind, a preset, and the score of a label image."""

    kind: str
    image: Any
    preset: str
    score: Callable[[NDArray[np.int32]], float]


class Outcome(NamedTuple):
    """The score of a segmentation, the gain of its splits, and if it came with a warning, the score of the hint."""

    score: float
    gain: float
    score_of_hint: float | None


def cases() -> Iterator[Case]:
    """Return every image with the presets that it is tried with."""
    for example in _between(get_dataset("nuclei", data_root(), "train"), N_NUCLEI):
        truth = example.annotations()[0]
        score = partial(_f1, truth=truth)
        yield from (Case("nuclei", str(example.image_path), preset, score) for preset in ("photo", "measured"))
    for number, kind in enumerate(scenes.RENDERERS):
        for seed in range(N_SCENES):
            scene = scenes.render(kind, SHAPE, np.random.default_rng([SEED, number, seed]))
            picture = ss.as_picture(scene.image, channel_axis=-1)
            score = partial(adjusted_rand_index, truth=scene.labels)
            yield from (Case("scenes", picture, preset, score) for preset in ("photo", "measured"))
    for example in _between(get_dataset("bsds300", data_root(), "train"), N_PHOTOGRAPHS):
        score = partial(_covering, annotations=example.annotations())
        yield Case("photographs", str(example.image_path), "photo", score)


def _between(examples: Sequence[Example], count: int) -> list[Example]:
    """Return examples evenly spaced by name, none of which chose the limits."""
    return [examples[i + 2] for i in np.linspace(0, len(examples) - 4, count).astype(int)]


def _f1(labels: NDArray[np.int32], truth: NDArray[np.int32]) -> float:
    return object_scores(labels, truth).f_50


def _covering(labels: NDArray[np.int32], annotations: list[NDArray[np.int32]]) -> float:
    return mean_over_annotators(segmentation_covering, labels, annotations)


def outcome(case: Case) -> Outcome:
    """Segment an image, and where a warning comes with it, once more as it says."""
    same = SimpleNamespace(segment=partial(ss.segment, rng=0, workers=1))
    found = same.segment(case.image, case.preset)
    gain, hint = split_gain(found.picture, found._region_image), None
    if found.warning is not None:
        advice = found.preset.advice(found.picture)
        is_call = advice.startswith("ss.")
        tried = eval(advice, {"ss": same, "image": case.image}) if is_call else found.at(0.9)
        hint = case.score(tried.labels)
    return Outcome(case.score(found.labels), gain, hint)


def quality(kind: str, score: float) -> str:
    """Return in which row of the table a segmentation counts."""
    return "good" if score > GOOD[kind] else "poor" if score < BAD else "fair"


def text(outcomes: list[Outcome]) -> str:
    """Return a row as the cells of a table in Markdown."""
    gains = np.array([found.gain for found in outcomes])
    warned = [(found.score, found.score_of_hint) for found in outcomes if found.score_of_hint is not None]
    helped = " -> ".join(f"{mean:.2f}" for mean in np.mean(warned, axis=0)) if warned else "-"
    rates = " | ".join(f"{np.mean(gains > limit):.0%}" for limit in LIMITS)
    return f"{len(outcomes)} | {len(warned) / len(outcomes):.0%} | {helped} | {rates}"


def study() -> dict[str, object]:
    """Return the rows of the table."""
    rows: dict[str, list[Outcome]] = {}
    for case in cases():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = outcome(case)
        name = "photographs" if case.kind == "photographs" else f"{case.kind}, {quality(case.kind, found.score)}"
        rows.setdefault(f"{name}, {case.preset}", []).append(found)
        print(f"{case.kind}, {case.preset}: {found}", file=sys.stderr, flush=True)
    head = " | ".join(f"gain > {limit:g}" for limit in LIMITS)
    figures: dict[str, object] = {"image, preset": f"images | warned | score, and of the hint | {head}"}
    return figures | {name: text(rows[name]) for name in sorted(rows)}
