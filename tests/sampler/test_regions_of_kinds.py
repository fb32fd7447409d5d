"""Regions of kinds: every move against enumeration, the limits of the model, and all that runs on top of the moves."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from chain_cases import KINDS as WAYS
from chain_cases import assert_books, assert_same
from effort import effort, exhaustive
from spinseg.sampler.pack import new_state

GRAPHS = {
    "path": [[0, 1], [1, 2], [2, 3]],
    "cycle": [[0, 1], [1, 2], [2, 3], [3, 0]],
    "star": [[0, 1], [0, 2], [0, 3]],
    "five of a ladder": [[0, 1], [1, 2], [2, 3], [3, 4], [0, 3], [1, 4]],
    "two components": [[0, 1], [1, 2], [3, 4]],
}
SEEDS = {"": [], "two sites": [1, 2, 0, 0, 0], "a seed of two sites": [1, 1, 0, 2, 0]}
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
    marked: str = "",
) -> ss.Model | None:
    """A model of regions of kinds; None where the limits leave no partition."""
    n_sites = int(np.max(GRAPHS[graph])) + 1
    beta = np.random.default_rng(3).uniform(0.2, 1.2, len(GRAPHS[graph]))
    if sign == "mixed":
        beta *= np.resize([1, -1, 1, 1, -1.5], beta.size)
    sites, of_data = ss.SiteGraph(n_sites, GRAPHS[graph]), model_cases.likelihoods(n_sites)[likelihood]
    try:
        of_sizes, of_kinds = model_cases.priors(**limits)[prior], model_cases.priors(**kind_limits)[kind_prior]
        how = {"connected": True, "power": power, "kinds": of_kinds, "seeds": SEEDS[marked][:n_sites] or None}
        model = ss.Model(sites, of_data, of_sizes, beta, **how)
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
    marked=list(SEEDS),
)


@pytest.mark.parametrize("iteration", exact.tried(connected=True, kinds=True))
def test_one_iteration_leaves_the_posterior_invariant(iteration):
    CASES.check_covering(iteration, effort(8_000, 100_000))


@exhaustive
@pytest.mark.parametrize("iteration", CASES.iterations)
def test_one_iteration_leaves_many_posteriors_invariant(iteration):
    CASES.check_random(iteration, 400, 4_000)


EACH_MOVE = [{"lam": 0.0}, {"lam": 3.0}]
EACH_MOVE += [{"lam": "none", move: 3} for move in exact.moves_of(connected=True, kinds=True)]


@pytest.mark.parametrize("temperature", effort([3.0], [0.5, 3.0]))
@pytest.mark.parametrize("how", EACH_MOVE, ids=str)
def test_tempered_moves_leave_the_tempered_posterior_invariant(how, temperature):
    model = model_of("five of a ladder")
    assert exact.iterated(model, n_draws=20_000, seed=1, temperature=temperature, **how)[0] > 1e-6


@pytest.mark.parametrize("kind_limits", LIMITS, ids=str)
@pytest.mark.parametrize("graph", list(GRAPHS)[:: effort(2, 1)])
def test_every_possible_state_is_reached_and_no_other(graph, kind_limits):
    model = model_of(graph, "flat", "tempered process", kind_limits=kind_limits, power=1.0)
    if model is None:
        pytest.skip("no kinds of these numbers of regions")
    chains = ss.sample(model, sweeps=effort(3_000, 20_000), chains=2, rng=5)
    exact.check_reached(model, np.concatenate([chains.labels, chains.kinds], axis=-1), above=0.01)


@pytest.mark.parametrize("name", model_cases.priors())
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("n_sites", [6, 30])
def test_the_kinds_of_regions_have_the_prior_of_that_many_items(name, limits, n_sites):
    """Whatever the number of sites is: of each number of regions all kinds are listed."""
    sites, prior = ss.SiteGraph.grid((1, n_sites)), model_cases.priors(**limits)[name]
    model = ss.Model(sites, ss.Flat(), ss.DirichletProcess(1.0), connected=True, kinds=prior)
    for row in (np.minimum(np.arange(n_sites), last) for last in range(6)):
        listed = exact.partitions(int(row.max()) + 1)
        log_p = [model.log_prior_of_kinds(row, kinds[row]) for kinds in listed]
        log_g = np.array([prior.log_g(np.bincount(kinds)) for kinds in listed])
        if limits and np.isneginf(log_g).all():
            assert np.isneginf(log_p).all()
        else:
            np.testing.assert_allclose(log_p, log_g - np.logaddexp.reduce(log_g), atol=1e-9)


@pytest.mark.parametrize("name", ["mixture of finite mixtures", "parsimonious process"])
def test_a_prior_simulation_has_the_numbers_of_kinds_of_that_many_items(name):
    few = ss.TabulatedPrior(lambda k: 0.0 if 3 <= k <= 5 else -np.inf, lambda m: 0.0)  # nearly always 5
    kinds, listed = model_cases.priors()[name], exact.partitions(5)
    model = ss.Model(ss.SiteGraph.grid((6, 10)), ss.Flat(), few, connected=True, kinds=kinds)
    chains = ss.sample(model, 2_000, 2, burn_in=100, rng=0)
    n_kinds = chains.kinds.max(axis=-1)[chains.n_clusters == 5]
    assert n_kinds.size > 2_000
    log_g = [kinds.log_g(np.bincount(row)) for row in listed]
    wanted = np.bincount(listed.max(axis=1), np.exp(log_g - np.logaddexp.reduce(log_g)))
    np.testing.assert_allclose(np.bincount(n_kinds, minlength=5) / n_kinds.size, wanted, atol=0.08)


@pytest.mark.parametrize("name", ["mixture of finite mixtures", "parsimonious process"])
def test_an_iteration_keeps_kinds_whose_prior_depends_on_the_number_of_regions(name):
    model = model_of("five of a ladder", kind_prior=name)
    moves = dict.fromkeys(exact.moves_of(connected=True, kinds=True), 2)
    assert exact.iterated(model, 1.0, 20_000, 3, **moves)[0] > 1e-6


def test_a_prior_whose_sizes_weigh_less_among_more_regions_is_refused():
    with pytest.raises(ValueError, match="with the same log_w for any number of regions") as error:
        lattice(side=4, kinds=ss.TemperedProcess(1.0, n_reference=15))
    assert "an n_reference of at least 16: got" in str(error.value)
    assert lattice(side=4, kinds=ss.TemperedProcess(1.0, n_reference=16)).kind_tables[0].shape == (1, 17)


def test_without_data_the_regions_are_those_of_the_model_without_kinds():
    model = model_of("five of a ladder", "flat")
    plain = ss.Model(model.graph, ss.Flat(), model.prior, model.beta, connected=True, power=model.power)
    regions = exact.states_of(model)[:, :5]
    marginal = np.bincount(
        np.searchsorted(exact.code(exact.partitions(5)), exact.code(regions)), np.exp(exact.log_probabilities(model))
    )
    np.testing.assert_allclose(marginal, np.exp(exact.log_probabilities(plain)), atol=1e-12)


def test_kinds_of_one_region_each_give_the_connected_model():
    alone = ss.TabulatedPrior(lambda k: 0.0, lambda m: 0.0 if m == 1 else -np.inf)
    model = model_of("five of a ladder")
    model = ss.Model(model.graph, model.likelihood, model.prior, model.beta, connected=True, power=0.7, kinds=alone)
    plain = ss.Model(model.graph, model.likelihood, model.prior, model.beta, connected=True, power=0.7)
    for row in exact.partitions(5):
        assert model.log_posterior(row, row) == pytest.approx(plain.log_posterior(row), abs=1e-12)


def test_regions_of_one_site_each_give_the_model_of_classes():
    model = model_of("five of a ladder")
    single, sites = ss.DirichletProcess(1.0, max_size=1), np.arange(5)
    of_kinds = ss.Model(model.graph, model.likelihood, single, 0.4, connected=True, kinds=model.kinds)
    plain = ss.Model(model.graph, model.likelihood, model.kinds)
    found = [of_kinds.log_posterior(sites, row) - plain.log_posterior(row) for row in exact.partitions(5)]
    assert np.ptp(found) < 1e-10


def test_the_log_posterior_of_a_worked_example():
    """Three regions on a path of four sites, two of them of one kind; every term by hand."""
    counts = ss.DirichletMultinomial([[2, 0], [0, 1], [0, 2], [1, 0]], concentration=2.0)
    line, priors = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]]), (ss.DirichletProcess(3.0), ss.DirichletProcess(0.5))
    model = ss.Model(line, counts, priors[0], [0.1, 0.2, 0.4], connected=True, power=0.5, kinds=priors[1])
    likelihood = np.log(1 / 4) + np.log(1 / 4)  # three times the first of two, and three times the second: 3! / 4!
    regions = 3 * np.log(3.0)  # lgamma of their sizes, 1, 2, 1, is 0
    kinds = np.log(0.5**2 * 1 / (0.5 * 1.5 * 2.5))
    expected = 0.5 * (likelihood + 0.2) + regions + kinds
    assert model.log_posterior([0, 1, 1, 2], [0, 1, 1, 0]) == pytest.approx(expected, abs=1e-12)
    assert model.log_posterior([0, 1, 1, 2], [0, 1, 0, 0]) == -np.inf  # a region of two kinds


def lattice(name="product", side=10, **how) -> ss.Model:
    """A model on a square lattice, with couplings of either sign."""
    graph = ss.SiteGraph.grid((side, side))
    beta = np.random.default_rng(1).normal(0.3, 0.6, graph.n_edges)
    how = {"prior": ss.PitmanYor(5.0, 0.3), "kinds": ss.DirichletProcess(20.0), "power": 0.5, "beta": beta} | how
    return ss.Model(graph, model_cases.likelihoods(side * side, 1)[name], connected=True, **how)


@pytest.mark.parametrize("limits", [{}, {"min_size": 3}, {"max_size": 20}], ids=str)
@pytest.mark.parametrize("name", effort(["product"], list(model_cases.likelihoods(4))))
def test_the_books_are_kept(name, limits):
    model = lattice(name, prior=ss.PitmanYor(5.0, 0.3, **limits))
    for init in ("one", "singletons", "greedy"):
        sampler = ss.Sampler(model, sweeps=40, chains=1, init=init, rng=2)
        sampler.advance()
        chains = sampler.chains
        assert_books(model, chains, every=7)
        assert len(np.unique(chains.kinds[0], axis=0)) > (5 if not limits else 0)
        state = sampler.runners[0].state
        regions = state.slot_of[state.label].astype(np.int32)
        kinds = state.nested.slot_of[state.nested.label[state.label]].astype(np.int32)
        fresh = new_state(sampler.runners[0].target, regions, 0.0, kinds)
        for nested in ("", "nested"):
            kept, wanted = (getattr(one, nested, one) for one in (state, fresh))
            k = int(wanted.counters[0])
            assert kept.counters[0] == k and not kept.size[k:].any() and not kept.counts[:, k:].any()
            np.testing.assert_array_equal(kept.size[:k], wanted.size[:k])
            np.testing.assert_array_equal(kept.counts[:, :k], wanted.counts[:, :k])
            np.testing.assert_allclose(kept.total[:k], wanted.total[:k], atol=1e-8)
            np.testing.assert_allclose(kept.dense_value[:k], wanted.dense_value[:k], atol=1e-8)


def test_each_move_is_proposed_and_accepted():
    chains = ss.sample(lattice(prior=ss.TemperedProcess(1.0, power=0.0), power=0.2), 200, 2, rng=0)
    for move in ("split", "merge", "redraw", "regroup", "change kind", "split kind", "merge kind"):
        assert (chains.acceptance[move] > 0).all()


@pytest.mark.parametrize("way", ["auto", "tempered", "concentration"])
def test_chains_resume_bit_by_bit_whatever_the_workers(way, tmp_path):
    model, how = lattice(side=6), {"chains": 2, "rng": 4, "init": "opposite"} | WAYS[way]
    whole = ss.sample(model, 30, workers=2, **how)
    part = ss.sample(model, 13, workers=1, **how)
    part.save(tmp_path / "part.npz")
    for source in (part, tmp_path / "part.npz"):
        assert_same(ss.sample(model, 30, resume_from=source, **how), whole)


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_mode_is_the_best_state(graph):
    model = model_of(graph)
    found, best = ss.find_map(model, 2, rng=0), exact.best_log_posterior(model)
    assert found.log_posterior == pytest.approx(best, abs=1e-9)
    assert model.log_posterior(found.labels, found.kinds) == pytest.approx(best, abs=1e-9)


def test_regions_that_look_alike_are_of_one_kind():
    """Bright squares on a dark ground: they touch nothing of their kind, and share its appearance."""
    truth = np.zeros((12, 12), int)
    for number, (y, x) in enumerate([(1, 1), (1, 7), (7, 1), (7, 7)], 1):
        truth[y : y + 4, x : x + 4] = number
    values = np.where(truth > 0, 8.0, 1.0) + np.random.default_rng(0).normal(0, 0.5, truth.shape)
    graph, likelihood = ss.SiteGraph.grid(truth.shape), ss.DiagonalGaussian(values.reshape(-1, 1))
    how = {"connected": True, "kinds": ss.DirichletProcess(0.2)}
    model = ss.Model(graph, likelihood, ss.TemperedProcess(0.05, power=0.0), beta=0.5, **how)
    chains = ss.sample(model, 150, 2, init="opposite", burn_in=100, rng=0)
    agree = [(kinds == (truth.ravel() > 0)) | (kinds == (truth.ravel() == 0)) for kinds in chains.kinds[:, -1]]
    assert np.mean([np.ptp(kinds) for kinds in chains.kinds[:, -1]]) == 1
    assert all(ss.minimize_vi(chains.labels[c]).labels.max() == 4 for c in range(2)), agree


REFUSED = {
    "kinds must not be given unless connected=True": {"kinds": ss.Potts(2)},
    "kinds must be a PartitionPrior: got 3": {"kinds": 3, "connected": True},
    "kinds must be a prior with tables": {"kinds": ss.ExchangeablePrior(lambda sizes: 0.0), "connected": True},
}


@pytest.mark.parametrize("rule", REFUSED)
def test_wrong_kinds_are_refused(rule):
    with pytest.raises(ValueError, match=rule):
        ss.Model(ss.SiteGraph.grid((2, 2)), ss.Flat(), ss.Potts(2), **REFUSED[rule])


def test_a_prior_of_kinds_without_a_formula_is_refused_on_many_sites():
    with pytest.raises(ValueError, match="kinds must be a DirichletProcess"):
        lattice(side=21, kinds=ss.TemperedProcess(1.0))
    with pytest.raises(ValueError, match="kinds must be given if, and only if"):
        lattice().log_posterior(np.zeros(100, int))
