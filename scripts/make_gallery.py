"""Draw the segmentations of twelve test photographs, from the best to the worst.

    python -m studies evaluate bsds300 --root DATA --methods spinseg --out OUT/results.csv
    python scripts/make_gallery.py OUT/results.csv DATA

chooses them at evenly spaced ranks of the Rand index, and writes docs/images/gallery.png, the outlines of `photo`, and
OUT/gallery.jpg, where these are drawn over the photographs, beside the outlines of the closest annotator. The
latter is not part of the repository, since the photographs are for research use only.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from skimage.segmentation import find_boundaries

from spinseg.image.render import overlay
from studies.evaluation.benchmark import labels_path
from studies.evaluation.datasets import bsds, read_labels
from studies.evaluation.metrics import probabilistic_rand_index
from studies.evaluation.results import Row, read_rows

N_SHOWN, N_COLUMNS = 12, 4
OUTLINES = Path(__file__).parents[1] / "docs" / "images" / "gallery.png"


def main() -> None:
    """Choose the photographs, print their scores and draw them."""
    results, root = Path(sys.argv[1]), sys.argv[2]
    rows = [row for row in read_rows(results) if row.method == "spinseg" and row.scores is not None]
    rows.sort(key=lambda row: -row.scores.probabilistic_rand_index)
    ranks = [int((i + 0.5) * len(rows) / N_SHOWN) for i in range(N_SHOWN)]
    photographs = {example.name: example for example in bsds(root, "test")}
    outlines, pictures, titles = [], [], []
    for rank in ranks:
        row = rows[rank]
        labels = read_labels(labels_path(results, row))[0]
        image, annotations = photographs[row.image].image(), photographs[row.image].annotations()
        closest = max(annotations, key=lambda truth: probabilistic_rand_index(labels, [truth]))
        titles.append(title(rank, row))
        outlines.append(np.where(find_boundaries(labels), 40, 255).astype(np.uint8))
        pictures += [overlay(image, labels, start_label=0), overlay(image, closest, start_label=0)]
        print(titles[-1].replace("\n", ", "))
    draw(outlines, titles, N_COLUMNS, OUTLINES)
    pair_titles = [line for text in titles for line in (text, "the closest annotator")]
    draw(pictures, pair_titles, N_COLUMNS, results.with_name("gallery.jpg"))


def title(rank: int, row: Row) -> str:
    """Return the title of a picture."""
    return (
        f"{rank + 1}: {row.image}\nRand {row.scores.probabilistic_rand_index:.2f}, "
        f"VoI {row.scores.variation_of_information:.2f}, covering {row.scores.segmentation_covering:.2f}"
    )


def draw(pictures: list[NDArray[np.uint8]], titles: list[str], n_columns: int, path: Path) -> None:
    """Draw pictures in rows, each with a title."""
    n_rows = -(-len(pictures) // n_columns)
    figure = Figure(figsize=(3.2 * n_columns, 3.0 * n_rows), layout="constrained")
    for axes, picture, text in zip(figure.subplots(n_rows, n_columns).flat, pictures, titles, strict=True):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
        axes.set_title(text, fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
    figure.savefig(path, dpi=110)
    print(path)


if __name__ == "__main__":
    main()
