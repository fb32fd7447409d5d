"""One Markov chain: its state, its random generator, and the record of its draws."""

import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.model.posterior import Model
from spinseg.model.priors import ExchangeablePrior
from spinseg.sampler.exchangeable import with_log_g
from spinseg.sampler.kernels.moves import run_iterations
from spinseg.sampler.kernels.state import (
    DONE,
    FULL,
    LOG_POSTERIOR,
    N_CLUSTERS,
    STOP,
    STOPPED,
    Plan,
    Record,
    State,
    Target,
)
from spinseg.sampler.pack import new_state, resized

CHUNK_SECONDS = 0.05  # of compiled code at a stretch
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")  # of NumPy, which chains can be resumed with

Arrays = dict[str, NDArray[Any]]


class AfterSweep(Protocol):
    """An update of something other than the partition, such as the concentration, after each sweep."""

    def __call__(self, chain: "Chain") -> None:
        """Update the chain."""

    def state_dict(self, done: int) -> Arrays:
        """The state of the update after `done` sweeps."""

    def restore(self, chain: "Chain", arrays: Mapping[str, NDArray[Any]]) -> None:
        """Set the state to one that `state_dict` returned."""


class Chain:
    """A chain that can be advanced, stopped, saved as arrays and restored from them, bit by bit.

    Attributes
    ----------
    done : int
        Sweeps finished.
    began : float
        When the first sweep began, by `time.perf_counter`, after compilation; infinite before.
    after_sweep : AfterSweep, optional
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
        after_sweep: AfterSweep | None = None,
    ) -> None:
        self.target, self.plan, self.record, self.rng, self.after_sweep = target, plan, record, rng, after_sweep
        self.state = new_state(target, labels, log_posterior)
        self.record.best[:] = labels
        self.record.best_log_posterior[0] = self.log_posterior
        self.done, self.began = 0, math.inf
        self.run: Callable[..., Any] = run_iterations
        if isinstance(model.prior, ExchangeablePrior):
            self.run = with_log_g(run_iterations, model.prior.log_g)

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Continue to `sweeps` sweeps in all, for about `seconds`, or until stopped."""
        if self.began == math.inf:
            self.run(self.target, self.state, self.record, self.plan, self.done, self.done, self.rng)  # compiles it
            self.began = time.perf_counter()
        began, chunk, status = time.perf_counter(), 1, DONE
        while self.done < sweeps and status != STOPPED and time.perf_counter() - began < seconds:
            before, clock = self.done, time.perf_counter()
            until = min(self.done + (chunk if self.after_sweep is None else 1), sweeps)
            status, self.done = self.run(self.target, self.state, self.record, self.plan, self.done, until, self.rng)
            if status == DONE and self.after_sweep is not None:
                self.after_sweep(self)
                self.record.log_posterior[self.done - 1] = self.log_posterior  # that of the new concentration
            capacity = self.state.size.size
            if status == FULL or capacity > 64 + 8 * self.n_clusters:
                self.state = resized(self.state)
                assert status != FULL or self.state.size.size > capacity
            per_sweep = (time.perf_counter() - clock) / max(self.done - before, 1)
            chunk = min(max(int(CHUNK_SECONDS / max(per_sweep, 1e-9)), 1), 2 * chunk)

    def stop(self) -> None:
        """Make `advance` return soon."""
        self.state.counters[STOP] = 1

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
        arrays: Arrays = {
            "done": np.array(self.done),
            "log_posterior": self.record.log_posterior[: self.done],
            "n_clusters": self.record.n_clusters[: self.done],
            "draw": self.record.draw[:n_draws],
            "best": self.record.best.copy(),
            "best_log_posterior": self.record.best_log_posterior.copy(),
            "move_counts": self.record.move_counts.copy(),
            "rng": generator_as_array(self.rng),
        }
        arrays |= {f"state.{name}": array.copy() for name, array in self.state._asdict().items()}
        arrays["state.counters"][STOP] = 0
        if self.after_sweep is not None:
            arrays |= {f"after_sweep.{name}": array for name, array in self.after_sweep.state_dict(self.done).items()}
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays that `state_dict` returned."""
        self.done = int(arrays["done"])
        for name in ("log_posterior", "n_clusters", "draw"):
            getattr(self.record, name)[: len(arrays[name])] = arrays[name]
        self.record.best[:], self.record.best_log_posterior[:] = arrays["best"], arrays["best_log_posterior"]
        self.record.move_counts[:] = arrays["move_counts"]
        self.rng = generator_from_array(arrays["rng"])
        self.state = State(**{name: np.array(arrays[f"state.{name}"]) for name in State._fields})
        if self.after_sweep is not None:
            self.after_sweep.restore(self, with_prefix(arrays, "after_sweep."))


def with_prefix(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """The arrays whose names begin with a prefix, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def generator_as_array(rng: np.random.Generator) -> NDArray[np.uint8]:
    """The state of a generator as bytes."""
    return np.frombuffer(json.dumps(rng.bit_generator.state, default=_listed).encode(), np.uint8)


def generator_from_array(array: NDArray[np.uint8]) -> np.random.Generator:
    """The generator whose state `generator_as_array` returned; it may be of another kind than the default."""
    state = json.loads(bytes(array))
    if state["bit_generator"] not in BIT_GENERATORS:
        invalid("resume_from", f"hold chains with one of the bit generators {BIT_GENERATORS}", state["bit_generator"])
    bit_generator = getattr(np.random, state["bit_generator"])()
    bit_generator.state = _with_arrays(state)
    return np.random.Generator(bit_generator)


def _with_arrays(value: Any) -> Any:
    """Lists of numbers as arrays, in a nested dict."""
    if isinstance(value, dict):
        return {key: _with_arrays(inner) for key, inner in value.items()}
    return np.array(value, np.uint64) if isinstance(value, list) else value


def _listed(value: object) -> object:
    """NumPy arrays and numbers as JSON knows them, which bit generators other than the default contain."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
