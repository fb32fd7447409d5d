"""Sampling that ends when the caller has seen enough."""

import pickle

import numpy as np
import pytest

import spinseg as ss


@pytest.fixture(scope="module")
def model():
    graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    return ss.Model(graph, ss.PoissonGamma([1, 2, 4, 5]), ss.DirichletProcess(1.0), beta=0.5)


def test_chains_stop_where_the_caller_has_seen_enough(model):
    seen = []

    def enough(chains):
        seen.append((chains.n_sweeps, chains.labels.shape[1]))
        return chains.n_sweeps >= 30

    found = ss.sample(model, 100, 2, burn_in=15, until=enough, check_every=10, rng=0)
    assert seen == [(20, 5), (30, 15)] and found.n_sweeps == 30
    whole = ss.sample(model, 100, 2, burn_in=15, rng=0)
    np.testing.assert_array_equal(found.labels, whole.labels[:, :15])
    on = ss.sample(model, 100, 2, burn_in=15, resume_from=found)
    np.testing.assert_array_equal(on.labels, whole.labels)


def test_chains_go_on_to_the_last_sweep_where_the_caller_never_has(model):
    told = []
    found = ss.sample(model, 25, 1, until=lambda chains: False, check_every=10, rng=0, progress=told.append)
    assert found.n_sweeps == 25 and {progress.total for progress in told} == {25}


def test_an_interruption_keeps_what_is_finished(model):
    def stop(chains):
        raise KeyboardInterrupt

    with pytest.raises(ss.SamplingInterrupted) as stopped:
        ss.sample(model, 100, 2, until=stop, check_every=10, rng=0)
    assert stopped.value.chains.n_sweeps == 10
    again = pickle.loads(pickle.dumps(stopped.value))  # as from another process
    assert type(again) is ss.SamplingInterrupted and str(again) == str(stopped.value)
    np.testing.assert_array_equal(again.chains.labels, stopped.value.chains.labels)
    on, whole = (ss.sample(model, 20, 2, rng=0, resume_from=start) for start in (again.chains, None))
    np.testing.assert_array_equal(on.labels, whole.labels)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "ten"], ids=str)
def test_a_wrong_number_of_sweeps_between_looks_is_refused(model, wrong):
    with pytest.raises(ss.InvalidInput, match="check_every must be a whole number of at least 1"):
        ss.sample(model, 10, until=lambda chains: True, check_every=wrong)
