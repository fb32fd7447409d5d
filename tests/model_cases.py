"""Small models of every kind, for tests that run over all of them."""

import math

import numpy as np

import spinseg as ss


def likelihoods(n_sites: int, seed: int = 0) -> dict[str, ss.Likelihood]:
    """One likelihood of every family, and products."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.5, (n_sites, 4))
    counts[:, 2] = 0
    values = rng.normal(size=(n_sites, 2)) * [1.0, 3.0] + [5.0, -2.0]
    weights = rng.uniform(0.3, 2.0, n_sites)
    squares = values**2 + rng.uniform(0.0, 0.5, values.shape)
    events = rng.poisson(3.0, (n_sites, 2))
    histogram = ss.DirichletMultinomial(counts, concentration=6.0, count_weight=0.7)
    diagonal = ss.DiagonalGaussian(values, kappa=0.5, shape=1.5, weights=weights, squares=squares)
    return {
        "histogram": histogram,
        "two histograms": ss.Product(histogram, ss.DirichletMultinomial(events, 3.0, 0.3)),
        "gaussian": ss.Gaussian(values, kappa=0.4, scale=[[1.0, 0.3], [0.3, 2.0]], weights=weights),
        "diagonal gaussian": diagonal,
        "poisson": ss.PoissonGamma(events, shape=2.0, rate=0.7, exposure=weights),
        "product": ss.Product(histogram, diagonal, ss.PoissonGamma(events)),
        "flat": ss.Flat(),
    }


def priors(**limits: int) -> dict[str, ss.PartitionPrior]:
    """One prior of every class that has tables, and a second Pitman-Yor, with the same size limits."""
    return {
        "potts": ss.Potts(4, **limits),
        "finite dirichlet": ss.FiniteDirichlet(4, 0.7, **limits),
        "dirichlet process": ss.DirichletProcess(1.3, **limits),
        "pitman-yor": ss.PitmanYor(0.8, 0.4, **limits),
        "pitman-yor, negative discount": ss.PitmanYor(2.0, -0.5, **limits),
        "mixture of finite mixtures": ss.MixtureOfFiniteMixtures(0.8, 3.0, **limits),
        "tempered process": ss.TemperedProcess(0.8, **limits),
        "parsimonious process": ss.ParsimoniousProcess(1.5, 0.05, **limits),
        "tabulated": ss.TabulatedPrior(lambda k: -0.2 * k * k, lambda m: 0.5 * math.sqrt(m), **limits),
    }


def prior_with_holes() -> ss.TabulatedPrior:
    """A prior of two or three clusters, none of two sites."""
    return ss.TabulatedPrior(lambda k: 0.0 if k in (2, 3) else -math.inf, lambda m: -math.inf if m == 2 else 0.3 * m)


LIMITS: list[dict[str, int]] = [{}, {"min_size": 2}, {"max_size": 3}, {"min_size": 2, "max_size": 3}]


def lattice(name="product", prior=None, side=12, seed=1, signs=True) -> ss.Model:
    """A model on a square lattice, with couplings of either sign."""
    graph = ss.SiteGraph.grid((side, side))
    beta = np.random.default_rng(seed).normal(0.2, 0.4 if signs else 0.0, graph.n_edges)
    return ss.Model(graph, likelihoods(side * side, seed)[name], prior or ss.DirichletProcess(2.0), beta)


def bond_rule(likelihood: str, lam, n_edges: int):
    """The lambda given; for "data-driven" such a rule, or for Flat, which has no data, numbers for each edge."""
    if lam != "data-driven":
        return lam
    if likelihood == "flat":
        return np.linspace(0.0, 4.0, n_edges)
    return ss.DataDriven(4.0, 0.5, "hellinger" if "histogram" in likelihood else "euclidean")
