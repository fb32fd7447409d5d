"""The compiled search for the partition of least expected loss.

The loss is a sum over cluster sizes minus a sum over the cells of the contingency tables with the draws. It is given by
two tables: `size_cost[m]`, the cost of the (m+1)-th site of a cluster, and `cell_gain[c]`, the gain of the (c+1)-th
site of a cell. Both are 0 at 0, so that an empty slot, which stands for a new cluster, needs no case of its own. A
cluster that several draws have counts once, with their number as its weight.

Where clusters must be connected in a graph, a site joins only clusters that it touches, or founds one, and leaves only
where the rest stays connected. Where there are seeds, sites with a seed stay in their cluster, and clusters with
different seeds do not merge. Nothing is tried again that did not gain, while the slots that it concerns stay the same.
"""

import numpy as np

from spinseg._bundle import Bundle
from spinseg._compiled import internal, jit
from spinseg.sampler.kernels.constraints import leaves_connected


class Search(Bundle):
    """The draws and the current partition: n sites, R different clusters in all draws together."""

    first: np.ndarray  # (n + 1,) int64; the clusters of site i are row[first[i]..first[i+1]]
    row: np.ndarray  # uint32; from 0 to R - 1
    weight: np.ndarray  # (R,) float64; how many draws have a cluster
    size_cost: np.ndarray  # (n,) float64; summed over draws
    cell_gain: np.ndarray  # (n + 1,) float64; the last entry is never used
    size_total: np.ndarray  # (n + 1,) float64; sums of `size_cost` before each entry
    cell_total: np.ndarray  # (n + 1,) float64
    label: np.ndarray  # (n,) int32; slot of each site, -1 if not allocated
    size: np.ndarray  # (capacity,) int32; sites in each slot
    cell: np.ndarray  # (R, capacity) uint32; sites that a cluster of a draw shares with a slot
    value: np.ndarray  # (R, capacity) float64; weight times cell_gain at `cell`
    score: np.ndarray  # (capacity,) float64; scratch
    member: np.ndarray  # (n,) int64; scratch
    shared: np.ndarray  # (R,) int64; scratch
    kept: np.ndarray  # (R,) uint32; scratch
    # The graph, and scratch for searches in it; all empty where clusters need not be connected.
    start: np.ndarray  # (n + 1,) int64; the neighbors of site i are neighbor[start[i]..start[i+1]]
    neighbor: np.ndarray  # int32
    queue: np.ndarray  # (n,) int32
    place: np.ndarray  # (n,) int32; 0 between calls
    pending: np.ndarray  # (n,) int32
    seed: np.ndarray  # (n,) int64; 0 for none
    # How many changes there were, and how many when something was last changed, or tried without gain.
    clock: np.ndarray  # (1,) int64
    changed: np.ndarray  # (capacity,) int64
    merged: np.ndarray  # (capacity,) int64; with each slot that this one touches
    moved: np.ndarray  # (n,) int64


@internal
def add_site(search: Search, i: int, k: int) -> float:
    """Add site i to slot k; return the change of loss, summed over draws."""
    cell, value = search.cell, search.value
    change = search.size_cost[search.size[k]]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        change -= value[r, k]
        cell[r, k] += 1
        value[r, k] = search.weight[r] * search.cell_gain[cell[r, k]]
    search.size[k] += 1
    search.label[i] = k
    return change


@internal
def remove_site(search: Search, i: int) -> float:
    """Remove site i from its slot; return the change of loss."""
    cell, value = search.cell, search.value
    k = search.label[i]
    search.label[i] = -1
    search.size[k] -= 1
    change = -search.size_cost[search.size[k]]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        cell[r, k] -= 1
        value[r, k] = search.weight[r] * search.cell_gain[cell[r, k]]
        change += value[r, k]
    return change


@internal
def best_slot(search: Search, i: int, min_gain: float) -> int:
    """Return the slot of least loss for site i; its own slot, if any, unless another gains more than `min_gain`."""
    cell, value, size, score = search.cell, search.value, search.size, search.score
    own = search.label[i]
    top = size.size
    while top > 0 and size[top - 1] == 0:
        top -= 1
    top = min(top + 1, size.size)  # includes an empty slot, if there is one
    for k in range(top):
        score[k] = search.size_cost[size[k] - (k == own)]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        for k in range(top):
            score[k] -= value[r, k]
        if own >= 0:  # the loss in its own slot is that without the site
            score[own] += value[r, own] - search.weight[r] * search.cell_gain[cell[r, own] - 1]
    best = max(own, 0)
    for k in range(top):
        if score[k] < score[best] - (min_gain if best == own else 0.0):
            best = k
    return best


@jit
def add_sites(search: Search, labels: np.ndarray) -> float:
    """Add each site to the slot in `labels`, -1 for none, from empty tables; return the loss, up to a constant."""
    loss = 0.0
    for i in range(labels.size):
        if labels[i] >= 0:
            loss += add_site(search, i, labels[i])
    return loss


