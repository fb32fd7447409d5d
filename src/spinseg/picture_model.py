"""The posterior of a picture: what its sites show, how they hold together, and the prior on their partitions."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg.image.adjacency import RegionAdjacency
from spinseg.image.boundaries import boundary_log_odds, signed_couplings
from spinseg.image.features import Codebook, pixel_positions, site_histograms, site_means, site_sizes
from spinseg.image.pixels import Picture
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import DirichletMultinomial, Likelihood, Product
from spinseg.model.target import Model
from spinseg.presets import COUPLING, LARGEST_COUNTED, RATES, SHARES, Settings


def picture_model(picture: Picture, sites: NDArray[np.int32], adjacency: RegionAdjacency, settings: Settings) -> Model:
    """The model of a picture under some settings."""
    book = _codebook(picture, settings)
    counts = site_histograms(book.words(picture), sites, len(book))
    n_pixels = int(np.count_nonzero(sites >= 0))
    likelihood: Likelihood = DirichletMultinomial(counts, settings.phi, settings.count_weight)
    if settings.likelihood == "gaussian":
        likelihood = _gaussian(picture, sites, settings)
    beta: ArrayLike = settings.beta
    if settings.beta == "signed":
        log_odds = boundary_log_odds(picture, sites, adjacency, counts)
        strength = COUPLING.strength * min(1.0, LARGEST_COUNTED / n_pixels) ** 0.5  # a length, where that is an area
        beta = signed_couplings(log_odds, adjacency.boundary_length, strength, COUPLING.threshold)
    return Model(adjacency.graph, likelihood, settings.prior, beta)


def _codebook(picture: Picture, settings: Settings) -> Codebook:
    """The colour words that the settings ask for."""
    if isinstance(settings.codebook, Codebook):
        return settings.codebook
    if settings.codebook == "general" and picture.n_channels == 3:
        return Codebook.general(settings.n_words)
    return Codebook.fit(picture, settings.n_words, rng=0)  # of other channels there is no general one


def _gaussian(picture: Picture, sites: NDArray[np.int32], settings: Settings) -> Likelihood:
    """Normal lightness, chroma and position, each counting for a share of the pixels' weight."""
    pixels = site_sizes(sites)
    weights = settings.count_weight * pixels * min(1.0, LARGEST_COUNTED / pixels.sum())
    views = {"position": pixel_positions(picture.shape), "colour": picture.colours}
    if picture.n_channels == 3:
        colour = views.pop("colour")
        views |= {"lightness": colour[..., :1], "colour": colour[..., 1:]}
    parts = []
    for name, values in views.items():
        means = site_means(values, sites)
        squares = np.maximum(site_means(np.square(values), sites), means**2)  # but for rounding it is no smaller
        parts.append(
            DiagonalGaussian(
                means, kappa=settings.phi, shape=2.0, rate=RATES[name], weights=SHARES[name] * weights, squares=squares
            )
        )
    return Product(*parts)
