"""A comparison as a page to look at: the table, and the best and worst images of each method."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from spinseg._validation import InvalidInput
from spinseg.evaluation.benchmark import labels_path
from spinseg.evaluation.datasets import Example, read_labels
from spinseg.evaluation.methods import Method
from spinseg.evaluation.metrics import Scores
from spinseg.evaluation.results import Row, table_bytes
from spinseg.evaluation.summary import READ, SIGNIFICANT, Summary, summarise, written
from spinseg.image.render import overlay
from spinseg.parallel.atomic import atomic_write
from spinseg.segmentation.report.pictures import embedded

SHOWN = 3  # images at either end
MOST_ERRORS = 20  # that are listed


def write_comparison(
    title: str, out: Path, examples: Sequence[Example], methods: Sequence[Method], rows: Sequence[Row]
) -> list[Summary]:
    """The summaries of a comparison, also written beside `out`: as CSV, and as a page."""
    summaries = summarise(rows)
    page = _page(title, out, examples, methods, rows, summaries)
    cells = [["" if cell is None else cell for cell in summary] for summary in summaries]
    table = table_bytes(Summary._fields, cells)
    atomic_write(summary_path(out), lambda file: file.write(table))
    atomic_write(page_path(out), lambda file: file.write(page.encode()))
    return summaries


def summary_path(out: Path) -> Path:
    """Where the table of summaries lies."""
    return out.with_name(f"{out.stem}-summary.csv")


def page_path(out: Path) -> Path:
    """Where the page lies."""
    return out.with_suffix(".html")


def _page(
    title: str,
    out: Path,
    examples: Sequence[Example],
    methods: Sequence[Method],
    rows: Sequence[Row],
    summaries: Sequence[Summary],
) -> str:
    """The page as HTML, with the pictures in it; label images are those beside `out`."""
    by_name = {example.name: example for example in examples}
    about = {method.name: method for method in methods}
    template = Template(files("spinseg.evaluation").joinpath("page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        facts=escape(_facts(rows)),
        head="".join(f'<th class="number">{escape(heading)}</th>' for heading, _ in READ.values()),
        table="\n".join(_table_row(summary) for summary in summaries),
        errors=_errors([row for row in rows if row.error]),
        methods="\n".join(
            _section(about[summary.method], [row for row in rows if row.method == summary.method], by_name, out)
            for summary in summaries
        ),
    )


def _facts(rows: Sequence[Row]) -> str:
    images, methods = len({row.image for row in rows}), len({row.method for row in rows})
    return f"{images:,} images, {methods} methods, spinseg {rows[0].version}"


def _table_row(summary: Summary) -> str:
    """One method; bold where no significant difference from the best was found."""
    near = summary.p_value is None or summary.p_value >= SIGNIFICANT
    name = escape(summary.method)
    name = f"<strong>{name}</strong>" if near else name
    failed = f' <span class="failed">{summary.errors} failed</span>' if summary.errors else ""
    cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in written(summary))
    return f'<tr><th scope="row"><a href="#{escape(summary.method)}">{name}</a>{failed}</th>{cells}</tr>'


def _errors(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = [f"<li>{escape(row.image)}, {escape(row.method)}: {escape(row.error)}</li>" for row in rows[:MOST_ERRORS]]
    more = f"<li>and {len(rows) - MOST_ERRORS} more</li>" if len(rows) > MOST_ERRORS else ""
    return f"<h2>Failed</h2><ul>{''.join(lines)}{more}</ul>"


def _section(method: Method, rows: Sequence[Row], by_name: dict[str, Example], out: Path) -> str:
    """The best and the worst images of a method by Rand index."""
    scored = [(row.scores, row) for row in rows if row.scores is not None]
    ranked = sorted(scored, key=lambda found: -found[0].probabilistic_rand_index)
    n = min(SHOWN, len(ranked) // 2)
    best, worst = ranked[: max(n, 1)], ranked[len(ranked) - n :]
    figures = "".join(_figure(scores, row, by_name[row.image], out) for scores, row in (*best, *worst))
    return (
        f'<section id="{escape(method.name)}"><h2>{escape(method.name)}</h2><p class="facts">{escape(method.about)}. '
        f'The best {len(best)}, then the worst {len(worst)}.</p><div class="pictures">{figures}</div></section>'
    )


def _figure(scores: Scores, row: Row, example: Example, out: Path) -> str:
    """The boundaries that a method found in an image, with what they scored; only that where a file has gone."""
    try:
        drawn = overlay(example.image(), read_labels(labels_path(out, row))[0])
        shown = f'<img alt="{escape(row.image)}" src="{embedded(drawn, "JPEG", quality=80)}">'
    except (InvalidInput, OSError):
        shown = ""
    caption = (
        f"<strong>{escape(row.image)}</strong> Rand {scores.probabilistic_rand_index:.3f}, "
        f"VoI {scores.variation_of_information:.2f}, {row.clusters} cluster{'' if row.clusters == 1 else 's'}"
    )
    return f"<figure>{shown}<figcaption>{caption}</figcaption></figure>"
