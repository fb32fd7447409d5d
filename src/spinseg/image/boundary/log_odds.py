"""Log-odds of a boundary between touching sites, and the couplings they give."""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg.image.adjacency import RegionAdjacency, edge_means
from spinseg.image.boundary.cues import REACH, SiteLooks, chi_square, edge_cues, neighbours
from spinseg.image.boundary.grouping import grouping_cues
from spinseg.image.boundary.maps import BoundaryMaps
from spinseg.image.features import gradient, site_means
from spinseg.image.picture import Picture

Cues = dict[str, NDArray[np.float64]]

KINDS = ("colour", "grey")  # of photographs, each with weights of its own
HARDLY = 3.0  # CIELAB units


@dataclass(frozen=True, eq=False)
class BoundaryWeights:
    """From the cues of an edge of a photograph to the log-odds that people draw a boundary along it.

    First log-odds are linear in the cues of `edge_cues`. From them come those of `grouping_cues`, and from all cues x,
    each less its mean and over its standard deviation, c + u.x + v.tanh(A x + a). `python -m benchmarks boundaries`
    fits both to the training photographs of BSDS300, and says how good they are on photographs held out.

    Attributes
    ----------
    mean, deviation : (n_cues,) array
        Of all cues; those of `edge_cues` come first.
    first : (1 + n_edge_cues,) array
        The constant and the weights of the first log-odds.
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
        """The weights that come with the package, for one of `KINDS` of pictures."""
        with files("spinseg.image").joinpath("data/boundary_weights.npz").open("rb") as file, np.load(file) as stored:
            names = [name for name in stored.files if name.startswith(f"{kind} ")]
            return cls(**{name.removeprefix(f"{kind} "): stored[name] for name in names})

    def first_log_odds(self, local: Cues) -> NDArray[np.float64]:
        """From the surroundings of each edge alone."""
        return self.first[0] + self._standard(local) @ self.first[1:]

    def log_odds(self, cues: Cues) -> NDArray[np.float64]:
        """From all cues."""
        return self.of_standard(self._standard(cues))

    def of_standard(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """From all cues less their mean and over their deviation, (n_edges, n_cues)."""
        return self.constant + x @ self.direct + np.tanh(x @ self.hidden.T + self.bias) @ self.output

    def _standard(self, cues: Cues) -> NDArray[np.float64]:
        """The first of all cues, (n_edges, n_given), with mean 0 and standard deviation 1 over the photographs."""
        table = np.stack(list(cues.values()), axis=1)
        count = table.shape[1]
        return (table - self.mean[:count]) / self.deviation[:count]


def boundary_log_odds(
    picture: Picture,
    sites: NDArray[np.int32],
    adjacency: RegionAdjacency,
    counts: sparse.csr_array,
    maps: BoundaryMaps,
) -> NDArray[np.float64]:
    """Log-odds that people draw a boundary between the two sites of each edge of a photograph, (n_edges,).

    `counts` of colour words, (n_sites, n_words).
    """
    weights = BoundaryWeights.fitted("grey" if is_grey(picture) else "colour")
    looks = SiteLooks.of(picture, sites, counts, maps)
    local = edge_cues(looks, sites, adjacency, maps)
    return weights.log_odds(local | grouping_cues(weights.first_log_odds(local), looks, adjacency))


def is_grey(picture: Picture) -> bool:
    """Whether a picture of three channels has one hue or none: its chroma hardly varies."""
    chroma = picture.colours[..., 1:].reshape(-1, 2)
    return hardly_varies(chroma.std(axis=0, dtype=np.float64))


def hardly_varies(deviation: NDArray[np.float64]) -> bool:
    """Whether chroma of such standard deviations is that of a grey picture."""
    return bool(deviation.sum() < HARDLY)


# Three cues that any picture has, volumes and other channels than colour too. The constant and a weight for each are a
# logistic regression on training photographs of BSDS300 (`python -m benchmarks boundaries` at c2dd511), the log-odds
# made 0.76 times as large and 0.2 larger, at which the couplings of photographs are those that suited them there.
PLAIN_LOG_ODDS = (-2.893, -0.038, 0.524, 2.926)
SLOPE_SCALE = 2.0  # pixels


def plain_log_odds(
    picture: Picture, sites: NDArray[np.int32], adjacency: RegionAdjacency, counts: sparse.csr_array
) -> NDArray[np.float64]:
    """Evidence of a boundary in a picture of any kind, (n_edges,)."""
    return log_odds_of_plain(plain_cues(picture, sites, adjacency, counts))


def log_odds_of_plain(cues: NDArray[np.float64]) -> NDArray[np.float64]:
    """Evidence of a boundary from the three cues of each edge."""
    return PLAIN_LOG_ODDS[0] + cues @ PLAIN_LOG_ODDS[1:]


def plain_cues(
    picture: Picture, sites: NDArray[np.int32], adjacency: RegionAdjacency, counts: sparse.csr_array
) -> NDArray[np.float64]:
    """The three cues of each edge, (n_edges, 3)."""
    edges = adjacency.graph.edges
    slope = edge_means(sites, edges, gradient(picture.colours, SLOPE_SCALE))
    return plain_cues_of(site_means(picture.colours, sites), slope, counts, edges)


def plain_cues_of(
    means: NDArray[np.float64], slope: NDArray[np.float64], counts: sparse.csr_array, edges: NDArray[np.int32]
) -> NDArray[np.float64]:
    """The root of the distance between the mean colours of the two sites of each edge; the root of the slope, the mean
    colour gradient at SLOPE_SCALE along the common boundary; and the chi-square distance of the colour words around
    them, (n_edges, 3).
    """
    difference = np.linalg.norm(means[edges[:, 0]] - means[edges[:, 1]], axis=1)
    near = neighbours(edges, np.exp(-difference / REACH), counts.shape[0])
    around = counts.astype(np.float64) + near @ counts.astype(np.float64)
    return np.stack([np.sqrt(difference), np.sqrt(slope), chi_square(around, edges)], axis=1)


def signed_couplings(
    log_odds: NDArray[np.float64], boundary_length: NDArray[np.int32], strength: float, threshold: float
) -> NDArray[np.float64]:
    """beta_ij = strength * boundary_length * (threshold - log_odds): together below the threshold, apart above it."""
    return strength * boundary_length * (threshold - log_odds)
