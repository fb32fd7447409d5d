"""The presets "photo", "classes" and "paper", and the constants that were tuned for the first two."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from spinseg._validation import check_choice, invalid
from spinseg.model.priors import DirichletProcess, ParsimoniousProcess, TemperedProcess
from spinseg.segmentation.settings import Settings


class Coupling(NamedTuple):
    """beta_ij = strength * boundary length in pixels * c tanh((threshold - log-odds of a boundary) / c).

    c is the `saturation`: far from the threshold more evidence changes nothing. Without it tanh is left out.
    """

    strength: float
    threshold: float
    saturation: float = math.inf


# Constants of "photo", chosen on training photographs of BSDS300 (docs/evidence/accuracy.md). The weights and rates of
# features, except those of texture, come from a search on the same photographs that was done outside the project. A
# weight is relative to that of color. The rates of the inverse gamma priors are in squared units: of CIELAB, of
# logarithms of filter responses, and of hundredths of the longer side.
EVIDENCE = Coupling(strength=0.8, threshold=0.0, saturation=2.0)
REGION_COST = 2.0  # nats that the prior takes for each region
FEATURE_WEIGHTS = {"lightness": 0.2, "colour": 1.0, "texture": 0.3, "position": 1 / 30}
VARIANCE_RATES = {"lightness": 10.7, "colour": 8.6, "texture": 0.05, "position": 200.0}

# Where every pixel is a site, and in pictures larger than memory, clusters need not be connected; their pieces are made
# regions afterwards. From detail 0 to detail 1 the threshold falls by THRESHOLD_RANGE, and the smallest region, as a
# share of the picture's pixels, shrinks by MIN_REGION_RATIO.
COUPLING = Coupling(strength=0.5, threshold=-0.75)
THRESHOLD_RANGE = 3.0
MIN_REGION_SHARE, MIN_REGION_RATIO = 0.0045, 16.0

# The photographs have 481 x 321 pixels. A larger picture shows the same things with more pixels, so that each of them
# counts for less; in a smaller picture each counts for more.
REFERENCE_PIXELS = 481 * 321
MAX_PIXEL_WEIGHT = 4.0  # of a pixel in a small picture, relative to one of the reference size
MAX_MAP_PIXELS = 2_000_000  # pixels of a picture that boundary maps are computed for
MIN_PIXELS_FOR_CUES = 20  # pixels per site: the colors of smaller sites are so noisy that any two look different

# Couplings where every pixel is a site: at high contrast, and what is added between neighbors of equal color. They are
# strong enough that a draw shows regions, not salt and pepper. They, and the count weight of pixels, were chosen by
# eye on one photograph.
CONTRAST_COUPLING_MIN, CONTRAST_COUPLING_RANGE = 1.0, 6.0
PIXEL_CONCENTRATION = 1e-6  # of the prior on pixels, of which there are so many that could found a cluster

PAPER = Settings(
    preset="paper",
    sites="slic",
    n_sites=None,
    connectivity=1,
    pixels_per_site=60,
    fewest_sites=1,
    max_pixels=None,
    codebook="general",
    n_words=120,
    likelihood="words",
    smoothing=1,
    count_weight=0.125,  # docs/evidence/count_weight.md: the paper does not say how counts enter the likelihood
    phi=50.0,
    kappa=0.2,
    prior=DirichletProcess(3.0),
    beta=0.02,
    power=1.0,
    connected=False,
    n_details=1,
    refined=False,
    regions=False,
    detail=0.5,
    estimate="best",
    moves="gsw",
    lam=10.0,
    init="one",
    sweeps=1000,
    seconds=None,
    chains=1,
    start_label=1,
)

# Kinds of tissue or material, which may lie anywhere. A site counts for fewer than two observations: with much fewer
# all kinds are one cluster, and with more a kind whose intensities vary is divided. Chosen on a brain and on phantoms
# (docs/howto/volumes.md).
CLASSES = replace(
    PAPER,
    preset="classes",
    pixels_per_site=30,
    codebook="image",
    n_words=30,
    smoothing=0,
    count_weight=0.06,
    phi=3.0,
    prior=ParsimoniousProcess(1.0, 0.02),
    refined=True,
    estimate="vi",
    moves="auto",
    lam=None,
    init="opposite",
    sweeps=120,
    chains=2,
)

PHOTO = Settings(
    preset="photo",
    sites="watershed",
    n_sites=None,
    connectivity=1,
    pixels_per_site=190,
    fewest_sites=800,
    max_pixels=300_000,
    codebook="general",
    n_words=120,
    likelihood="gaussian",
    smoothing=0,
    count_weight=0.0024,
    phi=50.0,
    kappa=0.2,
    prior=TemperedProcess(math.exp(-REGION_COST), power=0.0),
    beta="signed",
    power=0.1,
    connected=True,
    n_details=12,
    refined=True,
    regions=True,
    detail=0.65,
    estimate="vi",
    moves="auto",
    lam=None,
    init="dispersed",
    sweeps=None,
    seconds=None,
    chains=2,
    start_label=1,
)

# "photo" where clusters need not be connected, with one coupling for all or without regions, in pictures larger than
# memory and where every pixel is a site: the mode of a sharper posterior, whose clusters are cut into regions.
PHOTO_UNCONNECTED = replace(
    PHOTO,
    prior=TemperedProcess(),
    power=1.0,
    connected=False,
    n_details=1,
    detail=0.5,
    estimate="best",
    init="greedy",
    sweeps=200,
)

# "photo" where every pixel is a site has color words, whose log marginals the sampler looks up in tables.
PHOTO_OF_PIXELS = replace(
    PHOTO_UNCONNECTED,
    sites="pixels",
    likelihood="words",
    count_weight=0.5,
    prior=TemperedProcess(PIXEL_CONCENTRATION),
    beta="contrast",
    init="coarse",
)

PRESETS = {"photo": PHOTO, "classes": CLASSES, "paper": PAPER}


def preset_for(preset: str, given: Mapping[str, Any] = {}) -> Settings:
    """The settings of a preset where these are given: those of "photo" depend on `sites`, `beta` and `regions`."""
    check_choice("preset", preset, list(PRESETS))
    if preset != "photo":
        return PRESETS[preset]
    sites = given.get("sites")
    if isinstance(sites, str) and sites == "pixels":
        return PHOTO_OF_PIXELS
    has_evidence = isinstance(beta := given.get("beta", PHOTO.beta), str) and beta == PHOTO.beta
    return PHOTO if has_evidence and given.get("regions", True) else PHOTO_UNCONNECTED


def settings_of(preset: str, given: Mapping[str, Any]) -> Settings:
    """The settings of a preset with those given in their place; a `detail` without effect is refused."""
    usual = preset_for(preset, given)
    if "seconds" in given:
        if "sweeps" in given:
            invalid("seconds", "be left out where sweeps are given", given["seconds"])
        given = {**given, "sweeps": None}
    settings = replace(usual, **given)
    if "detail" in given and not settings.uses_detail:
        rule = "be left out where couplings do not carry the evidence of a boundary and there are no regions"
        invalid("detail", f"{rule}, as in the presets 'classes' and 'paper'", given["detail"])
    return settings


def changed_settings(settings: Settings) -> dict[str, Any]:
    """The settings that differ from the preset's, by name."""
    usual = vars(preset_for(settings.preset, vars(settings))) | {"sites": PRESETS[settings.preset].sites}
    return {name: value for name, value in vars(settings).items() if not _equal(value, usual[name])}


