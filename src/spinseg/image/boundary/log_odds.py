"""Log-odds of a boundary between adjacent sites, and couplings computed from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.graph.adjacency import edge_means
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.cues import Cues, SiteStatistics, chi_square, color_similarity, edge_cues, edge_distance
from spinseg.image.boundary.grouping import grouping_cues
from spinseg.image.boundary.maps import NETWORK_RELIEF, BoundaryMaps, boundary_maps
from spinseg.image.boundary.network import SIZES, BoundaryNetwork
from spinseg.image.boundary.volumes import volume_cues, volume_maps
from spinseg.image.features import gradient_magnitude, site_means
from spinseg.image.layout import Floats, Ints
from spinseg.image.picture import Picture

KINDS = ("color", "gray", "measured", "volume")  # of images with separate weights: photographs, and measured ones
MAX_GRAY_CHROMA = 3.0  # CIELAB units: sum of the standard deviations of a and b, below which an image counts as gray

# Weights of cues, by name. `mean` and `deviation`, (n_cues,), standardize the cues, of which those of `edge_cues` come
# first. `first`, (1 + n_edge_cues,), is the constant and weights of the first log-odds, not for volumes; the others are
# `constant` c, `direct` u (n_cues,), `hidden` A (n_hidden, n_cues), `bias` a (n_hidden,) and `output` v (n_hidden,).
CueWeights = Mapping[str, Floats]
WEIGHT_NAMES = ("mean", "deviation", "first", "constant", "direct", "hidden", "bias", "output")


@dataclass(frozen=True)
class BoundaryEvidence:
    """Where the evidence of a boundary comes from: a network, and weights of the cues by kind of image.

    `network` may be the path of an ONNX file, as `docs/howto/own_network.md` describes. What is None is that of the
    package for images of this `kind`, "photograph" or "measured". `network_relief` is the height that a boundary has in
    the relief for sites where the network is sure of it.

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.Photo(evidence=ss.BoundaryEvidence(network_relief=4.0))
    Photo(evidence=BoundaryEvidence(network=None, weights=None, network_relief=4.0, kind='photograph'))
    """

    network: BoundaryNetwork | str | None = None
    weights: Mapping[str, CueWeights] | None = None
    network_relief: float = NETWORK_RELIEF
    kind: str = "photograph"

    def maps(self, picture: Picture, inside: NDArray[np.bool_] | None = None) -> BoundaryMaps:
        """Return the boundary maps of an image or a volume of three channels."""
        network = self.network or BoundaryNetwork.fitted(self.kind)
        if isinstance(network, str):
            network = BoundaryNetwork.of_file(network)
        if len(picture.shape) == 3:
            return volume_maps(picture, network, self.network_relief)
        return boundary_maps(picture, inside, network, self.network_relief, SIZES[self.kind])

    def log_odds(
        self, picture: Picture, sites: Ints, graph: SiteGraph, counts: sparse.csr_array, maps: BoundaryMaps | None
    ) -> Floats:
        """Return the log-odds that people draw a boundary between the two sites of each edge, (n_edges,).

        `counts`, (n_sites, n_words), are histograms of color words. Without `maps` there are only three plain cues.
        """
        if maps is None:
            return plain_log_odds(picture, sites, graph, counts)
        if sites.ndim == 3:
            weights = (fitted_weights() | dict(self.weights or {}))["volume"]
            return final_log_odds(weights, volume_cues(picture, sites, graph, maps))
        kind = "measured" if self.kind == "measured" else "gray" if is_gray(picture) else "color"
        weights = (self.weights or fitted_weights())[kind]
        statistics = SiteStatistics.of(picture, sites, counts, maps)
        local = edge_cues(statistics, sites, graph, maps)
        first = first_log_odds(weights, local)
        spectral = bool(np.isfinite(weights["deviation"][len(local)]))  # infinite for a cue that is not used
        return final_log_odds(weights, local | grouping_cues(first, statistics, graph, spectral))


@lru_cache
def fitted_weights() -> dict[str, CueWeights]:
    """Return the weights that come with the package, by kind of image.

    `python -m studies boundaries` fits them to training photographs of BSDS300, and `python -m studies
    measured_boundaries` to training nuclei of BBBC038 and to rendered scenes, and `python -m studies
    volume_boundaries` to rendered volumes; all evaluate them on images held out.
    """
    with files("spinseg.image").joinpath("data/boundary_weights.npz").open("rb") as file, np.load(file) as stored:
        return weights_by_kind(stored)


def weights_by_kind(stored: CueWeights) -> dict[str, CueWeights]:
    """Return the weights for each kind of images, of arrays named `<kind> <name>`."""
    names = {kind: [name for name in WEIGHT_NAMES if f"{kind} {name}" in stored] for kind in KINDS}
    return {kind: {name: stored[f"{kind} {name}"] for name in found} for kind, found in names.items() if found}


def first_log_odds(weights: CueWeights, local: Cues) -> Floats:
    """Return the log-odds from the cues of `edge_cues` alone, in which they are linear, (n_edges,)."""
    return weights["first"][0] + _standardize(weights, local) @ weights["first"][1:]


def final_log_odds(weights: CueWeights, cues: Cues) -> Floats:
    """Return the log-odds from all cues, (n_edges,)."""
    return log_odds_of_standardized(weights, _standardize(weights, cues))


def log_odds_of_standardized(weights: CueWeights, x: Floats) -> Floats:
    """Return c + u.x + v.tanh(A x + a) for standardized cues x, (n_edges, n_cues)."""
    nonlinear = np.tanh(x @ weights["hidden"].T + weights["bias"]) @ weights["output"]
    return weights["constant"] + x @ weights["direct"] + nonlinear


def _standardize(weights: CueWeights, cues: Cues) -> Floats:
    """Return (cue - mean) / deviation of the given cues, which are the first of all, (n_edges, n_given)."""
    table = np.stack(list(cues.values()), axis=1)
    count = table.shape[1]
    return (table - weights["mean"][:count]) / weights["deviation"][:count]


def is_gray(picture: Picture) -> bool:
    """Return whether the chroma of an image of three channels is nearly constant: it has one hue or none."""
    chroma = np.ascontiguousarray(picture.colors[..., 1:].reshape(-1, 2).T)  # the deviation of columns takes longer
    return bool(chroma.std(axis=1, dtype=np.float64).sum() < MAX_GRAY_CHROMA)


# The plain model has three cues that exist for any picture, also for volumes and for channels other than color. Its
# constant and weights are a logistic regression on training photographs of BSDS300 (`python -m studies boundaries`
# at c2dd511), then scaled by 0.76 and shifted by 0.2, so that the couplings of photographs suit them there.
PLAIN_LOG_ODDS = (-2.893, -0.038, 0.524, 2.926)
GRADIENT_SCALE = 2.0  # pixels


def plain_log_odds(picture: Picture, sites: Ints, graph: SiteGraph, counts: sparse.csr_array) -> Floats:
    """Return the log-odds of a boundary along each edge of an image of any kind, (n_edges,)."""
    gradient = edge_means(sites, graph.edges, gradient_magnitude(picture.colors, GRADIENT_SCALE))
    cues = plain_cues(site_means(picture.colors, sites), gradient, counts, graph.edges)
    return PLAIN_LOG_ODDS[0] + cues @ PLAIN_LOG_ODDS[1:]


def plain_cues(means: Floats, gradient: Floats, counts: sparse.csr_array, edges: Ints) -> Floats:
    """Return the three plain cues of each edge, (n_edges, 3), from statistics of sites and edges.

    They are the root of the distance between the two sites' mean colors, the root of the mean color gradient (at
    GRADIENT_SCALE) along the common boundary, and the chi-square distance between the histograms of color words, each
    pooled with those of similar neighbors.
    """
    distance = edge_distance(means, edges)
    similarity = color_similarity(distance, edges, counts.shape[0])
    pooled = counts.astype(np.float64) + similarity @ counts.astype(np.float64)
    return np.stack([np.sqrt(distance), np.sqrt(gradient), chi_square(pooled, edges)], axis=1)


def signed_couplings(
    log_odds: Floats, boundary_length: Floats, strength: float, threshold: float, saturation: float = np.inf
) -> Floats:
    """Return beta_ij = strength * boundary_length * (threshold - log_odds): attractive below the threshold.

    With a finite `saturation` c the difference x is c tanh(x / c), which is x near 0 and at most c far away.
    """
    evidence = threshold - log_odds
    if np.isfinite(saturation):
        evidence = saturation * np.tanh(evidence / saturation)
    return strength * boundary_length * evidence
