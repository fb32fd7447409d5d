"""The HTML page of a comparison: tables and charts of scores, and the best and worst images of each method."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import numpy as np

from spinseg._run.atomic import atomic_write
from spinseg._validation import InvalidInput
from spinseg.image.render import overlay
from spinseg.segmentation.report.charts import N_COLORS, Chart
from spinseg.segmentation.report.page import THEME
from spinseg.segmentation.report.pictures import data_url
from studies.evaluation.benchmark import labels_path
from studies.evaluation.boundaries import BoundaryCounts
from studies.evaluation.calibration import N_BINS, Reliability
from studies.evaluation.datasets import Example, read_labels
from studies.evaluation.methods import Method
from studies.evaluation.metrics import Scores
from studies.evaluation.results import Row, table_bytes
from studies.evaluation.summary import (
    DISPLAYED_COLUMNS,
    OBJECT_COLUMNS,
    PROBABILITY_COLUMNS,
    SIGNIFICANCE_LEVEL,
    Columns,
    Summary,
    format_cells,
    format_groups,
    pooled_boundaries,
    pooled_reliability,
    scores_by_group,
    summarize,
)

CHART_SIZE = (332, 324)  # pixels, so that the two axes from 0 to 1 are about equal
TICKS = [(value, f"{value:g}") for value in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
F_LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the thin curves of equal F
MIN_SHARE = 0.0005  # of the length: a point of less rests on a few edges
N_EXAMPLES = 3  # of the best images and of the worst images
MAX_LISTED_ERRORS = 20


def write_comparison(
    title: str, out: Path, examples: Sequence[Example], methods: Sequence[Method], rows: Sequence[Row]
) -> list[Summary]:
    """Return the summaries of a comparison, and write them beside `out` as CSV and as a page."""
    summaries = summarize(rows)
    page = _page(title, out, examples, methods, rows, summaries)
    cells = [["" if cell is None else cell for cell in summary] for summary in summaries]
    table = table_bytes(Summary._fields, cells)
    atomic_write(summary_path(out), lambda file: file.write(table))
    atomic_write(page_path(out), lambda file: file.write(page.encode()))
    return summaries


def summary_path(out: Path) -> Path:
    """Return the path of the CSV file of summaries."""
    return out.with_name(f"{out.stem}-summary.csv")


def page_path(out: Path) -> Path:
    """Return the path of the page."""
    return out.with_suffix(".html")


def _page(
    title: str,
    out: Path,
    examples: Sequence[Example],
    methods: Sequence[Method],
    rows: Sequence[Row],
    summaries: Sequence[Summary],
) -> str:
    """Return the page as HTML with embedded images; label images are read from the folder beside `out`."""
    by_name = {example.name: example for example in examples}
    of_method = {summary.method: [row for row in rows if row.method == summary.method] for summary in summaries}
    about = {method.name: method for method in methods}
    template = Template(files("studies.evaluation").joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        theme=THEME,
        title=escape(title),
        facts=escape(_facts(rows)),
        head=_head(DISPLAYED_COLUMNS),
        table="\n".join(_table_row(summary, DISPLAYED_COLUMNS) for summary in summaries),
        objects=_objects(summaries, rows),
        probability_head=_head(PROBABILITY_COLUMNS),
        probability_table="\n".join(_table_row(summary, PROBABILITY_COLUMNS) for summary in summaries),
        charts=_charts(of_method),
        errors=_errors([row for row in rows if row.error]),
        methods="\n".join(
            _section(about[summary.method], of_method[summary.method], by_name, out) for summary in summaries
        ),
    )


def _facts(rows: Sequence[Row]) -> str:
    images, methods = len({row.image for row in rows}), len({row.method for row in rows})
    return f"{images:,} images, {methods} methods, spinseg {rows[0].version}"


def _head(columns: Columns) -> str:
    return "".join(f'<th class="number">{escape(heading)}</th>' for heading, _ in columns.values())


def _table_row(summary: Summary, columns: Columns) -> str:
    """Return the row of a method; its name is bold if it does not differ significantly from the best."""
    near_best = summary.p_value is None or summary.p_value >= SIGNIFICANCE_LEVEL
    name = escape(summary.method)
    name = f"<strong>{name}</strong>" if near_best else name
    failed = f' <span class="failed">{summary.errors} failed</span>' if summary.errors else ""
    cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in format_cells(summary, columns))
    return f'<tr><th scope="row"><a href="#{escape(summary.method)}">{name}</a>{failed}</th>{cells}</tr>'


def _objects(summaries: Sequence[Summary], rows: Sequence[Row]) -> str:
    """Return the table of scores of objects, over all images and by group; empty where there are none."""
    groups = scores_by_group(rows)
    if not groups:
        return ""
    of_groups = format_groups(groups)
    head = _head(OBJECT_COLUMNS) + "".join(f'<th class="number">{escape(group)}</th>' for group in groups)
    lines = []
    for summary in summaries:
        cells = [*format_cells(summary, OBJECT_COLUMNS), *of_groups[summary.method]]
        row = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells)
        lines.append(f'<tr><th scope="row">{escape(summary.method)}</th>{row}</tr>')
    about = "F1 of objects found with an intersection over union above .5 and above .75: means over images."
    return (
        f'<h2>Objects</h2><div class="wide"><table><thead><tr><th>method</th>{head}</tr></thead>'
        f'<tbody>{"".join(lines)}</tbody></table></div><p class="note">{about}</p>'
    )


def _charts(of_method: Mapping[str, Sequence[Row]]) -> str:
    """Return a reliability diagram of each method that has probabilities, and precision over recall of all."""
    reliability = {name: pooled_reliability(rows) for name, rows in of_method.items()}
    predicted = {name: found for name, found in reliability.items() if found is not None}
    counts = {name: pooled_boundaries(rows) for name, rows in of_method.items()}
    curves = {name: (found, name in predicted) for name, found in counts.items() if found is not None}
    diagrams = [
        f"<figure>{reliability_diagram(found, f'reliability of {name}')}<figcaption><strong>{escape(name)}</strong> "
        f"calibration error {found.calibration_error:.3f}</figcaption></figure>"
        for name, found in predicted.items()
    ]
    parts = []
    if diagrams:
        about = "On the dashed line, boundaries predicted with probability p are drawn by a share p of annotators."
        about += " Bars are shares of the length of all boundaries between sites."
        parts.append(_figures("Reliability", about, diagrams))
    if curves:
        about = "Over all thresholds of the probabilities; points are at the highest F, and thin curves have equal F."
        chart = f"{precision_recall_chart(curves, 'precision over recall')}<figcaption>{legend(curves)}</figcaption>"
        parts.append(_figures("Precision and recall of boundaries", about, [f"<figure>{chart}</figure>"]))
    return "\n".join(parts)


def reliability_diagram(found: Reliability, title: str) -> str:
    """A chart of the share of annotators who draw a boundary over its predicted probability.

    There is a point for each of N_BINS equal parts of the probabilities, at the means over boundaries weighted by
    length; bars are the share of the length that each part has.
    """
    weight, predicted, seen = (np.array(values) for values in found[:3])
    lengths = weight / max(float(weight.sum()), 1e-300)
    chart = _square_chart(title, "predicted probability", "share of annotators who draw it")
    for i, length in enumerate(lengths.tolist()):
        chart.box(((i + 0.1) / N_BINS, (i + 0.9) / N_BINS), (0.0, length), "share")
    chart.line([0, 1], [0, 1], "ideal")
    kept = lengths > MIN_SHARE
    means = predicted[kept] / weight[kept], seen[kept] / weight[kept]
    chart.line(*means, "line c0")
    for p, share, length in zip(*means, lengths[kept], strict=True):
        words = f"predicted {p:.2f}, drawn by {share:.0%} of annotators, {length:.1%} of the length"
        _add_dot(chart, p, share, "dot k0", words)
    return chart.svg()


def precision_recall_chart(curves: Mapping[str, tuple[BoundaryCounts, bool]], title: str) -> str:
    """A chart of precision over recall: a curve and its best point for each method.

    The value of a method says whether it has probabilities; without them it has the point alone. Thin curves are those
    of equal F.
    """
    chart = _square_chart(title, "recall", "precision")
    for f in F_LEVELS:
        recall = np.linspace(f / (2 - f), 1, 40)
        chart.line(recall, f * recall / (2 * recall - f), "equal")
    for i, (name, (counts, has_curve)) in enumerate(curves.items()):
        recall, precision, best = counts.recall, counts.precision, int(counts.f.argmax())
        if has_curve:
            found = np.array(counts.found) > 0
            chart.line(recall[found], precision[found], f"line c{i % N_COLORS}")
        words = f"{name}: precision {precision[best]:.2f}, recall {recall[best]:.2f}, F {counts.f[best]:.3f}"
        _add_dot(chart, recall[best], precision[best], f"dot k{i % N_COLORS}", words, radius=4.5)
    return chart.svg()


def _add_dot(chart: Chart, x: float, y: float, css: str, title: str, radius: float = 4) -> None:
    """Add a point, whose title appears under the pointer."""
    place = f'cx="{chart.x(x):.1f}" cy="{chart.y(y):.1f}" r="{radius}"'
    chart.parts.append(f'<circle class="{css}" {place}><title>{escape(title)}</title></circle>')


def _square_chart(title: str, x_name: str, y_name: str) -> Chart:
    return Chart(title, ((0.0, 1.0), TICKS, x_name), ((0.0, 1.0), TICKS, y_name), CHART_SIZE)


def legend(names: Iterable[str]) -> str:
    """The names of methods beside their colors, as HTML."""
    keys = (f'<span class="key k{i % N_COLORS}"></span>{escape(name)}' for i, name in enumerate(names))
    return " ".join(f'<span class="entry">{key}</span>' for key in keys)


def _figures(title: str, about: str, figures: Sequence[str]) -> str:
    return f'<h2>{title}</h2><p class="facts">{about}</p><div class="pictures">{"".join(figures)}</div>'


def _errors(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = [
        f"<li>{escape(row.image)}, {escape(row.method)}: {escape(row.error)}</li>" for row in rows[:MAX_LISTED_ERRORS]
    ]
    more = f"<li>and {len(rows) - MAX_LISTED_ERRORS} more</li>" if len(rows) > MAX_LISTED_ERRORS else ""
    return f"<h2>Failed</h2><ul>{''.join(lines)}{more}</ul>"


def _section(method: Method, rows: Sequence[Row], by_name: dict[str, Example], out: Path) -> str:
    """Return the section of a method, with its best and worst images by F1 of objects, or else by Rand index."""
    scored = [(row.scores, row) for row in rows if row.scores is not None]
    ranked = sorted(scored, key=lambda found: _rank(*found))
    n = min(N_EXAMPLES, len(ranked) // 2)
    best, worst = ranked[: max(n, 1)], ranked[len(ranked) - n :]
    figures = "".join(_figure(scores, row, by_name[row.image], out) for scores, row in (*best, *worst))
    return (
        f'<section id="{escape(method.name)}"><h2>{escape(method.name)}</h2><p class="facts">{escape(method.about)}. '
        f'The best {len(best)}, then the worst {len(worst)}.</p><div class="pictures">{figures}</div></section>'
    )


def _rank(scores: Scores, row: Row) -> float:
    """Return a number that is lower for a better image."""
    return -scores.probabilistic_rand_index if row.objects is None else -row.objects.f_50


def _figure(scores: Scores, row: Row, example: Example, out: Path) -> str:
    """Return an image with the boundaries found by a method, and its scores; the scores alone if a file is missing."""
    try:
        drawn = overlay(example.image(), read_labels(labels_path(out, row))[0], start_label=0)
        shown = f'<img alt="{escape(row.image)}" src="{data_url(drawn, "JPEG", quality=80, subsampling=0)}">'
    except (InvalidInput, OSError):
        shown = ""
    found = "" if row.objects is None else f"F1 {row.objects.f_50:.3f}, "
    caption = (
        f"<strong>{escape(row.image)}</strong> {found}Rand {scores.probabilistic_rand_index:.3f}, "
        f"VoI {scores.variation_of_information:.2f}, {row.clusters} cluster{'' if row.clusters == 1 else 's'}"
    )
    return f"<figure>{shown}<figcaption>{caption}</figcaption></figure>"
