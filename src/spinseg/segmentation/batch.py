"""Segment many pictures in one call; one that fails gets a line, and the others are segmented all the same."""

import inspect
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from spinseg._errors import TaskFailure
from spinseg._run.atomic import printable
from spinseg._run.executor import CheckInterrupt, check_jobs, run_tasks
from spinseg._run.processes import deferred_sigint
from spinseg._run.progress import Report, compiling_notice, reporting
from spinseg._run.provenance import Provenance
from spinseg._validation import InvalidInput, check_writable, generator, invalid
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.formats import content_hash
from spinseg.image.intensity import check_intensity_range
from spinseg.image.io import read_mask
from spinseg.image.layout import check_channel_axis
from spinseg.image.picture import checked_mask
from spinseg.image.seeds import read_seeds
from spinseg.model.likelihoods import Flat
from spinseg.model.posterior import Model
from spinseg.model.priors import DirichletProcess
from spinseg.sampler.sampler import sample
from spinseg.segmentation.files import FILES, POLYGON_FILES, check_inputs_kept
from spinseg.segmentation.presets.preset import DEFAULT, Preset, chosen_preset
from spinseg.segmentation.problem import check_seeds_fit
from spinseg.segmentation.result import SegmentationInterrupted
from spinseg.segmentation.schedule import Schedule
from spinseg.segmentation.segment import segment

RESULT_START = b'{\n  "source": '  # the first bytes of every result.json
MAX_DIFFERENCES = 3  # named in a message about a result of another run


class Outcome(NamedTuple):
    """What became of one picture: the summary of its segmentation, or an error in one line.

    It is `interrupted` where Ctrl-C came meanwhile; the summary says whether that stopped the sampling early. Where it
    was `done_before`, the summary is that of the stored result.json. `traceback` is that of a bug, and empty where the
    input or the machine is to blame.
    """

    source: str
    folder: str
    seconds: float
    summary: dict[str, Any] | None = None
    error: str | None = None
    interrupted: bool = False
    done_before: bool = False
    traceback: str = ""

    @classmethod
    def failed(cls, source: str, folder: str, failure: TaskFailure) -> "Outcome":
        """The outcome of a picture whose task failed; the line names the picture."""
        line = failure.why if source in failure.why else f"{source}: {failure.why}"
        return cls(source, folder, failure.seconds, error=" ".join(line.split()), traceback=failure.traceback)


def folders_for(sources: Sequence[str], out: str | os.PathLike[str]) -> list[str]:
    """A folder for each picture, named after its file without the suffix; repeated names get a number."""
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


def segment_file(
    source: str,
    folder: str,
    keywords: dict[str, Any],
    overwrite: bool = False,
    progress: Report | None = None,
    base: str = "",
    also: Sequence[str] = (),
) -> Outcome:
    """Segment one picture and save it in a folder, after an interruption with the sweeps that are finished.

    `also` names files of `OPTIONAL_FILES` that are saved, too.
    Paths, also those of a mask and of seeds among the keywords, are relative to the folder `base`; the result has them
    as given.
    """
    start, interrupts = time.perf_counter(), list[int]()
    path = os.path.join(base, folder)
    given: dict[str, Any] = {name: keywords.get(name) for name in ("mask", "seeds")}
    keywords = keywords | {name: os.path.join(base, file) for name, file in given.items() if file is not None}
    try:
        inputs = [os.path.join(base, source), keywords.get("mask"), keywords.get("seeds")]
        check_inputs_kept(path, (*FILES, *also), inputs)
        overwrite = _check_folder(path, overwrite, also)
        try:
            segmentation = segment(os.path.join(base, source), **keywords, progress=progress)
        except SegmentationInterrupted as stop:
            segmentation = stop.segmentation
            interrupts.append(signal.SIGINT)
        with deferred_sigint(interrupts):
            segmentation = replace(segmentation, source=source, **given)
            segmentation.save(path, names=(*FILES, *also), overwrite=overwrite)
            summary = segmentation.summary()
    except Exception as error:
        failure = TaskFailure.from_exception(error, time.perf_counter() - start)
        outcome = Outcome.failed(source, folder, failure)._replace(interrupted=bool(interrupts))
        return outcome._replace(error=(outcome.error or "").replace(os.path.join(base, source), source))
    return Outcome(source, folder, time.perf_counter() - start, summary, interrupted=bool(interrupts))


def _check_folder(folder: str, overwrite: bool, also: Sequence[str]) -> bool:
    """Whether files in a folder may be replaced; raise where it holds a result that must be kept.

    An interrupted result may always be replaced.
    """
    if os.path.lexists(folder) and not os.path.isdir(folder):
        invalid(folder, "be a folder", "a file")
    overwrite = overwrite or (_read_result(folder) or {}).get("interrupted") is True
    present = [name for name in (*FILES, *also) if os.path.lexists(os.path.join(folder, name))]
    if present and not overwrite:
        raise FileExistsError(f"{folder} holds {present[0]} already, which is kept; --overwrite replaces it")
    return overwrite


