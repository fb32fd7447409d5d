"""Spatial domains of tissues that are made up, as in examples/spatial_domains.py: how easy must they be to be found?

For each kind of tissue and number of principal components: the adjusted Rand index of `cluster_anndata` on each of
three tissues, and that of k-means, which is given the number of domains. Needs the extras [anndata] and [sklearn].
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from studies.evaluation.metrics import adjusted_rand_index

SIDE, N_GENES = 32, 200
SEEDS = (1, 2, 3)
N_COMPONENTS = (8, 15, 20, 30, 50)
SWEEPS, CHAINS = 40, 2
# Marker genes of each domain, and how much the rates of a gene vary between spots of a domain, over their mean.
TISSUES = {
    "20 marker genes": (20, 0.45),
    "10 marker genes": (10, 0.45),
    "20 marker genes, rates that vary as much as their mean": (20, 1.0),
    "8 marker genes, rates that vary by .7 of it": (8, 0.7),
}


def tissue(seed: int, n_markers: int, variation: float) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
    """Return counts of genes at spots on hexagons, their places, and their domains: four layers and an island."""
    rng = np.random.default_rng(seed)
    row, column = np.divmod(np.arange(SIDE**2), SIDE)
    places = np.stack([column + 0.5 * (row % 2), row * 3**0.5 / 2], axis=1)
    x, y = places.T / SIDE
    domains = np.digitize(y + 0.08 * np.sin(6 * x), [0.22, 0.44, 0.66])
    domains[(x - 0.6) ** 2 + (y - 0.4) ** 2 < 0.15**2] = 4
    change = np.ones((5, N_GENES))
    for domain in change:
        domain[rng.choice(N_GENES, n_markers, replace=False)] = rng.choice([2.0, 3.0, 0.4], n_markers)
    depth = rng.lognormal(0, 0.3, (domains.size, 1))
    shape = variation**-2
    noise = rng.gamma(shape, 1 / shape, (domains.size, N_GENES))
    counts = rng.poisson(rng.gamma(1.0, 1.5, N_GENES) * change[domains] * depth * noise)
    return counts, places, domains


def components(counts: NDArray[Any], n_components: int) -> NDArray[np.float64]:
    """Return the principal components of logarithms of counts, with the same total for every spot."""
    total = counts.sum(axis=1, keepdims=True)
    pca = import_module("sklearn.decomposition").PCA(n_components, random_state=0)
    return pca.fit_transform(np.log1p(counts / total * np.median(total)))


def text_of(indices: Sequence[float]) -> str:
    """Return the indices of several tissues as text."""
    return " ".join(f"{index:.2f}" for index in indices)


def study() -> dict[str, object]:
    """Return adjusted Rand indices of each tissue."""
    anndata, cluster = import_module("anndata"), import_module("sklearn.cluster")
    figures: dict[str, object] = {}
    for name, (n_markers, variation) in TISSUES.items():
        tissues = [tissue(seed, n_markers, variation) for seed in SEEDS]
        for n_components in N_COMPONENTS:
            found, given = [], []
            for counts, places, domains in tissues:
                pca = components(counts, n_components)
                adata = anndata.AnnData(counts.astype(np.float32), obsm={"spatial": places, "X_pca": pca})
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of chains that do not agree: the index says how far they are off
                    labels = ss.cluster_anndata(adata, sweeps=SWEEPS, chains=CHAINS, rng=0, progress=False).labels
                found.append(adjusted_rand_index(labels, domains))
                k_means = cluster.KMeans(5, n_init=5, random_state=0).fit_predict(pca)
                given.append(adjusted_rand_index(k_means.astype(np.int32), domains))
            figures[f"{name}, {n_components} components"] = text_of(found)
            figures[f"{name}, {n_components} components, k-means"] = text_of(given)
            print(f"{name}, {n_components} components: {text_of(found)}", file=sys.stderr)
    return figures
