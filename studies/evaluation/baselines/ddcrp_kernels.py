"""The compiled Gibbs sampler of dd-CRP and rdd-CRP: links between sites, and the clusters of the regions they form.

The partition and the statistics of its clusters are kept, and updated, as by the sampler of spinseg: see
`sampler.kernels.state`. Here are the links, and the prior on them.

The sites that are connected to site i once its link is removed are exactly those whose links lead to i: n sites with
n - 1 links among them form a tree, and i, which has no link, is its root. This *subtree* is found by following links
backwards, so the links to each site are kept in a doubly linked list.
"""

import math
from typing import NamedTuple

import numpy as np

from spinseg._bundle import Bundle
from spinseg._compiled import internal, jit
from spinseg.sampler.kernels.clusters import likelihood_at, pool
from spinseg.sampler.kernels.moves import record_iteration
from spinseg.sampler.kernels.state import DONE, FULL, LOG_POSTERIOR, N_CLUSTERS, NEXT_INDEX, Target
from spinseg.sampler.kernels.sweep import choose, move, weigh_likelihood

# Entries of Links.counters.
N_REGIONS, MARK = range(2)


class Problem(NamedTuple):
    """The posterior, never written, of n sites. Prior, couplings and bond strengths of the target are not used."""

    target: Target
    alpha: float
    log_weight: np.ndarray  # (n + 1,) float64; log CRP weight of a cluster with r regions; of a new one where r = 0
    log_total: np.ndarray  # (n + 1,) float64; log of the sum of these weights over clusters with r regions in all
    regions_are_clusters: bool  # the dd-CRP


class Links(Bundle):
    """The links of one chain, and scratch space. The capacity is that of the tables of clusters."""

    link: np.ndarray  # (n,) int32; the site that each one links to
    first_source: np.ndarray  # (n,) int32; the first other site that links to this one, -1 for none
    next_source: np.ndarray  # (n,) int32; the next site with the same link, -1 for none
    previous_source: np.ndarray  # (n,) int32; the previous site with the same link, -1 for none
    n_regions: np.ndarray  # (capacity,) int64; regions in each slot
    n_joining: np.ndarray  # (capacity,) int64; possible links of a site to other regions of a slot; 0 between calls
    log_likelihood: np.ndarray  # (capacity,) float64; of the pooled sites, given the other sites of a slot
    mark: np.ndarray  # (n,) int64; equal to counters[MARK] for the sites that were collected last
    counters: np.ndarray  # (2,) int64


# --- Links, subtrees and regions ---


@internal
def remove_link(links, i):
    """Remove site i from the list of its target; `link` keeps its value."""
    link, first, after, before = links.link, links.first_source, links.next_source, links.previous_source
    if link[i] == i:
        return
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        first[link[i]] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]


@internal
def add_link(links, i, j):
    """Link site i, whose link was removed, to site j; a self-link is in no list."""
    first, after, before = links.first_source, links.next_source, links.previous_source
    links.link[i] = j
    if i == j:
        return
    before[i] = -1
    after[i] = first[j]
    if first[j] >= 0:
        before[first[j]] = i
    first[j] = i


@internal
def collect_sites(member, links, i, end, whole_region):
    """Mark, and append to member[:end], the subtree of site i, or its whole region; return the new end."""
    link, first, after, mark = links.link, links.first_source, links.next_source, links.mark
    current = links.counters[MARK]
    mark[i] = current
    member[end] = i
    at, end = end, end + 1
    while at < end:
        u = member[at]
        at += 1
        v = first[u]
        while v >= 0:
            if mark[v] != current:  # in a region, v may be where u was reached from
                mark[v] = current
                member[end] = v
                end += 1
            v = after[v]
        if whole_region and mark[link[u]] != current:
            mark[link[u]] = current
            member[end] = link[u]
            end += 1
    return end


@internal
def list_regions(clusters, links):
    """List the sites of region r in member[first[r]..first[r+1]]; return the number of regions."""
    links.counters[MARK] += 1
    n, end = 0, 0
    for i in range(links.link.size):
        if links.mark[i] != links.counters[MARK]:
            clusters.first[n] = end
            end = collect_sites(clusters.member, links, i, end, True)
            n += 1
    clusters.first[n] = end
    return n


@jit
def rebuild_links(clusters, links):
    """Fill the lists of sources and the numbers of regions from `link` and the clusters of the sites."""
    for i in range(links.link.size):
        links.first_source[i] = -1
    for i in range(links.link.size):
        add_link(links, i, links.link[i])
    for slot in range(links.n_regions.size):
        links.n_regions[slot] = 0
        links.n_joining[slot] = 0
    links.counters[N_REGIONS] = list_regions(clusters, links)
    for r in range(links.counters[N_REGIONS]):
        links.n_regions[clusters.slot_of[clusters.label[clusters.member[clusters.first[r]]]]] += 1


