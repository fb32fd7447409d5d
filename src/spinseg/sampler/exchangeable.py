"""A prior that is only known as log g(sizes), which the compiled sampler asks at each decision."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spinseg.sampler.kernels.state import ANYWHERE, N_CLUSTERS, REACH, STOP, State

LogG = Callable[[NDArray[np.int64]], float]

MAX_KNOWN = 100_000  # values of log g that are kept


class SizePrior:
    """log g of sizes, for kernels, which can raise nothing: an exception stops the chain at a valid partition."""

    def __init__(self, log_g: LogG) -> None:
        self._log_g = log_g
        self._known: dict[bytes, float] = {}  # log g by sorted sizes
        self._raised: BaseException | None = None

    def check(self) -> None:
        """Raise what log g has raised."""
        if self._raised is not None:
            raised, self._raised = self._raised, None
            raise raised

    def _value(self, sizes: NDArray[np.int64]) -> float:
        """log g of these sizes, evaluated once while it is kept."""
        key = np.sort(sizes).tobytes()
        if key not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = self._log_g(sizes)
        return self._known[key]

    def weigh_sizes(self, state: State, c: int, old: int, n_destinations: int) -> bool:
        """Add log g of the sizes after each move of spin-cluster c, in slot `old`, to its log weight; False if stopped.

        Destinations of equal size are evaluated once.
        """
        n_members = int(state.first[c + 1] - state.first[c])
        sizes = state.size[: state.counters[N_CLUSTERS] + 1].astype(np.int64)
        sizes[old] -= n_members
        known: dict[int, float] = {}
        for j in range(n_destinations):
            slot = j if state.counters[REACH] == ANYWHERE else int(state.touched[j])
            m = int(sizes[slot])
            if m not in known:
                sizes[slot] += n_members
                try:
                    known[m] = self._value(sizes[sizes > 0])
                except BaseException as error:  # a kernel would lose it
                    self._stop(state, error)
                    return False
                sizes[slot] -= n_members
            state.log_weight[j] += known[m]
        return True

    def change_of_sizes(self, state: State, slots: tuple[int, ...], n_old: int, n_new: int) -> float:
        """Change of log g if n_new clusters from slot k on replace those in slots[:n_old]; one holds their sites.

        -inf, so that nothing is changed, if log g raises.
        """
        k = int(state.counters[N_CLUSTERS])
        sizes, gone = state.size[:k].astype(np.int64), list(slots[:n_old])
        new = state.size[k : k + n_new] if n_new > 1 else sizes[gone].sum()
        try:
            return self._value(np.append(np.delete(sizes, gone), new)) - self._value(sizes)
        except BaseException as error:
            self._stop(state, error)
            return -math.inf

    def _stop(self, state: State, error: BaseException) -> None:
        """Stop a chain, and keep what was raised."""
        self._raised, state.counters[STOP] = error, 1
