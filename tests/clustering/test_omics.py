"""Domains of an AnnData: what is read, what is written, and that it survives a file."""

import sys

import numpy as np
import pytest
import scipy.sparse as sparse

import spinseg as ss
from spinseg.evaluation.metrics import adjusted_rand_index

anndata = pytest.importorskip("anndata", reason="the extra [anndata] is not installed")

SIDE = 14
TRUTH = np.repeat(np.arange(2), SIDE * SIDE // 2)
PLACES = np.argwhere(np.ones((SIDE, SIDE))).astype(float)
QUICK = {"sweeps": 60, "chains": 2, "rng": 0}


def spots(seed=0, **parts):
    """Counts of four genes at places on a grid, whose upper and lower halves differ in two."""
    rates = np.where(TRUTH[:, None] == 1, [16.0, 2.0, 4.0, 4.0], [2.0, 16.0, 4.0, 4.0])
    counts = np.random.default_rng(seed).poisson(rates).astype(np.float32)
    return anndata.AnnData(sparse.csr_matrix(counts), obsm={"spatial": PLACES}, **parts)


def test_domains_probabilities_and_provenance_are_written_and_survive_a_file(tmp_path):
    adata = spots(obsp={"spatial_connectivities": sparse.csr_matrix(ss.SiteGraph.grid((SIDE, SIDE)).to_sparse())})
    before = adata.X.copy()
    assert ss.cluster_anndata(adata, likelihood="histogram", **QUICK) is None
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
        assert made["settings"]["prior"] == "DirichletProcess(concentration=1.0)"
        assert made["settings"]["likelihood"] == "histogram" and made["settings"]["sweeps"] == 60
        assert made["inputs"]["features"]["source"] == "X"
        assert made["inputs"]["graph"]["source"] == "spatial_connectivities"
    assert (before != adata.X).nnz == 0 and np.array_equal(back.obsm["spatial"], PLACES)


def test_it_is_the_model_of_the_stored_graph_and_features():
    graph = ss.SiteGraph.grid((SIDE, SIDE))
    adata = spots(obsp={"spatial_connectivities": sparse.csr_matrix(2 * graph.to_sparse())})
    adata.obsm["X_pca"] = np.random.default_rng(1).normal(size=(TRUTH.size, 2)) + 3 * TRUTH[:, None]
    ss.cluster_anndata(adata, beta=0.2, key_added="layer", **QUICK)
    model = ss.Model(graph, ss.DiagonalGaussian(adata.obsm["X_pca"]), ss.DirichletProcess(1.0), beta=0.4)
    draws = ss.sample(model, 60, 2, init="greedy", burn_in=30, rng=0).labels
    expected = ss.minimize_vi(draws, max_draws=200, rng=0).labels
    assert np.array_equal(adata.obs["layer"].cat.codes, expected)
    assert adata.uns["layer"]["inputs"]["features"]["source"] == "X_pca" and "domain" not in adata.obs


def test_without_a_graph_the_nearest_places_are_neighbors():
    with_places, with_graph = spots(), spots()
    with_graph.obsp["near"] = sparse.csr_matrix(ss.SiteGraph.nearest(PLACES, 4).to_sparse())
    ss.cluster_anndata(with_places, n_neighbors=4, **QUICK)
    ss.cluster_anndata(with_graph, graph="near", **QUICK)
    assert with_places.obs["domain"].tolist() == with_graph.obs["domain"].tolist()
    assert with_places.uns["domain"]["inputs"]["graph"]["source"] == "the 4 nearest in spatial"


def test_features_may_be_a_layer():
    adata = spots()
    adata.layers["counts"] = adata.X.copy()
    adata.X = np.zeros(adata.shape, np.float32)
    ss.cluster_anndata(adata, use_rep="counts", likelihood="poisson", **QUICK)
    assert adjusted_rand_index(adata.obs["domain"].cat.codes.to_numpy(), TRUTH) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_rep": "X_umap"}, "use_rep must be 'X', a key of obsm, or a key of layers; received 'X_umap'"),
        ({"likelihood": "gauss"}, "likelihood must be one of 'gaussian', 'histogram', 'poisson'; received 'gauss'"),
        ({"n_neighbors": 0}, "k must be a whole number of at least 1; received 0"),
    ],
)
def test_wrong_settings_get_one_line_and_nothing_is_written(settings, message):
    adata = spots()
    with pytest.raises(ss.InvalidInput, match=f"^{message}$"):
        ss.cluster_anndata(adata, **settings)
    assert "domain" not in adata.obs and "domain" not in adata.uns


def test_what_has_no_places_or_is_no_anndata_is_refused():
    with pytest.raises(ss.InvalidInput, match=r'^graph must be a key of obsp, where obsm has no "spatial"; received'):
        ss.cluster_anndata(anndata.AnnData(np.ones((3, 2), np.float32)))
    with pytest.raises(ss.InvalidInput, match=r"^adata must be an AnnData; received 'ndarray'$"):
        ss.cluster_anndata(np.ones((3, 2)))


def test_without_anndata_a_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ss.MissingExtra, match=r"^cluster_anndata needs anndata: pip install 'spinseg\[anndata\]'$"):
        ss.cluster_anndata(None)
