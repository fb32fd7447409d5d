"""The search for connected clusters that the prior allows, where no simple start is allowed.

Partitions are tried one after the other, up to a number of steps: on few sites, or where limits leave few choices, this
finds one or proves that there is none. Else the sampler anneals a prior that allows all partitions, and in which each
size and number of clusters costs its distance to the nearest that is allowed.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.model.likelihoods import Flat
from spinseg.model.posterior import Model
from spinseg.model.priors import TabulatedPrior
from spinseg.partition.numbering import checked_labels
from spinseg.sampler.chain import Chain, new_record
from spinseg.sampler.kernels.moves import attempts_for
from spinseg.sampler.kernels.state import Plan
from spinseg.sampler.pack import pack

MAX_STEPS = 2**19  # sites that are looked at while partitions are tried: about a second
MAX_TRIED_SITES = 2_000
HOTTEST, COLDEST, TEMPERATURES, SWEEPS_EACH, N_ANNEALINGS = 3.0, 0.1, 40, 10, 3


class Allowed(NamedTuple):
    """What a posterior allows, each (n_sites + 1,) bool."""

    sizes: NDArray[np.bool_]
    numbers: NDArray[np.bool_]  # of clusters


class TooManyStepsError(Exception):
    """Raised where not all partitions were tried."""


def searched_start(model: Model, start: NDArray[np.int32], init: str) -> NDArray[np.int32]:
    """Return a partition into connected clusters that the posterior allows.

    Large clusters are tried first, or small ones for "singletons". `start` is connected and keeps the seeds, whatever
    its sizes.
    """
    allowed = _allowed(model)
    if not allowed.sizes.any():
        invalid("prior", "allow some size of clusters", type(model.prior).__name__)
    if not allowed.numbers.any():
        invalid("kinds", "allow some number of the regions that the prior allows", type(model.kinds).__name__)
    clusters = f"{_range(allowed.numbers)} connected clusters of {_range(allowed.sizes)} sites"
    clusters += " that keep the seeds" if model.seeds is not None else ""
    try:
        if start.size > MAX_TRIED_SITES:
            raise TooManyStepsError
        labels = Trials(model, allowed, coarse=init != "singletons").first()
    except TooManyStepsError:
        labels = _annealed(model, allowed, start)
        if labels is None:
            invalid("init", f"be labels: no partition into {clusters} was found", init)
    if labels is None:
        invalid("prior", f"fit the graph, which has no partition into {clusters}", type(model.prior).__name__)
    return labels


def _allowed(model: Model) -> Allowed:
    """Return the sizes and numbers of clusters that a posterior allows."""
    n_sites, prior = model.graph.n_sites, model.prior
    sizes, numbers = np.arange(n_sites + 1) >= prior.min_size, np.zeros(n_sites + 1, bool)
    numbers[model.cluster_numbers] = True
    if prior.max_size is not None:
        sizes[prior.max_size + 1 :] = False
    if model.tables is not None:
        sizes &= model.tables[1] > -np.inf
    if model.kind_tables is not None:
        numbers &= model.kind_tables[2] < np.inf
    return Allowed(sizes, numbers)


def _range(allowed: NDArray[np.bool_]) -> str:
    """Return the first and the last number that is allowed."""
    numbers = np.flatnonzero(allowed)
    return f"{numbers[0]}" if numbers.size == 1 else f"{numbers[0]}..{numbers[-1]}"


class Trials:
    """All partitions of a graph into clusters that are allowed. A set of sites is the bits of a whole number."""

    def __init__(self, model: Model, allowed: Allowed, *, coarse: bool) -> None:
        graph, n_sites = model.graph, model.graph.n_sites
        self.model, self.allowed, self.coarse, self.steps = model, allowed, coarse, 0
        seeds = np.zeros(n_sites, np.int64) if model.seeds is None else model.seeds
        of_seed = {int(s): _mask(np.flatnonzero(seeds == s)) for s in np.unique(seeds[seeds > 0])}
        self.seeds = list(of_seed.values())
        self.own_seed = [of_seed.get(s, 0) for s in seeds.tolist()]
        self.other_seeds = [sum(self.seeds) - own if own else 0 for own in self.own_seed]
        self.near = [_mask(graph.neighbors[graph.start[i] : graph.start[i + 1]]) for i in range(n_sites)]
        self.fewest, self.most = np.full(n_sites + 1, np.inf), np.full(n_sites + 1, -np.inf)
        self.fewest[0] = self.most[0] = 0  # clusters of as many sites as the index
        sizes = np.flatnonzero(allowed.sizes)
        for size in range(1, n_sites + 1):
            rest = size - sizes[sizes <= size]
            self.fewest[size] = 1 + self.fewest[rest].min(initial=np.inf)
            self.most[size] = 1 + self.most[rest].max(initial=-np.inf)

    def first(self) -> NDArray[np.int32] | None:
        """Return the first partition that is allowed; None where there is none."""
        parts = self._parts((1 << len(self.near)) - 1)
        if not self._may_succeed(parts, 0):
            return None
        chosen: list[int] = []
        failed: set[tuple[int, int]] = set()  # sites that are left, and after how many clusters
        frames = [(parts, self._clusters(_smallest(parts)))]
        while frames:
            parts, clusters = frames[-1]
            part = _smallest(parts)
            others, n_clusters = [other for other in parts if other != part], len(chosen) + 1
            for cluster in clusters:
                self._count(part.bit_count())
                rest = others + self._parts(part & ~cluster)
                if (sum(rest), n_clusters) in failed or not self._may_succeed(rest, n_clusters):
                    continue
                if rest:
                    chosen.append(cluster)
                    frames.append((rest, self._clusters(_smallest(rest))))
                    break
                labels = self._labels([*chosen, cluster])
                if self.model.allows(labels):
                    return labels
            else:
                if self.model.tables is not None:  # else it depends on the sizes of the clusters, too
                    failed.add((sum(parts), len(chosen)))
                frames.pop()
                chosen = chosen[:-1]
        return None

    def _count(self, steps: int) -> None:
        """Count steps; there is a limit."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooManyStepsError

    def _labels(self, clusters: list[int]) -> NDArray[np.int32]:
        """Return the partition into these clusters."""
        labels = np.zeros(len(self.near), np.int64)
        for number, cluster in enumerate(clusters):
            labels[list(_sites(cluster))] = number
        return checked_labels("labels", labels, labels.size)

    def _parts(self, left: int) -> list[int]:
        """Return the connected parts of a set of sites."""
        parts = []
        while left:
            part, new = 0, left & -left
            while new:
                site = new & -new
                part |= site
                new = (new | self.near[site.bit_length() - 1] & left) & ~part
            parts.append(part)
            left -= part
        return parts

    def _may_succeed(self, parts: list[int], n_clusters: int) -> bool:
        """Whether no count rules out that parts can be divided into clusters, besides those that are there."""
        low = high = n_clusters
        for part in parts:
            size, inside = part.bit_count(), [seed for seed in self.seeds if seed & part]
            if len(inside) > self.most[size] or any(seed & ~part for seed in inside):
                return False
            low += max(int(self.fewest[size]), len(inside))
            high += int(self.most[size])
        return bool(self.allowed.numbers[low : high + 1].any())

    def _clusters(self, part: int) -> Iterator[int]:
        """Yield all connected clusters of one site of a part, that with the fewest neighbors, which are allowed."""
        site = min(_sites(part), key=lambda i: (self.near[i] & part).bit_count())
        largest = int(np.flatnonzero(self.allowed.sizes)[-1])
        free = part & ~(1 << site | self.other_seeds[site])
        growing = [[1 << site, free & self.near[site], free]]  # a cluster, its border, and the sites that it may take
        if not self.coarse and self._is_allowed(1 << site):
            yield 1 << site
        while growing:
            cluster, border, free = growing[-1]
            if not border or cluster.bit_count() == largest:
                growing.pop()
                if self.coarse and self._is_allowed(cluster):
                    yield cluster
                continue
            self._count(border.bit_count())
            site = min(_sites(border), key=lambda i: (self.near[i] & free).bit_count())
            free &= ~(1 << site)
            # After the clusters with this site come those without it; there are none if a seed is left without it.
            growing[-1][1:] = 0 if self.own_seed[site] & cluster else border & free, free
            free &= ~self.other_seeds[site]
            cluster |= 1 << site
            growing.append([cluster, (border | self.near[site]) & free, free])
            if not self.coarse and self._is_allowed(cluster):
                yield cluster

    def _is_allowed(self, cluster: int) -> bool:
        """Whether a cluster has an allowed size and no part of a seed."""
        return bool(self.allowed.sizes[cluster.bit_count()]) and not any(
            seed & cluster and seed & ~cluster for seed in self.seeds
        )