def _read_result(folder: str, overwrite: bool = False) -> dict[str, Any] | None:
    """The content of the result.json in a folder; None where there is none, or a power cut damaged it.

    One of something else is None, too, where it may be overwritten, and else raises an exception.
    """
    try:
        content = Path(folder, "result.json").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    with suppress(ValueError):
        result = json.loads(content)
        if isinstance(result, dict):
            return result
    rest = content.rstrip(b"\0")
    if not overwrite and not (rest.startswith(RESULT_START) or RESULT_START.startswith(rest)):
        raise FileExistsError(f"{folder} holds result.json already, which is kept; --overwrite replaces it")
    return None


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
    """Yield the index of each picture in `sources` and its outcome, as they finish.

    Pictures are segmented one after the other, several at a time in processes of their own, or on a Dask cluster. After
    Ctrl-C the pictures that processes are working on are saved with their finished sweeps and yielded, too, and then
    KeyboardInterrupt is raised.

    Parameters
    ----------
    keywords : dict
        Keywords of `segment`; a mask is a path, and so are seeds.
    jobs : int, optional
        Pictures at a time, one processor each; one where it is None.
    dask : str, optional
        Address of a Dask scheduler, whose workers see the same files under the same paths.
    resume : bool
        Whether a finished result of the same picture, settings, seed and version is left as it is, and one that was
        interrupted, or lacks a file, is made again. Picture, mask and seeds are the same if their files have the same
        paths and the same content. A result of another run is an error, unless `overwrite` is given, too.
    overwrite : bool
        Whether results that exist are replaced.
    also : sequence of str
        Files of `OPTIONAL_FILES` that are saved, too.
    """
    jobs = check_jobs(jobs, dask, default=1)
    _check_keywords(keywords)
    check_writable("out", out)
    tasks: dict[int, tuple[str, str]] = {}
    wanted = _wanted_provenance(keywords) if resume else None
    for index, (source, folder) in enumerate(zip(sources, folders_for(sources, out), strict=True)):
        outcome = _outcome_before(source, folder, wanted, overwrite, also)
        if outcome is None:
            tasks[index] = source, folder
        else:
            yield index, outcome
    if dask is None and any(os.path.isfile(source) for source, _ in tasks.values()):  # otherwise all of them fail
        _compile(progress)
    how = {"keywords": keywords, "overwrite": overwrite or resume, "also": also}
    yield from _segment_missing(tasks, how, min(jobs, len(tasks)), dask, progress)


def _segment_missing(
    tasks: dict[int, tuple[str, str]],
    how: dict[str, Any],
    jobs: int,
    dask: str | None,
    progress: bool,
) -> Iterator[tuple[int, Outcome]]:
    """Segment the tasks, each a picture and its folder, and yield their outcomes with the keys of `tasks`.

    `how` are the keywords, `overwrite` and `also` of `segment_file`.
    """
    serial = dask is None and jobs <= 1
    if serial:
        work = partial(_segment_here, how=how, progress=progress)
    else:
        how = how | {"keywords": how["keywords"] | {"workers": 1}}
        if dask is not None:  # a cluster repeats the task of a lost worker, which may find files of the first try
            how |= {"base": os.getcwd(), "overwrite": True}
        work = partial(_segment_task, how=how)
    indices, todo = list(tasks), list(tasks.values())
    results = run_tasks(work, todo, jobs=jobs, dask=dask, in_process=serial)
    for n_done, (number, outcome) in enumerate(results, start=1):
        if isinstance(outcome, TaskFailure):
            outcome = Outcome.failed(*todo[number], outcome)
        if progress and not serial:
            print(f"{n_done}/{len(tasks)} {outcome.source}", file=sys.stderr)
        yield indices[number], outcome
        if serial and outcome.interrupted:
            raise KeyboardInterrupt


def _segment_here(task: tuple[str, str], _: CheckInterrupt, *, how: dict[str, Any], progress: bool) -> Outcome:
    """Segment one picture in this process, with a progress bar."""
    source, folder = task
    with reporting(progress, Path(source).name) as report:
        return segment_file(source, folder, **how, progress=report)


def _segment_task(task: tuple[str, str], check_interrupt: CheckInterrupt, *, how: dict[str, Any]) -> Outcome:
    """Segment one picture in another process."""
    return segment_file(*task, **how, progress=check_interrupt)


def _outcome_before(
    source: str,
    folder: str,
    wanted_of: Callable[[str], Provenance] | None,
    overwrite: bool,
    also: Sequence[str],
) -> Outcome | None:
    """The outcome of a picture that need not be segmented: it was done before, or its folder holds another result.

    None means that it must be segmented. `wanted_of` gives the provenance of a picture's result. Where it is None,
    without resume, no stored result counts as done.
    """
    try:
        result = None if wanted_of is None else _read_result(folder, overwrite)
        if wanted_of is None or result is None or result.get("interrupted") is True:
            _check_folder(folder, overwrite or wanted_of is not None, also)
            return None
        stored, wanted = _stored_provenance(result), wanted_of(source)
        _check_readable(stored, wanted)
        differences = stored.differences(wanted)
        if not differences and _lacks_files(folder, result, also):
            return None
        if not differences:
            return Outcome(source, folder, 0.0, result | {"source": source}, done_before=True)
        if overwrite:
            return None
        listed, n_more = ", ".join(differences[:MAX_DIFFERENCES]), len(differences) - MAX_DIFFERENCES
        listed += f" and {n_more} more" if n_more > 0 else ""
        raise FileExistsError(
            f"{folder} holds the result of another run ({listed}), which is kept; --overwrite replaces it"
        )
    except (InvalidInput, OSError) as error:
        return Outcome.failed(source, folder, TaskFailure.from_exception(error)._replace(traceback=""))


