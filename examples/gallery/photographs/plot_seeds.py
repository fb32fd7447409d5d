"""
Correct a segmentation with a scribble
======================================

The shadow under the saucer came out as a region of its own, and you want it with the table. A scribble over both says
that they belong together: every draw obeys, and all else is found as before. Scribbles with different numbers would
keep regions apart.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from skimage.draw import line

import spinseg as ss
from spinseg.pictures import PICTURES

picture = plt.imread(PICTURES["coffee"].path)[::2, ::2]
corners = [(197, 42), (155, 45), (186, 62), (197, 100), (197, 200), (190, 210), (172, 240)]  # rows and columns
seeds = np.zeros(picture.shape[:2], int)
for start, end in pairwise(corners):
    seeds[line(*start, *end)] = 1

before = ss.segment(picture, rng=0)
after = ss.segment(picture, seeds=seeds, rng=0)

fig, axes = plt.subplots(2, 1, figsize=(6.4, 9), layout="constrained")
axes[0].plot(*np.transpose(corners)[::-1], color="white", linewidth=5)
for ax, found, title in zip(axes, [before, after], ["without seeds, and a scribble", "with the scribble"], strict=True):
    colors = plt.cm.tab20(found.labels)[..., :3]
    ax.imshow(ss.overlay(0.5 * picture / 255 + 0.5 * colors, found.labels))
    ax.set_title(title)
    ax.set_axis_off()
