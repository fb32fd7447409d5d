"""
Domains of a tissue section
===========================

Spatial omics measures genes at spots, and ``cluster_anndata`` finds domains of spots that are alike and near each
other. It reads an AnnData and writes the domains, and how certain they are, back into it. This section is synthetic:
three layers, 12 genes with as much noise as signal.
"""

from textwrap import fill

import anndata
import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

rng = np.random.default_rng(0)
row, column = np.divmod(np.arange(576), 24)
# a hexagonal grid, as Visium has
places = np.stack(
    [column + 0.5 * (row % 2), row * np.sqrt(3) / 2], axis=1
)
layer = np.digitize(
    places[:, 1] + 2.5 * np.sin(places[:, 0] / 4), [6.5, 14]
)
genes = rng.normal(size=(3, 12))[layer] + rng.normal(size=(576, 12))
adata = anndata.AnnData(genes, obsm={"spatial": places})

ss.cluster_anndata(adata, sweeps=600, rng=0)
print(fill(adata.uns["domain"]["verdict"], 90))

fig, axes = plt.subplots(2, 2, figsize=(7, 6.6), layout="constrained")
colors = plt.cm.tab10.colors
for ax, title, values in [
    (axes[0, 0], "layers", [colors[k] for k in layer]),
    (axes[0, 1], "one gene", genes[:, 0]),
    (
        axes[1, 0],
        f"{adata.obs['domain'].nunique()} domains",
        [colors[int(k)] for k in adata.obs["domain"]],
    ),
    (
        axes[1, 1],
        "how certain they are",
        adata.obs["domain_probability"],
    ),
]:
    ax.scatter(*places.T, c=values, s=28)
    ax.set_title(title)
    ax.set_aspect("equal")
    ax.set_axis_off()
