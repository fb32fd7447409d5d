"""Rasters of four bands by `spinseg segment` and by `spinseg large`: time, and memory of all processes together.

SPINSEG_RASTER_SIDES has the sides in pixels. The rasters are fields of one spectrum each, with noise, in 16 bits. They
are stored in compressed tiles, one band behind the other.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from studies.speed.large import memory

SIDES = tuple(map(int, os.environ.get("SPINSEG_RASTER_SIDES", "1000,2000,4000").split(",")))
N_FIELDS, N_BANDS, FIELD_PIXELS = 300, 4, 400  # of one side, of the map of fields
NOISE = 150.0


def make(path: Path, side: int) -> None:
    """Write a raster."""
    import tifffile

    rng = np.random.default_rng(0)
    place = np.argwhere(np.ones((FIELD_PIXELS, FIELD_PIXELS)))
    field = cKDTree(rng.integers(0, FIELD_PIXELS, (N_FIELDS, 2))).query(place)[1].reshape(FIELD_PIXELS, FIELD_PIXELS)
    repeats = -(-side // FIELD_PIXELS)
    whole = field.repeat(repeats, axis=0).repeat(repeats, axis=1)[:side, :side]
    spectra = rng.uniform(500, 3000, (N_BANDS, N_FIELDS))
    bands = np.stack([band[whole] + rng.normal(0, NOISE, whole.shape) for band in spectra])
    how = {"photometric": "minisblack", "planarconfig": "separate", "tile": (256, 256), "compression": "zlib"}
    tifffile.imwrite(path, bands.clip(0, 65535).astype(np.uint16), **how)


def measured(command: str, source: Path, out: Path) -> tuple[float, float, float]:
    """Return the seconds, the seconds of processors and the gigabytes of memory that a command takes."""
    before, began, peak = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0
    line = [sys.executable, "-m", "spinseg", command, str(source), "--out", str(out), "--quiet"]
    process = subprocess.Popen(line, start_new_session=True)
    while process.poll() is None:
        peak = max(peak, memory(process.pid))
        time.sleep(0.1)
    assert process.returncode == 0, f"the command ended with {process.returncode}"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, used, peak / 1e9


def study() -> dict[str, object]:
    """Return what both commands take and find, by size."""
    figures: dict[str, object] = {}
    for side in SIDES:
        with tempfile.TemporaryDirectory() as made:
            source = Path(made, "raster.tif")
            make(source, side)
            for command in ("segment", "large"):
                out = Path(made, command)
                seconds, used, peak = measured(command, source, out)
                [path] = out.rglob("result.json")
                found = json.loads(path.read_text())
                words = f"{seconds:.0f} s, {used:.0f} s of processors, {peak:.1f} GB, "
                figures[f"{side} x {side}, {command}"] = (
                    f"{words}{found['n_regions']} regions of {found['n_sites']} sites"
                )
    return figures
