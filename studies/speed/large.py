"""`spinseg large` on a synthetic image of 20,000 x 20,000 pixels: time, memory of all processes, resuming after a kill.

SPINSEG_LARGE_SHAPE is another shape, such as "1000x40000", SPINSEG_LARGE_OPTIONS has more options of the command, such
as "--sweeps 20", and SPINSEG_LARGE_FOLDER is the folder for the image, of some gigabytes.
"""

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from studies.evaluation.baselines.library import felzenszwalb

SHAPE = tuple(map(int, os.environ.get("SPINSEG_LARGE_SHAPE", "20000x20000").split("x")))
CHUNK, STEP = 2000, 4  # pixels of a chunk, and of the squares of one color in it
N_FIELDS = 400  # patches of different colors
KILL_AFTER = 20  # tiles
FELZENSZWALB_SIDE = 2000  # of the part that felzenszwalb is timed on


def chunk(top: int, left: int) -> NDArray[np.uint8]:
    """Return a part of the picture: patches with wavy outlines, a slow change of color, and noise."""
    rng = np.random.default_rng(0)
    centers, colors = rng.random((N_FIELDS, 2)) * SHAPE / max(SHAPE), rng.integers(30, 226, (N_FIELDS, 3))
    y, x = np.mgrid[top : top + CHUNK : STEP, left : left + CHUNK : STEP] / max(SHAPE)
    wavy = np.stack([y + 0.01 * np.sin(40 * x + 9 * y), x + 0.01 * np.sin(37 * y - 5 * x)], axis=-1)
    field = cKDTree(centers).query(wavy.reshape(-1, 2))[1].reshape(y.shape)
    smooth = colors[field] + 12 * np.sin(6 * np.stack([x, y, x + y], axis=-1))
    noise = np.random.default_rng([top, left]).normal(0, 6, (CHUNK, CHUNK, 1)).astype(np.float32)
    painted = smooth.astype(np.float32).repeat(STEP, axis=0).repeat(STEP, axis=1) + noise
    return painted.clip(0, 255).astype(np.uint8)


def make(path: Path) -> None:
    """Write the picture chunk by chunk, unless it exists."""
    import zarr

    if path.exists():
        return
    array = zarr.create_array(str(path), shape=(*SHAPE, 3), chunks=(CHUNK, CHUNK, 3), dtype="u1")
    for top, left in product(range(0, SHAPE[0], CHUNK), range(0, SHAPE[1], CHUNK)):
        part = chunk(top, left)[: SHAPE[0] - top, : SHAPE[1] - left]
        array[top : top + CHUNK, left : left + CHUNK] = part


def memory(session: int) -> int:
    """Return the bytes of memory of all processes of a session, shared pages counted once (Linux)."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    text = (entry / "smaps_rollup").read_text()
                    total += 1024 * int(text.split("Pss:")[1].split()[0])
            except (OSError, IndexError):  # it ended meanwhile
                continue
    return total


def run(source: Path, out: Path, kill_after: int | None = None) -> tuple[float, int, str]:
    """Run `spinseg large`, killed after some tiles if asked; return seconds, peak memory and its standard error."""
    command = [sys.executable, "-m", "spinseg", "large", str(source), "--out", str(out)]
    command += shlex.split(os.environ.get("SPINSEG_LARGE_OPTIONS", ""))
    began, peak = time.perf_counter(), 0
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    output: list[str] = []
    reader = threading.Thread(target=lambda: output.extend(process.stderr or ()))
    reader.start()
    while process.poll() is None:
        peak = max(peak, memory(process.pid))
        if kill_after is not None and len(list((out / "tiles").glob("*.npz"))) >= kill_after:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.2)
    reader.join()
    return time.perf_counter() - began, peak, "".join(output)


def felzenszwalb_seconds(source: Path) -> float:
    """Return the seconds per megapixel of felzenszwalb on one core, as tuned for photographs."""
    import zarr

    part: Any = zarr.open_array(str(source), mode="r")[:FELZENSZWALB_SIDE, :FELZENSZWALB_SIDE]
    began = time.process_time()
    felzenszwalb(part)
    return (time.process_time() - began) / (part.shape[0] * part.shape[1] / 1e6)


def study() -> dict[str, object]:
    """Kill the run after some tiles, then resume it."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("SPINSEG_LARGE_FOLDER")) as folder:
        source, out = Path(folder, "picture.zarr"), Path(folder, "out")
        make(source)
        first, peak, _ = run(source, out, kill_after=KILL_AFTER)
        before = {path.name: path.stat().st_mtime_ns for path in (out / "tiles").glob("*.npz")}
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        second, peak_after, output = run(source, out)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        again = [name for name, at in before.items() if (out / "tiles" / name).stat().st_mtime_ns != at]
        result = json.loads((out / "result.json").read_text())
        stored = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        other = felzenszwalb_seconds(source)
    seconds = used.ru_utime + used.ru_stime - began.ru_utime - began.ru_stime
    megapixels = np.prod(SHAPE) / 1e6 * (1 - len(before) / result["n_tiles"])
    return {
        "pixels": " x ".join(map(str, SHAPE)),
        "tiles": result["n_tiles"],
        "sites": result["n_sites"],
        "regions": result["n_regions"],
        "patches in the picture": N_FIELDS,
        "tiles finished when it was killed": len(before),
        "of these done again": len(again),
        "most memory of all processes, bytes": float(max(peak, peak_after)),
        "bytes on disk": float(stored),
        "seconds of processors per megapixel": seconds / megapixels,
        "felzenszwalb, the same": other,
        "seconds, before the kill and after": f"{first:.0f}, {second:.0f}",
        "progress, last lines": " | ".join(output.strip().splitlines()[-4:]),
    }
