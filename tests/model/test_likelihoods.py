"""Log marginals against predictive densities, numerical integrals, and the compiled evaluation."""

import math

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy import integrate
from scipy.special import gammaln
from scipy.stats import beta, multivariate_t, nbinom, t

import model_cases
import precise
import spinseg as ss
from kernel_source import names_of, source_of
from spinseg.sampler.kernels.likelihood import FAMILIES, log, log_ratio
from spinseg.sampler.pack import new_state, pack

N = 6
INTERPRETED = names_of(source_of("from spinseg.sampler.kernels.likelihood import log"))
RNG = np.random.default_rng(11)
COUNTS = RNG.poisson(2.0, (N, 4))
VALUES = RNG.normal(size=(N, 3))


def increments(likelihood):
    """log p(y_i | y_0..y_{i-1}) as differences of log marginals."""
    sets = [likelihood.log_marginal(np.arange(i)) for i in range(N + 1)]
    assert sets[0] == pytest.approx(0.0, abs=1e-12)
    return np.diff(sets)


def test_histograms_follow_the_polya_urn():
    likelihood = ss.DirichletMultinomial(COUNTS, concentration=7.0)
    pi = 7.0 * COUNTS.sum(axis=0) / COUNTS.sum()
    seen = np.zeros(4)
    for i, step in enumerate(increments(likelihood)):
        log_p = 0.0
        for d in range(4):
            for _ in range(COUNTS[i, d]):  # one draw after the other
                log_p += math.log((pi[d] + seen[d]) / (7.0 + seen.sum()))
                seen[d] += 1
        assert step == pytest.approx(log_p, abs=1e-10)


def test_diagonal_gaussian_follows_students_t():
    m0, kappa, shape, rate = 0.2, 0.5, 1.5, 0.8
    likelihood = ss.DiagonalGaussian(VALUES, mean=m0, kappa=kappa, shape=shape, rate=rate)
    for i, step in enumerate(increments(likelihood)):
        x = VALUES[:i]
        kappa_n, shape_n = kappa + i, shape + i / 2
        mean_n = (kappa * m0 + x.sum(axis=0)) / kappa_n
        deviation = ((x - x.mean(axis=0)) ** 2).sum(axis=0) if i else 0.0
        center = x.mean(axis=0) if i else 0.0
        rate_n = rate + 0.5 * deviation + 0.5 * kappa * i / kappa_n * (center - m0) ** 2
        scale = np.sqrt(rate_n * (kappa_n + 1) / (shape_n * kappa_n))
        assert step == pytest.approx(t.logpdf(VALUES[i], 2 * shape_n, mean_n, scale).sum(), abs=1e-10)


def test_gaussian_follows_the_multivariate_t():
    m0, kappa, dof = np.array([0.1, -0.2, 0.3]), 0.4, 5.5
    psi = np.array([[1.0, 0.2, 0.0], [0.2, 2.0, -0.3], [0.0, -0.3, 0.7]])
    likelihood = ss.Gaussian(VALUES, mean=m0, kappa=kappa, dof=dof, scale=psi)
    for i, step in enumerate(increments(likelihood)):
        x = VALUES[:i]
        kappa_n, dof_n = kappa + i, dof + i
        mean_n = (kappa * m0 + x.sum(axis=0)) / kappa_n
        center = x.mean(axis=0) if i else m0
        spread = (x - center).T @ (x - center) + kappa * i / kappa_n * np.outer(center - m0, center - m0)
        free = dof_n - 2
        shape = (psi + spread) * (kappa_n + 1) / (kappa_n * free)
        assert step == pytest.approx(multivariate_t.logpdf(VALUES[i], mean_n, shape, df=free), abs=1e-10)


