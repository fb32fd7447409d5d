"""The folder of a run on a large picture: what the run is of, and which of its parts are whole.

A run can be killed, or the power cut, at any time. What is found damaged afterwards is made again, and standard error
tells of it; what may be of another run, or somebody else's, is refused and left as it is.
"""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.image.intensity import ValueRange
from spinseg.inference.sampler import seed_of
from spinseg.parallel.atomic import atomic_write, printable, say
from spinseg.segmentation.large.files import ends_of_large, picture_state
from spinseg.segmentation.large.tiles import Tile, Tiling

PLAN = "plan.json"
BEFORE_TILES = ("sites.zarr", "tiles")
AFTER_TILES = (
    "sampling.json",
    "chains.npz",
    "labels.zarr",
    "boundary_probability.zarr",
    "overview.png",
    "result.json",
)
BEGINNING = b'{\n  "spinseg": "'  # of every plan
SAME_RUN = "be an empty folder, or one of the same run (name another folder, or remove this one)"
SUCH_A_RUN = "be an empty folder, or one of such a run (name another folder)"
MOST_TOLD = 10  # damaged tiles by number


class Run(NamedTuple):
    """A run: its folder, its seed, its plan as text, which each tile carries, and the numbers of no and full intensity.

    These are found once, so that they are the same for all tiles, also when the run goes on.
    """

    folder: Path
    seed: int
    plan: str
    ends: ValueRange


def begin_run(folder: Path, image: Any, array: Any, tiling: Tiling, rng: Any) -> Run:
    """The run in a folder, which is new, or of the same picture, tiling, seed and version.

    `array` is `image`, a path or a Dask array, as it was opened. Nothing is written where the folder is refused.
    """
    _check_place(folder, image)
    named = isinstance(image, (str, os.PathLike))
    plan: dict[str, Any] = {"spinseg": version("spinseg")}
    plan |= {"source": os.path.abspath(image) if named else f"a Dask array, {array.name}"}
    plan |= {"shape": list(array.shape), "dtype": str(array.dtype), **tiling._asdict()}
    plan, seed = json.loads(json.dumps(plan | {"picture": picture_state(image) if named else None})), seed_of(rng)
    before = _plan_before(folder) or plan | {"seed": seed, "ends": list(ends_of_large(array))}
    _refuse_another(folder, plan, before)
    if rng is not None and seed != before["seed"]:
        invalid("rng", f"be the seed of the run in {folder}, {before['seed']}", rng)
    try:
        folder.joinpath("tiles").mkdir(parents=True, exist_ok=True)
    except OSError:
        invalid("out", "be a folder that can be written", str(folder))
    path = folder / PLAN
    if damaged := path.exists() and _plan_in(path) is None:
        say(f"{printable(path)} is damaged, and is written again")
    if damaged or not path.exists():
        write_json(path, before)
    low, high = before["ends"]
    return Run(folder, int(before["seed"]), json.dumps(before), (float(low), float(high)))


def _check_place(folder: Path, image: Any) -> None:
    """Refuse a file, and a folder within the picture, which would change what it is of."""
    if os.path.lexists(folder) and not folder.is_dir():
        invalid("out", "be a folder that can be written", str(folder))
    if isinstance(image, (str, os.PathLike)) and Path(folder).resolve().is_relative_to(Path(image).resolve()):
        invalid("out", "be a folder outside the picture", str(folder))


def _plan_before(folder: Path) -> dict[str, Any] | None:
    """The plan of the run in a folder; None where there is none yet, and nothing that a run would overwrite.

    A damaged plan is known from the tiles. Without them, what looks like the beginning of one counts as ours.
    """
    path = folder / PLAN
    if not os.path.lexists(path):
        _refuse_foreign(folder, (*BEFORE_TILES, *AFTER_TILES))
        return None
    plans = (_plan_in(place) for place in (path, *sorted(folder.glob("tiles/*.npz"))))
    found = next((plan for plan in plans if plan is not None), None)
    if found is None:
        written = path.read_bytes().rstrip(b"\0")
        if not (written.startswith(BEGINNING) or BEGINNING.startswith(written)):
            invalid("out", SUCH_A_RUN, f"{folder}, whose {PLAN} is of something else")
        _refuse_foreign(folder, AFTER_TILES)
    return found


