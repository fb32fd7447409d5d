"""One Markov chain, alone or with replicas at higher temperatures: state, random generator, record of the draws."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import finite_array, invalid
from spinseg.model.posterior import Model
from spinseg.sampler.exchangeable import SizePrior
from spinseg.sampler.kernels.moves import run_iterations
from spinseg.sampler.kernels.state import (
    CONNECTED,
    DONE,
    FULL,
    LOG_POSTERIOR,
    N_CLUSTERS,
    N_SPIN_CLUSTERS,
    NEXT_INDEX,
    REACH,
    STOP,
    STOPPED,
    Plan,
    Record,
    Target,
)
from spinseg.sampler.pack import arrays_of, new_records, new_state, record_of, resized, state_from

if TYPE_CHECKING:
    from spinseg.sampler.concentration import ConcentrationUpdate

CHUNK_SECONDS = 0.05  # of compiled code at a stretch
# Of a record.
RESTORED = ("log_posterior", "n_clusters", "draw", "best", "best_log_posterior", "kind", "best_kind", "move_counts")
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")  # of NumPy, which chains can be resumed with

Arrays = dict[str, NDArray[Any]]


class Chain:
    """A chain that can be advanced, stopped, saved as arrays and restored from them, bit by bit.

    Attributes
    ----------
    done : int
        Sweeps finished.
    began : float
        When the first sweep began, by `time.perf_counter`; infinite before.
    after_sweep : ConcentrationUpdate or None
        What else is updated after each sweep.
    """

    def __init__(
        self,
        model: Model,
        target: Target,
        plan: Plan,
        labels: NDArray[np.int32],
        log_posterior: float,
        record: Record,
        rng: np.random.Generator,
        kinds: NDArray[np.int32] | None = None,
        after_sweep: "ConcentrationUpdate | None" = None,
    ) -> None:
        self.target, self.plan, self.record, self.rng, self.after_sweep = target, plan, record, rng, after_sweep
        self.model = model
        self.place_at(labels, log_posterior, kinds)
        self.done, self.began = 0, math.inf

    def place_at(self, labels: NDArray[np.int32], log_posterior: float, kinds: NDArray[np.int32] | None = None) -> None:
        """Continue from a partition, the best so far."""
        self.state = new_state(self.target, labels, log_posterior, kinds)
        self.record.best[:] = labels
        if kinds is not None:
            self.record.best_kind[:] = kinds
        self.record.best_log_posterior[0] = self.log_posterior

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Continue to `sweeps` sweeps in all, for about `seconds`, or until stopped."""
        if self.began == math.inf:
            self.began = time.perf_counter()
        began, chunk, status = time.perf_counter(), 1, DONE
        while self.done < sweeps and status != STOPPED and time.perf_counter() - began < seconds:
            before, clock = self.done, time.perf_counter()
            until = min(self.done + (chunk if self.after_sweep is None else 1), sweeps)
            status, self.done = run_iterations(
                self.target, self.state, self.record, self.plan, self.done, until, self.rng
            )
            if isinstance(self.target.log_g, SizePrior):
                self.target.log_g.check()
            if status == DONE and self.after_sweep is not None:
                self.after_sweep(self)
                self.record.log_posterior[self.done - 1] = self.log_posterior  # that of the new concentration
            if status == FULL or self.state.size.size > 64 + 8 * self.n_clusters:
                self.state = resized(self.state)
            per_sweep = (time.perf_counter() - clock) / max(self.done - before, 1)
            chunk = min(max(int(CHUNK_SECONDS / max(per_sweep, 1e-9)), 1), 2 * chunk)

    def stop(self, stopped: bool = True) -> None:
        """Make `advance` return soon, or let it work again."""
        self.state.counters[STOP] = stopped

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return bool(self.state.counters[STOP])

    @property
    def n_clusters(self) -> int:
        """Number of clusters now."""
        return int(self.state.counters[N_CLUSTERS])

    @property
    def log_posterior(self) -> float:
        """Log posterior now."""
        return float(self.state.scalars[LOG_POSTERIOR])

    def state_dict(self) -> Arrays:
        """Everything that `restore` needs; traces and draws are views of arrays that only grow."""
        n_draws = max(self.done - self.plan.burn_in, 0) // self.plan.thin
        lengths = {"log_posterior": self.done, "n_clusters": self.done, "draw": n_draws, "kind": n_draws}
        arrays: Arrays = {"done": np.array(self.done), "rng": generator_as_array(self.rng)}
        arrays |= {name: getattr(self.record, name)[:length] for name, length in lengths.items()}
        arrays |= {name: getattr(self.record, name).copy() for name in RESTORED if name not in lengths}
        arrays |= {f"state.{name}": array for name, array in arrays_of(self.state).items()}
        if self.after_sweep is not None:
            arrays |= {f"after_sweep.{name}": array for name, array in self.after_sweep.state_dict(self.done).items()}
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays that `state_dict` returned, of which `check_whole` has looked at each alone.

        Raise ValueError if they are not those of a chain of this model: compiled code would read them as they are.
        """
        self.done, self.rng = int(arrays["done"]), generator_from_array(arrays["rng"])
        for name in RESTORED:
            getattr(self.record, name)[: len(arrays[name])] = arrays[name]
        self._check_state(state := with_prefix(arrays, "state."))
        self.state = state_from(self.target, state)
        if self.after_sweep is not None:
            self.after_sweep.restore(self, with_prefix(arrays, "after_sweep."))

    def _check_state(self, arrays: Arrays) -> None:
        """Refuse a partition, kinds or a place in the iteration that the model and the plan do not allow."""
        labels, kind, counters = arrays["label"], arrays["kind"], arrays["counters"]
        allowed = self.model.allows(labels) and (kind.size > 0) == (self.model.kinds is not None)
        if allowed and kind.size:
            allowed = self.model.log_prior_of_kinds(labels, kind[labels]) > -np.inf
        in_sweep = counters[NEXT_INDEX] < counters[N_SPIN_CLUSTERS]
        is_known_reach = not in_sweep or (counters[REACH] == CONNECTED) == self.plan.connected
        if not (allowed and is_known_reach and (arrays["attempts_left"] <= self.plan.attempts).all()):
            raise ValueError("a state that no chain of this model can be in")


class ParallelTempering(Chain):
    """A chain with replicas at rising temperatures T, each with the posterior to the power 1 / T as its target.

    After each sweep neighboring replicas, first the even pairs and then the odd ones, exchange their partitions with
    probability min(1, exp((1 / T - 1 / T') (log posterior' - log posterior))), which leaves the product of their
    targets invariant. The first replica, whose temperature is 1, is the chain itself.
    """

    def __init__(
        self,
        temperatures: Sequence[float],
        model: Model,
        target: Target,
        plan: Plan,
        labels: NDArray[np.int32],
        log_posterior: float,
        record: Record,
        rng: np.random.Generator,
        kinds: NDArray[np.int32] | None = None,
    ) -> None:
        own, *streams, self.swaps_rng = rng.spawn(len(temperatures) + 1)
        super().__init__(model, target, plan, labels, log_posterior, record, own, kinds)
        sweeps = record.log_posterior.size
        self.hotter: list[Chain] = []
        for temperature, stream in zip(temperatures[1:], streams, strict=True):
            hot = plan._replace(inv_temperature=1 / temperature, burn_in=sweeps)
            kept = new_record(sweeps, labels.size, kinds is not None)
            self.hotter.append(Chain(model, target, hot, labels, log_posterior, kept, stream, kinds))
        self.swaps_proposed = np.zeros(len(streams), np.int64)
        self.swaps_accepted = np.zeros(len(streams), np.int64)

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Continue to `sweeps` sweeps in all, for about `seconds`, or until stopped."""
        began = time.perf_counter()
        while self.done < sweeps and not self.stopped and time.perf_counter() - began < seconds:
            until = self.done + 1
            for replica in self.hotter:
                replica.advance(until)
            if all(replica.done == until for replica in self.hotter):  # or stopped: the next call continues
                super().advance(until)
            if self.done == until:
                self._exchange()

    def _exchange(self) -> None:
        """Propose an exchange to each pair of neighbors."""
        replicas = [self, *self.hotter]
        for first in (0, 1):
            for r in range(first, len(self.hotter), 2):
                cold, hot = replicas[r], replicas[r + 1]
                gap = cold.plan.inv_temperature - hot.plan.inv_temperature
                self.swaps_proposed[r] += 1
                if math.log(1.0 - self.swaps_rng.random()) < gap * (hot.log_posterior - cold.log_posterior):
                    self.swaps_accepted[r] += 1
                    cold.state, hot.state = hot.state, cold.state

    def stop(self, stopped: bool = True) -> None:
        """Make `advance` return soon, or let it work again."""
        for replica in (self, *self.hotter):
            replica.state.counters[STOP] = stopped

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return any(replica.state.counters[STOP] for replica in (self, *self.hotter))

    def state_dict(self) -> Arrays:
        """Everything that `restore` needs; arrays of the first replica have no prefix."""
        arrays = super().state_dict() | {"swaps.rng": generator_as_array(self.swaps_rng)}
        arrays |= {"swaps_proposed": self.swaps_proposed.copy(), "swaps_accepted": self.swaps_accepted.copy()}
        for r, replica in enumerate(self.hotter, 1):
            arrays |= {f"replica{r}.{name}": array for name, array in replica.state_dict().items()}
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays that `state_dict` returned."""
        super().restore(arrays)
        self.swaps_proposed[:], self.swaps_accepted[:] = arrays["swaps_proposed"], arrays["swaps_accepted"]
        self.swaps_rng = generator_from_array(arrays["swaps.rng"])
        for r, replica in enumerate(self.hotter, 1):
            replica.restore(with_prefix(arrays, f"replica{r}."))


def checked_temperatures(temperatures: Sequence[float] | None) -> list[float]:
    """Temperatures of the replicas, from 1 upwards."""
    if temperatures is None:
        return [1.0]
    checked = finite_array("temperatures", temperatures, (None,)).tolist()
    if not checked or checked[0] != 1 or any(b <= a for a, b in pairwise(checked)):
        invalid("temperatures", "rise from 1", temperatures)
    return checked


def new_record(sweeps: int, n_sites: int, has_kinds: bool = False) -> Record:
    """The record of one chain that keeps no draws."""
    return record_of(new_records(1, sweeps, 0, n_sites, has_kinds), 0)


def with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The arrays whose names begin with a prefix, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def generator_as_array(rng: np.random.Generator) -> NDArray[np.uint8]:
    """The state of a generator as bytes."""
    state = rng.bit_generator.state  # of some kinds it contains arrays
    return np.frombuffer(json.dumps(state, default=lambda value: value.tolist()).encode(), np.uint8)


def generator_from_array(array: NDArray[np.uint8]) -> np.random.Generator:
    """The generator whose state `generator_as_array` returned; it may be of another kind than the default."""
    state = json.loads(bytes(array))
    if state["bit_generator"] not in BIT_GENERATORS:
        invalid("resume_from", f"hold chains with one of the bit generators {BIT_GENERATORS}", state["bit_generator"])
    bit_generator = getattr(np.random, state["bit_generator"])()
    bit_generator.state = state
    if not 0 <= state.get("buffer_pos", 0) <= 4 or not 0 <= state["state"].get("pos", 0) <= 624:
        raise ValueError("a position outside the numbers of a generator")  # which NumPy does not check
    return np.random.Generator(bit_generator)
