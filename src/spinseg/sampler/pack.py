"""From a model to the arrays of the compiled sampler: the one place that fixes their types and layout."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.special import gammaln

from spinseg._validation import check_choice, check_int, check_real, finite_array, invalid
from spinseg.model.likelihoods import DenseTerm, HistogramTerm, Likelihood, Product, count_table
from spinseg.model.posterior import Model
from spinseg.model.priors import log_rising
from spinseg.partition.numbering import checked_labels
from spinseg.sampler.exchangeable import SizePrior
from spinseg.sampler.kernels.clusters import rebuild
from spinseg.sampler.kernels.kinds import sum_kinds
from spinseg.sampler.kernels.likelihood import FAMILIES, packed
from spinseg.sampler.kernels.moves import MOVES, PROPOSALS
from spinseg.sampler.kernels.state import (
    LOG_POSTERIOR,
    N_CLUSTERS,
    N_COUNTERS,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    STOP,
    Record,
    State,
    Target,
)

MAX_LOG_DELAY = 300.0  # beyond which couplings no longer matter to the order in which sites are reached
SEED_STRENGTH = 1e12  # of bonds between neighbors of one seed, which are never apart: bonded in every sweep that bonds
TERMS_ERROR = 1e-6  # by which terms may differ from log marginals, in nats and as a share of these
TERMS_RULE = "be a list of HistogramTerm and DenseTerm"
MAX_TABLE = 2**25  # entries of all tables of lgamma together, 256 MB; bins beyond that are evaluated directly


Fields = dict[str, NDArray]  # of a Target or a State


def pack(
    model: Model, strength: NDArray[np.float64], similar: NDArray[np.uint32] | None = None, max_table: int = MAX_TABLE
) -> Target:
    """The model as a Target.

    `strength` is the bond strength of each edge per unit of lambda, `similar` the table of `similar_sites`.
    """
    graph, n_sites = model.graph, model.graph.n_sites
    before = np.bincount(graph.edges.max(axis=1), minlength=n_sites)
    terms = terms_of(model.likelihood, n_sites)
    nothing = np.zeros(n_sites + 1)  # for a prior without tables: its log g is added outside the compiled code
    log_v, log_w = (np.ascontiguousarray(table, np.float64) for table in model.tables or (nothing, nothing))
    target = Target(
        log_g=None if model.tables else SizePrior(model.prior.log_g),
        start=graph.start.astype(np.uint64),
        upper=(graph.start[:-1] + before).astype(np.uint64),
        neighbor=graph.neighbors.astype(np.uint32),
        **couplings_of(model, strength),
        **_histograms([t for t in terms if isinstance(t, HistogramTerm)], n_sites, model.power, max_table),
        **_blocks([t for t in terms if isinstance(t, DenseTerm)], n_sites, model.power, model.seeds),
        log_v=log_v,
        log_w=log_w,
        proposal_log_w=_filled(log_w),
        similar=np.empty((n_sites, 0), np.uint32) if similar is None else similar,
        **_kind_tables(model),
    )
    if not _is_ours(model.likelihood):
        _check_terms(model, target)
    return target


def _filled(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """A table of a prior whose -inf are interpolated; zeros where it has nothing else."""
    at, finite = np.arange(table.size), np.isfinite(table)
    return np.interp(at, at[finite], table[finite]) if finite.any() else np.zeros(table.size)


def _kind_tables(model: Model) -> Fields:
    """The prior of kinds as fields of a Target."""
    if model.kind_tables is None:
        return {"kind_table": np.empty((3, 0)), "kind_log_v": np.empty((2, 1, 0))}
    log_v, log_w, log_total = model.kind_tables
    proposal_log_v = np.apply_along_axis(_filled, 1, log_v)
    return {
        "kind_table": np.stack([log_w, _filled(log_w), log_total]),
        "kind_log_v": np.stack([log_v, proposal_log_v]),
    }


def _is_ours(likelihood: Likelihood) -> bool:
    """Whether a likelihood, and every part of a product, is one of this package, whose terms are tested."""
    if isinstance(likelihood, Product) and not all(map(_is_ours, likelihood.parts)):
        return False
    return type(likelihood).__module__.startswith("spinseg.")


def terms_of(likelihood: Likelihood, n_sites: int) -> list[HistogramTerm | DenseTerm]:
    """The terms of a likelihood. Those of a caller's own are checked, since compiled code reads them unchecked."""
    if type(likelihood) is Product:
        return [term for part in likelihood.parts for term in terms_of(part, n_sites)]
    terms = likelihood.terms()
    if _is_ours(likelihood):
        return terms
    if not isinstance(terms, (list, tuple)) or isinstance(terms, (HistogramTerm, DenseTerm)):
        invalid("likelihood.terms()", TERMS_RULE, type(terms).__name__)
    return [_checked_term(f"likelihood.terms()[{i}]", term, n_sites) for i, term in enumerate(terms)]


