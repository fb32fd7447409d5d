"""Figure 5: six photographs segmented by people, mean shift, rdd-CRP and Potts-DP for four values of T_min."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.image.render import mean_colors, overlay
from studies.evaluation.benchmark import evaluate, labels_path
from studies.evaluation.comparison import spread
from studies.evaluation.datasets import Example, labelme, read_labels
from studies.evaluation.methods import get_methods
from studies.evaluation.results import Row
from studies.paper import plots
from studies.paper.table1 import COLUMNS, berkeley

N_IMAGES = {False: 3, True: 1}  # from each dataset, by `quick`
HEIGHT = 1.1  # inches of a row


def reproduce(
    out: Path, root: Path, quick: bool = False, progress: plots.ProgressCallback | None = None, jobs: int | None = None
) -> list[Path]:
    """Write figure5.png and figure5.csv to the folder `out`; return their paths. Existing rows are not recomputed."""
    plots.require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    found = [spread(read(root), N_IMAGES[False])[: N_IMAGES[quick]] for read in (labelme, berkeley)]
    examples = [example for part in found for example in part]
    methods = get_methods(COLUMNS)
    place = out / "figure5-rows.csv"
    rows = evaluate(
        examples,
        methods,
        place,
        dataset="figure5",
        jobs=jobs,
        report=plots.row_reporter(progress),
    )
    facts = [(row.image, row.method, row.clusters, row.regions, row.scores[0] if row.scores else "") for row in rows]
    table = plots.write_table(out / "figure5.csv", ("image", "method", "clusters", "regions", "rand"), facts)
    by_key = {row.key: row for row in rows}
    columns = [[by_key[example.name, name] for name in COLUMNS] for example in examples]
    return [draw(out / "figure5.png", place, examples, columns), table]


def draw(path: Path, place: Path, examples: list[Example], columns: list[list[Row]]) -> Path:
    """Draw the figure, a column for each photograph; return the path."""
    pictures = [_column(example, rows, place) for example, rows in zip(examples, columns, strict=True)]
    widths = [column[0][0].shape[1] / column[0][0].shape[0] for column in pictures]
    names = ["image", "human", *COLUMNS.values()]
    figure, grid = plots.new_grid(HEIGHT * sum(widths) + 0.9, HEIGHT * len(names) * 1.12, len(names), widths)
    for across, column in enumerate(pictures):
        for down, (picture, note) in enumerate(column):
            axes = grid[down][across]
            axes.imshow(picture, interpolation="antialiased")
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_visible(False)
            axes.set_xlabel(note, fontsize=plots.SMALL - 1.5, color=plots.GRAY, labelpad=1.5)
            if across == 0:
                axes.set_ylabel(names[down], fontsize=plots.SIZE, color=plots.BLACK)
    figure.supxlabel("below each: number of clusters, Rand index", fontsize=plots.SMALL, color=plots.GRAY)
    return plots.save(figure, path)


def _column(example: Example, rows: list[Row], place: Path) -> list[tuple[NDArray[np.uint8], str]]:
    """Return the panels of one photograph from top to bottom, each with its caption."""
    image, people = example.image(), example.annotations()[0]
    column = [(image, example.name), (_painted(image, people), str(np.unique(people[people >= 0]).size))]
    for row in rows:
        if row.scores is None:
            column.append((np.full_like(image, 255), "failed"))
        else:
            painted = _painted(image, read_labels(labels_path(place, row))[0])
            column.append((painted, f"{row.clusters}, {row.scores.probabilistic_rand_index:.2f}"))
    return column


def _painted(image: NDArray[Any], labels: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Return mean colors with boundaries over them; white where unlabeled."""
    regions = np.where(labels < 0, labels.max() + 1, labels)  # what is not labeled is outlined, not faded
    return overlay(mean_colors(image, labels, start_label=0), regions, start_label=0)
