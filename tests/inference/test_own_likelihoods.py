"""Likelihoods that a caller writes: what the compiled sampler adds up must be what they define."""

import numpy as np
import pytest
from scipy.special import gammaln

import exact
import spinseg as ss
from spinseg.model.likelihoods import DenseTerm

TIMES = np.array([1.0, 2.0, 2.0, 4.0, 30.0])


class Waiting(ss.Likelihood):
    """Waiting times with a gamma rate, as the counts of so many events in those times; a constant is left out."""

    n_sites = TIMES.size

    def __init__(self, shape=2.0):
        self.shape = shape

    def log_marginal(self, sites):
        times = TIMES[np.asarray(sites)]
        return float(gammaln(2.0 + times.size) - (2.0 + times.size) * np.log(3.0 + times.sum()) + times.size)

    def terms(self):
        constant = 0.0  # of every cluster, as in log_marginal
        statistics = np.stack([TIMES, np.ones(TIMES.size)], axis=1)
        return [DenseTerm("poisson_gamma", 1, statistics, np.array([constant, self.shape, 3.0]))]


class Nothing(Waiting):
    def terms(self):
        return []


class Unknown(Waiting):
    def terms(self):
        return [Waiting.terms(self)[0]._replace(family="exponential")]


class Shifted(ss.PoissonGamma):
    """One term too much for single sites, say for missing ones, which halves do not show."""

    def log_marginal(self, sites):
        return super().log_marginal(sites) + 0.1 * (len(sites) == 1)


def model_of(likelihood, **keywords):
    return ss.Model(exact.graph(5)[0], likelihood, ss.DirichletProcess(1.0), 0.2, **keywords)


@pytest.mark.parametrize("keywords", [{}, {"power": 0.3}, {"connected": True, "seeds": [1, 0, 0, 2, 0]}], ids=str)
@pytest.mark.parametrize("likelihood", [Waiting(), ss.Product(ss.PoissonGamma([1, 2, 3, 4, 9]), Waiting())], ids=repr)
def test_terms_that_add_up_to_the_log_marginal_are_sampled(likelihood, keywords):
    model = model_of(likelihood, **keywords)
    chains = ss.sample(model, 20, 1, rng=0)
    for labels, value in zip(chains.labels[0], chains.log_posterior[0], strict=True):
        assert value == pytest.approx(model.log_posterior(labels), abs=1e-8)


@pytest.mark.parametrize("call", [ss.sample, ss.find_map], ids=lambda call: call.__name__)
@pytest.mark.parametrize(
    "likelihood",
    [
        Waiting(2.1),
        Nothing(),
        Shifted([1, 2, 3, 4, 9]),
        ss.Product(ss.Flat(), ss.Product(ss.PoissonGamma([1, 2, 3, 4, 9]), Nothing())),
    ],
    ids=lambda likelihood: type(likelihood).__name__,
)
def test_terms_of_something_else_are_refused(likelihood, call):
    with pytest.raises(ss.InvalidInput, match=r"^likelihood.terms\(\) must add up to log_marginal, which changes by "):
        call(model_of(likelihood), sweeps=2)


def test_a_family_that_is_not_compiled_is_refused():
    with pytest.raises(ss.InvalidInput, match=r"family must be one of 'diagonal_gaussian', .*; received 'exponential'"):
        ss.sample(model_of(Unknown()), 2)


def test_a_likelihood_of_any_attributes_can_be_shown():
    assert repr(Waiting()) == "Waiting of 5 sites" and "Waiting of 5 sites" in repr(model_of(Waiting()))
