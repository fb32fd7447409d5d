"""The compiled Gibbs sampler of dd-CRP and rdd-CRP: links between sites, and the clusters of the regions they form.

The partition and the statistics of its clusters are kept, and updated, as by the sampler of spinseg: see
`sampler.kernels.state`. Here are the links, and the prior on them.

The sites that are connected to site i once its link is removed are exactly those whose links lead to i: n sites with
n - 1 links among them form a tree, and i, which has no link, is its root. This *subtree* is found by following links
backwards, so the links to each site are kept in a doubly linked list.
"""

import cython
from cython.cimports.libc import math

from spinseg.sampler.kernels.clusters import likelihood_at, pool
from spinseg.sampler.kernels.records import record_iteration
from spinseg.sampler.kernels.state import (
    DONE,
    FULL,
    LOG_POSTERIOR,
    N_CLUSTERS,
    NEXT_INDEX,
    Fields,
    Index,
    Plan,
    Random,
    Real,
    Record,
    State,
    Target,
)
from spinseg.sampler.kernels.sweep import choose, move, weigh_likelihood

# Entries of Links.counters.
N_REGIONS, MARK = range(2)


@cython.final
@cython.cclass
class Links(Fields):
    """The links of one chain, the prior on them, and scratch space. The capacity is that of the tables of clusters."""

    link: cython.int[::1]  # (n,); the site that each one links to
    first_source: cython.int[::1]  # (n,); the first other site that links to this one, -1 for none
    next_source: cython.int[::1]  # (n,); the next site with the same link, -1 for none
    previous_source: cython.int[::1]  # (n,); the previous site with the same link, -1 for none
    n_regions: cython.longlong[::1]  # (capacity,); regions in each slot
    n_joining: cython.longlong[::1]  # (capacity,); possible links of a site to other regions of a slot; 0 between calls
    log_likelihood: cython.double[::1]  # (capacity,); of the pooled sites, given the other sites of a slot
    mark: cython.longlong[::1]  # (n,); equal to counters[MARK] for the sites that were collected last
    counters: cython.longlong[::1]  # (2,)
    log_weight: cython.double[::1]  # (n + 1,); log CRP weight of a cluster with r regions; of a new one where r = 0
    log_total: cython.double[::1]  # (n + 1,); log of the sum of these weights over clusters with r regions in all
    alpha: cython.double
    regions_are_clusters: cython.bint  # the dd-CRP

    def __init__(self, alpha, regions_are_clusters, **arrays):
        self.values = arrays | {"alpha": alpha, "regions_are_clusters": regions_are_clusters}
        self.alpha, self.regions_are_clusters = alpha, regions_are_clusters
        self.link, self.first_source = arrays["link"], arrays["first_source"]
        self.next_source, self.previous_source = arrays["next_source"], arrays["previous_source"]
        self.n_regions, self.n_joining = arrays["n_regions"], arrays["n_joining"]
        self.log_likelihood, self.mark, self.counters = arrays["log_likelihood"], arrays["mark"], arrays["counters"]
        self.log_weight, self.log_total = arrays["log_weight"], arrays["log_total"]


# --- Links, subtrees and regions ---


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def remove_link(links: Links, i: Index) -> cython.void:
    """Remove site i from the list of its target; `link` keeps its value."""
    if links.link[i] == i:
        return
    if links.previous_source[i] >= 0:
        links.next_source[links.previous_source[i]] = links.next_source[i]
    else:
        links.first_source[links.link[i]] = links.next_source[i]
    if links.next_source[i] >= 0:
        links.previous_source[links.next_source[i]] = links.previous_source[i]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_link(links: Links, i: Index, j: Index) -> cython.void:
    """Link site i, whose link was removed, to site j; a self-link is in no list."""
    links.link[i] = j
    if i == j:
        return
    links.previous_source[i] = -1
    links.next_source[i] = links.first_source[j]
    if links.first_source[j] >= 0:
        links.previous_source[links.first_source[j]] = i
    links.first_source[j] = i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def collect_sites(member: cython.uint[::1], links: Links, i: Index, end: Index, whole_region: cython.bint) -> Index:
    """Mark, and append to member[:end], the subtree of site i, or its whole region; return the new end."""
    current = links.counters[MARK]
    links.mark[i] = current
    member[end] = i
    n_followed: Index = end
    end += 1
    while n_followed < end:
        u = member[n_followed]
        n_followed += 1
        v = links.first_source[u]
        while v >= 0:
            if links.mark[v] != current:  # in a region, v may be where u was reached from
                links.mark[v] = current
                member[end] = v
                end += 1
            v = links.next_source[v]
        if whole_region and links.mark[links.link[u]] != current:
            links.mark[links.link[u]] = current
            member[end] = links.link[u]
            end += 1
    return end


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def list_regions(clusters: State, links: Links) -> Index:
    """List the sites of region r in member[first[r]..first[r+1]]; return the number of regions."""
    links.counters[MARK] += 1
    n: Index = 0
    end: Index = 0
    for i in range(links.link.shape[0]):
        if links.mark[i] != links.counters[MARK]:
            clusters.first[n] = end
            end = collect_sites(clusters.member, links, i, end, True)
            n += 1
    clusters.first[n] = end
    return n


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def rebuild_links(clusters: State, links: Links) -> cython.void:
    """Fill the lists of sources and the numbers of regions from `link` and the clusters of the sites."""
    for i in range(links.link.shape[0]):
        links.first_source[i] = -1
    for i in range(links.link.shape[0]):
        add_link(links, i, links.link[i])
    for slot in range(links.n_regions.shape[0]):
        links.n_regions[slot] = 0
        links.n_joining[slot] = 0
    links.counters[N_REGIONS] = list_regions(clusters, links)
    for r in range(links.counters[N_REGIONS]):
        links.n_regions[clusters.slot_of[clusters.label[clusters.member[clusters.first[r]]]]] += 1


