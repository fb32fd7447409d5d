"""The posterior of a picture: features of its sites, couplings between them, and the prior on their partitions."""

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.log_odds import boundary_log_odds, is_gray, plain_log_odds, signed_couplings
from spinseg.image.boundary.maps import BoundaryMaps, boundary_maps
from spinseg.image.features import Codebook, pixel_positions, site_histograms, site_means, site_sizes
from spinseg.image.picture import Picture
from spinseg.image.superpixels import PIXELS_PER_SITE
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import DirichletMultinomial, Likelihood, Product
from spinseg.model.mixture import Mixture
from spinseg.model.posterior import Model
from spinseg.segmentation.presets import (
    CONTRAST_COUPLING_MIN,
    CONTRAST_COUPLING_RANGE,
    FEATURE_WEIGHTS,
    MAX_MAP_PIXELS,
    MAX_PIXEL_WEIGHT,
    MIN_PIXELS_FOR_CUES,
    PHOTO,
    REFERENCE_PIXELS,
    VARIANCE_RATES,
    coupling_at,
    details_of,
    region_coupling_at,
)
from spinseg.segmentation.settings import Settings

Moments = tuple[NDArray[np.float64], NDArray[np.float64] | None]


def maps_for(picture: Picture, settings: Settings, inside: NDArray[np.bool_] | None = None) -> BoundaryMaps | None:
    """The boundary maps of a photograph, where the settings use them for sites, texture and couplings.

    None for volumes, for other channels than color, for sites that are pixels, and for pictures so large that the maps
    would take more than about a gigabyte.
    """
    is_photograph = len(picture.shape) == 2 and picture.n_channels == 3
    is_used = settings.likelihood == "gaussian" and not settings.sites_are_pixels
    fits = np.prod(picture.shape) <= MAX_MAP_PIXELS
    return boundary_maps(picture, inside) if is_photograph and is_used and fits else None


def picture_posterior(
    picture: Picture,
    sites: NDArray[np.int32],
    adjacency: SiteGraph,
    settings: Settings,
    maps: BoundaryMaps | None = None,
    seeds: NDArray[np.int64] | None = None,
) -> Model | Mixture:
    """The posterior of a picture. Without the `maps` of `maps_for` it uses fewer features and cues.

    Where clusters are connected it is a mixture of posteriors that differ in how much evidence makes a boundary, and
    sites may have `seeds`.
    """
    if not settings.connected:
        return picture_model(picture, sites, adjacency, settings, maps)
    graph, length = adjacency, adjacency.length
    likelihood = _likelihood(picture, sites, graph, settings, maps)
    log_odds, _ = evidence_log_odds(picture, sites, adjacency, settings, maps)
    weight, couplings = _length_weight(sites), map(region_coupling_at, details_of(settings.n_details))
    betas = [weight * signed_couplings(log_odds, length, *coupling) for coupling in couplings]
    how: dict[str, Any] = {"connected": True, "power": settings.power, "seeds": seeds}
    return Mixture([Model(graph, likelihood, settings.prior, beta, **how) for beta in betas])


def picture_model(
    picture: Picture,
    sites: NDArray[np.int32],
    adjacency: SiteGraph,
    settings: Settings,
    maps: BoundaryMaps | None = None,
) -> Model:
    """The model of a picture where clusters need not be connected, for `picture_posterior`."""
    beta: ArrayLike = settings.beta
    if settings.beta == "signed":
        beta = _evidence_couplings(picture, sites, adjacency, settings, maps)
    elif settings.beta == "contrast":
        beta = contrast_couplings(picture, sites, adjacency, settings.connectivity)
    likelihood = _likelihood(picture, sites, adjacency, settings, maps)
    return Model(adjacency, likelihood, settings.prior, beta)


def _likelihood(
    picture: Picture, sites: NDArray[np.int32], graph: SiteGraph, settings: Settings, maps: BoundaryMaps | None
) -> Likelihood:
    """The likelihood of color words, or of Gaussian features."""
    if settings.likelihood == "words":
        counts = _word_counts(picture, sites, settings)
        parts, n_parts = mean_with_neighbors(counts, graph, settings.smoothing)
        return DirichletMultinomial(parts, settings.phi, settings.count_weight / n_parts)
    features = SiteFeatures.of(picture, sites, maps)
    return gaussian_likelihood(features, settings, pixel_weight(int(features.n_pixels.sum())))


