"""Quality of the packaged log-odds of boundaries on the test photographs of BSDS300.

Test photographs should be used rarely: record each use in docs/evidence/notebook.md. The outcome of an edge, its
weight and the measures are those of `python -m studies boundaries`.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

from spinseg.image.boundary.grouping import grouping_cues
from spinseg.image.boundary.log_odds import final_log_odds, first_log_odds, fitted_weights
from studies.evaluation.datasets import bsds, data_root
from studies.questions.boundaries import ORIGINAL, edges_of, quality


def study() -> dict[str, object]:
    """Return average precision, Brier score and cross-entropy of both stages."""
    examples = bsds(data_root(), "test")
    with ProcessPoolExecutor() as pool:
        photographs = list(
            pool.map(partial(edges_of, fold=None, version=ORIGINAL, is_gray=False), range(len(examples)), examples)
        )
    weights = fitted_weights()["color"]
    first = [first_log_odds(weights, p.local) for p in photographs]
    both = [
        final_log_odds(weights, p.local | grouping_cues(odds, p.statistics, p.adjacency))
        for p, odds in zip(photographs, first, strict=True)
    ]
    return {"local cues alone": quality(photographs, first), "all cues": quality(photographs, both)}
