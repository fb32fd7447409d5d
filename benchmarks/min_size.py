"""The number of clusters under min_size 1, 3, 6 and 9, from opposite starts.

Four training photographs of BSDS300 as in `mixing`, count weight 0.05. Chains start from one cluster and from as many
blocks as the prior allows; the first half of the sweeps is burn-in. The data are in ../shared/data or SPINSEG_DATA.
"""

from concurrent.futures import ProcessPoolExecutor

import spinseg as ss
from benchmarks.data import data_root
from benchmarks.mixing import STARTS, paper_model
from spinseg.evaluation.datasets import Example, bsds
from spinseg.inference.diagnostics import diagnose

SIZES = (1, 3, 6, 9)
SWEEPS = {"gsw": 3000, "auto": 3000}


def compare(task: tuple[Example, int]) -> str:
    """Return the mean number of clusters of each chain, and R-hat, for both samplers."""
    example, size = task
    plain = paper_model(example, 0.05)
    model = ss.Model(plain.graph, plain.likelihood, ss.DirichletProcess(3.0, min_size=size), plain.beta)
    parts = []
    for moves, sweeps in SWEEPS.items():
        chains = ss.sample(model, sweeps, 4, moves, init=STARTS, burn_in=sweeps // 2, thin=10, rng=0, workers=1)
        clusters = diagnose(chains, model.graph).table["n_clusters"]
        means = ", ".join(f"{mean:.1f}" for mean in clusters.chain_means)
        parts.append(f"{moves} {means} (R-hat {clusters.r_hat:.2f})")
    return "; ".join(parts)


def study(n_images: int = 4) -> dict[str, object]:
    """Return a line for each photograph and min_size: two chains from one cluster, then two from many clusters."""
    examples = bsds(data_root(), "train")[7::50][:n_images]
    tasks = [(example, size) for example in examples for size in SIZES]
    with ProcessPoolExecutor() as pool:
        lines = pool.map(compare, tasks)
        return {f"{example.name}, min_size {size}": line for (example, size), line in zip(tasks, lines, strict=True)}
