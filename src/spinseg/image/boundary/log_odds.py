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
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.features import gradient_magnitude, site_means
from spinseg.image.picture import Picture

KINDS = ("colour", "grey")  # of photographs, with separate weights
MAX_GRAY_CHROMA = 3.0  # CIELAB units: sum of the standard deviations of a and b, below which an image counts as gray


@dataclass(frozen=True, eq=False)
class BoundaryWeights:
    """Weights that turn the cues of an edge into the log-odds that people draw a boundary along it.

    First log-odds are linear in the standardized cues of `edge_cues`. From them `grouping_cues` are computed, and the
    log-odds from all standardized cues x are c + u.x + v.tanh(A x + a). `python -m studies boundaries` fits both
    stages to the training photographs of BSDS300 and evaluates them on photographs held out.

    Attributes
    ----------
    mean, deviation : (n_cues,) array
        Mean and standard deviation of all cues; those of `edge_cues` come first.
    first : (1 + n_edge_cues,) array
        Constant and weights of the first log-odds.
    constant, direct, hidden, bias, output : c, u (n_cues,), A (n_hidden, n_cues), a (n_hidden,), v (n_hidden,)
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    first: NDArray[np.float64]
    constant: NDArray[np.float64]
    direct: NDArray[np.float64]
    hidden: NDArray[np.float64]
    bias: NDArray[np.float64]
    output: NDArray[np.float64]

    @classmethod
    @lru_cache
    def fitted(cls, kind: str) -> "BoundaryWeights":
        """Return the weights that come with the package, for one of `KINDS` of photographs."""
        with files("spinseg.image").joinpath("data/boundary_weights.npz").open("rb") as file, np.load(file) as stored:
            return cls.of_kind(stored, kind)

    @classmethod
    def of_kind(cls, stored: Mapping[str, NDArray[np.float64]], kind: str) -> "BoundaryWeights":
        """Return the weights for a kind of photographs among arrays named `<kind> <attribute>`."""
        return cls(**{name: stored[f"{kind} {name}"] for name in cls.__dataclass_fields__})

    def first_log_odds(self, local: Cues) -> NDArray[np.float64]:
        """Return the log-odds from the cues of `edge_cues` alone, (n_edges,)."""
        return self.first[0] + self._standardize(local) @ self.first[1:]

    def log_odds(self, cues: Cues) -> NDArray[np.float64]:
        """Return the log-odds from all cues, (n_edges,)."""
        return self.log_odds_of_standardized(self._standardize(cues))

    def log_odds_of_standardized(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return c + u.x + v.tanh(A x + a) for standardized cues x, (n_edges, n_cues)."""
        return self.constant + x @ self.direct + np.tanh(x @ self.hidden.T + self.bias) @ self.output

    def _standardize(self, cues: Cues) -> NDArray[np.float64]:
        """Return (cue - mean) / deviation of the given cues, which are the first of all, (n_edges, n_given)."""
        table = np.stack(list(cues.values()), axis=1)
        count = table.shape[1]
        return (table - self.mean[:count]) / self.deviation[:count]


@dataclass(frozen=True)
class BoundaryEvidence:
    """Where the evidence of a boundary comes from: a network, and weights of the cues by kind of photograph.

    What is None is that of the package. `network_relief` is the height that a boundary has in the relief for sites
    where the network is sure of it.

    Examples
    --------
    >>> import spinseg as ss
    >>> from spinseg.image.boundary.log_odds import BoundaryEvidence
    >>> ss.Photo(evidence=BoundaryEvidence(network_relief=4.0))
    Photo(evidence=BoundaryEvidence(network=None, weights=None, network_relief=4.0))
    """

    network: BoundaryNetwork | None = None
    weights: Mapping[str, BoundaryWeights] | None = None
    network_relief: float = NETWORK_RELIEF

    def maps(self, picture: Picture, inside: NDArray[np.bool_] | None = None) -> BoundaryMaps:
        """Return the boundary maps of a photograph."""
        return boundary_maps(picture, inside, self.network, self.network_relief)

    def log_odds(
        self,
        picture: Picture,
        sites: NDArray[np.int32],
        graph: SiteGraph,
        counts: sparse.csr_array,
        maps: BoundaryMaps | None,
    ) -> NDArray[np.float64]:
        """Return the log-odds that people draw a boundary between the two sites of each edge, (n_edges,).

        `counts`, (n_sites, n_words), are histograms of color words. Without `maps` there are only three plain cues.
        """
        if maps is None:
            return plain_log_odds(picture, sites, graph, counts)
        kind = "grey" if is_gray(picture) else "colour"
        weights = BoundaryWeights.fitted(kind) if self.weights is None else self.weights[kind]
        statistics = SiteStatistics.of(picture, sites, counts, maps)
        local = edge_cues(statistics, sites, graph, maps)
        return weights.log_odds(local | grouping_cues(weights.first_log_odds(local), statistics, graph))


