"""
Classes of material
===================

A class of material may lie in many places. ``preset="classes"`` finds classes instead of connected regions, and
infers their number: here the four of a noisy phantom, each in its mean intensity. Thresholds see every pixel alone.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage.filters import threshold_multiotsu

import spinseg as ss

rng = np.random.default_rng(0)
y, x = np.mgrid[-1:1:160j, -1:1:160j]
truth = (x**2 + y**2 < 0.9).astype(int)
inserts = [
    (-0.4, -0.35, 0.38, 2),
    (0.45, -0.35, 0.3, 3),
    (0.05, 0.5, 0.33, 3),
    (0.65, 0.25, 0.2, 2),
    (-0.5, 0.3, 0.2, 2),
]
for row, column, radius, kind in inserts:
    truth[(y - row) ** 2 + (x - column) ** 2 < radius**2] = kind
image = np.array([0.1, 0.4, 0.7, 1.0])[truth] + rng.normal(
    0, 0.1, truth.shape
)

seg = ss.segment(image, preset="classes", rng=0)
thresholds = threshold_multiotsu(image, classes=4)

fig, axes = plt.subplots(2, 2, figsize=(6.4, 6.8), layout="constrained")
axes[0, 0].imshow(image, cmap="gray")
axes[0, 0].set_title("a slice of a phantom")
for ax, labels, title in zip(
    axes.flat[1:],
    [truth, seg.labels, np.digitize(image, thresholds)],
    [
        "the four materials",
        f"spinseg found {seg.n_clusters} kinds",
        "Otsu's thresholds, given 4",
    ],
    strict=True,
):
    means = np.bincount(labels.ravel(), image.ravel()) / np.maximum(
        np.bincount(labels.ravel()), 1
    )
    ax.imshow(means[labels], cmap="viridis", vmin=0, vmax=1.1)
    ax.set_title(title)
for ax in axes.flat:
    ax.set_axis_off()
