"""`python -m studies evaluate` and `python -m studies reproduce`: compare methods, and reproduce the paper."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from spinseg.cli.commands import BUG, WRONG_INPUT, Dask, Jobs, Json, Quiet, Seed, print_error
from spinseg.cli.segment import print_lines
from studies import paper
from studies.evaluation.comparison import Comparison, compare_methods, methods_for
from studies.evaluation.datasets import data_root
from studies.evaluation.summary import (
    DISPLAYED_COLUMNS,
    OBJECT_COLUMNS,
    PROBABILITY_COLUMNS,
    format_cells,
    format_groups,
)

# The columns of a summary that fit into 80 characters.
SUMMARY_COLUMNS = (
    "median_rand",
    "p_value",
    "median_clusters",
    "rand",
    "variation_of_information",
    "covering",
    "median_seconds",
)


def evaluate(
    dataset: Annotated[str, typer.Argument(help="bsds300, bsds500, labelme8, nuclei, or folder: images/ and labels/.")],
    root: Annotated[
        Path | None, typer.Option(help="Folder that has the dataset; by default SPINSEG_DATA or ../shared/data.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="train, val or test, which is the default (BSDS, nuclei).")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names with commas between them; `list` lists those for the dataset.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Maximum number of images, evenly spaced by name.")] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    out: Annotated[Path, typer.Option(help="Results, a row each; resumed where it is there already.")] = Path(
        "results.csv"
    ),
    seed: Seed = 0,
    boundaries: Annotated[
        bool, typer.Option("--boundaries", help="Match boundaries pixel by pixel, too: 1.7 s of a photograph.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods on photographs with ground truth, or on nuclei.

    Rows are written as they come: the same command after an interruption resumes where it stopped. Beside the rows
    come a summary (CSV), a page with reliability diagrams and the best and the worst images, and all label images.
    """
    if methods == "list":
        print("\n".join(f"{name:22s} {method.about}" for name, method in methods_for(dataset).items()))
        return
    found = compare_methods(
        dataset,
        data_root() if root is None else root,
        out,
        split=split,
        methods=methods.split(",") if methods else None,
        limit=limit,
        jobs=jobs,
        dask=dask,
        seed=seed,
        boundaries=boundaries,
        progress=not quiet,
    )
    if as_json:
        print(json.dumps(found.as_json()))
    elif not quiet and found.summaries:
        print_comparison(found)
        print(f"Look at {found.page.resolve()}")
    if found.n_errors:
        print_error(f"{found.n_errors} of {found.n_rows} rows failed: {out}")
        if found.n_bugs:
            print_error(f"{found.n_bugs} of them failed because of a bug in spinseg; please report it", bug=True)
        raise SystemExit(BUG if found.n_bugs else WRONG_INPUT)


def print_comparison(found: Comparison) -> None:
    """Print a row for each method in two tables.

    They are of its labels, and of its probabilities, draws and boundaries; or of objects, and of groups of images.
    """
    of_labels = {name: DISPLAYED_COLUMNS[name] for name in SUMMARY_COLUMNS}
    for columns in [OBJECT_COLUMNS] if found.groups else [of_labels, PROBABILITY_COLUMNS]:
        rows = {summary.method: format_cells(summary, columns) for summary in found.summaries}
        _print_columns([heading for heading, _ in columns.values()], rows)
    if found.groups:
        _print_columns(list(found.groups), format_groups(found.groups))


def _print_columns(headings: list[str], rows: dict[str, list[str]]) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for heading, *cells in zip(headings, *rows.values(), strict=True):
        table.add_column(heading, justify="right", min_width=max(map(len, [*heading.split(), *cells])))
    for method, row in rows.items():
        table.add_row(method, *row)
    print_lines(table)


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="A figure of the paper, or its table.", metavar="|".join((*paper.WITHOUT_DATA, *paper.WITH_DATA))
        ),
    ],
    root: Annotated[Path | None, typer.Option(help="Folder that has the datasets (figure4, figure5, table1).")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the numbers.")] = Path("spinseg-paper"),
    quick: Annotated[bool, typer.Option("--quick", help="A few images or draws: minutes at most.")] = False,
    jobs: Jobs = None,
) -> None:
    """Reproduce a figure of the paper, or its table.

    It is a PNG to look at, and a CSV with its numbers.

    Long ones keep what is finished: the same command after an interruption resumes where it stopped.
    """
    progress = partial(print, file=sys.stderr, flush=True)
    for path in paper.reproduce(what, out, root, quick=quick, jobs=jobs, progress=progress):
        print(path.resolve())
