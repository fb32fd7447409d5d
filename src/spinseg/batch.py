"""Many pictures in one call: each is done or has its line, whatever becomes of the others."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from spinseg._checks import whole
from spinseg.inference.progress import Report, reporting
from spinseg.inference.sampler import sample
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import Flat
from spinseg.model.priors import DirichletProcess
from spinseg.model.target import Model
from spinseg.segment import segment
from spinseg.segmentation import SegmentationInterrupted


class Outcome(NamedTuple):
    """What became of one picture: the summary of its segmentation, or an error in one line."""

    source: str
    folder: str
    seconds: float
    summary: dict[str, Any] | None = None
    error: str | None = None
    interrupted: bool = False


def folders_for(sources: Sequence[str], out: str | os.PathLike[str]) -> list[str]:
    """A folder for each picture, called as it is without its ending; where a name comes again, it gets a number."""
    taken: dict[str, int] = {}
    folders = []
    for source in sources:
        name = Path(source).stem or "image"
        taken[name] = taken.get(name, 0) + 1
        folders.append(os.path.join(out, name if taken[name] == 1 else f"{name}-{taken[name]}"))
    return folders


def segment_file(
    source: str, folder: str, keywords: dict[str, Any], overwrite: bool = False, progress: Report | None = None
) -> Outcome:
    """Segment one picture into a folder. Of an interrupted one, what its finished sweeps give is saved."""
    began = time.perf_counter()
    interrupted = False
    try:
        if not overwrite and os.path.exists(os.path.join(folder, "result.json")):
            raise FileExistsError(f"{folder} holds a result already, which is kept; --overwrite replaces it")
        os.makedirs(folder, exist_ok=True)
        try:
            found = segment(source, **keywords, progress=progress)
        except SegmentationInterrupted as stop:
            found, interrupted = stop.segmentation, True
        found.save(folder)
        seconds = time.perf_counter() - began
        return Outcome(source, folder, seconds, summary=found.summary(), interrupted=interrupted)
    except (ValueError, OSError, MemoryError) as error:
        with suppress(OSError):
            os.rmdir(folder)  # where it was made for nothing
        line = " ".join(str(error).split()) or type(error).__name__
        return Outcome(source, folder, time.perf_counter() - began, error=line)


def segment_files(
    sources: Sequence[str],
    out: str | os.PathLike[str],
    keywords: dict[str, Any],
    *,
    jobs: int = 1,
    overwrite: bool = False,
    progress: bool = False,
) -> Iterator[Outcome]:
    """Segment pictures one after the other, or several at a time in processes of their own; outcomes as they come.

    On Ctrl-C the outcome of a picture whose sampling was cut short comes, too, and then KeyboardInterrupt is raised.
    """
    tasks = list(zip(sources, folders_for(sources, out), strict=True))
    if min(whole("jobs", jobs, at_least=1), len(tasks)) > 1:
        yield from _in_processes(tasks, keywords, jobs, overwrite, progress)
        return
    for source, folder in tasks:
        with reporting(progress, Path(source).name) as report:
            outcome = segment_file(source, folder, keywords, overwrite, report)
        yield outcome
        if outcome.interrupted:
            raise KeyboardInterrupt


def _in_processes(
    tasks: list[tuple[str, str]], keywords: dict[str, Any], jobs: int, overwrite: bool, progress: bool
) -> Iterator[Outcome]:
    """Outcomes of tasks that `jobs` processes work on, each with one thread."""
    tiny = Model(SiteGraph(2, [[0, 1]]), Flat(), DirichletProcess(1.0))
    sample(tiny, sweeps=1, chains=1, progress=progress)  # else every process would compile the sampler for itself
    context = multiprocessing.get_context("spawn")  # threads do not survive a fork
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context, initializer=_deaf) as pool:
        waiting = [pool.submit(_in_process, *task, keywords | {"workers": 1}, overwrite) for task in tasks]
        try:
            for n_done, future in enumerate(as_completed(waiting), 1):
                outcome = future.result()
                if progress:
                    print(f"{n_done}/{len(tasks)} {outcome.source}", file=sys.stderr)
                yield outcome
        except (KeyboardInterrupt, GeneratorExit):
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                with suppress(ProcessLookupError, TypeError):
                    os.kill(process.pid, signal.SIGINT)  # type: ignore[arg-type]
            for future in waiting:  # what was under way when it came
                if future.done() or future.cancelled():
                    continue
                yield future.result()
            raise


def _deaf() -> None:
    """Let a worker that waits ignore Ctrl-C, which the terminal sends to all."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_process(source: str, folder: str, keywords: dict[str, Any], overwrite: bool) -> Outcome:
    """`segment_file` in a worker, which hears Ctrl-C meanwhile."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return segment_file(source, folder, keywords, overwrite)
    except KeyboardInterrupt:
        return Outcome(source, folder, 0.0, error="interrupted", interrupted=True)
    finally:
        _deaf()
