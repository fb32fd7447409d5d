"""Domains of an AnnData: what is read, what is written, and that it survives a file."""

import re
import sys

import numpy as np
import pytest
import scipy.sparse as sparse

import spinseg as ss
from spinseg.clustering.clustering import starting_partitions
from studies.evaluation.metrics import adjusted_rand_index

anndata = pytest.importorskip("anndata", reason="the extra [anndata] is not installed")

SIDE = 14
TRUTH = np.repeat(np.arange(2), SIDE * SIDE // 2)
PLACES = np.argwhere(np.ones((SIDE, SIDE))).astype(float)
QUICK = {"sweeps": 60, "chains": 2, "rng": 0}
pytestmark = pytest.mark.filterwarnings("ignore:The chains have not converged")  # which 60 sweeps may not make them


def spots(seed=0, **parts):
    """Counts of four genes at places on a grid, whose upper and lower halves differ in two."""
    rates = np.where(TRUTH[:, None] == 1, [16.0, 2.0, 4.0, 4.0], [2.0, 16.0, 4.0, 4.0])
    counts = np.random.default_rng(seed).poisson(rates).astype(np.float32)
    return anndata.AnnData(sparse.csr_matrix(counts), obsm={"spatial": PLACES}, **parts)


def test_domains_probabilities_and_provenance_are_written_and_survive_a_file(tmp_path):
    adata = spots(obsp={"spatial_connectivities": sparse.csr_matrix(ss.SiteGraph.grid((SIDE, SIDE)).to_sparse())})
    before = adata.X.copy()
    result = ss.cluster_anndata(adata, likelihood="histogram", **QUICK)
    assert np.array_equal(adata.obs["domain"].cat.codes, result.labels) and result.chains.n_chains == 2
    adata.write_h5ad(tmp_path / "spots.h5ad")
    back = anndata.read_h5ad(tmp_path / "spots.h5ad")
    for found in (adata, back):
        domain = found.obs["domain"].cat.codes.to_numpy()
        assert adjusted_rand_index(domain, TRUTH) > 0.9
        assert list(found.obs["domain"].cat.categories) == [str(k) for k in range(domain.max() + 1)]
        membership = found.obsm["domain_membership"]
        assert np.array_equal(found.obs["domain_probability"], membership[np.arange(TRUTH.size), domain])
        made = found.uns["domain"]
        assert made["spinseg"] == ss.__version__ and made["seed"] == 0 and "chain" in made["verdict"]
        assert made["settings"]["prior"].startswith("ClusterPrice(price=") and made["settings"]["beta"] > 2
        assert made["n_isolated"] == 0
        assert made["settings"]["likelihood"] == "histogram" and made["settings"]["sweeps"] == 60
        assert made["inputs"]["features"]["source"] == "X"
        assert made["inputs"]["graph"]["source"] == "spatial_connectivities"
    assert (before != adata.X).nnz == 0 and np.array_equal(back.obsm["spatial"], PLACES)


def test_it_is_the_model_of_the_stored_graph_and_features():
    graph = ss.SiteGraph.grid((SIDE, SIDE))
    adata = spots(obsp={"spatial_connectivities": sparse.csr_matrix(2 * graph.to_sparse())})
    adata.obsm["X_pca"] = np.random.default_rng(1).normal(size=(TRUTH.size, 2)) + 3 * TRUTH[:, None]
    prior = ss.DirichletProcess(1.0)
    ss.cluster_anndata(adata, prior=prior, beta=0.2, key_added="layer", **QUICK)
    model = ss.Model(graph, ss.DiagonalGaussian(adata.obsm["X_pca"]), prior, beta=0.4)
    init = starting_partitions(model, np.random.default_rng(0))
    draws = ss.sample(model, 60, 2, init=init, burn_in=30, rng=0).labels
    expected = ss.minimize_vi(draws, max_draws=200, rng=0).labels
    assert np.array_equal(adata.obs["layer"].cat.codes, expected)
    assert adata.uns["layer"]["inputs"]["features"]["source"] == "X_pca" and "domain" not in adata.obs


def test_without_a_graph_the_nearest_places_are_neighbors_and_features_may_be_a_layer():
    with_places, with_graph = spots(), spots()
    with_graph.obsp["near"] = sparse.csr_matrix(ss.SiteGraph.nearest(PLACES, 4).to_sparse())
    with_graph.layers["counts"] = with_graph.X.copy()
    with_graph.X = np.zeros(with_graph.shape, np.float32)
    ss.cluster_anndata(with_places, n_neighbors=4, likelihood="poisson", **QUICK)
    numbers = {"sweeps": np.int64(60), "chains": np.int64(2), "min_evidence": np.float32(0.03)}
    ss.cluster_anndata(with_graph, graph="near", use_rep="counts", likelihood="poisson", rng=0, **numbers)
    assert with_places.obs["domain"].tolist() == with_graph.obs["domain"].tolist()
    assert adjusted_rand_index(with_graph.obs["domain"].cat.codes.to_numpy(), TRUTH) > 0.9
    assert with_places.uns["domain"]["inputs"]["graph"]["source"] == "the 4 nearest in spatial"
    assert with_graph.uns["domain"]["settings"]["sweeps"] == 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_rep": "X_umap"}, "use_rep must be 'X', a key of obsm, or a key of layers: got 'X_umap'"),
        ({"use_rep": "cube"}, r"obsm\['cube'\] must be a table of numbers: got .*"),
        ({"likelihood": "gauss"}, "likelihood must be one of 'gaussian', 'histogram', 'poisson': got 'gauss'"),
        ({"use_rep": "spatial", "n_components": 3}, r"n_components must be at most the 2 of obsm\['spatial'\]: got 3"),
        ({"use_rep": "spatial", "n_components": "8"}, "n_components must be a whole number, \"auto\" or \"all\": got '8'"),
        ({"min_evidence": -1}, "min_evidence must be a finite number of at least 0: got -1"),
        ({"graph": "spatial"}, r"graph must be a key of obsp \('near', 'spatial_distances'\): got 'spatial'"),
        ({"graph": "spatial_distances"}, "graph must say how near .* not how far apart: got 'spatial_distances'"),
        ({"adata": np.ones((3, 2))}, "adata must be an AnnData: got 'ndarray'"),
        ({"adata": anndata.AnnData(np.ones((3, 2), np.float32))}, r"adata must say which observations are neighbors: .*"),
    ],
)  # fmt: skip
def test_wrong_input_gets_one_line_and_nothing_is_written(settings, message):
    near = sparse.csr_matrix(ss.SiteGraph.nearest(PLACES, 4).to_sparse())
    adata = spots(obsp={"near": near, "spatial_distances": near})
    adata.obsm["cube"] = np.zeros((TRUTH.size, 2, 2))
    with pytest.raises(ss.InvalidInput, match=f"^{message}$"):
        ss.cluster_anndata(**{"adata": adata, **settings})
    assert "domain" not in adata.obs and "domain" not in adata.uns


