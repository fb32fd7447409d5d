"""What is kept of a chain: traces, draws, and the best partition."""

import cython

from spinseg.sampler.kernels.state import LOG_POSTERIOR, N_CLUSTERS, Index, Plan, Record, State


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def renumber(label: cython.uint[::1], rank: cython.int[::1], out: cython.int[::1]) -> cython.void:
    """Write `label` to `out`, numbered 0..k-1 by first appearance."""
    for r in range(rank.shape[0]):
        rank[r] = -1
    k = 0
    for i in range(label.shape[0]):
        if rank[label[i]] < 0:
            rank[label[i]] = k
            k += 1
        out[i] = rank[label[i]]


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def renumber_kinds(state: State, out: cython.int[::1]) -> cython.void:
    """Write the kind of the cluster of each site to `out`, numbered 0.. by first appearance."""
    k = 0
    for r in range(state.nested.rank.shape[0]):
        state.nested.rank[r] = -1
    for i in range(state.label.shape[0]):
        kind = state.nested.label[state.label[i]]
        if state.nested.rank[kind] < 0:
            state.nested.rank[kind] = k
            k += 1
        out[i] = state.nested.rank[kind]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def record_iteration(state: State, record: Record, plan: Plan, t: Index) -> cython.void:
    """Record the traces of sweep t, its draw if it is one to keep, and its partition if it is the best so far."""
    record.log_posterior[t] = state.scalars[LOG_POSTERIOR]
    record.n_clusters[t] = state.counters[N_CLUSTERS]
    after = t + 1 - plan.burn_in
    if after > 0 and after % plan.thin == 0:
        renumber(state.label, state.rank, record.draw[after // plan.thin - 1])
        if record.best_kind.shape[0] > 0:
            renumber_kinds(state, record.kind[after // plan.thin - 1])
    if state.scalars[LOG_POSTERIOR] > record.best_log_posterior[0]:
        record.best_log_posterior[0] = state.scalars[LOG_POSTERIOR]
        renumber(state.label, state.rank, record.best)
        if record.best_kind.shape[0] > 0:
            renumber_kinds(state, record.best_kind)
