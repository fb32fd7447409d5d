"""
Cluster samples with neighbors
==============================

``SpatialClustering`` is an estimator of scikit-learn for samples that have neighbors. Beside
``AgglomerativeClustering``, which sees the same neighbors and is given the number of clusters, it finds that number,
lets a cluster lie in two places, and says how certain each label is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import AgglomerativeClustering

import spinseg as ss

rng = np.random.default_rng(0)
y, x = np.indices((30, 30)) / 30
truth = np.where(x + 0.12 * np.sin(7 * y) > 0.5, 1, 0)
truth[(y - 0.45) ** 2 + (x - 0.5) ** 2 < 0.04] = 2
truth[(y - 0.85) ** 2 + (x - 0.15) ** 2 < 0.015] = 2
X = np.array([[0, 0], [2, 0], [2, 2]])[truth.ravel()] + rng.normal(
    size=(900, 2)
)
grid = ss.SiteGraph.grid((30, 30))

spatial = ss.SpatialClustering(sweeps=1000, random_state=0).fit(
    X, connectivity=grid
)
agglomerative = AgglomerativeClustering(
    3, connectivity=grid.to_sparse()
).fit(X)

fig, axes = plt.subplots(2, 2, figsize=(6.8, 7), layout="constrained")
shown = {
    "the truth": truth,
    f"SpatialClustering found {spatial.n_clusters_}": spatial.labels_,
    "AgglomerativeClustering, given 3": agglomerative.labels_,
}
for ax, (title, labels) in zip(axes.flat, shown.items(), strict=False):
    by_feature = np.argsort(
        np.argsort(
            [
                X[labels.ravel() == k].sum()
                for k in range(labels.max() + 1)
            ]
        )
    )
    ax.imshow(
        by_feature[labels].reshape(30, 30),
        cmap="tab10",
        vmin=0,
        vmax=9,
        interpolation="nearest",
    )
    ax.set_title(title, size=11)
probability = axes[1, 1].imshow(
    spatial.probability_.reshape(30, 30), cmap="magma", vmin=0.5, vmax=1
)
axes[1, 1].set_title("how certain each label is", size=11)
fig.colorbar(probability, ax=axes[1, 1], location="bottom", shrink=0.8)
for ax in axes.flat:
    ax.set_axis_off()
