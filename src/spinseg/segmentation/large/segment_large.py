"""Segment an image that is larger than memory: tile by tile, one graph of all sites, labels tile by tile.

A run can be killed, or the power cut, at any time. Damaged tiles are made again with a warning. A folder with files
that may belong to another run, or to somebody else, is refused and left as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from spinseg._errors import TaskFailure, is_expected
from spinseg._run.atomic import atomic_write, printable
from spinseg._run.executor import CheckInterrupt, check_jobs, run_tasks
from spinseg._run.progress import counting
from spinseg._run.provenance import Provenance, is_done
from spinseg._validation import InvalidInput, check_choice, check_int, check_writable, invalid, seed_of
from spinseg.image.intensity import check_intensity_range
from spinseg.image.layout import ChannelAxis, ChannelKind, IntensityRange, Reading, check_channels
from spinseg.image.picture import kind_of_channels
from spinseg.segmentation.files import check_inputs_kept
from spinseg.segmentation.large import files
from spinseg.segmentation.large.files import OpenedPicture, Parts, open_picture, picture_content
from spinseg.segmentation.large.joining import NUMBERS_OF_TILE, join_tiles
from spinseg.segmentation.large.result import (
    OPTIONAL_FILES,
    LargeSegmentation,
    check_fit_for_polygons,
    site_image,
    write_images,
    write_optional,
)
from spinseg.segmentation.large.tiles import Tile, Tiling, missing_tiles, read_tile, segment_tile, write_tile
from spinseg.segmentation.presets.measured import Auto
from spinseg.segmentation.presets.option import prior_from_text
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.presets.preset import Preset, chosen_preset
from spinseg.segmentation.schedule import Schedule

PLAN_FILE = "plan.json"  # the provenance of the run
IMAGES = ("labels.zarr", "boundary_probability.zarr", "labels.tif", "overview.png")
OUTPUTS = ("sites.zarr", "tiles", *IMAGES, *OPTIONAL_FILES, "result.json")
RUN_FOLDER_RULE = "be an empty folder, or one of such a run (name another folder)"
ADVICE = "name another folder, or remove this one"
PLAIN = (str, int, float, NoneType)


def segment_large(
    image: str | os.PathLike[str] | Any,
    out: str | os.PathLike[str],
    preset: Preset | str = Auto(),
    *,
    chains: int | None = None,
    sweeps: int | None = None,
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    intensity_range: IntensityRange | None = None,
    tile: int | None = None,
    rng: int | np.random.Generator | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    also: Sequence[str] = (),
    progress: bool = False,
    **options: Any,
) -> LargeSegmentation:
    """Segment an image that need not fit into memory, and write the segmentation to a folder.

    The image is segmented in tiles about as large as a photograph, each as `segment` does, and regions are joined
    across the seams. The same call resumes a run that was interrupted or damaged. Finished tiles are used again, also
    for another level of detail.

    Parameters
    ----------
    image : path or Dask array
        One plane of any number type: a folder of Zarr or OME-Zarr, or a TIFF file, which are read part by part; or any
        other file that `segment` takes, which must fit into memory. Color with opacity is laid over white.
    out : path
        The folder, which is created. One with results of another image, version, preset, tiling or seed, or with other
        files of the names that are written, is refused and left as it is. A Dask array is identified by its name.
    preset : Auto, Photo, Measured, or its name
        As in `segment`. `Auto` judges a thumbnail. Other presets are refused: their clusters may lie in many tiles.
    chains, sweeps
        As in `segment`, for each tile.
    channel_axis : int, None or "auto"
        As in `segment`; where no axis has a name, a first one of at most 4 holds channels, too.
    channel_kind : {"auto", "color", "measured"}
        As in `segment`. Squares all over the image tell the noise of measured channels.
    intensity_range : (float, float), optional
        As in `segment`. It is inferred from squares all over a large image.
    tile : int, optional
        Pixels along each side of a tile, without its margin.
    rng : int, Generator or None
        Random seed. None keeps that of a run that is resumed.
    jobs, dask : int or str, optional
        The number of processes, by default one for each processor; or the address of a Dask scheduler instead, whose
        workers see the same files under the same paths. With `jobs=1` this process does all tiles. A script that starts
        processes must do so under ``if __name__ == "__main__":``.
    also : sequence of str, optional
        More files to write: "regions.geojson", "regions.csv" and "boundary_probability.tif", as `Segmentation.save`
        writes them.
    progress : bool
        Show the number of finished tiles on standard error.
    **options
        Options of the preset, such as `detail`. `n_sites` is the approximate number of sites of the whole image. By
        default a photograph has one for 190 pixels, but at most about 200,000: a larger image is reduced for the
        analysis, and outlines are refined at its full size.

    Returns
    -------
    LargeSegmentation
        Labels and probabilities as Dask arrays that are stored in `out`.

    Examples
    --------
    >>> import spinseg as ss
    >>> seg = ss.segment_large(
    ...     "slide.ome.zarr", "results", rng=0
    ... )  # doctest: +SKIP
    >>> seg.labels  # doctest: +SKIP
    """
    preset, folder = chosen_preset(preset, options, segment_large), Path(out)
    jobs, schedule = check_jobs(jobs, dask), Schedule.of(preset, chains, sweeps)
    for each in preset.candidates():
        _check_preset(each)
    if intensity_range is not None:
        intensity_range = check_intensity_range(intensity_range)
    check_channels(channel_axis, channel_kind)
    if tile is not None:
        tile = check_int("tile", tile, at_least=64)
    for name in also:
        check_choice("also", name, OPTIONAL_FILES)
    opened = open_picture(image, channel_axis, channel_kind)
    if "regions.geojson" in also:
        check_fit_for_polygons(opened.array.shape[:2])
    settings = preset.as_json() | schedule._asdict() | {"tile": tile, "channel_kind": channel_kind}
    settings |= {"detail": None, "channel_axis": None if channel_axis == "auto" else str(channel_axis)}
    settings |= {"channels": opened.array.shape[-1], "dtype": str(opened.array.dtype)}
    plan = _open_run(folder, image, opened, rng, settings | {"intensity_range": intensity_range})
    used_range: IntensityRange = tuple(plan.settings["used_range"])
    reading = replace(opened.reading, intensity_range=used_range, note=opened.nodata_note(used_range))
    about = (opened.array.shape[-1], opened.array.dtype)
    kind, doubt = kind_of_channels(channel_kind, reading, *about, opened.inferred_range)
    reading = replace(reading, channel_kind=kind, otherwise=reading.otherwise or doubt)
    opened = opened._replace(reading=reading)
    chosen: Any = preset.for_image(opened.thumbnail()) if len(preset.candidates()) > 1 else preset
    tiling = Tiling.of(opened.array.shape[:2], chosen, tile)
    parts = opened.shown_parts(tiling.step)
    like = parts if np.prod(tiling.grid) > 1 else None
    # Draws are of all levels of detail, and must not depend on the one that is shown.
    posterior = (replace(chosen, detail=type(chosen).detail), schedule, plan.seed, like)
    # Workers of a cluster have another working directory.
    work = partial(_make_tile, folder=folder.absolute(), tiling=tiling, posterior=posterior, reading=reading)
    _make_tiles(work, opened, folder, tiling, progress, jobs=jobs, dask=dask)
    _check_unchanged(folder, plan, image)
    joined = join_tiles(tiling, partial(read_tile, folder), site_image(folder, tiling))
    taken_for = chosen.suits if chosen is not preset else None
    source = os.fspath(image) if isinstance(image, (str, os.PathLike)) else None
    about_run = (chosen, schedule, plan.seed, reading, parts, taken_for, source)
    found = LargeSegmentation(folder, joined.partition(chosen.detail), joined, *about_run)
    (folder / "result.json").unlink(missing_ok=True)  # an old one would be wrong if this is killed midway
    write_images(found, tiling, progress)
    write_optional(found, also)
    _write_json(folder / "result.json", found.summary())
    return found


def _check_preset(preset: Preset) -> None:
    """Refuse what needs all of an image at once."""
    if not isinstance(preset, Photo) or preset.prior_of_kinds() is not None:
        invalid("preset", "be auto, photo or measured for an image in tiles", preset.name)
    arrays = {name for name in ("sites", "init", "lam") if not isinstance(getattr(preset, name), PLAIN)}
    for name in sorted(arrays | preset.changes().keys() & {"estimate", "evidence"}):
        invalid(name, "be left as it is for an image in tiles", getattr(preset, name))
    prior_from_text(repr(preset.prior))  # functions and arrays would not be known again


def _open_run(
    folder: Path, image: Any, opened: OpenedPicture, rng: int | np.random.Generator | None, settings: dict[str, Any]
) -> Provenance:
    """Begin a run in a new folder, or continue the one of the same picture, settings, seed and version.

    The setting "used_range" has the black and white levels, found once, so that they are the same for all tiles.
    """
    check_writable(folder)
    stored = _stored_provenance(folder)
    if isinstance(image, (str, os.PathLike)):
        check_inputs_kept(folder, OUTPUTS, [os.fspath(image)])
        before = {} if stored is None else stored.inputs.get("picture") or {}
        picture = picture_content(image, before) | {"source": os.path.abspath(image)}
    else:
        picture = {"source": f"a Dask array, {opened.array.name}"}
    seed = seed_of(rng) if stored is None or rng is not None else stored.seed
    wanted = Provenance.of_run(settings, seed, {"picture": picture})
    is_resumed = is_done(stored, wanted, folder, ADVICE)
    if stored is None:
        used = [float(end) for end in settings["intensity_range"] or opened.inferred_range()]
        stored = wanted._replace(settings={**wanted.settings, "used_range": used})
    folder.joinpath("tiles").mkdir(parents=True, exist_ok=True)
    if not is_resumed:
        _write_json(folder / PLAN_FILE, stored.to_json())
    return stored


def _stored_provenance(folder: Path) -> Provenance | None:
    """The provenance of the run that a folder holds; None for a new run. Files of somebody else are refused."""
    path = folder / PLAN_FILE
    if os.path.lexists(path):
        try:
            return Provenance.from_json(json.loads(path.read_text(encoding="utf-8")))
        except Exception:  # JSON of something else raises nearly anything
            invalid("out", RUN_FOLDER_RULE, f"{folder}, whose {PLAN_FILE} is damaged or of something else")
    for name in OUTPUTS:
        there = folder / name
        is_empty = there.is_dir() and not any(there.iterdir())  # a run that was killed at once leaves tiles
        if os.path.lexists(there) and not (name == "tiles" and is_empty):
            invalid("out", RUN_FOLDER_RULE, f"{folder}, which holds {name}")
    return None


def _check_unchanged(folder: Path, plan: Provenance, image: Any) -> None:
    """Refuse a picture that has changed since the run began, whose tiles may then show different pictures."""
    before = plan.inputs["picture"]
    if isinstance(image, (str, os.PathLike)) and before and picture_content(image, before) != before:
        advice = f"Remove {printable(folder)}, or name another folder, and start again."
        raise InvalidInput(f"the image changed while its tiles were made: {printable(image)}. {advice}")


def _write_json(path: Path, record: dict[str, Any]) -> None:
    """Write a dict as JSON, completely or not at all."""
    atomic_write(path, lambda file: file.write(json.dumps(record, indent=2).encode()))


def _make_tiles(
    work: Callable[..., Any],
    opened: OpenedPicture,
    folder: Path,
    tiling: Tiling,
    shown: bool,
    *,
    jobs: int,
    dask: str | None,
) -> None:
    """Segment all tiles that are unfinished or damaged, as `run_tasks` does, one at a time in this process."""
    missing = missing_tiles(folder, tiling, site_image(folder, tiling))
    if not missing:
        return
    n_tiles, serial = int(np.prod(tiling.grid)), dask is None and min(jobs, len(missing)) == 1
    with files.shared_image(opened, folder, tiling.side) as source, counting(shown) as count:
        results: Any = run_tasks(partial(work, source=source), missing, jobs=jobs, dask=dask, in_process=serial)
        with closing(results):
            for n_done, (i, failure) in enumerate(results, start=n_tiles - len(missing) + 1):
                if isinstance(failure, TaskFailure):
                    raise failure.to_exception(f"tile {missing[i].number}", f"; what is finished is kept in {folder}")
                count(n_done, n_tiles, f"tile {n_done}/{n_tiles}")


def _make_tile(
    tile: Tile, _: CheckInterrupt, *, source: Parts, folder: Path, tiling: Tiling, posterior: Any, reading: Reading
) -> TaskFailure | None:
    """Segment one tile and write it; an expected failure is returned, so that no cluster tries it again."""
    try:
        picture = open_picture(*source)._replace(reading=reading).part(tile.window)
        sites, found = segment_tile(picture, tile, tiling, *posterior)
        numbers = sites + np.int64(NUMBERS_OF_TILE) * tile.number
        files.write_chunk(site_image(folder, tiling), tile.core, numbers)
        write_tile(folder, tile.number, numbers, found)
    except Exception as error:
        if not is_expected(error):
            raise
        return TaskFailure.from_exception(error)
    return None
