"""The concentration sampled with the partition, against the joint law summed and integrated."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import kstest

import exact
import model_cases
import precise
import spinseg as ss
from effort import effort, exhaustive
from spinseg.sampler import concentration

LAW = (2.0, 0.7)
GRID = np.exp(np.linspace(-9, 5, effort(1000, 3000)))


def joint(prior_of, model):
    """log p(partition, alpha) on all partitions and a grid, up to a constant; the grid is even in log alpha."""
    rows = exact.partitions(model.graph.n_sites)
    flat = ss.Model(model.graph, model.likelihood, ss.TabulatedPrior(lambda k: 0.0, lambda m: 0.0), model.beta)
    rest = np.array([flat.log_posterior(row) for row in rows])
    sizes = [np.bincount(row) for row in rows]
    n = model.graph.n_sites
    columns = []
    for alpha in GRID:
        prior = prior_of(alpha)
        shift = prior.log_normalizer(n)
        columns.append([prior.log_g(m) - shift for m in sizes])
    log_p = rest[:, None] + np.array(columns).T
    return rows, log_p + LAW[0] * np.log(GRID) - LAW[1] * GRID  # Gamma density and the Jacobian of log alpha


@pytest.mark.parametrize(
    "prior_of",
    [ss.DirichletProcess, pytest.param(lambda a: ss.PitmanYor(a, 0.4), marks=exhaustive)],
    ids=["dirichlet process", "pitman-yor"],
)
def test_a_sweep_and_an_update_leave_the_joint_law_invariant(prior_of, monkeypatch):
    graph, kept = exact.graph(5)
    model = ss.Model(graph, model_cases.likelihoods(5)["histogram"], prior_of(1.0), exact.MIXED[kept])
    rows, log_p = joint(prior_of, model)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    rng = np.random.default_rng(0)
    places = rng.choice(p.size, effort(150, 1200), p=p.ravel())
    alphas, finals = [], []
    for seed, place in enumerate(places):
        row, column = np.unravel_index(place, p.shape)
        started = ss.Model(graph, model.likelihood, prior_of(GRID[column]), model.beta)
        chains = ss.sample(started, 1, 1, lam=1.0, init=rows[row], concentration_prior=LAW, rng=seed, workers=1)
        alphas.append(chains.concentration[0, 0])
        finals.append(chains.labels[0, 0])
    assert exact.p_value(exact.frequencies(np.array(finals)), p.sum(axis=1)) > 1e-5
    cumulative = np.cumsum(p.sum(axis=0))
    assert kstest(np.interp(np.log(alphas), np.log(GRID), cumulative), "uniform").pvalue > 1e-5


def test_the_running_log_posterior_is_the_joint_one():
    graph, kept = exact.graph(6)
    model = ss.Model(graph, model_cases.likelihoods(6)["poisson"], ss.DirichletProcess(1.0), exact.MIXED[kept])
    chains = ss.sample(model, 50, 1, concentration_prior=LAW, rng=0)
    for t in (1, 20, 49):
        alpha = chains.concentration[0, t]
        labels = chains.labels[0, t]
        prior = ss.DirichletProcess(alpha)
        plain = ss.Model(graph, model.likelihood, prior, model.beta).log_posterior(labels)
        expected = plain - prior.log_normalizer(6) + (LAW[0] - 1) * np.log(alpha) - LAW[1] * alpha
        difference = chains.log_posterior[0, t] - expected
        if t == 1:
            constant = difference
        assert difference == pytest.approx(constant, abs=1e-8)
    assert constant == pytest.approx(0, abs=1e-8)


def test_alpha_given_k_has_its_density():
    update = concentration.ConcentrationUpdate(ss.DirichletProcess(1.0), LAW, 50, 1)
    log_p = np.array([float(update.log_v(a, 7)) for a in GRID]) + np.log(GRID)
    p = np.exp(log_p - log_p.max())
    rng, x, drawn = np.random.default_rng(1), 0.0, []
    for i in range(8000):
        x = concentration.slice_sample(lambda y: float(update.log_v(np.exp(y), 7)) + y, x, rng)
        if i % 4 == 0:
            drawn.append(x)
    assert kstest(np.interp(drawn, np.log(GRID), np.cumsum(p) / p.sum()), "uniform").pvalue > 1e-5
    known = 6 * np.log(2.0) + gammaln(3.0) - gammaln(52.0) + (LAW[0] - 1) * np.log(2.0) - LAW[1] * 2.0
    assert float(update.log_v(2.0, 7)) == pytest.approx(known)


@pytest.mark.parametrize("alpha", [*np.geomspace(1e-6, 1e16, 23), 999.0, 1001.0])
@pytest.mark.parametrize("n_sites", [1, 5, 1000])
def test_large_concentrations_keep_their_digits(alpha, n_sites):
    update = concentration.ConcentrationUpdate(ss.DirichletProcess(1.0), (2.0, 1e-15), n_sites, 1)
    exactly, k = precise.exactly([alpha, 1e-15]), np.array([1, (n_sites + 1) // 2, n_sites])
    rising = precise.lgamma(exactly[0] + n_sites) - precise.lgamma(exactly[0] + 1)
    known = [float((int(m) - 1) * exactly[0].ln() - rising + exactly[0].ln() - exactly[1] * exactly[0]) for m in k]
    np.testing.assert_allclose(update.log_v(alpha, k), known, rtol=1e-13, atol=1e-9)
    assert update.log_v(alpha, 1) == pytest.approx(known[0], rel=1e-13, abs=1e-9)


@pytest.mark.parametrize(
    "prior", [ss.Potts(3), ss.PitmanYor(1.0, -0.5), ss.TabulatedPrior(lambda k: 0.0, lambda m: 0.0)]
)
def test_priors_without_a_free_concentration_are_refused(prior):
    model = ss.Model(exact.graph(5)[0], ss.Flat(), prior)
    with pytest.raises(ValueError, match="concentration_prior must be left out"):
        ss.sample(model, 2, 1, concentration_prior=LAW)
