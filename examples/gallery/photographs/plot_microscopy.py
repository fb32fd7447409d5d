"""
An image with five channels
===========================

A microscope gives a channel for each stain. ``channel_axis`` names their axis, and spinseg uses all of them. The bars
show the mean of each channel in every class.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import spinseg as ss

rng = np.random.default_rng(0)
truth = np.argmax(
    ndimage.gaussian_filter(rng.normal(size=(3, 128, 128)), (0, 9, 9)),
    axis=0,
)
stains = np.array(
    [
        [0.8, 0.1, 0.3, 0.2, 0.1],
        [0.2, 0.7, 0.3, 0.1, 0.5],
        [0.2, 0.1, 0.3, 0.7, 0.4],
    ]
)
# three kinds of tissue
image = stains[truth] + rng.normal(0, 0.12, (128, 128, 5))

seg = ss.segment(image, preset="classes", channel_axis=-1, rng=0)

fig, axes = plt.subplot_mosaic(
    "1234;5kmm", figsize=(8.4, 4.7), layout="constrained"
)
for channel in range(5):
    ax = axes[str(channel + 1)]
    ax.imshow(image[..., channel], cmap="gray", vmin=-0.2, vmax=1.1)
    ax.set_title(f"stain {channel + 1}")
    ax.set_axis_off()
axes["k"].imshow(
    seg.labels - 1,
    cmap="tab10",
    vmin=0,
    vmax=9,
    interpolation="nearest",
)
axes["k"].set_title(f"{seg.n_clusters} kinds found")
axes["k"].set_axis_off()
for kind in range(seg.n_clusters):
    means = image[seg.labels == kind + 1].mean(axis=0)
    axes["m"].bar(
        np.arange(1, 6) + 0.27 * (kind - 1),
        means,
        width=0.25,
        color=f"C{kind}",
    )
axes["m"].set(
    title="means of the kinds", xlabel="stain", xticks=range(1, 6)
)
axes["m"].spines[["top", "right"]].set_visible(False)
