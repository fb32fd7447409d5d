"""Draw what a scribble does: a segmentation, one or two scribbles over it, and the segmentation that keeps them.

    python scripts/make_seeds_picture.py

writes docs/images/seeds.jpg, from a bundled photograph. In the first row one scribble joins a shadow with the table, in
the second row two make a cup and a spoon of their parts.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from skimage.draw import line

import spinseg as ss
from spinseg.image.io import read_image
from spinseg.image.render import label_colors, overlay
from spinseg.pictures import PICTURES

PATH = Path(__file__).parents[1] / "docs" / "images" / "seeds.jpg"
COLORS = {1: "#ffffff", 2: "#000000"}
WINDOW = slice(10, 400), slice(70, 490)  # rows and columns that are shown
# The corners of the stroke of each seed, as row and column.
SCRIBBLES: list[dict[int, list[tuple[int, int]]]] = [
    {1: [(395, 85), (310, 90), (372, 125), (395, 200), (395, 400), (380, 420), (345, 480)]},
    {
        1: [(82, 416), (140, 405), (205, 387), (240, 375), (290, 365)],
        2: [(110, 230), (45, 290), (90, 370), (150, 290), (190, 225), (199, 290), (188, 365), (222, 280), (270, 228)],
    },
]


def main() -> None:
    """Segment the picture without and with the scribbles, and draw them."""
    image = read_image(PICTURES["coffee"].path)
    before = ss.segment(image, rng=0)
    figure = Figure(figsize=(11.0, 3.6 * len(SCRIBBLES)), layout="constrained")
    for row, strokes in zip(figure.subplots(len(SCRIBBLES), 3), SCRIBBLES, strict=True):
        after = ss.segment(image, seeds={seed: stroke_pixels(corners) for seed, corners in strokes.items()}, rng=0)
        titles = ("without seeds", "two scribbles" if len(strokes) > 1 else "one scribble", "with seeds")
        for axes, labels, title in zip(row, (before.labels, before.labels, after.labels), titles, strict=True):
            axes.imshow(tinted(image, labels)[WINDOW])
            axes.set_title(title, fontsize=10)
            axes.set_axis_off()
            for seed, corners in strokes.items() if title == titles[1] else ():
                axes.plot(*shifted(corners), color=COLORS[seed], linewidth=3)
    figure.savefig(PATH, dpi=100, pil_kwargs={"quality": 88})
    print(PATH)


def tinted(image: NDArray[np.uint8], labels: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Return a gray picture with each region in a color, and its outlines."""
    gray = np.repeat(image.mean(axis=-1, keepdims=True), 3, axis=-1)
    colors = label_colors(int(labels.max()))[labels - 1]
    return overlay(np.rint(0.55 * gray + 0.45 * colors).astype(np.uint8), labels)


def shifted(corners: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return columns and rows within the window."""
    top, left = WINDOW[0].start, WINDOW[1].start
    return [x - left for _, x in corners], [y - top for y, _ in corners]


def stroke_pixels(corners: list[tuple[int, int]]) -> NDArray[np.intp]:
    """Return the pixels along a stroke."""
    parts = [np.stack(line(*first, *second), axis=1) for first, second in pairwise(corners)]
    return np.concatenate(parts)


if __name__ == "__main__":
    main()
