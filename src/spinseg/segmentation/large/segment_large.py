"""Segment a picture that is larger than memory: sites tile by tile, one graph, one posterior, labels tile by tile."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spinseg._errors import TaskFailure, is_expected
from spinseg._run.atomic import print_warning, printable
from spinseg._run.executor import CheckInterrupt, check_jobs, run_tasks
from spinseg._run.progress import Report, counting
from spinseg._validation import check_int
from spinseg.graph.adjacency import regions_of
from spinseg.graph.merging import absorb_small
from spinseg.image.features import Codebook
from spinseg.image.intensity import check_intensity_range
from spinseg.image.layout import ChannelAxis, ChannelKind, IntensityRange, check_channels
from spinseg.image.picture import kind_of_channels
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior
from spinseg.partition.numbering import largest_first
from spinseg.sampler.chains import Chains
from spinseg.sampler.checkpoint import OtherChains, read_checkpoint
from spinseg.segmentation.large import run
from spinseg.segmentation.large.files import (
    OpenedPicture,
    Parts,
    intensity_range_of,
    nodata_note,
    open_picture,
    read_part,
    shared_image,
    write_chunk,
)
from spinseg.segmentation.large.model import Large, codebook_for, large_model
from spinseg.segmentation.large.result import LargeSegmentation, site_image, write_images
from spinseg.segmentation.large.tiles import Tile, Tiling, merge_tiles, tile_sites
from spinseg.segmentation.schedule import Schedule, sample_posterior
from spinseg.segmentation.verdict import one_region_warning

MAX_SITES = 200_000  # by default; a picture with more pixels has larger sites
TILE_PIXELS = 2048  # sides of the tiles


def segment_large(
    image: str | os.PathLike[str] | Any,
    out: str | os.PathLike[str],
    *,
    n_sites: int | None = None,
    detail: float = 0.5,
    prior: PartitionPrior | None = None,
    sweeps: int = 200,
    chains: int = 1,
    channel_axis: ChannelAxis = "auto",
    channel_kind: ChannelKind = "auto",
    intensity_range: IntensityRange | None = None,
    tile: int = TILE_PIXELS,
    rng: int | np.random.Generator | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    progress: bool | Report | None = None,
) -> LargeSegmentation:
    """Segment an image that need not fit into memory, and write the segmentation to a folder.

    The model is that of the preset "photo" with fewer cues of boundaries and without texture. A run that was
    interrupted or damaged is resumed by the same call; finished tiles are used again even if the sampling changes.

    Parameters
    ----------
    image : path or Dask array
        One plane of any number type: a folder of Zarr or OME-Zarr, or a TIFF file, which are read part by part; or any
        other file that `segment` takes, which must fit into memory. Color with opacity is laid over white.
    out : path
        The folder, which is created. One with results of another picture, version, tiling or seed, or with other files
        of the names that are written, is refused and left as it is. A Dask array is identified by its name.
    n_sites : int, optional
        Approximate number of sites; by default one for 190 pixels, but at most 200,000.
    detail, prior, sweeps, chains
        As in `segment`.
    channel_axis : int, None or "auto"
        As in `segment`; where no axis has a name, a first one of at most 4 holds channels, too.
    channel_kind : {"auto", "color", "measured"}
        As in `segment`, but measured channels are not weighed by their noise.
    intensity_range : (float, float), optional
        As in `segment`. It is inferred from squares all over a large picture.
    tile : int
        Pixels along each side of a tile.
    rng : int, Generator or None
        Seed. None keeps the seed of a run that is resumed.
    jobs, dask : int or str, optional
        The number of processes, by default one for each processor; or the address of a Dask scheduler instead, whose
        workers see the same files under the same paths.
    progress : bool or callable, optional
        True shows the number of finished tiles, then of sweeps, on standard error.

    Returns
    -------
    LargeSegmentation
        Labels and probabilities as Dask arrays that are stored in `out`.

    Examples
    --------
    >>> import spinseg as ss
    >>> found = ss.segment_large(
    ...     "slide.ome.zarr", "results", rng=0
    ... )  # doctest: +SKIP
    >>> found.labels  # doctest: +SKIP
    """
    preset = Large(detail=detail) if prior is None else Large(detail=detail, prior=prior)
    schedule, jobs = Schedule.of(preset, chains, sweeps), check_jobs(jobs, dask)
    if intensity_range is not None:
        intensity_range = check_intensity_range(intensity_range)
    check_channels(channel_axis, channel_kind)
    opened, folder = open_picture(image, channel_axis, channel_kind), Path(out)
    rows, columns = opened.array.shape[:2]
    usual_sites = max(1, min(round(rows * columns / Large.pixels_per_site), MAX_SITES))
    n_sites = usual_sites if n_sites is None else check_int("n_sites", n_sites, at_least=1)
    tiling = Tiling.of((rows, columns), n_sites, check_int("tile", tile, at_least=64))
    plan = run.open_run(folder, image, opened.array, tiling, rng, channel_axis, channel_kind, intensity_range)
    used_range: IntensityRange = tuple(plan.settings["used_range"])
    reading, shown = replace(opened.reading, intensity_range=used_range), progress is True
    reading = replace(reading, note=nodata_note(opened.array, used_range))
    by_numbers, about = partial(intensity_range_of, opened.array), (opened.array.shape[-1], opened.array.dtype)
    kind, doubt = kind_of_channels(channel_kind, reading, *about, by_numbers)
    reading = replace(reading, channel_kind=kind, otherwise=reading.otherwise or doubt)
    codebook = codebook_for(opened.array, used_range, kind or "auto")
    # Workers of a cluster have another working directory.
    how: dict[str, Any] = {"folder": folder.absolute(), "tiling": tiling, "codebook": codebook}
    work = partial(_make_tile, **how, used_range=used_range, kind=kind or "auto")
    _make_tiles(work, opened, folder, tiling, shown, jobs=jobs, dask=dask)
    run.check_unchanged(folder, plan, image)
    tiles = (run.read_tile(folder, index) for index, _ in enumerate(tiling.tiles()))
    statistics = merge_tiles(tiles, tiling.n_cells, len(codebook))
    model = large_model(statistics, preset, tiling.pixels_per_cell)
    sampled = _sample(model, preset, schedule, folder, plan.seed, progress)
    pieces, length = regions_of(sampled.best_labels, model.graph), model.graph.length
    smallest = preset.min_region_sites * tiling.pixels_per_cell
    partition = absorb_small(pieces, model.graph, model.beta, smallest, length=length, area=statistics.pixels)
    partition = largest_first(partition, statistics.pixels)
    (folder / "result.json").unlink(missing_ok=True)  # an old one would be wrong if this is killed midway
    boxes = write_images(folder, tiling, statistics, partition, sampled.labels, shown)
    warning = None if partition.any() else one_region_warning(statistics.contrast, reading, preset)
    found = LargeSegmentation(folder, partition, boxes, statistics, model, sampled, preset, plan.seed, reading, warning)
    run.write_json(folder / "result.json", found.summary())
    return found


def _make_tiles(
    work: Callable[..., Any], opened: OpenedPicture, folder: Path, tiling: Tiling, shown: bool, **how: Any
) -> None:
    """Make the sites of all tiles that are unfinished or damaged; `how` are options of `run_tasks`."""
    missing = run.missing_tiles(folder, tiling, site_image(folder, tiling))
    if not missing:
        return
    n_tiles = len(list(tiling.tiles()))
    with shared_image(opened, folder, tiling.side) as source, counting(shown) as count:
        results: Any = run_tasks(partial(work, source=source), missing, **how)
        with closing(results):
            for n_done, (i, failure) in enumerate(results, start=n_tiles - len(missing) + 1):
                if isinstance(failure, TaskFailure):
                    raise failure.to_exception(f"tile {missing[i][0]}", f"; what is finished is kept in {folder}")
                count(n_done, n_tiles, f"tile {n_done}/{n_tiles}")


def _make_tile(
    task: tuple[int, Tile],
    _: CheckInterrupt,
    *,
    source: Parts,
    folder: Path,
    tiling: Tiling,
    used_range: IntensityRange,
    kind: ChannelKind,
    codebook: Codebook,
) -> TaskFailure | None:
    """Make the sites of one tile and write them; an expected failure is returned, so that no cluster tries it again."""
    index, tile = task
    try:
        picture = read_part(open_picture(*source).array, tile.read, used_range, kind, source[0])
        sites, sums = tile_sites(picture, tile, tiling, codebook)
        write_chunk(site_image(folder, tiling), tile.own, sites)
        run.write_tile(folder, index, sites, sums)
    except Exception as error:
        if not is_expected(error):
            raise
        return TaskFailure.from_exception(error)
    return None


def _sample(
    model: Model, preset: Large, schedule: Schedule, folder: Path, seed: int, progress: bool | Report | None
) -> Chains:
    """Sample the posterior, from the checkpoint if it is of this posterior and these sweeps.

    The checkpoint itself tells: it has a fingerprint of the posterior, with what functions of a prior return.
    """
    path = folder / "chains.npz"
    how: dict[str, Any] = {"checkpoint": path, "progress": progress}
    if path.exists():
        try:
            read_checkpoint(path)
            how["resume_from"] = path
        except ValueError:
            print_warning(f"{printable(path)} is damaged; sampling starts over")
    try:
        return sample_posterior(model, preset, schedule, seed, **how)
    except OtherChains:
        del how["resume_from"]
        return sample_posterior(model, preset, schedule, seed, **how)
