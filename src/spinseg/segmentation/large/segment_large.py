"""One picture that is larger than memory: sites tile by tile, one graph, one posterior, labels tile by tile."""

import os
import shutil
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spinseg._errors import expected
from spinseg._validation import check_int, check_real, invalid
from spinseg.image.adjacency import region_adjacency
from spinseg.image.boundary.log_odds import hardly_varies, log_odds_of_plain, plain_cues_of, signed_couplings
from spinseg.image.features import Codebook
from spinseg.image.intensity import ValueRange
from spinseg.image.io import write_png
from spinseg.image.picture import Picture, as_picture
from spinseg.image.render import label_colours, paint_edges
from spinseg.inference.chains import Chains
from spinseg.inference.checkpoint import read_chains
from spinseg.inference.estimates.pairs import separation_probability
from spinseg.inference.progress import Report, counting
from spinseg.inference.regions import regions_of, without_small
from spinseg.inference.sampler import sample, thin_to_fit
from spinseg.model.posterior import Model
from spinseg.model.priors import PartitionPrior
from spinseg.parallel.atomic import printable, say
from spinseg.parallel.dask import on_cluster
from spinseg.parallel.processes import Heed, Lost, in_processes
from spinseg.parallel.shared_arrays import shared
from spinseg.segmentation.image_model import Shown, by_lightness, gaussian
from spinseg.segmentation.large.files import create_ome_zarr, open_large, read_part, write_chunk
from spinseg.segmentation.large.run import Run, begin_run, read_json, read_parts, tiles_left, write_json, write_part
from spinseg.segmentation.large.tiles import Gathered, Tile, Tiling, gathered, tile_sites
from spinseg.segmentation.settings import PHOTO, USUAL_PIXELS, Settings

MOST_SITES = 200_000  # by default: of more pixels each site has more
TILE = 2048  # pixels along each side
WIDEST = 1600  # pixels of the overview
LONGEST_SIDE = 481  # pixels of the photographs that the constants are for: position there runs from 0 to 100


@dataclass(frozen=True, eq=False)
class LargeSegmentation:
    """A segmentation that lies in a folder.

    Attributes
    ----------
    folder : Path
        Holds labels.zarr and boundary_probability.zarr (OME-Zarr 0.5), overview.png and result.json; sites.zarr, tiles
        and chains.npz are what a run goes on from.
    n_regions : int
    partition : (n_sites,) int32
        The region of each site.
    separation : (n_edges,) float64
        How often the two sites of each edge lie apart, over the draws.
    model : Model
    chains : Chains
    seed : int
    """

    folder: Path
    n_regions: int
    partition: NDArray[np.int32] = field(repr=False)
    separation: NDArray[np.float64] = field(repr=False)
    model: Model = field(repr=False)
    chains: Chains = field(repr=False)
    seed: int

    @property
    def labels(self) -> Any:
        """The region of every pixel, as a Dask array of int32."""
        return open_labels(self.folder / "labels.zarr")

    @property
    def boundary_probability(self) -> Any:
        """How often neighbouring pixels are separated, as a Dask array of uint8: 255 for always."""
        return open_labels(self.folder / "boundary_probability.zarr")


def open_labels(path: Path) -> Any:
    """What was written by `create_ome_zarr`, as a Dask array."""
    import dask.array

    return dask.array.from_zarr(os.fspath(path), component="0")


