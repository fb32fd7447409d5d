"""What the boundary network adds to the other cues, in five folds within the training photographs of BSDS300.

The cues alone, the network alone, and both, as `python -m benchmarks boundaries` fits them, on the same sites: those of
a relief without the network, so that the edges are the same. Then the scores of segmentations of every third photograph
with each of them, and with the network's sites.
"""

import sys

from benchmarks.boundaries import CHROMA_CUES, VERSIONS, Fitted, fit, quality, training_edges
from benchmarks.data import data_root
from benchmarks.held_out import N_FOLDS, Evidence, held_out_evidence
from benchmarks.variants import NETWORK, Variant, summary
from spinseg.evaluation.datasets import bsds
from spinseg.image.boundary.log_odds import KINDS


def study() -> dict[str, object]:
    """Return the quality of the cues alone, of the network alone, and of both, for each version of the photographs."""
    figures: dict[str, object] = {}
    fits: dict[str, dict[str, Fitted]] = {}
    for kind in KINDS:
        photographs = training_edges(is_gray=kind == "grey", network_relief=0.0)
        left_out = CHROMA_CUES if kind == "grey" else ()
        for name, without in {
            "cues": (*left_out, *NETWORK),
            "network": tuple(cue for cue in photographs[0].local if cue not in NETWORK),
            "both": left_out,
        }.items():
            fitted = fits.setdefault(name, {})[kind] = fit(photographs, without=without)
            odds = fitted.first if name == "network" else fitted.log_odds
            figures |= {f"{kind}, {name}, {version}": quality(photographs, odds, version) for version in VERSIONS}
            print(f"fitted: {kind}, {name}", file=sys.stderr, flush=True)
    examples = bsds(data_root(), "train")[::3]
    folds = [3 * i % N_FOLDS for i in range(len(examples))]
    for name, by_kind in fits.items():
        evidence = [Evidence(f, {kind: fitted.by_fold[f] for kind, fitted in by_kind.items()}) for f in folds]
        figures[f"segmentations, {name}"] = summary(Variant(network_relief=0.0), examples, evidence)
    own_sites = [held_out_evidence(3 * i) for i in range(len(examples))]
    figures["segmentations, both, and the network's sites"] = summary(Variant(), examples, own_sites)
    return figures
