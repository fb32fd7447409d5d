"""A folder of photographs on one processor and on two: `spinseg segment` as a user calls it.

The photographs are the first of the training photographs of BSDS300, 100 or SPINSEG_FOLDER. On each number of
processors the command may use no others. Its memory is that of all its processes together, looked at once a second:
the largest during the first half of the images and during the second.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from studies.evaluation.datasets import bsds, data_root

N_PHOTOGRAPHS = int(os.environ.get("SPINSEG_FOLDER", "100"))
PROCESSORS = (1, 2)


def study() -> dict[str, object]:
    """Return the seconds and the memory by number of processors, and the ratio of the seconds."""
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as made:
        photos = Path(made, "photos")
        photos.mkdir()
        for example in list(bsds(data_root(), "train"))[:N_PHOTOGRAPHS]:
            (photos / example.image_path.name).symlink_to(example.image_path.resolve())
        seconds = {}
        for n in PROCESSORS:
            seconds[n], early, late = _run(photos, Path(made, str(n)), n)
            figures[f"on {n}, s"] = round(seconds[n], 1)
            figures[f"on {n}, MB, first and second half"] = f"{early / 1e6:.0f}, {late / 1e6:.0f}"
    return figures | {"ratio": seconds[1] / seconds[2]}


def _run(photos: Path, out: Path, n: int) -> tuple[float, int, int]:
    """Segment a folder on n processors; return the seconds, and the largest memory in each half."""
    command = [sys.executable, "-m", "spinseg", "segment", str(photos), "--out", str(out), "--quiet"]
    start, peaks = time.perf_counter(), [0, 0]
    process = subprocess.Popen(command, preexec_fn=lambda: os.sched_setaffinity(0, range(n)))
    while process.poll() is None:
        is_late = 2 * len(list(out.glob("*/result.json"))) >= N_PHOTOGRAPHS
        peaks[is_late] = max(peaks[is_late], _memory(process.pid))
        time.sleep(1)
    assert process.returncode == 0, f"the command ended with {process.returncode}"
    return time.perf_counter() - start, peaks[0], peaks[1]


def _memory(pid: int) -> int:
    """The memory of a process and all that it has started, in bytes; 0 where one ends meanwhile."""
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        return int(sum(process.memory_info().rss for process in (first, *first.children(recursive=True))))
    return 0