def segment_large(
    image: str | os.PathLike[str] | Any,
    out: str | os.PathLike[str],
    *,
    n_sites: int | None = None,
    detail: float = 0.5,
    prior: PartitionPrior | None = None,
    sweeps: int = 200,
    chains: int = 1,
    tile: int = TILE,
    rng: int | np.random.Generator | None = None,
    jobs: int | None = None,
    dask: str | None = None,
    progress: bool | Report | None = None,
) -> LargeSegmentation:
    """The segmentation of a picture that need not fit into memory, written to a folder.

    It is cut into sites tile by tile, by several processes or a cluster; what is known of the sites makes one graph and
    one posterior, as in the preset "photo" without its maps. Called again with the same folder it goes on where it was
    cut short, and no tile that was finished is done again, nor where only the sampling shall be another. What was
    damaged meanwhile is made again, and standard error tells of it.

    Parameters
    ----------
    image : path or Dask array
        Of one plane, uint8 or uint16: a folder of Zarr or OME-Zarr, or a TIFF file. Intensities of uint16 run over the
        numbers used, by the rule of `segment`; of more than 2048 pixels along an axis, 256 at each of 8 places are
        looked at for that.
    out : path
        The folder; made where it is not there. One that holds the results of another picture, version, tiling or seed,
        or other files of the names that are written, is refused and left as it is. A Dask array is known by its name.
    n_sites : int, optional
        About how many; one for 190 pixels by default, but at most 200,000.
    detail, prior, sweeps, chains
        As in `segment`.
    tile : int
        Pixels along each side of a tile.
    rng : int, Generator or None
        Seed. A run that goes on keeps the one that it had if this is None.
    jobs : int, optional
        Processes; as many as there are processors by default.
    dask : str, optional
        Address of a Dask scheduler instead, whose workers see the same files under the same paths.
    progress : bool or callable, optional
        True shows on standard error how many tiles are done, then sweeps.
    """
    detail, sweeps = check_real("detail", detail, at_least=0, at_most=1), check_int("sweeps", sweeps, at_least=1)
    settings = replace(PHOTO, detail=detail, sweeps=sweeps, prior=prior or PHOTO.prior)
    chains = check_int("chains", chains, at_least=1)
    if jobs is not None and dask is not None:
        invalid("jobs", "be left out where dask is given", jobs)
    jobs = check_int("jobs", (os.cpu_count() or 1) if jobs is None else jobs, at_least=1)
    array = open_large(image)
    rows, columns, n_channels = array.shape
    n_pixels = rows * columns
    if n_sites is None:
        n_sites = max(1, min(round(n_pixels / settings.pixels_per_site), MOST_SITES))
    tiling = Tiling.of((rows, columns), check_int("n_sites", n_sites, at_least=1), check_int("tile", tile, at_least=64))
    run = begin_run(Path(out), image, array, tiling, rng)
    folder, seed = run.folder, run.seed

    codebook = _codebook(array, settings, run.ends)
    source = os.path.abspath(image) if isinstance(image, (str, os.PathLike)) else array
    _do_tiles(source, run, tiling, codebook, jobs, dask, progress is True)
    known = gathered(read_parts(run, tiling), tiling.n_cells, len(codebook))
    each = n_pixels / tiling.n_cells
    model = large_model(known, settings, each, three=n_channels in (1, 3))

    drawn = _drawn(model, settings, chains, seed, folder, progress)
    smallest = settings.smallest_region * USUAL_PIXELS / settings.pixels_per_site * each
    pieces = regions_of(drawn.best_labels, model.graph)
    partition = without_small(pieces, known.adjacency, known.pixels, model.beta, smallest)
    separation = separation_probability(drawn.labels, model.graph.edges)
    n_regions = int(partition.max()) + 1
    (folder / "result.json").unlink(missing_ok=True)  # an old one would be wrong if this is killed midway
    _write(folder, tiling, known, partition, drawn.labels, n_channels in (1, 3), progress is True)
    told = {"regions": n_regions, "sites": model.graph.n_sites, "edges": model.graph.n_edges, "shape": [rows, columns]}
    told |= {"tiles": len(list(tiling.tiles())), "seed": seed, "sweeps": sweeps, "detail": detail}
    write_json(folder / "result.json", told | {"best_log_posterior": drawn.best_log_posterior})
    return LargeSegmentation(folder, n_regions, partition, separation, model, drawn, seed)


def _codebook(array: Any, settings: Settings, ends: ValueRange) -> Codebook:
    """The general colour words, or some fitted to a few places of a picture of other channels."""
    if array.shape[-1] in (1, 3):
        return Codebook.general(settings.n_words)
    rows, columns = (np.linspace(0, max(length - 64, 0), 8).astype(int) for length in array.shape[:2])
    crops = [_read(array, (slice(r, r + 64), slice(c, c + 64)), ends) for r in rows for c in columns]
    return Codebook.fit(crops, settings.n_words, rng=0)


