"""Agreement of the chains of `photo` on the test photographs of BSDS300.

Test photographs should be used rarely: record each use in docs/evidence/notebook.md. Printed are the share of
photographs where the chains have converged, and R-hat from opposite starts, of all details together and of each
alone. `python -m studies evaluate bsds300 --methods spinseg,evidence` says how good draws and
probabilities are.
"""

from concurrent.futures import ProcessPoolExecutor

import numpy as np

import spinseg as ss
from spinseg.sampler.convergence import R_HAT_LIMIT
from studies.evaluation.datasets import Example, bsds, data_root

ASKED = ("log_posterior", "n_clusters", "edge_agreement")


def r_hats(example: Example) -> tuple[float, float]:
    """Return the largest R-hat from opposite starts: of all details together, and of the worst alone."""
    found = ss.segment(example.image(), init="opposite", workers=1, rng=0).diagnostics.table
    together = [found[name].r_hat or 1.0 for name in ASKED]
    return max(together), max(found[name].r_hat_of_components or 1.0 for name in ASKED)


def has_converged(example: Example) -> bool:
    """Return whether the chains have converged where sampling ends."""
    return ss.segment(example.image(), workers=1, rng=0).converged is True


def study() -> dict[str, object]:
    """Return the figures."""
    examples = bsds(data_root(), "test")
    with ProcessPoolExecutor() as pool:
        figures: dict[str, object] = {"converged": float(np.mean(list(pool.map(has_converged, examples))))}
        of_all, of_each = np.array(list(pool.map(r_hats, examples))).T
    for name, found in (("all details together", of_all), ("the worst detail alone", of_each)):
        n_agree = int((found <= R_HAT_LIMIT).sum())
        spread = f"median {np.median(found):.3f}, largest {found.max():.2f}"
        figures[f"R-hat from opposite starts, {name}"] = f"at most {R_HAT_LIMIT} on {n_agree} of {len(found)}, {spread}"
    return figures
