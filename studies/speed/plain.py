"""A sweep written in plain NumPy and SciPy, for comparison."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.special import gammaln

import spinseg as ss


def sweep(model: ss.Model, labels: NDArray[np.int32], lam: float, rng: np.random.Generator) -> NDArray[np.int32]:
    """Do one generalized Swendsen-Wang sweep for histograms under a Dirichlet process; return the new labels."""
    likelihood, prior, n_sites = model.likelihood, model.prior, model.graph.n_sites
    assert isinstance(likelihood, ss.DirichletMultinomial) and isinstance(prior, ss.DirichletProcess)
    counts = likelihood.count_weight * likelihood.counts.toarray()
    i, j = model.graph.edges.T
    z = labels.copy()

    def log_marginals(n: NDArray[np.float64]) -> NDArray[np.float64]:
        total = gammaln(likelihood.concentration) - gammaln(likelihood.concentration + n.sum(axis=1))
        return total + (gammaln(likelihood.prior + n) - gammaln(likelihood.prior)).sum(axis=1)

    bonded = (z[i] == z[j]) & (rng.random(len(i)) < -np.expm1(-lam * model.beta))
    links = sparse.coo_array((np.ones(bonded.sum()), (i[bonded], j[bonded])), shape=(n_sites, n_sites))
    p, spin = sparse.csgraph.connected_components(links, directed=False)
    n = np.array([counts[z == c].sum(axis=0) for c in range(z.max() + 1)])
    sizes = np.bincount(z).astype(float)
    for c in range(p):
        inside = spin == c
        m, own, old = inside.sum(), counts[inside].sum(axis=0), z[inside][0]
        n[old] -= own
        sizes[old] -= m
        if sizes[old] == 0:
            n, sizes = np.delete(n, old, axis=0), np.delete(sizes, old)
            z[z > old] -= 1
        k = len(sizes)
        candidates = np.vstack([n, np.zeros_like(own)])
        weight = log_marginals(candidates + own) - log_marginals(candidates)
        weight[:k] += gammaln(sizes + m) - gammaln(sizes)
        weight[k] += np.log(prior.concentration) + gammaln(m)
        border = inside[i] != inside[j]
        other = np.where(inside[i[border]], z[j[border]], z[i[border]])
        weight[:k] += np.bincount(other, model.beta[border] * (1 - lam), minlength=k)
        share = np.exp(weight - weight.max())
        new = rng.choice(k + 1, p=share / share.sum())
        if new == k:
            n, sizes = candidates, np.append(sizes, 0.0)
        n[new] += own
        sizes[new] += m
        z[inside] = new
    return z