def _word_counts(picture: Picture, sites: NDArray[np.int32], settings: Settings) -> sparse.csr_array:
    """How often each color word occurs in each site, (n_sites, n_words)."""
    words, n_words = picture_words(picture, settings)
    return site_histograms(words, sites, n_words)


def mean_with_neighbors(counts: sparse.csr_array, graph: SiteGraph, n_times: int = 1) -> tuple[sparse.csr_array, float]:
    """The mean counts of each site and its neighbors, taken `n_times`: in whole parts, and how many of them make one.

    A part is one where sites have at least PIXELS_PER_SITE counts in the mean, and smaller where they have fewer, so
    that little is lost by rounding. Sums would be as good, but their tables are so large that sampling takes several
    times as long.

    Examples
    --------
    >>> parts, n_parts = mean_with_neighbors(sparse.csr_array([[90, 0], [0, 30], [60, 1]]), SiteGraph(3, [[0, 1]]))
    >>> parts.toarray().tolist(), n_parts
    ([[45, 15], [45, 15], [60, 1]], 1.0)
    """
    if n_times == 0:
        return counts, 1.0
    reach = sparse.csr_array((np.ones(graph.neighbors.size), graph.neighbors, graph.start), shape=(graph.n_sites,) * 2)
    reach = reach + sparse.eye_array(graph.n_sites, format="csr")
    mean = sparse.diags_array(1 / reach.sum(axis=1)) @ reach
    smooth = counts.astype(np.float64)
    for _ in range(n_times):
        smooth = mean @ smooth
    n_parts = max(1.0, PIXELS_PER_SITE * graph.n_sites / max(smooth.sum(), 1.0))
    parts = sparse.csr_array(smooth)
    parts.data = np.rint(n_parts * parts.data)
    parts.eliminate_zeros()
    return parts.astype(np.int32), n_parts


def picture_words(picture: Picture, settings: Settings) -> tuple[NDArray[np.integer], int]:
    """The color word of every pixel, and how many words there are."""
    book = settings.codebook
    if book == "general" and picture.n_channels == 3:
        book = Codebook.general(settings.n_words)
    elif not isinstance(book, Codebook):  # there is no general codebook of other channels
        book = Codebook.fit(picture, settings.n_words, rng=0)
    return book.words(picture), len(book)


class SiteFeatures(NamedTuple):
    """The number of pixels of each site, and for each feature their mean and mean square, (n_sites, channels).

    The mean square is None where the variance of a feature within a site is not to count.
    """

    n_pixels: NDArray[np.integer]
    moments: dict[str, Moments]

    @classmethod
    def of(cls, picture: Picture, sites: NDArray[np.int32], maps: BoundaryMaps | None) -> "SiteFeatures":
        """Position; lightness and chroma, or other channels as they are; and texture where there are maps."""
        features = {"position": pixel_positions(picture.shape), "colour": picture.colors}
        if picture.n_channels == 3:
            lab = features.pop("colour")
            features |= {"lightness": lab[..., :1]} if is_gray(picture) else lightness_and_chroma(lab)
        moments: dict[str, Moments] = {}
        for name, values in features.items():
            means = site_means(values, sites)
            # Rounding may leave a mean square below the squared mean.
            moments[name] = means, np.maximum(site_means(np.square(values), sites), means**2)
        if maps is not None:
            moments["texture"] = site_means(maps.energies, sites), None
        return cls(site_sizes(sites), moments)


