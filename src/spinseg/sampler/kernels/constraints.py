"""What restricts partitions: clusters that must be connected, and seeds that must be kept.

The compiled code calls the seeds of a model *markers*: there, a seed is a site from which growth starts. The sites of
one marker lie in one cluster, those of different markers in different clusters. The last two statistics of a site are 1
if it has a marker, and the marker's number. They add up like all others. Without markers there are none.
"""

import cython

from spinseg.sampler.kernels.state import Index, Real, State, Target

Label = cython.fused_type(cython.int, cython.uint)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def n_marked(total: cython.double[:, ::1], row: Index) -> Real:
    """How many of the sites with these summed statistics, a row of `total`, have a marker."""
    return total[row, total.shape[1] - 2]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def n_pooled(state: State) -> Real:
    """How many of the pooled sites have a marker."""
    return state.pool_total[state.pool_total.shape[0] - 2]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def marker_of(n: Real, numbers: Real) -> Index:
    """The marker of sites of which n have one, and the same, with this sum of its numbers; 0 if none."""
    return cython.cast(cython.longlong, numbers / n + 0.5) if n > 0.0 else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def marker_in(total: cython.double[:, ::1], row: Index) -> Index:
    """The marker of sites with these summed statistics, a row of `total`, which have one at most; 0 if none."""
    return marker_of(n_marked(total, row), total[row, total.shape[1] - 1])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pooled_marker(state: State) -> Index:
    """The marker of the pooled sites, which have one at most; 0 if none."""
    return marker_of(n_pooled(state), state.pool_total[state.pool_total.shape[0] - 1])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def holds_part(target: Target, state: State) -> cython.bint:
    """Whether the pooled sites have some of the sites of a marker, and not all."""
    n = n_pooled(state)
    return n > 0.0 and n < target.marker_size[pooled_marker(state)]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def set_root(place: cython.uint[::1], i: Index) -> Index:
    """The first site of the set that a search has found site i in, halving the path to it."""
    while place[i] != i + 1:
        place[i] = place[place[i] - 1]
        i = place[i] - 1
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def leaves_connected(
    start: cython.ulonglong[::1],
    neighbor: cython.uint[::1],
    label: Label[::1],
    own: Index,
    spin: Label[::1],
    c: Index,
    member: cython.uint[::1],
    begin: Index,
    end: Index,
    queue: cython.uint[::1],
    place: cython.uint[::1],
    pending: cython.uint[::1],
) -> cython.bint:
    """Whether the cluster of label `own` is connected, or empty, without the sites member[begin:end], of spin c.

    A search spreads from all their neighbors at once, inside what would be left, and joins sets of sites that
    meet. It ends when one set is left, or when one has nowhere to go: after a short way around, or the smallest piece
    that would be cut off. The last three arrays are scratch; `place` is zero before and after.
    """
    n_found, n_sets = 0, 0
    for q in range(begin, end):
        i = member[q]
        for h in range(start[i], start[i + 1]):
            j = neighbor[h]
            if label[j] == own and spin[j] != c and place[j] == 0:
                place[j], pending[j], queue[n_found] = j + 1, 1, j
                n_found += 1
                n_sets += 1
    n_followed: Index = 0
    is_cut: cython.bint = False
    while n_sets > 1 and not is_cut:
        i = queue[n_followed]
        n_followed += 1
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def couplings_between(target: Target, state: State, i: Index, j: Index) -> Real:
    """The summed couplings between the clusters of sites i and j, by a search through that of i."""
    own, other, n_found, n_followed = state.label[i], state.label[j], 1, 0
    between: Real = 0.0
    state.queue[0], state.place[i] = i, 1
    while n_followed < n_found:
        u = state.queue[n_followed]
        n_followed += 1
        for h in range(target.start[u], target.start[u + 1]):
            v = target.neighbor[h]
            between += target.beta[h] * (state.label[v] == other)
            if state.label[v] == own and state.place[v] == 0:
                state.queue[n_found], state.place[v] = v, 1
                n_found += 1
    for q in range(n_found):
        state.place[state.queue[q]] = 0
    return between