def _check_keywords(keywords: dict[str, Any]) -> None:
    """Raise once what `segment` would raise for every picture."""
    preset, _ = _settings(keywords)
    generator(keywords.get("rng"))
    check_channel_axis(keywords.get("channel_axis", "auto"))
    if keywords.get("intensity_range") is not None:
        check_intensity_range(keywords["intensity_range"])
    if keywords.get("mask") is not None:
        checked_mask(read_mask(keywords["mask"]))
    if keywords.get("seeds") is not None:
        check_seeds_fit(preset)
        read_seeds(keywords["seeds"])


def _settings(keywords: dict[str, Any]) -> tuple[Preset, dict[str, Any]]:
    """The preset that `segment` makes of its keywords, and the settings that result.json has for them."""
    shared = inspect.signature(segment).parameters
    options = {name: value for name, value in keywords.items() if name not in shared}
    preset = chosen_preset(keywords.get("preset", DEFAULT), options)
    schedule = Schedule.of(preset, *(keywords.get(name) for name in Schedule._fields))
    return preset, preset.as_json() | schedule._asdict() | {"start_label": keywords.get("start_label", 1)}


def _wanted_provenance(keywords: dict[str, Any]) -> Callable[[str], Provenance]:
    """A function from a picture to the provenance of the result that `segment` would give with these keywords."""
    files = {name: keywords[name] for name in ("mask", "seeds") if keywords.get(name) is not None}
    hashes = {name: content_hash(file) for name, file in files.items()}
    settings = _settings(keywords)[1] | _reading(keywords)

    def wanted_of(source: str) -> Provenance:
        inputs = _inputs(files | {"source": source}, hashes | {"source": content_hash(source)})
        return Provenance.of_run(settings, keywords.get("rng"), inputs)

    return wanted_of


def _reading(given: dict[str, Any]) -> dict[str, Any]:
    """How a picture is read, from keywords of `segment` or from a stored result; what is not there is the default."""
    channel_axis, ends = given.get("channel_axis", "auto"), given.get("intensity_range")
    return {"channel_axis": channel_axis, "intensity_range": list(map(float, ends)) if ends else None}


def _inputs(files: dict[str, Any], hashes: dict[str, Any]) -> dict[str, Any]:
    """Picture, mask and seeds by their absolute paths, with characters as result.json has them; None if no path."""
    inputs: dict[str, Any] = {}
    for name, words in {"source": "picture", "mask": "mask", "seeds": "seeds"}.items():
        path = files.get(name)
        text = path.encode(errors="replace").decode() if isinstance(path, str) else None
        inputs[words] = None if text is None else {"source": os.path.abspath(text), "sha256": hashes.get(name)}
    return inputs


def _stored_provenance(result: dict[str, Any]) -> Provenance:
    """The provenance of a stored result; what is damaged lacks."""
    versions, settings, hashes = (
        result[key] if isinstance(result.get(key), dict) else {} for key in ("versions", "settings", "sha256")
    )
    with suppress(TypeError, ValueError):  # where it is damaged, the settings lack it
        settings = settings | _reading(result)
    return Provenance(_inputs(result, hashes), versions.get("spinseg"), result.get("seed"), settings)


def _check_readable(stored: Provenance, wanted: Provenance) -> None:
    """Refuse a file of a stored result that cannot be read, so that nobody can tell whether it has changed."""
    for name, file in wanted.inputs.items():
        before = stored.inputs[name]
        if file and before and file["source"] == before["source"] and file["sha256"] is None:
            invalid(printable(file["source"]), "be a file that can be read", "one that cannot")


def _lacks_files(folder: str, result: dict[str, Any], also: Sequence[str]) -> bool:
    """Whether a folder lacks a file that its result, or a run that saves `also`, should have there."""
    left_out = set(result["left_out"] if isinstance(result.get("left_out"), dict) else ())
    left_out |= set(POLYGON_FILES if len(result.get("shape", ())) == 3 else ())
    return any(not os.path.isfile(os.path.join(folder, name)) for name in {*FILES, *also} - left_out)


def _compile(progress: bool) -> None:
    """Compile the sampler, unless it is compiled already, so that not every process does so for itself.

    The greedy start comes second, because only sampling reports that it compiles.
    """
    tiny = Model(SiteGraph(2, [[0, 1]]), Flat(), DirichletProcess(1.0))
    notice = compiling_notice() if progress else False
    for init in ("one", "greedy"):
        sample(tiny, sweeps=1, chains=1, init=init, progress=notice)
