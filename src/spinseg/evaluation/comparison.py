"""The whole comparison: dataset, methods, rows, summary and page."""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spinseg._errors import BUG
from spinseg._validation import check_int, invalid
from spinseg.evaluation.benchmark import evaluate
from spinseg.evaluation.datasets import Example, dataset_named
from spinseg.evaluation.methods import METHODS, methods_named
from spinseg.evaluation.page import page_path, write_comparison
from spinseg.evaluation.progress import reporting_rows
from spinseg.evaluation.summary import Summary


class Comparison(NamedTuple):
    """What a comparison found, and where it is written; of the errors, some are bugs."""

    dataset: str
    summaries: list[Summary]
    n_rows: int
    n_errors: int
    n_bugs: int
    out: Path
    page: Path

    def as_json(self) -> dict[str, Any]:
        """The same, for a machine."""
        facts = {"rows": self.n_rows, "errors": self.n_errors, "out": str(self.out), "page": str(self.page)}
        return {"dataset": self.dataset, **facts, "methods": [summary._asdict() for summary in self.summaries]}


def compare_methods(
    dataset: str,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    methods: list[str],
    split: str | None = None,
    limit: int | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Comparison:
    """Compare methods by name on a dataset by name; what `out` has already is not computed again.

    Parameters
    ----------
    dataset, root, split
        As in `dataset_named`.
    out : path
        CSV file of rows. Beside it come a summary, a page, and the label images.
    limit : int, optional
        At most so many images, evenly spaced by name.
    jobs : int, optional
        Images at a time, one processor each; all processors where it is None.
    dask : str, optional
        Address of a Dask scheduler.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; the rows so far are in `out`.
    """
    if jobs is not None and dask is not None:
        invalid("jobs", "be left out where dask is given", jobs)
    chosen, out = methods_named(methods), Path(out)
    examples = spread(dataset_named(dataset, root, split), limit)
    name = f"{dataset} {split or 'test'}" if dataset.startswith("bsds") else dataset
    try:
        with reporting_rows(progress) as report:
            jobs = (os.cpu_count() or 1) if jobs is None else jobs
            rows = evaluate(examples, chosen, out, dataset=name, seed=seed, jobs=jobs, dask=dask, report=report)
    except KeyboardInterrupt:
        print(f"spinseg: interrupted; what is finished is in {out}, and the same command goes on", file=sys.stderr)
        raise
    summaries = write_comparison(name, out, examples, chosen, rows)
    errors = [row.error for row in rows if row.error]
    n_bugs = sum(error.startswith(BUG) for error in errors)
    return Comparison(name, summaries, len(rows), len(errors), n_bugs, out, page_path(out))


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


def known_methods() -> dict[str, str]:
    """What each method is, by name."""
    return {name: method.about for name, method in METHODS.items()}
