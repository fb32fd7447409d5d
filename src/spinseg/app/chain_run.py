"""Chains under one posterior: what they are at, what was drawn, and the line of Python that gives the same."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg.inference.chains import Chains
from spinseg.inference.sampling import Sampling
from spinseg.segmentation.problem import Scene
from spinseg.segmentation.result import WHERE_IT_ENDED, repeating
from spinseg.segmentation.settings import Settings

MOST_SWEEPS, MOST_LABELS = 5000, 2**24  # of a stage; labels of all draws of all its chains, 64 MB


class Stage(NamedTuple):
    """Chains under one posterior, and the seed that they have."""

    scene: Scene
    sampling: Sampling
    seed: int
    goes_on: bool = False  # from where those of an earlier stage were

    @classmethod
    def of(cls, scene: Scene, seed: int, labels: NDArray[np.int32] | None = None) -> "Stage":
        """Chains that start as the scene's settings say, or at `labels`, one row for each."""
        if labels is not None:
            scene = replace(scene, settings=replace(scene.settings, init=labels))
        settings, n_sites = scene.settings, scene.model.graph.n_sites
        most = max(1, min(MOST_SWEEPS, MOST_LABELS // (settings.chains * n_sites)))
        how = (settings.moves, settings.lam, settings.init)
        sampling = Sampling(scene.model, most, settings.chains, *how, rng=seed)
        return cls(scene, sampling, seed, labels is not None)

    @property
    def most_sweeps(self) -> int:
        """Sweeps that there is room for."""
        return self.sampling.records.log_posterior.shape[1]

    @property
    def done(self) -> int:
        """Sweeps that all chains have made."""
        return min(runner.done for runner in self.sampling.runners)

    def labels(self) -> NDArray[np.int32]:
        """Where the chains are, (chain, site)."""
        records = self.sampling.records
        return records.draw[:, self.done - 1] if self.done else records.best

    def settings(self) -> Settings:
        """What `segment` gives the same with."""
        return replace(self.scene.settings, sweeps=self.done)

    def drawn(self) -> Chains:
        """What `segment` would have drawn: the second half of the sweeps."""
        drawn = self.sampling.so_far()
        burn_in = drawn.n_sweeps // 2
        return replace(drawn, labels=drawn.labels[:, burn_in:], burn_in=burn_in)

    def line(self, source: str) -> str:
        """The Python that makes it, after the line of the stage before."""
        written = {"init": WHERE_IT_ENDED} if self.goes_on else {}
        return f"found = {repeating(self.settings(), self.seed, source, written=written)}"
