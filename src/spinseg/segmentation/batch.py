"""Many pictures in one call: each is done or has its line, whatever becomes of the others."""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from spinseg._errors import expected, line_of
from spinseg._validation import InvalidInput, check_int, check_writable, invalid
from spinseg.image.io import read_mask
from spinseg.image.picture import checked_mask
from spinseg.inference.progress import Report, compiling_notice, reporting
from spinseg.inference.sampler import sample
from spinseg.inference.sampling import generator
from spinseg.model.graph import SiteGraph
from spinseg.model.likelihoods import Flat
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess
from spinseg.parallel.dask import on_cluster
from spinseg.parallel.processes import Heed, Lost, in_processes, noting
from spinseg.segmentation.result import SegmentationInterrupted, plain_settings
from spinseg.segmentation.segment import segment
from spinseg.segmentation.settings import Settings, settings_of

# What `Segmentation.save` writes.
FILES = ("labels.tif", "labels.png", "overlay.png", "boundary_probability.png", "report.html", "result.json")

MOST_TOLD = 3  # ways in which a result differs from what is asked for


class Outcome(NamedTuple):
    """What became of one picture: the summary of its segmentation, or an error in one line.

    It is `interrupted` where Ctrl-C came meanwhile; the summary says whether that cut the sampling short. Where it was
    `done_before`, the summary is that of its result.json. Of a bug there is the `traceback`, empty where the input or
    the machine is to blame.
    """

    source: str
    folder: str
    seconds: float
    summary: dict[str, Any] | None = None
    error: str | None = None
    interrupted: bool = False
    done_before: bool = False
    traceback: str = ""


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
    source: str,
    folder: str,
    keywords: dict[str, Any],
    overwrite: bool = False,
    progress: Report | None = None,
    base: str = "",
) -> Outcome:
    """Segment one picture into a folder. Of an interrupted one, what its finished sweeps give is saved.

    Paths, that of a mask among the keywords too, begin at the folder `base`; the result tells them as they are given.
    """
    began, ctrl_c = time.perf_counter(), list[int]()
    summary = error = None
    bug = ""
    place, mask = os.path.join(base, folder), keywords.get("mask")
    if mask is not None:
        keywords = keywords | {"mask": os.path.join(base, mask)}
    try:
        overwrite = _check_folder(place, overwrite)
        try:
            found = segment(os.path.join(base, source), **keywords, progress=progress)
        except SegmentationInterrupted as stop:
            found = stop.segmentation
            ctrl_c.append(signal.SIGINT)
        with noting(ctrl_c):
            found = replace(found, source=source, mask=mask)
            found.save(place, overwrite=overwrite)
            summary = found.summary()
    except Exception as problem:  # a bug, too, is told of this picture, and the others are done
        error = _line(source, line_of(problem))
        bug = "" if expected(problem) else traceback.format_exc()
    seconds = time.perf_counter() - began
    return Outcome(source, folder, seconds, summary, error, bool(ctrl_c), traceback=bug)


