"""The posterior of a picture: what its sites show, how they hold together, and the prior on their partitions."""

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg.image.adjacency import RegionAdjacency
from spinseg.image.boundary.log_odds import boundary_log_odds, is_grey, plain_log_odds, signed_couplings
from spinseg.image.boundary.maps import BoundaryMaps, boundary_maps
from spinseg.image.features import Codebook, pixel_positions, site_histograms, site_means, site_sizes
from spinseg.image.picture import Picture
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import DirichletMultinomial, Likelihood, Product
from spinseg.model.posterior import Model
from spinseg.segmentation.settings import (
    AT_ANY_CONTRAST,
    AT_NO_CONTRAST,
    MOST_COUNTED,
    MOST_MAPPED,
    PHOTO,
    RATES,
    SHARES,
    SMALLEST_JUDGED,
    USUAL_PIXELS,
    Settings,
)


def maps_for(picture: Picture, settings: Settings, inside: NDArray[np.bool_] | None = None) -> BoundaryMaps | None:
    """The boundary maps of a photograph, for its sites, their texture and their couplings, where the settings use them.

    None for volumes, for other channels than colour, for sites that are pixels, and for pictures so large that the
    maps would take more than about a gigabyte.
    """
    is_photograph = len(picture.shape) == 2 and picture.n_channels == 3
    of_use = settings.likelihood == "gaussian" and not settings.of_pixels
    fits = np.prod(picture.shape) <= MOST_MAPPED
    return boundary_maps(picture, inside) if is_photograph and of_use and fits else None


def picture_model(
    picture: Picture,
    sites: NDArray[np.int32],
    adjacency: RegionAdjacency,
    settings: Settings,
    maps: BoundaryMaps | None = None,
) -> Model:
    """The model of a picture under some settings; `maps` are those of `maps_for`, without which it is a plainer one."""
    likelihood: Likelihood
    if settings.likelihood == "words":
        likelihood = DirichletMultinomial(_counts(picture, sites, settings), settings.phi, settings.count_weight)
    else:
        shown = Shown.of(picture, sites, maps)
        likelihood = gaussian(shown, settings, _counted(int(shown.pixels.sum())))
    beta: ArrayLike = settings.beta
    if settings.beta == "signed":
        beta = _couplings(picture, sites, adjacency, settings, maps)
    elif settings.beta == "contrast":
        beta = _by_contrast(picture, sites, adjacency, settings.connectivity)
    return Model(adjacency.graph, likelihood, settings.prior, beta)


def _counts(picture: Picture, sites: NDArray[np.int32], settings: Settings) -> sparse.csr_array:
    """How often each site shows each colour word."""
    book = settings.codebook
    if book == "general" and picture.n_channels == 3:
        book = Codebook.general(settings.n_words)
    elif not isinstance(book, Codebook):  # of other channels there is no general one
        book = Codebook.fit(picture, settings.n_words, rng=0)
    return site_histograms(book.words(picture), sites, len(book))


class Shown(NamedTuple):
    """What sites show: how many pixels they have, and in each view the mean and the mean square of those.

    The squares are None where it is not counted how a view varies within a site.
    """

    pixels: NDArray[np.integer]
    views: dict[str, tuple[NDArray[np.float64], NDArray[np.float64] | None]]

    @classmethod
    def of(cls, picture: Picture, sites: NDArray[np.int32], maps: BoundaryMaps | None) -> "Shown":
        """Lightness and chroma, or other channels as they are, position, and texture where there are maps."""
        shown = {"position": pixel_positions(picture.shape), "colour": picture.colours}
        if picture.n_channels == 3:
            colour = shown.pop("colour")
            shown |= {"lightness": colour[..., :1]} if is_grey(picture) else by_lightness(colour)
        views: dict[str, tuple[NDArray[np.float64], NDArray[np.float64] | None]] = {}
        for name, values in shown.items():
            means = site_means(values, sites)
            views[name] = means, np.maximum(site_means(np.square(values), sites), means**2)  # as it is but for rounding
        if maps is not None:
            views["texture"] = site_means(maps.energies, sites), None
        return cls(site_sizes(sites), views)


