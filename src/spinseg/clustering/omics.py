"""Spatial domains of an AnnData."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from spinseg._errors import needing
from spinseg._run.progress import Report
from spinseg._run.provenance import Provenance
from spinseg._validation import check_int, counted, invalid, seed_of
from spinseg.clustering.clustering import (
    MIN_EVIDENCE,
    Clustering,
    LikelihoodOf,
    clustering_model,
    coupling_strength,
    find_clusters,
)
from spinseg.graph.site_graph import SiteGraph
from spinseg.model.priors import PartitionPrior

CONNECTIVITIES = "spatial_connectivities"  # squidpy's name for the matrix of neighbors
MIN_STANDARD_ERRORS = 4.0  # of Moran's I above 0: by chance that happens to one component of 30,000
COUNTED = ("histogram", "poisson")  # likelihoods of counts, which principal components are not


def cluster_anndata(
    adata: Any,
    *,
    prior: PartitionPrior | None = None,
    beta: float | None = None,
    likelihood: LikelihoodOf = "gaussian",
    min_evidence: float = MIN_EVIDENCE,
    connected: bool = False,
    use_rep: str | None = None,
    n_components: int | str = "auto",
    graph: str | None = None,
    n_neighbors: int = 6,
    sweeps: int = 1000,
    chains: int = 4,
    rng: int | np.random.Generator | None = None,
    key_added: str = "domain",
    progress: bool | Report | None = None,
) -> Clustering:
    """Find spatial domains of spots or cells, and write them into an AnnData (extra [anndata]).

    Parameters
    ----------
    adata : AnnData
        It gets `obs[key_added]`, the domain of each observation; `obs[key_added + "_probability"]`, its probability;
        `obsm[key_added + "_membership"]`, the same for every domain; and `uns[key_added]`, how they were made, whether
        the chains have converged (`verdict`) and how many observations have no neighbor (`n_isolated`).
        `SpatialClustering` explains these numbers.
    prior, beta, likelihood, min_evidence, connected, sweeps, chains
        As in `SpatialClustering`, with the same defaults.
    use_rep : str, optional
        The features: "X", a key of `obsm`, or one of `layers`. By default "X_pca" of `obsm` where it is there and
        numbers are wanted, else "X".
    n_components : int, "auto" or "all"
        Which components of a key of `obsm` are used: this many of the first, all, or by default those that are more
        alike at neighbors than by chance (Moran's I). Components of noise hide domains: among 30 or 50 of them a single
        domain may be more probable than the true ones.
    graph : str, optional
        A key of `obsp`, whose entries say how near two observations are. By default "spatial_connectivities", which
        squidpy's `gr.spatial_neighbors` makes, or the nearest places where there is no such key.
    n_neighbors : int
        Number of nearest neighbors of each place in `obsm["spatial"]`, where there is no graph.
    rng : int, Generator or None
        The same seed gives the same domains.
    key_added : str
    progress : bool or callable, optional
        As in `sample`.

    Returns
    -------
    Clustering
        The same domains as numbers (`labels`, `membership`, `probability`), with `diagnostics` and `chains`.

    Warns
    -----
    ConvergenceWarning
        Where the chains have not converged (a UserWarning, if scikit-learn is not installed).
    UserWarning
        Where observations have no neighbors, or no component varies in space.

    Examples
    --------
    >>> import numpy as np
    >>> import anndata, spinseg as ss
    >>> adata = anndata.AnnData(
    ...     np.repeat([[0.1], [2.0]], 9, axis=0),
    ...     obsm={"spatial": np.arange(36.0).reshape(18, 2)},
    ... )
    >>> found = ss.cluster_anndata(adata, n_neighbors=2, rng=0)
    >>> adata.obs["domain"].value_counts().tolist(), found.n_clusters
    ([9, 9], 2)
    """
    with needing("cluster_anndata needs anndata: pip install 'spinseg[anndata]'"):
        import anndata
        import pandas
    if not isinstance(adata, anndata.AnnData):
        invalid("adata", "be an AnnData", type(adata).__name__)
    if use_rep is None:
        use_rep = "X_pca" if "X_pca" in adata.obsm and likelihood not in COUNTED else "X"
    sites, source = _graph(adata, graph, n_neighbors)
    features, used = _features(adata, use_rep, n_components, sites)
    beta, seed = coupling_strength(sites, beta), seed_of(rng)
    how: dict[str, Any] = {"beta": beta, "connected": bool(connected)}
    model = clustering_model(features, sites, prior=prior, likelihood=likelihood, min_evidence=min_evidence, **how)
    n_isolated = int((np.diff(sites.start) == 0).sum())
    if n_isolated:
        whose = "has no neighbor" if n_isolated == 1 else "have no neighbors"
        line = f"{counted(n_isolated, 'observation')} {whose} ({source}): the features alone decide on their domain."
        warnings.warn(line, stacklevel=2)
    found = find_clusters(model, sweeps, chains, seed, progress)
    settings = how | {
        "prior": repr(model.prior),
        "likelihood": getattr(likelihood, "__name__", str(likelihood)),
        "min_evidence": float(min_evidence),
        "sweeps": int(sweeps),
        "chains": int(chains),
    }
    inputs: dict[str, Any] = {"features": {"source": use_rep, **used}, "graph": {"source": source}}
    about = Provenance.of_run(settings, seed, inputs).to_json()
    names = [str(k) for k in range(found.n_clusters)]
    adata.obs[key_added] = pandas.Categorical(found.labels.astype(str), names)
    adata.obs[f"{key_added}_probability"] = found.probability
    adata.obsm[f"{key_added}_membership"] = found.membership
    adata.uns[key_added] = {**about, "verdict": found.diagnostics.verdict, "n_isolated": n_isolated}
    return found


def _graph(adata: Any, name: str | None, n_neighbors: int) -> tuple[SiteGraph, str]:
    """The graph of the observations, and where it comes from."""
    if name is None and CONNECTIVITIES in adata.obsp:
        name = CONNECTIVITIES
    if name is None:
        if "spatial" not in adata.obsm:
            wanted = "run squidpy.gr.spatial_neighbors(adata), or put coordinates into obsm['spatial']"
            invalid("adata", f"say which observations are neighbors: {wanted}", f"obsm with {sorted(adata.obsm)}")
        places = np.asarray(adata.obsm["spatial"])
        _check_finite(adata, "obsm['spatial']", places)
        return SiteGraph.nearest(places, n_neighbors), f"the {n_neighbors} nearest in spatial"
    if name not in adata.obsp:
        invalid("graph", f"be a key of obsp ({', '.join(map(repr, adata.obsp)) or 'there is none'})", name)
    if name.endswith("distances"):
        invalid("graph", f"say how near observations are, as {CONNECTIVITIES!r} does, not how far apart", name)
    return SiteGraph.from_sparse(adata.obsp[name], simplify=True), name


def _features(adata: Any, name: str, n_components: int | str, graph: SiteGraph) -> tuple[Any, dict[str, list[int]]]:
    """A row for each observation, as an array or a sparse matrix, and which components of `obsm` it has."""
    if name == "X" or (name in adata.layers and name not in adata.obsm):
        table = adata.X if name == "X" else adata.layers[name]
        _check_finite(adata, "X" if name == "X" else f"layers[{name!r}]", table)
        return table, {}
    if name not in adata.obsm:
        invalid("use_rep", "be 'X', a key of obsm, or a key of layers", name)
    place, values = f"obsm[{name!r}]", adata.obsm[name]
    table = values.toarray() if sparse.issparse(values) else np.asarray(values)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        invalid(place, "be a table of numbers", f"{table.dtype} with the shape {table.shape}")
    _check_finite(adata, place, table)
    chosen = _components(table, n_components, graph, place)
    return table[:, chosen], {"components": chosen.tolist()}


def _components(table: Any, n_components: int | str, graph: SiteGraph, place: str) -> NDArray[np.intp]:
    """The columns of a representation that are used."""
    every = np.arange(table.shape[1])
    if not isinstance(n_components, str):
        n_used = check_int("n_components", n_components, at_least=1)
        if n_used > every.size:
            invalid("n_components", f"be at most the {every.size} of {place}", n_used)
        return every[:n_used]
    if n_components not in ("auto", "all"):
        invalid("n_components", 'be a whole number, "auto" or "all"', n_components)
    if n_components == "all" or graph.n_edges == 0:
        return every
    chosen = np.flatnonzero(varies_in_space(table, graph))
    if chosen.size:
        return chosen
    warnings.warn(f"No component of {place} varies in space; all are used. There may be no domains.", stacklevel=4)
    return every


def varies_in_space(values: NDArray[np.float64], graph: SiteGraph) -> NDArray[np.bool_]:
    """Whether each column of a table is more alike at neighbors than by chance, by Moran's I.

    I is the mean product of the values at the two ends of an edge, in units of their variance. Without structure in
    space it is about 0, with a standard error of one over the root of the number of edges (Moran 1950,
    doi:10.1093/biomet/37.1-2.17).
    """
    centered = values - values.mean(axis=0)
    variance = np.square(centered).mean(axis=0)
    products = graph.length @ (centered[graph.edges[:, 0]] * centered[graph.edges[:, 1]])
    least = MIN_STANDARD_ERRORS * np.sqrt(np.square(graph.length).sum())
    return (variance > 0) & (products > least * variance)


def _check_finite(adata: Any, place: str, table: Any) -> None:
    """Refuse a table with NaN or infinity, naming the first observation that has one."""
    rows = np.asarray(table.sum(axis=1)).ravel() if sparse.issparse(table) else np.asarray(table)
    if rows.dtype.kind != "f" or np.isfinite(rows).all():
        return
    bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
    value = f"NaN or infinity in {counted(bad.size, 'observation')}, first: {str(adata.obs_names[bad[0]])!r}"
    invalid(place, "be finite", value)
