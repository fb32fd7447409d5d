"""
Points in the plane
===================

Samples were taken at scattered places. Neighbors are those that a Delaunay triangulation joins. Zones of equal level
come out with their probabilities: samples in doubt, with a ring, lie where zones meet.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

rng = np.random.default_rng(0)
places = rng.random((250, 2))
level = np.where(
    np.hypot(places[:, 0] - 0.35, places[:, 1] - 0.5) < 0.27,
    2.0,
    np.where(places[:, 0] > 0.72, 1.0, 0.0),
)
values = level + rng.normal(0, 0.4, 250)

triangles = ss.SiteGraph.delaunay(places)
found = ss.SpatialClustering(sweeps=1000, random_state=0).fit(
    values[:, None], connectivity=triangles
)
doubtful = found.probability_ < 0.9

fig, axes = plt.subplots(1, 2, figsize=(8, 4.3), layout="constrained")
axes[0].plot(
    *places[triangles.edges].transpose(2, 1, 0),
    color="0.85",
    linewidth=0.7,
    zorder=1,
)
axes[0].scatter(*places.T, c=values, s=30, zorder=2)
axes[0].set_title("values and neighbors")
axes[1].scatter(
    *places.T, c=found.labels_, s=30, cmap="tab10", vmin=0, vmax=9
)
axes[1].scatter(
    *places[doubtful].T, s=80, facecolor="none", edgecolor="black"
)
axes[1].set_title(f"{found.n_clusters_} zones")
for ax in axes:
    ax.set_aspect("equal")
    ax.set_axis_off()