def is_gray(picture: Picture) -> bool:
    """Return whether the chroma of a picture of three channels is nearly constant: it has one hue or none."""
    chroma = picture.colors[..., 1:].reshape(-1, 2)
    return is_gray_chroma(chroma.std(axis=0, dtype=np.float64))


def is_gray_chroma(deviation: NDArray[np.float64]) -> bool:
    """Return whether such standard deviations of a and b (CIELAB) are those of a gray picture."""
    return bool(deviation.sum() < MAX_GRAY_CHROMA)


# The plain model has three cues that exist for any picture, also for volumes and for channels other than color. Its
# constant and weights are a logistic regression on training photographs of BSDS300 (`python -m studies boundaries`
# at c2dd511), then scaled by 0.76 and shifted by 0.2, so that the couplings of photographs suit them there.
PLAIN_LOG_ODDS = (-2.893, -0.038, 0.524, 2.926)
# The same with the network's log-odds within 1 and 3 pixels, for large photographs: `python -m studies boundaries`.
NETWORK_LOG_ODDS = (-0.986, 0.058, 0.022, 1.713, 0.418, 0.283)
GRADIENT_SCALE = 2.0  # pixels


def plain_log_odds(
    picture: Picture, sites: NDArray[np.int32], graph: SiteGraph, counts: sparse.csr_array
) -> NDArray[np.float64]:
    """Return the log-odds of a boundary along each edge of a picture of any kind, (n_edges,)."""
    return weigh_plain_cues(plain_cues(picture, sites, graph, counts))


def weigh_plain_cues(cues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log-odds of a boundary from the three plain cues of each edge, or from five with the network's two."""
    constant, *weights = PLAIN_LOG_ODDS if cues.shape[1] == len(PLAIN_LOG_ODDS) - 1 else NETWORK_LOG_ODDS
    return constant + cues @ weights


def plain_cues(
    picture: Picture, sites: NDArray[np.int32], graph: SiteGraph, counts: sparse.csr_array
) -> NDArray[np.float64]:
    """Return the three plain cues of each edge, (n_edges, 3), from a picture."""
    edges = graph.edges
    gradient = edge_means(sites, edges, gradient_magnitude(picture.colors, GRADIENT_SCALE))
    return plain_cues_from(site_means(picture.colors, sites), gradient, counts, edges)


def plain_cues_from(
    means: NDArray[np.float64], gradient: NDArray[np.float64], counts: sparse.csr_array, edges: NDArray[np.int32]
) -> NDArray[np.float64]:
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
    log_odds: NDArray[np.float64],
    boundary_length: NDArray[np.float64],
    strength: float,
    threshold: float,
    saturation: float = np.inf,
) -> NDArray[np.float64]:
    """Return beta_ij = strength * boundary_length * (threshold - log_odds): attractive below the threshold.

    With a finite `saturation` c the difference x is c tanh(x / c), which is x near 0 and at most c far away.
    """
    evidence = threshold - log_odds
    if np.isfinite(saturation):
        evidence = saturation * np.tanh(evidence / saturation)
    return strength * boundary_length * evidence
