"""Constants of the posterior of `photo`, fitted to annotators by a search along one constant after the other.

From the present constants each is raised and lowered in turn, and a change is kept where it lowers the log loss of
edges, weighted by length, on FITTED, every sixth training photograph of BSDS300, by more than TOLERANCE: chance moves
it by about half as much. The constants found are then judged on CHECKED, as many other photographs. Network and weights
of the cues are those of a fold without the photograph (`benchmarks/held_out.py`), so that the log-odds alone, which are
printed for comparison, have not seen it either.
"""

import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cache, partial, reduce
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import spinseg as ss
from benchmarks.data import data_root
from benchmarks.held_out import held_out_evidence
from benchmarks.variants import Variant
from spinseg.evaluation.calibration import Reliability, annotated_separation
from spinseg.evaluation.datasets import bsds
from spinseg.image.adjacency import RegionAdjacency
from spinseg.image.picture import Picture, as_picture, working_copy
from spinseg.inference.estimates.pairs import separation_probability
from spinseg.segmentation import image_model, presets
from spinseg.segmentation.image_model import SiteFeatures, evidence_log_odds, picture_posterior
from spinseg.segmentation.problem import sites_of
from spinseg.segmentation.segment import sample_posterior

FITTED, CHECKED = range(0, 200, 6), range(1, 200, 6)
TOLERANCE = 0.001  # nats
MAX_ROUNDS = 3

Constants = dict[str, float]
PRESENT: Constants = {
    "power": presets.PHOTO.power,
    "strength": presets.EVIDENCE.strength,
    "saturation": presets.EVIDENCE.saturation,
    "middle of the thresholds": 0.0,
    "scale of the thresholds": 1.0,
    "nats for a region": presets.REGION_COST,
    "power of the sizes": 0.0,
    "fewest sites": 1.0,
    "count weight": presets.PHOTO.count_weight,
    **{f"weight of {name}": weight for name, weight in presets.FEATURE_WEIGHTS.items()},
}
ADDED = {"middle of the thresholds": 0.25, "nats for a region": 0.75, "power of the sizes": 0.02, "fewest sites": 1.0}
FACTOR = 1.5  # by which the others are raised and lowered
LEAST = {"fewest sites": 1.0, "power of the sizes": 0.0}


class Photograph(NamedTuple):
    """What the posterior of a photograph is made from, and the share of annotators who separate each edge."""

    picture: Picture
    sites: NDArray[np.int32]
    adjacency: RegionAdjacency
    features: SiteFeatures
    log_odds: NDArray[np.float64]
    share: NDArray[np.float64]


@cache
def photograph(i: int) -> Photograph:
    """Return a training photograph."""
    example = bsds(data_root(), "train")[i]
    picture, settings = as_picture(example.image()), presets.PHOTO
    with held_out_evidence(i).used():
        sites, adjacency, maps = sites_of(working_copy(picture, None, settings.max_pixels), settings)
        log_odds, _ = evidence_log_odds(picture, sites, adjacency, settings, maps)
        features = SiteFeatures.of(picture, sites, maps)
    share = annotated_separation(sites, adjacency.graph.edges, example.annotations())
    return Photograph(picture, sites, adjacency, features, log_odds, share)


def variant_of(constants: Constants) -> Variant:
    """Return the variant of `photo` with these constants."""
    cost, power, fewest = (constants[name] for name in ("nats for a region", "power of the sizes", "fewest sites"))
    prior = ss.TemperedProcess(math.exp(-cost), power=power, min_size=round(fewest))
    return Variant(
        coupling={name: constants[name] for name in ("strength", "saturation")},
        thresholds=(constants["middle of the thresholds"], constants["scale of the thresholds"]),
        feature_weights={name: constants[f"weight of {name}"] for name in presets.FEATURE_WEIGHTS},
        settings={"power": constants["power"], "count_weight": constants["count weight"], "prior": prior},
    )


def of_posterior(constants: Constants, i: int) -> Reliability:
    """Return how reliable the probabilities of the posterior are on a photograph."""
    found = photograph(i)
    with variant_of(constants).used(), _known(found):
        model = picture_posterior(found.picture, found.sites, found.adjacency, presets.PHOTO)
        drawn = sample_posterior(model, presets.PHOTO, presets.PHOTO.init, seed=i, workers=1)
    apart = separation_probability(drawn.labels, found.adjacency.graph.edges)
    return Reliability.of(apart, found.share, found.adjacency.boundary_length)


def _known(found: Photograph) -> Any:
    """Let the posterior be made from features and log-odds that are known."""
    return patch.multiple(
        image_model,
        evidence_log_odds=lambda *_: (found.log_odds, True),
        SiteFeatures=type("Known", (), {"of": staticmethod(lambda *_: found.features)}),
    )


def of_log_odds(i: int) -> Reliability:
    """Return how reliable the log-odds alone are on a photograph."""
    found = photograph(i)
    return Reliability.of(expit(found.log_odds), found.share, found.adjacency.boundary_length)


def together(pool: Executor, of: Callable[[int], Reliability], indices: Sequence[int]) -> Reliability:
    """Return how reliable the probabilities are on all photographs."""
    return reduce(Reliability.plus, pool.map(of, indices))


def neighbors(constants: Constants, name: str) -> list[Constants]:
    """Return the constants with one of them raised, and lowered."""
    value, added = constants[name], ADDED.get(name)
    others = [value * FACTOR, value / FACTOR] if added is None else [value + added, value - added]
    return [{**constants, name: other} for other in others if other >= LEAST.get(name, -math.inf)]


def search(pool: Executor, constants: Constants) -> Constants:
    """Return constants at which no change of a single one lowers the log loss by more than TOLERANCE."""
    least = together(pool, partial(of_posterior, constants), FITTED).log_loss
    for _ in range(MAX_ROUNDS):
        before = dict(constants)
        for name in PRESENT:
            for other in neighbors(constants, name):
                log_loss = together(pool, partial(of_posterior, other), FITTED).log_loss
                print(f"{name} {other[name]:.4g}: {log_loss:.4f} (least {least:.4f})", file=sys.stderr, flush=True)
                if log_loss < least - TOLERANCE:
                    constants, least = other, log_loss
                    break
        if constants == before:
            break
    return constants


def study() -> dict[str, object]:
    """Return the constants, and their scores on photographs that they were fitted to and on others."""
    with ProcessPoolExecutor() as pool:
        found = search(pool, PRESENT)
        figures: dict[str, object] = dict(found)
        for split, indices in (("fitted", FITTED), ("checked", CHECKED)):
            for name, of in (("log-odds alone", of_log_odds), ("present", PRESENT), ("found", found)):
                score = together(pool, of if callable(of) else partial(of_posterior, of), indices)
                text = (
                    f"Brier {score.brier:.4f}, log loss {score.log_loss:.4f}, "
                    f"calibration error {score.calibration_error:.4f}"
                )
                figures[f"{split}: {name}"] = text
    return figures
