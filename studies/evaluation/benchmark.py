"""Run methods on images and score them: one row each, in processes of one thread or on a Dask cluster, resumable."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from skimage.measure import label as connected_pieces

from spinseg._errors import LOG, TaskFailure, error_line, is_expected
from spinseg._run.atomic import print_warning, printable
from spinseg._run.executor import CheckInterrupt, check_jobs, run_tasks
from spinseg._run.provenance import Provenance
from spinseg._validation import check_writable, invalid
from spinseg.image.io import MAX_PNG_LABELS, write_labels_png
from spinseg.image.render import label_colors
from studies.evaluation.answers import AnswerScores, ObjectAnswerScores, score_answer, score_objects
from studies.evaluation.datasets import Example
from studies.evaluation.methods import Method
from studies.evaluation.results import ComparisonFile, Key, Row, inputs_of

Report = Callable[[int, int, Row], None]


class Task(NamedTuple):
    """One image for one method, and what their row will have been computed from."""

    example: Example
    method: Method
    provenance: Provenance
    boundaries: bool

    @property
    def key(self) -> Key:
        """The image and the method, which no other task has."""
        return self.example.name, self.method.name

    def row(self, found: AnswerScores | ObjectAnswerScores, clusters: int, regions: int, seconds: float) -> Row:
        """The row of this task."""
        scored = {"scores": found.regions, **found._asdict(), "clusters": clusters, "regions": regions}
        return self._unscored(seconds)._replace(**scored)

    def failed_row(self, seconds: float, why: str) -> Row:
        """The row of this task where it failed."""
        return self._unscored(seconds)._replace(error=" ".join(why.split()))

    def _unscored(self, seconds: float) -> Row:
        """The row of this task without scores."""
        inputs, version, seed, settings = self.provenance
        run = {"dataset": settings["dataset"], "seed": seed, "version": version, "settings": settings["settings"]}
        run["content"] = next(item["content"] for item in inputs.values() if item is not None)
        return Row(*self.key, None, 0, 0, round(seconds, 3), **run, group=self.example.group)


def evaluate(
    examples: Sequence[Example],
    methods: Sequence[Method],
    out: str | os.PathLike[str],
    *,
    dataset: str,
    seed: int = 0,
    jobs: int | None = None,
    dask: str | None = None,
    boundaries: bool = False,
    report: Report | None = None,
) -> list[Row]:
    """Compute a row for each image and method, in this order; rows that `out` has already are not computed again.

    Each row is appended to `out` as soon as it is computed, and each label image written to a folder beside it, so that
    an interrupted run can be resumed. Rows with an error are computed again. Random numbers depend on the image's name
    and the seed alone: processes and clusters change nothing but the seconds.

    Parameters
    ----------
    out : path
        CSV file; its folder is made where there is none. Results of another dataset, seed, version or settings, or of
        files that have changed, are refused.
    dataset : str
        Its name, for the rows.
    jobs : int, optional
        Images at a time, one processor each; all processors where it is None.
    dask : str, optional
        Address of a Dask scheduler, whose workers see the same files and do the work instead of processes here.
    boundaries : bool
        Whether boundaries are matched pixel by pixel, too.
    report : callable, optional
        Called as report(n_done, n_tasks, row) after each row.
    """
    _check_names(examples)
    jobs = check_jobs(jobs, dask)
    if Path(out).suffix != ".csv":  # label images are written to the folder that has its name without the suffix
        invalid("out", "be a file whose name ends in .csv", str(out))
    check_writable(Path(out).parent)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    hashes = {method.name: {"settings": method.settings_hash + "+boundaries" * boundaries} for method in methods}
    inputs = {example.name: inputs_of(example.name, example.content()) for example in examples}

    def provenance_of(image: str, method: str) -> Provenance:
        settings = {"dataset": dataset, **hashes.get(method, {})}
        return Provenance.of_run(settings, seed_for(image, seed), inputs.get(image))

    file = ComparisonFile(out, provenance_of)
    tasks = [
        Task(example, method, provenance_of(example.name, method.name), boundaries)
        for example in examples
        for method in methods
    ]
    keys = [task.key for task in tasks]
    missing = [task for task in tasks if task.key not in file.rows or file.rows[task.key].error]
    for method in {task.method.name: task.method for task in missing}.values():
        _warm_up(method)  # so that a missing library is reported once, and compiled code is there for all processes
    for n_done, (row, labels) in enumerate(_results(missing, jobs, dask), start=1):
        if labels is not None:
            _write_labels(labels_path(out, row), labels)
        file.append(row)
        if report is not None:
            report(n_done, len(missing), row)
    file.finish(keys)
    return [file.rows[key] for key in keys]


def _write_labels(path: Path, labels: NDArray[np.int32]) -> None:
    """Write a label image; where it has more labels than a PNG holds, print a warning instead."""
    n_labels = int(labels.max()) + 1
    if n_labels > MAX_PNG_LABELS:
        why = f"a PNG holds {MAX_PNG_LABELS:,} labels at most, and there are {n_labels:,}"
        print_warning(f"{printable(path)} is left out: {why}")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_labels_png(path, labels, label_colors(n_labels))


def labels_path(out: str | os.PathLike[str], row: Row) -> Path:
    """The path of the label image of a row."""
    return Path(out).with_suffix("") / "labels" / row.method / f"{row.image}.png"


def seed_for(image: str, seed: int) -> int:
    """The seed of an image, from its name and the seed of the run alone."""
    return int.from_bytes(hashlib.sha256(f"{seed} {image}".encode(errors="surrogateescape")).digest()[:4], "little")


def compare(task: Task, _: CheckInterrupt) -> tuple[Row, NDArray[np.int32] | None]:
    """Run the method of a task on its image; the row, and the label image unless it failed.

    An exception that is no fault of the input or the machine is raised; `_results` makes a row of it.
    """
    start, seconds = time.perf_counter(), 0.0
    try:
        image, annotations = task.example.image(), task.example.annotations()
        shape, size = annotations[0].shape, image.shape[:2]
        if shape != size:
            invalid(f"the ground truth of {task.example.name}", f"have the photograph's shape, {size}", shape)
        _warm_up(task.method)
        start = time.perf_counter()
        answer = task.method.answer(task.example.image_path if task.method.reads else image, task.provenance.seed)
        seconds = time.perf_counter() - start
        if task.example.has_objects:
            found: AnswerScores | ObjectAnswerScores = score_objects(answer, annotations[0])
        else:
            found = score_answer(answer, annotations, boundaries=task.boundaries)
    except Exception as error:
        if not is_expected(error):
            raise
        return task.failed_row(time.perf_counter() - start, error_line(error)), None
    labels = answer.labels
    clusters, regions = (
        np.unique(labels[labels >= 0]).size,
        int(connected_pieces(labels, background=-1, connectivity=1).max()),
    )
    return task.row(found, clusters, regions, seconds), labels


def _results(tasks: Sequence[Task], jobs: int, dask: str | None) -> Iterator[tuple[Row, NDArray[np.int32] | None]]:
    """Yield the row and the label image of each task as it finishes."""
    for index, result in run_tasks(compare, tasks, jobs=jobs, dask=dask):
        if isinstance(result, TaskFailure):
            if result.traceback:
                LOG.debug("%s", result.traceback)
            result = tasks[index].failed_row(result.seconds, result.why), None
        yield result


def _warm_up(method: Method) -> None:
    """Run a method once in this process on a small picture, so that loading and compiling it is not timed."""
    if method.name in _WARM:
        return
    rows, columns = np.indices((40, 40))
    method.run(np.stack([6 * rows, 6 * columns, 3 * (rows + columns)], axis=-1).astype(np.uint8), 0)
    _WARM.add(method.name)


_WARM: set[str] = set()


def _check_names(examples: Sequence[Example]) -> None:
    """Refuse a dataset without images, or with a name twice, since rows go by names."""
    names = [example.name for example in examples]
    if not names or len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        invalid("examples", "have at least one image, each name once", repeated or "none")
