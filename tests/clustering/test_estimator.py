"""SpatialClustering: an estimator that scikit-learn accepts, and clusters that neighbors make better."""

import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sparse

pytest.importorskip("sklearn", reason="the extra [sklearn] is not installed")

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import spinseg as ss
from spinseg.clustering.clustering import starting_partitions

SIDE = 16
TRUTH = np.repeat(np.arange(2), SIDE * SIDE // 2)  # two halves of a square
GRAPH = ss.SiteGraph.grid((SIDE, SIDE))
QUICK = {"sweeps": 60, "chains": 2}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def features(seed, distance=3.0):
    """Two clusters that overlap."""
    return np.random.default_rng(seed).normal(size=(TRUTH.size, 2)) + distance * TRUTH[:, None] * [1, 0]


@parametrize_with_checks([ss.SpatialClustering(sweeps=20, chains=2)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(3))
def test_neighbors_make_clusters_better(seed):
    X, alone = features(seed), ss.SpatialClustering(random_state=seed, **QUICK)
    with_neighbors = clone(alone).fit(X, connectivity=GRAPH)
    score = adjusted_rand_score(TRUTH, with_neighbors.labels_)
    assert score > 0.85 and score > adjusted_rand_score(TRUTH, alone.fit_predict(X)) + 0.05
    assert with_neighbors.n_clusters_ == with_neighbors.labels_.max() + 1 == with_neighbors.membership_.shape[1]
    assert with_neighbors.probability_.shape == TRUTH.shape and with_neighbors.probability_.mean() > 0.9
    own = with_neighbors.membership_[np.arange(TRUTH.size), with_neighbors.labels_]
    assert np.array_equal(with_neighbors.probability_, own)


def test_it_is_the_model_of_its_graph_and_features():
    noise = np.random.default_rng(2).normal(size=(TRUTH.size, 20))  # which sets the two starts apart
    X, prior = np.hstack([features(1, distance=1.5), noise]), ss.DirichletProcess(1.0)
    alone = (GRAPH.edges > 1).all(axis=1)  # the first two samples have no neighbors
    graph = ss.SiteGraph(TRUTH.size, GRAPH.edges[alone], np.full(alone.sum(), 2.0))
    estimator = ss.SpatialClustering(prior, 0.2, sweeps=np.int64(10), chains=np.int64(2), random_state=0)
    estimator.fit(X, connectivity=graph.to_sparse())
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    model = ss.Model(graph, ss.DiagonalGaussian(X), prior, beta=0.4)
    init = starting_partitions(model, np.random.default_rng(seed))
    assert not np.array_equal(*init)
    draws = ss.sample(model, 10, 2, init=init, burn_in=5, rng=seed).labels
    assert np.array_equal(estimator.draws_, draws)
    assert np.array_equal(estimator.labels_, ss.minimize_vi(draws, max_draws=200, rng=seed).labels)


def test_the_same_seed_gives_the_same_labels_and_a_clone_and_a_pickle_do_too():
    first = ss.SpatialClustering(ss.DirichletProcess(0.5), 0.3, random_state=3, **QUICK)
    first.fit(features(0), connectivity=GRAPH)
    other = clone(first).set_params(random_state=4)
    again, other = (estimator.fit(features(0), connectivity=GRAPH) for estimator in (clone(first), other))
    for same in (again, pickle.loads(pickle.dumps(first))):
        for name in ("labels_", "probability_", "membership_", "draws_"):
            assert np.array_equal(getattr(same, name), getattr(first, name)), name
    assert again.prior.concentration == 0.5 and again.diagnostics_.verdict == first.diagnostics_.verdict
    assert not np.array_equal(other.draws_, again.draws_)


def test_connectivity_may_be_what_agglomerative_clustering_takes():
    X = features(1)
    estimator = ss.SpatialClustering(sweeps=10, chains=2, random_state=0)
    expected = estimator.fit(X, connectivity=GRAPH).draws_
    with_diagonal = grid_to_graph(SIDE, SIDE)
    assert with_diagonal.diagonal().any()
    matrix = GRAPH.to_sparse()
    for connectivity in (matrix, sparse.triu(matrix), matrix.toarray(), with_diagonal, lambda X: with_diagonal):
        assert np.array_equal(estimator.fit(X, connectivity=connectivity).draws_, expected)
    assert np.array_equal(estimator.fit_predict(X, connectivity=GRAPH), estimator.labels_)


def test_a_graph_of_networkx_gets_a_line_that_says_what_to_pass():
    networkx = pytest.importorskip("networkx")
    graph, X = networkx.path_graph(6), np.arange(6.0)[:, None]
    line = "^connectivity is a networkx graph: (Di)?Graph of 6 nodes. Pass SiteGraph.from_networkx"
    for connectivity in (graph, graph.to_directed(), lambda X: graph):
        with pytest.raises(ss.InvalidInput, match=line):
            ss.SpatialClustering(sweeps=2).fit(X, connectivity=connectivity)
    ss.SpatialClustering(sweeps=2, random_state=0).fit(X, connectivity=ss.SiteGraph.from_networkx(graph))


def test_it_clusters_in_a_pipeline_and_connected_clusters_are_connected():
    pipeline = make_pipeline(StandardScaler(), ss.SpatialClustering(random_state=0, **QUICK))
    found = pipeline.fit_predict(1e3 * features(2), spatialclustering__connectivity=grid_to_graph(SIDE, SIDE))
    assert adjusted_rand_score(TRUTH, found) > 0.9
    estimator = ss.SpatialClustering(ss.TemperedProcess(1.0, 0.0), 0.3, connected=True, random_state=0, **QUICK)
    assert GRAPH.is_connected(estimator.fit(features(0, distance=0.7), connectivity=GRAPH).labels_)


def test_a_name_or_a_function_chooses_the_likelihood():
    rng, upper = np.random.default_rng(0), TRUTH[:, None] == 1
    histograms = rng.multinomial(30, np.where(upper, [0.6, 0.2, 0.2], [0.2, 0.2, 0.6]))
    counts = rng.poisson(np.where(upper, [16.0, 2.0], [2.0, 16.0]))
    cases = [("histogram", histograms), ("histogram", sparse.csr_array(histograms)), ("poisson", counts)]
    for likelihood, X in [*cases, (ss.Gaussian, features(0))]:
        found = ss.SpatialClustering(likelihood=likelihood, random_state=0, **QUICK).fit(X, connectivity=GRAPH)
        assert adjusted_rand_score(TRUTH, found.labels_) > (0.8 if likelihood is ss.Gaussian else 0.9)


def test_chains_that_do_not_agree_give_a_warning_and_progress_is_shown():
    X, seen = np.random.default_rng(0).normal(size=(60, 2)) * 1e3, []
    estimator = ss.SpatialClustering(sweeps=8, chains=8, random_state=0, progress=seen.append)
    with pytest.warns(ConvergenceWarning, match="The chains have not converged"):
        estimator.fit(X, connectivity=ss.SiteGraph.nearest(X, 3))
    assert seen[-1].done == 64


@pytest.mark.parametrize(
    ("parameters", "connectivity", "message"),
    [
        ({"likelihood": "gauss"}, None, "likelihood must be one of 'gaussian', 'histogram', 'poisson': got 'gauss'"),
        ({"min_evidence": -1}, None, "min_evidence must be a finite number of at least 0: got -1"),
        ({"prior": "dp"}, None, "prior must be a PartitionPrior: got 'dp'"),
        ({"connected": True}, None, "connectivity must join some samples where connected=True: .*: got 'no neighbors'"),
        ({}, np.ones((3, 3)), "connectivity must join the 256 samples of X: got '3 rows'"),
        ({}, np.ones((256, 2)), r"matrix must be square: got \(256, 2\)"),
    ],
)  # fmt: skip
def test_wrong_parameters_get_one_line(parameters, connectivity, message):
    with pytest.raises(ss.InvalidInput, match=f"^{message}$"):
        ss.SpatialClustering(**parameters).fit(features(0), connectivity=connectivity)


def test_without_scikit_learn_a_line_names_the_extra_and_all_else_is_imported(monkeypatch):
    assert "SpatialClustering" in dir(ss) and "SpatialClustering" not in ss.__all__  # `from spinseg import *` works
    monkeypatch.delitem(sys.modules, "spinseg.clustering.estimator")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    message = r"^SpatialClustering needs scikit-learn of at least 1.6: pip install 'spinseg\[sklearn\]'$"
    with pytest.raises(ss.MissingExtra, match=message):
        ss.__getattr__("SpatialClustering")
