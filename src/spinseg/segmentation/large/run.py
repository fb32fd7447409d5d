"""The folder of a run on a large picture: its provenance, and which of its tiles are finished.

A run can be killed, or the power cut, at any time. Damaged tiles are made again with a warning. A folder with files
that may belong to another run, or to somebody else, is refused and left as it is.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._run.atomic import atomic_write, print_warning, printable
from spinseg._run.provenance import Provenance, is_done
from spinseg._validation import InvalidInput, check_writable, invalid, seed_of
from spinseg.image.layout import IntensityRange
from spinseg.segmentation.files import check_inputs_kept
from spinseg.segmentation.large.files import OpenedPicture, picture_content
from spinseg.segmentation.large.tiles import Arrays, Tile, Tiling

PLAN_FILE = "plan.json"  # the provenance of the run
OUTPUTS = ("sites.zarr", "tiles", "labels.zarr", "boundary_probability.zarr", "overview.png", "result.json")
RUN_FOLDER_RULE = "be an empty folder, or one of such a run (name another folder)"
ADVICE = "name another folder, or remove this one"
MAX_LISTED_TILES = 10  # in a warning about damaged tiles


def open_run(
    folder: Path,
    image: Any,
    opened: OpenedPicture,
    rng: Any,
    settings: dict[str, Any],
    intensity_range: IntensityRange | None = None,
) -> Provenance:
    """Begin a run in a new folder, or continue the one of the same picture, settings, seed and version.

    `opened` is `image`, a path or a Dask array. A folder that is refused stays as it is. The setting "used_range" has
    the black and white levels, found once, so that they are the same for all tiles.
    """
    check_writable(folder)
    stored = _stored_provenance(folder)
    if isinstance(image, (str, os.PathLike)):
        check_inputs_kept(folder, OUTPUTS, [os.fspath(image)])
        before = {} if stored is None else stored.inputs.get("picture") or {}
        picture = picture_content(image, before) | {"source": os.path.abspath(image)}
    else:
        picture = {"source": f"a Dask array, {opened.array.name}"}
    settings |= {
        "channels": opened.array.shape[-1],
        "dtype": str(opened.array.dtype),
        "intensity_range": intensity_range,
    }
    seed = seed_of(rng) if stored is None or rng is not None else stored.seed
    wanted = Provenance.of_run(settings, seed, {"picture": picture})
    is_resumed = is_done(stored, wanted, folder, ADVICE)
    if stored is None:
        used = [float(end) for end in intensity_range or opened.inferred_range()]
        stored = wanted._replace(settings={**wanted.settings, "used_range": used})
    folder.joinpath("tiles").mkdir(parents=True, exist_ok=True)
    if not is_resumed:
        write_json(folder / PLAN_FILE, stored.to_json())
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


def check_unchanged(folder: Path, plan: Provenance, image: Any) -> None:
    """Refuse a picture that has changed since the run began, whose tiles may then show different pictures."""
    before = plan.inputs["picture"]
    if isinstance(image, (str, os.PathLike)) and before and picture_content(image, before) != before:
        advice = f"Remove {printable(folder)}, or name another folder, and start again."
        raise InvalidInput(f"the image changed while its tiles were made: {printable(image)}. {advice}")


def missing_tiles(folder: Path, tiling: Tiling, sites: Any) -> list[Tile]:
    """The tiles that are unfinished or damaged; `sites` is the Zarr array of the sites."""
    missing, damaged = [], []
    for tile in tiling.tiles():
        try:
            stored = read_tile(folder, tile.number)
            if int(stored["checksum"]) == _checksum(sites[tile.core]):
                continue
            damaged.append(tile.number)
        except FileNotFoundError:
            pass
        except Exception:  # decoders raise nearly anything for a damaged file
            damaged.append(tile.number)
        missing.append(tile)
    if damaged:
        listed = ", ".join(map(str, damaged[:MAX_LISTED_TILES])) + (", ..." if damaged[MAX_LISTED_TILES:] else "")
        print_warning(f"damaged tiles in {printable(folder)} are made again: {listed}")
    return missing


def _tile_path(folder: Path, index: int) -> Path:
    """The file of what is known of a tile, whose existence says that the tile is finished."""
    return folder / "tiles" / f"{index:06d}.npz"


def write_tile(folder: Path, index: int, sites: NDArray[np.int64], found: Arrays) -> None:
    """Write what is known of a tile, with a checksum of its sites, which must be on the disk by then."""
    content: Any = {"checksum": _checksum(sites), **found}
    atomic_write(_tile_path(folder, index), lambda file: np.savez_compressed(file, **content))


def read_tile(folder: Path, index: int) -> Arrays:
    """The content of the file of a tile."""
    with _tile_path(folder, index).open("rb") as file, np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def _checksum(sites: NDArray[np.int64]) -> int:
    return zlib.crc32(np.ascontiguousarray(sites).data)


def write_json(path: Path, record: dict[str, Any]) -> None:
    """Write a dict as JSON, completely or not at all."""
    atomic_write(path, lambda file: file.write(json.dumps(record, indent=2).encode()))