def test_poisson_follows_the_negative_binomial():
    exposure = np.array([0.5, 1.0, 2.0, 1.5, 0.7, 1.1])
    likelihood = ss.PoissonGamma(COUNTS, shape=2.0, rate=0.7, exposure=exposure)
    shape, rate = np.full(4, 2.0), 0.7
    for i, step in enumerate(increments(likelihood)):
        assert step == pytest.approx(nbinom.logpmf(COUNTS[i], shape, rate / (rate + exposure[i])).sum(), abs=1e-10)
        shape, rate = shape + COUNTS[i], rate + exposure[i]


def test_histogram_against_an_integral():
    likelihood = ss.DirichletMultinomial([[2, 1], [0, 3]], concentration=4.0, count_weight=0.5)
    a, b = 4.0 * np.array([2, 4]) / 6
    value = integrate.quad(lambda u: beta.pdf(u, a, b) * u**1.0 * (1 - u) ** 2.0, 0, 1)[0]
    assert likelihood.log_marginal([0, 1]) == pytest.approx(math.log(value), abs=1e-8)


@pytest.mark.parametrize("name", [*model_cases.likelihoods(N), 1e-60, 1e-90, 1e90])
def test_the_compiled_sampler_has_the_same_log_marginals(name):
    """Differences over partitions of the running log marginal equal those of the definition."""
    if isinstance(name, float):  # rates whose product no number holds
        likelihood = ss.DiagonalGaussian(np.zeros((N, 8)), mean=0.0, rate=[name] * 4 + [1e90] * 4)
        if name == 1e-60:  # nor one of the other factors
            own = ss.DiagonalGaussian(np.ones((N, 9)), mean=0.0, kappa=name, shape=name, rate=1.0, weights=[name] * N)
            likelihood = ss.Product(likelihood, own)
    else:
        likelihood = model_cases.likelihoods(N)[name]
    model = ss.Model(ss.SiteGraph(N, []), likelihood, ss.TabulatedPrior(lambda k: 0.0, lambda m: 0.0))
    target = pack(model, np.zeros(0))
    ours, theirs = [], []
    for labels in ([0] * N, [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], range(N)):
        z = np.array(labels, dtype=np.int32)
        state = new_state(target, z, 0.0)
        ours.append(state.value.sum() + state.dense_value.sum())
        theirs.append(model.log_posterior(z))
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-10, atol=1e-9)
    terms = [term for likelihood in model_cases.likelihoods(N).values() for term in likelihood.terms()]
    assert {term.family for term in terms if hasattr(term, "family")} == set(FAMILIES)  # every one is tried


@pytest.mark.parametrize("name", model_cases.likelihoods(N))
def test_the_likelihood_of_a_partition_is_the_sum_over_its_clusters(name):
    likelihood = model_cases.likelihoods(N)[name]
    for labels in np.array([[0] * N, [0, 1, 0, 2, 1, 1], range(N)]):
        clusters = [likelihood.log_marginal(labels == c) for c in range(labels.max() + 1)]
        assert likelihood.log_likelihood(labels) == pytest.approx(sum(clusters), abs=1e-9)


def test_sparse_counts_unused_bins_masks_and_sites_without_counts():
    wide = np.zeros((N, 7), int)
    wide[:, [1, 3, 4, 6]] = COUNTS
    wide[2] = 0
    plain, padded = ss.DirichletMultinomial(wide[:, [1, 3, 4, 6]]), ss.DirichletMultinomial(sparse.coo_array(wide))
    np.testing.assert_allclose(increments(plain), increments(padded), atol=1e-12)
    assert plain.counts.shape == padded.counts.shape
    assert plain.log_marginal([2]) == pytest.approx(0.0, abs=1e-12)
    mask = np.array([True, False, True, False, True, True])
    assert plain.log_marginal(mask) == plain.log_marginal([0, 2, 4, 5])


def test_squares_are_the_scatter_inside_sites():
    inside = RNG.normal(size=(N, 8, 3))
    sites = ss.DiagonalGaussian(
        inside.mean(axis=1), mean=0.0, rate=1.0, weights=np.full(N, 8.0), squares=(inside**2).mean(axis=1)
    )
    points = ss.DiagonalGaussian(inside.reshape(-1, 3), mean=0.0, rate=1.0)
    assert sites.log_marginal([1, 4]) == pytest.approx(points.log_marginal([*range(8, 16), *range(32, 40)]), abs=1e-9)


