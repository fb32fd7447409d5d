"""Seeds of the model, which the compiled code calls markers: there, a seed is a site from which growth starts.

The sites of one marker lie in one cluster, those of different markers in different clusters. The last two statistics of
a site are 1 if it has a marker, and the marker's number. They add up like all others, so that each cluster has the
number of its marked sites, and the sum of their markers, wherever its sites come from. Without markers there are none.
"""

import numpy as np

from spinseg._compiled import internal


@internal
def n_marked(total):
    """How many of the sites with these summed statistics have a marker."""
    return total[total.size - 2]


@internal
def marker_in(total):
    """The marker of sites with these summed statistics, which have one at most; 0 if none."""
    n = n_marked(total)
    return np.int64(total[total.size - 1] / n + 0.5) if n > 0.0 else np.int64(0)


@internal
def holds_part(target, total):
    """Whether sites with these summed statistics have some of the sites of a marker, and not all."""
    n = n_marked(total)
    return n > 0.0 and n < target.marker_size[marker_in(total)]
