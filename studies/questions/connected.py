"""Agreement of chains over connected partitions of photographs, in the time that quickshift takes on each of them.

30 training photographs of BSDS300 (../shared/data or SPINSEG_DATA), sites of the preset "photo" and evidence that was
learned without the photograph (`studies/held_out.py`), with power 1/15, threshold -0.4, 2 nats for each region and
at least 3 sites in each. Four chains, two from one region and two from as many as there can be, run on two threads for
as long as scikit-image's quickshift with its defaults takes on the same photograph; the first third is burn-in. Beside
it: the same without some of the moves, and with clusters that need not be connected, as the preset has them with
`regions=False`.
"""

import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from skimage.segmentation import quickshift

import spinseg as ss
from spinseg.graph.adjacency import region_adjacency
from spinseg.sampler.chains import Chains
from spinseg.sampler.diagnostics import QUANTITIES, diagnose
from spinseg.sampler.kernels.moves import attempts_at
from spinseg.sampler.sampling import Sampling
from spinseg.segmentation.presets import COUPLING, settings_of
from spinseg.segmentation.problem import prepare
from studies.data import data_root
from studies.evaluation.datasets import Example, bsds
from studies.questions.held_out import held_out_evidence

POWER, THRESHOLD, COST_OF_REGION, MIN_SIZE = 1 / 15, -0.4, 2.0, 3
STARTS = ["one", "one", "singletons", "singletons"]
MAX_SWEEPS = 20_000
ASKED = ("log_posterior", "n_clusters", "edge_agreement")
PARTS = (0.25, 0.5, 1.0)  # of the time, for the course of R-hat

# What differs in the plan of the moves.
VARIANTS: dict[str, dict[str, Any]] = {
    "all moves": {},
    "without bonds": {"lams": np.zeros(1)},
    "without growth": {"attempts": attempts_at()},
    "without splits and merges": {"growth_shares": np.array([0.0, 0.5])},
    "without redrawn borders": {"growth_shares": np.array([0.65, 0.65])},
    "without regroupings": {"growth_shares": np.array([0.65, 1.0])},
}


def models(i: int, example: Example) -> tuple[ss.Model, ss.Model]:
    """Return the posterior over connected partitions of the i-th training photograph, and that of the preset."""
    with held_out_evidence(i).used():
        problem = prepare(example.image(), settings_of("photo", {"regions": False}))
    plain, length = problem.model, region_adjacency(problem.sites).boundary_length
    assert isinstance(plain, ss.Model)
    beta = plain.beta + COUPLING.strength * length * (THRESHOLD - COUPLING.threshold)
    prior = ss.TemperedProcess(math.exp(-COST_OF_REGION), power=0.0, min_size=MIN_SIZE)
    return ss.Model(plain.graph, plain.likelihood, prior, beta, connected=True, power=POWER), plain


def seconds_of_quickshift(example: Example) -> float:
    """Return the time of quickshift with its defaults."""
    image, began = example.image(), time.perf_counter()
    quickshift(image)
    return time.perf_counter() - began


def sampled(model: ss.Model, seconds: float, changes: dict[str, Any]) -> Chains:
    """Return the chains that two threads sample in this time."""
    sampling = Sampling(model, MAX_SWEEPS, len(STARTS), init=STARTS, rng=0)
    for runner in sampling.runners:
        runner.plan = runner.plan._replace(**changes)
        runner.advance(1)  # what is compiled is loaded, which is not to count
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda runner: runner.advance(MAX_SWEEPS, seconds / 2), sampling.runners))
    return replace(sampling.chains_so_far(), seconds=seconds)


def part_of(chains: Chains, part: float) -> Chains:
    """Return the chains after a part of their sweeps, of which the first third is burn-in."""
    sweeps = int(part * chains.n_sweeps)
    traces = {name: getattr(chains, name)[:, :sweeps] for name in ("log_posterior", "n_clusters")}
    return replace(chains, labels=chains.labels[:, sweeps // 3 : sweeps], burn_in=sweeps // 3, **traces)


def measure(model: ss.Model, seconds: float, changes: dict[str, Any]) -> dict[str, object]:
    """Return R-hat after parts of the time, effective sample sizes a second, means and acceptance."""
    chains = sampled(model, seconds, changes)
    tables = {part: diagnose(part_of(chains, part), model.graph).table for part in PARTS}
    last = tables[1.0]
    return {
        "sweeps": chains.n_sweeps,
        "regions": last["n_clusters"].chain_means,
        "r_hat": {part: {name: table[name].r_hat for name in QUANTITIES} for part, table in tables.items()},
        "ess": {name: (last[name].ess_bulk or 0.0) / seconds for name in QUANTITIES},
        "acceptance": {move: float(np.nanmean(rate)) for move, rate in chains.acceptance.items() if rate[0] == rate[0]},
    }


def worst(row: dict, part: float = 1.0) -> float:
    """Return the largest R-hat of what is asked."""
    return max(row["r_hat"][part][name] for name in ASKED)


def summary(rows: list[dict]) -> str:
    """Return in one line how many photographs agree, median R-hats and effective sample sizes."""
    r_hat = np.array([[row["r_hat"][1.0][name] for name in QUANTITIES] for row in rows])
    ess = np.median([[row["ess"][name] for name in QUANTITIES] for row in rows], axis=0)
    agree = [sum(worst(row) <= limit for row in rows) for limit in (1.05, 1.1)]
    moves = sorted({move for row in rows for move in row["acceptance"]})
    accepted = ", ".join(f"{move} {np.mean([r['acceptance'].get(move, np.nan) for r in rows]):.3f}" for move in moves)
    return (
        f"{agree[0]} of {len(rows)} at most 1.05, {agree[1]} at most 1.1; median R-hat "
        f"{' '.join(f'{x:.3f}' for x in np.median(r_hat, axis=0))}; ESS a second {' '.join(f'{x:.0f}' for x in ess)}; "
        f"{np.median([row['sweeps'] for row in rows]):.0f} sweeps; accepted: {accepted}"
    )


def study(n_images: int = 30) -> dict[str, object]:
    """Return a line for each photograph, and one for each set of moves."""
    examples = list(enumerate(bsds(data_root(), "train")))[3 :: 200 // n_images][:n_images]
    rows: dict[str, list[dict]] = {name: [] for name in (*VARIANTS, "preset photo, not connected")}
    figures: dict[str, object] = {"quantities": ", ".join(QUANTITIES)}
    for i, example in examples:
        connected, plain = models(i, example)
        seconds = seconds_of_quickshift(example)
        for name, changes in VARIANTS.items():
            rows[name].append(measure(connected, seconds, changes))
        rows["preset photo, not connected"].append(measure(plain, seconds, {}))
        mine = rows["all moves"][-1]
        r_hat = " ".join(f"{mine['r_hat'][1.0][name]:.3f}" for name in QUANTITIES)
        regions = " ".join(f"{mean:.1f}" for mean in mine["regions"])
        figures[example.name] = f"{seconds:.2f} s; R-hat {r_hat}; regions {regions}"
        print(example.name, figures[example.name], file=sys.stderr, flush=True)
    for part in PARTS:
        counts = [sum(worst(row, part) <= limit for row in rows["all moves"]) for limit in (1.05, 1.1)]
        median = np.median([worst(row, part) for row in rows["all moves"]])
        figures[f"after {part:.0%} of the time"] = (
            f"{counts[0]} at most 1.05, {counts[1]} at most 1.1, median {median:.3f}"
        )
    return figures | {name: summary(of) for name, of in rows.items()}
