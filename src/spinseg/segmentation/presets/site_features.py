"""Gaussian features of sites: lightness, color, texture and position, each with a weight and a prior variance."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.image.boundary.log_odds import is_gray
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.features import pixel_positions, site_means, site_sizes
from spinseg.image.picture import Picture
from spinseg.model.gaussians import DiagonalGaussian
from spinseg.model.likelihoods import Likelihood, Product


class FeatureConstants(NamedTuple):
    """A number for each feature."""

    lightness: float
    color: float
    texture: float
    position: float


# From a search on training photographs of BSDS300, except those of texture (docs/evidence/accuracy.md). A weight is
# relative to that of color. The rates of the inverse gamma priors are in squared units: of CIELAB, of logarithms of
# filter responses, and of hundredths of the longer side.
FEATURE_WEIGHTS = FeatureConstants(lightness=0.2, color=1.0, texture=0.3, position=1 / 30)
VARIANCE_RATES = FeatureConstants(lightness=10.7, color=8.6, texture=0.05, position=200.0)


class Moments(NamedTuple):
    """Means and mean squares of a feature, (n_sites, channels).

    The squares are None where the variance within a site is not to count.
    """

    means: NDArray[np.floating]
    squares: NDArray[np.floating] | None


class SiteFeatures(NamedTuple):
    """The number of pixels of each site, and the moments of its features by name."""

    n_pixels: NDArray[np.integer]
    moments: dict[str, Moments]

    @classmethod
    def of(cls, picture: Picture, sites: NDArray[np.int32], maps: BoundaryMaps | None) -> "SiteFeatures":
        """Position; lightness and chroma, or other channels as they are; and texture where there are maps."""
        values = {"position": pixel_positions(picture.shape), "color": picture.colors}
        if picture.n_channels == 3:
            lab = values.pop("color")
            values |= {"lightness": lab[..., :1]} if is_gray(picture) else lightness_and_chroma(lab)
        moments = {}
        for name, value in values.items():
            means = site_means(value, sites)
            # Rounding may leave a mean square below the squared mean.
            moments[name] = Moments(means, np.maximum(site_means(np.square(value), sites), means**2))
        if maps is not None:
            moments["texture"] = Moments(site_means(maps.energies, sites), None)
        return cls(site_sizes(sites), moments)


def lightness_and_chroma(lab: NDArray[np.floating]) -> dict[str, NDArray[np.floating]]:
    """CIELAB values (or their moments) as the features lightness and color."""
    return {"lightness": lab[..., :1], "color": lab[..., 1:]}


def gaussian_likelihood(
    features: SiteFeatures,
    count_weight: float,
    pixel_weight: float,
    kappa: float,
    weights: FeatureConstants = FEATURE_WEIGHTS,
    rates: FeatureConstants = VARIANCE_RATES,
) -> Likelihood:
    """Independent Gaussians for each feature, where a pixel counts for `count_weight` times `pixel_weight`."""
    if "lightness" in features.moments and "color" not in features.moments:  # in a gray image it stands for both
        weights = weights._replace(lightness=weights.lightness + weights.color)
    n_observations = count_weight * features.n_pixels * pixel_weight
    parts = []
    for name, (means, squares) in features.moments.items():
        prior = {"kappa": kappa, "shape": 2.0, "rate": getattr(rates, name)}
        of_feature = getattr(weights, name) * n_observations
        parts.append(DiagonalGaussian(means, **prior, weights=of_feature, squares=squares))
    return Product(*parts)
