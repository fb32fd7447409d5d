"""Chains laid down and taken up again, in memory, from files, after kills: bit by bit the uninterrupted run."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from itertools import product

import numpy as np
import pytest

import model_cases
import spinseg as ss
from chain_cases import KINDS, assert_same
from effort import effort, exhaustive
from spinseg.sampler import plan

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


def test_chains_go_on_where_no_named_start_exists():
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