# --- The conditional distribution of a link and of a cluster ---


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def log_crp(links: Links, slot: Index) -> Real:
    """Return the log prior probability that the next region is in `slot`, where an empty one is a new cluster."""
    return links.log_weight[links.n_regions[slot]] - links.log_total[links.counters[N_REGIONS]]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def count_joining_links(target: Target, clusters: State, links: Links, i: Index) -> tuple[Index, Index]:
    """Fill n_joining for site i, and list in `touched` the slots where it is not 0.

    Return how many neighbors are in the subtree of i, and how many slots are listed.
    """
    current = links.counters[MARK]
    n_inside: Index = 0
    n_slots: Index = 0
    for h in range(target.start[i], target.start[i + 1]):
        if links.mark[target.neighbor[h]] == current:
            n_inside += 1
            continue
        slot = clusters.slot_of[clusters.label[target.neighbor[h]]]
        if links.n_joining[slot] == 0:
            clusters.touched[n_slots] = slot
            n_slots += 1
        links.n_joining[slot] += 1
    return n_inside, n_slots


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def list_destinations(clusters: State, links: Links, old: Index, n_slots: Index) -> Index:
    """List in `touched` the slots that the pooled sites can move to; return their number.

    They are all clusters and a new one; in the dd-CRP the first `n_slots`, which are listed already, and a new one.
    """
    k = clusters.counters[N_CLUSTERS]
    old_is_empty: cython.bint = links.n_regions[old] == 0
    if not links.regions_are_clusters:
        for slot in range(k):
            clusters.touched[slot] = slot
        clusters.touched[k] = k  # but where the old slot has no other region, that one is the new cluster
        return k + (not old_is_empty)
    clusters.touched[n_slots] = old if old_is_empty else k
    return n_slots + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_slot(
    target: Target,
    clusters: State,
    links: Links,
    old: Index,
    n_bins: Index,
    n_slots: Index,
    weight_alone: Real,
    rng: Random,
) -> Index:
    """Return the slot of the pooled sites, drawn from its conditional distribution, whichever the link.

    The weight of slot s is (n_joining[s] + weight_alone * CRP probability of s) * p(y_pooled | y_s), `weight_alone`
    being the weight of all links to no other region, with which the pooled sites are a region of their own.
    """
    n_destinations = list_destinations(clusters, links, old, n_slots)
    if not links.regions_are_clusters:
        weigh_likelihood(target, clusters, old, n_bins, n_destinations)
    log_alone = math.log(weight_alone)
    for d in range(n_destinations):
        slot = clusters.touched[d]
        if links.regions_are_clusters:
            links.log_likelihood[slot] = likelihood_at(target, clusters, slot, n_bins, -1 if slot == old else 1)
        else:
            links.log_likelihood[slot] = clusters.log_weight[slot]
        log_prior = log_alone + log_crp(links, slot)
        if links.n_joining[slot] > 0:
            log_prior = math.log(links.n_joining[slot] + math.exp(log_prior))
        clusters.log_weight[d] = links.log_likelihood[slot] + log_prior
    return clusters.touched[choose(clusters, n_destinations, 1.0, rng)]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_target(
    target: Target, clusters: State, links: Links, i: Index, slot: Index, n_inside: Index, rng: Random
) -> Index:
    """Return the target of site i given the slot of its subtree: a site of another region there, of the subtree, or i.

    A link inside the subtree makes it a region of its own, so the CRP probability of the slot is part of its weight.
    """
    current, n_others, weight_alone = links.counters[MARK], links.n_joining[slot], n_inside + links.alpha
    point = rng.random() * (n_others + weight_alone * math.exp(log_crp(links, slot)))
    joins: cython.bint = point < n_others
    if not joins:
        point = rng.random() * weight_alone
        if point >= n_inside:
            return i
    remaining = cython.cast(cython.longlong, point)
    for h in range(target.start[i], target.start[i + 1]):
        j = target.neighbor[h]
        if joins == (links.mark[j] != current) and (not joins or clusters.slot_of[clusters.label[j]] == slot):
            if remaining == 0:
                return j
            remaining -= 1
    return i


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def log_link_prior(links: Links, i: Index, j: Index, slot: Index) -> Real:
    """Return the log weight of the link from i to j, and of `slot` where the marked subtree of i stays a region."""
    log_p = math.log(links.alpha) if i == j else 0.0
    if links.mark[j] == links.counters[MARK]:
        log_p += log_crp(links, slot)
    return log_p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def add_regions(links: Links, slot: Index, n: Index) -> cython.void:
    """Add n regions, 1 or -1 or none, to the numbers of regions."""
    links.n_regions[slot] += n
    links.counters[N_REGIONS] += n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def move_sites(
    target: Target, clusters: State, links: Links, r: Index, old: Index, new: Index, n_bins: Index
) -> cython.void:
    """Move the pooled sites member[first[r]..first[r+1]] from slot `old` to slot `new`."""
    if old == new:
        return
    move(target, clusters, r, old, new, n_bins, 0.0)
    if links.n_regions[old] == 0:  # that slot was dropped, and the last one moved into its place
        last = clusters.counters[N_CLUSTERS]
        links.n_regions[old], links.n_regions[last] = links.n_regions[last], 0


