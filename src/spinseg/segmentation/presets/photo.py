"""`Photo`: connected regions at every level of detail, from the evidence of a boundary between touching sites."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._advice import Advice, Setting
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.kinds import kind_of_image
from spinseg.image.boundary.log_odds import BoundaryEvidence, is_gray, signed_couplings
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.features import Codebook, pixel_positions, site_histograms, site_means, site_sizes
from spinseg.image.outlines import SitePairs, outlined_sites
from spinseg.image.picture import Picture
from spinseg.image.superpixels import KINDS, superpixels
from spinseg.image.working import WorkingCopy
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import Flat, Likelihood, Product
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior, TemperedProcess
from spinseg.sampler.chains import Chains
from spinseg.sampler.estimates import allowed_estimate
from spinseg.segmentation.presets.option import Slider, option
from spinseg.segmentation.presets.preset import Preset, Start

if TYPE_CHECKING:
    from spinseg.segmentation.problem import Problem

REGION_COST = 2.0  # nats that the prior takes for each region

# The photographs have 481 x 321 pixels. A larger image shows the same things with more pixels, so that each of them
# counts for less; in a smaller image each counts for more.
REFERENCE_PIXELS = 481 * 321
MAX_PIXEL_WEIGHT = 4.0  # of a pixel in a small image, relative to one of the reference size
MAX_MAP_PIXELS = 2_000_000  # pixels of an image that boundary maps are computed for
MIN_PIXELS_FOR_CUES = 20  # pixels per site: the colors of smaller sites are so noisy that any two look different
N_WORDS = 120  # color words that the weights of the cues were fitted with

# Of the inverse gamma priors, in squared units: of CIELAB, of logarithms of filter responses, and of hundredths of the
# longer side.
VARIANCE_RATES = {"lightness": 10.7, "color": 8.6, "texture": 0.05, "position": 200.0}

# Means and mean squares of a feature, (n_sites, channels); no squares where the variance within a site is not to count.
Moments = tuple[NDArray[np.floating], NDArray[np.floating] | None]

FEWEST_SITES, MIN_PIXELS_PER_SITE = 800, 40  # in a small image
WIDEST = 1 / 4  # levels of detail at most this far from the one asked for have a part in an estimate
MAX_DRAWS = 500  # that an estimate is made from, chosen at random


# From a search on training photographs of BSDS300, except those of texture (docs/evidence/accuracy.md).
class FeatureWeights(NamedTuple):
    """The weight of each feature, relative to that of color."""

    lightness: float = 0.2
    color: float = 1.0
    texture: float = 0.3
    position: float = 1 / 30


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Photo(Preset):
    """The preset for photographs: connected regions, whose probabilities match what annotators draw.

    Sites follow edges, couplings carry the evidence of a boundary, and a tempered likelihood describes color, texture
    and position. The posterior is a mixture of `n_details` levels of detail that differ in how much evidence makes a
    boundary. The constants were chosen on training photographs of BSDS300 (docs/evidence/accuracy.md).

    Examples
    --------
    >>> import numpy as np
    >>> import spinseg as ss
    >>> image = np.zeros((60, 90))
    >>> image[10:50, 20:60] = 1
    >>> ss.segment(image, ss.Photo(detail=0.9), rng=0).n_clusters
    2
    """

    name: ClassVar[str] = "photo"
    about: ClassVar[str] = "Connected regions, for photographs."
    suits: ClassVar[str | None] = "a photograph"
    connected: ClassVar[bool] = True
    max_pixels: ClassVar[int | None] = 300_000
    pixels_per_site: ClassVar[float] = 190

    detail: float = option(
        0.65,
        "How finely the image is divided, from 0, coarse, to 1, fine. Chains draw every level of detail, so that you "
        "can change it afterwards.",
        least=0,
        most=1,
        slider=Slider(0, 1, step=0.05),
    )
    sites: str | NDArray[np.integer] = option(
        "watershed",
        "How superpixels are made.",
        choices=tuple(kind for kind in KINDS if kind != "pixels"),
        is_open=True,
    )
    count_weight: float = option(
        0.0024,
        "Number of observations that a pixel counts for: less than 1, because neighboring pixels are not independent.",
        above=0,
        slider=Slider(1e-5, 1, "log"),
    )
    kappa: float = option(0.2, "Number of observations that the prior mean of a region counts for.", above=0)
    prior: PartitionPrior = TemperedProcess(math.exp(-REGION_COST), power=0.0)
    init: Start = "dispersed"
    power: float = 0.1  # of couplings and likelihood in the posterior
    n_details: int = 12
    strength: float = 0.8  # of couplings, as in `couplings`
    threshold: float = 0.0
    saturation: float = 2.0
    evidence: BoundaryEvidence = BoundaryEvidence()
    feature_weights: FeatureWeights = FeatureWeights()

    # --- the posterior ---

    def maps(self, image: WorkingCopy) -> BoundaryMaps | None:
        """The boundary maps of a photograph, for sites, texture and couplings.

        None for volumes, and for images so large that the maps would take more than about a gigabyte.
        """
        picture = image.picture
        is_photograph = len(picture.shape) == 2 and picture.n_channels == 3
        fits = np.prod(picture.shape) <= MAX_MAP_PIXELS
        return self.evidence.maps(picture, image.inside) if is_photograph and fits else None

    def make_sites(self, image: WorkingCopy, maps: BoundaryMaps | None) -> NDArray[np.int32]:
        """The site of every pixel: more of them for its size in a small image."""
        n_pixels = int(np.prod(image.picture.shape) if image.inside is None else np.count_nonzero(image.inside))
        each = min(self.pixels_per_site, max(n_pixels / FEWEST_SITES, MIN_PIXELS_PER_SITE))
        how: dict[str, Any] = {"n_sites": self.n_sites, "pixels_per_site": each}
        how["relief"] = None if maps is None else maps.relief
        return superpixels(image.picture, kind=self.sites, mask=image.inside, **how)

    def model(
        self,
        image: WorkingCopy,
        sites: NDArray[np.int32],
        graph: SiteGraph,
        maps: BoundaryMaps | None = None,
        seeds: NDArray[np.int64] | None = None,
    ) -> Model:
        """The posterior at every level of detail."""
        likelihood = self.appearance(image.picture, sites, maps)
        log_odds = self.log_odds(image.picture, sites, graph, maps)
        weight = self.pixel_weight(int(site_sizes(sites).sum())) ** 0.5  # boundaries have a length, pixels an area
        betas = [weight * self.couplings(log_odds, graph, detail) for detail in details_of(self.n_details)]
        how: dict[str, Any] = {"power": self.power, "seeds": seeds, "kinds": self.prior_of_kinds()}
        return Model(graph, likelihood, self.prior, betas, connected=True, **how)

    def prior_of_kinds(self) -> PartitionPrior | None:
        """The prior of the kinds of regions; None where they have none."""
        return None

    def appearance(self, picture: Picture, sites: NDArray[np.int32], maps: BoundaryMaps | None) -> Likelihood:
        """The likelihood of color, texture and position; none where no pixel counts, as usual in `Measured`."""
        if self.count_weight == 0:
            return Flat()
        area = site_sizes(sites)
        n_observations = self.count_weight * area * self.pixel_weight(int(area.sum()))
        return gaussian_likelihood(site_moments(picture, sites, maps), n_observations, self.kappa, self.feature_weights)

    def pixel_weight(self, n_pixels: int) -> float:
        """The weight of a pixel in an image of `n_pixels`, relative to one of a photograph of the reference size."""
        return min(MAX_PIXEL_WEIGHT, REFERENCE_PIXELS / n_pixels)

    def log_odds(
        self, picture: Picture, sites: NDArray[np.int32], graph: SiteGraph, maps: BoundaryMaps | None
    ) -> NDArray[np.float64]:
        """The log-odds of a boundary between touching sites; without maps, or with small sites, from fewer cues."""
        if np.count_nonzero(sites >= 0) < MIN_PIXELS_FOR_CUES * graph.n_sites:
            maps = None
        book = Codebook.general(N_WORDS) if picture.is_color else Codebook.fit(picture, N_WORDS, rng=0)
        counts = site_histograms(book.words(picture), sites, len(book))
        return self.evidence.log_odds(picture, sites, graph, counts, maps)

    def couplings(self, log_odds: NDArray[np.float64], graph: SiteGraph, detail: float) -> NDArray[np.float64]:
        """beta_ij = strength * boundary length in pixels * c tanh((t - log-odds of a boundary) / c).

        c is the `saturation`: far from t more evidence changes nothing. How much evidence makes a boundary differs from
        person to person. The log-odds t that it takes, at which two sites neither attract nor repel, have a standard
        logistic distribution. At t = log((1 - detail) / detail), a share `detail` of annotators asks for more.
        """
        threshold = self.threshold + math.log((1 - detail) / detail)
        return signed_couplings(log_odds, graph.length, self.strength, threshold, self.saturation)

    # --- the answer ---

    def estimated(self, drawn: Chains, model: Model, seed: int, chain: int | None = None) -> NDArray[np.int32]:
        """The partition that `estimate` asks for, from draws near `detail`, or the best one at the nearest level."""
        if self.estimate == "best" or not drawn.labels.size:
            distance = np.abs(np.array(details_of(drawn.n_components)) - self.detail)
            return drawn.best_of(int(distance.argmin()), chain)
        draws = drawn.labels if chain is None else drawn.labels[chain : chain + 1]
        labels = draws[:, self.relevant(drawn)].reshape(-1, model.graph.n_sites)
        labels = labels[np.random.default_rng(seed).permutation(len(labels))[:MAX_DRAWS]]
        return allowed_estimate(model, labels, self.estimate, rng=seed)

    def relevant(self, drawn: Chains) -> NDArray[np.bool_]:
        """Which of the draws have a part in what is shown: those of levels near `detail`."""
        return np.isin(drawn.component, details_near(self.detail, drawn.n_components))

    def refines(self, problem: Problem) -> bool:
        """Whether outlines follow the pixels: in photographs, unless sites are given."""
        return problem.relief is not None and problem.relief.ndim == 2 and isinstance(self.sites, str)

    def refined_sites(self, problem: Problem, drawn: Chains, partition: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sites of the whole image, with outlines that follow its boundaries; seeds are held."""
        assert problem.relief is not None
        pairs = SitePairs.of(problem.model.graph, drawn.labels)
        held = None if problem.seed_image is None else problem.seed_image > 0
        codes = problem.seen.codes
        return outlined_sites(problem.sites, problem.relief, problem.working_image, codes, pairs, held)

    def not_validated(self, picture: Picture, has_seeds: bool) -> str | None:
        """What the probabilities have not been compared with human annotations for; None for photographs.

        Photographs in color and in gray have been compared (docs/evidence/notebook.md).
        """
        if len(picture.shape) == 3:
            return "volumes"
        if not picture.is_color:
            return f"images with {picture.n_channels} channels"
        if has_seeds:
            return "images with seeds"
        neutral = {"detail", "estimate", "moves", "lam", "init"}  # these leave the posterior as it is
        return "these options" if set(self.changes()) - neutral else None

    def advice(self, picture: Picture) -> Advice:
        """What to try if parts that differ share a region: another preset, unless it looks like a photograph."""
        measured, classes = Setting("preset", "measured"), Setting("preset", "classes")
        if kind_of_image(picture) == "photograph":
            others = Advice(measured, " if it is not a photograph; or ", classes, " for materials and textures")
            return Advice(self.finer, "; ", others)
        return Advice(measured if len(picture.shape) == 2 else classes)

    @property
    def finer(self) -> Advice:
        """What to try for a finer segmentation."""
        if self.detail < 1:
            larger = Setting("detail", 0.9 if self.detail < 0.9 else 1)
            return Advice("a larger detail, such as ", larger, f" instead of {self.detail:g}")
        return Advice("more superpixels, such as ", Setting("n_sites", 2000))


