"""What restricts partitions: clusters that must be connected, and seeds that must be kept.

The compiled code calls the seeds of a model *markers*: there, a seed is a site from which growth starts. The sites of
one marker lie in one cluster, those of different markers in different clusters. The last two statistics of a site are 1
if it has a marker, and the marker's number. They add up like all others. Without markers there are none.
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


@internal
def set_root(place, i):
    """The first site of the set that a search has found site i in, halving the path to it."""
    while place[i] != i + 1:
        place[i] = place[place[i] - 1]
        i = place[i] - 1
    return i


@internal
def leaves_connected(start, neighbor, label, own, spin, c, group, queue, place, pending):
    """Whether the cluster of label `own` is connected, or empty, without the sites `group`, which have spin c.

    A search spreads from all neighbors of the group at once, inside what would be left, and joins sets of sites that
    meet. It ends when one set is left, or when one has nowhere to go: after a short way around, or the smallest piece
    that would be cut off. The last three arrays are scratch; `place` is zero before and after.
    """
    n_found, n_sets = 0, 0
    for q in range(group.size):
        for h in range(start[group[q]], start[group[q] + 1]):
            j = neighbor[h]
            if label[j] == own and spin[j] != c and place[j] == 0:
                place[j], pending[j], queue[n_found] = j + 1, 1, j
                n_found += 1
                n_sets += 1
    at, is_cut = 0, False
    while n_sets > 1 and not is_cut:
        i = queue[at]
        at += 1
        for h in range(start[i], start[i + 1]):
            j = neighbor[h]
            if label[j] != own or spin[j] == c:
                continue
            mine = set_root(place, i)
            if place[j] == 0:
                place[j], queue[n_found] = mine + 1, j
                n_found += 1
                pending[mine] += 1
                continue
            other = set_root(place, j)
            if other != mine:
                place[other] = mine + 1
                pending[mine] += pending[other]
                n_sets -= 1
        mine = set_root(place, i)
        pending[mine] -= 1
        is_cut = n_sets > 1 and pending[mine] == 0
    for q in range(n_found):
        place[queue[q]] = 0
    return not is_cut


@internal
def couplings_between(target, state, i, j):
    """The summed couplings between the clusters of sites i and j, by a search through that of i."""
    start, neighbor, beta, label, queue, place = (
        target.start,
        target.neighbor,
        target.beta,
        state.label,
        state.queue,
        state.place,
    )
    own, other, between, n_found, at = label[i], label[j], 0.0, 1, 0
    queue[0], place[i] = i, 1
    while at < n_found:
        u = queue[at]
        at += 1
        for h in range(start[u], start[u + 1]):
            v = neighbor[h]
            between += beta[h] * (label[v] == other)
            if label[v] == own and place[v] == 0:
                queue[n_found], place[v] = v, 1
                n_found += 1
    for q in range(n_found):
        place[queue[q]] = 0
    return between
