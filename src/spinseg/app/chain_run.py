"""Chains that sample from one posterior, and the Python line that repeats them."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.sampler.chains import Chains
from spinseg.sampler.sampling import Sampling
from spinseg.segmentation.problem import Problem
from spinseg.segmentation.python_code import LAST_LABELS, python_call
from spinseg.segmentation.settings import Settings

MAX_SWEEPS = 5000  # of one run
MAX_STORED_LABELS = 2**24  # sites x sweeps x chains of one run: 64 MB as int32
MAX_ESTIMATED_CLUSTERS = 200  # of a draw, for estimates while the chains run: they would take many seconds else


class ChainRun(NamedTuple):
    """Chains that sample from one posterior, with their seed; `continued` if they started where another run ended."""

    problem: Problem
    sampling: Sampling
    seed: int
    continued: bool = False

    @classmethod
    def create(cls, problem: Problem, seed: int, labels: NDArray[np.int32] | None = None) -> "ChainRun":
        """Make a run that starts as the problem's settings say, or from `labels` of shape (n_chains, n_sites)."""
        if labels is not None:
            problem = replace(problem, settings=replace(problem.settings, init=labels))
        settings, n_sites = problem.settings, problem.model.graph.n_sites
        n_runners = settings.chains * settings.n_details
        max_sweeps = max(1, min(MAX_SWEEPS, MAX_STORED_LABELS // (n_runners * n_sites)))
        sampler = (settings.moves, settings.lam, settings.init)
        sampling = Sampling(problem.model, max_sweeps, settings.chains, *sampler, rng=seed)
        return cls(problem, sampling, seed, labels is not None)

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
        n_chains, n_details = self.problem.settings.chains, self.problem.settings.n_details
        return slice(n_details // 2 * n_chains, (n_details // 2 + 1) * n_chains)

    def labels(self) -> NDArray[np.int32]:
        """The present labels of the chains that are shown, of shape (n_chains, n_sites)."""
        records = self.sampling.records
        return (records.draw[:, self.n_sweeps - 1] if self.n_sweeps else records.best)[self.shown]

    def settings(self) -> Settings:
        """The settings with which `segment` gives the same result."""
        return replace(self.problem.settings, sweeps=self.n_sweeps)

    def draws(self) -> Chains:
        """The chains without their first half, which `segment` discards as burn-in, too."""
        chains = self.sampling.chains_so_far()
        return chains.after(chains.n_sweeps // 2)

    def is_quick_to_estimate(self, draws: Chains) -> bool:
        """Whether an estimate from these draws takes little time; those after a start from single sites do not."""
        settings = self.problem.settings
        if settings.connected or settings.estimate == "best":
            return True
        return bool(draws.kept(draws.n_clusters).max() <= MAX_ESTIMATED_CLUSTERS)

    def python_line(self, source: str) -> str:
        """The Python line that repeats this run; a continued run needs the line of the run before it."""
        expressions = {"init": LAST_LABELS} if self.continued else {}
        known = {name: self.problem.provenance[name] for name in ("channel_axis", "intensity_range", "seeds")}
        return f"found = {python_call(self.settings(), self.seed, source, expressions=expressions, **known)}"