def by_lightness(colour: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """CIELAB as lightness and chroma."""
    return {"lightness": colour[..., :1], "colour": colour[..., 1:]}


def gaussian(shown: Shown, settings: Settings, counted: float) -> Likelihood:
    """Normal lightness, chroma, texture and position, each counting for a share of the pixels' weight.

    `counted` is what a pixel counts for next to one of a photograph of the usual size.
    """
    shares = dict(SHARES)
    if "lightness" in shown.views and "colour" not in shown.views:  # which stands for both then
        shares["lightness"] += shares["colour"]
    weights = settings.count_weight * shown.pixels * counted
    parts = []
    for name, (means, squares) in shown.views.items():
        prior = {"kappa": settings.phi, "shape": 2.0, "rate": RATES[name]}
        parts.append(DiagonalGaussian(means, **prior, weights=shares[name] * weights, squares=squares))
    return Product(*parts)


def _counted(n_pixels: int) -> float:
    """What each of so many pixels counts for next to one of a photograph of the usual size."""
    return min(MOST_COUNTED, USUAL_PIXELS / n_pixels)


def _by_contrast(
    picture: Picture, sites: NDArray[np.int32], adjacency: RegionAdjacency, connectivity: int
) -> NDArray[np.float64]:
    """(a + b exp(-d^2 / (2 mean d^2))) / (c distance), d the difference in colour of two neighbouring pixels.

    a is AT_ANY_CONTRAST and b AT_NO_CONTRAST; c is what a straight boundary cuts for each pixel of its length, so that
    it costs as much whatever the connectivity. Such are the couplings of interactive segmentation by graph cuts
    (Boykov and Jolly 2001, doi:10.1109/ICCV.2001.937505).
    """
    inside = sites >= 0
    ends = adjacency.graph.edges.T
    squares = np.zeros(ends.shape[1], np.float32)
    for channel in np.moveaxis(picture.colours, -1, 0):
        shown = channel[inside]
        squares += np.square(shown[ends[0]] - shown[ends[1]])
    steps = np.zeros(ends.shape[1], np.float32)
    for places in np.nonzero(inside):
        steps += np.square(places[ends[0]] - places[ends[1]])
    usual = max(float(squares.mean(dtype=np.float64)) if squares.size else 0.0, 1e-12)
    falling = AT_NO_CONTRAST * np.exp(-squares / (2 * usual), dtype=np.float64)
    around = [step for step in product((-1, 0, 1), repeat=sites.ndim - 1) if np.count_nonzero(step) < connectivity]
    cut = sum(1 / math.sqrt(1 + np.count_nonzero(step)) for step in around)
    return (AT_ANY_CONTRAST + falling) / (cut * np.sqrt(steps, dtype=np.float64))


def _couplings(
    picture: Picture,
    sites: NDArray[np.int32],
    adjacency: RegionAdjacency,
    settings: Settings,
    maps: BoundaryMaps | None,
) -> NDArray[np.float64]:
    """Couplings that carry the evidence of a boundary.

    Sites too small to judge by all attract: as much as it takes for one site to lose log n_sites by leaving its
    neighbours, since else the many places that a stray site could be at outweigh any loss.
    """
    n_pixels, n_sites = int(np.count_nonzero(sites >= 0)), adjacency.graph.n_sites
    judged = n_pixels >= SMALLEST_JUDGED * n_sites
    if maps is not None and judged:
        counts = _counts(picture, sites, PHOTO)  # the words that its weights were fitted with, whatever is asked for
        log_odds = boundary_log_odds(picture, sites, adjacency, counts, maps)
    else:
        log_odds = plain_log_odds(picture, sites, adjacency, _counts(picture, sites, settings))
    strength, threshold = settings.coupling
    strength *= _counted(n_pixels) ** 0.5  # a length, where that is an area
    beta = signed_couplings(log_odds, adjacency.boundary_length, strength, threshold)
    if judged or not len(beta):
        return beta
    ends, length = adjacency.graph.edges, adjacency.boundary_length
    perimeter = np.bincount(ends.ravel(), length.repeat(2), n_sites)
    return np.maximum(beta, np.log(n_sites) * length / perimeter[ends].min(axis=1))
