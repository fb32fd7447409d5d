"""Iterations under a prior that is only known as log g(sizes).

The loops are those of the compiled sampler, run uncompiled: the steps within them stay compiled, and in place of the
functions of `kernels/size_prior.py`, which add nothing there, the loops find functions here that evaluate log g.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._compiled import entry
from spinseg.sampler.kernels import exchange, iterations, regroup, regrowth, split_merge, sweep
from spinseg.sampler.kernels.state import ANYWHERE, N_CLUSTERS, REACH, State

LogG = Callable[[NDArray[np.int64]], float]

MAX_KNOWN = 100_000  # values of log g that are kept

MODULES = (sweep, split_merge, regroup, regrowth, iterations)
STEPS = (
    *(sweep.begin_sweep, sweep.weigh_destinations, sweep.choose, sweep.move, iterations.record_iteration),
    *(split_merge.propose_split, split_merge.finish_split, split_merge.propose_merge, split_merge.finish_merge),
    *(split_merge.log_q_reverse_split, regroup.propose_regroup, regroup.finish_regroup, regroup.log_q_reverse_regroup),
    *(sweep.may_leave, regrowth.draw_seeds, regrowth.plan_regrowth, regrowth.propose_union, regrowth.is_regrown),
    *(regrowth.finish_union, regrowth.propose_regrowth, regrowth.finish_regrowth, exchange.exchange),
)
LOOPS = (
    *(sweep.sweep, split_merge.split_or_merge, split_merge.split_merge, regroup.regroup),
    *(regrowth.regrow, regrowth.grow, iterations.run_iterations),
)
ENTRIES = {step.__name__: entry(step) for step in STEPS}  # compiled, and callable from the interpreter


def run_iterations_with(log_g: LogG) -> Callable[..., tuple[int, int]]:
    """`run_iterations` for a target whose tables leave the prior out, with log g added at each decision."""
    names: dict[str, Any] = {}
    for module in MODULES:
        names |= vars(module)
    prior = SizePrior(log_g)
    names |= ENTRIES | {name: getattr(prior, name) for name in vars(SizePrior) if not name.startswith("_")}
    for loop in LOOPS:
        names[loop.__name__] = FunctionType(getattr(loop, "py_func", loop).__code__, names)
    return names["run_iterations"]


class SizePrior:
    """The functions of `kernels/size_prior.py`, under the same names, for one log g."""

    def __init__(self, log_g: LogG) -> None:
        self._log_g = log_g
        self._known: dict[bytes, float] = {}  # log g by sorted sizes

    def _value(self, sizes: NDArray[np.int64]) -> float:
        """log g of these sizes, evaluated once while it is kept."""
        key = np.sort(sizes).tobytes()
        if key not in self._known:
            if len(self._known) == MAX_KNOWN:
                self._known.clear()
            self._known[key] = self._log_g(sizes)
        return self._known[key]

    def weigh_sizes(self, state: State, c: int, old: int, n_destinations: int) -> None:
        """Add log g of the sizes after each move to its log weight; clusters of equal size are evaluated once."""
        n_members = int(state.first[c + 1] - state.first[c])
        sizes = state.size[: state.counters[N_CLUSTERS] + 1].astype(np.int64)
        sizes[old] -= n_members
        known: dict[int, float] = {}
        for j in range(n_destinations):
            slot = j if state.counters[REACH] == ANYWHERE else int(state.touched[j])
            m = int(sizes[slot])
            if m not in known:
                sizes[slot] += n_members
                known[m] = self._value(sizes[sizes > 0])
                sizes[slot] -= n_members
            state.log_weight[j] += known[m]

    def change_of_split(self, state: State, slot: int) -> float:
        """Two new clusters in place of `slot`."""
        k = int(state.counters[N_CLUSTERS])
        return self._change(state, [slot], state.size[k : k + 2])

    def change_of_merge(self, state: State, a: int, b: int) -> float:
        """One new cluster in place of those in slots a and b."""
        return self._change(state, [a, b], state.size[a] + state.size[b])

    def change_of_regroup(self, state: State, anchors: tuple[int, ...], n_old: int, n_new: int) -> float:
        """The clusters that were proposed in place of those of the first anchors."""
        k = int(state.counters[N_CLUSTERS])
        old = [int(state.slot_of[state.label[anchor]]) for anchor in anchors[:n_old]]
        return self._change(state, old, state.size[k : k + n_new])

    def _change(self, state: State, old: list[int], new: Any) -> float:
        """Change of log g when the clusters in slots `old` are replaced by clusters of sizes `new`."""
        sizes = state.size[: state.counters[N_CLUSTERS]].astype(np.int64)
        return self._value(np.append(np.delete(sizes, old), new)) - self._value(sizes)
