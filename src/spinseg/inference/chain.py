"""One chain: its state, its generator, and what is kept of it."""

import functools
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinseg.inference import exchangeable
from spinseg.inference.kernels.iterations import run_iterations
from spinseg.inference.kernels.state import (
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
from spinseg.inference.pack import new_state, resized
from spinseg.model.posterior import Model
from spinseg.model.priors import ExchangeablePrior

CHUNK_SECONDS = 0.05  # of compiled code at a stretch

Arrays = dict[str, NDArray[Any]]


class AfterSweep(Protocol):
    """What a sweep of the partition leaves out: called with the chain after each."""

    def __call__(self, chain: "Chain") -> None:
        """Do it."""

    def laid_down(self, done: int) -> Arrays:
        """Its own state after so many sweeps."""

    def take_up(self, chain: "Chain", arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from that state."""


class Chain:
    """A chain that can be advanced, told to stop, laid down as arrays and taken up again, bit by bit.

    Attributes
    ----------
    done : int
        Sweeps finished.
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
        self.done = 0
        self.run: Callable[..., Any] = run_iterations
        if isinstance(model.prior, ExchangeablePrior):
            self.run = functools.partial(exchangeable.run, model.prior.log_g)

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Go on to `sweeps` sweeps, for about so many seconds, or until told to stop."""
        began, chunk, status = time.perf_counter(), 1, DONE
        while self.done < sweeps and status != STOPPED and time.perf_counter() - began < seconds:
            before, clock = self.done, time.perf_counter()
            until = min(self.done + (chunk if self.after_sweep is None else 1), sweeps)
            status, self.done = self.run(self.target, self.state, self.record, self.plan, self.done, until, self.rng)
            if status == DONE and self.after_sweep is not None:
                self.after_sweep(self)
            capacity = self.state.size.size
            if status == FULL or capacity > 64 + 8 * self.n_clusters:
                self.state = resized(self.state)
                assert status != FULL or self.state.size.size > capacity
            per_sweep = (time.perf_counter() - clock) / max(self.done - before, 1)
            chunk = min(max(int(CHUNK_SECONDS / max(per_sweep, 1e-9)), 1), 2 * chunk)

    def stop(self) -> None:
        """Make `advance` return soon."""
        self.state.number[STOP] = 1

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return bool(self.state.number[STOP])

    @property
    def n_clusters(self) -> int:
        """Number of clusters now."""
        return int(self.state.number[N_CLUSTERS])

    @property
    def log_posterior(self) -> float:
        """Log posterior now."""
        return float(self.state.real[LOG_POSTERIOR])

    def laid_down(self) -> Arrays:
        """Everything from which the chain can be taken up; traces and draws are views, which only grow."""
        n_draws = max(self.done - self.plan.burn_in, 0) // self.plan.thin
        arrays: Arrays = {
            "done": np.array(self.done),
            "log_posterior": self.record.log_posterior[: self.done],
            "n_clusters": self.record.n_clusters[: self.done],
            "draw": self.record.draw[:n_draws],
            "best": self.record.best.copy(),
            "best_log_posterior": self.record.best_log_posterior.copy(),
            "tally": self.record.tally.copy(),
            "rng": generator_as_array(self.rng),
        }
        arrays |= {f"state.{name}": array.copy() for name, array in self.state._asdict().items()}
        arrays["state.number"][STOP] = 0
        if self.after_sweep is not None:
            arrays |= {f"after_sweep.{name}": array for name, array in self.after_sweep.laid_down(self.done).items()}
        return arrays

    def take_up(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on where a chain was laid down."""
        self.done = int(arrays["done"])
        for name in ("log_posterior", "n_clusters", "draw"):
            getattr(self.record, name)[: len(arrays[name])] = arrays[name]
        self.record.best[:], self.record.best_log_posterior[:] = arrays["best"], arrays["best_log_posterior"]
        self.record.tally[:] = arrays["tally"]
        self.rng.bit_generator.state = json.loads(bytes(arrays["rng"]))
        self.state = State(**{name: np.array(arrays[f"state.{name}"]) for name in State._fields})
        if self.after_sweep is not None:
            own = "after_sweep."
            mine = {name.removeprefix(own): array for name, array in arrays.items() if name.startswith(own)}
            self.after_sweep.take_up(self, mine)


def generator_as_array(rng: np.random.Generator) -> NDArray[np.uint8]:
    """The state of a generator as bytes."""
    return np.frombuffer(json.dumps(rng.bit_generator.state, default=_listed).encode(), np.uint8)


def _listed(value: object) -> object:
    """Arrays and numbers of NumPy as JSON knows them: other bit generators than the default hold such."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
