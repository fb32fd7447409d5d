"""R-hat and effective sample sizes are those of ArviZ."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from hypothesis import given
from hypothesis import strategies as st

from spinseg.sampler import rank_statistics


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(4, 90), st.sampled_from([0.0, 0.6, 0.97, -0.8]))
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
def test_all_are_those_of_arviz(seed, n_chains, n_draws, dependence):
    random = np.random.default_rng(seed)
    traces = random.normal(size=(n_chains, n_draws))
    for t in range(1, n_draws):
        traces[:, t] += dependence * traces[:, t - 1]
    traces += random.choice([0.0, 2.0]) * random.normal(size=(n_chains, 1))
    if random.random() < 0.5:  # with ties
        traces = np.round(traces)
    pairs = [
        (rank_statistics.ess_bulk(traces), array_stats.ess(traces, method="bulk")),
        (rank_statistics.ess_tail(traces), array_stats.ess(traces, method="tail", prob=0.05)),
        (rank_statistics.ess_mean(traces), array_stats.ess(traces, method="mean")),
    ]
    if n_chains > 1:
        pairs.append((rank_statistics.r_hat(traces), array_stats.rhat(traces)))
    np.testing.assert_allclose(*np.transpose(pairs), rtol=1e-6)
