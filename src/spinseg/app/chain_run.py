"""Chains that sample from one posterior, and the Python line that repeats them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.sampler.chains import Chains
from spinseg.sampler.sampling import Sampling
from spinseg.segmentation.problem import Problem
from spinseg.segmentation.result import LAST_LABELS
from spinseg.segmentation.schedule import Schedule

MAX_SWEEPS = 5000  # of one run
MAX_STORED_LABELS = 2**24  # sites x sweeps x chains of one run: 64 MB as int32
MAX_ESTIMATED_CLUSTERS = 200  # of a draw, for estimates while the chains run: they would take many seconds else


class ChainRun(NamedTuple):
    """Chains that sample from one posterior, with their seed; `continued` if they started where another run ended."""

    problem: Problem
    sampling: Sampling
    chains: int
    seed: int
    continued: bool = False

    @classmethod
    def create(cls, problem: Problem, chains: int, seed: int, labels: NDArray[np.int32] | None = None) -> "ChainRun":
        """Make a run that starts as the preset says, or from `labels` of shape (n_chains, n_sites)."""
        if labels is not None:
            problem = replace(problem, preset=replace(problem.preset, init=labels))
        preset, n_sites = problem.preset, problem.model.graph.n_sites
        n_runners = chains * problem.model.n_components
        max_sweeps = max(1, min(MAX_SWEEPS, MAX_STORED_LABELS // (n_runners * n_sites)))
        sampler = (preset.moves, preset.lam, preset.init)
        sampling = Sampling(problem.model, max_sweeps, chains, *sampler, rng=seed)
        return cls(problem, sampling, chains, seed, labels is not None)

    @property
    def max_sweeps(self) -> int:
        """The number of sweeps that memory is reserved for."""
        return self.sampling.records.log_posterior.shape[1]

    @property
    def n_sweeps(self) -> int:
        """The number of sweeps that every chain has finished."""
        return min(runner.done for runner in self.sampling.runners)

    @property
    def shown(self) -> slice:
        """Which runners the page shows: the chains at the middle detail."""
        first = self.problem.model.n_components // 2 * self.chains
        return slice(first, first + self.chains)

    def labels(self) -> NDArray[np.int32]:
        """The present labels of the chains that are shown, of shape (n_chains, n_sites)."""
        records = self.sampling.records
        return (records.draw[:, self.n_sweeps - 1] if self.n_sweeps else records.best)[self.shown]

    @property
    def schedule(self) -> Schedule:
        """The schedule with which `segment` gives the same result."""
        return Schedule(self.chains, self.n_sweeps)

    def draws(self) -> Chains:
        """The chains without their first half, which `segment` discards as burn-in, too."""
        chains = self.sampling.chains_so_far()
        return chains.after(chains.n_sweeps // 2)

    def is_quick_to_estimate(self, draws: Chains) -> bool:
        """Whether an estimate from these draws takes little time; those after a start from single sites do not."""
        if self.problem.preset.connected or self.problem.preset.estimate == "best":
            return True
        return bool(draws.kept(draws.n_clusters).max() <= MAX_ESTIMATED_CLUSTERS)

    def python_line(self, source: str) -> str:
        """The Python line that repeats this run; a continued run needs the line of the run before it."""
        provenance, preset = self.problem.provenance, self.problem.preset
        usual = {"channel_axis": "auto", "intensity_range": None, "seeds": None}
        given = {name: provenance[name] for name in usual if provenance[name] != usual[name]}
        arguments = self.schedule.arguments(preset, self.n_sweeps) | given | {"rng": self.seed}
        return f"found = {preset.call(source, arguments, **({'init': LAST_LABELS} if self.continued else {}))}"
