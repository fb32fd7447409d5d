"""Iterations under a prior that is only known as log g(sizes).

The loops are those of the compiled sampler, run uncompiled: functions of the kernels that lead to one of those that
`SizePrior` replaces. What they call otherwise stays compiled.
"""

from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._compiled import entry
from spinseg.sampler import kernels
from spinseg.sampler.kernels.state import ANYWHERE, N_CLUSTERS, REACH, State

LogG = Callable[[NDArray[np.int64]], float]

MAX_KNOWN = 100_000  # values of log g that are kept
KERNELS = kernels.__name__

compiled = lru_cache(maxsize=None)(entry)  # each step once, callable from the interpreter


def with_log_g(kernel: Callable[..., Any], log_g: LogG) -> Callable[..., Any]:
    """A kernel for a target whose tables leave the prior out, with log g added at each decision."""
    prior = SizePrior(log_g)
    return uncompiled(kernel, {name: getattr(prior, name) for name in vars(SizePrior) if not name.startswith("_")})


def uncompiled(function: Any, replaced: dict[str, Callable[..., Any]]) -> Any:
    """A function with some kernels replaced, by name, in all that it calls; itself where it calls none of them."""
    source = getattr(function, "py_func", function)  # with JIT off it is the plain function
    called = {name: source.__globals__.get(name) for name in source.__code__.co_names}
    steps = {name: value for name, value in called.items() if is_kernel(value)}
    inner = {name: replaced.get(name) or uncompiled(step, replaced) for name, step in steps.items()}
    if inner == steps:
        return function
    inner |= {name: compiled(step) for name, step in steps.items() if inner[name] is step}
    return FunctionType(source.__code__, source.__globals__ | inner)


def is_kernel(value: Any) -> bool:
    """Whether a value is a function of the kernels, compiled or, with JIT off, not."""
    return isinstance(getattr(value, "py_func", value), FunctionType) and value.__module__.startswith(KERNELS)


class SizePrior:
    """What replaces kernels, under the same names, for one log g."""

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

    def change_of_sizes(self, state: State, slots: tuple[int, ...], n_old: int, n_new: int) -> float:
        """Change of log g if n_new clusters from slot k on replace those in slots[:n_old]; one holds their sites."""
        k = int(state.counters[N_CLUSTERS])
        sizes, gone = state.size[:k].astype(np.int64), list(slots[:n_old])
        new = state.size[k : k + n_new] if n_new > 1 else sizes[gone].sum()
        return self._value(np.append(np.delete(sizes, gone), new)) - self._value(sizes)
