"""The paper's table: Rand index and number of clusters of mean shift, rdd-CRP and Potts-DP for four values of T_min."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from studies.evaluation.benchmark import evaluate
from studies.evaluation.comparison import spread
from studies.evaluation.datasets import Example, bsds, labelme
from studies.evaluation.methods import get_methods
from studies.evaluation.summary import Summary, format_p_value, summarize
from studies.paper import plots

COLUMNS = {
    "mean-shift": "MS",
    "rdd-crp": "rdd-CRP",
    "potts-dp": "$T_{min}=0$",
    "potts-dp-min3": "$T_{min}=3$",
    "potts-dp-min6": "$T_{min}=6$",
    "potts-dp-min9": "$T_{min}=9$",
}
LIGHT_RDD_CRP = "rdd-crp-light"  # not in the paper: with a smaller count weight
N_QUICK = {"LabelMe": 16, "Berkeley": 8}  # images


class Printed(NamedTuple):
    """A column of the paper's table: median Rand index, p-value, median number of clusters."""

    rand: float
    p_value: str
    clusters: int


PAPER = {
    "LabelMe": [
        Printed(0.7623, ".0011", 12),
        Printed(0.7759, "best", 6),
        Printed(0.7712, ".0108", 9),
        Printed(0.7692, ".0965", 6),
        Printed(0.7483, "< .001", 4),
        Printed(0.7235, "< .001", 3),
    ],
    "Berkeley": [
        Printed(0.7988, "best", 23),
        Printed(0.7748, ".0066", 9),
        Printed(0.7882, ".0566", 12),
        Printed(0.7797, ".0052", 8),
        Printed(0.7291, "< .001", 4),
        Printed(0.6881, "< .001", 3),
    ],
}


def berkeley(root: str | Path) -> list[Example]:
    """Return 200 photographs of BSDS300, as many as the paper chose at random.

    They are all 100 of test, and 100 of train that were not used to calibrate the count weight (every eighth was).
    """
    return [*bsds(root, "test", edition="bsds300"), *bsds(root, "train", edition="bsds300")[1::2]]


DATASETS: dict[str, Callable[[str | Path], list[Example]]] = {"LabelMe": labelme, "Berkeley": berkeley}


def reproduce(
    out: Path, root: Path, quick: bool = False, progress: plots.ProgressCallback | None = None, jobs: int | None = None
) -> list[Path]:
    """Write table1.csv and table1.png to the folder `out`; return their paths. Existing rows are not recomputed."""
    plots.require_matplotlib()
    methods = get_methods([*COLUMNS, LIGHT_RDD_CRP])
    lines: list[list[object]] = []
    blocks: list[list[str]] = []
    out.mkdir(parents=True, exist_ok=True)
    for name, read in DATASETS.items():
        examples = spread(read(root), N_QUICK[name] if quick else None)
        place = out / f"table1-{name.lower()}.csv"
        rows = evaluate(
            examples,
            methods,
            place,
            dataset=name,
            jobs=jobs,
            report=plots.row_reporter(progress),
        )
        summaries = summarize([row for row in rows if row.method in COLUMNS])
        summaries += summarize([row for row in rows if row.method == LIGHT_RDD_CRP])
        lines += [_cells(name, summary) for summary in summaries]
        blocks += _block(name, {summary.method: summary for summary in summaries})
    header = ["dataset", "printed_median_rand", "printed_p_value", "printed_median_clusters", *Summary._fields]
    return [plots.write_table(out / "table1.csv", header, lines), draw(out / "table1.png", blocks)]


def draw(path: Path, lines: Sequence[Sequence[str]]) -> Path:
    """Draw the table, our results in black and those of the paper in gray; return the path."""
    figure, (axes,) = plots.new_figure(9.0, 0.3 * len(lines) + 0.9)
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(len(lines) + 0.6, -1.4)
    places = [0.0, 0.1, *(0.40 + 0.11 * i for i in range(len(COLUMNS)))]
    axes.text((places[4] + places[-1]) / 2, -1.0, "(truncated) Potts-DP", ha="center", va="center", fontsize=plots.SIZE)
    for x, heading in zip(places[2:], COLUMNS.values(), strict=True):
        axes.text(x, -0.3, heading, ha="center", va="center", fontsize=plots.SIZE)
    for y, line in enumerate(lines):
        if line[0]:
            axes.axhline(y + 0.15, color=plots.GRAY, linewidth=0.8)
        color = plots.GRAY if "paper" in line[1] else plots.BLACK
        for i, (x, cell) in enumerate(zip(places, line, strict=True)):
            align = "left" if i < 2 else "center"
            shade = plots.BLACK if i == 0 else color
            axes.text(x, y + 0.6, cell, ha=align, va="center", fontsize=plots.SIZE, color=shade)
    note = "* rdd-CRP with a smaller count weight"
    axes.text(0, len(lines) + 0.5, note, ha="left", va="center", fontsize=plots.SMALL, color=plots.GRAY)
    return plots.save(figure, path)


def _cells(dataset: str, summary: Summary) -> list[object]:
    """Return a row of the CSV: our results, and the paper's if it has any; p-values are among the paper's methods."""
    if summary.method not in COLUMNS:
        return [dataset, "", "", "", *("" if name == "p_value" else cell for name, cell in summary._asdict().items())]
    printed = PAPER[dataset][list(COLUMNS).index(summary.method)]
    p_value = {"p_value": "best" if summary.p_value is None else summary.p_value}
    return [dataset, *printed, *(summary._asdict() | p_value).values()]


def _block(dataset: str, summaries: Mapping[str, Summary]) -> list[list[str]]:
    """Return the drawn rows of one dataset: those of the paper, ours, and rdd-CRP with another count weight.

    A method that failed on every photograph has no summary, and blank cells.
    """
    printed = PAPER[dataset]

    def ours(text_of: Callable[[Summary], str]) -> list[str]:
        return [text_of(summaries[method]) if method in summaries else "" for method in COLUMNS]

    def light(text_of: Callable[[Summary], str]) -> list[str]:
        text = text_of(summaries[LIGHT_RDD_CRP]) if LIGHT_RDD_CRP in summaries else ""
        return ["", text, *[""] * (len(COLUMNS) - 2)]

    return [
        [dataset, "median Rand, paper", *(f"{one.rand:.4f}" for one in printed)],
        ["", "median Rand", *ours(lambda one: f"{one.median_rand:.4f}")],
        ["", "changed as below *", *light(lambda one: f"{one.median_rand:.4f}")],
        ["", "p, paper", *(one.p_value for one in printed)],
        ["", "p", *ours(lambda one: format_p_value(one.p_value))],
        ["", "median clusters, paper", *(f"{one.clusters}" for one in printed)],
        ["", "median clusters", *ours(lambda one: f"{one.median_clusters:g}")],
        ["", "changed as below *", *light(lambda one: f"{one.median_clusters:g}")],
        ["", "median pieces", *ours(lambda one: f"{one.median_regions:g}")],
    ]
