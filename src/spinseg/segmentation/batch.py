"""Segment many images in one call; one that fails gets a line, and the others are segmented all the same."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from spinseg._errors import TaskFailure
from spinseg._run.atomic import print_line, printable
from spinseg._run.executor import CheckInterrupt, check_jobs, deferred_sigint, run_tasks
from spinseg._run.progress import Progress, Report, reporting, stage_of
from spinseg._validation import InvalidInput, check_writable
from spinseg.image.formats import images_in, is_zarr
from spinseg.segmentation.files import FILES, check_inputs_kept
from spinseg.segmentation.result import SegmentationInterrupted
from spinseg.segmentation.resume import check_folder, expected_result, finished_result
from spinseg.segmentation.segment import segment


class Outcome(NamedTuple):
    """What became of one image: the summary of its segmentation, or an error in one line.

    It is `interrupted` where Ctrl-C came meanwhile; the summary says whether that stopped the sampling early, and there
    is none where no sweep was finished. Where it
    was `done_before`, the summary is that of the stored result.json; where another result `is_kept`, nothing was done.
    `traceback` and `name` are as in `TaskFailure`.
    """

    source: str
    folder: str
    seconds: float
    summary: dict[str, Any] | None = None
    error: str | None = None
    interrupted: bool = False
    done_before: bool = False
    traceback: str = ""
    name: str = ""
    is_kept: bool = False

    @classmethod
    def failed(cls, source: str, folder: str, failure: TaskFailure) -> "Outcome":
        """The outcome of an image whose task failed; the line names the image."""
        line = failure.why if source in failure.why else f"{source}: {failure.why}"
        found = cls(source, folder, failure.seconds, error=" ".join(line.split()))
        return found._replace(traceback=failure.traceback, name=failure.name)


def folders_for(sources: Sequence[str], out: str | os.PathLike[str]) -> list[str]:
    """A folder for each image, named after its file without the suffix; repeated names get a number."""
    names = [Path(os.path.abspath(source)).stem or "image" for source in sources]  # "." and ".." are no names
    taken = {name.casefold() for name in names}  # some file systems take a.jpg and A.jpg for one
    numbers: dict[str, Iterator[int]] = {}
    folders = []
    for name in names:
        if name.casefold() in numbers:
            numbered = (f"{name}-{number}" for number in numbers[name.casefold()])
            name = next(other for other in numbered if other.casefold() not in taken)
        else:
            numbers[name.casefold()] = count(2)
        folders.append(os.path.join(out, name))
    return folders


def listed(sources: Sequence[str]) -> list[str]:
    """The images, with those in a folder in its place; a folder that has none, or is Zarr, stays."""
    found: list[str] = []
    for source in sources:
        found += (os.path.isdir(source) and not is_zarr(source) and images_in(source)) or [source]
    return found


def segment_file(
    source: str,
    folder: str,
    keywords: dict[str, Any],
    overwrite: bool = False,
    progress: bool | Report | None = None,
    base: str = "",
    also: Sequence[str] = (),
    title: str | None = None,
) -> Outcome:
    """Segment one image and save it in a folder, after an interruption with the sweeps that are finished.

    `also` names files of `OPTIONAL_FILES`, and `title` is what a progress bar says. Paths, also those of a mask and of
    seeds among the keywords, are relative to the folder `base`; the result has them as given.
    """
    start, interrupts = time.perf_counter(), list[int]()
    path = os.path.join(base, folder)
    given: dict[str, Any] = {name: keywords.get(name) for name in ("mask", "seeds")}
    keywords = keywords | {name: os.path.join(base, file) for name, file in given.items() if file is not None}
    try:
        inputs = [os.path.join(base, source), keywords.get("mask"), keywords.get("seeds")]
        check_inputs_kept(path, (*FILES, *also), inputs)
        overwrite = check_folder(path, overwrite, also)
        with reporting(progress, title or printable(Path(source).name)) as report:
            try:
                segmentation = segment(os.path.join(base, source), **keywords, progress=report)
            except SegmentationInterrupted as stop:
                segmentation = stop.segmentation
                interrupts.append(signal.SIGINT)
            stage_of(report)("writing the report")
            with deferred_sigint(interrupts):
                segmentation = replace(segmentation, source=source, **given)
                segmentation.save(path, names=(*FILES, *also), overwrite=overwrite)
                summary = segmentation.summary()
    except KeyboardInterrupt:  # before sampling
        return Outcome(source, folder, time.perf_counter() - start, interrupted=True)
    except Exception as error:
        failure = TaskFailure.from_exception(error, time.perf_counter() - start)
        outcome = Outcome.failed(source, folder, failure)._replace(interrupted=bool(interrupts))
        return outcome._replace(error=(outcome.error or "").replace(os.path.join(base, source), source))
    return Outcome(source, folder, time.perf_counter() - start, summary, interrupted=bool(interrupts))


def segment_files(
    sources: Sequence[str],
    out: str | os.PathLike[str],
    keywords: dict[str, Any],
    *,
    jobs: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    also: Sequence[str] = (),
    progress: bool = False,
) -> Iterator[tuple[int, Outcome]]:
    """Yield the index of each image in `sources` and its outcome, as they finish.

    Images are segmented with these keywords of `segment`, where mask and seeds are paths: `jobs` at a time in processes
    of their own, by default as many as there are processors; or by the Dask scheduler at the address `dask`, whose
    workers see the same files under the same paths. With one at a time, this process does it. After Ctrl-C the images
    in work are saved with their finished sweeps and yielded, and then KeyboardInterrupt is raised.

    With `resume`, a finished result of the same files, settings, seed and version is left as it is, and one that was
    interrupted, or lacks a file, is made again. A result of another run is an error, unless `overwrite` is given, too.
    `also` names files of `OPTIONAL_FILES` that are saved, too.
    """
    jobs = check_jobs(jobs, dask)
    expected = expected_result(keywords)
    check_writable(out)
    tasks: dict[int, tuple[str, str]] = {}
    for index, (source, folder) in enumerate(zip(sources, folders_for(sources, out), strict=True)):
        outcome = _outcome_before(source, folder, expected if resume else None, overwrite, also)
        if outcome is None:
            tasks[index] = source, folder
        else:
            yield index, outcome
    if progress and len(tasks) > 1:
        at_a_time = "" if dask is not None or jobs == 1 else f", {min(jobs, len(tasks))} at a time"
        print_line(f"{len(tasks)} images{at_a_time}")
    serial = dask is None and min(jobs, len(tasks)) <= 1
    how: dict[str, Any] = {"overwrite": overwrite or resume, "also": also}
    how |= {"keywords": keywords, "progress": progress} if serial else {"keywords": keywords | {"workers": 1}}
    if dask is not None:  # a cluster repeats the task of a lost worker, which may find files of the first try
        how |= {"base": os.getcwd(), "overwrite": True}
    indices, todo = list(tasks), list(tasks.values())
    countdown = Countdown(len(todo))
    work = partial(_segment_task, how, countdown)
    has_lines = progress and len(todo) > 1 and not (serial and sys.stderr is not None and sys.stderr.isatty())

    def say(index: int) -> None:
        """Print the line of an image that starts; a cluster does not say which these are."""
        if has_lines:
            print_line(countdown.next_title() + printable(todo[index][0]))

    results = run_tasks(work, todo, jobs=jobs, dask=dask, in_process=serial, started=say)
    for n_done, (number, outcome) in enumerate(results, start=1):
        if isinstance(outcome, TaskFailure):
            outcome = Outcome.failed(*todo[number], outcome)
        countdown.n_done = n_done
        if dask is not None:
            say(number)
        yield indices[number], outcome
        if serial and outcome.interrupted:
            raise KeyboardInterrupt


def _segment_task(
    how: dict[str, Any], countdown: "Countdown", task: tuple[str, str], check_interrupt: CheckInterrupt
) -> Outcome:
    """Segment one image, with a bar in this process, and in another one without."""
    title = countdown.title(countdown.n_done + 1) + printable(Path(task[0]).name)
    return segment_file(*task, **{"progress": _Interruptible(check_interrupt)} | how, title=title)


class _Interruptible:
    """The report of an image that another process segments: it ends reading and sampling, but not saving."""

    def __init__(self, check_interrupt: CheckInterrupt) -> None:
        self.check, self.has_draws = check_interrupt, False

    def stage(self, words: str, share: float | None = None) -> None:
        """Interrupt what comes before sampling."""
        if not self.has_draws:
            self.check()

    def __call__(self, progress: Progress) -> None:
        self.has_draws = True
        self.check()


class Countdown:
    """How many of several images are done, and about how long the others will take."""

    def __init__(self, n_images: int) -> None:
        self.n_images, self.n_done, self.n_begun, self.began = n_images, 0, 0, time.monotonic()

    def next_title(self) -> str:
        """The title of the next image that begins."""
        self.n_begun += 1
        return self.title(self.n_begun)

    def title(self, number: int) -> str:
        """The number of an image, and the time left, as a beginning of a line; empty for a single image."""
        if self.n_images == 1:
            return ""
        words = f"[{number}/{self.n_images}"
        if 0 < self.n_done < self.n_images:
            seconds = (time.monotonic() - self.began) / self.n_done * (self.n_images - self.n_done)
            words += f", about {seconds:.0f} s left" if seconds < 100 else f", about {seconds / 60:.0f} min left"
        return f"{words}] "


def _outcome_before(
    source: str, folder: str, expected: dict[str, Any] | None, overwrite: bool, also: Sequence[str]
) -> Outcome | None:
    """The outcome of an image that is not segmented: it was done before, or its folder holds another result.

    `expected` is the `expected_result`; where it is None, without resume, no stored result counts as done.
    """
    try:
        result = None if expected is None else finished_result(source, folder, expected, overwrite, also)
        if result is not None:
            return Outcome(source, folder, 0.0, result, done_before=True)
        check_folder(folder, overwrite or expected is not None, also)
    except (InvalidInput, OSError) as error:
        outcome = Outcome.failed(source, folder, TaskFailure.from_exception(error)._replace(traceback=""))
        return outcome._replace(is_kept=isinstance(error, FileExistsError))
    return None
