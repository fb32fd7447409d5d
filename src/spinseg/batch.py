"""Many pictures in one call: each is done or has its line, whatever becomes of the others."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from spinseg._checks import refuse, whole
from spinseg.inference.progress import Report, compiling_notice, reporting
from spinseg.inference.sampler import sample
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import Flat
from spinseg.model.priors import DirichletProcess
from spinseg.model.target import Model
from spinseg.processes import Heed, Lost, in_processes, noting
from spinseg.segment import segment
from spinseg.segmentation import SegmentationInterrupted

# What `Segmentation.save` writes.
FILES = ("labels.tif", "labels.png", "overlay.png", "boundary_probability.png", "report.html", "result.json")


class Outcome(NamedTuple):
    """What became of one picture: the summary of its segmentation, or an error in one line.

    It is `interrupted` where Ctrl-C came meanwhile; the summary says whether that cut the sampling short.
    """

    source: str
    folder: str
    seconds: float
    summary: dict[str, Any] | None = None
    error: str | None = None
    interrupted: bool = False


def folders_for(sources: Sequence[str], out: str | os.PathLike[str]) -> list[str]:
    """A folder for each picture, called as it is without its ending; where a name comes again, it gets a number."""
    names = [Path(source).stem or "image" for source in sources]
    given = {name.casefold() for name in names}  # some file systems take a.jpg and A.jpg for one
    numbers: dict[str, Iterator[int]] = {}
    folders = []
    for name in names:
        if name.casefold() in numbers:
            numbered = (f"{name}-{number}" for number in numbers[name.casefold()])
            name = next(other for other in numbered if other.casefold() not in given)
        else:
            numbers[name.casefold()] = count(2)
        folders.append(os.path.join(out, name))
    return folders


def segment_file(
    source: str, folder: str, keywords: dict[str, Any], overwrite: bool = False, progress: Report | None = None
) -> Outcome:
    """Segment one picture into a folder. Of an interrupted one, what its finished sweeps give is saved."""
    began, ctrl_c = time.perf_counter(), list[int]()
    summary = error = None
    try:
        _check_folder(folder, overwrite)
        try:
            found = segment(source, **keywords, progress=progress)
        except SegmentationInterrupted as stop:
            found = stop.segmentation
            ctrl_c.append(signal.SIGINT)
        with noting(ctrl_c):
            Path(folder, "result.json").unlink(missing_ok=True)  # an old one would be wrong if this is killed midway
            found.save(folder)
            summary = found.summary()
    except (ValueError, OSError, MemoryError) as problem:
        error = _line(source, str(problem) or type(problem).__name__)
    return Outcome(source, folder, time.perf_counter() - began, summary, error, bool(ctrl_c))


def _check_folder(folder: str, overwrite: bool) -> None:
    """Refuse a folder that holds a result, unless it was interrupted or may be replaced."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        refuse(folder, "be a folder", "a file")
    with suppress(OSError, ValueError):
        found = json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))
        overwrite |= isinstance(found, dict) and found.get("interrupted") is True
    there = [name for name in FILES if os.path.lexists(os.path.join(folder, name))]
    if there and not overwrite:
        raise FileExistsError(f"{folder} holds {there[0]} already, which is kept; --overwrite replaces it")


def _line(source: str, error: str) -> str:
    """One line that names the picture."""
    return " ".join((error if source in error else f"{source}: {error}").split())


def segment_files(
    sources: Sequence[str],
    out: str | os.PathLike[str],
    keywords: dict[str, Any],
    *,
    jobs: int = 1,
    overwrite: bool = False,
    progress: bool = False,
) -> Iterator[tuple[int, Outcome]]:
    """The place of each picture among `sources` and its outcome, as they come.

    Pictures are segmented one after the other, or several at a time in processes of their own. On Ctrl-C the outcomes
    of those under way come, too, with what their finished sweeps give, and then KeyboardInterrupt is raised.
    """
    tasks = list(zip(sources, folders_for(sources, out), strict=True))
    jobs = min(whole("jobs", jobs, at_least=1), len(tasks))
    _check_out(Path(out))
    if any(map(os.path.isfile, sources)):  # else there is only an error to tell
        _compile(progress)
    if jobs > 1:
        yield from _in_processes(tasks, keywords | {"workers": 1}, jobs, overwrite, progress)
        return
    for index, (source, folder) in enumerate(tasks):
        with reporting(progress, Path(source).name) as report:
            outcome = segment_file(source, folder, keywords, overwrite, report)
        yield index, outcome
        if outcome.interrupted:
            raise KeyboardInterrupt


def _check_out(out: Path) -> None:
    """Refuse a folder that cannot be written or made, without making it: there may be nothing to write."""
    there = next((path for path in (out, *out.parents) if os.path.lexists(path)), out)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        refuse("out", "be a folder that can be written", str(out))


def _compile(progress: bool) -> None:
    """Compile the sampler where it is not yet: else every process would for itself.

    The greedy start comes second, because only sampling says that it compiles.
    """
    tiny = Model(SiteGraph(2, [[0, 1]]), Flat(), DirichletProcess(1.0))
    notice = compiling_notice() if progress else None
    for init in ("one", "greedy"):
        sample(tiny, sweeps=1, chains=1, init=init, progress=notice)


def _in_processes(
    tasks: list[tuple[str, str]], keywords: dict[str, Any], jobs: int, overwrite: bool, progress: bool
) -> Iterator[tuple[int, Outcome]]:
    """Outcomes of pictures that `jobs` processes work on; after Ctrl-C those that are under way are cut short."""
    work = partial(_segment_task, keywords=keywords, overwrite=overwrite)
    for n_done, (index, found) in enumerate(in_processes(work, tasks, jobs), start=1):
        source, folder = tasks[index]
        if isinstance(found, Lost):
            found = Outcome(source, folder, found.seconds, error=_line(source, found.why))
        if progress:
            print(f"{n_done}/{len(tasks)} {source}", file=sys.stderr)
        yield index, found


def _segment_task(task: tuple[str, str], heed: Heed, *, keywords: dict[str, Any], overwrite: bool) -> Outcome:
    return segment_file(*task, keywords, overwrite, heed)