def _read(array: Any, box: tuple[slice, slice], ends: ValueRange, source: Any = None) -> Picture:
    """A part of a picture; intensities run between the same numbers in all parts."""
    return as_picture(read_part(array, box, source), channel_axis=-1, ends=ends)


def _do_tiles(
    source: Any, run: Run, tiling: Tiling, codebook: Codebook, jobs: int, dask: str | None, shown: bool
) -> None:
    """Make the sites of all tiles that are not done yet, or were damaged."""
    n_tiles = len(list(tiling.tiles()))
    left = tiles_left(run, tiling, _opened(run.folder / "sites.zarr", tiling, np.int32, -1))
    told, run = run.folder, run._replace(folder=run.folder.absolute())
    n_done = n_tiles - len(left)
    with shared(source if left else None, run.folder) as seen, counting(shown, "tile", n_tiles, n_done) as count:
        work = partial(_do_tile, source=seen, run=run, tiling=tiling, codebook=codebook)
        coming: Any = in_processes(work, left, jobs) if dask is None or not left else on_cluster(work, left, dask)
        with closing(coming):
            for place, problem in coming:
                if isinstance(problem, Lost):
                    raise problem.error(f"tile {left[place][0]}", kept=f"; what is finished is kept in {told}")
                count()


def _do_tile(
    task: tuple[int, Tile], heed: Heed, *, source: Any, run: Run, tiling: Tiling, codebook: Codebook
) -> Lost | None:
    """Make the sites of one tile and write them; None, or why not. It takes seconds, and is not cut short."""
    index, tile = task
    try:
        sites, part = tile_sites(_read(open_large(source), tile.read, run.ends, source), tile, tiling, codebook)
        place = run.folder / "sites.zarr"
        write_chunk(place, create_ome_zarr(place, tiling.shape, tiling.side, np.int32, -1), tile.own, sites)
        write_part(run, index, sites, part)
    except Exception as error:
        if not expected(error):
            raise
        return Lost.to(error, 0.0)
    return None


def large_model(known: Gathered, settings: Settings, each: float, three: bool) -> Model:
    """The posterior of "photo" without maps, for sites of `each` pixels; `three` where colours are CIELAB.

    A larger picture shows more things, not the same ones larger: a site counts for as much as one of a photograph, and
    lengths are measured in sites.
    """
    counted = settings.pixels_per_site / each
    scale = 100 / LONGEST_SIDE * counted**0.5
    colour, position = np.split(known.means, [-2], axis=1)
    colours, positions = np.split(known.squares, [-2], axis=1)
    if three:
        means, squares = by_lightness(colour), by_lightness(colours)
        overall = known.pixels @ means["colour"] / known.pixels.sum()
        variance = known.pixels @ squares["colour"] / known.pixels.sum() - overall**2
        if hardly_varies(np.sqrt(np.maximum(variance, 0))):
            del means["colour"], squares["colour"]
    else:
        means, squares = {"colour": colour}, {"colour": colours}
    means["position"], squares["position"] = scale * position, scale**2 * positions
    shown = Shown(known.pixels, {name: (means[name], squares[name]) for name in means})
    cues = plain_cues_of(colour, known.slope, known.words, known.adjacency.graph.edges)
    strength, threshold = settings.coupling
    length = known.adjacency.boundary_length
    beta = signed_couplings(log_odds_of_plain(cues), length, strength * counted**0.5, threshold)
    return Model(known.adjacency.graph, gaussian(shown, settings, counted), settings.prior, beta)


