"""
Correct a segmentation with a scribble
======================================

The shadow under the saucer is a separate region, and you want it to join the table. A scribble over both says that
they belong together, and every draw keeps it; all else is sampled again. Scribbles with different numbers would keep
regions apart.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from skimage.draw import line

import spinseg as ss
from spinseg.pictures import PICTURES

image = plt.imread(PICTURES["coffee"].path)[::2, ::2]
# rows and columns
corners = [
    (197, 42),
    (155, 45),
    (186, 62),
    (197, 100),
    (197, 200),
    (190, 215),
    (110, 285),
]
seeds = np.zeros(image.shape[:2], int)
for start, end in pairwise(corners):
    seeds[line(*start, *end)] = 1

before = ss.segment(image, rng=0)
after = ss.segment(image, seeds=seeds, rng=0)

fig, axes = plt.subplots(2, 1, figsize=(6.4, 9), layout="constrained")
for ax, found, title in zip(
    axes,
    [before, after],
    ["without seeds, and a scribble", "with the scribble"],
    strict=True,
):
    ax.imshow(ss.mean_colors(image, found.labels))
    ax.set_title(title)
    ax.set_axis_off()
axes[0].plot(*np.transpose(corners)[::-1], color="white", linewidth=5)
