"""The figures and the table of Xu, Caron & Doucet, one file each."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from spinseg._validation import check_choice, check_writable, invalid

FIGURES = ("figure1", "figure2", "figure3")  # of the model and the sampler alone
ON_DATA = ("figure4", "figure5", "table1")


def reproduce(
    what: str,
    out: Path,
    root: Path | None = None,
    *,
    quick: bool = False,
    progress: Callable[[str], None] | None = None,
    jobs: int | None = None,
) -> list[Path]:
    """Paths of a figure or the table of the paper, made anew: a PNG to look at, and CSV with its numbers.

    Parameters
    ----------
    what : {"figure1", "figure2", "figure3", "figure4", "figure5", "table1"}
    out : path
        Folder for the results; long ones are gone on with where they are there in part.
    root : path, optional
        Folder that has the datasets, which figures 4 and 5 and the table need.
    quick : bool
        A few images or draws.
    progress : callable, optional
        Called with a line on how far it is.
    jobs : int, optional
        Images at a time, one processor each; all processors where it is None.
    """
    check_choice("what", what, (*FIGURES, *ON_DATA))
    if what in ON_DATA and root is None:
        invalid("root", f"be the folder that has the datasets, for {what}", root)
    check_writable("out", out)
    made = import_module(f"spinseg.evaluation.paper.{what}").reproduce
    if what in FIGURES:
        return made(out, quick=quick, progress=progress)
    return made(out, root, quick=quick, progress=progress, jobs=jobs)