def _drawn(
    model: Model, settings: Settings, chains: int, seed: int, folder: Path, progress: bool | Report | None
) -> Chains:
    """Chains of the posterior, which go on from a file; with other settings they begin anew."""
    path, burn_in = folder / "chains.npz", settings.sweeps // 2
    how: dict[str, Any] = {"detail": settings.detail, "sweeps": settings.sweeps, "chains": chains, "seed": seed}
    how |= {"prior": type(settings.prior).__name__, "parameters": repr(sorted(vars(settings.prior).items()))}
    if read_json(folder / "sampling.json", "sampling begins anew") != how:
        path.unlink(missing_ok=True)
        write_json(folder / "sampling.json", how)
    elif path.exists() and not _are_whole(path):
        say(f"{printable(path)} is damaged; sampling begins anew")
        path.unlink()
    return sample(
        model,
        settings.sweeps,
        chains,
        init=settings.init,
        burn_in=burn_in,
        thin=thin_to_fit(settings.sweeps - burn_in, chains * model.graph.n_sites),
        rng=seed,
        checkpoint=path,
        resume_from=path if path.exists() else None,
        progress=progress,
    )


def _are_whole(path: Path) -> bool:
    """Whether chains can be read."""
    try:
        read_chains(path)
    except ValueError:
        return False
    return True


def _opened(path: Path, tiling: Tiling, dtype: DTypeLike, fill: int) -> Any:
    """An array of a run, as it is there; where its description is damaged, a new one."""
    try:
        return create_ome_zarr(path, tiling.shape, tiling.side, dtype, fill)
    except (ValueError, TypeError, KeyError):  # of damaged JSON; all that concerns the disk is an OSError
        say(f"{printable(path)} is damaged, and is made again")
        shutil.rmtree(path)
        return create_ome_zarr(path, tiling.shape, tiling.side, dtype, fill)


def _write(
    folder: Path,
    tiling: Tiling,
    known: Gathered,
    partition: NDArray[np.int32],
    draws: NDArray[np.int32],
    three: bool,
    shown: bool,
) -> None:
    """Labels and boundary probabilities, tile by tile, and the overview."""
    labels_at, apart_at = folder / "labels.zarr", folder / "boundary_probability.zarr"
    sites = create_ome_zarr(folder / "sites.zarr", tiling.shape, tiling.side, np.int32, -1)
    labels = _opened(labels_at, tiling, np.int32, -1)
    apart = _opened(apart_at, tiling, np.uint8, 0)
    step = -(-max(tiling.shape) // WIDEST)
    overview = np.zeros((-(-tiling.shape[0] // step), -(-tiling.shape[1] // step)), np.int32)
    tiles = list(tiling.tiles())
    with counting(shown, "writing tile", len(tiles)) as count:
        for tile in tiles:
            wide = tuple(slice(max(span.start - 1, 0), span.stop + 1) for span in tile.own)
            here = known.site_of[sites[wide]]
            own = tuple(slice(t.start - w.start, t.stop - w.start) for t, w in zip(tile.own, wide, strict=True))
            write_chunk(labels_at, labels, tile.own, partition[here[own]])
            edges = region_adjacency(here).graph.edges  # across the border of a tile the graph may lack some
            painted = paint_edges(here, edges, separation_probability(draws, edges))[own]
            write_chunk(apart_at, apart, tile.own, np.rint(255 * painted).astype(np.uint8))
            first = [-(-span.start // step) for span in tile.own]
            some = here[own][tuple(slice(f * step - s.start, None, step) for f, s in zip(first, tile.own, strict=True))]
            overview[first[0] : first[0] + some.shape[0], first[1] : first[1] + some.shape[1]] = some
            count()
    write_png(folder / "overview.png", _overview(overview, known, partition, three))


def _overview(
    sites: NDArray[np.int32], known: Gathered, partition: NDArray[np.int32], three: bool
) -> NDArray[np.uint8]:
    """Sites in their mean colours with the outlines of regions; where channels are no colours, regions in some."""
    from skimage.color import lab2rgb
    from skimage.segmentation import find_boundaries

    regions = partition[sites]
    if three:
        picture = np.rint(255 * lab2rgb(known.means[:, :3])).astype(np.uint8)[sites]
    else:
        picture = label_colours(int(partition.max()) + 1)[regions].astype(np.uint8)
    picture[find_boundaries(regions, mode="inner")] = (255, 230, 0)
    return picture
