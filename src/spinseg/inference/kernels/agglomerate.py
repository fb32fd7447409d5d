"""Greedy agglomeration: a start near a mode."""

import numpy as np

from spinseg._compiled import internal, jit
from spinseg.inference.kernels.likelihood import bin_value, dense_log_marginal


@internal
def merged_log_marginal(likelihood, counts, total, joined, a, b):
    """log p(y) of clusters a and b together; of one alone where b = a. Rows of `counts` and `total` are clusters."""
    table, table_start, law, block, parameter, work = likelihood
    log_p = 0.0
    for d in range(counts.shape[1]):
        c = counts[a, d] + (counts[b, d] if b != a else 0)
        if c > 0:
            log_p += bin_value(table, table_start, law, d, c)
    if block.shape[0] > 0:
        for s in range(joined.size):
            joined[s] = total[a, s] + (total[b, s] if b != a else 0.0)
        log_p += dense_log_marginal(block, parameter, joined, work)
    return log_p


@internal
def join_pairs(ends, coupling, gain, mark, n_pairs, a, b):
    """Let cluster a take the place of b in the first `n_pairs` pairs, and merge pairs that became one; their number.

    mark (n,) is -1 everywhere, before and after.
    """
    e = 0
    while e < n_pairs:
        x, y = ends[e, 0], ends[e, 1]
        x, y = a if x == b else x, a if y == b else y
        other = x + y - a
        gone = x == y
        if not gone and (x == a or y == a):
            if mark[other] >= 0:
                coupling[mark[other]] += coupling[e]
                gone = True
            else:
                mark[other] = e
        if gone:  # the last takes its place
            n_pairs -= 1
            ends[e, 0], ends[e, 1] = ends[n_pairs, 0], ends[n_pairs, 1]
            coupling[e], gain[e] = coupling[n_pairs], gain[n_pairs]
        else:
            ends[e, 0], ends[e, 1] = x, y
            e += 1
    for e in range(n_pairs):
        mark[ends[e, 0]] = mark[ends[e, 1]] = -1
    return n_pairs


@jit
def agglomerate(likelihood, log_v, log_w, label, ends, coupling, gain, counts, total, joined, own, size, mark):
    """Merge touching clusters, always the pair with the largest gain of log posterior, while there is a gain.

    label (n,) is the cluster that each belongs to, at first itself; ends (E, 2), coupling (E,) are pairs of touching
    clusters, gain (E,) scratch; counts (n, D), total (n, S), size (n,) and, to be filled, own (n,) belong to clusters.
    """
    n_pairs, k = ends.shape[0], size.size
    for c in range(k):
        own[c] = merged_log_marginal(likelihood, counts, total, joined, c, c)
    a = -1  # the cluster that has just grown
    while True:
        at = -1
        for e in range(n_pairs):
            x, y = ends[e, 0], ends[e, 1]
            if a < 0 or x == a or y == a:
                gain[e] = merged_log_marginal(likelihood, counts, total, joined, x, y) - own[x] - own[y] + coupling[e]
                gain[e] += log_w[size[x] + size[y]] - log_w[size[x]] - log_w[size[y]]
            if at < 0 or gain[e] > gain[at]:
                at = e
        if at < 0 or (log_v[k] > -np.inf and gain[at] + log_v[k - 1] - log_v[k] <= 0.0):
            return
        a, b = ends[at, 0], ends[at, 1]
        for d in range(counts.shape[1]):
            counts[a, d] += counts[b, d]
        for s in range(total.shape[1]):
            total[a, s] += total[b, s]
        own[a] = merged_log_marginal(likelihood, counts, total, joined, a, a)
        size[a] += size[b]
        k -= 1
        for i in range(label.size):
            label[i] = a if label[i] == b else label[i]
        n_pairs = join_pairs(ends, coupling, gain, mark, n_pairs, a, b)


@jit
def pair_gains(likelihood, log_w, ends, coupling, changed, gain, counts, total, joined, own, size):
    """Fill own (n,) of the changed clusters, and gain (E,) of the pairs that one of them belongs to."""
    for c in range(changed.size):
        if changed[c]:
            own[c] = merged_log_marginal(likelihood, counts, total, joined, c, c)
    for e in range(ends.shape[0]):
        x, y = ends[e, 0], ends[e, 1]
        if changed[x] or changed[y]:
            gain[e] = merged_log_marginal(likelihood, counts, total, joined, x, y) - own[x] - own[y] + coupling[e]
            gain[e] += log_w[size[x] + size[y]] - log_w[size[x]] - log_w[size[y]]


@jit
def merge_mutual(ends, gain, least, counts, total, size, best, into, changed):
    """Merge every pair that gains most for both of its clusters, and more than `least`; how many were merged.

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
            for d in range(counts.shape[1]):
                counts[a, d] += counts[b, d]
            for s in range(total.shape[1]):
                total[a, s] += total[b, s]
            size[a] += size[b]
            into[b], changed[a], changed[b] = a, True, True
            n_merged += 1
    return n_merged
