"""Mixtures of posteriors: as many draws of each component as of any other, each exact, each with its component."""

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from chain_cases import assert_books
from effort import effort
from spinseg.model.seeds import keeps_seeds
from spinseg.sampler.convergence import traces
from spinseg.sampler.sampler import COMBINED_AFTER

BETAS = (-0.8, 0.0, 1.5)


def mixture_of(betas=BETAS, **options):
    graph, kept = exact.graph(5)
    likelihood, prior = model_cases.likelihoods(5)["product"], ss.DirichletProcess(1.3)
    return ss.Model(graph, likelihood, prior, [b + exact.MIXED[kept] for b in betas], **options)


@pytest.mark.parametrize("connected", effort([True], [False, True]))
def test_every_component_is_sampled_exactly(connected):
    mixture = mixture_of(connected=connected, power=0.7)
    n = effort(600, 6000)
    chains = ss.sample(mixture, sweeps=20 * n, chains=2, thin=20, rng=1)
    assert chains.labels.shape == (2, 3 * n, 5) and chains.n_components == 3
    p_values = np.empty((3, 3))
    for d in range(3):
        for e in range(3):
            p_values[d, e] = exact.p_of_draws(mixture.component(e), chains.labels[:, chains.component == d])
    assert np.diag(p_values).min() > 1e-5
    assert p_values[~np.eye(3, dtype=bool)].max() < 1e-6  # so that exchanged components would be seen


def test_a_component_has_the_draws_and_traces_that_its_number_says():
    mixture = mixture_of()
    chains = ss.sample(mixture, sweeps=7, chains=2, burn_in=2, rng=0)
    assert chains.component.tolist() == [0, 1, 2] * 5 and chains.burn_in == 2 and chains.n_sweeps == 7
    assert_books(mixture, chains)
    np.testing.assert_array_equal(traces(chains, mixture.graph)["log_posterior"], chains.log_posterior)
    np.testing.assert_array_equal(chains.last_labels, chains.labels[:, -2])
    thinned = chains.thinned(6)
    np.testing.assert_array_equal(thinned.labels, chains.labels.reshape(2, 5, 3, 5)[:, ::3].reshape(2, 6, 5))
    assert thinned.component.tolist() == [0, 1, 2] * 2
    assert chains.best_log_posterior >= chains.log_posterior[:, 1::3].max() - 1e-9
    trace = chains.trace("log_posterior")
    assert trace.shape == (2, 7)
    np.testing.assert_allclose(trace[:, 2:], chains.log_posterior.reshape(2, 5, 3).mean(axis=2))


def test_a_mixture_of_one_is_its_model():
    alone = mixture_of().component(0)
    row = ss.Model(alone.graph, alone.likelihood, alone.prior, [alone.beta])
    alone, mixed = (ss.sample(each, sweeps=20, chains=2, rng=7) for each in (alone, row))
    np.testing.assert_array_equal(alone.labels, mixed.labels)
    assert mixed.n_components == 1 and not mixed.component.any()


def test_components_share_all_but_their_couplings():
    seeds = [1, 0, 0, 0, 2]
    mixture = mixture_of(connected=True, power=0.5, seeds=seeds).with_prior(ss.PitmanYor(1.0, 0.2))
    assert mixture.n_components == 3 and mixture.beta.shape == (3, mixture.graph.n_edges)
    for c in range(3):
        alone = mixture.component(c)
        assert alone.n_components == 1 and np.array_equal(alone.beta, mixture.beta[c])
        for name in ("graph", "likelihood", "prior", "power", "connected", "seeds", "tables"):
            assert getattr(alone, name) is getattr(mixture, name)
        assert alone.allows([0, 0, 0, 0, 0]) == mixture.allows([0, 0, 0, 0, 0]) is False


def test_a_mixture_has_no_log_posterior_and_no_mode():
    for wrong in (lambda: mixture_of().log_posterior([0] * 5), lambda: ss.find_map(mixture_of())):
        with pytest.raises(ss.InvalidInput, match=r"model must have one component, such as .*: got '3 components'"):
            wrong()


def test_effective_draws_of_a_mixture_are_those_that_its_mean_is_worth():
    """Independent draws within components: the mean of all is better than that of as many from the mixture."""
    mixture = mixture_of(betas=(-9.0, 9.0))
    diagnostics = ss.diagnose(ss.sample(mixture, sweeps=400, chains=2, rng=0), mixture.graph)
    found = diagnostics.table["n_clusters"]
    assert found.ess_bulk == 1600 and found.r_hat < 1.05 and found.r_hat_of_components < 1.1
    head, *rows, _ = repr(diagnostics).splitlines()
    assert "(component)" in head and f"{found.r_hat_of_components:13.2f}" in rows[1] and len(set(map(len, rows))) == 1


