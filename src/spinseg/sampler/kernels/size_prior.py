"""What a prior known only as log g(sizes) adds to each decision of the sampler.

These functions do nothing: a prior with tables is all in `log_v` and `log_w`. `exchangeable.py` runs the same loops
uncompiled, with functions that evaluate log g in their place.
"""

from spinseg._compiled import internal


@internal
def weigh_sizes(state, c, old, n_destinations):
    """Add log g of the sizes after spin-cluster c has moved to the log weight of each of its destinations."""


@internal
def change_of_split(state, slot):
    """Change of log g if the cluster in `slot` is replaced by the two that were proposed."""
    return 0.0


@internal
def change_of_merge(state, a, b):
    """Change of log g if the clusters in slots a and b merge."""
    return 0.0


@internal
def change_of_regroup(state, anchors, n_old, n_new):
    """Change of log g if the clusters of the first `n_old` anchors are replaced by the `n_new` that were proposed."""
    return 0.0
