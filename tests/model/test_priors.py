"""Priors: normalisation, identities between them, and their rules."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.special import digamma

import exact
import model_cases
import spinseg as ss
from effort import effort, exhaustive


def log_g_of_all(prior, n_sites):
    return np.array([prior.log_g(np.bincount(row)) for row in exact.partitions(n_sites)])


@pytest.mark.parametrize("name", [name for name, p in model_cases.priors().items() if p.log_normalizer(1) is not None])
@pytest.mark.parametrize("n_sites", effort([1, 2, 5], range(1, 8)))
def test_tables_sum_to_the_known_constant(name, n_sites):
    prior = model_cases.priors()[name]
    total = np.logaddexp.reduce(log_g_of_all(prior, n_sites))
    assert total == pytest.approx(prior.log_normalizer(n_sites), abs=1e-11)


@pytest.mark.parametrize("discount", [-0.5, -2.0])
@pytest.mark.parametrize("n_labels", [1, 3, 5])
def test_pitman_yor_with_negative_discount_is_the_finite_dirichlet(discount, n_labels):
    ours = log_g_of_all(ss.PitmanYor(-n_labels * discount, discount), 6)
    theirs = log_g_of_all(ss.FiniteDirichlet(n_labels, -discount), 6)
    np.testing.assert_array_equal(np.isinf(ours), np.isinf(theirs))
    legal = np.isfinite(ours)
    difference = ours[legal] - theirs[legal]
    np.testing.assert_allclose(difference, difference[0], atol=1e-12)


def test_pitman_yor_without_discount_is_the_dirichlet_process():
    ours, theirs = log_g_of_all(ss.PitmanYor(1.7, 0.0), 6), log_g_of_all(ss.DirichletProcess(1.7), 6)
    np.testing.assert_allclose(ours - theirs, -math.log(1.7), atol=1e-12)


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


def test_the_mixture_of_finite_mixtures_takes_a_slowly_falling_law_of_labels():
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


def test_tables_given_as_arrays_and_as_functions_agree():
    log_v, log_w = ss.DirichletProcess(2.0).tables(9)
    from_arrays = ss.TabulatedPrior(log_v, log_w)
    from_functions = ss.TabulatedPrior(lambda k: k * math.log(2.0), math.lgamma)
    for ours, theirs in zip(from_arrays.tables(9), from_functions.tables(9), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@exhaustive
@pytest.mark.parametrize("alpha", effort([3.0], [1.0, 3.0, 5.0]))
def test_prior_simulation_gives_the_exact_mean_number_of_clusters(alpha):
    """Model page, 6C: 7.58, 18.24 and 27.50 clusters on 1,099 sites without couplings."""
    n_sites = 1099
    corners = Delaunay(np.random.default_rng(0).random((n_sites, 2))).simplices  # like a region adjacency graph
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    graph = ss.SiteGraph(n_sites, np.unique(np.sort(pairs, axis=1), axis=0))
    model = ss.Model(graph, ss.Flat(), ss.DirichletProcess(alpha), beta=0.0)
    chains = ss.sample(model, sweeps=500 + effort(600, 1600), chains=4, burn_in=500, rng=8)
    batches = chains.n_clusters.reshape(40, -1).mean(axis=1)
    wanted = alpha * (digamma(alpha + n_sites) - digamma(alpha))
    assert wanted == pytest.approx({1.0: 7.58, 3.0: 18.24, 5.0: 27.50}[alpha], abs=0.01)
    error = batches.std(ddof=1) / math.sqrt(batches.size)
    assert error < effort(0.4, 0.2)
    assert abs(batches.mean() - wanted) < 6 * error  # the paper's caption is 1 off


REFUSED = {  # the rule: what breaks it
    r"n_labels must be a whole number of at least 1; received 0": lambda: ss.Potts(0),
    r"n_labels must be a whole number": lambda: ss.Potts(2.5),
    r"concentration must be a finite number above 0; received 0.0": lambda: ss.FiniteDirichlet(3, 0.0),
    r"concentration must be a finite number above 0; received -1": lambda: ss.DirichletProcess(-1),
    r"concentration must be a finite number above 0; received nan": lambda: ss.DirichletProcess(math.nan),
    r"concentration must be a finite number above 0; received '3'": lambda: ss.DirichletProcess("3"),
    r"discount must be below 1; received 1.0": lambda: ss.PitmanYor(1.0, 1.0),
    r"concentration must be a finite number above -0.3; received -0.5": lambda: ss.PitmanYor(-0.5, 0.3),
    r"concentration must be a whole multiple of 0.5 where discount = -0.5": lambda: ss.PitmanYor(1.2, -0.5),
    r"mean_labels must be a finite number above 1; received 0.5": lambda: ss.MixtureOfFiniteMixtures(1.0, 0.5),
    r"min_size must be a whole number of at least 1; received 0": lambda: ss.DirichletProcess(1.0, min_size=0),
    r"max_size must be at least min_size, 4; received 2": lambda: ss.DirichletProcess(1.0, min_size=4, max_size=2),
    r"log_v must have at least n_sites \+ 1 = 6 entries": lambda: ss.TabulatedPrior([0, 0], [0, 0]).tables(5),
    r"log_v must hold finite numbers": lambda: ss.TabulatedPrior(lambda k: math.nan, lambda m: 0.0).tables(2),
    r"log_g must be a function of the cluster sizes; received 3": lambda: ss.ExchangeablePrior(3),
    r"log_g\(sizes\) must be a finite number or": lambda: ss.ExchangeablePrior(lambda m: math.nan).log_g([2, 1]),
}


@pytest.mark.parametrize(("message", "make"), REFUSED.items(), ids=REFUSED)
def test_illegal_parameters_are_refused_with_the_rule(message, make):
    with pytest.raises(ValueError, match=message):
        make()