@jit
def remove_sites(search: Search) -> None:
    """Remove all sites that are allocated: less work than to clear the tables."""
    for i in range(search.label.size):
        if search.label[i] >= 0:
            remove_site(search, i)


@jit
def improve_sites(search: Search, order: np.ndarray, min_gain: float) -> float:
    """Move each site to the slot of least loss, if that gains more than `min_gain`; return the change of loss."""
    change = 0.0
    for q in range(order.size):
        i = order[q]
        best = best_slot(search, i, min_gain)
        if best != search.label[i]:
            if search.label[i] >= 0:
                change += remove_site(search, i)
            change += add_site(search, i, best)
    return change


@internal
def members_of(search, order, k):
    """List the sites of slot k in `member`, in this order; returns how many there are."""
    n_members = 0
    for q in range(order.size):
        if search.label[order[q]] == k:
            search.member[n_members] = order[q]
            n_members += 1
    return n_members


@internal
def put_all(search, n_members, k):
    """Move the listed sites, allocated or not, to slot k; returns the change of loss."""
    change = 0.0
    for q in range(n_members):
        if search.label[search.member[q]] >= 0:
            change += remove_site(search, search.member[q])
    for q in range(n_members):
        change += add_site(search, search.member[q], k)
    return change


@jit
def reallocate(search: Search, order: np.ndarray, min_gain: float) -> float:
    """Dissolve each cluster and reallocate its sites, if that gains more than `min_gain`; return the change of loss."""
    member, total = search.member, 0.0
    for k in range(search.size.size):
        n_members, change = members_of(search, order, k), 0.0
        for q in range(n_members):
            change += remove_site(search, member[q])
        for q in range(n_members):
            change += add_site(search, member[q], best_slot(search, member[q], min_gain))
        if change > -min_gain:
            put_all(search, n_members, k)
        else:
            total += change
    return total


@internal
def seed_in(search, k):
    """The seed that the sites of a slot have; 0 if none has one."""
    for i in range(search.seed.size):
        if search.seed[i] > 0 and search.label[i] == k:
            return search.seed[i]
    return 0


@internal
def is_connected(search, k):
    """Whether the sites of an occupied slot are connected."""
    queue, place, label, n_found, at = search.queue, search.place, search.label, 1, 0
    queue[0] = 0
    while label[queue[0]] != k:
        queue[0] += 1
    place[queue[0]] = 1
    while at < n_found:
        for h in range(search.start[queue[at]], search.start[queue[at] + 1]):
            j = search.neighbor[h]
            if label[j] == k and place[j] == 0:
                queue[n_found], place[j] = j, 1
                n_found += 1
        at += 1
    for q in range(n_found):
        place[queue[q]] = 0
    return n_found == search.size[k]


@internal
def note_change(search, k):
    """Note that a slot has other sites than before."""
    search.clock[0] += 1
    search.changed[k] = search.clock[0]


@internal
def loss_in(search, i, k):
    """The change of loss if site i, which is not allocated, joins slot k."""
    change = search.size_cost[search.size[k]]
    for h in range(search.first[i], search.first[i + 1]):
        change -= search.value[search.row[h], k]
    return change


@internal
def loss_in_own(search, i):
    """The change of loss if site i, once removed from its slot, joins it again."""
    k = search.label[i]
    change = search.size_cost[search.size[k] - 1]
    for h in range(search.first[i], search.first[i + 1]):
        r = search.row[h]
        change -= search.weight[r] * search.cell_gain[search.cell[r, k] - 1]
    return change


@internal
def empty_slot(search):
    """An empty slot; -1 if there is none."""
    for k in range(search.size.size):
        if search.size[k] == 0:
            return k
    return -1


@internal
def best_touching(search, i):
    """The slot of least loss for a site, of an empty one and the others that it touches, -1 if none; and the loss."""
    own, start, neighbor, label = search.label[i], search.start[i], search.neighbor, search.label
    best, least = empty_slot(search), np.inf
    if best >= 0:
        least = 0.0
    for h in range(start, search.start[i + 1]):
        k, before = label[neighbor[h]], start
        if k >= 0 and k != own:
            while label[neighbor[before]] != k:
                before += 1
            if before == h:  # the first neighbor in this slot
                loss = loss_in(search, i, k)
                if loss < least:
                    best, least = k, loss
    return best, least


@internal
def is_settled(search, i):
    """Whether the slots around a site are those in which it was better off where it is."""
    latest = search.changed[search.label[i]]
    for h in range(search.start[i], search.start[i + 1]):
        latest = max(latest, search.changed[search.label[search.neighbor[h]]])
    return latest <= search.moved[i]