# --- The conditional distribution of a link and of a cluster ---


@internal
def log_crp(problem, links, slot):
    """Return the log prior probability that the next region is in `slot`, where an empty one is a new cluster."""
    return problem.log_weight[links.n_regions[slot]] - problem.log_total[links.counters[N_REGIONS]]


@internal
def count_joining_links(problem, clusters, links, i):
    """Fill n_joining for site i, and list in `touched` the slots where it is not 0.

    Return how many neighbors are in the subtree of i, and how many slots are listed.
    """
    start, neighbor, label, slot_of = problem.target.start, problem.target.neighbor, clusters.label, clusters.slot_of
    mark, n_joining, current = links.mark, links.n_joining, links.counters[MARK]
    n_inside, n_slots = 0, 0
    for h in range(start[i], start[i + 1]):
        if mark[neighbor[h]] == current:
            n_inside += 1
            continue
        slot = slot_of[label[neighbor[h]]]
        if n_joining[slot] == 0:
            clusters.touched[n_slots] = slot
            n_slots += 1
        n_joining[slot] += 1
    return n_inside, n_slots


@internal
def list_destinations(problem, clusters, links, old, n_slots):
    """List in `touched` the slots that the pooled sites can move to; return their number.

    They are all clusters and a new one; in the dd-CRP the first `n_slots`, which are listed already, and a new one.
    """
    k, touched, old_is_empty = clusters.counters[N_CLUSTERS], clusters.touched, links.n_regions[old] == 0
    if not problem.regions_are_clusters:
        for slot in range(k):
            touched[slot] = slot
        touched[k] = k  # but where the old slot has no other region, that one is the new cluster
        return k + (not old_is_empty)
    touched[n_slots] = old if old_is_empty else k
    return n_slots + 1


@internal
def draw_slot(problem, clusters, links, old, n_bins, n_slots, weight_alone, rng):
    """Return the slot of the pooled sites, drawn from its conditional distribution, whichever the link.

    The weight of slot s is (n_joining[s] + weight_alone * CRP probability of s) * p(y_pooled | y_s), `weight_alone`
    being the weight of all links to no other region, with which the pooled sites are a region of their own.
    """
    target, log_weight, touched, n_joining = problem.target, clusters.log_weight, clusters.touched, links.n_joining
    n_destinations = list_destinations(problem, clusters, links, old, n_slots)
    if not problem.regions_are_clusters:
        weigh_likelihood(target, clusters, old, n_bins, n_destinations)
    log_alone = math.log(weight_alone)
    for d in range(n_destinations):
        slot = np.int64(touched[d])
        if problem.regions_are_clusters:
            links.log_likelihood[slot] = likelihood_at(target, clusters, slot, n_bins, -1 if slot == old else 1)
        else:
            links.log_likelihood[slot] = log_weight[slot]
        log_prior = log_alone + log_crp(problem, links, slot)
        if n_joining[slot] > 0:
            log_prior = math.log(n_joining[slot] + math.exp(log_prior))
        log_weight[d] = links.log_likelihood[slot] + log_prior
    return np.int64(touched[choose(clusters, n_destinations, 1.0, rng)])


@internal
def draw_target(problem, clusters, links, i, slot, n_inside, rng):
    """Return the target of site i given the slot of its subtree: a site of another region there, of the subtree, or i.

    A link inside the subtree makes it a region of its own, so the CRP probability of the slot is part of its weight.
    """
    start, neighbor, mark, current = problem.target.start, problem.target.neighbor, links.mark, links.counters[MARK]
    n_joining, weight_alone = links.n_joining[slot], n_inside + problem.alpha
    point = rng.random() * (n_joining + weight_alone * math.exp(log_crp(problem, links, slot)))
    joins = point < n_joining
    if not joins:
        point = rng.random() * weight_alone
        if point >= n_inside:
            return i
    remaining = int(point)
    for h in range(start[i], start[i + 1]):
        j = neighbor[h]
        if joins == (mark[j] != current) and (not joins or clusters.slot_of[clusters.label[j]] == slot):
            if remaining == 0:
                return j
            remaining -= 1
    return i