@pytest.mark.parametrize("place", ["obsm['X_pca']", "obsm['spatial']", "X"])
def test_what_is_not_finite_is_named_with_its_place(place):
    adata = spots()
    adata.obsm["X_pca"], adata.obsm["spatial"] = np.zeros((TRUTH.size, 2)), PLACES.copy()
    table = {"obsm['X_pca']": adata.obsm["X_pca"], "obsm['spatial']": adata.obsm["spatial"], "X": adata.X}[place]
    table[[3, 8], 1] = np.nan
    line = f"{place} must be finite: got \"NaN or infinity in 2 observations, first: '3'\""
    with pytest.raises(ss.InvalidInput, match=f"^{re.escape(line)}$"):
        ss.cluster_anndata(adata, use_rep="X" if place == "X" else None)


def test_spots_without_neighbors_are_counted_and_warned_of():
    graph = ss.SiteGraph.grid((SIDE, SIDE))
    kept = graph.edges[(graph.edges > 1).all(axis=1)]
    adata = spots(obsp={"spatial_connectivities": sparse.csr_matrix(ss.SiteGraph(TRUTH.size, kept).to_sparse())})
    with pytest.warns(UserWarning, match="^2 observations have no neighbors .spatial_connectivities.: the features"):
        ss.cluster_anndata(adata, likelihood="histogram", **QUICK)
    assert adata.uns["domain"]["n_isolated"] == 2


def with_components(seed):
    """Spots whose third component tells the halves apart, and 42 others are noise."""
    adata = spots(seed)
    adata.obsm["X_pca"] = np.random.default_rng(seed).normal(size=(TRUTH.size, 43))
    adata.obsm["X_pca"][:, 2] += 4 * TRUTH
    return adata


@pytest.mark.parametrize("seed", range(3))
def test_components_that_do_not_vary_in_space_are_left_out(seed):
    adata = with_components(seed)
    ss.cluster_anndata(adata, **QUICK)
    assert adata.uns["domain"]["inputs"]["features"]["components"] == [2]
    assert adjusted_rand_index(adata.obs["domain"].cat.codes.to_numpy(), TRUTH) > 0.9


def test_the_number_of_components_may_be_given():
    adata = with_components(0)
    for n_components, used in ((3, 3), ("all", 43)):
        ss.cluster_anndata(adata, n_components=n_components, sweeps=2, chains=2, rng=0)
        assert adata.uns["domain"]["inputs"]["features"]["components"] == list(range(used))
    adata.obsm["X_pca"] = np.random.default_rng(0).normal(size=(TRUTH.size, 4))
    with pytest.warns(UserWarning, match="^No component of obsm.'X_pca'. varies in space"):
        ss.cluster_anndata(adata, **QUICK)


def test_chains_that_do_not_agree_give_a_warning_and_progress_is_shown():
    adata, seen = spots(), []
    adata.obsm["X_pca"] = np.random.default_rng(0).normal(size=(TRUTH.size, 2)) + TRUTH[:, None]
    with pytest.warns(UserWarning, match="The chains have not converged"):
        ss.cluster_anndata(adata, beta=0.1, sweeps=8, chains=8, rng=0, progress=seen.append)
    assert adata.uns["domain"]["verdict"].startswith("The chains have not converged") and seen[-1].done == 64


def test_without_anndata_a_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ss.MissingExtra, match=r"^cluster_anndata needs anndata: pip install 'spinseg\[anndata\]'$"):
        ss.cluster_anndata(None)
