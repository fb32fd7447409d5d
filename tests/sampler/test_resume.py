"""Chains laid down and taken up again, in memory, from files, after kills: bit by bit the uninterrupted run."""

import copy
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from itertools import product

import numpy as np
import pytest

import model_cases
import spinseg as ss
from chain_cases import KINDS, assert_same
from effort import effort, exhaustive
from spinseg.sampler import plan, start_search
from spinseg.sampler.chain import Chain
from spinseg.sampler.kernels.state import N_SPIN_CLUSTERS, NEXT_INDEX

SHARED = {"chains": 2, "burn_in": 20, "thin": 3}
SEEDS = np.bincount([9, 54, 60], [1, 1, 2], 64).astype(int)


@pytest.fixture(scope="module")
def model():
    graph = ss.SiteGraph.grid((8, 8))
    beta = np.random.default_rng(1).normal(0.2, 0.4, graph.n_edges)
    return ss.Model(graph, model_cases.likelihoods(64, 1)["product"], ss.DirichletProcess(2.0), beta)


POSTERIORS = ["plain", "connected", "with seeds", "many sites", "mixture"]


@pytest.mark.parametrize(("posterior", "kind"), list(product(POSTERIORS, KINDS))[:: effort(3, 1)])
def test_going_on_is_the_same_as_never_having_stopped(model, posterior, kind, tmp_path, monkeypatch):
    keywords = SHARED | KINDS[kind]
    if posterior == "many sites":
        monkeypatch.setattr(plan, "MANY_SITES", 50)
        keywords["init"] = "singletons"
    elif posterior == "mixture":
        model = like(model, beta=[model.beta, model.beta - 0.3])
    elif posterior != "plain":
        model = like(model, connected=True, seeds=SEEDS if posterior == "with seeds" else None)
    whole = ss.sample(model, 60, rng=5, **keywords)
    part = ss.sample(model, 25, rng=5, **keywords)
    for _ in range(2):  # resuming leaves what it resumes from as it was
        assert_same(ss.sample(model, 60, resume_from=part, **keywords), whole)
    part.save(tmp_path / "part.npz")
    again = ss.sample(model, 41, resume_from=tmp_path / "part.npz", checkpoint=tmp_path / "on.npz", **keywords)
    assert_same(ss.sample(model, 60, resume_from=tmp_path / "on.npz", workers=1, **keywords), whole)
    loaded = ss.Chains.load(tmp_path / "on.npz")
    assert_same(loaded, again)
    assert loaded.seconds >= part.seconds


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])
@pytest.mark.parametrize("kind", [*KINDS, "mixture", "kinds of regions"])
def test_a_copy_of_a_sampler_goes_on_as_the_sampler_does(model, kind, copied):
    if kind == "mixture":
        model = like(model, beta=[model.beta, model.beta - 0.3])
    elif kind == "kinds of regions":
        model = like(model, connected=True, kinds=ss.Potts(3))
    keywords = SHARED | KINDS.get(kind, {})
    whole = ss.sample(model, 40, rng=5, **keywords)
    for first in (0, 25):  # sweeps before it is copied
        sampler = ss.Sampler(model, 40, rng=5, **keywords)
        sampler.advance(first) if first else None
        again = copied(sampler)
        for one in (again, sampler):
            one.advance()
            assert_same(one.chains, whole)
        assert again.chains.seconds > 0


def like(model, **options):
    """A model that differs in these options only."""
    options = {"prior": model.prior, "beta": model.beta} | options
    return ss.Model(model.graph, model.likelihood, **options)


