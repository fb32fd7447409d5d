"""A run of iterations, and what is recorded of it."""

from spinseg._compiled import internal, jit
from spinseg.sampler.kernels.exchange import exchange
from spinseg.sampler.kernels.regroup import regroup
from spinseg.sampler.kernels.regrowth import grow
from spinseg.sampler.kernels.split_merge import split_merge
from spinseg.sampler.kernels.state import (
    DONE,
    EXCHANGES_LEFT,
    GROWTHS_LEFT,
    LOG_POSTERIOR,
    N_CLUSTERS,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    REGROUPS_LEFT,
    SPLITS_LEFT,
)
from spinseg.sampler.kernels.sweep import begin_sweep, sweep


@internal
def renumber(label, rank, out):
    """Write `label` to `out`, numbered 0..k-1 by first appearance."""
    for r in range(rank.size):
        rank[r] = -1
    k = 0
    for i in range(label.size):
        if rank[label[i]] < 0:
            rank[label[i]] = k
            k += 1
        out[i] = rank[label[i]]


@internal
def record_iteration(state, record, plan, t):
    """Record the traces of sweep t, its draw if it is one to keep, and its partition if it is the best so far."""
    record.log_posterior[t] = state.scalars[LOG_POSTERIOR]
    record.n_clusters[t] = state.counters[N_CLUSTERS]
    after = t + 1 - plan.burn_in
    if after > 0 and after % plan.thin == 0:
        renumber(state.label, state.rank, record.draw[after // plan.thin - 1])
    if state.scalars[LOG_POSTERIOR] > record.best_log_posterior[0]:
        record.best_log_posterior[0] = state.scalars[LOG_POSTERIOR]
        renumber(state.label, state.rank, record.best)


@jit
def run_iterations(target, state, record, plan, done, until, rng):
    """Do iterations done..until-1, the first of which may have been interrupted.

    Returns the status and how many are done.

    An iteration is a sweep of all spin-clusters, then attempts to split or merge clusters, then to regroup them; or,
    where clusters must be connected, to split, merge or redraw them along a growth order; then to exchange sites.
    """
    for t in range(done, until):
        left = state.counters[N_SPIN_CLUSTERS] - state.counters[NEXT_INDEX] + state.counters[SPLITS_LEFT]
        left += state.counters[REGROUPS_LEFT] + state.counters[GROWTHS_LEFT] + state.counters[EXCHANGES_LEFT]
        if left == 0:
            begin_sweep(target, state, plan, rng)
            for i in range(state.spin.size):
                record.spin[i] = state.spin[i]
            state.counters[SPLITS_LEFT] = plan.splits
            state.counters[REGROUPS_LEFT] = plan.regroups
            state.counters[GROWTHS_LEFT] = plan.growths
            state.counters[EXCHANGES_LEFT] = plan.exchanges
        status = sweep(target, state, plan.inv_temperature, rng)
        if status == DONE:
            status = split_merge(target, state, record.move_counts, plan.inv_temperature, rng)
        if status == DONE:
            status = regroup(target, state, record.move_counts, plan.inv_temperature, rng)
        if status == DONE:
            status = grow(target, state, record.move_counts, plan, rng)
        if status == DONE:
            status = exchange(target, state, record.move_counts, plan, rng)
        if status != DONE:
            return status, t
        record_iteration(state, record, plan, t)
    return DONE, until
