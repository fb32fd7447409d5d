"""The report as one HTML page: the segmentation, how sure it is, and how to repeat it."""

from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import counted
from spinseg.image.picture import Picture
from spinseg.sampler.chains import Chains
from spinseg.segmentation.report.charts import bar_chart, line_chart
from spinseg.segmentation.report.pictures import (
    DetailView,
    ReducedPicture,
    answer_figures,
    means_figure,
    one_region_each,
    outline_figure,
    probability_figure,
    spread_draws,
)
from spinseg.segmentation.verdict import headline, units

MAX_ROWS = 40  # of a table
SWATCH = '<span class="swatch" style="background:{0}"></span><span class="code">{0}</span>'  # a color, and its code
NUMERALS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
# Numbers of the summary: their key, name, format and meaning.
NUMBERS = (
    (
        *("agreement", "Agreement", ".2f"),
        "The adjusted Rand index between the {units} of single chains: 1 if they are equal; from 0.9 on is acceptable.",
    ),
    (
        *("standard_error", "Standard error", ".3f"),
        "For boundary probabilities between 0.2 and 0.8; up to 0.04 is acceptable.",
    ),
    (
        *("r_hat", "R-hat", ".2f"),
        "It compares chains from different starts{levels}: 1 when they agree; up to 1.05 is acceptable.",
    ),
    ("ess", "Effective sample size", ",.0f", "Equivalent to about this many independent samples."),
)


class Column(NamedTuple):
    """A column of a table: its head, the CSS class of its cells, and their content."""

    name: str
    css_class: str
    cell: Callable[[dict[str, Any]], str]


REGION_COLUMNS = [
    Column("Region", "number", lambda row: f"{row['region']}"),
    Column(
        *("Color", ""),
        lambda row: '<span class="swatch" style="background:{0}"></span><span class="code">{0}</span>'.format(
            row["color"]
        ),
    ),
    Column("Pixels", "number", lambda row: f"{row['area']:,}"),
    Column("Share", "number", lambda row: f"{row['share']:.1%}"),
    Column("Box", "number box", lambda row: ", ".join(map(str, row["bbox"]))),
    Column("Label", "number", lambda row: f"{row['label']}"),
    Column("Together", "number", lambda row: _formatted(row["probability"], ".0%")),
    Column("Outline", "number", lambda row: _formatted(row["boundary"], ".0%")),
]
BOUNDARY_COLUMNS = [
    Column("Regions", "number", lambda row: f"{row['region']}, {row['neighbor']}"),
    Column("Length", "number", lambda row: f"{row['length']:,}"),
    Column("Probability", "number", lambda row: _formatted(row["probability"], ".2f")),
    Column("Standard error", "number", lambda row: _formatted(row["standard_error"], ".3f")),
]


def report(
    found: dict[str, Any],
    picture: Picture,
    labels: NDArray[np.int32],
    boundary_probability: NDArray[np.float32],
    chains: Chains,
    sites: NDArray[np.int32] | None = None,
    details: Sequence[DetailView] = (),
) -> str:
    """The report as HTML. `found` is the summary of a segmentation; the same segmentation gives the same text.

    With the `sites` of the picture it has a few draws, and with `details` the outlines at each of them.
    """
    template = Template(files("spinseg.segmentation.report").joinpath("page.html").read_text(encoding="utf-8"))
    shares = {int(k): share for k, share in found["n_clusters_posterior"].items()}
    shaded = min(chains.burn_in, chains.n_sweeps)
    start_label = found["settings"]["start_label"]
    labels = labels - np.int32(start_label)  # in pictures they count from 0, with -1 outside
    shown = ReducedPicture.of(picture, labels)
    details = [view._replace(labels=view.labels - np.int32(start_label)) for view in details if len(details) > 1]
    unit = "region" if found["settings"]["connected"] else "cluster"
    figures = [means_figure(shown, labels, unit)]
    if chains.labels.shape[1] > 0:
        figures.insert(0, probability_figure(shown, boundary_probability, chains.n_components > 1))
    return template.substitute(
        title=escape(Path(found["source"]).name if found["source"] else "Segmentation"),
        facts=escape(_facts(found)),
        result=outline_figure(found["regions"], shown, labels, start_label, details, found["settings"].get("detail")),
        notices=_notices(found),
        numbers=_numbers(found),
        pictures="\n".join(figures),
        answers="" if sites is None else _answers(chains, picture, sites, unit),
        log_posterior=line_chart(chains.trace("log_posterior"), "log posterior over sweeps", shaded=shaded),
        n_clusters=line_chart(chains.trace("n_clusters"), "number of clusters over sweeps", shaded=shaded),
        posterior=bar_chart(shares, "posterior of the number of clusters", "clusters"),
        at_every_sweep=("at every sweep" if chains.n_components == 1 else "at every sweep, its mean over the details")
        + (", burn-in (shaded) included" if shaded else ""),
        after_burn_in=" after the burn-in" if shaded else "",
        before_regions=_before_regions(found),
        regions=_regions(found["regions"]),
        notes=_notes(found),
        boundaries=_boundaries(found["boundaries"]),
        python=escape(f"import spinseg as ss\n{found['python']}"),
        settings=_rows(found["settings"]),
        versions=_rows(found["versions"]),
    )


def _facts(found: dict[str, Any]) -> str:
    """The line below the title: numbers of clusters, regions, sites and pixels."""
    clusters, regions = counted(found["n_clusters"], "cluster"), counted(found["n_regions"], "region")
    parts = [f"{clusters} in {regions}"]
    if found["settings"]["connected"]:
        parts = [regions]
    elif found["settings"].get("regions"):
        parts = [f"{clusters} after cutting into regions"]
    parts.append(counted(found["n_sites"], "site"))
    parts.append(found.get("read_as") or f"{' x '.join(map(str, found['shape']))} pixels")
    if len(found["shape"]) == 3:
        parts.append("of which one plane is shown")
    return ", ".join(parts)


