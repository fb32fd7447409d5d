"""Draws with their traces, however chains are cut, thinned, interrupted or shown."""

import numpy as np
import pytest

import model_cases
import spinseg as ss
from chain_cases import assert_books, with_traces
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
        assert_books(posterior, cut, every=5)
        expected = [t for t in range(burn_in + thin, 46, thin) if t > later]
        assert cut.burn_in == later and cut.sweep[::n].tolist() == expected
        assert traces(cut, posterior.graph)["log_posterior"].shape == (2, (45 - later) * n)
        assert cut.trace("log_posterior").shape == cut.trace("n_clusters").shape == (2, 45)
    for most in (1, 4, 5, 100):
        assert_books(posterior, chains.thinned(most * n), every=5)
        assert_books(posterior, chains.after(23).thinned(most * n), every=5)


def test_a_shorter_burn_in_is_refused(model):
    chains = ss.sample(model, 30, 1, burn_in=20, rng=1)
    with pytest.raises(ss.InvalidInput, match="burn_in must be a whole number of at least 20: got 5"):
        chains.after(5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda chains: chains.thinned(0), "max_draws must be a whole number of at least 1: got 0"),
        (lambda chains: chains.thinned(-3), "max_draws must be a whole number of at least 1: got -3"),
        (lambda chains: chains.thinned(2.5), "max_draws must be a whole number of at least 1: got 2.5"),
        (lambda chains: chains.best_of(5), "component must be below {n_components}: got 5"),
        (lambda chains: chains.best_of(-1), "component must be a whole number of at least 0: got -1"),
        (lambda chains: chains.best_of(0, 2), "chain must be below 2: got 2"),
        (lambda chains: chains.best_of(0, -1), "chain must be a whole number of at least 0: got -1"),
    ],
)
def test_numbers_that_chains_do_not_have_are_refused(posterior, call, message):
    chains = ss.sample(posterior, 3, 2, rng=1)
    with pytest.raises(ss.InvalidInput) as refused:
        call(chains)
    assert str(refused.value) == message.format(n_components=chains.n_components)


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


@pytest.fixture
def agg():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def traced(log_posterior, n_clusters, burn_in):
    """Chains of these traces."""
    chains = ss.sample(model_cases.lattice(side=3), 2, len(log_posterior), rng=0)
    return with_traces(chains, burn_in=burn_in, log_posterior=log_posterior, n_clusters=n_clusters)


@pytest.mark.parametrize("n_clusters, limits", [([300, 4, 2, 3], (1.95, 3.05)), ([300, 4, 2, 2], (1.5, 2.5))])
def test_the_burn_in_is_shown_and_does_not_decide_the_scale(agg, n_clusters, limits):
    log_posterior = np.array([[-9000.0, -500.0, -20.0, -10.0], [-800.0, -700.0, -15.0, -12.0]])
    chains = traced(log_posterior, np.array([n_clusters, [1, 1, 2, 2]], np.int32), burn_in=2)
    first, second = chains.plot()
    assert first.get_ylim() == pytest.approx((-20.5, -9.5)) and second.get_ylim() == pytest.approx(limits)
    np.testing.assert_array_equal([line.get_ydata() for line in first.lines], log_posterior)
    assert first.get_xlim()[0] <= 1


@pytest.mark.parametrize("burn_in", [0, 4])
def test_without_a_burn_in_or_draws_every_sweep_decides_the_scale(agg, burn_in):
    chains = traced(np.array([[-90.0, -1.0, -2.0, -3.0]]), np.ones((1, 4), np.int32), burn_in)
    low, high = chains.plot()[0].get_ylim()
    assert low < -90 and high > -1


@pytest.mark.parametrize("n_chains, named", [(1, False), (2, True), (10, True), (11, False)])
def test_a_key_names_chains_where_each_has_a_color(agg, model, n_chains, named):
    axes = ss.sample(model, 3, n_chains, rng=0).plot()
    key = axes[-1].get_legend()
    assert (key is not None) is named
    if named:
        assert [text.get_text() for text in key.get_texts()] == [str(c + 1) for c in range(n_chains)]
        colors = [line.get_color() for line in axes[0].lines]
        assert [line.get_color() for line in key.get_lines()] == colors and len(set(colors)) == n_chains