def test_distances():
    likelihood = ss.DirichletMultinomial([[1, 1, 0], [1, 0, 1], [0, 0, 2]])
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    np.testing.assert_allclose(likelihood.distances(edges, "hellinger") ** 2, [0.5, 1 - math.sqrt(0.5), 1.0])
    np.testing.assert_allclose(likelihood.distances(edges, "chi-square"), [0.5, 1 / 3, 1.0])
    np.testing.assert_allclose(likelihood.distances(edges, "euclidean") ** 2, [0.5, 0.5, 1.5])
    gaussian = ss.Gaussian([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]])
    np.testing.assert_allclose(gaussian.distances(edges, "euclidean"), [5.0, 0.0, 5.0])
    both = ss.Product(likelihood, gaussian).distances(edges, "euclidean")
    np.testing.assert_allclose(both**2, [25.5, 0.5, 26.5])


EDGE = np.array([[0, 0]])
HISTOGRAM, DIAGONAL, POISSON = ss.DirichletMultinomial, ss.DiagonalGaussian, ss.PoissonGamma
REFUSED = {  # the rule: what breaks it
    r"counts must be a table of numbers of shape \(n_sites, n_bins\): got \(3,\)": lambda: HISTOGRAM([1, 2, 3]),
    r"counts must be whole numbers of at least 0: got .*-2": lambda: HISTOGRAM([[1, -2]]),
    r"counts must sum to less than 2\^31": lambda: HISTOGRAM([[2**30, 2**30]]),
    r"count_weight must be a finite number above 0: got -1": lambda: HISTOGRAM([[1]], count_weight=-1),
    r"base must be positive in every bin that is used": lambda: HISTOGRAM([[1, 2]], base=[1, 0]),
    r"values must be finite: got .*inf": lambda: ss.Gaussian([[1.0, math.inf]]),
    r"scale must be symmetric and positive definite": lambda: ss.Gaussian([[1.0, 2.0]], scale=[[1.0, 2.0], [2.0, 1.0]]),
    r"rate must be positive: got .*0.0": lambda: DIAGONAL([[1.0]], rate=0.0),
    r"rate must be at least 1e-300, and 1e-300 times the sum of all squares": lambda: DIAGONAL(
        [[1.0]], 0.0, rate=1e-301
    ),
    r"weights must not be negative: got .*-1.0": lambda: DIAGONAL([[1.0]], weights=[-1.0]),
    r"weights must have shape \(2\): got \(1,\)": lambda: DIAGONAL([[1.0], [2.0]], weights=[1.0]),
    r"squares must be at least values \*\* 2": lambda: DIAGONAL([[2.0]], squares=[[1.0]]),
    r"exposure must be positive: got 0.0": lambda: POISSON([1, 2], exposure=[0.0, 1.0]),
    r"parts must be likelihoods: got 3": lambda: ss.Product(ss.Flat(), 3),
    r"parts must have the same number of sites: got \[1, 2\]": lambda: ss.Product(POISSON([1]), POISSON([1, 2])),
    r"must be one of 'euclidean': got 'hellinger'": lambda: ss.Gaussian([[1.0]]).distances(EDGE, "hellinger"),
    r"distance must be defined for the data, and Flat has none": lambda: ss.Flat().distances(EDGE, "euclidean"),
}


@pytest.mark.parametrize(("message", "make"), REFUSED.items(), ids=REFUSED)
def test_bad_data_is_refused_with_the_rule(message, make):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("compute", [INTERPRETED["log"], log], ids=["interpreted", "compiled"])
def test_log_is_that_of_the_c_library_to_a_unit_in_the_last_place(compute):
    near_1 = 1 + np.append(-1, 1)[:, None] * np.geomspace(1e-15, 0.5, 300)
    x = np.concatenate([np.geomspace(2.3e-308, 1.7e308, 2000), near_1.ravel(), [1.0, 0.5, 2.0, np.sqrt(0.5)]])
    known = np.log(x)
    assert (np.abs([compute(value) for value in x] - known) <= np.spacing(np.abs(known))).all()


