"""Tables in the terminal."""

from pathlib import Path
from typing import TYPE_CHECKING

from spinseg._run.atomic import printable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from spinseg.segmentation.batch import Outcome

MAX_VERDICTS = 3  # images that each get a sentence on how far to trust them
MAX_NAMED = 10  # of those that failed, or came back as one region
PIPED_WIDTH = 10_000  # of a table that no terminal shows: paths are not broken


def print_outcomes(outcomes: list["Outcome"]) -> None:
    """Print a row for each image that was segmented, and how many were skipped."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column("image", overflow="fold")
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
        print_table(table)
    found_now = [outcome.summary for outcome in outcomes if outcome.summary and not outcome.done_before]
    if len(found_now) > MAX_VERDICTS:
        n_converged = sum(found["converged"] is True for found in found_now)
        print(f"The chains have converged on {n_converged} of {len(found_now)} images; see the reports.")
        if warned := [printable(Path(found["source"]).name) for found in found_now if found["warning"]]:
            print(f"Single region despite visible contrast: {_some_of(warned)}. The reports say what to try.")
    else:
        for found in found_now:
            print((f"{printable(Path(found['source']).name)}: " if len(found_now) > 1 else "") + found["verdict"])
    if failed := [printable(outcome.source) for outcome in outcomes if outcome.error is not None]:
        print(f"Not segmented: {_some_of(failed)}")
    if n_before := sum(outcome.done_before for outcome in outcomes):
        print(f"{n_before} skipped (already complete)")


def _some_of(names: list[str]) -> str:
    """The first few names, or all, in a line."""
    return ", ".join(names[:MAX_NAMED]) + (", ..." if len(names) > MAX_NAMED else "")


def print_table(table: "Table") -> None:
    """Print a table, without breaking its lines where no terminal shows it."""
    from rich.console import Console

    console = Console()
    (console if console.is_terminal else Console(width=PIPED_WIDTH)).print(table)


def _text(name: str) -> "Text":
    """A name as it is: brackets in it are not markup."""
    from rich.text import Text

    return Text(name.encode(errors="replace").decode())
