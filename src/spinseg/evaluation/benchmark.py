"""Methods x images -> one table, resumable; in processes of one thread, or on a Dask cluster."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage.measure import label as connected_pieces

from spinseg._errors import LOG, expected, line_of
from spinseg._validation import check_int, check_writable, invalid
from spinseg.evaluation.datasets import Example
from spinseg.evaluation.methods import Method
from spinseg.evaluation.metrics import scores
from spinseg.evaluation.results import ResultsFile, Row
from spinseg.image.io import MOST_LABELS_PNG, write_labels_png
from spinseg.image.render import label_colours
from spinseg.parallel.atomic import printable, say
from spinseg.parallel.dask import on_cluster
from spinseg.parallel.processes import Heed, Lost, in_processes

Report = Callable[[int, int, Row], None]


class Task(NamedTuple):
    """One image for one method, and what their row says of the run."""

    example: Example
    method: Method
    run: dict[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """What there is one row for."""
        return self.example.name, self.method.name


def evaluate(
    examples: Sequence[Example],
    methods: Sequence[Method],
    out: str | os.PathLike[str],
    *,
    dataset: str,
    seed: int = 0,
    jobs: int = 1,
    dask: str | None = None,
    report: Report | None = None,
) -> list[Row]:
    """A row for each image and method, in this order; those that `out` has already are not computed again.

    Each row is appended to `out` as it comes, and each label image written to a folder beside it, so that an
    interrupted run goes on where it stopped. Rows that tell of an error are computed again. Random numbers depend on
    the image's name and the seed alone: processes and clusters change nothing but the seconds.

    Parameters
    ----------
    out : path
        CSV file, in a folder that is made where it is not there. Results of another dataset, seed, version or settings
        are refused.
    dataset : str
        Its name, for the rows.
    jobs : int
        Images at a time, one processor each.
    dask : str, optional
        Address of a Dask scheduler, whose workers see the same files and do the work in place of processes here.
    report : callable, optional
        Called as report(n_done, n_tasks, row) after each row.
    """
    _check_names(examples)
    jobs = check_int("jobs", jobs, at_least=1)
    check_writable("out", Path(out).parent)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    marks = {method.name: method.mark for method in methods}
    ours = version("spinseg")

    def run_of(image: str, method: str) -> dict[str, Any]:
        run: dict[str, Any] = {"dataset": dataset, "seed": seed_for(image, seed), "version": ours}
        return run | ({"settings": marks[method]} if method in marks else {})

    file = ResultsFile(out, run_of)
    tasks = [Task(example, method, run_of(example.name, method.name)) for example in examples for method in methods]
    keys = [task.key for task in tasks]
    missing = [task for task in tasks if task.key not in file.rows or file.rows[task.key].error]
    for method in {task.method.name: task.method for task in missing}.values():
        _tried(method)  # so that what it lacks is said once; and compiled here, where processes would all do it
    for n_done, (row, labels) in enumerate(_done(missing, jobs, dask), start=1):
        if labels is not None:
            _keep_labels(labels_path(out, row), labels)
        file.append(row)
        if report is not None:
            report(n_done, len(missing), row)
    file.finish(keys)
    return [file.rows[key] for key in keys]


def _keep_labels(path: Path, labels: NDArray[np.int32]) -> None:
    """Write a label image; where it has more labels than fit, a line on standard error is all."""
    n_labels = int(labels.max()) + 1
    if n_labels > MOST_LABELS_PNG:
        why = f"a PNG holds {MOST_LABELS_PNG:,} labels at most, and there are {n_labels:,}"
        say(f"{printable(path)} is left out: {why}")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_labels_png(path, labels, label_colours(n_labels))


def labels_path(out: str | os.PathLike[str], row: Row) -> Path:
    """Where the label image of a row lies."""
    return Path(out).with_suffix("") / "labels" / row.method / f"{row.image}.png"


def seed_for(image: str, seed: int) -> int:
    """The seed of an image: of its name and the seed of the run alone."""
    return int.from_bytes(hashlib.sha256(f"{seed} {image}".encode()).digest()[:4], "little")


def compare(task: Task, heed: Heed | None = None) -> tuple[Row, NDArray[np.int32] | None]:
    """The row of a task and its label image; None where reading, segmenting or scoring failed.

    What is no fault of the input or the machine is raised: the row tells of it, too, once it has come through.
    """
    began, seconds = time.perf_counter(), 0.0
    try:
        image, annotations = task.example.image(), task.example.annotations()
        shape, size = annotations[0].shape, image.shape[:2]
        if shape != size:
            invalid(f"the ground truth of {task.example.name}", f"have the photograph's shape, {size}", shape)
        _tried(task.method)
        began = time.perf_counter()
        labels = task.method.run(image, task.run["seed"])
        seconds = time.perf_counter() - began
        found = scores(labels, annotations)
    except Exception as problem:
        if not expected(problem):
            raise
        return _failed(task, time.perf_counter() - began, line_of(problem)), None
    clusters, regions = np.unique(labels).size, int(connected_pieces(labels, background=-1, connectivity=1).max())
    return Row(*task.key, found, clusters, regions, round(seconds, 3), **task.run), labels


def _failed(task: Task, seconds: float, why: str) -> Row:
    return Row(*task.key, None, 0, 0, round(seconds, 3), **task.run, error=" ".join(why.split()))


def _done(tasks: Sequence[Task], jobs: int, dask: str | None) -> Iterator[tuple[Row, NDArray[np.int32] | None]]:
    """What came of the tasks, as they come."""
    coming = in_processes(compare, tasks, jobs) if dask is None else on_cluster(compare, tasks, dask)
    for index, found in coming:
        if isinstance(found, Lost) and found.traceback:
            LOG.debug("%s", found.traceback)
        yield (_failed(tasks[index], found.seconds, found.why), None) if isinstance(found, Lost) else found


def _tried(method: Method) -> None:
    """Run a method once in this process on a picture of no interest, so that loading it is not timed."""
    if method.name in _TRIED:
        return
    rows, columns = np.indices((40, 40))
    method.run(np.stack([6 * rows, 6 * columns, 3 * (rows + columns)], axis=-1).astype(np.uint8), 0)
    _TRIED.add(method.name)


_TRIED: set[str] = set()


def _check_names(examples: Sequence[Example]) -> None:
    """Refuse a dataset where a name comes twice: rows go by names."""
    names = [example.name for example in examples]
    if not names or len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        invalid("examples", "have at least one image, each name once", twice or "none")
