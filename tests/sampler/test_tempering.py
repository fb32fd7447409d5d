"""Parallel tempering: exact for the product of its targets, and so for the first."""

from itertools import pairwise

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from effort import effort, exhaustive
from spinseg.sampler.chain import ParallelTempering, new_record
from spinseg.sampler.kernels.moves import PROPOSALS, attempts_at
from spinseg.sampler.kernels.state import PROPOSED, Plan
from spinseg.sampler.pack import new_state, pack
from spinseg.sampler.plan import bond_strengths

TEMPERATURES = (1.0, 1.7, 3.0)


def after_one_round(model, n_draws, seed, temperatures=TEMPERATURES, ladder=ParallelTempering):
    """Partitions of the rungs after one sweep and exchange from exact draws of every rung's target."""
    rng = np.random.default_rng(seed)
    rows = exact.partitions(model.graph.n_sites)
    log_p = exact.log_probabilities(model)
    strength, lams = bond_strengths(model, 1.0, "gsw")
    target = pack(model, strength)
    values = [model.log_posterior(row) for row in rows]
    tempered = [np.exp(log_p / t - np.logaddexp.reduce(log_p / t)) for t in temperatures]
    starts = [rng.choice(len(rows), n_draws, p=p) for p in tempered]
    out = np.empty((len(temperatures), n_draws, model.graph.n_sites), np.int32)
    plan, n_sites = Plan(lams, attempts_at(), 1.0, 1, 1), model.graph.n_sites
    for d in range(n_draws):
        states = [new_state(target, rows[row].astype(np.int32), values[row]) for row in (s[d] for s in starts)]
        whole = ladder(temperatures, model, target, plan, rows[0], values[0], new_record(1, n_sites), rng)
        replicas = [whole, *whole.hotter]
        for replica, state in zip(replicas, states, strict=True):
            replica.state = state
        whole.advance(1)
        for r, replica in enumerate(replicas):
            labels = replica.state.label
            out[r, d] = [labels.tolist().index(label) for label in labels]
    numbered = np.array([[np.unique(z, return_inverse=True)[1] for z in draws] for draws in out])
    return [exact.p_value(exact.frequencies(z), p) for z, p in zip(numbered, tempered, strict=True)]


@pytest.fixture(scope="module")
def model():
    graph, kept = exact.graph(5)
    return ss.Model(graph, model_cases.likelihoods(5)["product"], ss.DirichletProcess(1.3), exact.MIXED[kept])


def test_exchanges_leave_every_rung_at_its_target(model):
    assert min(after_one_round(model, effort(500, 6000), 1)) > 1e-5


@exhaustive
def test_a_wrong_exchange_is_caught(model):
    class Careless(ParallelTempering):
        def _exchange(self):
            for cold, hot in pairwise([self, *self.hotter]):
                if hot.log_posterior > cold.log_posterior:  # a search, not a sampler
                    cold.state, hot.state = hot.state, cold.state

    assert min(after_one_round(model, effort(1200, 6000), 1, ladder=Careless)) < 1e-6


def test_counts_of_attempts_stay_with_their_temperature(model):
    target = pack(model, bond_strengths(model, 1.0, "gsw")[0])
    start, rng = np.zeros(5, np.int32), np.random.default_rng(0)
    plan, record = Plan(np.ones(1), attempts_at(split_or_merge=10), 1.0, 50, 1), new_record(50, 5)
    whole = ParallelTempering([1.0, 2.0], model, target, plan, start, model.log_posterior(start), record, rng)
    hot = whole.hotter[0]
    hot.plan = hot.plan._replace(attempts=attempts_at())  # only the first tries any
    whole.advance(50)
    assert whole.swaps_accepted[0] > 0
    assert whole.record.move_counts[[PROPOSALS.index("split"), PROPOSALS.index("merge")], PROPOSED].sum() == 500
    assert not hot.record.move_counts.any()


@pytest.mark.parametrize("connected", [False, True])
def test_frequencies_of_a_tempered_run(model, connected):
    model = ss.Model(model.graph, model.likelihood, model.prior, model.beta, connected=connected)
    chains = ss.sample(model, effort(800, 6000), 4, temperatures=[1, 1.6], burn_in=100, thin=5, rng=3)
    assert exact.p_of_draws(model, chains.labels) > 1e-5
    assert chains.swap_rate.shape == (4, 1) and (chains.swap_rate > 0.2).all() and (chains.swap_rate < 1).all()
