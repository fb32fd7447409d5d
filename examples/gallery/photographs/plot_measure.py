"""
Measure the regions
===================

Labels count from 1, as scikit-image expects, so that ``regionprops_table`` measures what was found. ``seg.regions``
is a pandas table with a row for each region, its area, its color and how certain it is; the two are merged by their
label.
"""

import matplotlib.pyplot as plt
import pandas as pd
from skimage import data
from skimage.measure import regionprops_table

import spinseg as ss

coins = data.coins()[80:230, :]
seg = ss.segment(coins, rng=0)

measured = pd.DataFrame(
    regionprops_table(
        seg.labels,
        properties=[
            "label",
            "eccentricity",
            "equivalent_diameter_area",
        ],
    )
)
table = seg.regions.merge(measured, on="label")
round_ones = table[(table.eccentricity < 0.6) & (table.area < 5000)]
print(
    round_ones[
        ["label", "area", "probability", "equivalent_diameter_area"]
    ]
    .round(2)
    .to_string(index=False)
)

# %%
# The diameter of each coin, in pixels.
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.imshow(ss.overlay(coins, seg.labels))
centers = round_ones[
    ["centroid-1", "centroid-0", "equivalent_diameter_area"]
]
for x, y, diameter in centers.itertuples(index=False):
    ax.text(
        x,
        y,
        f"{diameter:.0f}",
        color="white",
        weight="bold",
        ha="center",
        va="center",
    )
ax.set_axis_off()