def lightness_and_chroma(lab: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """CIELAB values (or their moments) as the features lightness and color."""
    return {"lightness": lab[..., :1], "colour": lab[..., 1:]}


def gaussian_likelihood(features: SiteFeatures, settings: Settings, weight: float) -> Likelihood:
    """Independent Gaussians for lightness, color, texture and position, each weighed by FEATURE_WEIGHTS.

    `weight` is that of a pixel, relative to one of a photograph of the reference size.
    """
    feature_weights = dict(FEATURE_WEIGHTS)
    if "lightness" in features.moments and "colour" not in features.moments:  # in a gray picture it stands for both
        feature_weights["lightness"] += feature_weights["colour"]
    weights = settings.count_weight * features.n_pixels * weight
    parts = []
    for name, (means, squares) in features.moments.items():
        prior = {"kappa": settings.kappa, "shape": 2.0, "rate": VARIANCE_RATES[name]}
        parts.append(DiagonalGaussian(means, **prior, weights=feature_weights[name] * weights, squares=squares))
    return Product(*parts)


def pixel_weight(n_pixels: int) -> float:
    """The weight of a pixel in a picture of `n_pixels`, relative to one of a photograph of the reference size."""
    return min(MAX_PIXEL_WEIGHT, REFERENCE_PIXELS / n_pixels)


def _length_weight(sites: NDArray[np.int32]) -> float:
    """The weight of a pixel of a boundary's length: boundaries have a length, where pixels have an area."""
    return pixel_weight(int(np.count_nonzero(sites >= 0))) ** 0.5


def contrast_couplings(
    picture: Picture, sites: NDArray[np.int32], adjacency: SiteGraph, connectivity: int
) -> NDArray[np.float64]:
    """(a + b exp(-d^2 / (2 mean d^2))) / (c distance), where d is the difference in color of two neighboring pixels.

    a is CONTRAST_COUPLING_MIN and b CONTRAST_COUPLING_RANGE. c is what a straight boundary cuts for each pixel of its
    length, so that it costs the same at any connectivity. Interactive segmentation by graph cuts has such couplings
    (Boykov and Jolly 2001, doi:10.1109/ICCV.2001.937505).
    """
    inside = sites >= 0
    ends = adjacency.edges.T
    color_gap = np.zeros(ends.shape[1], np.float32)  # squared, as is the distance
    for channel in np.moveaxis(picture.colors, -1, 0):
        values = channel[inside]
        color_gap += np.square(values[ends[0]] - values[ends[1]])
    distance = np.zeros(ends.shape[1], np.float32)
    for coordinates in np.nonzero(inside):
        distance += np.square(coordinates[ends[0]] - coordinates[ends[1]])
    mean_gap = max(float(color_gap.mean(dtype=np.float64)) if color_gap.size else 0.0, 1e-12)
    falling = CONTRAST_COUPLING_RANGE * np.exp(-color_gap / (2 * mean_gap), dtype=np.float64)
    steps = [step for step in product((-1, 0, 1), repeat=sites.ndim - 1) if np.count_nonzero(step) < connectivity]
    cut = sum(1 / math.sqrt(1 + np.count_nonzero(step)) for step in steps)
    return (CONTRAST_COUPLING_MIN + falling) / (cut * np.sqrt(distance, dtype=np.float64))


def _evidence_couplings(
    picture: Picture,
    sites: NDArray[np.int32],
    adjacency: SiteGraph,
    settings: Settings,
    maps: BoundaryMaps | None,
) -> NDArray[np.float64]:
    """Couplings of either sign that carry the evidence of a boundary, where clusters need not be connected.

    Sites that are too small for cues all attract each other, until a site that leaves its neighbors loses log n_sites:
    with less, the n_sites places where a stray site could be would make such sites the rule.
    """
    n_sites = adjacency.n_sites
    log_odds, large_enough = evidence_log_odds(picture, sites, adjacency, settings, maps)
    beta = signed_couplings(log_odds, adjacency.length, *coupling_at(settings.detail))
    beta *= _length_weight(sites)
    if large_enough or not len(beta):
        return beta
    ends, length = adjacency.edges, adjacency.length
    perimeter = np.bincount(ends.ravel(), length.repeat(2), n_sites)
    return np.maximum(beta, np.log(n_sites) * length / perimeter[ends].min(axis=1))


def evidence_log_odds(
    picture: Picture,
    sites: NDArray[np.int32],
    adjacency: SiteGraph,
    settings: Settings,
    maps: BoundaryMaps | None,
) -> tuple[NDArray[np.float64], bool]:
    """The log-odds of a boundary between touching sites, and whether sites are large enough for cues."""
    large_enough = bool(np.count_nonzero(sites >= 0) >= MIN_PIXELS_FOR_CUES * adjacency.n_sites)
    if maps is not None and large_enough:
        counts = _word_counts(picture, sites, PHOTO)  # the words that the weights of the cues were fitted with
        return boundary_log_odds(picture, sites, adjacency, counts, maps), large_enough
    return plain_log_odds(picture, sites, adjacency, _word_counts(picture, sites, settings)), large_enough
