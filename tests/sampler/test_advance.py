"""Chains that the caller looks at between sweeps: advanced, stopped, interrupted, saved, ended when enough is seen."""

import inspect
import pickle
import threading
import time

import numpy as np
import pytest

import spinseg as ss
from chain_cases import KINDS, assert_same


@pytest.fixture(scope="module")
def model():
    graph = ss.SiteGraph(4, [[0, 1], [1, 2], [2, 3]])
    return ss.Model(graph, ss.PoissonGamma([1, 2, 4, 5]), ss.DirichletProcess(1.0), beta=0.5)


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_sampler_keeps_what_is_finished_and_goes_on(model, kind, tmp_path):
    reports = []

    def once(progress):
        reports.append(progress)
        if len(reports) == 1:
            interrupt()

    how = {"chains": 2, "burn_in": 5, "thin": 2, "rng": 3} | KINDS[kind]
    whole = ss.sample(model, 400, **how)
    sampler = ss.Sampler(model, 400, progress=once, checkpoint=tmp_path / "run.npz", **how)
    with pytest.raises(KeyboardInterrupt):
        sampler.advance(390)
    seen = sampler.chains
    assert_same(ss.Chains.load(tmp_path / "run.npz"), seen)
    np.testing.assert_array_equal(seen.labels, whole.labels[:, : seen.labels.shape[1]])
    sampler.advance()
    assert sampler.n_sweeps == sampler.max_sweeps == 400
    assert_same(sampler.chains, whole)
    again = ss.Sampler(model, 400, resume_from=tmp_path / "run.npz", **how)
    assert again.n_sweeps == 400
    again.advance()  # nothing is left
    assert_same(again.chains, whole)


def test_a_sampler_stopped_from_another_thread_goes_on(model, tmp_path):
    sampler = ss.Sampler(model, 3_000_000, 2, burn_in=3_000_000, rng=1)
    thread = threading.Thread(target=sampler.advance)
    thread.start()
    while not sampler.n_sweeps:
        time.sleep(0.001)
    sampler.stop()
    thread.join()
    done = sampler.n_sweeps
    assert 0 < done < 3_000_000
    seconds = sampler.chains.seconds
    time.sleep(0.01)
    assert sampler.chains.seconds == seconds > 0  # no time passes while the chains rest
    sampler.advance(10)
    assert sampler.n_sweeps == done + 10 and sampler.chains.seconds > seconds
    sampler.save(tmp_path / "stopped.npz")
    assert ss.Chains.load(tmp_path / "stopped.npz").n_sweeps == done + 10


@pytest.mark.parametrize(
    ("n_sweeps", "message"),
    [
        (0, "n_sweeps must be a whole number of at least 1: got 0"),
        (1.5, "n_sweeps must be a whole number of at least 1: got 1.5"),
        (8, "n_sweeps must be at most the 7 sweeps that are left of 10: got 8"),
    ],
)
def test_wrong_numbers_of_sweeps_are_refused(model, n_sweeps, message):
    sampler = ss.Sampler(model, 10, 1, rng=0)
    sampler.advance(3)
    with pytest.raises(ss.InvalidInput, match=message):
        sampler.advance(n_sweeps)


def test_the_parameters_of_sample_are_those_of_the_sampler_and_two_more():
    names = [*inspect.signature(ss.Sampler).parameters, "until", "check_every"]
    assert list(inspect.signature(ss.sample).parameters) == names


def test_chains_stop_where_the_caller_has_seen_enough(model):
    seen = []

    def enough(chains):
        seen.append((chains.n_sweeps, chains.labels.shape[1]))
        return chains.n_sweeps >= 30

    how = {"chains": 2, "burn_in": 15, "rng": 0}
    found = ss.sample(model, 100, until=enough, check_every=10, **how)
    assert seen == [(20, 5), (30, 15)] and found.n_sweeps == 30
    whole = ss.sample(model, 100, **how)
    np.testing.assert_array_equal(found.labels, whole.labels[:, :15])
    assert_same(ss.sample(model, 100, resume_from=found, **how), whole)
    again = ss.sample(model, 100, until=enough, check_every=10, resume_from=found, **how)
    assert again.n_sweeps == 30  # the caller has seen enough already


def test_chains_go_on_to_the_last_sweep_where_the_caller_never_has(model):
    reported = []
    found = ss.sample(model, 25, 1, until=lambda chains: False, check_every=10, rng=0, progress=reported.append)
    assert found.n_sweeps == 25 and {progress.total for progress in reported} == {25}


def test_an_interruption_keeps_what_is_finished(model):
    with pytest.raises(ss.SamplingInterrupted) as stopped:
        ss.sample(model, 100, 2, until=interrupt, check_every=10, rng=0)
    assert stopped.value.chains.n_sweeps == 10
    again = pickle.loads(pickle.dumps(stopped.value))  # as from another process
    assert type(again) is ss.SamplingInterrupted and str(again) == str(stopped.value)
    on, whole = (ss.sample(model, 20, 2, rng=0, resume_from=start) for start in (again.chains, None))
    assert_same(on, whole)
