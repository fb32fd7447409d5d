"""The page of a folder of results: a card for each image, with its outlines, its counts and its warning."""

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from spinseg._run.atomic import atomic_write, printable
from spinseg._validation import counted
from spinseg.segmentation.report.page import THEME
from spinseg.segmentation.verdict import headline, kind_note

if TYPE_CHECKING:
    from spinseg.segmentation.batch import Outcome

NAME = "index.html"
MARK = '<meta name="generator" content="spinseg">'
HEAD = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{MARK}
<title>Segmented images - spinseg</title>
<style>
{THEME}
body {{ margin: 0 auto; padding: 2rem 1.25rem; max-width: 1180px; color: var(--ink); background: var(--ground);
  font: 16px/1.5 system-ui, sans-serif; }}
ul {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 230px), 1fr)); gap: 1.25rem;
  padding: 0; list-style: none; }}
li {{ border: 1px solid var(--rule); border-radius: 4px; overflow: hidden; }}
li a {{ color: inherit; overflow-wrap: anywhere; }}
li b {{ display: block; padding: .6rem .8rem 0; }}
li img {{ display: block; width: 100%; height: 170px; object-fit: contain; background: #222; }}
li div {{ padding: 0 .8rem .6rem; }}
h1 {{ margin: 0; font-size: 1.7rem; }}
p {{ margin: .2rem 0; color: var(--quiet); font-size: .9rem; }}
p.poor {{ color: var(--warning); }}
</style>
</head>
<body>
<main>
"""


def write_index(folder: str | os.PathLike[str], outcomes: Sequence["Outcome"]) -> Path | None:
    """Write the page of these results; None if there is a page of that name that spinseg did not write."""
    path = Path(folder) / NAME
    if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace")[: len(HEAD)]:
        return None
    done = [outcome for outcome in outcomes if outcome.summary]
    n_converged = sum(outcome.summary["converged"] is True for outcome in done if outcome.summary)
    facts = f"{counted(len(done), 'image')}; the chains converged on {n_converged}."
    made_by = ""
    if done and (first := done[0].summary):  # a call has one version and one random seed
        made_by = f" &middot; spinseg {first['versions']['spinseg']}, random seed {first['seed']}"
    failed = [f"<p>{escape(printable(outcome.error))}</p>" for outcome in outcomes if outcome.error]
    title = f"<p>Segmentation reports{made_by}</p>\n<h1>Segmented images</h1>\n<p>{facts}</p>\n"
    parts = [HEAD, title, "<ul>\n", *(_card(path, outcome) for outcome in done)]
    parts += ["</ul>\n", *(["<h2>Not segmented</h2>\n", *failed] if failed else []), "</main>\n</body>\n</html>\n"]
    atomic_write(path, lambda file: file.write("".join(parts).encode()))
    return path


def _card(page: Path, outcome: "Outcome") -> str:
    found = outcome.summary or {}
    place = quote(os.path.relpath(outcome.folder, page.parent).replace(os.sep, "/"))
    name = escape(printable(Path(outcome.source).name))
    counts = [counted(found["n_regions"], "region")]
    if not found["settings"]["connected"]:
        counts.insert(0, counted(found["n_clusters"], "cluster"))
    good, words = headline(found)
    warning, _, _ = (found.get("warning") or "").partition(". ")  # the report says what to try
    return (
        f'<li><a href="{place}/report.html"><img src="{place}/overlay.png" alt="" loading="lazy"><b>{name}</b></a>'
        f"<div><p>{' in '.join(counts)}</p><p{'' if good else ' class=poor'}>{escape(words)}</p>"
        f"{f'<p class=poor>{escape(warning)}.</p>' if warning else ''}"
        f"{f'<p>{escape(note)}</p>' if (note := kind_note(found).partition(';')[0]) else ''}</div></li>\n"
    )
