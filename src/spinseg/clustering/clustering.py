"""Clusters of the sites of a graph from a table of their features, and how sure each label is."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from spinseg._run.progress import Report
from spinseg._validation import check_int, counted, invalid
from spinseg.clustering.table_model import starting_partitions
from spinseg.model.posterior import Model
from spinseg.partition.contingency import contingency_table
from spinseg.partition.numbering import checked_labels
from spinseg.partition.pairs import flatten_draws
from spinseg.sampler.chains import Chains
from spinseg.sampler.diagnostics import ADVICE, Diagnostics, diagnose
from spinseg.sampler.estimates import allowed_estimate
from spinseg.sampler.sampler import sample, thin_to_fit

FAR_BELOW = 5.0  # standard deviations of the log posterior, with one nat more
MAX_DRAWS = 200  # that the labels are estimated from
CLUSTERING_ADVICE = (
    "Give more sweeps while the log posterior of a chain still rises (`chains.plot()`, or `chains_.plot()` of an "
    "estimator). Where each is level, they found different partitions: trust the labels of high probability alone, and "
    "try fewer features, or a larger min_evidence, which makes fewer clusters."
)

START_APART = "Start chains from different places to tell."  # what a verdict advises where nothing varied


@dataclass(frozen=True, eq=False, repr=False)
class Clustering:
    """Clusters of sites, and the chains that they were estimated from.

    Attributes
    ----------
    labels : (n_sites,) int32
        The partition of least expected variation of information, numbered by first appearance, over the draws of those
        chains whose log posterior is not far below that of the best.
    membership : (n_sites, n_clusters) float64
        How often each site is in each cluster, over the draws of all chains.
    chains : Chains
        Half of them start from single sites that were merged, the other half from parts of similar features that were.
    diagnostics : Diagnostics
    """

    labels: NDArray[np.int32]
    membership: NDArray[np.float64]
    chains: Chains
    diagnostics: Diagnostics

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.membership.shape[1]

    @property
    def probability(self) -> NDArray[np.float64]:
        """How sure the label of each site is: its membership in its own cluster."""
        return self.membership[np.arange(self.labels.size), self.labels]

    @property
    def draws(self) -> NDArray[np.int32]:
        """The partitions drawn, (chain, draw, site)."""
        return self.chains.labels

    def __repr__(self) -> str:
        found = f"{counted(self.n_clusters, 'cluster')} of {counted(self.labels.size, 'site')}"
        return f"{found}, mean probability of a label {self.probability.mean():.3f}\n{self.diagnostics.verdict}"


def find_clusters(
    model: Model, sweeps: int, chains: int, seed: int, progress: bool | Report | None = None
) -> Clustering:
    """Sample chains, of which the first half is burn-in, and estimate clusters from the draws.

    Chains start in turn from two partitions: under couplings as strong as these, few find out of one cluster.
    """
    sweeps, chains = check_int("sweeps", sweeps, at_least=1), check_int("chains", chains, at_least=1)
    burn_in, starts = sweeps // 2, starting_partitions(model, np.random.default_rng(seed))
    thin = thin_to_fit(sweeps - burn_in, chains * model.graph.n_sites)
    init = [starts[c % len(starts)] for c in range(chains)]
    drawn = sample(model, sweeps, chains, init=init, burn_in=burn_in, thin=thin, rng=seed, progress=progress)
    labels = estimate(model, drawn.labels[_not_left_behind(drawn)], seed)
    diagnostics = diagnose(drawn, model.graph)
    verdict = diagnostics.verdict.replace(ADVICE, CLUSTERING_ADVICE)
    if len(starts) > 1:
        verdict = verdict.replace(START_APART, "They started from partitions made in two ways.")
    diagnostics = replace(diagnostics, verdict=verdict)
    return Clustering(labels, membership(drawn.labels, labels), drawn, diagnostics)


def _not_left_behind(drawn: Chains) -> NDArray[np.bool_]:
    """The chains whose log posterior is not far below that of the best, where they would be stuck."""
    values = drawn.log_posterior
    means = values.mean(axis=1)
    return means >= means.max() - FAR_BELOW * (1 + values[means.argmax()].std())


def warn_of_disagreement(found: Clustering, stacklevel: int) -> None:
    """Warn where chains have not converged, as scikit-learn does."""
    if found.diagnostics.converged is False:
        warnings.warn(found.diagnostics.verdict, _convergence_warning(), stacklevel=stacklevel)


def _convergence_warning() -> type[Warning]:
    """scikit-learn's category where it is installed, else its base."""
    try:
        from sklearn.exceptions import ConvergenceWarning
    except ImportError:
        return UserWarning
    return ConvergenceWarning


def estimate(model: Model, draws: NDArray[np.int32], seed: int) -> NDArray[np.int32]:
    """The partition of least expected variation of information that the posterior allows, as `allowed_estimate` has it.

    It has at most as many clusters as a draw: a single site between two clusters is none of its own.
    """
    return allowed_estimate(model, draws, "vi", max_clusters=int(draws.max()) + 1, max_draws=MAX_DRAWS, rng=seed)


def membership(draws: ArrayLike, labels: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often each site is in each cluster of `labels`, (n_sites, n_clusters), over draws of shape (.., n_sites).

    The clusters of a draw get the labels with which as many sites as possible keep theirs, each label once. Clusters
    that are left over get none, so that the memberships of a site add up to at most 1.

    References
    ----------
    Papastamoulis & Iliopoulos (2010), https://doi.org/10.1198/jcgs.2010.09008

    Examples
    --------
    >>> membership([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2]], np.array([0, 0, 1, 1])).tolist()
    [[1.0, 0.0], [0.5, 0.25], [0.0, 1.0], [0.0, 1.0]]
    """
    rows = flatten_draws(draws)
    sites, n_labels = np.arange(labels.size), int(labels.max()) + 1
    if rows.shape[1] != labels.size:
        invalid("labels", f"have the {rows.shape[1]} sites of the draws", labels.shape)
    n_times = np.zeros((labels.size, n_labels))
    for row in rows:
        draw = checked_labels("draws", row, labels.size)  # so that ties do not depend on how clusters are numbered
        table = contingency_table(labels, draw)
        shared = np.zeros((n_labels, table.column_sizes.size), np.int64)
        shared[table.row, table.column] = table.shared
        label, cluster = linear_sum_assignment(shared, maximize=True)
        matched = shared[label, cluster] > 0
        label_of = np.full(table.column_sizes.size, -1)
        label_of[cluster[matched]] = label[matched]
        found = label_of[draw]
        n_times[sites[found >= 0], found[found >= 0]] += 1
    return n_times / len(rows)
