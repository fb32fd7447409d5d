"""`python -m studies reproduce`: the figures and the table of the paper."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from spinseg.cli.options import Jobs
from studies import paper


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
    """Make a figure of the paper, or its table, anew.

    It is a PNG to look at, and a CSV with its numbers.

    Long ones keep what is finished: the same command after an interruption resumes where it stopped.
    """
    progress = partial(print, file=sys.stderr, flush=True)
    for path in paper.reproduce(what, out, root, quick=quick, jobs=jobs, progress=progress):
        print(path.resolve())
