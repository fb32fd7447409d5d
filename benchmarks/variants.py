"""Variants of the `photo` preset, and their scores."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from benchmarks.held_out import Evidence
from spinseg.evaluation.datasets import Example
from spinseg.evaluation.metrics import scores
from spinseg.image.boundary import maps
from spinseg.image.boundary.log_odds import signed_couplings
from spinseg.image.boundary.network import RADII
from spinseg.inference.bonds import bond_strengths
from spinseg.inference.pack import pack
from spinseg.inference.sampler import sample
from spinseg.inference.starts import greedy_labels
from spinseg.segmentation import image_model, presets

# Groups of cues.
NETWORK = frozenset(f"{name}{radius}" for name in ("network", "within") for radius in RADII)
SPECTRAL = frozenset({"apart"})
TEXTURE = frozenset({"T6", "T12", "texture", "texture after"}) | {f"textons{hop}" for hop in range(4)}
TEXTURE |= {f"textons after {time}" for time in (2, 4, 8)}
WHOLE_PICTURE = frozenset({"apart", "merged", "calm", "busy", "colours after", "texture after"})
WHOLE_PICTURE |= {f"{name} after {time}" for name in ("words", "textons") for time in (2, 4, 8)}


@dataclass(frozen=True)
class Variant:
    """Changes of `photo`: its constants in `presets`, and arguments of `segment`."""

    strength: float = presets.COUPLING.strength
    threshold: float = presets.COUPLING.threshold
    nonnegative: bool = False  # whether negative couplings are set to zero
    sampled: bool = True  # whether to sample after greedy merging
    feature_weights: Mapping[str, float] = field(default_factory=dict)
    variance_rates: Mapping[str, float] = field(default_factory=dict)
    min_region_share: float = presets.MIN_REGION_SHARE
    network_relief: float = maps.NETWORK_RELIEF
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def labels(self, image: NDArray, evidence: Evidence) -> NDArray[np.int32]:
        """Return labels of one chain, seed 0."""
        with ExitStack() as changed:
            coupling = presets.Coupling(self.strength, self.threshold)
            changed.enter_context(patch.object(presets, "COUPLING", coupling))
            changed.enter_context(patch.object(presets, "MIN_REGION_SHARE", self.min_region_share))
            changed.enter_context(patch.object(maps, "NETWORK_RELIEF", self.network_relief))
            changed.enter_context(patch.dict(presets.FEATURE_WEIGHTS, self.feature_weights))
            changed.enter_context(patch.dict(presets.VARIANCE_RATES, self.variance_rates))
            if self.nonnegative:
                changed.enter_context(patch.object(image_model, "signed_couplings", _attraction))
            if not self.sampled:
                changed.enter_context(patch.object(import_module("spinseg.segmentation.segment"), "sample", _merged))
            changed.enter_context(evidence.used())
            arguments = {"chains": 1, "workers": 1, "rng": 0} | dict(self.arguments)
            return ss.segment(image, progress=False, **arguments).labels


def _attraction(*arguments: Any) -> NDArray[np.float64]:
    """Return the couplings, negative ones set to zero."""
    return np.maximum(signed_couplings(*arguments), 0)


def _merged(model: ss.Model, *arguments: Any, **keywords: Any) -> ss.Chains:
    """Return the result of greedy merging in the form of chains."""
    chains = sample(model, 1, rng=0)
    target = pack(model, bond_strengths(model, None, "auto")[0])
    return replace(chains, best_labels=greedy_labels(target))


def score(variant: Variant, example: Example, evidence: Evidence) -> tuple[float, ...]:
    """Return Rand index, variation of information, covering and number of labels of one photograph."""
    labels = variant.labels(example.image(), evidence)
    found = scores(labels, example.annotations())
    numbers = (found.probabilistic_rand_index, found.variation_of_information, found.segmentation_covering)
    return *numbers, float(np.unique(labels).size)


def summary(variant: Variant, examples: Sequence[Example], evidence: Sequence[Evidence]) -> str:
    """Return means over photographs, the median of the Rand index, and the median number of labels, as text."""
    with ProcessPoolExecutor() as pool:
        rows = pool.map(partial(score, variant), examples, evidence)
        rand, information, covering, labels = np.array(list(rows)).T
    return (
        f"PRI {rand.mean():.4f} (median {np.median(rand):.4f}), VoI {information.mean():.3f}, "
        f"covering {covering.mean():.4f}, {np.median(labels):g} labels"
    )
