"""Greedy agglomeration: a start near a mode."""

import numpy as np

from spinseg._bundle import Bundle
from spinseg._compiled import internal, jit
from spinseg.sampler.kernels.constraints import n_marked
from spinseg.sampler.kernels.likelihood import bin_value, dense_log_marginal


class Agglomeration(Bundle):
    """The clusters of an agglomeration, n at first, and scratch space."""

    counts: np.ndarray  # (n, D) int32; summed counts of each cluster
    total: np.ndarray  # (n, S) float64; its summed statistics
    log_marginal: np.ndarray  # (n,) float64; its log marginal
    size: np.ndarray  # (n,) int64; its sites
    joined: np.ndarray  # (S,) float64; scratch
    work: np.ndarray  # float64; scratch for a Cholesky factor


@internal
def joint_log_marginal(target, clusters, a, b):
    """log p(y) of clusters a and b together; of one alone where b = a."""
    tables = target.table, target.table_start, target.bin_prior
    counts, total, joined = clusters.counts, clusters.total, clusters.joined
    log_p = 0.0
    for d in range(counts.shape[1]):
        c = counts[a, d] + (counts[b, d] if b != a else 0)
        if c > 0:
            log_p += bin_value(tables, d, c)
    if target.block.shape[0] > 0:
        for s in range(joined.size):
            joined[s] = total[a, s] + (total[b, s] if b != a else 0.0)
        log_p += dense_log_marginal(target, joined, clusters.work)
    return log_p


@internal
def merge_gain(target, clusters, a, b, coupling):
    """Gain of log posterior if clusters a and b merge, without log_v; -inf if both hold a marker.

    Size limits are checked after clusters.
    """
    total, size, log_marginal, log_w = clusters.total, clusters.size, clusters.log_marginal, target.proposal_log_w
    if target.marker_size.size > 0 and n_marked(total[a]) > 0.0 and n_marked(total[b]) > 0.0:
        return -np.inf
    gain = joint_log_marginal(target, clusters, a, b) - log_marginal[a] - log_marginal[b] + coupling
    return gain + (log_w[size[a] + size[b]] - log_w[size[a]] - log_w[size[b]])


@internal
def merge(clusters, a, b):
    """Add the sites of cluster b to cluster a."""
    counts, total = clusters.counts, clusters.total
    for d in range(counts.shape[1]):
        counts[a, d] += counts[b, d]
    for s in range(total.shape[1]):
        total[a, s] += total[b, s]
    clusters.size[a] += clusters.size[b]


@internal
def join_pairs(ends, coupling, gain, mark, near, n_pairs, a, b):
    """Replace cluster b by a in the first `n_pairs` pairs, and merge pairs that became one.

    Returns how many pairs are left, how many of them, listed in `near`, have a as an end, and the first of the others
    that gains most, -1 without one. mark (n,) is -1 everywhere, before and after.
    """
    e, n_near, best, highest = 0, 0, -1, -np.inf
    while e < n_pairs:
        x, y = ends[e, 0], ends[e, 1]
        if x != a and x != b and y != a and y != b:
            if gain[e] > highest:
                best, highest = e, gain[e]
            e += 1
            continue
        x, y = a if x == b else x, a if y == b else y
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
        mark[ends[near[i], 0]] = mark[ends[near[i], 1]] = -1
    return n_pairs, n_near, best


@jit
def agglomerate(target, clusters, into, ends, coupling, gain, mark, near):
    """Merge touching clusters, always the pair with the largest gain of log posterior, while there is a gain.

    into (n,), at first every cluster itself, becomes the one that each has joined; ends (E, 2) and coupling (E,) are
    the pairs of touching clusters; gain (E,), mark (n,), all -1, and near (E,) are scratch.
    """
    log_v, size, log_marginal = target.log_v, clusters.size, clusters.log_marginal
    n_pairs, k = ends.shape[0], size.size
    for c in range(k):
        log_marginal[c] = joint_log_marginal(target, clusters, c, c)
    n_near, best = n_pairs, -1
    for e in range(n_pairs):
        near[e] = e
    while True:
        for i in range(n_near):
            e = near[i]
            gain[e] = merge_gain(target, clusters, ends[e, 0], ends[e, 1], coupling[e])
            if best < 0 or gain[e] > gain[best] or (gain[e] == gain[best] and e < best):
                best = e
        if best < 0 or gain[best] == -np.inf or (log_v[k] > -np.inf and gain[best] + log_v[k - 1] - log_v[k] <= 0.0):
            return
        a, b = ends[best, 0], ends[best, 1]
        merge(clusters, a, b)
        log_marginal[a] = joint_log_marginal(target, clusters, a, a)
        k -= 1
        into[b] = a
        n_pairs, n_near, best = join_pairs(ends, coupling, gain, mark, near, n_pairs, a, b)


@jit
def pair_gains(target, clusters, ends, coupling, changed, gain):
    """Update `log_marginal` of the changed clusters, and gain (E,) of the pairs that one of them belongs to."""
    for c in range(changed.size):
        if changed[c]:
            clusters.log_marginal[c] = joint_log_marginal(target, clusters, c, c)
    for e in range(ends.shape[0]):
        if changed[ends[e, 0]] or changed[ends[e, 1]]:
            gain[e] = merge_gain(target, clusters, ends[e, 0], ends[e, 1], coupling[e])


@jit
def merge_mutual(clusters, ends, gain, least, best, into, changed):
    """Merge every pair that gains most for both of its clusters, and more than `least`; returns how many were merged.

    best (n,) is scratch; into (n,) becomes the cluster that each belongs to, changed (n,) whether it grew or vanished.
    """
    for c in range(best.size):
        best[c], into[c], changed[c] = -1, c, False
    for e in range(ends.shape[0]):
        for x in (ends[e, 0], ends[e, 1]):
            if best[x] < 0 or gain[e] > gain[best[x]]:
                best[x] = e
    n_merged = 0
    for e in range(ends.shape[0]):
        a, b = ends[e, 0], ends[e, 1]
        if best[a] == e and best[b] == e and gain[e] > least:
            merge(clusters, a, b)
            into[b], changed[a], changed[b] = a, True, True
            n_merged += 1
    return n_merged
