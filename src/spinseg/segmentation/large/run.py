"""The folder of a run on a large picture: its provenance, and which of its tiles are finished.

A run can be killed, or the power cut, at any time. Damaged tiles are made again with a warning. A folder with files
that may belong to another run, or to somebody else, is refused and left as it is.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._run.atomic import atomic_write, print_warning, printable
from spinseg._run.provenance import Provenance, is_done
from spinseg._validation import InvalidInput, check_writable, invalid, seed_of
from spinseg.image.layout import ChannelAxis, IntensityRange
from spinseg.segmentation.files import check_inputs_kept
from spinseg.segmentation.large.files import intensity_range_of, picture_content
from spinseg.segmentation.large.tiles import Arrays, Tile, Tiling

PLAN_FILE = "plan.json"
OUTPUTS = (
    *("sites.zarr", "tiles", "chains.npz", "labels.zarr", "boundary_probability.zarr"),
    *("overview.png", "result.json"),
)
RUN_FOLDER_RULE = "be an empty folder, or one of such a run (name another folder)"
ADVICE = "name another folder, or remove this one"
MAX_LISTED_TILES = 10  # in a warning about damaged tiles


class LargeRun(NamedTuple):
    """A run in a folder. Its provenance is written to plan.json and with every tile."""

    folder: Path
    provenance: Provenance

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.provenance.seed)

    @property
    def intensity_range(self) -> IntensityRange:
        """The numbers of no and full intensity, found once, so that they are the same for all tiles."""
        low, high = self.provenance.settings["used_range"]
        return low, high


def open_run(
    folder: Path,
    image: Any,
    array: Any,
    tiling: Tiling,
    rng: Any,
    channel_axis: ChannelAxis = "auto",
    intensity_range: IntensityRange | None = None,
) -> LargeRun:
    """Begin a run in a new folder, or continue the one of the same picture, tiling, seed and version.

    `array` is what `open_picture` made of `image`, a path or a Dask array. A folder that is refused stays as it is.
    """
    check_writable(folder)
    stored = _stored_provenance(folder)
    if isinstance(image, (str, os.PathLike)):
        check_inputs_kept(folder, OUTPUTS, [os.fspath(image)])
        before = {} if stored is None else stored.inputs.get("picture") or {}
        picture = picture_content(image, before) | {"source": os.path.abspath(image)}
    else:
        picture = {"source": f"a Dask array, {array.name}"}
    settings: dict[str, Any] = {"channels": array.shape[-1], "dtype": str(array.dtype), **tiling._asdict()}
    settings["channel_axis"] = None if channel_axis == "auto" else str(channel_axis)
    settings["intensity_range"] = intensity_range
    seed = seed_of(rng) if stored is None or rng is not None else stored.seed
    wanted = Provenance.of_run(settings, seed, {"picture": picture})
    is_resumed = is_done(stored, wanted, folder, ADVICE)
    if stored is None:
        used = [float(end) for end in intensity_range or intensity_range_of(array)]
        stored = wanted._replace(settings={**wanted.settings, "used_range": used})
    folder.joinpath("tiles").mkdir(parents=True, exist_ok=True)
    if not is_resumed:
        write_json(folder / PLAN_FILE, stored.to_json())
    return LargeRun(folder, stored)


def check_unchanged(run: LargeRun, image: Any) -> None:
    """Refuse a picture that has changed since the run began, whose tiles may then show different pictures."""
    before = run.provenance.inputs["picture"]
    if isinstance(image, (str, os.PathLike)) and before and picture_content(image, before) != before:
        advice = f"Remove {printable(run.folder)}, or name another folder, and start again."
        raise InvalidInput(f"the image changed while its tiles were made: {printable(image)}. {advice}")


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


def missing_tiles(run: LargeRun, tiling: Tiling, sites: Any) -> list[tuple[int, Tile]]:
    """The tiles, with their indices, that are unfinished or damaged; `sites` is the Zarr array of the sites."""
    tiles = list(enumerate(tiling.tiles()))
    finished = {index for index, _ in tiles if tile_path(run.folder, index).exists()}
    damaged = [index for index, tile in tiles if index in finished and not _is_intact(run, index, sites, tile)]
    if damaged:
        listed = ", ".join(map(str, damaged[:MAX_LISTED_TILES])) + (", ..." if damaged[MAX_LISTED_TILES:] else "")
        print_warning(f"damaged tiles in {printable(run.folder)} are made again: {listed}")
    return [(index, tile) for index, tile in tiles if index not in finished or index in damaged]


def _is_intact(run: LargeRun, index: int, sites: Any, tile: Tile) -> bool:
    """Whether the file of a tile is of this run and readable, and its sites are those that were written with it."""
    try:
        stored = read_tile(run.folder, index)
        same_sites = int(stored["checksum"]) == _checksum(sites[tile.own])
        return same_sites and str(stored["plan"]) == json.dumps(run.provenance.to_json())
    except Exception:  # decoders raise nearly anything for a damaged file
        return False


def _checksum(sites: NDArray[np.int32]) -> int:
    return zlib.crc32(np.ascontiguousarray(sites).data)


def tile_path(folder: Path, index: int) -> Path:
    """The file of a tile's sums, whose existence says that the tile is finished."""
    return folder / "tiles" / f"{index:06d}.npz"


def write_tile(run: LargeRun, index: int, sites: NDArray[np.int32], sums: Arrays) -> None:
    """Write the sums of a tile, with the plan and a checksum of its sites, which must be on the disk by then."""
    plan: Any = json.dumps(run.provenance.to_json())
    content = {"plan": plan, "checksum": _checksum(sites), **sums}
    atomic_write(tile_path(run.folder, index), lambda file: np.savez_compressed(file, **content))


def read_tile(folder: Path, index: int) -> Arrays:
    """The content of the file of a tile."""
    with tile_path(folder, index).open("rb") as file, np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Write a dict as JSON, completely or not at all."""
    atomic_write(path, lambda file: file.write(json.dumps(record, indent=2).encode()))
