"""Spatial domains of an AnnData."""

from typing import Any

import numpy as np

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.clustering.clusters import LikelihoodOf, clustering_model, find_clusters
from spinseg.inference.sampler import seed_of
from spinseg.model.graph import SiteGraph
from spinseg.model.priors import DirichletProcess, PartitionPrior
from spinseg.parallel.provenance import Provenance


def cluster_anndata(
    adata: Any,
    *,
    prior: PartitionPrior | None = None,
    beta: float = 0.5,
    likelihood: LikelihoodOf = "gaussian",
    connected: bool = False,
    use_rep: str | None = None,
    graph: str = "spatial_connectivities",
    n_neighbors: int = 6,
    sweeps: int = 1000,
    chains: int = 4,
    rng: int | np.random.Generator | None = None,
    key_added: str = "domain",
) -> None:
    """Find spatial domains of spots or cells, and write them into an AnnData (extra [anndata]).

    Parameters
    ----------
    adata : AnnData
        It gets `obs[key_added]`, the domain of each observation; `obs[key_added + "_probability"]`, how sure that is;
        `obsm[key_added + "_membership"]`, the same for every domain; and `uns[key_added]`, how they were made and
        whether the chains agree. `SpatialClustering` explains these numbers.
    prior, beta, likelihood, connected, sweeps, chains
        As in `SpatialClustering`, but the default prior is `DirichletProcess(1.0)`: expression varies within domains in
        more ways than a likelihood knows, and the other default would divide them.
    use_rep : str, optional
        The features: "X", a key of `obsm`, or one of `layers`. By default "X_pca" of `obsm` where it is there and
        numbers are wanted, else "X".
    graph : str
        A key of `obsp`, such as squidpy's `gr.spatial_neighbors` makes.
    n_neighbors : int
        Where that key is not there, so many nearest neighbors of each place in `obsm["spatial"]` are used.
    rng : int, Generator or None
        The same seed gives the same domains.
    key_added : str

    Examples
    --------
    >>> import anndata, spinseg as ss
    >>> adata = anndata.AnnData(np.repeat([[0.1], [2.0]], 9, axis=0), obsm={"spatial": np.arange(36.0).reshape(18, 2)})
    >>> ss.cluster_anndata(adata, n_neighbors=2, rng=0)
    >>> adata.obs["domain"].value_counts().tolist()
    [9, 9]
    """
    try:
        import anndata
        import pandas
    except ImportError:
        raise MissingExtra("cluster_anndata needs anndata: pip install 'spinseg[anndata]'") from None
    if not isinstance(adata, anndata.AnnData):
        invalid("adata", "be an AnnData", type(adata).__name__)
    if use_rep is None:
        use_rep = "X_pca" if "X_pca" in adata.obsm and likelihood not in ("histogram", "poisson") else "X"
    sites, source = _graph(adata, graph, n_neighbors)
    prior = DirichletProcess(1.0) if prior is None else prior
    how: dict[str, Any] = {"prior": prior, "beta": beta, "likelihood": likelihood, "connected": connected}
    model = clustering_model(_features(adata, use_rep), sites, **how)
    seed = seed_of(rng)
    found = find_clusters(model, sweeps, chains, seed)
    domains = pandas.Categorical(found.labels.astype(str), [str(k) for k in range(found.membership.shape[1])])
    adata.obs[key_added] = domains
    adata.obs[f"{key_added}_probability"] = found.probability
    adata.obsm[f"{key_added}_membership"] = found.membership
    how |= {"prior": repr(prior), "likelihood": getattr(likelihood, "__name__", str(likelihood))}
    inputs = {"features": {"source": use_rep}, "graph": {"source": source}}
    provenance = Provenance.of_run({**how, "sweeps": sweeps, "chains": chains}, seed, inputs)
    adata.uns[key_added] = {**provenance.to_json(), "verdict": found.diagnostics.verdict}


def _features(adata: Any, name: str) -> Any:
    """A row for each observation, as an array or a sparse matrix."""
    for place in ({"X": adata.X}, adata.obsm, adata.layers):
        if name in place:
            return place[name]
    invalid("use_rep", "be 'X', a key of obsm, or a key of layers", name)


def _graph(adata: Any, name: str, n_neighbors: int) -> tuple[SiteGraph, str]:
    """The graph of the observations, and where it comes from."""
    if name in adata.obsp:
        return SiteGraph.from_sparse(adata.obsp[name], simplify=True), name
    if "spatial" not in adata.obsm:
        invalid("graph", 'be a key of obsp, where obsm has no "spatial"', name)
    return SiteGraph.nearest(adata.obsm["spatial"], n_neighbors), f"the {n_neighbors} nearest in spatial"
