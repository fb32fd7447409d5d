"""Sweeps under a prior that is only known as log g(sizes): the compiled steps, with log g added in between."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinseg.inference import _kernels
from spinseg.inference._kernels import CURSOR, DONE, FULL, N_CLUSTERS, N_SPINS, STOP, STOPPED, Record, State, Target

LogG = Callable[[NDArray[np.int64]], float]


def run(
    log_g: LogG,
    target: Target,
    state: State,
    record: Record,
    done: int,
    until: int,
    burn_in: int,
    thin: int,
    lams: NDArray[np.float64],
    inv_temperature: float,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """As the compiled `run`, for a target whose tables leave the prior out."""
    for t in range(done, until):
        if state.number[CURSOR] == state.number[N_SPINS]:
            _kernels.begin_sweep(target, state, lams, rng)
        status = sweep(log_g, target, state, inv_temperature, rng)
        if status != DONE:
            return status, t
        _kernels.keep(state, record, t, burn_in, thin)
    return DONE, until


def sweep(log_g: LogG, target: Target, state: State, inv_temperature: float, rng: np.random.Generator) -> int:
    """As the compiled `sweep`."""
    for c in range(state.number[CURSOR], state.number[N_SPINS]):
        state.number[CURSOR] = c
        if state.number[N_CLUSTERS] + 1 >= state.size.size:
            return FULL
        if state.number[STOP] != 0:
            return STOPPED
        old, n_bins, n_slots = _kernels.propose(target, state, c)
        if n_slots > 1:
            weigh_prior(log_g, state, int(state.first[c + 1] - state.first[c]), int(old), n_slots)
            new = _kernels.choose(state, n_slots, inv_temperature, rng)
            if new != old:
                _kernels.move(target, state, c, old, new, n_bins)
    state.number[CURSOR] = state.number[N_SPINS]
    return DONE


def weigh_prior(log_g: LogG, state: State, n_members: int, old: int, n_slots: int) -> None:
    """Add log g of the sizes after the move to the gain of each destination; equal sizes are evaluated once."""
    sizes = state.size[:n_slots].astype(np.int64)
    sizes[old] -= n_members
    known: dict[int, float] = {}
    for j in range(n_slots):
        m = int(sizes[j])
        if m not in known:
            sizes[j] += n_members
            known[m] = log_g(sizes[sizes > 0])
            sizes[j] -= n_members
        state.gain[j] += known[m]
