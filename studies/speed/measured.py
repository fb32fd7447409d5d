"""Processor time of segmenting what an instrument measured, a million pixels, beside the preset for photographs.

`Measured` analyzes such an image at its own size, and `Photo` at .3 million pixels. The images are scenes of
`studies/scenes/`.
"""

from functools import partial

import numpy as np

import spinseg as ss
from studies.scenes import render
from studies.speed.segment import processor_time

SCENES = (("blobs", 71), ("membranes", 71), ("phases", 71), ("fields", 73))  # with the random seed
SIDE = 500  # pixels of a scene, which is mirrored to twice as many: to render a larger one takes a minute


def study() -> dict[str, object]:
    """Return the seconds that each preset takes, by scene."""
    figures: dict[str, object] = {}
    for preset in ("measured", "photo"):  # load the compiled code
        ss.segment(render("blobs", (80, 80), np.random.default_rng(0)).image, preset, rng=0)
    for kind, seed in SCENES:
        quarter = render(kind, (SIDE, SIDE), np.random.default_rng(seed)).image.astype(np.float32)
        image = np.pad(quarter, ((0, SIDE), (0, SIDE), (0, 0)), mode="symmetric")
        for preset in ("measured", "photo"):
            call = partial(ss.segment, image, preset, channel_axis=-1, workers=1, rng=0)
            figures[f"{kind}, {preset}, s"] = round(processor_time(call), 1)
    return figures
