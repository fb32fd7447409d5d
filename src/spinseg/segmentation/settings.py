"""`Settings`: every choice that shapes a segmentation, with its check and what the command says of it.

The keywords of `segment` and the options of `spinseg segment` have the names of these fields, and the command takes its
help from here. So that `spinseg --help` stays quick, whatever takes long to import is imported where it is used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import check_choice, check_int, check_real, integer_array, invalid

if TYPE_CHECKING:
    from spinseg.image.features import Codebook
    from spinseg.model.priors import PartitionPrior
    from spinseg.sampler.plan import Lam

PRESET_NAMES = ("photo", "classes", "paper")
SITE_KINDS = ("slic", "watershed", "felzenszwalb", "grid", "pixels")
CODEBOOKS = ("general", "image")
PRIOR_NAMES = ("dp", "py", "potts", "finite", "mfm")  # of the command; a field of `Settings` is the prior itself
POLYGON_FILES = ("regions.geojson", "outlines.svg")  # of pictures of one plane
OPTIONAL_FILES = (*POLYGON_FILES, "regions.csv", "boundary_probability.tif")  # that are written if asked
ESTIMATES = ("vi", "binder", "best")
MOVES = ("auto", "gsw")

MIN_PIXELS_PER_SITE = 40  # in a small picture

Start = str | Sequence[str] | NDArray[np.integer]  # of chains, as `sample` takes it, or "coarse"


def _keyword(help: str, *options: str, choices: Sequence[str] = ()) -> dict[str, Any]:
    """The metadata of a field that is a keyword of `segment` and an option of the command.

    `options` are the names of the option where they are not just `--` and the name of the field, and `choices` are the
    values that the command takes.
    """
    return {"help": help, "options": options, "choices": choices}


@dataclass(frozen=True, eq=False)
class Settings:
    """Every choice that shapes a segmentation. Most are keywords of `segment`, where they are explained.

    The others: a picture gets one site for `pixels_per_site` pixels, but at least `fewest_sites` where it is small. A
    picture of more than `max_pixels` is reduced first. The `likelihood` is one of color "words", or "gaussian" in
    color, texture and position. The histogram of a site is the mean of its own and those of the sites that it touches,
    taken as many times as `smoothing` says. Where `segment` takes one number for `beta`, a preset may have "signed",
    for couplings that carry the evidence of a boundary, or "contrast", for couplings that fall with the contrast of two
    pixels; and `init` may be "coarse", a segmentation with larger sites, where sites are pixels.

    `connected` says whether the clusters of the posterior are connected; the evidence then has the weight `power`, and
    the posterior is a mixture of `n_details` that differ in how much evidence makes a boundary. Where clusters need not
    be connected, `regions` are made of their pieces afterwards. Where `refined`, outlines follow the pixels, not the
    sites.

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.segment([[0, 0, 255, 255]] * 4, "paper", sweeps=2, rng=0).settings.lam
    10.0
    """

    preset: str = field(metadata=_keyword("Settings to start from.", choices=PRESET_NAMES))
    sites: str | NDArray[np.integer] = field(
        metadata=_keyword("How sites are made.", "--site-kind", choices=SITE_KINDS)
    )
    n_sites: int | None = field(metadata=_keyword("About how many sites.", "--n-sites", "--sites"))
    connectivity: int = field(
        metadata=_keyword("Along how many axes neighbors may differ, where every pixel is a site.")
    )
    pixels_per_site: float
    fewest_sites: int
    max_pixels: int | None
    codebook: "str | Codebook" = field(
        metadata=_keyword("Color words of the package, or fitted to each picture.", choices=CODEBOOKS)
    )
    n_words: int = field(metadata=_keyword("Number of color words."))
    likelihood: str
    smoothing: int
    count_weight: float = field(metadata=_keyword("How many observations a pixel counts for."))
    phi: float = field(metadata=_keyword("Mass of the Dirichlet prior on the color words of a cluster."))
    kappa: float = field(metadata=_keyword("How many observations the prior mean of a Gaussian counts for."))
    prior: "PartitionPrior" = field(
        metadata=_keyword(
            "Dirichlet process, Pitman-Yor, Potts, finite Dirichlet, mixture of finite mixtures.", choices=PRIOR_NAMES
        )
    )
    beta: float | str = field(metadata=_keyword("One coupling for all touching sites."))
    power: float
    connected: bool
    n_details: int
    refined: bool
    regions: bool = field(metadata=_keyword("Whether every cluster is one connected region.", "--regions/--no-regions"))
    detail: float = field(metadata=_keyword("From 0, coarse, to 1, fine (photo)."))
    estimate: str = field(
        metadata=_keyword(
            "Least expected variation of information, or pairs misjudged, or best partition visited.", choices=ESTIMATES
        )
    )
    moves: str = field(metadata=_keyword("The best sampler that is known, or the paper's.", choices=MOVES))
    lam: "Lam" = field(metadata=_keyword("Bond strength of the sampler.", "--lam", "--lambda"))
    init: Start = field(
        metadata=_keyword(
            "Where chains start: one, singletons or greedy, or one for each, with commas; opposite; or dispersed."
        )
    )
    sweeps: int | None = field(metadata=_keyword("Sweeps of each chain; by default as many as it takes (photo)."))
    seconds: float | None = field(metadata=_keyword("About how long to sample, instead of a number of sweeps."))
    chains: int = field(metadata=_keyword("Number of chains."))
    start_label: int = field(metadata=_keyword("The first label; outside is one less."))

    def __post_init__(self) -> None:
        """Refuse whatever can be refused without a picture."""
        from spinseg.sampler.plan import check_lam
        from spinseg.sampler.sampler import check_length

        self._check_sites()
        self._check_model()
        check_choice("estimate", self.estimate, ESTIMATES)
        check_choice("moves", self.moves, MOVES)
        check_lam(self.lam)
        check_length(1 if self.sweeps is None else self.sweeps, self.chains)
        if self.seconds is not None:
            check_real("seconds", self.seconds, above=0)
        if isinstance(self.start_label, float) or check_int("start_label", self.start_label, at_least=0) > 1:
            invalid("start_label", "be 0 or 1", self.start_label)
        self._check_init()

    def _check_sites(self) -> None:
        if isinstance(self.sites, str):
            check_choice("sites", self.sites, SITE_KINDS)
        elif integer_array("sites", self.sites).ndim not in (2, 3):
            invalid("sites", "be a kind of sites or have two or three axes", np.shape(self.sites))
        if self.n_sites is not None:
            if self.sites_are_pixels:
                invalid("n_sites", "be None where every pixel is a site", self.n_sites)
            check_int("n_sites", self.n_sites, at_least=1)
        check_int("connectivity", self.connectivity, at_least=1)
        if self.connectivity != 1 and not self.sites_are_pixels:
            invalid("connectivity", "be 1 where sites are not pixels", self.connectivity)
        check_real("pixels_per_site", self.pixels_per_site, above=0)
        check_int("fewest_sites", self.fewest_sites, at_least=1)
        if self.max_pixels is not None:
            check_int("max_pixels", self.max_pixels, at_least=1)

    def _check_model(self) -> None:
        from spinseg.image.features import Codebook
        from spinseg.model.priors import PartitionPrior

        if not isinstance(self.codebook, Codebook):
            check_choice("codebook", self.codebook, CODEBOOKS)
        check_int("n_words", self.n_words, at_least=1)
        check_choice("likelihood", self.likelihood, ("words", "gaussian"))
        check_int("smoothing", self.smoothing, at_least=0)
        check_real("count_weight", self.count_weight, above=0)
        check_real("phi", self.phi, above=0)
        check_real("kappa", self.kappa, above=0)
        if not isinstance(self.prior, PartitionPrior):
            invalid("prior", "be a PartitionPrior", self.prior)
        if not (isinstance(self.beta, str) and self.beta in ("signed", "contrast")):
            check_real("beta", self.beta)
        if isinstance(self.beta, str) and self.beta == "contrast" and not self.sites_are_pixels:
            invalid("beta", 'be a number or "signed" where sites are not pixels', self.beta)
        for name in ("connected", "refined", "regions"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                invalid(name, "be True or False", getattr(self, name))
        check_real("power", self.power, above=0)
        check_int("n_details", self.n_details, at_least=1)
        check_real("detail", self.detail, at_least=0, at_most=1)

    def _check_init(self) -> None:
        """Refuse an unknown start, or another number of starts than of chains; `sample` checks labels against sites."""
        from spinseg.sampler.sampler import listed_starts
        from spinseg.sampler.starts import ALTERNATING_STARTS, STARTS

        if isinstance(self.init, str):
            named = (*STARTS, *ALTERNATING_STARTS)
            check_choice("init", self.init, (*named, "coarse") if self.sites_are_pixels else named)
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
    def sites_are_pixels(self) -> bool:
        """Whether every pixel is a site."""
        return isinstance(self.sites, str) and self.sites == "pixels"

    @property
    def chooses_sweeps(self) -> bool:
        """Whether the program chooses how many sweeps to make."""
        return self.sweeps is None and self.seconds is None

    @property
    def carries_evidence(self) -> bool:
        """Whether couplings carry the evidence of a boundary."""
        return isinstance(self.beta, str) and self.beta == "signed"

    @property
    def uses_detail(self) -> bool:
        """Whether `detail` has an effect: on couplings, on regions, or on the segmentation that chains start from."""
        coarse = isinstance(self.init, str) and self.init == "coarse" and self.preset == "photo"
        return self.carries_evidence or bool(self.regions) or coarse

    def pixels_per_site_of(self, n_pixels: int) -> float:
        """Pixels for each site of a picture of `n_pixels`: fewer where it is small, down to MIN_PIXELS_PER_SITE."""
        return min(self.pixels_per_site, max(n_pixels / self.fewest_sites, MIN_PIXELS_PER_SITE))


KEYWORDS = tuple(each.name for each in fields(Settings) if each.metadata)  # of `segment`


def given_settings(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the keywords of `segment` that are settings, and are not None."""
    return {name: keywords[name] for name in KEYWORDS if keywords.get(name) is not None}