@jit
def improve_connected(search: Search, order: np.ndarray, min_gain: float) -> float:
    """As `improve_sites`, with clusters that stay connected."""
    label, total, start, neighbor = search.label, 0.0, search.start, search.neighbor
    queue, place, pending = search.queue, search.place, search.pending
    for q in range(order.size):
        i, own, group = order[q], label[order[q]], order[q : q + 1]
        if search.seed[i] > 0 or is_settled(search, i):
            continue
        best, least = best_touching(search, i)
        if least <= loss_in_own(search, i) - min_gain:
            label[i] = -1
            is_free = leaves_connected(start, neighbor, label, own, label, -1, group, queue, place, pending)
            label[i] = own
            if is_free:
                total += remove_site(search, i) + add_site(search, i, best)
                note_change(search, own)
                note_change(search, best)
        if least <= 0.0:  # else there was no empty slot, and there may be one later
            search.moved[i] = search.clock[0]
    return total


@internal
def touches_allocated(search, i):
    """Whether a neighbor of site i is allocated."""
    found = False
    for h in range(search.start[i], search.start[i + 1]):
        found |= search.label[search.neighbor[h]] >= 0
    return found


@jit
def allocate_connected(search: Search, order: np.ndarray) -> float:
    """Allocate each site that is not, once it touches one that is; return the change of loss.

    Where none does, one founds a cluster. The result is infinite if there is no slot for it.
    """
    total = 0.0
    while True:
        n_allocated, waiting = 0, -1
        for q in range(order.size):
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
                return np.inf
            total += add_site(search, waiting, k)


@internal
def list_shared(search, k):
    """List in `shared` the clusters of the draws that have sites of slot k; returns how many there are."""
    n_shared = 0
    for r in range(search.shared.size):
        if search.cell[r, k] > 0:
            search.shared[n_shared] = r
            n_shared += 1
    return n_shared


@internal
def change_if_merged(search, k, other, n_shared):
    """The change of loss if the sites of slot k, whose shared clusters are listed, join another slot."""
    total, size, cell = search.size_total, search.size, search.cell
    change = total[size[k] + size[other]] - total[size[k]] - total[size[other]]
    total = search.cell_total
    for q in range(n_shared):
        r = search.shared[q]
        a, b = cell[r, k], cell[r, other]
        if b > 0:
            change -= search.weight[r] * (total[a + b] - total[a] - total[b])
    return change


@internal
def dissolve(search, k, n_members, n_shared, seed):
    """Remove the sites of a slot, whose shared clusters are listed, except those with a seed; the change of loss."""
    if seed > 0:
        change = 0.0
        for q in range(n_shared):
            search.kept[q] = search.cell[search.shared[q], k]
        for q in range(n_members):
            if search.seed[search.member[q]] == 0:
                change += remove_site(search, search.member[q])
        return change
    change, search.size[k] = -search.size_total[n_members], 0
    for q in range(n_shared):
        r = search.shared[q]
        search.kept[q] = search.cell[r, k]
        change += search.weight[r] * search.cell_total[search.kept[q]]
        search.cell[r, k], search.value[r, k] = 0, 0.0
    for q in range(n_members):
        search.label[search.member[q]] = -1
    return change


@internal
def restore(search, k, n_members, n_shared):
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


@jit
def reallocate_connected(search: Search, order: np.ndarray, min_gain: float) -> float:
    """Merge each cluster with each one that it touches, or dissolve it and reallocate its sites, where that gains.

    Sites with a seed are not reallocated, and keep their cluster; it must be connected in the end.
    """
    total, label, member, changed, merged = 0.0, search.label, search.member, search.changed, search.merged
    for k in range(search.size.size):
        if search.size[k] == 0:
            continue
        n_members, n_shared, seed = members_of(search, order, k), list_shared(search, k), seed_in(search, k)
        search.score[:] = 0.0  # of the slots that were tried
        for q in range(n_members):
            for h in range(search.start[member[q]], search.start[member[q] + 1]):
                other = label[search.neighbor[h]]
                if label[member[0]] != k or other == k or search.score[other] > 0.0:
                    continue
                search.score[other] = 1.0
                if max(changed[k], changed[other]) <= max(merged[k], merged[other]):
                    continue
                if seed > 0 and seed_in(search, other) > 0:
                    continue
                if change_if_merged(search, k, other, n_shared) <= -min_gain:
                    total += put_all(search, n_members, other)
                    note_change(search, k)
                    note_change(search, other)
        if label[member[0]] == k:
            merged[k] = search.clock[0]
            change = dissolve(search, k, n_members, n_shared, seed) + allocate_connected(search, member[:n_members])
            if change > -min_gain or (seed > 0 and not is_connected(search, k)):
                restore(search, k, n_members, n_shared)
            else:
                total += change
                note_change(search, k)
                for q in range(n_members):
                    note_change(search, label[member[q]])
    return total
