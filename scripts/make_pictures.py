"""Bundle the photographs and draw the pictures of README.md.

    python scripts/make_pictures.py

writes src/spinseg/pictures/*.jpg, from scikit-image's coffee.png (Rachel Michetti, CC0), chelsea.png (Stefan van der
Walt, CC0) and astronaut.png (NASA, public domain), and docs/images/segmentations.jpg, what `segment` makes of them.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from spinseg.image.render import mean_colours, overlay, probability_picture
from spinseg.pictures import PICTURES
from spinseg.segment import segment

ORIGINALS = {"coffee": data.coffee, "cat": data.chelsea, "astronaut": data.astronaut}
README_PICTURE = Path(__file__).parents[1] / "docs" / "images" / "segmentations.jpg"
WIDTH, GAP = 400, 6


def row(name: str) -> np.ndarray:
    """The segmentation over the picture, each cluster in its mean colour, and how sure each boundary is."""
    found = segment(PICTURES[name].path, rng=0)
    print(f"{name}: {found.n_clusters} clusters on {found.model.graph.n_sites} sites. {found.verdict}")
    panels = [
        overlay(found.picture, found.labels),
        mean_colours(found.picture, found.labels),
        probability_picture(found.boundary_probability),
    ]
    height = round(WIDTH * found.labels.shape[0] / found.labels.shape[1])
    small = [np.asarray(Image.fromarray(panel).resize((WIDTH, height), Image.Resampling.LANCZOS)) for panel in panels]
    gap = np.full((height, GAP, 3), 255, np.uint8)
    return np.hstack([small[0], gap, small[1], gap, small[2]])


def main() -> None:
    """Write the photographs, then what is found in them."""
    for name, original in ORIGINALS.items():
        Image.fromarray(original()).save(PICTURES[name].path, quality=90)
    rows = [row(name) for name in ORIGINALS]
    gap = np.full((GAP, rows[0].shape[1], 3), 255, np.uint8)
    README_PICTURE.parent.mkdir(exist_ok=True)
    Image.fromarray(np.vstack([rows[0], gap, rows[1], gap, rows[2]])).save(README_PICTURE, quality=88)
    print(README_PICTURE)


if __name__ == "__main__":
    main()
