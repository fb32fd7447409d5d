"""Parallel tempering: a chain at temperature 1 that exchanges its partition with chains at higher temperatures."""

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.sampler.chain import Arrays, Chain, generator_as_array, generator_from_array, with_prefix


class ParallelTempering:
    """Replicas at rising temperatures T, each with the posterior to the power 1 / T as its target.

    After each sweep neighboring replicas, first the even pairs and then the odd ones, exchange their partitions with
    probability min(1, exp((1 / T - 1 / T') (log posterior' - log posterior))), which leaves the product of their
    targets invariant. Draws and traces are those of the first replica, whose temperature is 1.
    """

    def __init__(self, replicas: list[Chain], rng: np.random.Generator) -> None:
        self.replicas, self.rng = replicas, rng
        self.swaps_proposed = np.zeros(len(replicas) - 1, np.int64)
        self.swaps_accepted = np.zeros(len(replicas) - 1, np.int64)
        self.plan, self.record = replicas[0].plan, replicas[0].record

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Continue to `sweeps` sweeps in all, for about `seconds`, or until stopped."""
        began = time.perf_counter()
        while self.done < sweeps and not self.stopped and time.perf_counter() - began < seconds:
            until = self.done + 1
            for replica in self.replicas:
                replica.advance(until)
            if any(replica.done < until for replica in self.replicas):  # stopped: the next call continues
                return
            self._exchange()

    def _exchange(self) -> None:
        """Propose an exchange to each pair of neighbours."""
        for first in (0, 1):
            for r in range(first, len(self.replicas) - 1, 2):
                cold, hot = self.replicas[r], self.replicas[r + 1]
                gap = cold.plan.inv_temperature - hot.plan.inv_temperature
                self.swaps_proposed[r] += 1
                if math.log(1.0 - self.rng.random()) < gap * (hot.log_posterior - cold.log_posterior):
                    self.swaps_accepted[r] += 1
                    cold.state, hot.state = hot.state, cold.state

    def stop(self) -> None:
        """Make `advance` return soon."""
        for replica in self.replicas:
            replica.stop()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return any(replica.stopped for replica in self.replicas)

    @property
    def done(self) -> int:
        """Sweeps that all replicas have finished."""
        return min(replica.done for replica in self.replicas)

    @property
    def began(self) -> float:
        """When the first sweep began, as of a `Chain`."""
        return self.replicas[0].began

    @property
    def state(self) -> Any:
        """State of the replica at temperature 1."""
        return self.replicas[0].state

    @property
    def n_clusters(self) -> int:
        """Number of clusters now."""
        return self.replicas[0].n_clusters

    @property
    def log_posterior(self) -> float:
        """Log posterior now."""
        return self.replicas[0].log_posterior

    def state_dict(self) -> Arrays:
        """Everything that `restore` needs; arrays of the first replica have no prefix."""
        arrays: Arrays = {
            "swaps_proposed": self.swaps_proposed.copy(),
            "swaps_accepted": self.swaps_accepted.copy(),
        }
        arrays["swaps.rng"] = generator_as_array(self.rng)
        arrays |= self.replicas[0].state_dict()
        for r, replica in enumerate(self.replicas[1:], 1):
            arrays |= {f"replica{r}.{name}": array for name, array in replica.state_dict().items()}
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the arrays that `state_dict` returned."""
        self.swaps_proposed[:], self.swaps_accepted[:] = arrays["swaps_proposed"], arrays["swaps_accepted"]
        self.rng = generator_from_array(arrays["swaps.rng"])
        self.replicas[0].restore(arrays)
        for r, replica in enumerate(self.replicas[1:], 1):
            replica.restore(with_prefix(arrays, f"replica{r}."))