@pytest.mark.parametrize("size", [1.0, 1e5])  # of the weights and counts of sites
@pytest.mark.parametrize("shape", np.geomspace(1e-3, 1e16, 20))
@pytest.mark.parametrize("family", FAMILIES)
def test_priors_from_vague_to_certain_cost_no_digits(family, shape, size):
    """The definition and the compiled code, against 60 digits."""
    rng = np.random.default_rng(2)
    values, weights = rng.normal(size=(N, 2)), size * rng.uniform(0.3, 2.0, N)
    scale = np.array([[1.0, 0.3], [0.3, 2.0]])
    counts = rng.poisson(3 * size, (N, 2))
    x, w, y, kappa = (precise.exactly(array) for array in (values, weights, counts, [0.3]))
    dof, own_shape, left_out = shape + 1.5, precise.exactly([shape])[0], 0.0
    if family == "diagonal_gaussian":
        likelihood = ss.DiagonalGaussian(values, 0.0, 0.3, shape, 0.7 * shape, weights)
        known = precise.diagonal_gaussian(x, w, kappa[0], own_shape, precise.exactly([0.7 * shape])[0])
    elif family == "gaussian":
        likelihood = ss.Gaussian(values, [0.0, 0.0], 0.3, dof, dof * scale, weights)
        known = precise.gaussian(x, w, kappa[0], precise.exactly([dof])[0], precise.exactly(dof * scale))
    else:
        likelihood = ss.PoissonGamma(counts, shape, 0.3 * shape, weights)
        known = precise.poisson_gamma(y, w, own_shape, precise.exactly([0.3 * shape])[0])
        left_out = (counts * np.log(weights)[:, None] - gammaln(counts + 1)).sum()
    model = ss.Model(ss.SiteGraph(N, []), likelihood, ss.Potts(1))
    compiled = new_state(pack(model, np.zeros(0)), np.zeros(N, np.int32), 0.0).dense_value[0]
    few = 1e-11 * (1 + weights.sum() + counts.sum())
    assert likelihood.log_marginal(range(N)) - left_out == pytest.approx(float(known), abs=few)
    assert likelihood.log_likelihood(np.zeros(N, int)) - left_out == pytest.approx(float(known), abs=few)
    assert compiled == pytest.approx(float(known), abs=few)


@pytest.mark.parametrize("compute", [INTERPRETED["log_ratio"], log_ratio], ids=["interpreted", "compiled"])
def test_the_logarithm_of_a_ratio_near_1_keeps_its_digits(compute):
    some = [0.0, 1e-300, 1e-20, 3e-16, 1e-8, 0.3, 0.9999999, 1.0, 1.0000001, 7.0, 1e9, 1e17, 1e100]
    for q in some:
        for p in some:
            a, b = precise.exactly([q, p])
            known = ((1 + a) / (1 + b)).ln() if max(q, p) > 1e-40 else a - b
            assert compute(q, p) == pytest.approx(float(known), rel=1e-14, abs=2e-16 * min(q, p, 1.0))


HUGE = {
    "DiagonalGaussian": lambda: DIAGONAL([[1.0]], shape=1e31),
    "Gaussian": lambda: ss.Gaussian([[1.0]], dof=1e31),
    "PoissonGamma": lambda: POISSON([1, 2], shape=1e31),
}


@pytest.mark.parametrize("make", HUGE.values(), ids=HUGE)
def test_shapes_beyond_all_use_are_refused(make):
    with pytest.raises(ValueError, match=r"(shape|dof) must be .*at most 1e\+30: got 1e\+31"):
        make()