def _equal(a: Any, b: Any) -> bool:
    """Whether two settings are equal numbers or texts, or the same object."""
    plain = (str, int, float, np.number)
    return bool(a == b) if isinstance(a, plain) and isinstance(b, plain) else a is b


def details_of(n_details: int) -> list[float]:
    """The details that draws have, each in the middle of its share of those from 0 to 1."""
    return [(d + 0.5) / n_details for d in range(n_details)]


def region_coupling_at(detail: float) -> Coupling:
    """The coupling at a detail where clusters are connected.

    How much evidence makes a boundary differs from person to person. The log-odds that it takes, at which two sites
    neither attract nor repel, have a standard logistic distribution: a boundary on its own is then drawn by as many
    people as its log-odds say. A share `detail` of them asks for more evidence than this.
    """
    return EVIDENCE._replace(threshold=math.log((1 - detail) / detail))


def coupling_at(detail: float) -> Coupling:
    """The coupling where clusters need not be connected: the finer the detail, the less evidence makes a boundary."""
    return COUPLING._replace(threshold=COUPLING.threshold - THRESHOLD_RANGE * (detail - 0.5))


def min_region_share(detail: float) -> float:
    """The smallest region of "photo" at this detail, as a share of the picture, where pieces are made regions."""
    return MIN_REGION_SHARE * MIN_REGION_RATIO ** (0.5 - detail)


def min_region_sites(detail: float) -> float:
    """The smallest region of other presets at this detail, in sites of mean size: from four, coarse, to a quarter.

    What is looked for in a micrograph, a nucleus say, may be a small share of it.
    """
    return MIN_REGION_RATIO ** (0.5 - detail)
