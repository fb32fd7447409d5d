"""Bond strengths, which make the sampler single-site Gibbs, Swendsen-Wang or the generalized Swendsen-Wang."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinseg._validation import check_choice, check_real, finite_array, invalid
from spinseg.model.likelihoods import DISTANCES
from spinseg.model.posterior import Model

PAPER_LAM = 10.0
MIXED_LAMS = (0.0, 1.0, 3.0, 10.0, 20.0)
CONNECTED_LAMS = (0.25, 0.5, 1.0, 2.0, 4.0)  # where clusters must be connected


@dataclass(frozen=True)
class DataDriven:
    """delta_ij = lam * exp(-tau * d(y_i, y_j)), the paper's data-driven bonds.

    `distance` is "hellinger", "chi-square" or "euclidean"; the first two need histograms.

    Examples
    --------
    >>> import numpy as np, spinseg as ss
    >>> counts = ss.DirichletMultinomial(np.eye(4, dtype=int) + 1)
    >>> model = ss.Model(ss.SiteGraph.grid((2, 2)), counts, ss.DirichletProcess(1.0), beta=0.5)
    >>> chains = ss.sample(model, sweeps=5, lam=ss.DataDriven(10.0, tau=2.0, distance="hellinger"), moves="gsw", rng=0)
    """

    lam: float
    tau: float
    distance: str = "hellinger"

    def __post_init__(self) -> None:
        check_real("lam", self.lam, at_least=0)
        check_real("tau", self.tau, at_least=0)
        check_choice("distance", self.distance, DISTANCES)


Lam = float | ArrayLike | DataDriven | None


def check_lam(lam: Lam, n_edges: int | None = None) -> None:
    """Refuse invalid bond strengths; their number is checked where `n_edges` is given."""
    if lam is None or isinstance(lam, DataDriven):
        return
    if not isinstance(lam, (np.ndarray, list, tuple)):
        check_real("lam", lam, at_least=0)
        return
    per_edge = finite_array("lam", lam, (n_edges,))
    if (per_edge < 0).any():
        invalid("lam", "not be negative", per_edge[per_edge < 0][0])


def bond_strengths(model: Model, lam: Lam, moves: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(strength, lams): a sweep draws lambda from `lams` and bonds an edge with probability 1 - exp(-lambda strength).

    strength = power * max(beta, 0) * delta / lambda: a negative coupling never bonds.
    """
    check_lam(lam, model.graph.n_edges)
    attraction = np.maximum(model.power * model.beta, 0.0)
    if lam is None:
        mixed = CONNECTED_LAMS if model.connected else MIXED_LAMS
        return attraction, np.array([PAPER_LAM] if moves == "gsw" else mixed)
    if isinstance(lam, DataDriven):
        return attraction * np.exp(-lam.tau * model.likelihood.distances(model.graph.edges, lam.distance)), np.array(
            [float(lam.lam)]
        )
    if isinstance(lam, (np.ndarray, list, tuple)):
        return attraction * np.asarray(lam, np.float64), np.ones(1)
    return attraction, np.array([float(lam)])  # type: ignore[arg-type]