def test_draws_that_were_left_out_stay_out_of_a_file_that_is_read_again(model, tmp_path):
    keywords = {"chains": 2, "thin": 3}
    chains = ss.sample(model, 60, rng=5, **keywords)
    later = chains.after(30)
    later.save(tmp_path / "part.npz")
    loaded = ss.Chains.load(tmp_path / "part.npz")
    assert loaded.burn_in == 30 and np.array_equal(loaded.labels, later.labels)
    assert_same(
        ss.sample(model, 90, resume_from=tmp_path / "part.npz", **keywords), ss.sample(model, 90, rng=5, **keywords)
    )


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
@pytest.mark.parametrize("kind", ["auto", "tempered"])
def test_every_bit_generator_goes_on(model, bits, kind, tmp_path):
    def generator():
        return np.random.Generator(getattr(np.random, bits)(5))

    keywords = {"chains": 2} | KINDS[kind]
    whole = ss.sample(model, 30, rng=generator(), **keywords)
    part = ss.sample(model, 11, rng=generator(), **keywords)
    part.save(tmp_path / "part.npz")
    for source in (part, tmp_path / "part.npz"):
        assert_same(ss.sample(model, 30, resume_from=source, **keywords), whole)


def test_an_unknown_bit_generator_is_refused(model):
    part = ss.sample(model, 5, chains=1, rng=5)
    state = part._checkpoint[1][0]
    state["rng"] = np.frombuffer(bytes(state["rng"]).replace(b"PCG64", b"seed"), np.uint8)
    with pytest.raises(ss.InvalidInput, match="resume_from must hold chains with one of the bit generators"):
        ss.sample(model, 9, chains=1, resume_from=part)


def test_chains_go_on_where_no_named_start_is_found(monkeypatch):
    monkeypatch.setattr(start_search, "MAX_STEPS", 0)
    monkeypatch.setattr(start_search, "N_ANNEALINGS", 0)
    edges = [[0, 1], [0, 2], [1, 3], [0, 4], [3, 5], [3, 4], [1, 2]]
    model = ss.Model(ss.SiteGraph(6, edges), ss.Flat(), ss.Potts(3, max_size=2), connected=True)
    keywords = {"chains": 1, "init": [0, 1, 1, 2, 0, 2]}  # the only partition that is allowed
    with pytest.raises(ss.InvalidInput, match="init must be labels"):
        ss.sample(model, 5, 1)
    whole, part = ss.sample(model, 12, rng=1, **keywords), ss.sample(model, 5, rng=1, **keywords)
    assert_same(ss.sample(model, 12, chains=1, resume_from=part), whole)


@exhaustive
def test_another_prior_without_tables_is_refused(model):
    def with_prior(log_g):
        return like(model, prior=ss.ExchangeablePrior(log_g))

    part = ss.sample(with_prior(lambda sizes: -float(len(sizes))), 5, 1, rng=5)
    same = ss.sample(with_prior(lambda sizes: -1.0 * len(sizes)), 8, 1, resume_from=part)
    assert same.n_sweeps == 8
    for other in (lambda sizes: -1.1 * len(sizes), lambda sizes: -float(len(sizes)) + 0.1 * (len(sizes) == 2)):
        with pytest.raises(ss.InvalidInput, match="resume_from must hold chains of this model"):
            ss.sample(with_prior(other), 8, 1, resume_from=part)


def test_other_models_and_settings_are_refused(model, tmp_path):
    law = {"concentration_prior": (2.0, 1.0)}
    part = ss.sample(model, 10, rng=5, chains=2, **law)
    part.save(tmp_path / "part.npz")
    fewer = ss.Model(ss.SiteGraph(3, []), ss.Flat(), ss.DirichletProcess(2.0))
    another = "its graph, likelihood, prior, beta or lam is another"
    for wrong, what in (
        ({"model": like(model, prior=ss.DirichletProcess(2.1))}, another),
        ({"model": like(model, power=0.5)}, another),
        ({"model": like(model, connected=True)}, another),
        ({"lam": 2.0}, another),
        ({"model": fewer}, "n_sites was 64, is 3"),
        ({"chains": 3}, "chains was 2, is 3"),
        ({"moves": "gsw"}, "moves was 'auto', is 'gsw'"),
        ({"thin": 2, "burn_in": 4}, "burn_in was 0, is 4; thin was 1, is 2"),
        ({"concentration_prior": (2.0, 3.0)}, "concentration_prior was [2.0, 1.0], is [2.0, 3.0]"),
        ({"concentration_prior": None, "temperatures": [1, 2]}, "temperatures was [1.0], is [1.0, 2.0]"),
    ):
        for source in (part, tmp_path / "part.npz"):
            keywords = {"model": model, "sweeps": 20, "chains": 2, "resume_from": source, **law} | wrong
            rule = f"resume_from must hold chains of this model, sampled in this way ({what}"
            with pytest.raises(ValueError, match=re.escape(rule)):
                ss.sample(**keywords)
    for was, now in (
        ({"connected": True, "seeds": SEEDS}, {"connected": True, "seeds": SEEDS * (SEEDS == 1)}),
        ({"beta": [model.beta, model.beta]}, {"beta": [model.beta, model.beta + 0.1]}),
    ):
        part = ss.sample(like(model, **was), 5, 1, rng=5)
        with pytest.raises(ValueError, match=another):
            ss.sample(like(model, **now), 8, 1, resume_from=part)
    part = ss.sample(model, 10, rng=5, chains=2)
    with pytest.raises(ValueError, match="sweeps must be at least the 10 sweeps of resume_from: got 5"):
        ss.sample(model, 5, 2, resume_from=part)


