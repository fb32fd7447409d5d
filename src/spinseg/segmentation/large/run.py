"""The folder of a run on a large picture: its provenance, and which of its tiles are finished.

A run can be killed, or the power cut, at any time. Damaged files are made again with a warning. A folder with files
that may belong to another run, or to somebody else, is refused and left as it is.
"""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._run.atomic import atomic_write, print_warning, printable
from spinseg._run.provenance import Provenance
from spinseg._validation import InvalidInput, invalid, seed_of
from spinseg.image.layout import ChannelAxis, IntensityRange
from spinseg.segmentation.large.files import intensity_range_of, picture_content
from spinseg.segmentation.large.tiles import Arrays, Tile, Tiling

PLAN_FILE = "plan.json"
TILE_OUTPUTS = ("sites.zarr", "tiles")
FINAL_OUTPUTS = (
    "chains.npz",
    "labels.zarr",
    "boundary_probability.zarr",
    "overview.png",
    "result.json",
)
PLAN_START = b'{\n  "spinseg": "'  # the first bytes of every plan
SAME_RUN_RULE = "be an empty folder, or one of the same run (name another folder, or remove this one)"
RUN_FOLDER_RULE = "be an empty folder, or one of such a run (name another folder)"
MAX_LISTED_TILES = 10  # in a warning about damaged tiles


class LargeRun(NamedTuple):
    """A run in a folder. Its plan, everything but the folder, is written to plan.json and with every tile.

    The value range, the numbers of no and full intensity, is found once, so that it is the same for all tiles.
    """

    folder: Path
    provenance: Provenance
    intensity_range: IntensityRange

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.provenance.seed)

    @property
    def plan(self) -> dict[str, Any]:
        """The plan in types that JSON knows."""
        return {**self.provenance.to_json(), "intensity_range": list(self.intensity_range)}


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

    `array` is what `open_large` made of `image`, a path or a Dask array. A folder that is refused stays as it is.
    """
    _check_location(folder, image)
    run = _stored_run(folder)
    if isinstance(image, (str, os.PathLike)):
        before = {} if run is None else run.provenance.inputs.get("picture") or {}
        picture = picture_content(image, before) | {"source": os.path.abspath(image)}
    else:
        picture = {"source": f"a Dask array, {array.name}"}
    settings: dict[str, Any] = {"channels": array.shape[-1], "dtype": str(array.dtype), **tiling._asdict()}
    settings["channel_axis"] = None if channel_axis == "auto" else str(channel_axis)
    settings["intensity_range"] = intensity_range
    wanted = Provenance.of_run(settings, seed_of(rng), {"picture": picture})
    if run is None:
        low, high = intensity_range or intensity_range_of(array)
        run = LargeRun(folder, wanted, (float(low), float(high)))
    stored = run.provenance
    if differences := stored.differences(wanted._replace(seed=stored.seed)):
        invalid("out", SAME_RUN_RULE, f"{folder}, another run ({', '.join(differences)})")
    if rng is not None and wanted.seed != stored.seed:
        invalid("rng", f"be the seed of the run in {folder}, {stored.seed}", rng)
    try:
        folder.joinpath("tiles").mkdir(parents=True, exist_ok=True)
    except OSError:
        invalid("out", "be a folder that can be written", str(folder))
    path = folder / PLAN_FILE
    if damaged := path.exists() and _read_run(folder, path) is None:
        print_warning(f"{printable(path)} is damaged, and is written again")
    if damaged or not path.exists():
        write_json(path, run.plan)
    return run


def check_unchanged(run: LargeRun, image: Any) -> None:
    """Refuse a picture that has changed since the run began, whose tiles may then show different pictures."""
    before = run.provenance.inputs["picture"]
    if isinstance(image, (str, os.PathLike)) and before and picture_content(image, before) != before:
        advice = f"Remove {printable(run.folder)}, or name another folder, and start again."
        raise InvalidInput(f"the image changed while its tiles were made: {printable(image)}. {advice}")


def _check_location(folder: Path, image: Any) -> None:
    """Refuse a file, and a folder inside the picture, whose files would then change."""
    if os.path.lexists(folder) and not folder.is_dir():
        invalid("out", "be a folder that can be written", str(folder))
    if isinstance(image, (str, os.PathLike)) and Path(folder).resolve().is_relative_to(Path(image).resolve()):
        invalid("out", "be a folder outside the picture", str(folder))


def _stored_run(folder: Path) -> LargeRun | None:
    """The run that a folder holds; None for a new run. A folder with files of somebody else is refused.

    Where plan.json is damaged, the plan is read from the tiles. Without tiles, the run begins anew if what is left of
    the file looks like a plan.
    """
    path = folder / PLAN_FILE
    if not os.path.lexists(path):
        _check_foreign_files(folder, (*TILE_OUTPUTS, *FINAL_OUTPUTS))
        return None
    runs = (_read_run(folder, file) for file in (path, *sorted(folder.glob("tiles/*.npz"))))
    run = next((run for run in runs if run is not None), None)
    if run is None:
        content = path.read_bytes().rstrip(b"\0")
        if not (content.startswith(PLAN_START) or PLAN_START.startswith(content)):
            invalid("out", RUN_FOLDER_RULE, f"{folder}, whose {PLAN_FILE} is of something else")
        _check_foreign_files(folder, FINAL_OUTPUTS)
    return run


def _read_run(folder: Path, path: Path) -> LargeRun | None:
    """The run whose plan is in plan.json or in the file of a tile; None where it is damaged or something else."""
    try:
        if path.suffix == ".npz":
            with path.open("rb") as file, np.load(file) as stored:
                text = str(stored["plan"])
        else:
            text = path.read_text(encoding="utf-8")
        plan = json.loads(text)
        low, high = map(float, plan["intensity_range"])
        run = LargeRun(folder, Provenance.from_json(plan), (low, high))
        return run if isinstance(run.provenance.seed, int) else None
    except Exception:  # decoders raise nearly anything for a damaged file
        return None


def _check_foreign_files(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder that holds files of these names, since no run is known to have written them."""
    present = [name for name in names if os.path.lexists(folder / name)]
    if "tiles" in present and (folder / "tiles").is_dir() and not any((folder / "tiles").iterdir()):
        present.remove("tiles")  # a run that was killed at once leaves it empty
    if present:
        invalid("out", RUN_FOLDER_RULE, f"{folder}, which holds {present[0]}")


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
        same_sites = int(stored["checksum"]) == _checksum(np.asarray(sites[tile.own]))
        return same_sites and str(stored["plan"]) == json.dumps(run.plan)
    except Exception:  # decoders raise nearly anything for a damaged file
        return False


