"""
Segment a part of an image
==========================

A mask says where to look: it may have any shape, and what lies outside is neither segmented nor used. Outside pixels
have the label 0, which scikit-image takes for background.
"""

import matplotlib.pyplot as plt
import numpy as np

import spinseg as ss
from spinseg.pictures import PICTURES

image = plt.imread(PICTURES["astronaut"].path)[:280, 40:440]
y, x = np.indices(image.shape[:2])
mask = ((y - 120) / 115) ** 2 + ((x - 185) / 95) ** 2 < 1

seg = ss.segment(image, mask=mask, rng=0)
seg.plot()
