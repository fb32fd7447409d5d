"""Evidence of boundaries that has not seen a training photograph of BSDS300.

The network and the weights of the package have learned from all training photographs, so that they flatter themselves
there. A study on training photographs uses those of the fold that a photograph was left out of: `foldN.npz` of
`studies/training/train_boundary_net.py`, and `cues_foldN.npz` of `python -m studies boundaries`. They are in
training_data/weights or SPINSEG_NETWORKS.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

from spinseg.image.boundary.log_odds import KINDS, BoundaryWeights
from spinseg.image.boundary.network import BoundaryNetwork

FOLDER = Path(os.environ.get("SPINSEG_NETWORKS", "training_data/weights"))
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Evidence:
    """The network of a fold, and weights of the cues by kind of photograph; None for those of the package."""

    fold: int | None = None
    weights: Mapping[str, BoundaryWeights] | None = None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let `segment` use this evidence."""
        with ExitStack() as changed:
            if self.fold is not None:
                network = _network(self.fold)
                changed.enter_context(patch.object(BoundaryNetwork, "fitted", lambda: network))
            if self.weights is not None:
                changed.enter_context(patch.object(BoundaryWeights, "fitted", self.weights.__getitem__))
            yield


def held_out_evidence(i: int) -> Evidence:
    """Return the evidence of the fold without the i-th training photograph."""
    return Evidence(i % N_FOLDS, _weights(i % N_FOLDS))


def weights_path(fold: int) -> Path:
    """Return the file of the weights of the cues that were fitted without a fold."""
    return FOLDER / f"cues_fold{fold}.npz"


@cache
def _network(fold: int) -> BoundaryNetwork:
    with np.load(_present(FOLDER / f"fold{fold}.npz", "training/train_boundary_net.py")) as stored:
        return BoundaryNetwork(dict(stored))


@cache
def _weights(fold: int) -> dict[str, BoundaryWeights]:
    with np.load(_present(weights_path(fold), "python -m studies boundaries")) as stored:
        return {kind: BoundaryWeights.of_kind(stored, kind) for kind in KINDS}


def _present(path: Path, maker: str) -> Path:
    if not path.exists():
        raise SystemExit(f"{path} is missing; it is made by {maker}")
    return path