def _checksum(sites: NDArray[np.int32]) -> int:
    """The CRC-32 of the sites of a tile."""
    return zlib.crc32(np.ascontiguousarray(sites).data)


def tile_path(folder: Path, index: int) -> Path:
    """The file of a tile's sums, whose existence says that the tile is finished."""
    return folder / "tiles" / f"{index:06d}.npz"


def write_tile(run: LargeRun, index: int, sites: NDArray[np.int32], sums: Arrays) -> None:
    """Write the sums of a tile, with the plan and a checksum of its sites, which must be on the disk by then."""
    content: dict[str, Any] = {"plan": np.array(json.dumps(run.plan)), "checksum": np.array(_checksum(sites)), **sums}
    atomic_write(tile_path(run.folder, index), lambda file: np.savez_compressed(file, **content))


def read_tile(folder: Path, index: int) -> Arrays:
    """The content of the file of a tile."""
    with tile_path(folder, index).open("rb") as file, np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def read_tiles(run: LargeRun, tiling: Tiling) -> Iterator[Arrays]:
    """The content of the files of all tiles."""
    return (read_tile(run.folder, index) for index, _ in enumerate(tiling.tiles()))


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Write a dict as JSON, completely or not at all."""
    atomic_write(path, lambda file: file.write(json.dumps(record, indent=2).encode()))