def details_of(n_details: int) -> list[float]:
    """The levels of detail that draws have, each in the middle of its share of those from 0 to 1."""
    return [(d + 0.5) / n_details for d in range(n_details)]


def details_near(detail: float, n_details: int) -> NDArray[np.intp]:
    """Which levels have a part in the estimate at one: those as near as an end is, and always the nearest."""
    distance = np.abs(np.array(details_of(n_details)) - detail)
    return np.flatnonzero(distance <= max(min(detail, 1 - detail, WIDEST), distance.min()) + 1e-9)


def site_moments(picture: Picture, sites: NDArray[np.int32], maps: BoundaryMaps | None) -> dict[str, Moments]:
    """Position; lightness and chroma, or other channels as they are; and texture where there are maps."""
    values = {"position": pixel_positions(picture.shape), "color": picture.colors}
    if picture.n_channels == 3:
        lab = values.pop("color")
        values |= {"lightness": lab[..., :1]} | ({} if is_gray(picture) else {"color": lab[..., 1:]})
    moments: dict[str, Moments] = {}
    for name, value in values.items():
        means = site_means(value, sites)
        # Rounding may leave a mean square below the squared mean.
        moments[name] = means, np.maximum(site_means(np.square(value), sites), means**2)
    if maps is not None and sites.ndim == 2:
        moments["texture"] = site_means(maps.energies, sites), None
    return moments


def gaussian_likelihood(
    features: Mapping[str, Moments],
    n_observations: NDArray[np.floating],
    kappa: float,
    weights: FeatureWeights = FeatureWeights(),
) -> Likelihood:
    """Independent Gaussians for each feature, where a site counts for this many observations."""
    if "lightness" in features and "color" not in features:  # in a gray image it stands for both
        weights = weights._replace(lightness=weights.lightness + weights.color)
    parts = []
    for name, (means, squares) in features.items():
        prior = {"kappa": kappa, "shape": 2.0, "rate": VARIANCE_RATES[name]}
        of_feature = getattr(weights, name) * n_observations
        parts.append(DiagonalGaussian(means, **prior, weights=of_feature, squares=squares))
    return Product(*parts)
