"""
Rendered scenes with exact ground truth
=======================================

Microscopes, scanners and satellites see other things than cameras, and few of their images have ground truth. So part
of the training images, and of the tests, are rendered: many kinds of scenes, recorded by an instrument with blur,
uneven light, noise, speckle or debris. Above is what the instrument records, below the region of every pixel. The
same seed gives the same scene.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss
from studies.scenes import RENDERERS, in_three_channels, render

fig, axes = plt.subplots(
    2 * -(-len(RENDERERS) // 4),
    4,
    figsize=(11.2, 28),
    layout="constrained",
)
for i, kind in enumerate(RENDERERS):
    scene = render(kind, (160, 160), np.random.default_rng(7))
    top, bottom = axes[i // 4 * 2 : i // 4 * 2 + 2, i % 4]
    image = in_three_channels(scene.image)
    top.imshow(image)
    top.set_title(kind)
    bottom.imshow(ss.overlay(image, scene.labels, start_label=0))
    bottom.set_title(f"{scene.kinds.size} regions")
for ax in axes.flat:
    ax.set_axis_off()
