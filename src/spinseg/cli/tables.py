"""Tables in the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

from spinseg.parallel.atomic import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from spinseg.evaluation.summary import Columns, Summary
    from spinseg.segmentation.batch import Outcome

MAX_VERDICTS = 3  # pictures that each get a sentence on how far to trust them
MAX_NAMED = 10  # of those that failed, or came back as one region
PIPED_WIDTH = 10_000  # of a table that no terminal shows: paths are not broken

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


def print_outcomes(outcomes: list["Outcome"]) -> None:
    """Print a row for each picture that was segmented, and how many were done before."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("picture", overflow="fold")
    for name in ("clusters", "regions", "sites", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("converged")
    table.add_column("results in", overflow="fold")
    for outcome in outcomes:
        if (found := outcome.summary) and not outcome.done_before:
            counts = (found["n_clusters"], found["n_regions"], found["n_sites"])
            name = printable(Path(outcome.source).name) + (" (interrupted)" if found["interrupted"] else "")
            converged = {True: "yes", False: "no", None: "-"}[found["converged"]]
            table.add_row(_text(name), *map(str, counts), f"{outcome.seconds:.1f}", converged, _text(outcome.folder))
    if table.row_count:
        _print_table(table)
    found_now = [outcome.summary for outcome in outcomes if outcome.summary and not outcome.done_before]
    if len(found_now) > MAX_VERDICTS:
        n_converged = sum(found["converged"] is True for found in found_now)
        print(f"The chains have converged on {n_converged} of {len(found_now)} images; see the reports.")
        if warned := [printable(Path(found["source"]).name) for found in found_now if found["warning"]]:
            print(f"As one region came back, though parts differ: {_some_of(warned)}. The reports say what to try.")
    else:
        for found in found_now:
            print((f"{printable(Path(found['source']).name)}: " if len(found_now) > 1 else "") + found["verdict"])
    if failed := [printable(outcome.source) for outcome in outcomes if outcome.error is not None]:
        print(f"Not segmented: {_some_of(failed)}")
    if n_before := sum(outcome.done_before for outcome in outcomes):
        print(f"{n_before} {'was' if n_before == 1 else 'were'} done before")


def _some_of(names: list[str]) -> str:
    """The first few names, or all, in a line."""
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")


def _print_table(table: "Table") -> None:
    from rich.console import Console

    console = Console()
    (console if console.is_terminal else Console(width=PIPED_WIDTH)).print(table)


def print_summaries(summaries: list["Summary"]) -> None:
    """Print a row for each method in two tables: of its labels, and of its probabilities, draws and boundaries."""
    from spinseg.evaluation.summary import DISPLAYED_COLUMNS, PROBABILITY_COLUMNS

    _print_columns(summaries, {name: DISPLAYED_COLUMNS[name] for name in SUMMARY_COLUMNS})
    _print_columns(summaries, PROBABILITY_COLUMNS)


def _print_columns(summaries: list["Summary"], columns: "Columns") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from spinseg.evaluation.summary import format_cells

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    rows = [format_cells(summary, columns) for summary in summaries]
    for i, (heading, _) in enumerate(columns.values()):
        words = [*heading.split(), *(row[i] for row in rows)]
        table.add_column(heading, justify="right", min_width=max(map(len, words)))
    for summary, row in zip(summaries, rows, strict=True):
        table.add_row(summary.method, *row)
    _print_table(table)


def _text(name: str) -> "Text":
    """A name as it is: brackets in it are not markup."""
    from rich.text import Text

    return Text(name.encode(errors="replace").decode())
