"""Calibration and agreement of `photo` on the test photographs of BSDS300, beside clusters that need not be connected.

Test photographs should be used rarely: record each use in docs/accuracy.md. Printed are the scores of `variants.py`; a
reliability diagram as numbers, the mean probability of a boundary and the share of annotators who have one, weighted by
length; and R-hat from opposite starts, of all details together and of each alone.
"""

from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce

import numpy as np

from benchmarks.data import data_root
from benchmarks.held_out import Evidence
from benchmarks.variants import UNCONNECTED, Scored, Variant, score, text_of
from spinseg.evaluation.calibration import Reliability
from spinseg.evaluation.datasets import Example, bsds
from spinseg.inference.diagnostics import R_HAT_LIMIT

ASKED = ("log_posterior", "n_clusters", "edge_agreement")


def r_hats(example: Example) -> tuple[float, float]:
    """Return the largest R-hat from opposite starts: of all details together, and of the worst alone."""
    found = Variant(arguments={"init": "opposite"}).segmentation(example.image(), Evidence()).diagnostics.table
    together = [found[name].r_hat or 1.0 for name in ASKED]
    return max(together), max(found[name].r_hat_of_components or 1.0 for name in ASKED)


def scored(variant: Variant, examples: list[Example]) -> list[Scored]:
    """Return the scores of all photographs."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(score, variant), examples, [Evidence()] * len(examples)))


def study() -> dict[str, object]:
    """Return the figures."""
    examples = bsds(data_root(), "test")
    rows = scored(Variant(), examples)
    figures: dict[str, object] = {"photo": text_of(rows)}
    together = reduce(Reliability.plus, [row.reliability for row in rows])
    for told, seen, weight in zip(together.told, together.seen, together.weight, strict=True):
        share = weight / sum(together.weight)
        figures[f"told {told / weight:.2f}"] = f"seen {seen / weight:.2f}, {share:.1%} of the length"
    figures["photo with clusters that need not be connected"] = text_of(scored(Variant(settings=UNCONNECTED), examples))
    with ProcessPoolExecutor() as pool:
        of_all, of_each = np.array(list(pool.map(r_hats, examples))).T
    for name, found in (("all details together", of_all), ("the worst detail alone", of_each)):
        n_agree = int((found <= R_HAT_LIMIT).sum())
        spread = f"median {np.median(found):.3f}, largest {found.max():.2f}"
        figures[f"R-hat from opposite starts, {name}"] = f"at most {R_HAT_LIMIT} on {n_agree} of {len(found)}, {spread}"
    return figures
