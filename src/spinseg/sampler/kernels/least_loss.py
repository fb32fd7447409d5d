"""The compiled search for the partition of least expected loss.

The loss is a sum over cluster sizes minus a sum over the cells of the contingency tables with the draws. It is given by
two tables: `size_cost[m]`, the cost of the (m+1)-th site of a cluster, and `cell_gain[c]`, the gain of the (c+1)-th
site of a cell. Both are 0 at 0, so that an empty slot, which stands for a new cluster, needs no case of its own. A
cluster that several draws have counts once, with their number as its weight.

Where clusters must be connected in a graph, a site joins only clusters that it touches, or founds one, and leaves only
where the rest stays connected. Where there are seeds, sites with a seed stay in their cluster, and clusters with
different seeds do not merge. Nothing is tried again that did not gain, while the slots that it concerns stay the same.
"""

import cython
import numpy as np

from spinseg.sampler.kernels.constraints import leaves_connected
from spinseg.sampler.kernels.state import INF, Fields, Index, Real, writable


@cython.final
@cython.cclass
class Search(Fields):
    """The draws and the current partition: n sites, R different clusters in all draws together."""

    first: cython.longlong[::1]  # (n + 1,); the clusters of site i are row[first[i]..first[i+1]]
    row: cython.uint[::1]  # from 0 to R - 1
    weight: cython.double[::1]  # (R,); how many draws have a cluster
    size_cost: cython.double[::1]  # (n,); summed over draws
    cell_gain: cython.double[::1]  # (n + 1,); the last entry is never used
    size_total: cython.double[::1]  # (n + 1,); sums of `size_cost` before each entry
    cell_total: cython.double[::1]  # (n + 1,)
    label: cython.int[::1]  # (n,); slot of each site, -1 if not allocated
    size: cython.int[::1]  # (capacity,); sites in each slot
    cell: cython.uint[:, :]  # (R, capacity); sites that a cluster of a draw shares with a slot
    value: cython.double[:, :]  # (R, capacity); weight times cell_gain at `cell`
    rows: cython.double[:, ::1]  # `value` where its rows lie together, as without a graph; else empty
    score: cython.double[::1]  # (capacity,); scratch
    member: cython.longlong[::1]  # (n,); scratch
    shared: cython.longlong[::1]  # (R,); scratch
    kept: cython.uint[::1]  # (R,); scratch
    # The graph, and scratch for searches in it; all empty where clusters need not be connected.
    start: cython.ulonglong[::1]  # (n + 1,); the neighbors of site i are neighbor[start[i]..start[i+1]]
    neighbor: cython.uint[::1]  #
    queue: cython.uint[::1]  # (n,)
    place: cython.uint[::1]  # (n,); 0 between calls
    pending: cython.uint[::1]  # (n,)
    seed: cython.longlong[::1]  # (n,); 0 for none
    # How many changes there were, and how many when something was last changed, or tried without gain.
    clock: cython.longlong[::1]  # (1,)
    changed: cython.longlong[::1]  # (capacity,)
    merged: cython.longlong[::1]  # (capacity,); with each slot that this one touches
    moved: cython.longlong[::1]  # (n,)

    def __init__(self, **arrays):
        arrays = writable(arrays)
        rows = arrays["value"] if arrays["value"].flags.c_contiguous else np.empty((0, 0))
        self.values = arrays | {"rows": rows}
        self.rows = rows
        self.first, self.row, self.weight = arrays["first"], arrays["row"], arrays["weight"]
        self.size_cost, self.cell_gain = arrays["size_cost"], arrays["cell_gain"]
        self.size_total, self.cell_total = arrays["size_total"], arrays["cell_total"]
        self.label, self.size, self.cell, self.value = arrays["label"], arrays["size"], arrays["cell"], arrays["value"]
        self.score, self.member, self.shared = arrays["score"], arrays["member"], arrays["shared"]
        self.kept, self.start, self.neighbor = arrays["kept"], arrays["start"], arrays["neighbor"]
        self.queue, self.place, self.pending = arrays["queue"], arrays["place"], arrays["pending"]
        self.seed, self.clock, self.changed = arrays["seed"], arrays["clock"], arrays["changed"]
        self.merged, self.moved = arrays["merged"], arrays["moved"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_site(search: Search, i: Index, k: Index) -> Real:
    """Add site i to slot k; return the change of loss, summed over draws."""
    change: Real = search.size_cost[search.size[k]]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        change -= search.value[r, k]
        search.cell[r, k] += 1
        search.value[r, k] = search.weight[r] * search.cell_gain[search.cell[r, k]]
    search.size[k] += 1
    search.label[i] = k
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def remove_site(search: Search, i: Index) -> Real:
    """Remove site i from its slot; return the change of loss."""
    k = search.label[i]
    search.label[i] = -1
    search.size[k] -= 1
    change: Real = -search.size_cost[search.size[k]]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        search.cell[r, k] -= 1
        search.value[r, k] = search.weight[r] * search.cell_gain[search.cell[r, k]]
        change += search.value[r, k]
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def best_slot(search: Search, i: Index, min_gain: Real) -> Index:
    """Return the slot of least loss for site i; its own slot, if any, unless another gains more than `min_gain`."""
    own = search.label[i]
    top = search.size.shape[0]
    while top > 0 and search.size[top - 1] == 0:
        top -= 1
    top = min(top + 1, search.size.shape[0])  # includes an empty slot, if there is one
    for k in range(top):
        search.score[k] = search.size_cost[search.size[k] - (k == own)]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        for k in range(top):
            search.score[k] -= search.rows[r, k]
        if own >= 0:  # the loss in its own slot is that without the site
            search.score[own] += search.value[r, own] - search.weight[r] * search.cell_gain[search.cell[r, own] - 1]
    best: Index = max(own, 0)
    for k in range(top):
        if search.score[k] < search.score[best] - (min_gain if best == own else 0.0):
            best = k
    return best


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def add_sites(search: Search, labels: cython.int[::1]) -> Real:
    """Add each site to the slot in `labels`, -1 for none, from empty tables; return the loss, up to a constant."""
    loss = 0.0
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            loss += add_site(search, i, labels[i])
    return loss


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def remove_sites(search: Search) -> cython.void:
    """Remove all sites that are allocated: less work than to clear the tables."""
    for i in range(search.label.shape[0]):
        if search.label[i] >= 0:
            remove_site(search, i)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def improve_sites_unlocked(search: Search, order: cython.longlong[::1], min_gain: Real) -> Real:
    """Move each site to the slot of least loss, if that gains more than `min_gain`; return the change of loss."""
    change = 0.0
    for q in range(order.shape[0]):
        i = order[q]
        best = best_slot(search, i, min_gain)
        if best != search.label[i]:
            if search.label[i] >= 0:
                change += remove_site(search, i)
            change += add_site(search, i, best)
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def members_of(search: Search, order: cython.longlong[::1], k: Index) -> Index:
    """List the sites of slot k in `member`, in this order; returns how many there are."""
    n_members = 0
    for q in range(order.shape[0]):
        if search.label[order[q]] == k:
            search.member[n_members] = order[q]
            n_members += 1
    return n_members


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_all(search: Search, n_members: Index, k: Index) -> Real:
    """Move the listed sites, allocated or not, to slot k; returns the change of loss."""
    change = 0.0
    for q in range(n_members):
        if search.label[search.member[q]] >= 0:
            change += remove_site(search, search.member[q])
    for q in range(n_members):
        change += add_site(search, search.member[q], k)
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def reallocate_unlocked(search: Search, order: cython.longlong[::1], min_gain: Real) -> Real:
    """Dissolve each cluster and reallocate its sites, if that gains more than `min_gain`; return the change of loss."""
    total = 0.0
    for k in range(search.size.shape[0]):
        n_members, change = members_of(search, order, k), 0.0
        for q in range(n_members):
            change += remove_site(search, search.member[q])
        for q in range(n_members):
            change += add_site(search, search.member[q], best_slot(search, search.member[q], min_gain))
        if change > -min_gain:
            put_all(search, n_members, k)
        else:
            total += change
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def seed_in(search: Search, k: Index) -> Index:
    """The seed that the sites of a slot have; 0 if none has one."""
    for i in range(search.seed.shape[0]):
        if search.seed[i] > 0 and search.label[i] == k:
            return search.seed[i]
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_in_one_piece(search: Search, k: Index) -> cython.bint:
    """Whether the sites of an occupied slot are connected."""
    n_found, n_followed = 1, 0
    search.queue[0] = 0
    while search.label[search.queue[0]] != k:
        search.queue[0] += 1
    search.place[search.queue[0]] = 1
    while n_followed < n_found:
        i = search.queue[n_followed]
        for h in range(search.start[i], search.start[i + 1]):
            j = search.neighbor[h]
            if search.label[j] == k and search.place[j] == 0:
                search.queue[n_found], search.place[j] = j, 1
                n_found += 1
        n_followed += 1
    for q in range(n_found):
        search.place[search.queue[q]] = 0
    return n_found == search.size[k]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def note_change(search: Search, k: Index) -> cython.void:
    """Note that a slot has other sites than before."""
    search.clock[0] += 1
    search.changed[k] = search.clock[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def loss_in(search: Search, i: Index, k: Index) -> Real:
    """The change of loss if site i, which is not allocated, joins slot k."""
    change: Real = search.size_cost[search.size[k]]
    for h in range(search.first[i], search.first[i + 1]):
        change -= search.value[search.row[h], k]
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def loss_in_own(search: Search, i: Index) -> Real:
    """The change of loss if site i, once removed from its slot, joins it again."""
    k = search.label[i]
    change: Real = search.size_cost[search.size[k] - 1]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        change -= search.weight[r] * search.cell_gain[search.cell[r, k] - 1]
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def empty_slot(search: Search) -> Index:
    """An empty slot; -1 if there is none."""
    for k in range(search.size.shape[0]):
        if search.size[k] == 0:
            return k
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def best_touching(search: Search, i: Index) -> tuple[Index, Real]:
    """The slot of least loss for a site, of an empty one and the others that it touches, -1 if none; and the loss."""
    own, start = search.label[i], search.start[i]
    best, least = empty_slot(search), INF
    if best >= 0:
        least = 0.0
    for h in range(start, search.start[i + 1]):
        k, before = search.label[search.neighbor[h]], start
        if k >= 0 and k != own:
            while search.label[search.neighbor[before]] != k:
                before += 1
            if before == h:  # the first neighbor in this slot
                loss = loss_in(search, i, k)
                if loss < least:
                    best, least = k, loss
    return best, least


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_settled(search: Search, i: Index) -> cython.bint:
    """Whether the slots around a site are those in which it was better off where it is."""
    latest = search.changed[search.label[i]]
    for h in range(search.start[i], search.start[i + 1]):
        latest = max(latest, search.changed[search.label[search.neighbor[h]]])
    return latest <= search.moved[i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def improve_connected_unlocked(search: Search, order: cython.longlong[::1], min_gain: Real) -> Real:
    """As `improve_sites_unlocked`, with clusters that stay connected."""
    total = 0.0
    for q in range(order.shape[0]):
        i, own = order[q], search.label[order[q]]
        if search.seed[i] > 0 or is_settled(search, i):
            continue
        best, least = best_touching(search, i)
        if least <= loss_in_own(search, i) - min_gain:
            search.label[i] = -1
            search.kept[0] = i
            is_free = leaves_connected(
                search.start,
                search.neighbor,
                search.label,
                own,
                search.label,
                -1,
                search.kept,
                0,
                1,
                search.queue,
                search.place,
                search.pending,
            )
            search.label[i] = own
            if is_free:
                total += remove_site(search, i) + add_site(search, i, best)
                note_change(search, own)
                note_change(search, best)
        if least <= 0.0:  # else there was no empty slot, and there may be one later
            search.moved[i] = search.clock[0]
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def touches_allocated(search: Search, i: Index) -> cython.bint:
    """Whether a neighbor of site i is allocated."""
    found: cython.bint = False
    for h in range(search.start[i], search.start[i + 1]):
        found |= search.label[search.neighbor[h]] >= 0
    return found


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def allocate_connected(search: Search, order: cython.longlong[::1], n_sites: Index) -> Real:
    """Allocate each of order[:n_sites] that is not, once it touches one that is; return the change of loss.

    Where none does, one founds a cluster. The result is infinite if there is no slot for it.
    """
    total = 0.0
    while True:
        n_allocated: Index = 0
        waiting: Index = -1
        for q in range(n_sites):
            i = order[q]
            if search.label[i] < 0 and touches_allocated(search, i):
                total += add_site(search, i, best_touching(search, i)[0])
                n_allocated += 1
            elif search.label[i] < 0:
                waiting = i
        if waiting < 0:
            return total
        if n_allocated == 0:
            k = empty_slot(search)
            if k < 0:
                return INF
            total += add_site(search, waiting, k)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def list_shared(search: Search, k: Index) -> Index:
    """List in `shared` the clusters of the draws that have sites of slot k; returns how many there are."""
    n_shared = 0
    for r in range(search.shared.shape[0]):
        if search.cell[r, k] > 0:
            search.shared[n_shared] = r
            n_shared += 1
    return n_shared


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def change_if_joined(search: Search, k: Index, other: Index, n_shared: Index) -> Real:
    """The change of loss if the sites of slot k, whose shared clusters are listed, join another slot."""
    change = (
        search.size_total[search.size[k] + search.size[other]]
        - search.size_total[search.size[k]]
        - search.size_total[search.size[other]]
    )
    for q in range(n_shared):
        r = search.shared[q]
        a: Index = search.cell[r, k]
        b: Index = search.cell[r, other]
        if b > 0:
            change -= search.weight[r] * (search.cell_total[a + b] - search.cell_total[a] - search.cell_total[b])
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def dissolve(search: Search, k: Index, n_members: Index, n_shared: Index, seed: Index) -> Real:
    """Remove the sites of a slot, whose shared clusters are listed, except those with a seed; the change of loss."""
    if seed > 0:
        change: Real = 0.0
        for q in range(n_shared):
            search.kept[q] = search.cell[search.shared[q], k]
        for q in range(n_members):
            if search.seed[search.member[q]] == 0:
                change += remove_site(search, search.member[q])
        return change
    change = -search.size_total[n_members]
    search.size[k] = 0
    for q in range(n_shared):
        r = search.shared[q]
        search.kept[q] = search.cell[r, k]
        change += search.weight[r] * search.cell_total[search.kept[q]]
        search.cell[r, k], search.value[r, k] = 0, 0.0
    for q in range(n_members):
        search.label[search.member[q]] = -1
    return change


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def restore(search: Search, k: Index, n_members: Index, n_shared: Index) -> cython.void:
    """Return all sites of a slot that was dissolved to it."""
    for q in range(n_members):
        if search.seed[search.member[q]] == 0:
            if search.label[search.member[q]] >= 0:
                remove_site(search, search.member[q])
            search.label[search.member[q]] = k
    search.size[k] = n_members
    for q in range(n_shared):
        r = search.shared[q]
        search.cell[r, k] = search.kept[q]
        search.value[r, k] = search.weight[r] * search.cell_gain[search.kept[q]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def reallocate_connected_unlocked(search: Search, order: cython.longlong[::1], min_gain: Real) -> Real:
    """Merge each cluster with each one that it touches, or dissolve it and reallocate its sites, where that gains.

    Sites with a seed are not reallocated, and keep their cluster; it must be connected in the end.
    """
    total = 0.0
    for k in range(search.size.shape[0]):
        if search.size[k] == 0:
            continue
        n_members, n_shared, seed = members_of(search, order, k), list_shared(search, k), seed_in(search, k)
        for t in range(search.score.shape[0]):  # of the slots that were tried
            search.score[t] = 0.0
        for q in range(n_members):
            for h in range(search.start[search.member[q]], search.start[search.member[q] + 1]):
                other = search.label[search.neighbor[h]]
                if search.label[search.member[0]] != k or other == k or search.score[other] > 0.0:
                    continue
                search.score[other] = 1.0
                if max(search.changed[k], search.changed[other]) <= max(search.merged[k], search.merged[other]):
                    continue
                if seed > 0 and seed_in(search, other) > 0:
                    continue
                if change_if_joined(search, k, other, n_shared) <= -min_gain:
                    total += put_all(search, n_members, other)
                    note_change(search, k)
                    note_change(search, other)
        if search.label[search.member[0]] == k:
            search.merged[k] = search.clock[0]
            change = dissolve(search, k, n_members, n_shared, seed) + allocate_connected(
                search, search.member, n_members
            )
            if change > -min_gain or (seed > 0 and not is_in_one_piece(search, k)):
                restore(search, k, n_members, n_shared)
            else:
                total += change
                note_change(search, k)
                for q in range(n_members):
                    note_change(search, search.label[search.member[q]])
    return total


def improve_sites(search: Search, order: cython.longlong[::1], min_gain: Real):
    """Move each site to the slot of least loss, if that gains more than `min_gain`; return the change of loss."""
    with cython.nogil:
        change = improve_sites_unlocked(search, order, min_gain)
    return change


def reallocate(search: Search, order: cython.longlong[::1], min_gain: Real):
    """Dissolve each cluster and reallocate its sites, if that gains more than `min_gain`; return the change of loss."""
    with cython.nogil:
        change = reallocate_unlocked(search, order, min_gain)
    return change


def improve_connected(search: Search, order: cython.longlong[::1], min_gain: Real):
    """As `improve_sites`, with clusters that stay connected."""
    with cython.nogil:
        change = improve_connected_unlocked(search, order, min_gain)
    return change


def reallocate_connected(search: Search, order: cython.longlong[::1], min_gain: Real):
    """As `reallocate`, with clusters that stay connected, which are also merged."""
    with cython.nogil:
        change = reallocate_connected_unlocked(search, order, min_gain)
    return change