def _checked_term(name: str, term: object, n_sites: int) -> HistogramTerm | DenseTerm:
    """A term with arrays of the right types, refused where their shapes do not fit or they hold no numbers."""
    if isinstance(term, HistogramTerm):
        counts = count_table(f"{name}.counts", term.counts)
        if counts.shape[0] != n_sites:
            invalid(f"{name}.counts", f"have a row for each of {n_sites} sites", counts.shape)
        prior, sign = (finite_array(f"{name}.{key}", getattr(term, key), counts.shape[1:]) for key in ("prior", "sign"))
        if (prior <= 0).any():
            invalid(f"{name}.prior", "be positive", prior[prior <= 0][0])
        return HistogramTerm(counts, prior, sign, check_real(f"{name}.weight", term.weight, above=0))
    if not isinstance(term, DenseTerm):
        invalid("likelihood.terms()", TERMS_RULE, f"a list with {type(term).__name__}")
    check_choice(f"{name}.family", term.family, tuple(FAMILIES))
    channels = check_int(f"{name}.channels", term.channels, at_least=1)
    n_statistics, n_parameters = FAMILIES[term.family](channels)
    statistics = finite_array(f"{name}.statistics", term.statistics, (n_sites, n_statistics))
    parameters = finite_array(f"{name}.parameters", term.parameters, (n_parameters,))
    return DenseTerm(term.family, channels, statistics, parameters)


def _check_terms(model: Model, target: Target) -> None:
    """Refuse terms that differ from `log_marginal` by more than a constant: in halves, fifths, and single sites."""
    n_sites, rng = model.graph.n_sites, np.random.default_rng(0)
    alone = np.zeros(n_sites, np.int64)
    some = rng.permutation(n_sites)[:8]
    alone[some] = 1 + np.arange(some.size)
    partitions = [np.zeros(n_sites, np.int64), rng.integers(0, 2, n_sites), rng.integers(0, 5, n_sites), alone]
    ours, theirs = [], []
    for labels in (checked_labels("labels", labels, n_sites) for labels in partitions):
        state = new_state(target, labels, 0.0)
        ours.append(float(state.value.sum() + state.dense_value.sum()) / model.power)
        theirs.append(sum(model.likelihood.log_marginal(np.flatnonzero(labels == c)) for c in range(labels.max() + 1)))
        wanted, found = theirs[-1] - theirs[0], ours[-1] - ours[0]
        if not abs(found - wanted) <= TERMS_ERROR * (1 + abs(theirs[0]) + abs(theirs[-1])):
            rule = f"add up to log_marginal, which changes by {wanted:.6g} from one cluster to {labels.max() + 1}"
            invalid("likelihood.terms()", rule, round(found, 6))


def couplings_of(model: Model, strength: NDArray[np.float64]) -> Fields:
    """The fields of Target that depend on couplings and bonds; the components of a mixture share the others.

    Neighbors of one seed of the model are always bonded, and growth reaches them one right after the other, so that no
    side can come between them.
    """
    graph, coupling = model.graph, model.power * model.beta
    beta = coupling[graph.edge_of]
    same = np.array_equal(strength, coupling)  # of large graphs these arrays are the most
    joined = np.zeros(graph.n_edges, bool)  # edges between two sites of one seed
    if model.seeds is not None:
        ends = model.seeds[graph.edges]
        joined = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] > 0)
        same, strength = False, np.where(joined, SEED_STRENGTH, strength)
    delay, sums = np.empty(0), np.empty(0)
    if model.connected:
        delay = np.exp(-np.clip(beta, -MAX_LOG_DELAY, MAX_LOG_DELAY))
        delay[joined[graph.edge_of]] = 0.0
        weights = seed_weight(delay)
        sums = np.concatenate([[0.0], np.cumsum(weights)])[graph.start]
    return {
        "beta": beta,
        "strength": beta if same else np.ascontiguousarray(strength[graph.edge_of], dtype=np.float64),
        "delay": delay,
        "seed_weight": sums,
    }