def _check_folder(folder: str, overwrite: bool) -> bool:
    """Refuse a folder that holds a result, unless it was interrupted or may be replaced; whether it may."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        invalid(folder, "be a folder", "a file")
    overwrite |= (_result(folder) or {}).get("interrupted") is True
    there = [name for name in FILES if os.path.lexists(os.path.join(folder, name))]
    if there and not overwrite:
        raise FileExistsError(f"{folder} holds {there[0]} already, which is kept; --overwrite replaces it")
    return overwrite


def _result(folder: str) -> dict[str, Any] | None:
    """What the result.json of a folder says; None where there is none that can be read."""
    with suppress(OSError, ValueError):
        found = json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else None
    return None


def _line(source: str, error: str) -> str:
    """One line that names the picture."""
    return " ".join((error if source in error else f"{source}: {error}").split())


def segment_files(
    sources: Sequence[str],
    out: str | os.PathLike[str],
    keywords: dict[str, Any],
    *,
    jobs: int | None = None,
    dask: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> Iterator[tuple[int, Outcome]]:
    """The place of each picture among `sources` and its outcome, as they come.

    Pictures are segmented one after the other, several at a time in processes of their own, or on a Dask cluster. On
    Ctrl-C the outcomes of those under way in processes come, too, with what their finished sweeps give, and then
    KeyboardInterrupt is raised.

    Parameters
    ----------
    keywords : dict
        Of `segment`; a mask is a path.
    jobs : int, optional
        Pictures at a time, one processor each; one where it is None.
    dask : str, optional
        Address of a Dask scheduler, whose workers see the same files under the same paths.
    resume : bool
        Whether a finished result of the same picture, settings, seed and version is left as it is, and one that was
        cut short is made again. A result of another run is kept and told, unless `overwrite` is given, too.
    overwrite : bool
        Whether results that are there are replaced.
    """
    if jobs is not None and dask is not None:
        invalid("jobs", "be left out where dask is given", jobs)
    jobs = check_int("jobs", 1 if jobs is None else jobs, at_least=1)
    _check_keywords(keywords)
    check_writable("out", out)
    tasks: dict[int, tuple[str, str]] = {}
    for index, (source, folder) in enumerate(zip(sources, folders_for(sources, out), strict=True)):
        known = _known(source, folder, _asked(source, keywords) if resume else None, overwrite)
        if known is None:
            tasks[index] = source, folder
        else:
            yield index, known
    if any(os.path.isfile(source) for source, _ in tasks.values()):  # else there is only an error to tell
        _compile(progress)
    overwrite |= resume
    if tasks and (dask is not None or min(jobs, len(tasks)) > 1):
        yield from _spread(tasks, keywords | {"workers": 1}, jobs, dask, overwrite, progress)
        return
    for index, (source, folder) in tasks.items():
        with reporting(progress, Path(source).name) as report:
            outcome = segment_file(source, folder, keywords, overwrite, report)
        yield index, outcome
        if outcome.interrupted:
            raise KeyboardInterrupt


def _known(source: str, folder: str, asked: dict[str, Any] | None, overwrite: bool) -> Outcome | None:
    """The outcome of a picture where nothing is to do: it was done before, or its folder holds what is kept.

    `asked` is what result.json would say of this run. Where it is None, nothing passes for done.
    """
    found = None if asked is None else _result(folder)
    try:
        if asked is None or found is None or found.get("interrupted") is True:
            _check_folder(folder, overwrite or asked is not None)
            return None
        if not (others := _differences(folder, found, asked)):
            return Outcome(source, folder, 0.0, found | {"source": source}, done_before=True)
        if overwrite:
            return None
        told = ", ".join(others[:MOST_TOLD]) + (f" and {len(others) - MOST_TOLD} more" if others[MOST_TOLD:] else "")
        raise FileExistsError(
            f"{folder} holds the result of another run ({told}), which is kept; --overwrite replaces it"
        )
    except (InvalidInput, OSError) as problem:
        return Outcome(source, folder, 0.0, error=_line(source, line_of(problem)))


def _check_keywords(keywords: dict[str, Any]) -> None:
    """Refuse, once, what `segment` would refuse for every picture."""
    _settings(keywords)
    generator(keywords.get("rng"))
    if keywords.get("mask") is not None:
        checked_mask(read_mask(keywords["mask"]))


def _settings(keywords: dict[str, Any]) -> Settings:
    """The settings that `segment` makes of its keywords."""
    chosen = {name: value for name, value in keywords.items() if name in Settings.__dataclass_fields__}
    preset = chosen.pop("preset", "photo")
    return settings_of(preset, chosen)


def _asked(source: str, keywords: dict[str, Any]) -> dict[str, Any]:
    """What result.json would say of a run, as far as it is known before."""
    settings = plain_settings(_settings(keywords))
    told = {"source": source, "mask": keywords.get("mask"), "seed": keywords.get("rng"), "settings": settings}
    text = json.dumps(told | {"versions": {"spinseg": version("spinseg")}}, ensure_ascii=False)
    return json.loads(text.encode(errors="replace"))  # as it is written and read


def _differences(folder: str, found: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    """In which ways a result is not what is asked for, in words."""
    theirs, ours = _marks(found), _marks(asked)
    told = [f"{name} {theirs.get(name)}, not {value}" for name, value in ours.items() if theirs.get(name) != value]
    with suppress(OSError):  # what is no longer there is not newer
        made = os.path.getmtime(os.path.join(folder, "result.json"))
        told += [
            f"older than {path}" for path in (ours["picture"], ours["mask"]) if path and os.path.getmtime(path) > made
        ]
    return told


def _marks(told: dict[str, Any]) -> dict[str, Any]:
    """What results are told apart by, from what result.json says."""
    paths = {name: told.get(key) for name, key in (("picture", "source"), ("mask", "mask"))}
    absolute = {name: os.path.abspath(path) if isinstance(path, str) else None for name, path in paths.items()}
    versions, settings = (told[key] if isinstance(told.get(key), dict) else {} for key in ("versions", "settings"))
    return {**absolute, "spinseg": versions.get("spinseg"), "seed": told.get("seed"), **settings}


def _compile(progress: bool) -> None:
    """Compile the sampler where it is not yet: else every process would for itself.

    The greedy start comes second, because only sampling says that it compiles.
    """
    tiny = Model(SiteGraph(2, [[0, 1]]), Flat(), DirichletProcess(1.0))
    notice = compiling_notice() if progress else None
    for init in ("one", "greedy"):
        sample(tiny, sweeps=1, chains=1, init=init, progress=notice)


def _spread(
    tasks: dict[int, tuple[str, str]],
    keywords: dict[str, Any],
    jobs: int,
    dask: str | None,
    overwrite: bool,
    progress: bool,
) -> Iterator[tuple[int, Outcome]]:
    """Outcomes of pictures that `jobs` processes or a cluster work on; each has the place that it has in `tasks`.

    A cluster does a task again where a worker is lost, so that what the first try wrote there is no reason to stop.
    """
    base, overwrite = ("", overwrite) if dask is None else (os.getcwd(), True)
    work = partial(_segment_task, keywords=keywords, overwrite=overwrite, base=base)
    places, todo = list(tasks), list(tasks.values())
    coming = in_processes(work, todo, jobs) if dask is None else on_cluster(work, todo, dask)
    for n_done, (number, found) in enumerate(coming, start=1):
        source, folder = todo[number]
        if isinstance(found, Lost):
            error, bug = _line(source, found.why), found.traceback
            found = Outcome(source, folder, found.seconds, error=error, traceback=bug)
        if progress:
            print(f"{n_done}/{len(tasks)} {source}", file=sys.stderr)
        yield places[number], found


def _segment_task(
    task: tuple[str, str], heed: Heed, *, keywords: dict[str, Any], overwrite: bool, base: str
) -> Outcome:
    return segment_file(*task, keywords, overwrite, heed, base)
