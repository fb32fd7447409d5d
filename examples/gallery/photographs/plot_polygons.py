"""
Outlines as polygons
====================

QGIS, QuPath and drawing programs want polygons. ``seg.to_geojson`` gives one for each region, with its holes and with
its row of the table of regions as properties. Here Matplotlib draws them, in their mean colors.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path

import spinseg as ss
from spinseg.pictures import PICTURES

seg = ss.segment(
    plt.imread(PICTURES["coffee"].path)[::2, ::2], detail=0.8, rng=0
)
regions = seg.to_geojson()["features"]
print(
    {
        name: regions[0]["properties"][name]
        for name in ("region", "area", "color", "probability")
    }
)

# %%
# Coordinates are pixels, x to the right and y down, from the upper left corner.
fig, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
for region in regions:
    rings = [
        Path(np.array(ring), closed=True)
        for ring in region["geometry"]["coordinates"]
    ]
    outline = Path.make_compound_path(*rings)
    ax.add_patch(
        PathPatch(
            outline,
            facecolor=region["properties"]["color"],
            edgecolor="white",
            linewidth=1.5,
        )
    )
ax.set(
    xlim=(0, 300),
    ylim=(200, 0),
    aspect="equal",
    xlabel="x in pixels",
    ylabel="y in pixels",
)
