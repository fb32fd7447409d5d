"""Sweeps of very many sites, which move only where they touch; and how many of their draws are kept."""

import itertools

import numpy as np
import pytest

import model_cases
import spinseg as ss
from chain_cases import assert_books, assert_same
from effort import effort, exhaustive
from model_cases import lattice as lattice_model
from spinseg.sampler import pack
from spinseg.sampler import plan as plan_module
from spinseg.sampler.kernels.moves import ROOM
from spinseg.sampler.kernels.state import Plan
from spinseg.sampler.sampler import MAX_LABELS, MIN_DRAWS, thin_to_fit


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(plan_module, "MANY_SITES", 50)


@pytest.mark.parametrize(
    "limits", [*model_cases.LIMITS[:2], {"max_size": 20}, {"min_size": 3, "max_size": 30}], ids=str
)
@pytest.mark.parametrize("name", effort(["product"], ["histogram", "gaussian", "diagonal gaussian", "product"]))
def test_local_sweeps_keep_the_books(name, limits, few_are_many):
    model = lattice_model(name, ss.PitmanYor(30.0, 0.3, **limits))  # couplings of either sign
    visited = 0
    for init, lam in (("one", None), ("singletons", 1.0)):
        chains = ss.sample(model, sweeps=40, chains=1, lam=lam, init=init, rng=2)
        assert_books(model, chains, every=4)
        sizes = [np.bincount(labels) for labels in chains.labels[0]]
        assert min(map(min, sizes)) >= limits.get("min_size", 1) and max(map(max, sizes)) <= limits.get("max_size", 144)
        visited += len(np.unique(chains.labels[0], axis=0))
    assert visited > 3


def test_only_many_sites_have_local_sweeps(monkeypatch):
    model = lattice_model("histogram")
    plans = []
    monkeypatch.setattr(plan_module, "Plan", lambda *fields: plans.append(Plan(*fields)) or plans[-1])
    for many, moves in itertools.product((144, 143), ("auto", "gsw")):
        monkeypatch.setattr(plan_module, "MANY_SITES", many)
        ss.sample(model, sweeps=2, chains=1, moves=moves, rng=0)
    assert [p.local for p in plans] == [0.0, 0.0, 0.9, 0.0]
    assert [p.attempts[:2].tolist() for p in plans] == [[10, 3], [0, 0], [1, 0], [0, 0]]


@exhaustive
def test_a_prior_without_tables_keeps_the_books_of_many_sites(few_are_many):
    model = lattice_model("product", ss.ExchangeablePrior(lambda sizes: -0.1 * float(sizes.max())), side=8)
    assert_books(model, ss.sample(model, sweeps=5, chains=2, rng=0))


def test_local_sweeps_fill_and_leave_their_tables(few_are_many, monkeypatch):
    graph = ss.SiteGraph.grid((20, 20))
    growing = ss.Model(graph, ss.PoissonGamma(np.arange(400)), ss.DirichletProcess(300.0), beta=0.5)
    shrinking = ss.Model(graph, ss.PoissonGamma(np.arange(400) // 200 * 50), ss.DirichletProcess(1.0), beta=2.0)
    for model, init in ((growing, "one"), (growing, "singletons"), (shrinking, "singletons")):
        runs = []
        for room in (lambda k: 4 * (k + 101), lambda k: 4 * ((k + ROOM) // 4 + 1)):  # never full, and all the time
            with monkeypatch.context() as patch:
                patch.setattr(pack, "_capacity", room)
                runs.append(ss.sample(model, sweeps=8, chains=1, init=init, rng=1))
        assert_books(model, runs[0], every=4)
        assert_same(*runs)
        assert (runs[0].n_clusters[0, -1] > 100) == (model is growing)


@pytest.mark.parametrize("n_draws", [1, 3, 4, 5, 100, 101, 5000])
@pytest.mark.parametrize("n_labels", [1, 1000, 2 * 481 * 321, MAX_LABELS // 100, MAX_LABELS, 10 * MAX_LABELS])
def test_draws_are_thinned_to_fit(n_draws, n_labels):
    thin = thin_to_fit(n_draws, n_labels)
    kept = n_draws // thin
    room = max(MIN_DRAWS, MAX_LABELS // n_labels)
    assert min(n_draws, MIN_DRAWS // 2) <= kept <= room
    assert kept * n_labels <= max(MAX_LABELS, MIN_DRAWS * n_labels)
    assert (thin == 1) == (n_draws <= room)
    assert thin == 1 or n_draws / (thin - 1) > room  # no more than is needed
