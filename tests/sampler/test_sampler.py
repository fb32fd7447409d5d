"""The sampler beyond exactness: bookkeeping, reproducibility, starts, interruption, what is kept."""

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import model_cases
import spinseg as ss
from chain_cases import assert_books, assert_same
from effort import effort, exhaustive
from model_cases import lattice as lattice_model
from spinseg.graph.adjacency import regions_of
from spinseg.sampler import chain as chain_module
from spinseg.sampler import exchangeable
from spinseg.sampler import pack as pack_module
from spinseg.sampler.kernels.state import ACCEPTED, PROPOSED
from spinseg.sampler.pack import new_state

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("init", effort(["singletons"], ["one", "singletons"]))
@pytest.mark.parametrize("name", model_cases.likelihoods(4))
def test_bookkeeping_after_1000_sweeps_equals_recomputation(name, init):
    model = lattice_model(name)
    chain = ss.Sampler(model, 1000, 1, init=init, burn_in=1000, rng=3).runners[0]
    chain.advance(1000)
    state, k = chain.state, chain.n_clusters
    fresh = new_state(chain.target, state.slot_of[state.label].astype(np.int32), 0.0)
    np.testing.assert_array_equal(state.size[:k], fresh.size[:k])
    assert not state.size[k:].any() and not state.counts[:, k:].any() and not state.value[:, k:].any()
    np.testing.assert_array_equal(state.counts[:, :k], fresh.counts[:, :k])
    np.testing.assert_array_equal(state.value[:, :k], fresh.value[:, :k])
    np.testing.assert_allclose(state.total[:k], fresh.total[:k], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.dense_value[:k], fresh.dense_value[:k], rtol=1e-9, atol=1e-8)
    assert sorted(state.id_of) == list(range(state.size.size))
    np.testing.assert_array_equal(state.slot_of[state.id_of], np.arange(state.size.size))
    assert chain.log_posterior == pytest.approx(model.log_posterior(state.label), abs=1e-7)
    assert chain.record.best_log_posterior[0] == pytest.approx(model.log_posterior(chain.record.best), abs=1e-7)


def test_draws_are_numbered_by_first_appearance_and_no_sweep_is_better_than_the_best():
    model = lattice_model("histogram")
    chains = ss.sample(model, sweeps=60, chains=3, burn_in=11, thin=7, rng=4)
    assert chains.labels.shape == (3, 7, 144) and chains.labels.dtype == np.int32
    for labels in chains.labels.reshape(-1, 144):
        first = [labels.tolist().index(k) for k in range(labels.max() + 1)]
        assert first == sorted(first)
    best = max(chains.trace("log_posterior").max(), model.log_posterior(np.zeros(144, int)))
    assert chains.best_log_posterior == best


@pytest.mark.parametrize("moves", ["gsw", "auto"])
def test_same_seed_same_labels_whatever_the_workers_and_the_chunks(moves, monkeypatch):
    model = lattice_model("two histograms", signs=False)
    one = ss.sample(model, sweeps=80, chains=4, moves=moves, init="singletons", rng=5, workers=1)
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 1e-9)
    four = ss.sample(model, sweeps=80, chains=4, moves=moves, init="singletons", rng=5, workers=4)
    np.testing.assert_array_equal(one.labels, four.labels)
    np.testing.assert_array_equal(one.log_posterior, four.log_posterior)
    assert not np.array_equal(one.labels[0], one.labels[1])
    other = ss.sample(model, sweeps=80, chains=4, moves=moves, init="singletons", rng=6)
    assert not np.array_equal(one.labels, other.labels)


