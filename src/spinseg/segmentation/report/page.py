"""Pages in HTML: the report of a segmentation, and that of a folder of results."""

import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from spinseg._run.atomic import atomic_write, printable
from spinseg._validation import counted
from spinseg.image.layout import in_pixels
from spinseg.image.light import Light
from spinseg.image.picture import Picture
from spinseg.sampler.chains import Chains
from spinseg.segmentation.report.charts import bar_chart, line_chart
from spinseg.segmentation.report.pictures import (
    doubtful,
    draw_figures,
    has_kinds,
    light_figure,
    one_region_each,
    whole_figures,
)
from spinseg.segmentation.verdict import headline, kind_note, unit_of

if TYPE_CHECKING:
    from spinseg.segmentation.batch import Outcome

_FOLDER = files("spinseg.segmentation.report")
# The colors on light and on dark ground; the web app's style sheet has the same.
THEME = _FOLDER.joinpath("theme.css").read_text(encoding="utf-8").rstrip()
INDEX = "index.html"
INDEX_MARK = '<meta name="generator" content="spinseg">'  # in the page of a folder
MAX_HEAD = 2000  # characters in which it is
MAX_ROWS = 40  # of a table
SWATCH = '<span class="swatch" style="background:{0}"></span><span class="code">{0}</span>'  # a color, and its code
NUMERALS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
# Numbers of the summary: their key, name, format and meaning.
NUMBERS = (
    (
        *("agreement", "Agreement", ".2f"),
        "How well half of the draws of a chain gives the same {units}: 1 if they are equal; from 0.9 on is acceptable.",
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

# The columns of tables: their head, the CSS class of their cells, and what a cell has.
Column = tuple[str, str, Callable[[dict[str, Any]], str]]
REGION_COLUMNS: list[Column] = [
    ("Region", "number", lambda row: f"{row['region']}"),
    ("Color", "", lambda row: SWATCH.format(row["color"])),
    ("Pixels", "number pixels", lambda row: f"{row['area']:,}"),
    ("Share", "number", lambda row: f"{row['share']:.1%}"),
    ("Bounding box", "number box", lambda row: ", ".join(map(str, row["bbox"]))),
    ("Label", "number", lambda row: f"{row['label']}"),
    ("Kind", "number", lambda row: f"{row['kind']}"),
    ("Holds<br>together", "number", lambda row: _formatted(row["probability"], ".0%")),
    ("Boundary<br>probability", "number", lambda row: _formatted(row["boundary"], ".0%")),
]
BOUNDARY_COLUMNS: list[Column] = [
    ("Regions", "number", lambda row: f"{row['region']}, {row['neighbor']}"),
    ("Length", "number", lambda row: f"{row['length']:,}"),
    ("Probability", "number", lambda row: _formatted(row["probability"], ".2f")),
    ("Standard<br>error", "number", lambda row: _formatted(row["standard_error"], ".3f")),
]


def report(
    found: dict[str, Any],
    picture: Picture,
    labels: NDArray[np.int32],
    boundary_probability: NDArray[np.float32],
    chains: Chains,
    sites: NDArray[np.int32] | None = None,
    details: Mapping[float, tuple[NDArray[np.int32], int]] | None = None,
    light: Light | None = None,
) -> str:
    """The report as HTML. `found` is the summary of a segmentation; the same segmentation gives the same text.

    With the `sites` of the image it has a few draws, and with `details`, the labels and the number of regions at each,
    their outlines. Uneven `light` that was removed is shown, too.
    """
    settings, regions = found["settings"], found["regions"]
    shares = {int(k): share for k, share in found["n_clusters_posterior"].items()}
    shaded = min(chains.burn_in, chains.n_sweeps)
    unit = unit_of(settings["connected"])
    sweeps = "at every sweep" if chains.n_components == 1 else "at every sweep, its mean over the levels of detail"
    before_regions = ""
    if settings.get("regions") and not settings["connected"]:
        count = f"{found['n_regions']:,}"
        before_regions = f"; counted before clusters are cut into regions, of which the segmentation has {count}"
    hidden = {"Label"} if one_region_each(regions) else set()
    hidden |= set() if has_kinds(regions) else {"Kind"}
    in_doubt = {row["region"] for row in doubtful(regions)}  # which have numbers in the image
    listed = [row for i, row in enumerate(regions) if i < MAX_ROWS or row["region"] in in_doubt]
    outlines, others = whole_figures(found, picture, labels, boundary_probability, chains, unit, details or {})
    return _template("page.html").substitute(
        theme=THEME,
        title=escape(Path(found["source"]).name if found["source"] else "Segmentation"),
        facts=escape(_facts(found)),
        made_by=f"spinseg {found['versions']['spinseg']}, preset {settings['preset']}, random seed {found['seed']}",
        notices=_notices(found),
        numbers=_numbers(found),
        result=outlines,
        pictures=others if light is None else others + light_figure(light),
        answers="" if sites is None else _answers(chains, draw_figures(chains, picture, sites, unit)),
        log_posterior=line_chart(chains.trace("log_posterior"), "log posterior over sweeps", shaded=shaded),
        n_clusters=line_chart(chains.trace("n_clusters"), "number of clusters over sweeps", shaded=shaded),
        posterior=bar_chart(shares, "posterior of the number of clusters", "clusters"),
        at_every_sweep=sweeps + (", burn-in (shaded) included" if shaded else ""),
        after_burn_in=" after the burn-in" if shaded else "",
        before_regions=before_regions,
        regions=_table([column for column in REGION_COLUMNS if column[0] not in hidden], listed, len(regions)),
        notes=_notes(found),
        boundaries=_boundaries(found["boundaries"]),
        python=escape(f"import spinseg as ss\n{found['python']}"),
        settings=_rows(settings),
        versions=_rows(found["versions"]),
    )


def _template(name: str) -> Template:
    """A file beside this one, in which names after $ stand for contents."""
    return Template(_FOLDER.joinpath(name).read_text(encoding="utf-8"))


def _result(found: dict[str, Any]) -> str:
    """The result in one sentence: how many clusters and regions there are."""
    settings, clusters = found["settings"], counted(found["n_clusters"], "cluster")
    regions = counted(found["n_regions"], "region")
    if settings["connected"]:
        kinds = {row["kind"] for row in found["regions"]} if has_kinds(found["regions"]) else ()
        words = f"{regions} of {counted(len(kinds), 'kind')}" if kinds else regions
    else:
        words = f"{clusters} after cutting into regions" if settings.get("regions") else f"{clusters} in {regions}"
    has_levels = found["n_components"] > 1 and settings.get("detail") is not None
    level = f" at level of detail {settings['detail']:g}" if has_levels else ""
    return f"spinseg found {words}{level}."


def _facts(found: dict[str, Any]) -> str:
    """What was segmented: the superpixels and the image."""
    sites = counted(found["n_sites"], "site" if found["settings"]["sites"] == "pixels" else "superpixel")
    parts = [found.get("read_as") or in_pixels(found["shape"])]
    if len(found["shape"]) == 3:
        parts.append("of which one plane is shown")
    parts.append(f"analyzed as {sites}")
    if found.get("texture"):
        parts.append("compared by texture, not by intensity")
    words = {"outlines": "outlines from channel {}", "one_each": "one object for each bright blob of channel {}"}
    for role, text in words.items():
        if (channels := found.get(role)) is not None:
            parts.append(text.format(channels if isinstance(channels, int) else ", ".join(map(str, channels))))
    return f"Read as {', '.join(parts)}."


def _notices(found: dict[str, Any]) -> str:
    """What to read first: whether sampling was interrupted, a warning, and the result with whether it converged."""
    notices = []
    if found.get("interrupted"):
        done, planned = found["sweeps_done"], found["settings"]["sweeps"]
        of_planned = "" if planned is None else f" of {planned:,}"
        drawn = "" if found["n_clusters_posterior"] else ", and there are no probabilities yet"
        when, shown = f"after {done:,}{of_planned} sweeps", f"the best that was found by then{drawn}"
        if done == 0:
            when, shown = "before one sweep was finished", "the one that the chains started from"
        notices.append(_notice("poor", f"Sampling was interrupted {when}: the segmentation shown is {shown}."))
    is_well, words = headline(found)
    warning = found.get("warning") or ""
    verdict = found["verdict"].removeprefix(f"{warning} ")
    state = "" if is_well else " open"
    note = f'<p class="fine">{escape(kind_note(found))}</p>' if kind_note(found) else ""
    details = f'{note}<details class="fine"{state}><summary>Details</summary><p>{escape(verdict)}</p></details>'
    notices.append(
        _notice({True: "good", False: "poor", None: "unknown"}[is_well], f"{_result(found)} {words}", details)
    )
    if warning:
        first, _, advice = warning.partition(". ")
        notices.append(_notice("poor", f"{first}.", f'<p class="fine">{escape(advice)}</p>'))
    return "\n".join(notices)


def _notice(color: str, headline: str, more: str = "") -> str:
    """A sentence beside a colored bar, and more, which is HTML, in smaller type."""
    return f'<div class="notice {color}"><p class="headline">{escape(headline)}</p>{more}</div>'


def _numbers(found: dict[str, Any]) -> str:
    """Agreement, standard error, R-hat and the effective sample size, each with a sentence that says what it is."""
    levels = ", over all levels of detail together" if found["n_components"] > 1 else ""
    words = {"units": f"{unit_of(found['settings']['connected'])}s", "levels": levels}
    rows = []
    for key, name, form, meaning in NUMBERS:
        if (value := found.get(key)) is not None:
            text = value if isinstance(value, str) else format(value, form)  # JSON has no infinity
            rows.append(f"<div><dt>{name} <b>{text}</b></dt><dd>{meaning.format(**words)}</dd></div>")
    return f'<dl class="numbers">{"".join(rows)}</dl>' if rows else ""


def _answers(chains: Chains, figures: Sequence[str]) -> str:
    """A few draws, to be opened."""
    if not figures:
        return ""
    over = "levels of detail, chains and sweeps" if chains.n_components > 1 else "chains and sweeps"
    title = f"{NUMERALS[len(figures)]} draws" if len(figures) > 1 else "One draw"
    return (
        f'<details class="answers"><summary>{title}</summary><p class="note">Single draws from the posterior, spread '
        f"over {over}. No one of them is the answer: the probabilities count how often they, and all others, have a "
        'boundary.</p><div class="grid">' + "\n".join(figures) + "</div></details>"
    )


def _boundaries(boundaries: list[dict[str, Any]]) -> str:
    """The table of boundaries, the doubtful ones first; empty without one."""
    if not boundaries:
        return ""
    rows = sorted(boundaries, key=lambda row: 1.0 if row["probability"] is None else row["probability"])
    table = _table(BOUNDARY_COLUMNS, rows[:MAX_ROWS], len(rows), "more certain")
    return (
        "<section><h2>Boundaries</h2>\n"
        '<div class="wide" tabindex="0" role="region" aria-label="Table of boundaries"><table>\n'
        f"{table}\n</table></div>\n"
        '<p class="note">Treat probabilities closer than two standard errors as equal.</p></section>'
    )


def _table(columns: Sequence[Column], rows: Sequence[dict[str, Any]], n_rows: int, others: str = "smaller") -> str:
    """Head and body of a table, which ends by saying where the `others` are, of `n_rows` in all."""
    head = "".join(f'<th class="{css}">{name}</th>' for name, css, _ in columns)
    lines = ["".join(f'<td class="{css}">{cell(row)}</td>' for _, css, cell in columns) for row in rows]
    if n_rows > len(rows):
        lines.append(f'<td colspan="{len(columns)}">and {n_rows - len(rows):,} {others}, in result.json</td>')
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"


def _formatted(number: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "-" if number is None else format(number, form)


def _notes(found: dict[str, Any]) -> str:
    """What the columns mean, and how far to trust them."""
    warning = '<p class="note warning">The last two columns come from chains that have not converged.</p>\n'
    first = "first plane, row and column" if len(found["shape"]) == 3 else "first row and column"
    return (warning if found.get("probabilities_converged") is False else "") + (
        '<p class="note">Holds together: how often two superpixels of the region share a cluster; no number for a '
        "region of one superpixel. Boundary "
        "probability: how often there is a boundary, on average along the outline; a low one is the best sign of a "
        "wrong region."
        f'<span class="box"> Bounding box: {first}, and those after the last.</span></p>'
    )


def _rows(values: dict[str, Any]) -> str:
    """Names and values as rows of a table."""
    return "\n".join(
        f"<tr><th>{escape(name)}</th><td>{escape('automatic' if value is None else str(value))}</td></tr>"
        for name, value in values.items()
    )


def write_index(folder: str | os.PathLike[str], outcomes: Sequence["Outcome"]) -> Path | None:
    """Write the page of these results; None if there is a page of that name that spinseg did not write."""
    path = Path(folder) / INDEX
    if path.exists() and INDEX_MARK not in path.read_text(encoding="utf-8", errors="replace")[:MAX_HEAD]:
        return None
    done = [outcome for outcome in outcomes if outcome.summary]
    finished = [found for outcome in done if (found := outcome.summary) and not found["interrupted"]]
    facts = (
        f"{counted(len(finished), 'image')}; the chains converged on {sum(f['converged'] is True for f in finished)}."
    )
    if n_interrupted := len(done) - len(finished):
        facts += f" {n_interrupted} more interrupted: to continue, run the same command with --resume."
    made_by = ""
    if done and (first := done[0].summary):  # a call has one version and one random seed
        made_by = f" &middot; spinseg {first['versions']['spinseg']}, random seed {first['seed']}"
    failed = [f"<p>{escape(printable(outcome.error))}</p>" for outcome in outcomes if outcome.error]
    page = _template(INDEX).substitute(
        theme=THEME,
        made_by=made_by,
        facts=facts,
        cards="".join(_card(path, outcome) for outcome in done),
        failed="".join(["<h2>Not segmented</h2>\n", *failed] if failed else []),
    )
    atomic_write(path, lambda file: file.write(page.encode()))
    return path


def _card(page: Path, outcome: "Outcome") -> str:
    found = outcome.summary or {}
    path = os.path.relpath(outcome.folder, page.parent).replace(os.sep, "/")
    place = quote(os.fsencode(path))  # some names of files are no UTF-8
    name = escape(printable(Path(outcome.source).name))
    counts = [counted(found["n_regions"], "region")]
    if not found["settings"]["connected"]:
        counts.insert(0, counted(found["n_clusters"], "cluster"))
    good, words = headline(found)
    warning, _, _ = (found.get("warning") or "").partition(". ")  # the report says what to try
    if found["interrupted"]:
        good, words, warning = False, f"Interrupted after {counted(found['sweeps_done'], 'sweep')}.", ""
    return (
        f'<li><a href="{place}/report.html"><img src="{place}/overlay.png" alt="" loading="lazy"><b>{name}</b></a>'
        f"<div><p>{' in '.join(counts)}</p><p{'' if good else ' class=poor'}>{escape(words)}</p>"
        f"{f'<p class=poor>{escape(warning)}.</p>' if warning else ''}"
        f"{f'<p>{escape(note)}</p>' if (note := kind_note(found).partition(';')[0]) else ''}</div></li>\n"
    )
