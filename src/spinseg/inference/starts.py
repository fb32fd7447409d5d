"""Where a chain starts."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray

from spinseg import _checks
from spinseg._checks import refuse
from spinseg.model.target import Model

STARTS = ("one", "singletons")


def starting_labels(model: Model, init: str | ArrayLike) -> NDArray[np.int32]:
    """The partition at which chains start, legal under the prior.

    "one" is one cluster and "singletons" a cluster for each site where the prior allows them, else the fewest and the
    most blocks of about equal size that it allows.
    """
    n_sites = model.graph.n_sites
    if not isinstance(init, str):
        labels = _checks.labels("init", init, n_sites)
        if model.log_prior_of_sizes(np.bincount(labels)) == -np.inf:
            refuse("init", "be a partition that the prior allows", np.sort(np.bincount(labels)))
        return labels
    _checks.one_of("init", init, (*STARTS, "labels of the sites"))
    fewest = 1 if model.prior.max_size is None else -(-n_sites // model.prior.max_size)
    most = n_sites // model.prior.min_size
    allowed = np.arange(fewest, most + 1)
    if model.tables is not None:
        allowed = allowed[model.tables[0][allowed] > -np.inf]
    for k in allowed if init == "one" else allowed[::-1]:
        sizes = np.full(k, n_sites // k)
        sizes[: n_sites % k] += 1
        if model.log_prior_of_sizes(sizes) > -np.inf:
            return _blocks(model, sizes)
    refuse("init", "be labels: no division into equal blocks is allowed by the prior", init)


def _blocks(model: Model, sizes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Blocks of these sizes along a walk through the graph, so that most of them hold together."""
    n_sites, edges = model.graph.n_sites, model.graph.edges
    order = np.arange(n_sites)
    if 1 < sizes.size < n_sites:
        ends = (edges[:, 0], edges[:, 1])
        links = sparse.csr_array((np.ones(len(edges), np.int8), ends), shape=(n_sites, n_sites))
        order = sparse.csgraph.reverse_cuthill_mckee(sparse.csr_array(links + links.T), symmetric_mode=True)
    labels = np.empty(n_sites, np.int64)
    labels[order] = np.repeat(np.arange(sizes.size), sizes)
    return _checks.labels("init", labels, n_sites)
