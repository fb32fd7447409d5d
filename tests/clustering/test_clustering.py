"""Clusters of a table: starts, price and estimate, and how sure a label is, against all ways to match draws."""

from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import spinseg as ss
from spinseg.clustering.clustering import (
    TOTAL_COUPLING,
    ClusterPrice,
    clustering_model,
    find_clusters,
    membership,
    starting_partitions,
)
from spinseg.sampler.estimates import allowed_estimate
from studies.evaluation.metrics import adjusted_rand_index

N_SITES = 7


def partitions(n_labels):
    return st.lists(st.integers(0, n_labels - 1), min_size=N_SITES, max_size=N_SITES).map(
        lambda z: np.unique(z, return_inverse=True)[1].astype(np.int32)
    )


@given(partitions(4), partitions(3))
def test_a_draw_gets_the_labels_with_which_most_sites_keep_theirs(draw, labels):
    found = membership(draw, labels)
    names = [*range(4), *(-1 - np.arange(4))]  # a negative one matches no label
    most = max(np.sum(np.array(order)[draw] == labels) for order in permutations(names, int(draw.max()) + 1))
    assert found[np.arange(N_SITES), labels].sum() == most
    assert set(np.unique(found)) <= {0.0, 1.0} and (found.sum(axis=1) <= 1).all()
    for cluster in np.unique(draw):  # all its sites get the same label
        assert (found[draw == cluster] == found[draw == cluster][0]).all()
        for label in np.flatnonzero(found[draw == cluster][0]):  # which one of them has
            assert label in labels[draw == cluster]


@given(st.integers(0, 2**32))
def test_membership_does_not_depend_on_how_clusters_are_numbered(seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3, dtype=np.int32), 5)
    draws = np.where(rng.random((20, 15)) < 0.2, rng.integers(0, 3, (20, 15)), labels)
    shuffled = np.array([rng.permutation(3)[draw] for draw in draws])
    assert np.array_equal(membership(draws, labels), membership(shuffled.reshape(4, 5, 15), labels))
    tied = np.array([0, 1, 0, 1])
    assert np.array_equal(membership(tied, np.sort(tied)), membership(1 - tied, np.sort(tied)))


def test_couplings_are_beta_times_weights_and_by_default_add_up_to_a_constant():
    graph, values = ss.SiteGraph(3, [[0, 1], [1, 2]], weights=[1.0, 3.0]), np.arange(3.0)[:, None]
    assert clustering_model(values, graph, beta=0.5).beta.tolist() == [0.5, 1.5]
    usual = clustering_model(values, graph)
    assert usual.beta.sum() * 2 / 3 == pytest.approx(TOTAL_COUPLING) and usual.beta[1] == 3 * usual.beta[0]
    assert isinstance(usual.prior, ClusterPrice)
    alone = clustering_model(values, ss.SiteGraph(3, []))
    assert alone.beta.size == 0 and repr(alone.prior) == "DirichletProcess(concentration=1.0)"