def test_damaged_and_foreign_files_are_refused_in_one_line(model, tmp_path):
    part = ss.sample(model, 10, rng=5, chains=1)
    part.save(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    rng = np.random.default_rng(0)
    (tmp_path / "foreign.npz").write_bytes(b"hello")
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    for name in ("foreign.npz", "other.npz", "array.npy"):
        with pytest.raises(ValueError, match="path must be a whole file of chains that spinseg saved") as error:
            ss.Chains.load(tmp_path / name)
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="path must be a file"):
        ss.Chains.load(tmp_path / "missing.npz")
    for cut in rng.integers(1, len(whole), 20):
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(ValueError, match="whole file of chains"):
            ss.Chains.load(tmp_path / "cut.npz")


def posterior_of(model, name):
    """The posterior of a name: with kinds of regions and, or, seeds."""
    if name == "plain":
        return model
    return like(model, connected=True, seeds=SEEDS, kinds=ss.Potts(3) if name == "kinds and seeds" else None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("posterior", ["plain", "kinds and seeds"])
def test_chains_stopped_in_the_middle_of_an_iteration_go_on_from_a_file(model, posterior, kind, tmp_path):
    model, keywords = posterior_of(model, posterior), SHARED | KINDS[kind]
    whole = ss.sample(model, 60, rng=5, **keywords)
    for delay in (None, 3e-4, 1e-3, 2e-3, 4e-3):
        sampler = ss.Sampler(model, 60, rng=5, **keywords)
        sampler.advance(10)
        for runner in sampler.runners:
            if delay is None:
                stop_before_the_first_spin_cluster(runner)
            else:  # somewhere
                timer = threading.Timer(delay, runner.stop)
                timer.start()
                runner.advance(50)
                timer.cancel()
        sampler.save(tmp_path / "part.npz")
        for source in (tmp_path / "part.npz", sampler.chains):
            assert_same(ss.sample(model, 60, resume_from=source, **keywords), whole)


def stop_before_the_first_spin_cluster(runner):
    """Stop a chain, and its replicas, in the middle of the next iteration."""
    for replica in (runner, *getattr(runner, "hotter", ())):
        replica.stop()
        Chain.advance(replica, replica.done + 1)
        assert replica.state.counters[NEXT_INDEX] < replica.state.counters[N_SPIN_CLUSTERS]


def resaved(path, **changed):
    """Write a file of chains again, with other arrays, or functions of what they are."""
    with np.load(path) as file:
        arrays = dict(file)
    for name, change in changed.items():
        name = f"chain0/{name}"
        assert name in arrays
        arrays[name] = change(arrays[name]) if callable(change) else np.asarray(change)
    np.savez(path.with_name("changed.npz"), **arrays)
    return path.with_name("changed.npz")


def with_first(value):
    """A copy of an array whose first element is another."""
    return lambda array: np.concatenate([np.full_like(array.ravel()[:1], value), array.ravel()[1:]]).reshape(
        array.shape
    )


CHANGED = {
    "fewer than no sweeps": {"done": -5},
    "more sweeps": {"done": 26},
    "other labels": {"state.label": lambda label: label[::-1].copy()},  # other seeds are apart
    "one cluster": {"state.label": np.zeros_like},
    "a label of no cluster": {"state.label": with_first(60)},
    "a large label": {"state.label": with_first(2**31 - 1)},
    "longer labels": {"state.label": lambda label: label.astype(np.int64)},
    "fewer labels": {"state.label": lambda label: label[1:]},
    "a kind of no region": {"state.kind": with_first(50)},
    "no kinds": {"state.kind": lambda kind: kind[:0]},
    "sums of nothing": {"state.total": np.zeros_like},
    "sums that are not numbers": {"state.kinds.total": with_first(np.nan)},
    "sums of fewer statistics": {"state.total": lambda total: total[:, 1:]},
    "values that are not numbers": {"state.dense_value": with_first(np.inf)},
    "a spin-cluster without sites": {"state.spin": with_first(63)},
    "spin-clusters across clusters": {"state.spin": np.zeros_like},
    "more clusters": {"state.counters": with_first(9)},
    "a late spin-cluster": {"state.counters": lambda counters: counters + 1000},
    "a sweep of single clusters": {"state.counters": lambda counters: np.append(counters[:-1], 0)},
    "many attempts": {"state.attempts_left": with_first(10**9)},
    "a negative lambda": {"state.scalars": lambda scalars: -np.abs(scalars)},
    "a best partition out of order": {"best": lambda best: best + 1},
    "a best partition that is not allowed": {"best": np.zeros_like},
    "draws of no cluster": {"draw": with_first(-1)},
    "draws of other numbers of clusters": {"draw": np.zeros_like},
    "fewer traces": {"log_posterior": lambda trace: trace[1:]},
    "numbers of clusters": {"n_clusters": with_first(-3)},
    "another generator": {"rng": lambda rng: rng[:-1]},
    "a generator out of bounds": {"rng": lambda rng: mersenne(625)},
    "a generator before its start": {"rng": lambda rng: mersenne(-9)},
    "another replica": {"replica1.state.label": with_first(-1)},
    "a replica ahead": {"replica1.done": 40},
    "counts of exchanges": {"swaps_accepted": lambda counts: counts[:1]},
}


def mersenne(position):
    """The state of a generator whose next number is at some position, as a file has it."""
    state = np.random.MT19937(1).state
    state["state"]["pos"] = position
    return np.frombuffer(json.dumps(state, default=np.ndarray.tolist).encode(), np.uint8)


@pytest.fixture(scope="module")
def stopped(model, tmp_path_factory):
    """A model, how to sample it, and a file of chains whose sweeps had just begun."""
    model, keywords = posterior_of(model, "kinds and seeds"), SHARED | KINDS["tempered"]
    sampler = ss.Sampler(model, 60, rng=5, init="singletons", **keywords)
    sampler.advance(25)
    for runner in sampler.runners:
        stop_before_the_first_spin_cluster(runner)
    path = tmp_path_factory.mktemp("stopped") / "part.npz"
    sampler.save(path)
    return model, keywords, path


@pytest.mark.parametrize("change", CHANGED)
def test_changed_arrays_are_refused_before_compiled_code_reads_them(stopped, change):
    model, keywords, path = stopped
    with pytest.raises(ss.InvalidInput, match=r"must (be a whole file|hold) .*chains") as error:
        ss.sample(model, 60, resume_from=resaved(path, **CHANGED[change]), **keywords)
    assert "\n" not in str(error.value) and "changed.npz" in str(error.value)


def test_arrays_that_are_saved_again_as_they_were_are_taken(stopped):
    model, keywords, path = stopped
    whole = ss.sample(model, 60, rng=5, init="singletons", **keywords)
    assert_same(ss.sample(model, 60, resume_from=resaved(path), **keywords), whole)


@pytest.mark.parametrize("change", [name for name in CHANGED if "generator" not in name][:4])
def test_changed_arrays_of_chains_in_memory_are_refused_too(stopped, change):
    model, keywords, path = stopped
    chains = ss.Chains.load(path)
    for name, changed in CHANGED[change].items():
        state = chains._checkpoint[1][0]
        state[name] = changed(state[name]) if callable(changed) else np.asarray(changed)
    with pytest.raises(ss.InvalidInput, match="resume_from must hold chains as spinseg saved them: got"):
        ss.sample(model, 60, resume_from=chains, **keywords)


def changed_at_random(array, rng):
    """An array of another type or shape, or with other numbers."""
    how, array = rng.integers(8), array.copy()
    if how == 0:
        return array.astype(rng.choice(["i8", "f8", "u4", "i4", "u1"]))
    if how == 1 or array.size == 0:
        return np.append(array.ravel(), np.zeros(2, array.dtype))
    if how == 2:
        return array.ravel()[1:]
    if how == 3:
        return np.zeros_like(array)
    flat = array.ravel()
    if how == 4:
        return rng.permutation(flat).reshape(array.shape)
    numbers = [-5, 2**31 - 1, flat[rng.integers(flat.size)], flat[0] + 1]
    flat[rng.integers(flat.size)] = np.array(numbers[rng.integers(4)]).astype(array.dtype)
    return flat.reshape(array.shape)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("posterior", ["plain", "kinds and seeds"])
def test_arrays_changed_at_random_are_refused_or_give_partitions(model, posterior, kind, tmp_path):
    model, keywords, rng = posterior_of(model, posterior), SHARED | KINDS[kind], np.random.default_rng(1)
    ss.sample(model, 25, rng=5, checkpoint=tmp_path / "part.npz", **keywords)
    with np.load(tmp_path / "part.npz") as file:
        names = [name.removeprefix("chain0/") for name in file.files if name.startswith("chain0/")]
    refused = 0
    for _ in range(effort(25, 400)):
        change = {str(rng.choice(names)): lambda array: changed_at_random(array, rng)}
        path = resaved(tmp_path / "part.npz", **change)
        try:
            chains = ss.sample(model, 40, resume_from=path, **keywords)
        except ss.InvalidInput as error:
            assert "\n" not in str(error)
            refused += 1
        else:
            assert chains.labels.min() == 0
            np.testing.assert_array_equal(chains.labels.max(axis=-1) + 1, chains.n_clusters)
    assert refused > 0


RUN = textwrap.dedent("""
    import os, sys
    import numpy as np
    import spinseg as ss
    graph = ss.SiteGraph.grid((12, 12))
    model = ss.Model(graph, ss.PoissonGamma(np.random.default_rng(0).poisson(4, 144)), ss.DirichletProcess(1.0), 0.4)
    path, sweeps = sys.argv[1], int(sys.argv[2])
    resume = {"resume_from": path} if os.path.exists(path) else {"rng": 3}
    chains = ss.sample(model, sweeps, 2, checkpoint=path, checkpoint_seconds=0.02, thin=50, **resume)
    print(hash((chains.labels.tobytes(), chains.log_posterior.tobytes(), chains.best_labels.tobytes())))
""")


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@exhaustive
def test_killed_at_any_moment_it_goes_on_to_the_same_end(tmp_path):
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-c", RUN]
    arguments = {"env": environment, "stdout": subprocess.PIPE, "text": True}
    expected = subprocess.run([*command, str(tmp_path / "whole.npz"), "6000"], check=True, **arguments).stdout
    rng, path, kills = np.random.default_rng(0), tmp_path / "killed.npz", 0
    for _ in range(8):
        before = path.stat().st_mtime_ns if path.exists() else 0
        run = subprocess.Popen([*command, str(path), "6000"], **arguments)
        while run.poll() is None and not (path.exists() and path.stat().st_mtime_ns > before):
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.1))  # until some moment after a new checkpoint
        kills += run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.communicate()
        ss.Chains.load(path)  # whole, whenever it is looked at
    assert kills > 0
    assert subprocess.run([*command, str(path), "6000"], check=True, **arguments).stdout == expected