def test_opposite_and_dispersed_starts():
    mixture = mixture_of(betas=(3.0, 1.0, -1.0))

    def first(init, model=mixture):
        found = ss.Sampler(model, 2, 3, init=init, rng=0).records.best
        return found.reshape(-1, 3, 5)

    one, singletons = np.zeros(5), np.arange(5)
    greedy = first("greedy")[:, 0]
    for found in (first("opposite"), first("dispersed", mixture.component(0))):
        for chains in found:
            np.testing.assert_array_equal(chains, [one, singletons, one])
    np.testing.assert_array_equal(
        first("dispersed"),
        [[one, greedy[1], one], [greedy[0], greedy[2], greedy[0]], [greedy[1], singletons, greedy[1]]],
    )


STUCK = {"moves": "gsw", "lam": 1e6}


def two_halves(connected):
    graph, counts = ss.SiteGraph.grid((2, 6)), ss.PoissonGamma([5, 5, 5, 500, 500, 500] * 2)
    return ss.Model(graph, counts, ss.DirichletProcess(1.0), [[2.0] * graph.n_edges] * 3, connected=connected)


@pytest.mark.parametrize("connected", [False, True])
def test_a_chain_takes_up_what_its_other_components_have_found(connected):
    """With bonds that always hold, no move splits the one cluster that the first component starts from."""
    mixture, halves = two_halves(connected), [0, 0, 0, 1, 1, 1] * 2
    for init, n_found in (("dispersed", 1), ("opposite", 0)):
        sampler = ss.Sampler(mixture, 40, 1, **STUCK, init=init, rng=0)
        sampler.advance(COMBINED_AFTER - 1)
        np.testing.assert_array_equal(sampler.runners[0].record.best, np.zeros(12))
        sampler.advance(1)
        np.testing.assert_array_equal(sampler.runners[0].record.best, halves if n_found else np.zeros(12))
        sampler.advance()
        assert sampler.runners[0].n_clusters == 1 + n_found
        assert_books(mixture, sampler.chains)


def test_what_chains_take_up_keeps_seeds_whose_sites_do_not_touch():
    """Paths between the sites of a seed differ from component to component, so that none has all of its pieces."""
    graph, n_broken, seeds = ss.SiteGraph.grid((6, 6)), 0, np.zeros(36, int)
    seeds[[0, 35, 5]] = 1, 1, 2
    betas = [[b] * graph.n_edges for b in (1.0, 0.3, -0.3, -1.0)]
    for s in range(10):
        rng = np.random.default_rng(s)
        counts = ss.PoissonGamma(rng.poisson(rng.choice([3, 40], 36)))
        mixture = ss.Model(graph, counts, ss.DirichletProcess(1.0), betas, connected=True, seeds=seeds)
        chains = ss.sample(mixture, COMBINED_AFTER + 1, 2, init="dispersed", rng=s)
        n_broken += sum(not keeps_seeds(draw, mixture.seeds) for draws in chains.labels for draw in draws)
        assert_books(mixture, chains)
    assert n_broken == 0


@pytest.mark.parametrize("interrupted", [COMBINED_AFTER - 1, COMBINED_AFTER, COMBINED_AFTER + 3])
def test_resumed_chains_take_it_up_once(interrupted, tmp_path):
    mixture, how = mixture_of(betas=(3.0, 1.0, -1.0), connected=True), {"chains": 2, "rng": 4}
    whole = ss.sample(mixture, 40, init="dispersed", **how)
    part = ss.sample(mixture, interrupted, init="dispersed", checkpoint=tmp_path / "part.npz", **how)
    assert np.array_equal(part.labels, whole.labels[:, : 3 * interrupted])
    np.testing.assert_array_equal(ss.sample(mixture, 40, 2, resume_from=tmp_path / "part.npz").labels, whole.labels)


def test_no_checkpoint_has_chains_from_before(tmp_path, monkeypatch):
    """What is written between the pause and the next turn of each chain continues as if it had not been needed."""
    mixture, how = two_halves(True), STUCK | {"chains": 2, "init": "dispersed", "rng": 4}
    whole, path = ss.sample(mixture, 30, **how), tmp_path / "part.npz"
    sampler = ss.Sampler(mixture, 30, checkpoint=path, **how)
    combine = sampler._combine

    def combine_and_write():
        combine()
        sampler._due = 0.0
        sampler._write_if_due()
        path.rename(tmp_path / "between.npz")

    monkeypatch.setattr(sampler, "_combine", combine_and_write)
    sampler.advance()
    found = ss.sample(mixture, 30, resume_from=tmp_path / "between.npz", **how)
    np.testing.assert_array_equal(found.labels, whole.labels)
