"""Synthetic problems with the size and sparsity of real ones."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.spatial import Delaunay

import spinseg as ss
from spinseg.sampler.chain import Chain, new_record
from spinseg.sampler.kernels.moves import attempts_at
from spinseg.sampler.kernels.state import Plan
from spinseg.sampler.pack import pack
from spinseg.sampler.plan import bond_strengths


def superpixels(n_sites: int = 1000, mean_degree: float = 5.5, n_clusters: int = 10, seed: int = 0) -> ss.Model:
    """Return the paper's model on a graph like those of superpixels, with about 9 of 120 bins per site."""
    rng = np.random.default_rng(seed)
    rows = int(np.sqrt(n_sites))
    points = rng.random((n_sites, 2))
    points = points[np.lexsort((points[:, 0], np.floor(points[:, 1] * rows)))]
    corners = Delaunay(points).simplices
    pairs = np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]]), axis=1)
    edges = np.unique(pairs, axis=0)
    edges = edges[np.sort(rng.permutation(len(edges))[: round(mean_degree * n_sites / 2)])]
    centers = rng.random((n_clusters, 2))
    truth = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    palette = rng.dirichlet(np.full(120, 0.022), n_clusters)
    counts = np.array(
        [rng.multinomial(60, 0.97 * palette[z] + 0.03 * rng.dirichlet(np.full(120, 0.02))) for z in truth]
    )
    likelihood = ss.DirichletMultinomial(counts, concentration=50.0, count_weight=0.1)
    return ss.Model(ss.SiteGraph(n_sites, edges), likelihood, ss.DirichletProcess(3.0), beta=0.02)


def grid(side: int, n_clusters: int = 10, seed: int = 0) -> tuple[ss.Model, NDArray[np.int32]]:
    """Return a model of pixels in patches of ten clusters, with 12 words per cluster and 10 % noise, and the truth."""
    rng = np.random.default_rng(seed)
    y, x = np.divmod(np.arange(side * side), side)
    truth, nearest = np.zeros(side * side, np.int32), np.full(side * side, np.inf)
    for c, (a, b) in enumerate(rng.random((n_clusters, 2)) * side):
        distance = (y - a) ** 2 + (x - b) ** 2
        truth[distance < nearest] = c
        nearest = np.minimum(nearest, distance)
    words = 12 * truth + rng.integers(0, 12, side * side)
    anything = rng.random(side * side) < 0.1
    words[anything] = rng.integers(0, 120, anything.sum())
    start = np.arange(side * side + 1)
    counts = sparse.csr_array((np.ones(side * side, np.int32), words, start), shape=(side * side, 120))
    # With this weight and prior there are exactly ten clusters on 1,024 sites as on a million.
    likelihood, prior = ss.DirichletMultinomial(counts, count_weight=3.0), ss.FiniteDirichlet(n_clusters)
    return ss.Model(ss.SiteGraph.grid((side, side)), likelihood, prior, beta=0.5), truth


def chain_at(model: ss.Model, labels: NDArray[np.int32], lam: float, sweeps: int) -> Chain:
    """Return a chain at a partition, with a record for some sweeps and no draws; set `done` to 0 to repeat them."""
    strength, lams = bond_strengths(model, lam, "gsw")
    record = new_record(sweeps, model.graph.n_sites)
    rng = np.random.default_rng(2)
    plan = Plan(lams, attempts_at(), 1.0, sweeps, 1)
    return Chain(model, pack(model, strength), plan, labels, model.log_posterior(labels), record, rng)
