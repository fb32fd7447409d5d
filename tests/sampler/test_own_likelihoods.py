"""Likelihoods that a caller writes: what the compiled sampler adds up must be what they define."""

import re

import numpy as np
import pytest
from scipy.special import gammaln

import exact
import spinseg as ss
from chain_cases import assert_books
from spinseg.model.likelihoods import DenseTerm, HistogramTerm

TIMES = np.array([1.0, 2.0, 2.0, 4.0, 30.0])


class Waiting(ss.Likelihood):
    """Waiting times with a gamma rate, as counts of events in those times; a constant is left out."""

    n_sites = TIMES.size

    def __init__(self, shape=2.0):
        self.shape = shape

    def log_marginal(self, sites):
        times = TIMES[np.asarray(sites)]
        return float(gammaln(2.0 + times.size) - (2.0 + times.size) * np.log(3.0 + times.sum()) + times.size)

    def terms(self):
        constant = gammaln(2.0) - 2.0 * np.log(3.0)  # of every cluster, which log_marginal leaves out
        statistics = np.stack([TIMES, np.ones(TIMES.size)], axis=1)
        return [DenseTerm("poisson_gamma", 1, statistics, np.array([constant, self.shape, 3.0]))]


class Nothing(Waiting):
    def terms(self):
        return []


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
    assert_books(model, chains)


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


class Told(Waiting):
    """Its terms are what a test makes of the right ones."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def terms(self):
        return self.change(super().terms()[0])


def changed(**fields):
    return lambda term: [term._replace(**fields)]


def histogram(**fields):
    return lambda _: [HistogramTerm(np.ones((5, 1), int), np.ones(1), np.ones(1), 1.0)._replace(**fields)]


LIST = "() must be a list of HistogramTerm and DenseTerm: got"
MALFORMED = {
    "None": (lambda term: None, f"{LIST} 'NoneType'"),
    "term": (lambda term: term, f"{LIST} 'DenseTerm'"),
    "tuple": (lambda term: [tuple(term)], f"{LIST} 'a list with tuple'"),
    "family": (
        changed(family="exponential"),
        "()[0].family must be one of 'diagonal_gaussian', 'gaussian', 'poisson_gamma'",
    ),
    "channels": (changed(channels=0), "()[0].channels must be a whole number of at least 1: got 0"),
    "more-channels": (changed(channels=2), "()[0].statistics must have shape (5, 3): got (5, 2)"),
    "rows": (changed(statistics=np.ones((4, 2))), "()[0].statistics must have shape (5, 2): got (4, 2)"),
    "vector": (changed(statistics=np.ones(5)), "()[0].statistics must have shape (5, 2): got (5,)"),
    "nan": (changed(statistics=np.full((5, 2), np.nan)), "()[0].statistics must be finite: got nan"),
    "text": (changed(statistics=[["a", "b"]] * 5), "()[0].statistics must be an array of numbers: got 'str"),
    "complex": (changed(statistics=np.full((5, 2), 1j)), "()[0].statistics must be an array of numbers: got 'com"),
    "no-statistics": (changed(statistics=None), "()[0].statistics must be an array of numbers: got None"),
    "parameters": (changed(parameters=[0.0, 2.0]), "()[0].parameters must have shape (3): got (2,)"),
    "bins": (histogram(counts=np.ones((3, 1))), "()[0].counts must have a row for each of 5 sites: got (3, 1)"),
    "halves": (
        histogram(counts=np.full((5, 1), 0.5)),
        "()[0].counts must be whole numbers of at least 0: got 0.5",
    ),
    "prior": (histogram(prior=[0.0]), "()[0].prior must be positive: got 0"),
    "sign": (histogram(sign=[1.0, 1.0]), "()[0].sign must have shape (1): got (2,)"),
    "weight": (histogram(weight="1"), "()[0].weight must be a finite number above 0: got '1'"),
}


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "product"])
@pytest.mark.parametrize(("change", "line"), MALFORMED.values(), ids=MALFORMED)
def test_terms_that_are_no_terms_are_refused(change, line, alone):
    likelihood = Told(change) if alone else ss.Product(ss.PoissonGamma([1, 2, 3, 4, 9]), Told(change))
    for call in (ss.sample, ss.find_map):
        with pytest.raises(ss.InvalidInput, match=re.escape(f"likelihood.terms{line}")):
            call(model_of(likelihood), sweeps=2)


def test_terms_of_other_types_that_hold_the_same_numbers_are_taken():
    def plain(term):
        return (term._replace(statistics=term.statistics.tolist(), parameters=tuple(term.parameters.tolist())),)

    drawn = [ss.sample(model_of(likelihood), 20, 1, rng=0).labels for likelihood in (Waiting(), Told(plain))]
    np.testing.assert_array_equal(*drawn)


def test_malformed_terms_are_refused_by_clusterings_too():
    pytest.importorskip("sklearn", reason="the extra [sklearn] is not installed")
    with pytest.raises(ss.InvalidInput, match=r"^likelihood.terms\(\) must be a list"):
        ss.SpatialClustering(likelihood=lambda X: Told(lambda term: None)).fit(TIMES[:, None])


def test_a_likelihood_of_any_attributes_can_be_shown():
    assert repr(Waiting()) == "Waiting of 5 sites" and "Waiting of 5 sites" in repr(model_of(Waiting()))
