"""Reproduction of the figures and the table of Xu, Caron & Doucet, one file each."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from spinseg._validation import check_choice, check_writable, invalid

WITHOUT_DATA = ("figure1", "figure2", "figure3")  # without data
WITH_DATA = ("figure4", "figure5", "table1")


def reproduce(
    what: str,
    out: Path,
    root: Path | None = None,
    *,
    quick: bool = False,
    progress: Callable[[str], None] | None = None,
    jobs: int | None = None,
) -> list[Path]:
    """Reproduce a figure or the table of the paper; return the paths of its PNG and of CSV files with its numbers.

    Parameters
    ----------
    what : {"figure1", "figure2", "figure3", "figure4", "figure5", "table1"}
    out : path
        Folder for the results; an interrupted run is resumed from those that are there.
    root : path, optional
        Folder of the datasets, which figures 4 and 5 and the table need.
    quick : bool
        Use few images or draws.
    progress : callable, optional
        Called with a line of text on the progress.
    jobs : int, optional
        Number of images at a time, one processor each; by default all processors.
    """
    check_choice("what", what, (*WITHOUT_DATA, *WITH_DATA))
    if what in WITH_DATA and root is None:
        invalid("root", f"be the folder that has the datasets, for {what}", root)
    check_writable(out)
    run = import_module(f"studies.paper.{what}").reproduce
    if what in WITHOUT_DATA:
        return run(out, quick=quick, progress=progress)
    return run(out, root, quick=quick, progress=progress, jobs=jobs)
