"""The mode search, against the best of all partitions."""

import numpy as np
import pytest

import exact
import model_cases
import spinseg as ss
from effort import effort, exhaustive
from spinseg.sampler import map_search
from spinseg.sampler.chain import Chain
from spinseg.sampler.map_search import Annealing
from spinseg.sampler.pack import pack
from spinseg.sampler.plan import bond_strengths, similar_sites
from spinseg.sampler.starts import greedy_labels


@pytest.mark.parametrize("name", effort(["product"], list(model_cases.likelihoods(4))))
@pytest.mark.parametrize("limits", model_cases.LIMITS, ids=str)
def test_on_six_sites_it_is_the_best_partition_there_is(name, limits):
    graph, kept = exact.graph(6)
    for prior in effort(["dirichlet process"], ["dirichlet process", "finite dirichlet"]):
        model = ss.Model(
            graph, model_cases.likelihoods(6, 3)[name], model_cases.priors(**limits)[prior], exact.MIXED[kept]
        )
        found = ss.find_map(model, 2, rng=0)
        assert found.log_posterior == pytest.approx(exact.best_log_posterior(model), abs=1e-9)
        assert found.log_posterior == pytest.approx(model.log_posterior(found.labels), abs=1e-9)
        assert found.runs.max() == found.log_posterior and 1 <= found.n_found <= 2


def test_it_is_the_same_for_a_seed_and_any_number_of_workers():
    graph = ss.SiteGraph.grid((8, 8))
    model = ss.Model(graph, model_cases.likelihoods(64, 1)["product"], ss.DirichletProcess(2.0), 0.2)
    one, other = (ss.find_map(model, 2, sweeps=60, rng=4, workers=workers) for workers in (1, 4))
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.runs, other.runs)
    visited = ss.sample(model, 500, 4, rng=0)
    assert one.log_posterior >= visited.best_log_posterior - 1e-9


@exhaustive
def test_an_exchangeable_prior_can_be_searched():
    graph, kept = exact.graph(6)
    prior = ss.ExchangeablePrior(lambda sizes: -float(sizes[0] - sizes[-1]))
    model = ss.Model(graph, model_cases.likelihoods(6)["poisson"], prior, exact.MIXED[kept])
    assert ss.find_map(model, 1, sweeps=60, rng=0).log_posterior == pytest.approx(exact.best_log_posterior(model))


def test_greedy_merging_of_clusters_takes_any_two():
    model = ss.Model(ss.SiteGraph(4, [[0, 1], [2, 3]]), ss.PoissonGamma([1, 1, 1, 90]), ss.DirichletProcess(0.5), 0.1)
    labels = greedy_labels(pack(model, model.beta), np.array([0, 0, 1, 2], np.int32))
    assert labels.tolist() == [0, 0, 0, 1]  # the sites 1 and 2 do not touch


@pytest.fixture
def search():
    """A search whose polish is next."""
    graph = ss.SiteGraph.grid((8, 8))
    model = ss.Model(graph, model_cases.likelihoods(64, 1)["product"], ss.DirichletProcess(2.0), 0.2)
    strength, _ = bond_strengths(model, None, "auto")
    start = np.zeros(64, np.int32)
    return Annealing(model, pack(model, strength, similar_sites(model)), start, 1.5, 3, np.random.default_rng(0))


@pytest.mark.parametrize("running", [False, True])
def test_a_search_that_is_told_to_stop_ends_the_chain_that_climbs(search, running, monkeypatch):
    """Before that chain begins, or while it runs."""
    made = []

    def stopping(*arguments):
        chain = Chain(*arguments)
        advance = chain.advance

        def stop_and_advance(*others):
            search.stop()
            return advance(*others)

        chain.advance = stop_and_advance
        made.append(chain)
        if not running:
            search.stop()
        return chain

    monkeypatch.setattr(map_search, "Chain", stopping)
    search.advance(4)
    assert search.stopped and search.result is None and search.done == 3
    assert made[0].stopped is running and made[0].done < made[0].record.n_clusters.size
    assert not any(chain.done for chain in made[1:])


def test_a_search_that_is_let_polish_ends(search):
    search.advance(4)
    assert search.done == 4 and search.result[2] == pytest.approx(search.model.log_posterior(search.result[0]))


def test_wrong_wishes_are_refused():
    model = ss.Model(ss.SiteGraph(2, [[0, 1]]), ss.Flat(), ss.DirichletProcess(1.0))
    for wrong in ({"runs": 0}, {"sweeps": 0}, {"rng": -1}, {"workers": 0}):
        with pytest.raises(ValueError, match="must be"):
            ss.find_map(model, **wrong)
    with pytest.raises(ValueError, match="model must be a Model"):
        ss.find_map(3)