def test_tables_that_are_full_all_the_time_change_nothing(monkeypatch):
    model = lattice_model("product", ss.DirichletProcess(100.0))
    roomy = ss.sample(model, sweeps=40, chains=1, rng=5)
    monkeypatch.setattr(pack_module, "_capacity", lambda k: 4 * ((k + 7) // 4 + 1))  # what a regrouping asks for
    tight = ss.sample(model, sweeps=40, chains=1, rng=5)
    np.testing.assert_array_equal(roomy.labels, tight.labels)


@pytest.mark.parametrize("keywords", [{}, {"temperatures": [1.0, 1.5]}], ids=["plain", "tempered"])
def test_the_clock_goes_on_where_chains_are_continued(keywords):
    model = lattice_model(side=4)
    part = ss.sample(model, 5, 2, rng=0, workers=1, **keywords)
    whole = ss.sample(model, 10, 2, resume_from=part, **keywords)
    assert whole.seconds > part.seconds > 0


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    ss.sample(lattice_model("poisson"), sweeps=5, chains=2)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


SMALL_RUN = textwrap.dedent(
    """
    import json, numpy as np, model_cases, spinseg as ss
    from spinseg.sampler import plan
    from spinseg.sampler.pack import pack
    from model_cases import lattice as lattice_model
    out = {}
    for name in model_cases.likelihoods(4):
        for prior in (ss.DirichletProcess(2.0), ss.Potts(5, min_size=2)):
            chains = ss.sample(lattice_model(name, prior, side=4), sweeps=12, chains=2, lam=3.0, init="singletons", rng=9)
            out[name + type(prior).__name__] = [chains.labels.tolist(), chains.log_posterior.tolist()]
    pack.__defaults__ = (20,)  # most bins without a table
    chains = ss.sample(lattice_model("two histograms", side=4), sweeps=12, chains=1, rng=9)
    out["without tables"] = [chains.labels.tolist(), chains.log_posterior.tolist()]
    plan.MANY_SITES = 4
    for name in model_cases.likelihoods(4):
        chains = ss.sample(lattice_model(name, side=4), sweeps=12, chains=1, init="singletons", rng=9)
        out[name + ", local sweeps"] = [chains.labels.tolist(), chains.log_posterior.tolist()]
    for how in ({"graph": ss.SiteGraph.grid((4, 4))}, {}):
        for found in (ss.minimize_vi(chains, rng=1, **how), ss.minimize_binder(chains, cost_together=2, rng=1, **how)):
            out[f"estimate {len(out)}"] = [found.labels.tolist(), found.expected_loss]
    print(json.dumps(out))
    """
)


def small_run(environment: dict[str, str]) -> dict:
    """SMALL_RUN in a fresh interpreter."""
    command = [sys.executable, "-c", SMALL_RUN]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@exhaustive
def test_compiled_equals_interpreted():
    compiled = small_run(dict(os.environ))
    interpreted = small_run({**os.environ, "SPINSEG_INTERPRETED": "1"})
    assert compiled.keys() == interpreted.keys()
    for name in compiled:
        assert compiled[name][0] == interpreted[name][0], name
        np.testing.assert_allclose(compiled[name][1], interpreted[name][1], rtol=1e-12)


# With min_size the tables let a spin-cluster stay before a random number is drawn, and the walks part.
@exhaustive
@pytest.mark.parametrize("limits", [{}, {"max_size": 3}], ids=str)
def test_an_exchangeable_prior_walks_with_its_tabulated_form(limits):
    def log_g(sizes):
        return len(sizes) * math.log(2.0) + sum(map(math.lgamma, sizes))

    tabulated = lattice_model("product", ss.DirichletProcess(2.0, **limits), side=5)
    general = lattice_model("product", ss.ExchangeablePrior(log_g, **limits), side=5)
    a, b = (ss.sample(m, sweeps=25, chains=2, moves="gsw", lam=3.0, rng=10) for m in (tabulated, general))
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_allclose(a.log_posterior, b.log_posterior, atol=1e-8)


def test_an_exchangeable_prior_is_evaluated_once_for_the_same_sizes(monkeypatch):
    monkeypatch.setattr(exchangeable, "MAX_KNOWN", 50)
    asked, since_full = [], set()

    def log_g(sizes):
        asked.append(tuple(sizes))
        return -float(len(sizes))

    chain = ss.Sampler(lattice_model("poisson", ss.ExchangeablePrior(log_g), side=4), 12, 1, rng=0).runners[0]
    asked.clear()
    chain.advance(12)
    for sizes in asked:
        assert sizes not in since_full
        since_full = {sizes} if len(since_full) == 50 else since_full | {sizes}
    assert len(asked) > 50


def test_chains_grow_and_shrink_their_tables():
    model = ss.Model(ss.SiteGraph.grid((20, 20)), ss.PoissonGamma(np.arange(400)), ss.DirichletProcess(1e4), beta=0.0)
    many = ss.sample(model, sweeps=5, chains=1, moves="gsw", rng=1)
    assert many.n_clusters[0, -1] > 100  # from one cluster: the tables were full on the way
    assert_books(model, many)
    model = lattice_model("histogram", ss.DirichletProcess(1e-3), side=20)
    chain = ss.Sampler(model, 100, 1, init="singletons", rng=3).runners[0]
    before = chain.state.size.size
    chain.advance(100)
    assert chain.n_clusters < 20 and chain.state.size.size < before / 4


def test_chains_may_have_starts_of_their_own():
    model = lattice_model("poisson")
    starts = ["one", "singletons", np.arange(144) // 12]
    chains = ss.sample(model, sweeps=1, chains=3, init=starts, lam=0.0, rng=0)
    assert chains.n_clusters[0, 0] < chains.n_clusters[1, 0]
    labels = ss.sample(model, sweeps=3, chains=2, init=[i % 2 for i in range(144)], rng=0)
    assert labels.n_chains == 2


@pytest.mark.parametrize("workers", effort([4], [1, 4]))
def test_ctrl_c_keeps_what_is_finished(workers):
    model = lattice_model("gaussian", side=30)
    start = model.log_posterior(np.zeros(900, int))

    def interrupt(progress):
        if progress.log_posterior != pytest.approx(start):  # of the slowest chain: all have begun
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(ss.SamplingInterrupted) as caught:
        ss.sample(model, 10_000_000, 4, burn_in=9_999_999, init="one", rng=0, workers=workers, progress=interrupt)
    chains = caught.value.chains
    assert 0 < chains.n_sweeps < 10_000_000 and chains.labels.shape[1] == 0
    assert chains.best_log_posterior == pytest.approx(model.log_posterior(chains.best_labels), abs=1e-6)


@exhaustive
def test_an_error_in_the_prior_stops_all_chains_and_comes_through():
    def log_g(sizes):
        if len(sizes) > 1:
            raise RuntimeError("my prior is broken")
        return 0.0

    with pytest.raises(RuntimeError, match="my prior is broken"):
        ss.sample(lattice_model("poisson", ss.ExchangeablePrior(log_g), side=4), sweeps=100, chains=3, rng=0)


def test_progress_is_reported_and_the_bar_goes_to_standard_error(capfd):
    seen = []
    model = lattice_model("poisson")
    ss.sample(model, sweeps=50, chains=2, rng=0, progress=seen.append)
    assert seen[-1].done == seen[-1].total == 100
    assert seen[-1].n_clusters > 0 and math.isfinite(seen[-1].log_posterior)
    ss.sample(model, sweeps=50, chains=1, rng=0, progress=True)
    assert capfd.readouterr().out == ""


FEW = lattice_model("poisson", ss.DirichletProcess(1.0, min_size=3), side=4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sweeps": 0}, r"sweeps must be a whole number of at least 1: got 0"),
        ({"chains": 1.5}, r"chains must be a whole number of at least 1: got 1.5"),
        ({"workers": 0}, r"workers must be a whole number of at least 1: got 0"),
        ({"thin": 0}, r"thin must be a whole number of at least 1: got 0"),
        ({"burn_in": 20}, r"burn_in must be at most sweeps, 10: got 20"),
        ({"moves": "gibbs"}, r"moves must be one of 'auto', 'gsw': got 'gibbs'"),
        ({"lam": -1.0}, r"lam must be a finite number of at least 0: got -1.0"),
        ({"lam": math.nan}, r"lam must be a finite number of at least 0: got nan"),
        ({"lam": [1.0, 2.0]}, r"lam must have shape \(24\): got \(2,\)"),
        ({"lam": np.full(24, -0.5)}, r"lam must not be negative: got .*-0.5"),
        ({"lam": ss.DataDriven(1.0, 1.0, "hellinger")}, r"distance must be one of 'euclidean': got 'hellinger'"),
        ({"init": "two"}, r"init must be one of 'one', 'singletons', 'greedy', 'opposite', .*: got 'two'"),
        ({"init": np.zeros(3, int)}, r"init must have one entry per site, shape \(16,\): got \(3,\)"),
        ({"init": np.zeros(16)}, r"init must be whole numbers: got 'float64'"),
        ({"init": ["one", "one", "one"]}, r"init must be one start, or one for each of 2 chains: got '3 starts'"),
        ({"rng": -1}, r"rng must be a whole number of at least 0, a Generator or None: got -1"),
        ({"rng": "seed"}, r"rng must be a whole number of at least 0, a Generator or None: got 'seed'"),
        ({"sweeps": 10**9}, r"thin must keep the draws below 8 GB"),
        *(({"check_every": every}, r"check_every must be a whole number of at least 1") for every in (0, 1.5, "ten")),
        *(
            ({"temperatures": wrong}, r"temperatures must")
            for wrong in ([2.0, 3.0], [1.0, 1.0], [1.0, 0.5], [], [1.0, math.nan])
        ),
        *(
            ({"concentration_prior": law}, r"(concentration_prior|shape|rate) must")
            for law in ((1.0,), (0.0, 1.0), "gamma", (1.0, -1.0))
        ),
        ({"concentration_prior": (1, 1), "temperatures": [1, 2]}, r"concentration_prior must be left out with temp"),
        ({"init": np.arange(16) // 2, "model": FEW}, r"init must be a partition that the prior allows"),
        ({"moves": "gsw", "lam": 0.0, "model": FEW}, r"lam must bond some sites where min_size > 1"),
        ({"moves": "gsw", "lam": np.zeros(24), "model": FEW}, r"lam must bond some sites where min_size > 1"),
        ({"moves": "gsw", "lam": ss.DataDriven(0.0, 1.0, "euclidean"), "model": FEW}, r"lam must bond some sites"),
    ],
)
def test_bad_settings_are_refused_with_the_rule(settings, message):
    with pytest.raises(ValueError, match=message):
        ss.sample(**{"model": lattice_model("poisson", side=4), "sweeps": 10, "chains": 2, **settings})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, -1), r"tau must be a finite number of at least 0: got -1"),
        ((1.0, 1.0, "l1"), r"distance must be one of 'hellinger', 'chi-square', 'euclidean': got 'l1'"),
    ],
)
def test_bad_bond_rules_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ss.DataDriven(*arguments)


