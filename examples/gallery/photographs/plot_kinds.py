"""
Regions of the same kind
========================

Touching disks are regions of their own, but they look alike. The preset ``objects`` gives every region a kind: the
disks of one brightness are of one kind, and so are the background and the gaps that disks enclose. On the right is the
probability that a region is of one kind with the disk marked by a cross.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss

y, x = np.indices((120, 180))
image = np.full(y.shape, 0.1)
for row, column in [(30, 30), (30, 52), (50, 41), (85, 130), (85, 152)]:
    image[np.hypot(y - row, x - column) < 12] = 0.9
for row, column in [(30, 110), (90, 40), (90, 64)]:
    image[np.hypot(y - row, x - column) < 12] = 0.45
image += np.random.default_rng(0).normal(0, 0.03, image.shape)

seg = ss.segment(image, "objects", count_weight=0.02, rng=0)
labels = seg.labels - seg.start_label
marked = labels[30, 30]

fig, axes = plt.subplots(1, 3, figsize=(11, 2.9), layout="constrained")
axes[0].imshow(ss.overlay(image, seg.labels), interpolation="nearest")
axes[0].set_title(f"{seg.n_clusters} regions")
axes[1].imshow(seg.kinds[labels], cmap="viridis")
axes[1].set_title(f"{seg.kinds.max() + 1} kinds")
shown = axes[2].imshow(seg.same_kind[marked][labels], vmin=0, vmax=1)
axes[2].plot(30, 30, "rx")
axes[2].set_title("of one kind with x")
fig.colorbar(shown, ax=axes[2], label="probability")
for ax in axes:
    ax.set_axis_off()
