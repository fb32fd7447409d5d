"""Gaussian features of sites: lightness, color, texture and position, each with a weight and a prior variance."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.boundary.log_odds import is_gray
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.features import pixel_positions, site_means
from spinseg.image.picture import Picture
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import Likelihood, Product


# From a search on training photographs of BSDS300, except those of texture (docs/evidence/accuracy.md).
class FeatureWeights(NamedTuple):
    """The weight of each feature, relative to that of color."""

    lightness: float = 0.2
    color: float = 1.0
    texture: float = 0.3
    position: float = 1 / 30


# Of the inverse gamma priors, in squared units: of CIELAB, of logarithms of filter responses, and of hundredths of the
# longer side.
VARIANCE_RATES = {"lightness": 10.7, "color": 8.6, "texture": 0.05, "position": 200.0}

# Means and mean squares of a feature, (n_sites, channels); no squares where the variance within a site is not to count.
Moments = tuple[NDArray[np.floating], NDArray[np.floating] | None]


def site_moments(picture: Picture, sites: NDArray[np.int32], maps: BoundaryMaps | None) -> dict[str, Moments]:
    """Position; lightness and chroma, or other channels as they are; and texture where there are maps."""
    values = {"position": pixel_positions(picture.shape), "color": picture.colors}
    if picture.n_channels == 3:
        lab = values.pop("color")
        values |= {"lightness": lab[..., :1]} if is_gray(picture) else lightness_and_chroma(lab)
    moments: dict[str, Moments] = {}
    for name, value in values.items():
        means = site_means(value, sites)
        # Rounding may leave a mean square below the squared mean.
        moments[name] = means, np.maximum(site_means(np.square(value), sites), means**2)
    if maps is not None:
        moments["texture"] = site_means(maps.energies, sites), None
    return moments


def lightness_and_chroma(lab: NDArray[np.floating]) -> dict[str, NDArray[np.floating]]:
    """CIELAB values (or their moments) as the features lightness and color."""
    return {"lightness": lab[..., :1], "color": lab[..., 1:]}


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
