"""Claimed against actual standard errors of the boundary probabilities of `photo`.

The three bundled photographs and two of the training photographs of BSDS300, which are left out where the data are not
there (../shared/data or SPINSEG_DATA). Each is segmented with 8 random seeds. What is claimed is the root mean square
of the standard errors over seeds and over the boundaries in doubt. What is actual is the root mean square distance
from a reference: a run of 2,500 sweeps from opposite starts, whose own error is subtracted. The standard deviation over
seeds is smaller where chains have not forgotten their starts, since those are the same for every seed. Covered is the
share of single probabilities in doubt within two standard errors of the reference, its own error included. Boundaries
are those between two sites, and those between two regions of the first segmentation, by length. It takes about 10
minutes of processor time.
"""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from spinseg.graph.merging import touching_regions
from spinseg.image.io import read_picture
from spinseg.pictures import PICTURES
from spinseg.sampler.convergence import in_doubt, separation_of_chains, standard_errors
from studies.evaluation.datasets import bsds, data_root

N_SEEDS = 8
REFERENCE: dict[str, Any] = {"sweeps": 2500, "burn_in": 500, "thin": 4}
TRAINING = (20, 120)  # places in the list of training photographs


def photographs() -> dict[str, Any]:
    """Return the bundled photographs, and training photographs where the data are there."""
    images: dict[str, Any] = {name: read_picture(picture.path) for name, picture in PICTURES.items()}
    try:
        examples = bsds(data_root(), "train")
    except FileNotFoundError as error:
        print(f"without training photographs: {error}")
        return images
    return images | {f"BSDS300 {examples[place].name}": examples[place].image() for place in TRAINING}


def repeated(image: Any) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the sweeps of each seed, and separation in each chain: of seeds and of the reference; and weights.

    The weights are those of the edges in the mean along each boundary of the first segmentation, times its length.
    """
    found = [ss.segment(image, rng=seed, workers=1) for seed in range(N_SEEDS)]
    first, edges = found[0], found[0].model.graph.edges
    each = np.array([separation_of_chains(seg.chains, edges) for seg in found])
    long = ss.sample(first.model, chains=2, init="opposite", rng=99, workers=1, **REFERENCE)
    pairs, across, pair = touching_regions(first._region_of_site, edges)
    weights = np.zeros((len(pairs), len(edges)))
    weights[pair, np.flatnonzero(across)] = first.model.graph.length[across]
    return [seg.chains.n_sweeps for seg in found], each, separation_of_chains(long, edges), weights


def compared(
    each: NDArray[np.float64], reference: NDArray[np.float64], lengths: NDArray[np.float64], along: NDArray[np.float64]
) -> dict[str, float]:
    """Return what is claimed and what is actual, over boundaries in doubt, each counted by its length.

    `each` and `reference` are of edges, and `along` has the weights of the edges of each boundary.
    """
    doubt = in_doubt((each @ along).mean(axis=(0, 1, 2)))
    weight = lengths[doubt] / lengths[doubt].sum()
    means, truth = (each @ along).mean(axis=(1, 2))[:, doubt], (reference @ along).mean(axis=(0, 1))[doubt]
    squares = np.array([standard_errors(of_seed @ along, of_seed)[doubt] ** 2 for of_seed in each])
    own = standard_errors(reference @ along, reference)[doubt] ** 2
    distance = ((means - truth) ** 2).mean(axis=0) @ weight - own @ weight
    found = {"claimed": squares.mean(axis=0) @ weight, "actual": distance, "sd": means.var(axis=0, ddof=1) @ weight}
    covered = (means - truth) ** 2 <= 4 * (squares + own)
    return {name: float(np.sqrt(max(x, 0))) for name, x in found.items()} | {"covered": float(covered.mean())}


def compare(image: Any) -> tuple[list[int], dict[str, float], dict[str, float]]:
    """Return the sweeps of each seed, and claimed and actual errors of edges and of boundaries between regions."""
    sweeps, each, reference, weights = repeated(image)
    lengths = weights.sum(axis=1)
    n_edges = each.shape[-1]
    return (
        sweeps,
        compared(each, reference, np.ones(n_edges), np.eye(n_edges)),
        compared(each, reference, lengths, weights.T / lengths),
    )


def study() -> dict[str, object]:
    """Return a line for each photograph."""
    images = photographs()
    figures: dict[str, object] = {}
    with ProcessPoolExecutor() as pool:
        for name, (sweeps, *errors) in zip(images, pool.map(compare, images.values()), strict=True):
            for kind, found in zip(("sites", "regions"), errors, strict=True):
                figures[f"{name}, between {kind}"] = (
                    f"claimed {found['claimed']:.3f}, actual {found['actual']:.3f}, covered {found['covered']:.0%}; "
                    f"over seeds {found['sd']:.3f}"
                )
            figures[f"{name}, sweeps"] = sweeps
    return figures
