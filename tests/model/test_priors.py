"""Priors: normalization, identities between them, and their rules."""

import itertools
import math

import numpy as np
import pytest

import exact
import model_cases
import precise
import spinseg as ss
from effort import effort
from spinseg.model.priors import log_rising


def log_g_of_all(prior, n_sites):
    return np.array([prior.log_g(np.bincount(row)) for row in exact.partitions(n_sites)])


@pytest.mark.parametrize("name", [name for name, p in model_cases.priors().items() if p.log_normalizer(1) is not None])
@pytest.mark.parametrize("n_sites", effort([1, 2, 5], range(1, 8)))
def test_tables_sum_to_the_known_constant(name, n_sites):
    prior = model_cases.priors()[name]
    total = np.logaddexp.reduce(log_g_of_all(prior, n_sites))
    assert total == pytest.approx(prior.log_normalizer(n_sites), abs=1e-11)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ss.PitmanYor(0.5, -0.5), ss.FiniteDirichlet(1, 0.5)),
        (ss.PitmanYor(6.0, -2.0), ss.FiniteDirichlet(3, 2.0)),
        (ss.PitmanYor(1.7, 0.0), ss.DirichletProcess(1.7)),
        (ss.TabulatedPrior(lambda k: k * math.log(2.0), math.lgamma), ss.DirichletProcess(2.0)),
        (ss.TabulatedPrior(*ss.DirichletProcess(2.0).tables(6)), ss.DirichletProcess(2.0)),
    ],
)
def test_priors_that_are_equal_but_for_a_constant(one, other):
    ours, theirs = log_g_of_all(one, 6), log_g_of_all(other, 6)
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(theirs))
    legal = np.isfinite(ours)
    np.testing.assert_allclose(np.diff(ours[legal]), np.diff(theirs[legal]), atol=1e-12)


def test_the_potts_prior_is_the_potts_model_summed_over_labels():
    n_sites, n_labels = 5, 3
    graph, kept = exact.graph(n_sites)
    beta = exact.MIXED[kept]
    model = ss.Model(graph, ss.Flat(), ss.Potts(n_labels), beta)
    weight = dict.fromkeys(exact.code(exact.partitions(n_sites)), 0.0)
    for labels in itertools.product(range(n_labels), repeat=n_sites):
        z = np.array(labels)
        energy = beta[z[graph.edges[:, 0]] == z[graph.edges[:, 1]]].sum()
        first_seen = {label: i for i, label in enumerate(dict.fromkeys(labels))}
        weight[exact.code(np.array([first_seen[label] for label in labels]))] += math.exp(energy)
    ours = np.exp([model.log_posterior(row) for row in exact.partitions(n_sites)])
    np.testing.assert_allclose(ours, list(weight.values()), rtol=1e-12)


def test_the_mixture_of_finite_mixtures_averages_finite_dirichlets():
    n_sites, gamma, mean = 5, 0.8, 3.0
    rate = mean - 1
    average = np.full(len(exact.partitions(n_sites)), -np.inf)
    for n_labels in range(1, 80):
        prior = ss.FiniteDirichlet(n_labels, gamma)
        log_p = (n_labels - 1) * math.log(rate) - rate - math.lgamma(n_labels)
        average = np.logaddexp(average, log_p + log_g_of_all(prior, n_sites) - prior.log_normalizer(n_sites))
    np.testing.assert_allclose(log_g_of_all(ss.MixtureOfFiniteMixtures(gamma, mean), n_sites), average, atol=1e-12)
    # A law of the number of labels that falls slowly:
    prior = ss.MixtureOfFiniteMixtures(1.0, log_p_labels=lambda k: (k - 1) * math.log(0.9) + math.log(0.1))
    assert np.logaddexp.reduce(log_g_of_all(prior, 6)) == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize("limits", model_cases.LIMITS[1:], ids=str)
@pytest.mark.parametrize("name", model_cases.priors())
def test_truncation_forbids_sizes_and_changes_nothing_else(name, limits):
    plain, limited = model_cases.priors()[name], model_cases.priors(**limits)[name]
    for row in exact.partitions(6):
        sizes = np.bincount(row)
        legal = sizes.min() >= limits.get("min_size", 1) and sizes.max() <= limits.get("max_size", 6)
        assert limited.log_g(sizes) == (plain.log_g(sizes) if legal else -math.inf)


def test_exchangeable_prior_sees_the_sizes_largest_first():
    seen = []
    prior = ss.ExchangeablePrior(lambda sizes: seen.append(sizes.tolist()) or 0.0, min_size=2)
    assert prior.log_g([2, 5, 3]) == 0.0
    assert prior.log_g([5, 1]) == -math.inf
    assert seen == [[5, 3, 2]]
    with pytest.raises(TypeError, match="no tables"):
        prior.tables(5)


@pytest.mark.parametrize("x", np.geomspace(1e-3, 1e16, 39))
@pytest.mark.parametrize("n", [1e-3, 0.5, 1.0, 7.0, 400.0, 1e6])
def test_rising_factorials_keep_their_digits(x, n):
    a, b = precise.exactly([x, n])
    known = float(precise.lgamma(a + b) - precise.lgamma(a))
    assert float(log_rising(x, n)) == pytest.approx(known, rel=1e-12, abs=1e-11)
    np.testing.assert_array_equal(log_rising([x, 2.0], [[0.0], [n]])[:, 0], [0.0, log_rising(x, n)])


REFUSED = {  # the rule: what breaks it
    r"n_labels must be a whole number of at least 1: got 0": lambda: ss.Potts(0),
    r"concentration must be a finite number above 0: got 0.0": lambda: ss.FiniteDirichlet(3, 0.0),
    r"discount must be below 1: got 1.0": lambda: ss.PitmanYor(1.0, 1.0),
    r"concentration must be a finite number above -0.3: got -0.5": lambda: ss.PitmanYor(-0.5, 0.3),
    r"concentration must be a whole multiple of 0.5 where discount = -0.5": lambda: ss.PitmanYor(1.2, -0.5),
    r"max_size must be at least min_size, 4: got 2": lambda: ss.DirichletProcess(1.0, min_size=4, max_size=2),
    r"log_v must have at least n_sites \+ 1 = 6 entries": lambda: ss.TabulatedPrior([0, 0], [0, 0]).tables(5),
    r"log_v must hold finite numbers": lambda: ss.TabulatedPrior(lambda k: math.nan, lambda m: 0.0).tables(2),
    r"log_g must be a function of the cluster sizes: got 3": lambda: ss.ExchangeablePrior(3),
    r"log_g\(sizes\) must be a finite number or": lambda: ss.ExchangeablePrior(lambda m: math.nan).log_g([2, 1]),
}


@pytest.mark.parametrize(("message", "make"), REFUSED.items(), ids=REFUSED)
def test_illegal_parameters_are_refused_with_the_rule(message, make):
    with pytest.raises(ValueError, match=message):
        make()
