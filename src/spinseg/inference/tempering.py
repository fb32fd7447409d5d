"""Parallel tempering: a chain at temperature 1 that exchanges its partition with hotter ones."""

import json
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.inference.chain import Arrays, Chain, generator_as_array


class Ladder:
    """Rungs at rising temperatures, each the chain of its own target: the posterior to the power 1 / T.

    After each sweep neighbouring rungs, first the even pairs and then the odd ones, exchange their partitions with
    probability min(1, exp((1 / T - 1 / T') (log posterior' - log posterior))), which leaves the product of their
    targets invariant. What is kept is the first rung's.
    """

    def __init__(self, rungs: list[Chain], rng: np.random.Generator) -> None:
        self.rungs, self.rng = rungs, rng
        self.swaps_tried = np.zeros(len(rungs) - 1, np.int64)
        self.swaps_made = np.zeros(len(rungs) - 1, np.int64)
        self.plan, self.record = rungs[0].plan, rungs[0].record

    def advance(self, sweeps: int, seconds: float = math.inf) -> None:
        """Go on to `sweeps` sweeps, for about so many seconds, or until told to stop."""
        began = time.perf_counter()
        while self.done < sweeps and not self.stopped and time.perf_counter() - began < seconds:
            until = self.done + 1
            for rung in self.rungs:
                rung.advance(until)
            if any(rung.done < until for rung in self.rungs):  # told to stop: the next call goes on with them
                return
            self._exchange()

    def _exchange(self) -> None:
        """Offer each pair of neighbours an exchange."""
        for first in (0, 1):
            for r in range(first, len(self.rungs) - 1, 2):
                cold, hot = self.rungs[r], self.rungs[r + 1]
                gap = cold.plan.inv_temperature - hot.plan.inv_temperature
                self.swaps_tried[r] += 1
                if math.log(1.0 - self.rng.random()) < gap * (hot.log_posterior - cold.log_posterior):
                    self.swaps_made[r] += 1
                    cold.state, hot.state = hot.state, cold.state

    def stop(self) -> None:
        """Make `advance` return soon."""
        for rung in self.rungs:
            rung.stop()

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop."""
        return any(rung.stopped for rung in self.rungs)

    @property
    def done(self) -> int:
        """Sweeps that all rungs have finished."""
        return min(rung.done for rung in self.rungs)

    @property
    def state(self) -> Any:
        """That of the first rung."""
        return self.rungs[0].state

    @property
    def n_clusters(self) -> int:
        """Number of clusters now."""
        return self.rungs[0].n_clusters

    @property
    def log_posterior(self) -> float:
        """Log posterior now."""
        return self.rungs[0].log_posterior

    def laid_down(self) -> Arrays:
        """Everything from which the ladder can be taken up; the first rung's arrays under their own names."""
        arrays: Arrays = {"swaps_tried": self.swaps_tried.copy(), "swaps_made": self.swaps_made.copy()}
        arrays["ladder.rng"] = generator_as_array(self.rng)
        arrays |= self.rungs[0].laid_down()
        for r, rung in enumerate(self.rungs[1:], 1):
            arrays |= {f"rung{r}.{name}": array for name, array in rung.laid_down().items()}
        return arrays

    def take_up(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on where a ladder was laid down."""
        self.swaps_tried[:], self.swaps_made[:] = arrays["swaps_tried"], arrays["swaps_made"]
        self.rng.bit_generator.state = json.loads(bytes(arrays["ladder.rng"]))
        self.rungs[0].take_up(arrays)
        for r, rung in enumerate(self.rungs[1:], 1):
            own = f"rung{r}."
            rung.take_up({name.removeprefix(own): array for name, array in arrays.items() if name.startswith(own)})
