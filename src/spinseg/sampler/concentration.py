"""The concentration of a Dirichlet process or Pitman-Yor prior, sampled with the partition."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import check_real, invalid
from spinseg.model.priors import STIRLING_FROM, DirichletProcess, PartitionPrior, PitmanYor, log_rising
from spinseg.sampler.chain import Arrays, Chain
from spinseg.sampler.kernels.state import LOG_POSTERIOR

MIN_CONCENTRATION = 1e-300  # below it logarithms underflow
SLICE_WIDTH = 1.5  # of the first interval, in units of log alpha


def checked_gamma(prior: tuple[float, float]) -> tuple[float, float]:
    """Shape and rate of a gamma distribution."""
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        invalid("concentration_prior", "be (shape, rate)", prior)
    return check_real("shape", prior[0], above=0), check_real("rate", prior[1], above=0)


class ConcentrationUpdate:
    """Draws alpha given the partition after each sweep, by a slice sampler on log alpha.

    The joint distribution is

        p(alpha) * g(sizes | alpha) * exp(couplings) * likelihood,    alpha ~ Gamma(shape, rate),

    with g the normalized prior of the sizes. Given the partition alpha depends on k alone: for the Dirichlet process
    alpha^k / [alpha (alpha + 1) .. (alpha + n - 1)] (Escobar & West 1995), for Pitman-Yor with theta the same product
    with (alpha + theta) (alpha + 2 theta) .. on top. All of it goes into the table log_v, so that the running log
    posterior is the joint one.
    """

    def __init__(self, prior: PartitionPrior, gamma: tuple[float, float], n_sites: int, sweeps: int) -> None:
        if not isinstance(prior, (DirichletProcess, PitmanYor)) or getattr(prior, "discount", 0.0) < 0:
            invalid("concentration_prior", "be left out for a prior that has no free concentration", prior)
        self.discount = getattr(prior, "discount", 0.0)
        self.shape, self.rate = gamma
        self.n_sites = n_sites
        self.value = prior.concentration if prior.concentration > 0 else 1.0
        self.trace = np.zeros(sweeps)

    def log_v(self, alpha: float, k: NDArray[np.integer] | int) -> NDArray[np.float64]:
        """Log of the factors that depend on alpha and the number of clusters k, for one k or several."""
        terms = np.concatenate([[0.0, 0.0], np.log(alpha + self.discount * np.arange(1, np.max(k)))])
        product = np.cumsum(terms)[k]  # sum over i = 1..k-1 of log(alpha + i theta)
        if alpha < STIRLING_FROM:  # in a tenth of the time
            rising = math.lgamma(alpha + self.n_sites) - math.lgamma(alpha + 1.0)
        else:  # lgamma has too few digits for its differences
            rising = float(log_rising(alpha + 1.0, self.n_sites - 1))
        return product - rising + (self.shape - 1) * math.log(alpha) - self.rate * alpha

    def table(self) -> NDArray[np.float64]:
        """The table log_v of a Target at the current alpha."""
        return self.log_v(self.value, np.arange(self.n_sites + 1))

    def __call__(self, chain: Chain) -> None:
        """Draw alpha given the partition, and set the chain's prior to it."""
        k = chain.n_clusters

        def log_density(x: float) -> float:  # of log alpha
            return float(self.log_v(max(math.exp(x), MIN_CONCENTRATION), k)) + x

        self.value = max(math.exp(slice_sample(log_density, math.log(self.value), chain.rng)), MIN_CONCENTRATION)
        self.trace[chain.done - 1] = self.value
        before = chain.target.log_v[k]
        chain.target.log_v[:] = self.table()
        chain.state.scalars[LOG_POSTERIOR] += chain.target.log_v[k] - before

    def state_dict(self, done: int) -> Arrays:
        """The current alpha and its trace."""
        return {"value": np.array(self.value), "trace": self.trace[:done]}

    def restore(self, chain: Chain, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from `state_dict`; the log posterior of the chain is that of its alpha already."""
        self.value = float(arrays["value"])
        self.trace[: len(arrays["trace"])] = arrays["trace"]
        chain.target.log_v[:] = self.table()


def slice_sample(log_density: Callable[[float], float], x: float, rng: np.random.Generator) -> float:
    """A draw that leaves a density on the line invariant: stepping out and shrinkage (Neal 2003)."""
    height = log_density(x) + math.log(1.0 - rng.random())
    left = x - SLICE_WIDTH * rng.random()
    right = left + SLICE_WIDTH
    while log_density(left) > height:
        left -= SLICE_WIDTH
    while log_density(right) > height:
        right += SLICE_WIDTH
    while True:
        candidate = left + (right - left) * rng.random()
        if log_density(candidate) > height:
            return candidate
        left, right = (candidate, right) if candidate < x else (left, candidate)
