"""Regions of kinds: every move against enumeration, the limits of the model, and all that runs on top of the moves."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from effort import effort, exhaustive

GRAPHS = {
    "path": [[0, 1], [1, 2], [2, 3]],
    "cycle": [[0, 1], [1, 2], [2, 3], [3, 0]],
    "star": [[0, 1], [0, 2], [0, 3]],
    "five of a ladder": [[0, 1], [1, 2], [2, 3], [3, 4], [0, 3], [1, 4]],
    "two components": [[0, 1], [1, 2], [3, 4]],
}
LIMITS = [{}, {"min_size": 2}, {"max_size": 2}, {"max_size": 3}]


def model_of(
    graph: str,
    likelihood: str = "product",
    prior: str = "dirichlet process",
    limits: Mapping[str, int] = MappingProxyType({}),
    kind_prior: str = "dirichlet process",
    kind_limits: Mapping[str, int] = MappingProxyType({}),
    sign: str = "mixed",
    power: float = 0.7,
) -> ss.Model | None:
    """A model of regions of kinds; None where the limits leave no partition."""
    n_sites = int(np.max(GRAPHS[graph])) + 1
    beta = np.random.default_rng(3).uniform(0.2, 1.2, len(GRAPHS[graph]))
    if sign == "mixed":
        beta *= np.resize([1, -1, 1, 1, -1.5], beta.size)
    sites, of_data = ss.SiteGraph(n_sites, GRAPHS[graph]), model_cases.likelihoods(n_sites)[likelihood]
    try:
        of_sizes, of_kinds = model_cases.priors(**limits)[prior], model_cases.priors(**kind_limits)[kind_prior]
        model = ss.Model(sites, of_data, of_sizes, beta, connected=True, power=power, kinds=of_kinds)
        return exact.possible(model)
    except ValueError:  # such sizes cannot add up to the number of sites
        return None


CASES = exact.Cases(
    model_of,
    connected=True,
    kinds=True,
    graph=list(GRAPHS),
    likelihood=list(model_cases.likelihoods(5)),
    prior=list(model_cases.priors()),
    limits=LIMITS,
    kind_prior=list(model_cases.priors()),
    kind_limits=LIMITS,
    sign=["positive", "mixed"],
    power=[1.0, 0.3, 2.5],
)


@pytest.mark.parametrize("iteration", exact.tried(connected=True, kinds=True))
def test_one_iteration_leaves_the_posterior_invariant(iteration):
    CASES.check_covering(iteration, effort(8_000, 100_000))
