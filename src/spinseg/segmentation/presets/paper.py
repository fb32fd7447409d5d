"""`Paper`: the settings of Xu, Caron & Doucet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spinseg.model.priors import DirichletProcess, PartitionPrior
from spinseg.sampler.plan import PAPER_LAM, Lam
from spinseg.segmentation.presets.classes import ColorWords
from spinseg.segmentation.presets.preset import Start


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Paper(ColorWords):
    """The model and the sampler of the paper: superpixels of 60 pixels, histograms of 120 color words, equal couplings.

    `count_weight` is not the paper's, which does not say how counts enter the likelihood
    (docs/evidence/count_weight.md).

    Examples
    --------
    >>> import spinseg as ss
    >>> ss.segment(
    ...     [[0, 0, 255, 255]] * 4, ss.Paper(beta=0.1), sweeps=2, rng=0
    ... ).preset
    Paper(beta=0.1)
    """

    name: ClassVar[str] = "paper"
    about: ClassVar[str] = "The model and the sampler of Xu, Caron & Doucet."
    usual_chains: ClassVar[int] = 1
    usual_sweeps: ClassVar[int | None] = 1000
    pixels_per_site: ClassVar[float] = 60

    count_weight: float | None = 0.125
    prior: PartitionPrior = DirichletProcess(3.0)
    estimate: str = "best"
    moves: str = "gsw"
    lam: Lam = PAPER_LAM
    init: Start = "one"
    smoothing: int = 1