def _histograms(terms: list[HistogramTerm], n_sites: int, power: float, max_table: int) -> Fields:
    """All histogram terms side by side, with the tables of as many bins as fit, small ones first."""
    counts = sparse.csr_array((n_sites, 0), dtype=np.int32)
    bin_prior = np.empty((0, 4))
    if terms:
        counts = sparse.hstack([term.counts for term in terms], format="csr")
        parts = [[t.prior, np.full(t.prior.size, t.weight), power * t.sign, gammaln(t.prior)] for t in terms]
        bin_prior = np.hstack(parts).T.copy()
    counts.sum_duplicates()
    counts.eliminate_zeros()  # an entry of the sampler is a count of at least 1
    highest = np.asarray(counts.sum(axis=0, dtype=np.int64)).reshape(-1)
    order = np.argsort(highest, kind="stable")
    order = order[np.cumsum(highest[order] + 1) <= max_table][::-1]  # largest first: little padding
    ends = np.cumsum(highest[order] + 1)
    start = np.full(highest.size, -1, np.int64)
    start[order] = ends - highest[order] - 1
    # The sampler reads, and discards, entries up to one bin's highest count beyond the end of its table.
    length = int((start[order] + 2 * highest[order] + 1).max(initial=0))
    table = np.zeros(length)
    for d in order:
        pi, weight, sign, _ = bin_prior[d]
        table[start[d] : start[d] + highest[d] + 1] = sign * log_rising(pi, weight * np.arange(highest[d] + 1))
    return {
        "row": counts.indptr.astype(np.uint64),
        "bin": counts.indices.astype(np.uint32),
        "bin_count": counts.data.astype(np.int32),
        "table": table,
        "table_start": start,
        "bin_prior": bin_prior,
    }


def _blocks(terms: list[DenseTerm], n_sites: int, power: float, seeds: NDArray[np.int64] | None) -> Fields:
    """All dense terms side by side, and for seeds the two statistics of each site that `kernels.constraints` needs."""
    rows, statistics, parameters = [], [np.empty((n_sites, 0))], [np.array([power])]
    for term in terms:
        first = sum(part.shape[1] for part in statistics), sum(part.size for part in parameters)
        rows.append((list(FAMILIES).index(term.family), term.channels, *first))
        statistics.append(term.statistics)
        parameters.append(packed(term.family, term.channels, term.parameters))
    marker_size = np.empty(0)
    if seeds is not None:
        marker = np.unique(np.append(0, seeds), return_inverse=True)[1].ravel()[1:]
        marker_size = np.bincount(marker).astype(np.float64)
        statistics.append(np.stack([marker > 0, marker], axis=1).astype(np.float64))
    return {
        "block": np.array(rows, dtype=np.int64).reshape(-1, 4),
        "parameter": np.concatenate(parameters),
        "statistic": np.ascontiguousarray(np.hstack(statistics)),
        "marker_size": marker_size,
    }


