"""Bundle the photographs and draw the pictures of README.md.

    python scripts/make_pictures.py

writes src/spinseg/pictures/*.jpg, from scikit-image's coffee.png (Rachel Michetti, CC0), chelsea.png (Stefan van der
Walt, CC0) and astronaut.png (NASA, public domain), docs/images/segmentations.jpg, their segmentations,
docs/images/detail.jpg, their segmentations at five values of detail, and docs/images/answers.jpg, ten draws of each.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from skimage import data

from spinseg.image.render import graded_boundaries, mean_colors, outlined
from spinseg.pictures import PICTURES
from spinseg.segmentation.report.pictures import spread_draws
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.segment import segment

ORIGINALS = {"coffee": data.coffee, "cat": data.chelsea, "astronaut": data.astronaut}
IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH, GAP, STRIP = 400, 6, 36
DETAILS = (0, 0.25, 0.5, 0.75, 1)
COLUMNS = ("outlines of the regions", "mean colors", "boundary probability")


def row(found: Segmentation) -> np.ndarray:
    """Return three panels: outlines over the picture, mean colors of regions, and boundary probabilities."""
    panels = [
        outlined_at(found, found.labels, WIDTH),
        mean_colors(found.picture, found.labels),
        graded_boundaries(found.picture.rgb, found.boundary_probability),
    ]
    return side_by_side(panels, WIDTH)


def details(found: Segmentation) -> np.ndarray:
    """Return the mean colors of regions, from coarse to fine."""
    each = [found.at(detail) for detail in DETAILS]
    print(f"{[seg.n_clusters for seg in each]} regions at detail {DETAILS}")
    return side_by_side([mean_colors(seg.picture, seg.labels) for seg in each], WIDTH * 3 // 5)


def draws(found: Segmentation) -> np.ndarray:
    """Return ten draws, from coarse to fine, in two rows."""
    drawn = [found.chains.labels[place] for place in spread_draws(found.chains)]
    print(f"{[int(labels.max()) + 1 for labels in drawn]} regions in draws")
    panels = [outlined_at(found, labels[found.sites], WIDTH * 3 // 5) for labels in drawn]
    rows = [side_by_side(some, WIDTH * 3 // 5) for some in (panels[:5], panels[5:])]
    return np.vstack([rows[0], np.full((GAP, rows[0].shape[1], 3), 255, np.uint8), rows[1]])


def outlined_at(found: Segmentation, labels: np.ndarray, width: int) -> np.ndarray:
    """Return the outlines of labels over the picture at a width, at which lines are as wide as at any other."""
    size = width, round(width * labels.shape[0] / labels.shape[1])
    picture = Image.fromarray(found.picture.rgb).resize(size, Image.Resampling.LANCZOS)
    return outlined(np.asarray(picture), np.asarray(Image.fromarray(labels).resize(size, Image.Resampling.NEAREST)))


def side_by_side(panels: list[np.ndarray], width: int) -> np.ndarray:
    """Return pictures in a row, each of the given width."""
    height = round(width * panels[0].shape[0] / panels[0].shape[1])
    gap, parts = np.full((height, GAP, 3), 255, np.uint8), []
    for panel in panels:
        parts += [gap, np.asarray(Image.fromarray(panel).resize((width, height), Image.Resampling.LANCZOS))]
    return np.hstack(parts[1:])


def labels_of(titles: list[str], width: int) -> np.ndarray:
    """Return a white strip with a title in the middle of each of as many columns."""
    strip = Image.new("RGB", (width, STRIP), "white")
    for i, title in enumerate(titles):
        place = ((i + 0.5) * width / len(titles), STRIP / 2)
        ImageDraw.Draw(strip).text(place, title, "black", ImageFont.load_default(22), anchor="mm")
    return np.asarray(strip)


def save(rows: list[np.ndarray], path: Path, titles: list[str] | None = None) -> None:
    """Save the rows, one below the other, under the titles of their columns."""
    gap = np.full((GAP, rows[0].shape[1], 3), 255, np.uint8)
    parts = [part for row in rows for part in (gap, row)][1:]
    head = [] if titles is None else [labels_of(titles, rows[0].shape[1])]
    Image.fromarray(np.vstack([*head, *parts])).save(path, quality=78, subsampling=0)
    print(path)


def main() -> None:
    """Write the photographs, then their segmentations."""
    for name, original in ORIGINALS.items():
        Image.fromarray(original()).save(PICTURES[name].path, quality=90)
    found = [segment(PICTURES[name].path, rng=0) for name in ORIGINALS]
    for name, each in zip(ORIGINALS, found, strict=True):
        print(f"{name}: {each.n_clusters} regions on {each.model.graph.n_sites} sites. {each.verdict}")
    save([row(each) for each in found], IMAGES / "segmentations.jpg", list(COLUMNS))
    levels = [f"detail {detail:g}" for detail in DETAILS]
    save([details(each) for each in found], IMAGES / "detail.jpg", levels)
    save([draws(each) for each in found], IMAGES / "answers.jpg")


if __name__ == "__main__":
    main()
