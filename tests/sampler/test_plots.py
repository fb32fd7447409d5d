"""Pictures of traces: what decides their scale, and which line is which chain."""

import numpy as np
import pytest

import spinseg as ss
from chain_cases import with_traces

MODEL = ss.Model(ss.SiteGraph(3, [[0, 1], [1, 2]]), ss.PoissonGamma([1, 2, 9]), ss.DirichletProcess(1.0), 0.3)


@pytest.fixture
def agg():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def traced(log_posterior, n_clusters, burn_in):
    """Chains of these traces."""
    chains = ss.sample(MODEL, 2, len(log_posterior), rng=0)
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
def test_a_key_names_chains_where_each_has_a_color(agg, n_chains, named):
    axes = ss.sample(MODEL, 3, n_chains, rng=0).plot()
    key = axes[-1].get_legend()
    assert (key is not None) is named
    if named:
        assert [text.get_text() for text in key.get_texts()] == [str(c + 1) for c in range(n_chains)]
        colors = [line.get_color() for line in axes[0].lines]
        assert [line.get_color() for line in key.get_lines()] == colors and len(set(colors)) == n_chains