def new_state(
    target: Target, labels: NDArray[np.int32], log_posterior: float, kinds: NDArray[np.int32] | None = None
) -> State:
    """A chain at a partition numbered 0..k-1, before its first sweep; `kinds` are those of the sites, numbered so."""
    n_sites, n_bins, n_statistics = labels.size, target.bin_prior.shape[0], target.statistic.shape[1]
    k = int(labels.max()) + 1
    widest = int(target.block[:, 1].max(initial=0))
    n_grown = n_sites if target.seed_weight.size else 0
    state = State(
        label=labels.astype(np.uint32),
        **_cluster_tables(n_bins, n_statistics, _capacity(k)),
        spin=np.zeros(n_sites, np.uint32),
        member=np.zeros(n_sites, np.uint32),
        first=np.zeros(n_sites + 1, np.uint32),
        pool_bin=np.zeros(n_bins + 1, np.uint32),
        pool_count=np.zeros(n_bins, np.int32),
        pooled=np.zeros(n_bins, np.int32),
        pool_total=np.zeros(n_statistics),
        joined=np.zeros(n_statistics),
        work=np.zeros(widest * (widest + 1) // 2),
        sides=np.zeros((3, 4)),
        key=np.zeros(n_grown),
        queue=np.zeros(n_grown, np.uint32),
        place=np.zeros(n_grown, np.uint32),
        pending=np.zeros(n_grown, np.uint32),
        attempts_left=np.zeros(len(MOVES), np.int64),
        counters=np.zeros(N_COUNTERS, np.int64),
        scalars=np.zeros(2),
    )
    state.counters[N_CLUSTERS] = k
    state.scalars[LOG_POSTERIOR] = log_posterior
    rebuild(target, state)
    if kinds is None:
        return state
    kind_of_region = np.zeros(k, np.int64)
    kind_of_region[labels] = kinds
    state = state._replace(nested=_state_of_kinds(state, kind_of_region))
    sum_kinds(target, state)
    return state


SUMS = ("total", "dense_value")  # of clusters
SUMS_ERROR = 1e-6  # of which rounding leaves less, as a share of the sum over all sites
SHARED = ("pool_bin", "pool_count", "pooled", "pool_total", "joined", "work", "sides")  # by regions and kinds


def _state_of_kinds(state: State, kind_of_region: NDArray[np.int64]) -> State:
    """The nested state of kinds of the regions in slots 0..k-1, which are their ids; without statistics."""
    n_ids, n_kinds = state.size.size, int(kind_of_region.max()) + 1
    label = np.zeros(n_ids, np.uint32)
    label[: kind_of_region.size] = kind_of_region
    tables = _cluster_tables(state.counts.shape[0], state.total.shape[1], _capacity(n_kinds))
    for name in ("slot_of", "id_of"):
        tables[name][:] = np.arange(tables[name].size)
    nothing = {name: np.zeros(0, getattr(state, name).dtype) for name in ("key", "queue", "place", "pending")}
    counters = np.zeros(N_COUNTERS, np.int64)
    counters[N_CLUSTERS] = n_kinds
    return State(
        label=label,
        **tables,
        spin=np.zeros(n_ids, np.uint32),
        member=np.zeros(n_ids, np.uint32),
        first=np.zeros(n_ids + 1, np.uint32),
        **{name: getattr(state, name) for name in SHARED},
        **nothing,
        attempts_left=np.zeros(len(MOVES), np.int64),
        counters=counters,
        scalars=np.zeros(2),
    )


def _capacity(n_clusters: int) -> int:
    """A capacity for n_clusters, with room to grow: a multiple of 4, but no power of two, which caches do not like."""
    return 4 * (n_clusters // 2 + 3)


def _cluster_tables(n_bins: int, n_statistics: int, capacity: int) -> Fields:
    """The fields of State that have an entry for each slot, all zero."""
    return {
        "slot_of": np.zeros(capacity, np.uint32),
        "id_of": np.zeros(capacity, np.uint32),
        "size": np.zeros(capacity, np.int32),
        "counts": np.zeros((n_bins, capacity), np.int32),
        "value": np.zeros((n_bins, capacity)),
        "total": np.zeros((capacity, n_statistics)),
        "dense_value": np.zeros(capacity),
        "log_weight": np.zeros(capacity),
        "bond_weight": np.zeros(capacity),
        "touched": np.zeros(capacity, np.uint32),
        "rank": np.zeros(capacity, np.int32),
    }


def resized(state: State) -> State:
    """The same chain with tables that fit its number of clusters: larger if they are full, smaller if mostly unused."""
    k = int(state.counters[N_CLUSTERS])
    # The slots become the ids, since those in use may lie beyond a smaller capacity.
    fitting = state._replace(label=state.slot_of[state.label], **_fitting_tables(state))
    if state.nested is None:
        return fitting
    kinds = state.nested
    slots = kinds.slot_of[kinds.label[state.id_of[:k]]].astype(np.int64)
    return fitting._replace(nested=_state_of_kinds(fitting, slots)._replace(**_fitting_tables(kinds)))


def _fitting_tables(state: State) -> Fields:
    """The fields of a state that have an entry for each slot, with a capacity that fits, and slots as ids."""
    k = int(state.counters[N_CLUSTERS])
    fields = _cluster_tables(state.counts.shape[0], state.total.shape[1], _capacity(k))
    for name in ("size", "dense_value", "counts", "value"):
        fields[name][..., :k] = getattr(state, name)[..., :k]
    fields["total"][:k] = state.total[:k]
    fields["slot_of"][:] = fields["id_of"][:] = np.arange(fields["size"].size, dtype=np.uint32)
    return fields


def arrays_of(state: State) -> Fields:
    """What the next sweep depends on and the model does not give, from which `state_from` makes the state again.

    Sums of floating-point numbers are part of it, since they depend on the order in which sites came and went.
    """
    k, kinds = int(state.counters[N_CLUSTERS]), state.nested
    arrays = {name: getattr(state, name).copy() for name in ("spin", "attempts_left", "counters", "scalars")}
    arrays |= {"label": state.slot_of[state.label].astype(np.int32), "kind": np.zeros(0, np.int32)}
    arrays |= {name: getattr(state, name)[:k].copy() for name in SUMS}
    arrays["counters"][STOP] = 0
    if kinds is None:
        return arrays
    n_kinds = int(kinds.counters[N_CLUSTERS])
    arrays["kind"] = kinds.slot_of[kinds.label[state.id_of[:k]]].astype(np.int32)
    return arrays | {f"kinds.{name}": getattr(kinds, name)[:n_kinds].copy() for name in SUMS}


def state_from(target: Target, arrays: Mapping[str, NDArray]) -> State:
    """The state that `arrays_of` returned: its clusters are counted again, and then get their sums."""
    label, kind = arrays["label"], arrays["kind"]
    state = new_state(target, label, 0.0, kind[label] if kind.size else None)
    for name in ("spin", "attempts_left", "counters", "scalars"):
        getattr(state, name)[:] = arrays[name]
    n_unmarked = target.statistic.shape[1] - 2 * (target.marker_size.size > 0)  # the others are whole numbers
    magnitude = np.abs(target.statistic[:, :n_unmarked]).sum(axis=0)
    for clusters, prefix in ((state, ""), (state.nested, "kinds.")):
        if clusters is None:
            continue
        k = int(clusters.counters[N_CLUSTERS])
        total, dense_value = (arrays[f"{prefix}{name}"] for name in SUMS)
        if total.shape != clusters.total[:k].shape or dense_value.shape != (k,):
            raise ValueError("sums of other clusters or statistics")
        if (np.abs(total - clusters.total[:k])[:, :n_unmarked] > SUMS_ERROR * magnitude).any():
            raise ValueError("sums of other sites")
        clusters.total[:k, :n_unmarked], clusters.dense_value[:k] = total[:, :n_unmarked], dense_value
    if state.counters[NEXT_INDEX] < state.counters[N_SPIN_CLUSTERS]:  # a sweep was interrupted
        numbers, first_site, sizes = np.unique(state.spin, return_index=True, return_counts=True)
        is_listed = np.array_equal(numbers, np.arange(state.counters[N_SPIN_CLUSTERS]))
        if not is_listed or (label != label[first_site][state.spin]).any():
            raise ValueError("spin-clusters that are not parts of clusters")
        state.member[:] = np.argsort(state.spin, kind="stable")
        state.first[: sizes.size + 1] = np.append(0, np.cumsum(sizes))
    return state


def seed_weight(delay: NDArray[np.float64]) -> NDArray[np.float64]:
    """That of `kernels.regrowth`, of many edges."""
    return delay / (1.0 + delay) + 0.02


class Records(NamedTuple):
    """The records of several chains: the fields of `Record`, each with a leading axis for the chains."""

    log_posterior: NDArray[np.float64]
    n_clusters: NDArray[np.int32]
    draw: NDArray[np.int32]
    best: NDArray[np.int32]
    best_log_posterior: NDArray[np.float64]
    kind: NDArray[np.int32]
    best_kind: NDArray[np.int32]
    spin: NDArray[np.uint32]
    move_counts: NDArray[np.int64]


def record_of(records: Records, r: int) -> Record:
    """The record of one chain: views of those of all chains."""
    return Record(**{name: array[r] for name, array in records._asdict().items()})


def new_records(chains: int, sweeps: int, n_draws: int, n_sites: int, has_kinds: bool = False) -> Records:
    """Room for all that is kept, with a leading axis for the chains."""
    n_of_kinds = n_sites if has_kinds else 0
    return Records(
        log_posterior=np.empty((chains, sweeps)),
        n_clusters=np.empty((chains, sweeps), np.int32),
        draw=np.empty((chains, n_draws, n_sites), np.int32),
        best=np.empty((chains, n_sites), np.int32),
        best_log_posterior=np.empty((chains, 1)),
        kind=np.empty((chains, n_draws, n_of_kinds), np.int32),
        best_kind=np.empty((chains, n_of_kinds), np.int32),
        spin=np.zeros((chains, n_sites), np.uint32),
        move_counts=np.zeros((chains, len(PROPOSALS), 2), np.int64),
    )
