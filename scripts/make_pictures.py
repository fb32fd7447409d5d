"""Bundle the photographs and draw the pictures of README.md.

    python scripts/make_pictures.py

writes src/spinseg/pictures/*.jpg, from scikit-image's coffee.png (Rachel Michetti, CC0), chelsea.png (Stefan van der
Walt, CC0) and astronaut.png (NASA, public domain), docs/images/segmentations.jpg, their segmentations, and
docs/images/detail.jpg, their segmentations at five values of detail.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from spinseg.image.render import mean_colors, overlay, probability_picture
from spinseg.pictures import PICTURES
from spinseg.segmentation.segment import segment

ORIGINALS = {"coffee": data.coffee, "cat": data.chelsea, "astronaut": data.astronaut}
IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, GAP = 400, 6
DETAILS = (0, 0.25, 0.5, 0.75, 1)


def row(name: str) -> np.ndarray:
    """Return three panels: boundaries over the picture, mean colors of clusters, and boundary probabilities."""
    found = segment(PICTURES[name].path, rng=0)
    print(f"{name}: {found.n_clusters} clusters on {found.model.graph.n_sites} sites. {found.verdict}")
    panels = [
        overlay(found.picture, found.labels),
        mean_colors(found.picture, found.labels),
        probability_picture(found.boundary_probability),
    ]
    return side_by_side(panels, WIDTH)


def details(name: str) -> np.ndarray:
    """Return the mean colors of clusters, from coarse to fine."""
    sampled = segment(PICTURES[name].path, rng=0)
    found = [sampled.at(detail) for detail in DETAILS]
    print(f"{name}: {[seg.n_clusters for seg in found]} clusters at detail {DETAILS}")
    return side_by_side([mean_colors(seg.picture, seg.labels) for seg in found], WIDTH * 3 // 5)


def side_by_side(panels: list[np.ndarray], width: int) -> np.ndarray:
    """Return pictures in a row, each of the given width."""
    height = round(width * panels[0].shape[0] / panels[0].shape[1])
    gap, parts = np.full((height, GAP, 3), 255, np.uint8), []
    for panel in panels:
        parts += [gap, np.asarray(Image.fromarray(panel).resize((width, height), Image.Resampling.LANCZOS))]
    return np.hstack(parts[1:])


def save(rows: list[np.ndarray], path: Path) -> None:
    """Save the rows, one below the other, as one picture."""
    gap = np.full((GAP, rows[0].shape[1], 3), 255, np.uint8)
    Image.fromarray(np.vstack([part for row in rows for part in (gap, row)][1:])).save(path, quality=88)
    print(path)


def main() -> None:
    """Write the photographs, then their segmentations."""
    for name, original in ORIGINALS.items():
        Image.fromarray(original()).save(PICTURES[name].path, quality=90)
    save([row(name) for name in ORIGINALS], IMAGES / "segmentations.jpg")
    save([details(name) for name in ORIGINALS], IMAGES / "detail.jpg")


if __name__ == "__main__":
    main()
