"""R-hat of single levels of detail against time, with and without moving chains to what all levels have found.

Training photographs of BSDS300 with evidence that has not seen them (`held_out.py`). R-hat is the largest of a level,
over the number of regions, their entropy and the share of edges within regions. Printed are its median over photographs
for the worst level and for the median level, on how many the worst is at most 1.1, and the processor time of sampling.
"""

import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import spinseg as ss
from spinseg.sampler.convergence import SHOWN_ONLY, in_units, rank_r_hat
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.schedule import BURN_IN
from studies.evaluation.datasets import bsds, data_root
from studies.questions.held_out import held_out_evidence

EVERY = 10  # one photograph of ten
SWEEPS = (80, 120, 200, 360)  # burn-in included
LIMIT = 1.1


def r_hats(chains: ss.Chains, graph: ss.SiteGraph, n_sweeps: int) -> list[float]:
    """Return the largest R-hat of each level after `n_sweeps` sweeps."""
    n_levels, n_draws = chains.n_components, (n_sweeps - BURN_IN) * chains.n_components
    judged = [trace[:, :n_draws] for name, trace in chains.quantities(graph).items() if name not in SHOWN_ONLY]
    return [max(rank_r_hat(in_units(trace[:, d::n_levels])[0]) for trace in judged) for d in range(n_levels)]


def compare(number: int) -> list[list[tuple[float, float, float]]]:
    """Return worst and median R-hat and seconds, for each number of sweeps, without and with the move."""
    preset = ss.Photo(evidence=held_out_evidence(number))
    model = prepare(bsds(data_root(), "train")[number].image(), preset).model
    found = []
    for combines in (False, True):
        rows = []
        run = ss.Sampler(model, SWEEPS[-1], 2, init=preset.init, burn_in=BURN_IN, rng=0, workers=1, progress=False)
        if not combines:
            run._combined_after = None
        began = time.process_time()
        for n_sweeps in SWEEPS:
            run.advance(n_sweeps - run.n_sweeps)
            seconds = time.process_time() - began
            worst = r_hats(run.chains, model.graph, n_sweeps)
            rows.append((max(worst), float(np.median(worst)), seconds))
            began += time.process_time() - began - seconds  # R-hat takes no part
        found.append(rows)
    return found


def study() -> dict[str, object]:
    """Return a line for each number of sweeps, without and with the move."""
    numbers = range(5, 200, EVERY)
    with ProcessPoolExecutor() as pool:
        found = np.array(list(pool.map(compare, numbers)))  # (photograph, without or with, sweeps, figure)
    lines: dict[str, object] = {}
    for k, how in enumerate(("without", "with")):
        for s, n_sweeps in enumerate(SWEEPS):
            worst, middle, seconds = found[:, k, s].T
            lines[f"{how}, {n_sweeps} sweeps"] = (
                f"worst level {np.median(worst):.2f}, median level {np.median(middle):.2f}; worst at most {LIMIT} on "
                f"{np.sum(worst <= LIMIT)} of {len(worst)}; {np.median(seconds):.2f} s"
            )
    return lines
