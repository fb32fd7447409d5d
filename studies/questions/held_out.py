"""Evidence of boundaries that has not seen a training photograph of BSDS300.

The network and the weights of the package have learned from all training photographs, so that they flatter themselves
there. A study on training photographs uses those of the fold that a photograph was left out of: `foldN.npz` of
`studies/training/train_boundary_net.py`, and `cues_foldN.npz` of `python -m studies boundaries`. They are in
training_data/weights or SPINSEG_NETWORKS.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np

from spinseg.image.boundary.log_odds import BoundaryEvidence, CueWeights, weights_by_kind
from spinseg.image.boundary.network import BoundaryNetwork

FOLDER = Path(os.environ.get("SPINSEG_NETWORKS", "training_data/weights"))
N_FOLDS = 5


def held_out_evidence(i: int) -> BoundaryEvidence:
    """Return the evidence of the fold without the i-th training photograph, for `Photo(evidence=...)`."""
    fold = i % N_FOLDS
    return BoundaryEvidence(network=network_of(fold), weights=_weights(fold))


def weights_path(fold: int) -> Path:
    """Return the file of the weights of the cues that were fitted without a fold."""
    return FOLDER / f"cues_fold{fold}.npz"


@cache
def network_of(fold: int | None, kind: str = "photograph") -> BoundaryNetwork | None:
    """Return the network of a fold, for photographs or measured images; None for that of the package."""
    if fold is None:
        return None
    name = f"fold{fold}.onnx" if kind == "photograph" else f"{kind}_fold{fold}.onnx"
    return BoundaryNetwork(_present(FOLDER / name, "training/export_onnx.py"))


@cache
def _weights(fold: int) -> dict[str, CueWeights]:
    with np.load(_present(weights_path(fold), "python -m studies boundaries")) as stored:
        return weights_by_kind(stored)


def _present(path: Path, maker: str) -> Path:
    if not path.exists():
        raise SystemExit(f"{path} is missing; it is made by {maker}")
    return path
