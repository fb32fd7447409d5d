"""Compare methods on a dataset, from their names to the rows, the summary and the page."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spinseg._errors import BUG
from spinseg._run.atomic import print_warning
from spinseg._run.executor import check_jobs
from spinseg._run.progress import counting
from spinseg._validation import check_int
from studies.evaluation.benchmark import evaluate
from studies.evaluation.datasets import Example, get_dataset
from studies.evaluation.methods import METHODS, OBJECT_METHODS, Method, get_methods
from studies.evaluation.page import page_path, write_comparison
from studies.evaluation.results import Row
from studies.evaluation.summary import GroupScores, Summary, scores_by_group

USUAL_METHODS = ("spinseg", "potts-dp", "rdd-crp", "felzenszwalb", "quickshift")  # of photographs, without an extra


class Comparison(NamedTuple):
    """The result of a comparison and the paths of its files. `n_errors` counts rows with an error, bugs included."""

    dataset: str
    summaries: list[Summary]
    groups: GroupScores
    n_rows: int
    n_errors: int
    n_bugs: int
    out: Path
    page: Path

    def as_json(self) -> dict[str, Any]:
        """The same in types that JSON knows."""
        facts = {"rows": self.n_rows, "errors": self.n_errors, "out": str(self.out), "page": str(self.page)}
        return {
            "dataset": self.dataset,
            **facts,
            "methods": [summary._asdict() for summary in self.summaries],
            "groups": {
                group: {method: found._asdict() for method, found in of_methods.items()}
                for group, of_methods in self.groups.items()
            },
        }


def compare_methods(
    dataset: str,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    methods: list[str] | None = None,
    split: str | None = None,
    limit: int | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    seed: int = 0,
    boundaries: bool = False,
    progress: bool = False,
) -> Comparison:
    """Compare methods on a dataset, both given by name; rows that `out` has already are not computed again.

    Parameters
    ----------
    dataset, root, split
        As in `get_dataset`.
    methods : list of str, optional
        Names of `methods_for(dataset)`; by default those that need no extra.
    out : path
        CSV file of rows. A summary, a page and the label images are written beside it.
    limit : int, optional
        The maximum number of images, which are evenly spaced by name.
    jobs : int, optional
        Images at a time, one processor each; all processors where it is None.
    dask : str, optional
        Address of a Dask scheduler.
    boundaries : bool
        Whether boundaries are matched pixel by pixel, too, which takes 1.7 seconds of a photograph.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the rows so far are in `out`.
    """
    check_jobs(jobs, dask)
    usual = OBJECT_METHODS if dataset == "nuclei" else USUAL_METHODS
    chosen, out = get_methods(methods or usual, methods_for(dataset)), Path(out)
    examples = spread(get_dataset(dataset, root, split), limit)
    name = f"{dataset} {split or 'test'}" if dataset in ("bsds300", "bsds500", "nuclei") else dataset
    try:
        with counting(progress) as count:

            def report(n_done: int, n_tasks: int, row: Row) -> None:
                if progress and row.error:
                    print_warning(f"{row.image}, {row.method}: {row.error}")
                count(n_done, n_tasks, f"{n_done}/{n_tasks} {row.image} {row.method}")

            how: dict[str, Any] = {"seed": seed, "jobs": jobs, "dask": dask, "boundaries": boundaries}
            rows = evaluate(examples, chosen, out, dataset=name, **how, report=report)
    except KeyboardInterrupt:
        print_warning(f"interrupted; what is finished is in {out}, and the same command resumes")
        raise
    summaries = write_comparison(name, out, examples, chosen, rows)
    errors = [row.error for row in rows if row.error]
    n_bugs = sum(error.startswith(BUG) for error in errors)
    return Comparison(name, summaries, scores_by_group(rows), len(rows), len(errors), n_bugs, out, page_path(out))


def spread(examples: list[Example], limit: int | None) -> list[Example]:
    """At most `limit` of the examples, evenly spaced.

    Examples
    --------
    >>> spread(list("abcdefg"), 3)
    ['a', 'd', 'g']
    """
    if limit is None or check_int("limit", limit, at_least=1) >= len(examples):
        return examples
    return [examples[i] for i in np.linspace(0, len(examples) - 1, limit).round().astype(int)]


def methods_for(dataset: str) -> dict[str, Method]:
    """The methods for a dataset, by name: those for objects on a background where it has such."""
    return OBJECT_METHODS if dataset == "nuclei" else METHODS