# --- One step, one sweep, one run ---


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_link(target: Target, clusters: State, links: Links, i: Index, rng: Random) -> cython.void:
    """Draw the link of site i and, where it joins no other region, the cluster of its subtree, given all else."""
    links.counters[MARK] += 1
    remove_link(links, i)
    end = collect_sites(clusters.member, links, i, 0, False)
    clusters.first[0], clusters.first[1] = 0, end
    n_bins = pool(target, clusters, 0, end)
    old: Index = clusters.slot_of[clusters.label[i]]
    linked: Index = links.link[i]
    is_region: cython.bint = links.mark[linked] == links.counters[MARK]
    add_regions(links, old, -1 if is_region else 0)  # the subtree may be a whole region

    n_inside, n_slots = count_joining_links(target, clusters, links, i)
    new = draw_slot(target, clusters, links, old, n_bins, n_slots, n_inside + links.alpha, rng)
    new_target = draw_target(target, clusters, links, i, new, n_inside, rng)
    clusters.scalars[LOG_POSTERIOR] += links.log_likelihood[new] + log_link_prior(links, i, new_target, new)
    clusters.scalars[LOG_POSTERIOR] -= links.log_likelihood[old] + log_link_prior(links, i, linked, old)
    for h in range(target.start[i], target.start[i + 1]):
        links.n_joining[clusters.slot_of[clusters.label[target.neighbor[h]]]] = 0

    is_region = links.mark[new_target] == links.counters[MARK]
    add_regions(links, new, 1 if is_region else 0)
    add_link(links, i, new_target)
    move_sites(target, clusters, links, 0, old, new, n_bins)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def draw_cluster(target: Target, clusters: State, links: Links, r: Index, rng: Random) -> cython.void:
    """Draw the cluster of the listed region r, given all else."""
    n_bins = pool(target, clusters, clusters.first[r], clusters.first[r + 1])
    old: Index = clusters.slot_of[clusters.label[clusters.member[clusters.first[r]]]]
    add_regions(links, old, -1)
    new = draw_slot(target, clusters, links, old, n_bins, 0, 1.0, rng)
    clusters.scalars[LOG_POSTERIOR] += links.log_likelihood[new] + log_crp(links, new)
    clusters.scalars[LOG_POSTERIOR] -= links.log_likelihood[old] + log_crp(links, old)
    add_regions(links, new, 1)
    move_sites(target, clusters, links, r, old, new, n_bins)


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def link_sweep(target: Target, clusters: State, links: Links, rng: Random) -> Index:
    """Draw every link, then every cluster of a region, from the cursor on; return DONE, or FULL if no slot is left."""
    n = links.link.shape[0]
    while True:
        at: Index = clusters.counters[NEXT_INDEX]
        if at == n and not links.regions_are_clusters:
            list_regions(clusters, links)
        if at >= n and (links.regions_are_clusters or at == n + links.counters[N_REGIONS]):
            clusters.counters[NEXT_INDEX] = 0
            return DONE
        if clusters.counters[N_CLUSTERS] == links.n_regions.shape[0]:
            return FULL
        if at < n:
            draw_link(target, clusters, links, at, rng)
        else:
            draw_cluster(target, clusters, links, at - n, rng)
        clusters.counters[NEXT_INDEX] = at + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def run_sweeps(
    target: Target,
    clusters: State,
    links: Links,
    record: Record,
    n_regions: cython.int[::1],
    plan: Plan,
    done: Index,
    until: Index,
    rng: Random,
) -> tuple[Index, Index]:
    """Do sweeps done..until-1, the first perhaps begun before; return the status and how many sweeps are done."""
    for t in range(done, until):
        if link_sweep(target, clusters, links, rng) == FULL:
            return FULL, t
        record_iteration(clusters, record, plan, t)
        n_regions[t] = links.counters[N_REGIONS]
    return DONE, until


def run(
    target: Target, clusters: State, links: Links, record: Record, n_regions, plan: Plan, done: Index, until: Index, rng
):
    """As `run_sweeps`, without the interpreter lock."""
    counts: cython.int[::1] = n_regions
    numbers = Random(rng)
    with cython.nogil:
        status, done = run_sweeps(target, clusters, links, record, counts, plan, done, until, numbers)
    return status, done
