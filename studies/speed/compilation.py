"""Processor time that the first segmentation on a machine spends on compiling."""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory

SCRIPT = """
import time
import spinseg as ss
from spinseg.pictures import PICTURES
for _ in range(2):
    start = time.process_time()
    ss.segment(PICTURES["coffee"].path, rng=0)
    print(time.process_time() - start)
"""


def study() -> dict[str, float]:
    """Segment a picture twice in a new process with an empty cache of compiled code."""
    with TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    first, second = map(float, run.stdout.split())
    return {
        "first segmentation, processor seconds": first,
        "second segmentation, processor seconds": second,
        "compiling, processor seconds": first - second,
    }