def _notices(found: dict[str, Any]) -> str:
    """What to read first: whether sampling was interrupted, and whether the chains have converged."""
    notices = []
    if found.get("interrupted"):
        notices.append(_notice("poor", _interrupted(found)))
    if warning := found.get("warning"):
        notices.append(_notice("poor", warning))
    is_well, words = headline(found)
    verdict = found["verdict"].removeprefix(f"{warning} ")
    notices.append(_notice({True: "good", False: "poor", None: "unknown"}[is_well], words, verdict))
    return "\n".join(notices)


def _numbers(found: dict[str, Any]) -> str:
    """Agreement, standard error, R-hat and the effective sample size, each with a sentence that says what it is."""
    words = {"units": units(found["settings"]["connected"]), "levels": ""}
    if found["n_components"] > 1:
        words["levels"] = ", over all levels of detail together"
    rows = []
    for key, name, form, meaning in NUMBERS:
        if (value := found.get(key)) is not None:
            text = value if isinstance(value, str) else format(value, form)  # JSON has no infinity
            rows.append(f"<div><dt>{name} <b>{text}</b></dt><dd>{meaning.format(**words)}</dd></div>")
    return f'<dl class="numbers">{"".join(rows)}</dl>' if rows else ""


def _answers(chains: Chains, picture: Picture, sites: NDArray[np.int32], unit: str) -> str:
    """A few draws, to be opened; `unit` is what their clusters are called."""
    drawn = spread_draws(chains)
    if not drawn:
        return ""
    over = "details, chains and sweeps" if chains.n_components > 1 else "chains and sweeps"
    title = f"{NUMERALS[len(drawn)]} answers" if len(drawn) > 1 else "One answer"
    return (
        f'<details class="answers"><summary>{title}</summary><p class="note">Single draws from the posterior, spread '
        f"over {over}. No one of them is the answer: the probabilities count how often they, and all others, have a "
        f'boundary.</p><div class="grid">{answer_figures(drawn, picture, sites, unit)}'
        "</div></details>"
    )


def _interrupted(found: dict[str, Any]) -> str:
    """After how many sweeps sampling was interrupted, and what the report shows then."""
    done, planned = found["sweeps_done"], found["settings"]["sweeps"]
    of_planned = "" if planned is None else f" of {planned:,}"
    if done == 0:
        return (
            "Sampling was interrupted before one sweep was finished: the segmentation shown is the one that the chains "
            "started from."
        )
    drawn = "" if found["n_clusters_posterior"] else ", and there are no probabilities yet"
    return (
        f"Sampling was interrupted after {done:,}{of_planned} sweeps: the segmentation shown is the best that was "
        f"found by then{drawn}."
    )


def _notice(color: str, headline: str, fine: str = "") -> str:
    """A sentence beside a colored bar, and a second one in smaller type."""
    fine = f'<p class="fine">{escape(fine)}</p>' if fine else ""
    return f'<div class="notice {color}"><p class="headline">{escape(headline)}</p>{fine}</div>'


def _before_regions(found: dict[str, Any]) -> str:
    """Why the number of clusters at the top differs from that in the charts."""
    if not found["settings"].get("regions") or found["settings"]["connected"]:
        return ""
    return f"; counted before clusters are cut into regions, of which the segmentation has {found['n_regions']:,}"


def _regions(regions: list[dict[str, Any]]) -> str:
    """The table of regions, the largest first. It has a column of labels unless each is one region."""
    columns = [column for column in REGION_COLUMNS if column.name != "Label" or not one_region_each(regions)]
    return _table(columns, regions, "smaller")


def _boundaries(boundaries: list[dict[str, Any]]) -> str:
    """The table of boundaries, the longest first; empty without one."""
    if not boundaries:
        return ""
    table = _table(BOUNDARY_COLUMNS, sorted(boundaries, key=lambda row: -row["length"]), "shorter")
    return (
        '<h2>Boundaries</h2>\n<div class="wide" tabindex="0" role="region" aria-label="Table of boundaries"><table>\n'
        f"{table}\n</table></div>\n"
        '<p class="note">Treat probabilities closer than two standard errors as equal.</p>'
    )


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]], others: str) -> str:
    """Head and body of a table, which ends by saying where the `others` are."""
    head = "".join(f'<th class="{column.css_class}">{column.name}</th>' for column in columns)
    lines = [
        "".join(f'<td class="{column.css_class}">{column.cell(row)}</td>' for column in columns)
        for row in rows[:MAX_ROWS]
    ]
    if len(rows) > MAX_ROWS:
        lines.append(f'<td colspan="{len(columns)}">and {len(rows) - MAX_ROWS:,} {others}, in result.json</td>')
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"


def _formatted(number: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "-" if number is None else format(number, form)


def _notes(found: dict[str, Any]) -> str:
    """What the columns mean, and how far to trust them."""
    notes = []
    if found.get("probabilities_converged") is False:
        notes.append('<p class="note warning">Together and Outline come from chains that have not converged.</p>')
    first = "first plane, row and column" if len(found["shape"]) == 3 else "first row and column"
    notes.append(
        '<p class="note">Together: how often two sites of the region share a cluster. Outline: how often, on average '
        f'along it, there is a boundary.<span class="box"> Box: {first}, and those after the last.</span></p>'
    )
    return "\n".join(notes)


def _rows(values: dict[str, Any]) -> str:
    """Names and values as rows of a table."""
    return "\n".join(
        f"<tr><th>{escape(name)}</th><td>{escape('automatic' if value is None else str(value))}</td></tr>"
        for name, value in values.items()
    )