@pytest.mark.parametrize("lam", [None, 0.0])
def test_auto_founds_clusters_of_several_sites_where_bonds_do_not(lam):
    """With one edge, sweeps alone reach 2 of the 4 partitions into clusters of 2 or more; splits reach all."""
    model = ss.Model(ss.SiteGraph(4, [[0, 1]]), ss.Flat(), ss.DirichletProcess(1.0, min_size=2), beta=1.0)
    chains = ss.sample(model, sweeps=2000, chains=1, lam=lam, rng=0)
    assert len(np.unique(chains.labels[0], axis=0)) == 4


@pytest.mark.parametrize("moves", ["auto", "gsw"])
def test_chains_advanced_bit_by_bit_are_those_of_sample(moves):
    model = lattice_model(side=6)
    sampler = ss.Sampler(model, 40, 2, moves, init=("one", "singletons"), rng=5)
    for sweeps in (1, 2, 17, 30):
        sampler.advance(sweeps - sampler.n_sweeps)
        seen = sampler.chains
        whole = ss.sample(model, sweeps, 2, moves, init=("one", "singletons"), rng=5)
        assert_same(seen, whole)


@pytest.mark.parametrize("moves", ["auto", "gsw"])
def test_the_last_spin_clusters_are_connected_pieces_of_clusters_that_moved_as_one(moves):
    model = lattice_model(side=8, signs=False)
    sampler = ss.Sampler(model, 60, 1, moves, lam=5.0, rng=6)
    runner, spins, bonded = sampler.runners[0], sampler.records.spin[0], 0
    before = sampler.records.best[0].copy()
    for sweep in range(60):
        runner.advance(sweep + 1)
        after = sampler.records.draw[0, sweep]
        moved_as_one = [before] if moves == "auto" else [before, after]  # other moves follow the sweep of "auto"
        assert regions_of(spins.astype(np.int32), model.graph).max() == spins.max()  # every spin-cluster is one piece
        for spin in range(int(spins.max()) + 1):
            assert all(np.unique(labels[spins == spin]).size == 1 for labels in moved_as_one)
        bonded += int(spins.max()) + 1 < spins.size
        before = after.copy()
    assert bonded > 30


def test_acceptance_rates_are_those_of_the_proposals():
    sampler = ss.Sampler(lattice_model("poisson", side=5), 200, 2, rng=4)
    sampler.advance()
    found = sampler.chains.acceptance
    for c, (split, merge, regroup, *others) in enumerate(sampler.records.move_counts):
        assert split[PROPOSED] + merge[PROPOSED] == 10 * 200 and regroup[PROPOSED] == 3 * 200
        assert not np.any(others)
        assert found["split"][c] == split[ACCEPTED] / split[PROPOSED] > 0
        assert found["merge"][c] == merge[ACCEPTED] / merge[PROPOSED] > 0
        assert found["regroup"][c] == regroup[ACCEPTED] / regroup[PROPOSED]
    plain = ss.sample(lattice_model("poisson", side=5), 5, 2, "gsw", rng=4)
    assert all(np.isnan(rate).all() for rate in plain.acceptance.values())
