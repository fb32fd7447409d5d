"""What the boundary network adds to the cues, in five folds within the training photographs of BSDS300.

`training/train_boundary_net.py` trained a network without the photographs of each fold; the folder of their weights is
training_data/weights or SPINSEG_NETWORKS. The cues of an edge are those of `python -m benchmarks boundaries`, and the
mean log-odds of its fold's network along it; everything else is done as there.
"""

import os
from pathlib import Path

from benchmarks.boundaries import CHROMA_CUES, VERSIONS, fit, quality, training_edges
from spinseg.image.boundary.log_odds import KINDS
from spinseg.image.boundary.network import RADII

NETWORKS = Path(os.environ.get("SPINSEG_NETWORKS", "training_data/weights"))
NAMES = tuple(f"network{radius}" for radius in RADII)


def study() -> dict[str, object]:
    """Return the quality of the cues alone, of the network alone, and of both, for each version of the photographs."""
    figures: dict[str, object] = {}
    for kind in KINDS:
        photographs = training_edges(is_gray=kind == "grey", networks=NETWORKS)
        left_out = CHROMA_CUES if kind == "grey" else ()
        for name, without in {
            "cues": (*left_out, *NAMES),
            "network": tuple(cue for cue in photographs[0].local if cue not in NAMES),
            "both": left_out,
        }.items():
            fitted = fit(photographs, without=without)
            odds = fitted.first if name == "network" else fitted.log_odds
            figures |= {f"{kind}, {name}, {version}": quality(photographs, odds, version) for version in VERSIONS}
    return figures
