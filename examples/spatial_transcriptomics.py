"""Layers of the cortex from gene expression: `cluster_anndata` (needs the extras [anndata] and [sklearn], and igraph).

    python examples/spatial_transcriptomics.py [FOLDER [SWEEPS]]

reads Visium spots under SPINSEG_DATA or ../shared/data and draws them by annotated layer and by cluster. Defaults were
chosen with this section in view. Leiden divides 0.8 times the graph of the 15 nearest in expression plus 0.2 in space.
"""

import os
import random
import sys
from pathlib import Path

import anndata
import igraph
import numpy as np
from PIL import Image, ImageDraw
from scipy import optimize, sparse, spatial
from sklearn import metrics, mixture

import spinseg as ss
from spinseg.image.render import label_colors

DATA = Path(os.environ.get("SPINSEG_DATA", Path(__file__).parents[2] / "shared" / "data")) / "extra" / "dlpfc_151510"
FOLDER, SWEEPS = Path([*sys.argv, "examples-out"][1]), int([*sys.argv, 0, 0][2] or 300)
if not DATA.is_dir():
    sys.exit(f"There is no folder {DATA}: set SPINSEG_DATA to the folder that holds extra/dlpfc_151510.")
spots = np.loadtxt(DATA / "spots.csv", str, delimiter=",", skiprows=1)
places = spots[:, 4:6].astype(float) * [3**0.5, 1]  # on hexagons: the neighbors of a spot are at distance 2
near = ss.SiteGraph(len(places), spatial.KDTree(places).query_pairs(2.1, output_type="ndarray")).to_sparse()
truth = np.unique(spots[:, 6], return_inverse=True)[1] - 1  # -1 means not annotated
adata = anndata.AnnData(sparse.load_npz(DATA / "counts_spots_by_genes.npz"), obsp={"spatial_connectivities": near})
logs = np.log1p((counts := adata.X.toarray()) / (depth := counts.sum(axis=1, keepdims=True)) * np.median(depth))
u, strength, _ = np.linalg.svd(scaled := (logs - logs.mean(axis=0)) / logs.std(axis=0), full_matrices=False)
chance = np.linalg.svd(np.random.default_rng(0).permuted(scaled, axis=0), compute_uv=False)[0] ** 2
adata.obsm["X_pca"] = (u * strength)[:, :50]
x = (u * strength)[:, strength**2 > chance]  # for the others, the components stronger than any of shuffled genes
ss.cluster_anndata(adata, sweeps=SWEEPS, rng=0)
print(adata.uns["domain"]["verdict"])
found = {"annotated layers": truth, "spinseg": adata.obs["domain"].cat.codes.to_numpy(int)}
joint = ss.SiteGraph.from_sparse(0.8 * ss.SiteGraph.nearest(x, 15).to_sparse() + 0.2 * near)
joined = igraph.Graph(joint.n_sites, joint.edges, edge_attrs={"weight": joint.weights})
random.seed(0)  # igraph draws from it
for r in (1.0, 0.6):  # resolutions: the usual one, and one that gives six or seven clusters
    found[f"Leiden ({r})"] = np.array(joined.community_leiden("modularity", "weight", r, n_iterations=-1).membership)
found["Gaussian mixture (given 7, no graph)"] = mixture.GaussianMixture(7, n_init=3, random_state=0).fit_predict(x)
draw = ImageDraw.Draw(picture := Image.new("RGB", (550 * len(found), 600), "white"))
for panel, (name, z) in enumerate(found.items()):
    score = metrics.adjusted_rand_score(truth[truth >= 0], z[truth >= 0])
    print(caption := f"{name}: {z.max() + 1} clusters, adjusted Rand {score:.2f}")
    draw.text((550 * panel + 12, 8), caption, fill="black", font_size=19)
    own, layer = optimize.linear_sum_assignment(-np.histogram2d(z, truth, (np.arange(z.max() + 2), np.arange(8)))[0])
    colors = np.vstack([label_colors(z.max() + 8)[7:], [[225] * 3]])  # the last, -1, is not annotated
    colors[own] = label_colors(7)[layer]  # a cluster has the color of the layer matched to it, or its own
    for (r, c), k in zip(places, z, strict=True):
        draw.circle((550 * panel + 14 + 4.1 * c, 48 + 4.1 * r), 4, fill=tuple(colors[k].tolist()))
FOLDER.mkdir(parents=True, exist_ok=True)
picture.save(FOLDER / "spatial_transcriptomics.png")
print(FOLDER / "spatial_transcriptomics.png")