def _mask(sites: NDArray[np.integer]) -> int:
    """Return a set of sites as the bits of a number."""
    return sum(1 << site for site in sites.tolist())


def _sites(mask: int) -> Iterator[int]:
    """Yield the sites of a set."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _smallest(parts: list[int]) -> int:
    """Return the smallest part, which leaves the fewest choices."""
    return min(parts, key=int.bit_count)


def _annealed(model: Model, allowed: Allowed, start: NDArray[np.int32]) -> NDArray[np.int32] | None:
    """Return an allowed partition that annealing finds; None where it finds none."""
    prior = TabulatedPrior(-_distance(allowed.numbers), -_distance(allowed.sizes))
    relaxed = Model(model.graph, Flat(), prior, connected=True, seeds=model.seeds)
    target = pack(relaxed, relaxed.beta)
    attempts = attempts_for("few", start.size, connected=True, limited=True, kinds=False)
    for annealing in range(N_ANNEALINGS):
        record = new_record(TEMPERATURES * SWEEPS_EACH, start.size)
        plan = Plan(np.zeros(1), attempts, 1.0, record.log_posterior.size, 1, connected=True)
        log_posterior, rng = relaxed.log_posterior(start), np.random.default_rng(annealing)
        chain = Chain(relaxed, target, plan, start, log_posterior, record, rng)
        for temperature in np.geomspace(HOTTEST, COLDEST, TEMPERATURES):
            chain.plan = plan._replace(inv_temperature=1 / temperature)
            chain.advance(chain.done + SWEEPS_EACH)
            if model.allows(record.best):
                return record.best.copy()
    return None


def _distance(allowed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the distance of each index to the nearest one that is allowed."""
    indices = np.arange(allowed.size, dtype=np.float64)
    last, following = np.where(allowed, indices, -np.inf), np.where(allowed, indices, np.inf)
    before = indices - np.maximum.accumulate(last)
    return np.minimum(before, np.minimum.accumulate(following[::-1])[::-1] - indices)