@internal
def log_link_prior(problem, links, i, j, slot):
    """Return the log weight of the link from i to j, and of `slot` where the marked subtree of i stays a region."""
    log_p = math.log(problem.alpha) if i == j else 0.0
    if links.mark[j] == links.counters[MARK]:
        log_p += log_crp(problem, links, slot)
    return log_p


@internal
def add_regions(links, slot, n):
    """Add n regions, 1 or -1 or none, to the numbers of regions."""
    links.n_regions[slot] += n
    links.counters[N_REGIONS] += n


@internal
def move_sites(problem, clusters, links, r, old, new, n_bins):
    """Move the pooled sites member[first[r]..first[r+1]] from slot `old` to slot `new`."""
    if old == new:
        return
    move(problem.target, clusters, r, old, new, n_bins, 0.0)
    if links.n_regions[old] == 0:  # that slot was dropped, and the last one moved into its place
        last = clusters.counters[N_CLUSTERS]
        links.n_regions[old], links.n_regions[last] = links.n_regions[last], 0


# --- One step, one sweep, one run ---


@internal
def draw_link(problem, clusters, links, i, rng):
    """Draw the link of site i and, where it joins no other region, the cluster of its subtree, given all else."""
    mark, log_likelihood, scalars = links.mark, links.log_likelihood, clusters.scalars
    links.counters[MARK] += 1
    remove_link(links, i)
    end = collect_sites(clusters.member, links, i, 0, False)
    clusters.first[0], clusters.first[1] = 0, end
    n_bins = pool(problem.target, clusters, clusters.member[:end])
    old, target = np.int64(clusters.slot_of[clusters.label[i]]), links.link[i]
    add_regions(links, old, -np.int64(mark[target] == links.counters[MARK]))  # the subtree may be a whole region

    n_inside, n_slots = count_joining_links(problem, clusters, links, i)
    new = draw_slot(problem, clusters, links, old, n_bins, n_slots, n_inside + problem.alpha, rng)
    new_target = draw_target(problem, clusters, links, i, new, n_inside, rng)
    scalars[LOG_POSTERIOR] += log_likelihood[new] + log_link_prior(problem, links, i, new_target, new)
    scalars[LOG_POSTERIOR] -= log_likelihood[old] + log_link_prior(problem, links, i, target, old)
    for h in range(problem.target.start[i], problem.target.start[i + 1]):
        links.n_joining[clusters.slot_of[clusters.label[problem.target.neighbor[h]]]] = 0

    add_regions(links, new, np.int64(mark[new_target] == links.counters[MARK]))
    add_link(links, i, new_target)
    move_sites(problem, clusters, links, 0, old, new, n_bins)


@internal
def draw_cluster(problem, clusters, links, r, rng):
    """Draw the cluster of the listed region r, given all else."""
    log_likelihood, scalars = links.log_likelihood, clusters.scalars
    region = clusters.member[clusters.first[r] : clusters.first[r + 1]]
    n_bins = pool(problem.target, clusters, region)
    old = np.int64(clusters.slot_of[clusters.label[region[0]]])
    add_regions(links, old, -1)
    new = draw_slot(problem, clusters, links, old, n_bins, 0, 1.0, rng)
    scalars[LOG_POSTERIOR] += log_likelihood[new] + log_crp(problem, links, new)
    scalars[LOG_POSTERIOR] -= log_likelihood[old] + log_crp(problem, links, old)
    add_regions(links, new, 1)
    move_sites(problem, clusters, links, r, old, new, n_bins)


@jit
def sweep(problem, clusters, links, rng):
    """Draw every link, then every cluster of a region, from the cursor on; return DONE, or FULL if no slot is left."""
    counters, n = clusters.counters, links.link.size
    while True:
        at = counters[NEXT_INDEX]
        if at == n and not problem.regions_are_clusters:
            list_regions(clusters, links)
        if at >= n and (problem.regions_are_clusters or at == n + links.counters[N_REGIONS]):
            counters[NEXT_INDEX] = 0
            return DONE
        if counters[N_CLUSTERS] == links.n_regions.size:
            return FULL
        if at < n:
            draw_link(problem, clusters, links, at, rng)
        else:
            draw_cluster(problem, clusters, links, at - n, rng)
        counters[NEXT_INDEX] = at + 1


@jit
def run(problem, clusters, links, record, n_regions, plan, done, until, rng):
    """Do sweeps done..until-1, the first perhaps begun before; return the status and how many sweeps are done."""
    for t in range(done, until):
        if sweep(problem, clusters, links, rng) == FULL:
            return FULL, t
        record_iteration(clusters, record, plan, t)
        n_regions[t] = links.counters[N_REGIONS]
    return DONE, until
