"""
Does noise make more regions?
=============================

Specks are what many methods make of noise. Here a boundary has to stand out from the noise that is estimated from the
picture: with noise of a fifth of full intensity the coins are still there, and nothing else.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import spinseg as ss

clean = data.coins()[:200, :300] / 255
rng = np.random.default_rng(0)

fig, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
for row, sd in zip(axes, [0, 0.2], strict=True):
    noisy = np.clip(clean + rng.normal(0, sd, clean.shape), 0, 1)
    seg = ss.segment(noisy, rng=0)
    row[0].imshow(noisy, cmap="gray")
    row[0].set_title(f"noise of {sd:.0%}")
    row[1].imshow(ss.overlay(noisy, seg.labels))
    row[1].set_title(f"{seg.n_clusters} regions")
for ax in axes.flat:
    ax.set_axis_off()