def stripes(seed, n_noise=0, distance=3.0, side=24):
    """Three stripes of a square whose first two features differ, beside features of noise; and the truth and graph."""
    truth = np.repeat(np.arange(3), side**2 // 3)
    centers = distance * np.array([[0, 0], [1, 0], [0, 1]])[truth]
    values = np.random.default_rng(seed).normal(size=(truth.size, 2 + n_noise))
    values[:, :2] += centers
    return values, truth, ss.SiteGraph.grid((side, side))


@pytest.mark.parametrize("seed", range(2))
def test_the_second_start_finds_clusters_that_merging_of_single_sites_misses(seed):
    values, truth, graph = stripes(seed, n_noise=30, distance=4.0)
    model = clustering_model(values, graph)
    merged, greedy = starting_partitions(model, np.random.default_rng(0))
    assert adjusted_rand_index(merged, truth) > 0.5 > 0.1 > adjusted_rand_index(greedy, truth)
    assert model.log_posterior(merged) > model.log_posterior(greedy)
    found = find_clusters(model, sweeps=20, chains=2, seed=seed)  # of which one chain may be stuck
    assert adjusted_rand_index(found.labels, truth) > 0.5


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("likelihood", ["gaussian", "histogram", "poisson"])
def test_starts_are_partitions_that_the_posterior_allows(likelihood, connected):
    values, _, graph = stripes(0, side=12)
    counts = np.random.default_rng(0).poisson(np.exp(values / 3))
    tables = [values if likelihood == "gaussian" else counts, np.zeros((144, 60)), np.ones((144, 60))]  # two are flat
    for table, prior in product(tables, (None, ss.Potts(2), ss.DirichletProcess(1.0, min_size=20))):
        model = clustering_model(table, graph, likelihood=likelihood, prior=prior, connected=connected)
        starts = starting_partitions(model, np.random.default_rng(0))
        assert starts and all(model.allows(start) for start in starts)
        values_of = [model.log_posterior(start) for start in starts]
        assert values_of == sorted(values_of, reverse=True)
    assert len(starting_partitions(ss.Model(graph, ss.Flat(), ss.Potts(2)), np.random.default_rng(0))) == 1


def test_many_features_are_reduced_for_the_start():
    rng, graph = np.random.default_rng(0), ss.SiteGraph.grid((12, 12))
    truth = np.repeat(np.arange(2), 72)
    shares = rng.dirichlet(np.ones(120), 2)
    model = clustering_model(sparse.csr_array(rng.multinomial(200, shares[truth])), graph, likelihood="histogram")
    assert adjusted_rand_index(starting_partitions(model, rng)[0], truth) > 0.9


def test_a_cluster_costs_log_n_and_a_share_of_what_clusters_explain():
    values, truth, graph = stripes(0)
    free, usual, dear = (clustering_model(values, graph, min_evidence=share) for share in (0.0, 0.03, 1.2))
    assert free.prior.price == pytest.approx(np.log(truth.size))
    explained = (usual.prior.price - free.prior.price) / 0.03
    assert dear.prior.price - free.prior.price == pytest.approx(1.2 * explained)
    assert explained == pytest.approx(free.log_posterior(truth) - free.log_posterior(0 * truth), rel=0.2)
    assert [find_clusters(model, 20, 2, 0).n_clusters for model in (usual, dear)] == [3, 1]
    same = ss.TemperedProcess(np.exp(-5.0), power=0.0).tables(9)
    assert all(np.allclose(*tables) for tables in zip(ClusterPrice(5.0).tables(9), same, strict=True))
    noise = clustering_model(np.random.default_rng(0).normal(size=truth.size), graph)
    assert find_clusters(noise, 20, 2, 0).n_clusters == 1


TWO_CLUSTERS = ss.ExchangeablePrior(lambda sizes: 0.0 if sizes.size == 2 else -np.inf)


@pytest.mark.parametrize("prior", [ss.Potts(2), TWO_CLUSTERS])
def test_the_estimate_is_a_partition_that_the_prior_allows(prior):
    draws = np.repeat([[0, 1, 1], [0, 0, 1], [0, 1, 0]], 5, axis=1)[None]  # between which three clusters are best
    assert ss.minimize_vi(draws, rng=0).labels.max() == 2
    model = ss.Model(ss.SiteGraph(15, []), ss.Flat(), prior)
    labels = allowed_estimate(model, draws, "vi", max_clusters=2, rng=0)
    assert sorted(np.bincount(labels)) == [5, 10]


def test_chains_and_advice_that_can_be_followed_come_with_the_clusters():
    values, _, graph = stripes(0, distance=1.0)
    found = find_clusters(clustering_model(values, graph, beta=0.2), sweeps=8, chains=6, seed=0)
    assert found.diagnostics.converged is False and "min_evidence" in found.diagnostics.verdict
    assert "temperatures" not in found.diagnostics.verdict  # no entry point of clusterings has them
    assert found.chains.n_chains == 6
    sure = find_clusters(clustering_model(*stripes(0, distance=9.0)[::2]), sweeps=8, chains=2, seed=0)
    assert "nothing in them ever varied" in sure.diagnostics.verdict and "Start chains" not in sure.diagnostics.verdict
    assert sure.n_clusters == 3 and sure.probability.mean() == pytest.approx(1)
    assert sure.diagnostics.verdict.startswith("Two chains have converged")
