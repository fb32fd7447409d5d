"""
A noisy image
=============

Many methods turn noise into small regions. spinseg estimates the noise of the image, and a boundary has to stand out
from it: with noise of a fifth of full intensity, it still finds the coins and nothing else.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import spinseg as ss

clean = data.coins()[:200, :300] / 255
noisy = np.clip(
    clean + np.random.default_rng(0).normal(0, 0.2, clean.shape), 0, 1
)
seg = ss.segment(noisy, rng=0)

fig, axes = plt.subplots(1, 3, figsize=(9, 2.5), layout="constrained")
axes[0].imshow(clean, cmap="gray")
axes[0].set_title("coins")
axes[1].imshow(noisy, cmap="gray")
axes[1].set_title("with noise of 20 %")
axes[2].imshow(ss.overlay(noisy, seg.labels))
axes[2].set_title(f"{seg.n_clusters} regions")
for ax in axes:
    ax.set_axis_off()
