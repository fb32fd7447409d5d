"""The choices that `segment` makes, and the two sets of them that have a name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import check_choice, check_int, check_real, integer_array, invalid
from spinseg.image.features import Codebook
from spinseg.image.superpixels import KINDS
from spinseg.inference.bonds import Lam, check_lam
from spinseg.inference.sampling import MOVES, check_length, listed_starts
from spinseg.inference.starts import STARTS
from spinseg.model.priors import (
    DirichletProcess,
    FiniteDirichlet,
    MixtureOfFiniteMixtures,
    PartitionPrior,
    PitmanYor,
    Potts,
    TemperedProcess,
)


class Coupling(NamedTuple):
    """beta_ij = strength * boundary length in pixels * (threshold - log-odds of a boundary)."""

    strength: float
    threshold: float


# Constants of "photo", chosen on training photographs of BSDS300 (docs/accuracy.md); the shares and rates but for
# texture's are of a search on the same photographs that was done outside the project. What
# lightness, texture and position count for is next to colour; the rates of the inverse gammas are in CIELAB units,
# logarithms of filter responses and hundredths of the longer side.
COUPLING = Coupling(strength=0.5, threshold=-0.75)
SHARES = {"lightness": 0.2, "colour": 1.0, "texture": 0.3, "position": 1 / 30}
RATES = {"lightness": 10.7, "colour": 8.6, "texture": 0.05, "position": 200.0}
SMALLEST_REGION = 0.0045  # of the picture

# What a step of `detail` from one end to the other does to the threshold and to the smallest region.
THRESHOLD_SPAN = 3.0
SMALLEST_REGION_SPAN = 16.0

# Those photographs have 481 x 321 pixels. A larger picture shows the same things with more of them, so that each
# counts for less; one that is smaller, with fewer.
USUAL_PIXELS = 481 * 321
MOST_COUNTED = 4.0  # that a pixel of a small picture counts for
FEWEST_PIXELS = 40  # of a site in a small picture
MOST_MAPPED = 2_000_000  # pixels of a picture that boundary maps are made of
SMALLEST_JUDGED = 20  # pixels: the colours of smaller sites are noise, and seem to lie apart

# Couplings where every pixel is a site: at any contrast, and what is added between neighbours of one colour. So strong,
# a draw is no noise where the colours are none. They, and the count weight there, were chosen by eye on one photograph.
AT_ANY_CONTRAST, AT_NO_CONTRAST = 1.0, 6.0
RARE = 1e-6  # concentration of the prior there: any of so many pixels could found a cluster

ESTIMATES = ("best", "vi")
Start = str | Sequence[str] | NDArray[np.integer]  # of chains, as `sample` takes it, or "coarse"


@dataclass(frozen=True, eq=False)
class Settings:
    """Every choice that shapes a segmentation; most are keywords of `segment`, where they are explained.

    The others: one site is made for `pixels_per_site` pixels, but at least `fewest_sites` of a small picture; a picture
    of more than `max_pixels` is looked at smaller; `likelihood` is of colour "words", or "gaussian" in colour, texture
    and position; `init` may be "coarse", a segmentation with larger sites, where sites are pixels. `beta` is one
    number, or "signed": couplings that carry the evidence of a boundary, or "contrast": that fall with that of two
    pixels.
    """

    preset: str
    sites: str | NDArray[np.integer]
    n_sites: int | None
    connectivity: int
    pixels_per_site: float
    fewest_sites: int
    max_pixels: int | None
    codebook: str | Codebook
    n_words: int
    likelihood: str
    count_weight: float
    phi: float
    prior: PartitionPrior
    beta: float | str
    regions: bool
    detail: float
    estimate: str
    moves: str
    lam: Lam
    init: Start
    sweeps: int
    chains: int

    def __post_init__(self) -> None:
        """Refuse whatever can be refused without a picture."""
        self._check_sites()
        self._check_model()
        check_choice("estimate", self.estimate, ESTIMATES)
        check_choice("moves", self.moves, MOVES)
        check_lam(self.lam)
        check_length(self.sweeps, self.chains)
        self._check_init()

    def _check_sites(self) -> None:
        if isinstance(self.sites, str):
            check_choice("sites", self.sites, KINDS)
        elif integer_array("sites", self.sites).ndim not in (2, 3):
            invalid("sites", "be a kind of sites or have two or three axes", np.shape(self.sites))
        if self.n_sites is not None:
            if self.of_pixels:
                invalid("n_sites", "be None where every pixel is a site", self.n_sites)
            check_int("n_sites", self.n_sites, at_least=1)
        check_int("connectivity", self.connectivity, at_least=1)
        if self.connectivity != 1 and not self.of_pixels:
            invalid("connectivity", "be 1 where sites are not pixels", self.connectivity)
        check_real("pixels_per_site", self.pixels_per_site, above=0)
        check_int("fewest_sites", self.fewest_sites, at_least=1)
        if self.max_pixels is not None:
            check_int("max_pixels", self.max_pixels, at_least=1)

    def _check_model(self) -> None:
        if not isinstance(self.codebook, Codebook):
            check_choice("codebook", self.codebook, ("general", "image"))
        check_int("n_words", self.n_words, at_least=1)
        check_choice("likelihood", self.likelihood, ("words", "gaussian"))
        check_real("count_weight", self.count_weight, above=0)
        check_real("phi", self.phi, above=0)
        if not isinstance(self.prior, PartitionPrior):
            invalid("prior", "be a PartitionPrior", self.prior)
        if not (isinstance(self.beta, str) and self.beta in ("signed", "contrast")):
            check_real("beta", self.beta)
        if not isinstance(self.regions, (bool, np.bool_)):
            invalid("regions", "be True or False", self.regions)
        check_real("detail", self.detail, at_least=0, at_most=1)

    def _check_init(self) -> None:
        """Refuse a start that is none, or as many as there are not chains; which labels fit, only the sites tell."""
        if isinstance(self.init, str):
            check_choice("init", self.init, (*STARTS, "coarse") if self.of_pixels else STARTS)
            return
        starts = listed_starts(self.init)
        for start in [self.init] if starts is None else starts:
            if isinstance(start, str):
                check_choice("init", start, STARTS)
            elif integer_array("init", start).ndim != 1:
                invalid("init", "be labels of the sites, or such for each chain", np.shape(start))
        if starts is not None and len(starts) != self.chains:
            invalid("init", f"be one start, or one for each of {self.chains} chains", f"{len(starts)} starts")

    @property
    def of_pixels(self) -> bool:
        """Whether every pixel is a site."""
        return isinstance(self.sites, str) and self.sites == "pixels"

    @property
    def has_detail(self) -> bool:
        """Whether `detail` has an effect: on couplings, on regions, or on the segmentation that chains start from."""
        signed = isinstance(self.beta, str) and self.beta == "signed"
        coarse = isinstance(self.init, str) and self.init == "coarse" and self.preset == "photo"
        return signed or bool(self.regions) or coarse

    def pixels_per_site_of(self, n_pixels: int) -> float:
        """Pixels to a site: fewer in a small picture, so that it has `fewest_sites`, but not below FEWEST_PIXELS."""
        return min(self.pixels_per_site, max(n_pixels / self.fewest_sites, FEWEST_PIXELS))

    @property
    def coupling(self) -> Coupling:
        """The coupling at this detail: finer, and less evidence makes a boundary."""
        return COUPLING._replace(threshold=COUPLING.threshold - THRESHOLD_SPAN * (self.detail - 0.5))

    @property
    def smallest_region(self) -> float:
        """The smallest region at this detail, as a share of the picture."""
        return SMALLEST_REGION * SMALLEST_REGION_SPAN ** (0.5 - self.detail)

    def changes(self) -> dict[str, Any]:
        """What differs from the preset, by name."""
        usual = vars(_usual(self.preset, self.sites)) | {"sites": PRESETS[self.preset].sites}
        return {name: value for name, value in vars(self).items() if not _equal(value, usual[name])}


def _equal(a: Any, b: Any) -> bool:
    """Whether two settings are the same number, text or thing."""
    plain = (str, int, float, np.number)
    return bool(a == b) if isinstance(a, plain) and isinstance(b, plain) else a is b


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
    count_weight=0.09,  # docs/calibration.md: the paper does not say how counts enter the likelihood
    phi=50.0,
    prior=DirichletProcess(3.0),
    beta=0.02,
    regions=False,
    detail=0.5,
    estimate="best",
    moves="gsw",
    lam=10.0,
    init="one",
    sweeps=1000,
    chains=1,
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
    count_weight=0.0024,
    phi=0.2,
    prior=TemperedProcess(),
    beta="signed",
    regions=True,
    detail=0.5,
    estimate="best",
    moves="auto",
    lam=None,
    init="greedy",
    sweeps=200,
    chains=2,
)

# What "photo" is where every pixel is a site: colour words, of which the sampler looks log marginals up in tables.
PHOTO_OF_PIXELS = replace(
    PHOTO,
    sites="pixels",
    likelihood="words",
    count_weight=0.5,
    phi=50.0,
    prior=TemperedProcess(RARE),
    beta="contrast",
    init="coarse",
)

PRESETS = {"photo": PHOTO, "paper": PAPER}


def _usual(preset: str, sites: Any) -> Settings:
    """The settings of a preset for such sites."""
    return PHOTO_OF_PIXELS if preset == "photo" and isinstance(sites, str) and sites == "pixels" else PRESETS[preset]


def settings_of(preset: str, given: Mapping[str, Any]) -> Settings:
    """The settings of a preset, with those given in their place; refused where one would have no effect."""
    check_choice("preset", preset, list(PRESETS))
    settings = replace(_usual(preset, given.get("sites")), **given)
    if "detail" in given and not settings.has_detail:
        rule = "be left out where couplings do not carry the evidence of a boundary and there are no regions"
        invalid("detail", f"{rule}, as in the preset 'paper'", given["detail"])
    return settings


def prior_named(
    name: str | None,
    preset: str,
    *,
    sites: str | None = None,
    concentration: float | None = None,
    discount: float | None = None,
    n_labels: int | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
) -> PartitionPrior | None:
    """The prior of a short name, with what is given of its parameters; None where nothing is given.

    Without a name it is the preset's kind of process for such sites: "photo" has a tempered one, unless a concentration
    is given.
    """
    limits = {name: size for name, size in (("min_size", min_size), ("max_size", max_size)) if size is not None}
    given = {"alpha": concentration, "discount": discount, "labels": n_labels}
    if name is None and not limits and all(value is None for value in given.values()):
        return None
    if name is None and preset == "photo" and all(value is None for value in given.values()):
        rare = {"concentration": RARE} if sites == "pixels" else {}
        return TemperedProcess(**rare, **limits)  # type: ignore[arg-type]
    name = name or ("dp" if discount is None else "py")
    check_choice("prior", name, list(PRIOR_PARAMETERS))
    for parameter, value in given.items():
        if value is not None and parameter not in PRIOR_PARAMETERS[name]:
            invalid(parameter, f"be left out for the prior {name!r}", value)
    if name in ("potts", "finite") and n_labels is None:
        invalid("labels", f"be given for the prior {name!r}", n_labels)
    if name == "potts":
        return Potts(n_labels, **limits)  # type: ignore[arg-type]
    if name == "finite":
        return FiniteDirichlet(n_labels, 1.0 if concentration is None else concentration, **limits)  # type: ignore[arg-type]
    if name == "mfm":
        mean = 10.0 if n_labels is None else float(n_labels)
        return MixtureOfFiniteMixtures(1.0 if concentration is None else concentration, mean, **limits)  # type: ignore[arg-type]
    concentration = 3.0 if concentration is None else concentration
    if name == "py":
        return PitmanYor(concentration, 0.25 if discount is None else discount, **limits)
    return DirichletProcess(concentration, **limits)


# Short names of priors, and which of alpha, discount and labels each has.
PRIOR_PARAMETERS = {
    "dp": ("alpha",),
    "py": ("alpha", "discount"),
    "potts": ("labels",),
    "finite": ("alpha", "labels"),
    "mfm": ("alpha", "labels"),
}
