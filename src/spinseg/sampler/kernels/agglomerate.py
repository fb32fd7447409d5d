"""Greedy agglomeration: a start near a mode."""

import cython

from spinseg.sampler.kernels.constraints import n_marked
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal
from spinseg.sampler.kernels.state import INF, Index, Real, Sums, Target


@cython.final
@cython.cclass
class Agglomeration(Sums):
    """The clusters of an agglomeration, n at first, and scratch space."""

    counts: cython.int[:, ::1]  # (n, D); summed counts of each cluster
    total: cython.double[:, ::1]  # (n, S); its summed statistics
    log_marginal: cython.double[::1]  # (n,); its log marginal
    size: cython.longlong[::1]  # (n,); its sites

    def __init__(self, **arrays):
        self.values = arrays
        self.counts, self.total, self.log_marginal = arrays["counts"], arrays["total"], arrays["log_marginal"]
        self.size, self.joined, self.work = arrays["size"], arrays["joined"], arrays["work"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def joint_log_marginal(target: Target, clusters: Agglomeration, a: Index, b: Index) -> Real:
    """log p(y) of clusters a and b together; of one alone where b = a."""
    log_p: Real = 0.0
    for d in range(clusters.counts.shape[1]):
        c: Index = clusters.counts[a, d] + (clusters.counts[b, d] if b != a else 0)
        if c > 0:
            log_p += bin_value(target, d, c)
    if target.block.shape[0] > 0:
        for s in range(clusters.joined.shape[0]):
            clusters.joined[s] = clusters.total[a, s] + (clusters.total[b, s] if b != a else 0.0)
        log_p += dense_log_marginal(target, clusters)
    return log_p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def merge_gain(target: Target, clusters: Agglomeration, a: Index, b: Index, coupling: Real) -> Real:
    """Gain of log posterior if clusters a and b merge, without log_v; -inf if both hold a marker.

    Size limits are checked after merges.
    """
    if target.marker_size.shape[0] > 0 and n_marked(clusters.total, a) > 0.0 and n_marked(clusters.total, b) > 0.0:
        return -INF
    gain = joint_log_marginal(target, clusters, a, b) - clusters.log_marginal[a] - clusters.log_marginal[b] + coupling
    return gain + (
        target.proposal_log_w[clusters.size[a] + clusters.size[b]]
        - target.proposal_log_w[clusters.size[a]]
        - target.proposal_log_w[clusters.size[b]]
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def merge_units(clusters: Agglomeration, a: Index, b: Index) -> cython.void:
    """Add the sites of cluster b to cluster a."""
    for d in range(clusters.counts.shape[1]):
        clusters.counts[a, d] += clusters.counts[b, d]
    for s in range(clusters.total.shape[1]):
        clusters.total[a, s] += clusters.total[b, s]
    clusters.size[a] += clusters.size[b]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def join_pairs(
    ends: cython.longlong[:, ::1],
    coupling: cython.double[::1],
    gain: cython.double[::1],
    mark: cython.longlong[::1],
    near: cython.longlong[::1],
    n_pairs: Index,
    a: Index,
    b: Index,
) -> tuple[Index, Index, Index]:
    """Replace cluster b by a in the first `n_pairs` pairs, and merge pairs that became one.

    Returns how many pairs are left, how many of them, listed in `near`, have a as an end, and the first of the others
    that gains most, -1 without one. mark (n,) is -1 everywhere, before and after.
    """
    e: Index = 0
    n_near: Index = 0
    best: Index = -1
    highest = -INF
    while e < n_pairs:
        x: Index = ends[e, 0]
        y: Index = ends[e, 1]
        if x != a and x != b and y != a and y != b:
            if gain[e] > highest:
                best, highest = e, gain[e]
            e += 1
            continue
        x = a if x == b else x
        y = a if y == b else y
        other = x + y - a
        if x == y or mark[other] >= 0:
            if x != y:
                coupling[mark[other]] += coupling[e]
            n_pairs -= 1  # the last pair takes its place
            ends[e, 0], ends[e, 1] = ends[n_pairs, 0], ends[n_pairs, 1]
            coupling[e], gain[e] = coupling[n_pairs], gain[n_pairs]
        else:
            ends[e, 0], ends[e, 1] = x, y
            mark[other], near[n_near] = e, e
            n_near += 1
            e += 1
    for i in range(n_near):
        mark[ends[near[i], 0]] = -1
        mark[ends[near[i], 1]] = -1
    return n_pairs, n_near, best


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def agglomerate_all(
    target: Target,
    clusters: Agglomeration,
    into: cython.longlong[::1],
    ends: cython.longlong[:, ::1],
    coupling: cython.double[::1],
    gain: cython.double[::1],
    mark: cython.longlong[::1],
    near: cython.longlong[::1],
) -> cython.void:
    """Merge touching clusters, always the pair with the largest gain of log posterior, while there is a gain.

    into (n,), at first every cluster itself, becomes the one that each has joined; ends (E, 2) and coupling (E,) are
    the pairs of touching clusters; gain (E,), mark (n,), all -1, and near (E,) are scratch.
    """
    n_pairs, k = ends.shape[0], clusters.size.shape[0]
    for c in range(k):
        clusters.log_marginal[c] = joint_log_marginal(target, clusters, c, c)
    n_near: Index = n_pairs
    best: Index = -1
    for e in range(n_pairs):
        near[e] = e
    while True:
        for i in range(n_near):
            e = near[i]
            gain[e] = merge_gain(target, clusters, ends[e, 0], ends[e, 1], coupling[e])
            if best < 0 or gain[e] > gain[best] or (gain[e] == gain[best] and e < best):
                best = e
        if (
            best < 0
            or gain[best] == -INF
            or (target.log_v[k] > -INF and gain[best] + target.log_v[k - 1] - target.log_v[k] <= 0.0)
        ):
            return
        a: Index = ends[best, 0]
        b: Index = ends[best, 1]
        merge_units(clusters, a, b)
        clusters.log_marginal[a] = joint_log_marginal(target, clusters, a, a)
        k -= 1
        into[b] = a
        n_pairs, n_near, best = join_pairs(ends, coupling, gain, mark, near, n_pairs, a, b)


def agglomerate(
    target: Target,
    clusters: Agglomeration,
    into: cython.longlong[::1],
    ends: cython.longlong[:, ::1],
    coupling: cython.double[::1],
    gain: cython.double[::1],
    mark: cython.longlong[::1],
    near: cython.longlong[::1],
):
    """As `agglomerate_all`, without the interpreter lock."""
    with cython.nogil:
        agglomerate_all(target, clusters, into, ends, coupling, gain, mark, near)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def pair_gains(
    target: Target,
    clusters: Agglomeration,
    ends: cython.longlong[:, ::1],
    coupling: cython.double[::1],
    changed: cython.uchar[::1],
    gain: cython.double[::1],
) -> cython.void:
    """Update `log_marginal` of the changed clusters, and gain (E,) of the pairs that one of them belongs to."""
    for c in range(changed.shape[0]):
        if changed[c]:
            clusters.log_marginal[c] = joint_log_marginal(target, clusters, c, c)
    for e in range(ends.shape[0]):
        if changed[ends[e, 0]] or changed[ends[e, 1]]:
            gain[e] = merge_gain(target, clusters, ends[e, 0], ends[e, 1], coupling[e])


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def merge_mutual(
    clusters: Agglomeration,
    ends: cython.longlong[:, ::1],
    gain: cython.double[::1],
    least: Real,
    best: cython.longlong[::1],
    into: cython.longlong[::1],
    changed: cython.uchar[::1],
) -> Index:
    """Merge every pair that gains most for both of its clusters, and more than `least`; returns how many were merged.

    best (n,) is scratch; into (n,) becomes the cluster that each belongs to, changed (n,) whether it grew or vanished.
    """
    for c in range(best.shape[0]):
        best[c], into[c], changed[c] = -1, c, 0
    for e in range(ends.shape[0]):
        for side in range(2):
            x: Index = ends[e, side]
            if best[x] < 0 or gain[e] > gain[best[x]]:
                best[x] = e
    n_merged = 0
    for e in range(ends.shape[0]):
        a: Index = ends[e, 0]
        b: Index = ends[e, 1]
        if best[a] == e and best[b] == e and gain[e] > least:
            merge_units(clusters, a, b)
            into[b], changed[a], changed[b] = a, 1, 1
            n_merged += 1
    return n_merged
