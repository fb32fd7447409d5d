"""The same sweep as a straightforward program in NumPy and SciPy would do it."""

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.special import gammaln

import spinseg as ss


def sweep(model: ss.Model, labels: NDArray[np.int32], lam: float, rng: np.random.Generator) -> NDArray[np.int32]:
    """One generalised Swendsen-Wang sweep for histograms under a Dirichlet process."""
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
    for c in range(p):
        inside = spin == c
        z[inside] = -1
        kept, z_rest = np.unique(z[~inside], return_inverse=True)
        z[~inside] = z_rest
        k = kept.size
        rest = np.flatnonzero(~inside)
        members = sparse.csr_array((np.ones(rest.size), (z[rest], rest)), shape=(k + 1, n_sites))
        n, sizes, own = members @ counts, members.sum(axis=1), counts[inside].sum(axis=0)
        weight = log_marginals(n + own) - log_marginals(n)
        weight[:k] += gammaln(sizes[:k] + inside.sum()) - gammaln(sizes[:k])
        weight[k] += np.log(prior.concentration) + gammaln(inside.sum())
        border = inside[i] != inside[j]
        other = np.where(inside[i[border]], z[j[border]], z[i[border]])
        weight[:k] += np.bincount(other, model.beta[border] * (1 - lam), minlength=k)
        share = np.exp(weight - weight.max())
        z[inside] = rng.choice(k + 1, p=share / share.sum())
    return z
