"""The compiled search for the partition of least expected loss; it stands apart from the sampler and calls none of it.

A loss that is a sum over cluster sizes less a sum over the cells of the contingency tables with the draws is two
tables: `size_cost[m]`, what the (m+1)-th site of a cluster costs, and `cell_gain[c]`, what the (c+1)-th site of a cell
saves. Both start at 0, so that an empty slot needs no case of its own: it is the new cluster.
"""

from typing import NamedTuple

import numpy as np

from spinseg._compiled import jit


class Search(NamedTuple):
    """The draws and the partition at hand: n sites, D draws, R clusters of all draws together."""

    row: np.ndarray  # (n, D) uint32; cluster of each site in each draw, numbered through all draws
    size_cost: np.ndarray  # (n,) float64; per draw
    cell_gain: np.ndarray  # (n + 1,) float64; the last is written and never used
    label: np.ndarray  # (n,) int32; slot of each site, -1 where it has none
    size: np.ndarray  # (capacity,) int32; sites in each slot
    cell: np.ndarray  # (R, capacity) uint32; sites that a cluster of a draw shares with a slot
    value: np.ndarray  # (R, capacity) float64; cell_gain at `cell`: reading on is twice as fast as looking up
    score: np.ndarray  # (capacity,) float64; scratch
    member: np.ndarray  # (n,) int32; scratch


@jit
def enter(search: Search, i: int, k: int) -> float:
    """Put site i into slot k; the change of loss, summed over draws."""
    row, cell, value = search.row, search.cell, search.value
    change = row.shape[1] * search.size_cost[search.size[k]]
    for d in range(row.shape[1]):
        r = row[i, d]
        change -= value[r, k]
        cell[r, k] += 1
        value[r, k] = search.cell_gain[cell[r, k]]
    search.size[k] += 1
    search.label[i] = k
    return change


@jit
def leave(search: Search, i: int) -> float:
    """Take site i out of its slot; the change of loss."""
    row, cell, value = search.row, search.cell, search.value
    k = search.label[i]
    search.label[i] = -1
    search.size[k] -= 1
    change = -row.shape[1] * search.size_cost[search.size[k]]
    for d in range(row.shape[1]):
        r = row[i, d]
        cell[r, k] -= 1
        value[r, k] = search.cell_gain[cell[r, k]]
        change += value[r, k]
    return change


@jit
def best_slot(search: Search, i: int, least: float) -> int:
    """Where site i costs least; its own slot, if it has one, unless another saves more than `least`."""
    row, cell, value, size, score = search.row, search.cell, search.value, search.size, search.score
    own, n_draws = search.label[i], row.shape[1]
    top = size.size
    while top > 0 and size[top - 1] == 0:
        top -= 1
    top = min(top + 1, size.size)  # an empty slot too, where there is one
    for k in range(top):
        score[k] = n_draws * search.size_cost[size[k] - (k == own)]
    for d in range(n_draws):
        r = row[i, d]
        for k in range(top):
            score[k] -= value[r, k]
        if own >= 0:  # its own slot is weighed without the site
            score[own] += value[r, own] - search.cell_gain[cell[r, own] - 1]
    best = max(own, 0)
    for k in range(top):
        if score[k] < score[best] - (least if best == own else 0.0):
            best = k
    return best


@jit
def fill(search: Search, labels: np.ndarray) -> float:
    """Put every site where `labels` says, from empty tables; the loss, summed over draws and up to a constant."""
    loss = 0.0
    for i in range(labels.size):
        loss += enter(search, i, labels[i])
    return loss


@jit
def sweep(search: Search, order: np.ndarray, least: float) -> float:
    """Move each site to where it costs least, if that saves more than `least`; the change of loss."""
    change = 0.0
    for q in range(order.size):
        i = order[q]
        best = best_slot(search, i, least)
        if best != search.label[i]:
            if search.label[i] >= 0:
                change += leave(search, i)
            change += enter(search, i, best)
    return change


@jit
def deal_again(search: Search, order: np.ndarray, least: float) -> float:
    """Dissolve each cluster in turn and place its sites one by one, if that saves more than `least`; change of loss."""
    label, member = search.label, search.member
    total = 0.0
    for k in range(search.size.size):
        n_members, change = 0, 0.0
        for q in range(order.size):
            if label[order[q]] == k:
                member[n_members] = order[q]
                n_members += 1
        for q in range(n_members):
            change += leave(search, member[q])
        for q in range(n_members):
            change += enter(search, member[q], best_slot(search, member[q], least))
        if change > -least:
            for q in range(n_members):
                leave(search, member[q])
            for q in range(n_members):
                enter(search, member[q], k)
            change = 0.0
        total += change
    return total
