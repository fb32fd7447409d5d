"""Draws with their traces, however chains are cut, thinned or interrupted."""

import numpy as np
import pytest

import model_cases
import spinseg as ss
from chain_cases import assert_books
from spinseg.sampler import sampler
from spinseg.sampler.convergence import traces


@pytest.fixture(scope="module")
def model():
    return model_cases.lattice(side=5)


@pytest.fixture(scope="module", params=[1, 3], ids=["one posterior", "mixture"])
def posterior(request, model):
    """A model, or a mixture of three."""
    if request.param == 1:
        return model
    betas = [model.beta - shift for shift in (0.0, 0.3, 0.6)]
    return ss.Model(model.graph, model.likelihood, model.prior, betas)


@pytest.mark.parametrize(("burn_in", "thin"), [(0, 1), (0, 3), (10, 3), (7, 4), (20, 5)])
def test_draws_stay_paired_with_their_traces(posterior, burn_in, thin):
    chains = ss.sample(posterior, 45, 2, burn_in=burn_in, thin=thin, rng=1)
    assert_books(posterior, chains)
    n = chains.n_components
    for later in (burn_in, 20, 21, 22, 23, 44, 45):
        cut = chains.after(later)
        assert_books(posterior, cut)
        expected = [t for t in range(burn_in + thin, 46, thin) if t > later]
        assert cut.burn_in == later and cut.sweep[::n].tolist() == expected
        assert traces(cut, posterior.graph)["log_posterior"].shape == (2, (45 - later) * n)
        assert cut.trace("log_posterior").shape == cut.trace("n_clusters").shape == (2, 45)
    for most in (1, 4, 5, 100):
        assert_books(posterior, chains.thinned(most * n))
        assert_books(posterior, chains.after(23).thinned(most * n))


def test_a_shorter_burn_in_is_refused(model):
    chains = ss.sample(model, 30, 1, burn_in=20, rng=1)
    with pytest.raises(ss.InvalidInput, match="burn_in must be a whole number of at least 20; received 5"):
        chains.after(5)


@pytest.mark.parametrize("temperatures", [None, [1.0, 1.5]])
def test_the_last_labels_are_those_of_the_last_sweep(posterior, temperatures):
    every = ss.sample(posterior, 22, 2, rng=1, temperatures=temperatures)
    for burn_in, thin in ((0, 4), (22, 1), (20, 5)):
        chains = ss.sample(posterior, 22, 2, rng=1, burn_in=burn_in, thin=thin, temperatures=temperatures)
        np.testing.assert_array_equal(chains.last_labels, every.last_labels)
    if temperatures is None:  # else replicas have exchanged their partitions after the last draw
        middle = every.component == every.n_components // 2
        np.testing.assert_array_equal(every.last_labels, every.labels[:, middle][:, -1])


def test_chains_without_draws_are_shown(posterior):
    for chains in (ss.sample(posterior, 5, 2, burn_in=5, rng=1), ss.sample(posterior, 5, 2, thin=9, rng=1)):
        assert "0 draws of each kept" in repr(chains) and "best log posterior" in repr(chains)


def test_the_limit_on_draws_counts_the_components_of_a_mixture(model, monkeypatch):
    monkeypatch.setattr(sampler, "MAX_DRAW_BYTES", 4 * 2 * 30 * 25)  # 30 draws of two chains on 25 sites
    ss.sample(model, 30, 2, rng=1)
    mixture = ss.Model(model.graph, model.likelihood, model.prior, [model.beta] * 3)
    with pytest.raises(ss.InvalidInput, match="of 3 components"):
        ss.sample(mixture, 30, 2, rng=1)
    ss.sample(mixture, 30, 2, thin=3, rng=1)
