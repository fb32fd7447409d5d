"""Summaries of draws that do not depend on how clusters are numbered."""

import numpy as np
from numpy.typing import NDArray


def separation_probability(labels: NDArray[np.int32], edges: NDArray[np.int32]) -> NDArray[np.float64]:
    """How often the two ends of each edge lie in different clusters, over draws of shape (.., n_sites).

    Examples
    --------
    >>> separation_probability(np.array([[0, 0, 1], [0, 1, 1]]), np.array([[0, 1], [0, 2]])).tolist()
    [0.5, 1.0]
    """
    draws = labels.reshape(-1, labels.shape[-1])
    apart = np.zeros(len(edges), np.int64)
    for draw in draws:  # one at a time: a table of draws x edges may not fit
        apart += draw[edges[:, 0]] != draw[edges[:, 1]]
    return apart / max(len(draws), 1)
