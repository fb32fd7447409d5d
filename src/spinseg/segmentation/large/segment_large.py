"""Segment a picture that is larger than memory: sites tile by tile, one graph, one posterior, labels tile by tile."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import TaskFailure, is_expected
from spinseg._run.atomic import print_warning, printable
from spinseg._run.executor import CheckInterrupt, check_jobs, run_tasks
from spinseg._run.progress import Report, counting
from spinseg._validation import check_int
from spinseg.graph.adjacency import regions_of
from spinseg.graph.merging import absorb_small
from spinseg.image.features import Codebook
from spinseg.image.intensity import check_intensity_range
from spinseg.image.layout import ChannelAxis, IntensityRange
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior
from spinseg.partition.numbering import largest_first
from spinseg.sampler.chains import Chains
from spinseg.sampler.checkpoint import OtherChains, read_checkpoint
from spinseg.segmentation.large.files import (
    OpenedPicture,
    create_ome_zarr,
    open_picture,
    read_part,
    shared_image,
    write_chunk,
)
from spinseg.segmentation.large.model import Large, SiteStatistics, codebook_for, large_model, merge_tiles
from spinseg.segmentation.large.result import LargeSegmentation, write_images
from spinseg.segmentation.large.run import (
    LargeRun,
    check_unchanged,
    missing_tiles,
    open_run,
    read_tile,
    write_json,
    write_tile,
)
from spinseg.segmentation.large.tiles import Tile, Tiling, tile_sites
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
    intensity_range: IntensityRange | None = None,
    tile: int = TILE_PIXELS,
    rng: int | np.random.Generator | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    progress: bool | Report | None = None,
) -> LargeSegmentation:
    """Segment a picture that need not fit into memory, and write the segmentation to a folder.

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

    Examples
    --------
    >>> found = segment_large("slide.ome.zarr", "results", rng=0)  # doctest: +SKIP
    >>> found.labels  # doctest: +SKIP
    """
    preset = Large(detail=detail) if prior is None else Large(detail=detail, prior=prior)
    schedule, jobs = Schedule.of(preset, chains, sweeps), check_jobs(jobs, dask)
    if intensity_range is not None:
        intensity_range = check_intensity_range(intensity_range)
    opened = open_picture(image, channel_axis)
    tiling = _tiling(opened.array.shape, n_sites, tile)
    run = open_run(Path(out), image, opened.array, tiling, rng, channel_axis, intensity_range)
    codebook = codebook_for(opened.array, run.intensity_range)
    shown = progress is True
    _make_tiles(opened, run, tiling, codebook, jobs, dask, shown)
    check_unchanged(run, image)
    tiles = (read_tile(run.folder, index) for index, _ in enumerate(tiling.tiles()))
    statistics = merge_tiles(tiles, tiling.n_cells, len(codebook))
    model = large_model(statistics, preset, tiling.pixels_per_cell)
    sampled = _sample(model, preset, schedule, run, progress)
    partition = _regions(model, sampled, statistics, preset, tiling)
    (run.folder / "result.json").unlink(missing_ok=True)  # an old one would be wrong if this is killed midway
    boxes = write_images(run.folder, tiling, statistics, partition, sampled.labels, shown)
    reading = replace(opened.reading, intensity_range=run.intensity_range)
    warning = None if partition.any() else one_region_warning(statistics.contrast, reading, preset)
    found = LargeSegmentation(
        run.folder, partition, boxes, statistics, model, sampled, preset, run.seed, reading, warning
    )
    write_json(run.folder / "result.json", found.summary())
    return found


def _tiling(shape: tuple[int, ...], n_sites: int | None, tile: int) -> Tiling:
    """Cells for about `n_sites` sites, and tiles."""
    rows, columns = shape[:2]
    if n_sites is None:
        n_sites = max(1, min(round(rows * columns / Large.pixels_per_site), MAX_SITES))
    n_sites, side = check_int("n_sites", n_sites, at_least=1), check_int("tile", tile, at_least=64)
    return Tiling.of((rows, columns), n_sites, side)


def _make_tiles(
    opened: OpenedPicture,
    run: LargeRun,
    tiling: Tiling,
    codebook: Codebook,
    jobs: int,
    dask: str | None,
    shown: bool,
) -> None:
    """Make the sites of all tiles that are unfinished or damaged."""
    missing = missing_tiles(run, tiling, _site_image(run, tiling))
    if not missing:
        return
    n_tiles = len(list(tiling.tiles()))
    remote_run = run._replace(folder=run.folder.absolute())  # workers of a cluster have another working directory
    with shared_image(opened, run.folder, tiling.side) as source, counting(shown) as count:
        work = partial(_make_tile, source=source, run=remote_run, tiling=tiling, codebook=codebook)
        results: Any = run_tasks(work, missing, jobs=jobs, dask=dask)
        with closing(results):
            for n_done, (i, failure) in enumerate(results, start=n_tiles - len(missing) + 1):
                if isinstance(failure, TaskFailure):
                    raise failure.to_exception(f"tile {missing[i][0]}", f"; what is finished is kept in {run.folder}")
                count(n_done, n_tiles, f"tile {n_done}/{n_tiles}")


def _site_image(run: LargeRun, tiling: Tiling) -> Any:
    """The Zarr array of the sites."""
    return create_ome_zarr(run.folder / "sites.zarr", tiling.shape, tiling.side, np.int32, -1)


def _make_tile(
    task: tuple[int, Tile],
    _: CheckInterrupt,
    *,
    source: tuple[str, ChannelAxis],
    run: LargeRun,
    tiling: Tiling,
    codebook: Codebook,
) -> TaskFailure | None:
    """Make the sites of one tile and write them; an expected failure is returned, so that no cluster tries it again."""
    index, tile = task
    try:
        picture = read_part(open_picture(*source).array, tile.read, run.intensity_range, source[0])
        sites, sums = tile_sites(picture, tile, tiling, codebook)
        write_chunk(run.folder / "sites.zarr", _site_image(run, tiling), tile.own, sites)
        write_tile(run, index, sites, sums)
    except Exception as error:
        if not is_expected(error):
            raise
        return TaskFailure.from_exception(error)
    return None


def _sample(model: Model, preset: Large, schedule: Schedule, run: LargeRun, progress: bool | Report | None) -> Chains:
    """Sample the posterior, from the checkpoint if it is of this posterior and these sweeps.

    The checkpoint itself tells: it has a fingerprint of the posterior, with what functions of a prior return.
    """
    path = run.folder / "chains.npz"
    how: dict[str, Any] = {"checkpoint": path, "progress": progress}
    if path.exists():
        try:
            read_checkpoint(path)
            how["resume_from"] = path
        except ValueError:
            print_warning(f"{printable(path)} is damaged; sampling starts over")
    try:
        return sample_posterior(model, preset, schedule, run.seed, **how)
    except OtherChains:
        del how["resume_from"]
        return sample_posterior(model, preset, schedule, run.seed, **how)


def _regions(
    model: Model, sampled: Chains, statistics: SiteStatistics, preset: Large, tiling: Tiling
) -> NDArray[np.int32]:
    """The regions of the best partition, largest first; small ones have joined a neighbor."""
    pieces = regions_of(sampled.best_labels, model.graph)
    min_pixels, length = preset.min_region_sites * tiling.pixels_per_cell, model.graph.length
    partition = absorb_small(pieces, model.graph, model.beta, min_pixels, length=length, area=statistics.pixels)
    return largest_first(partition, statistics.pixels)
