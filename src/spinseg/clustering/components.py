"""Which components of a representation vary in space, and which are noise."""

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.site_graph import SiteGraph

MIN_STANDARD_ERRORS = 4.0  # of Moran's I above 0: by chance that happens to one component of 30,000


def varies_in_space(values: NDArray[np.float64], graph: SiteGraph) -> NDArray[np.bool_]:
    """Whether each column of a table is more alike at neighbors than by chance, by Moran's I.

    I is the mean product of the values at the two ends of an edge, in units of their variance. Without structure in
    space it is about 0, with a standard error of one over the root of the number of edges.

    References
    ----------
    Moran (1950), https://doi.org/10.1093/biomet/37.1-2.17

    Examples
    --------
    >>> row = SiteGraph.grid((40,))
    >>> varies_in_space(np.stack([np.arange(40.0), np.arange(40.0) % 2], axis=1), row).tolist()
    [True, False]
    """
    weights = np.ones(graph.n_edges) if graph.weights is None else graph.weights
    centered = values - values.mean(axis=0)
    variance = np.square(centered).mean(axis=0)
    products = weights @ (centered[graph.edges[:, 0]] * centered[graph.edges[:, 1]])
    least = MIN_STANDARD_ERRORS * np.sqrt(np.square(weights).sum())
    return (variance > 0) & (products > least * variance)