def _plan_in(path: Path) -> dict[str, Any] | None:
    """The plan that plan.json or a tile holds; None where it is damaged or holds something else."""
    try:
        if path.suffix == ".npz":
            with path.open("rb") as file, np.load(file) as stored:
                text = str(stored["plan"])
        else:
            text = path.read_text(encoding="utf-8")
        plan = json.loads(text)
        return plan if isinstance(plan["seed"], int) and plan["source"] and len(plan["ends"]) == 2 else None
    except Exception:  # of a damaged file a decoder may raise nearly anything
        return None


def _refuse_foreign(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder that holds what a run writes, and that is not known to be of one."""
    there = [name for name in names if os.path.lexists(folder / name)]
    if "tiles" in there and (folder / "tiles").is_dir() and not any((folder / "tiles").iterdir()):
        there.remove("tiles")  # all that a run leaves that was killed at once
    if there:
        invalid("out", SUCH_A_RUN, f"{folder}, which holds {there[0]}")


def _refuse_another(folder: Path, plan: dict[str, Any], before: dict[str, Any]) -> None:
    """Refuse a folder of another run, and say what differs."""
    changed = {name: before.get(name, "unknown") for name, value in plan.items() if before.get(name) != value}
    if "picture" in changed and "source" not in changed:
        invalid("out", SAME_RUN, f"{folder}, a run of the picture before it was written again")
    if changed:
        told = ", ".join(f"{name} {value}" for name, value in changed.items() if name != "picture")
        invalid("out", SAME_RUN, f"{folder}, a run with {told}")


def tiles_left(run: Run, tiling: Tiling, sites: Any) -> list[tuple[int, Tile]]:
    """The tiles that are not done, or whose files are damaged, with their numbers; `sites` is the array of them all."""
    tiles = list(enumerate(tiling.tiles()))
    begun = {index for index, _ in tiles if part_path(run.folder, index).exists()}
    damaged = [index for index, tile in tiles if index in begun and not _is_whole(run, index, sites, tile)]
    if damaged:
        told = ", ".join(map(str, damaged[:MOST_TOLD])) + (", ..." if damaged[MOST_TOLD:] else "")
        say(f"{len(damaged)} of the tiles in {printable(run.folder)} are damaged, and are made again: {told}")
    return [(index, tile) for index, tile in tiles if index not in begun or index in damaged]


def _is_whole(run: Run, index: int, sites: Any, tile: Tile) -> bool:
    """Whether what a tile adds is of this run and can be read, and its sites are those that were written with it."""
    try:
        part = read_part(run.folder, index)
        return str(part["plan"]) == run.plan and int(part["checksum"]) == _checksum(np.asarray(sites[tile.own]))
    except Exception:  # of a damaged file a decoder may raise nearly anything
        return False


def _checksum(sites: NDArray[np.int32]) -> int:
    """A number that hardly any other sites have."""
    return zlib.crc32(np.ascontiguousarray(sites).data)


def part_path(folder: Path, index: int) -> Path:
    """The file that says that a tile is done, and what it adds."""
    return folder / "tiles" / f"{index:06d}.npz"


def write_part(run: Run, index: int, sites: NDArray[np.int32], part: dict[str, NDArray[Any]]) -> None:
    """Write what a tile adds, with marks of the run and of its sites, which are on the disk by now."""
    content: dict[str, Any] = {"plan": np.array(run.plan), "checksum": np.array(_checksum(sites)), **part}
    atomic_write(part_path(run.folder, index), lambda file: np.savez_compressed(file, **content))


def read_part(folder: Path, index: int) -> dict[str, NDArray[Any]]:
    """What a tile adds."""
    with part_path(folder, index).open("rb") as file, np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def read_parts(run: Run, tiling: Tiling) -> Iterator[dict[str, NDArray[Any]]]:
    """What all tiles add."""
    return (read_part(run.folder, index) for index, _ in enumerate(tiling.tiles()))


def read_json(path: Path, otherwise: str) -> dict[str, Any] | None:
    """What `write_json` wrote; None where there is no such file, or a damaged one, and a line says what comes of it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        say(f"{printable(path)} is damaged; {otherwise}")
        return None
    return found


def write_json(path: Path, told: dict[str, Any]) -> None:
    """Write facts, whole or not at all."""
    atomic_write(path, lambda file: file.write(json.dumps(told, indent=2).encode()))
