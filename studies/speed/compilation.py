"""What compiling costs on a machine that has not run spinseg yet: processor time, and the seconds that a user waits."""

import os
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

from spinseg._run import THREAD_VARIABLES

SCRIPT = """
import time
import spinseg as ss
from spinseg.pictures import PICTURES
for _ in range(2):
    start = time.process_time()
    ss.segment(PICTURES["coffee"].path, workers=1, rng=0)
    print(time.process_time() - start)
"""


def study() -> dict[str, float]:
    """Segment a picture twice in a new process, and run the demo twice, each with an empty cache of compiled code."""
    with TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    first, second = map(float, run.stdout.split())
    found = {
        "first segmentation, processor seconds": first,
        "second segmentation, processor seconds": second,
        "compiling, processor seconds": first - second,
    }
    with TemporaryDirectory() as place:
        environment = os.environ | {"NUMBA_CACHE_DIR": f"{place}/cache"}
        for variable in THREAD_VARIABLES:  # as a user has it
            environment.pop(variable, None)
        for name in ("first", "second"):
            began = time.perf_counter()
            command = [sys.executable, "-m", "spinseg", "demo", "--out", f"{place}/{name}"]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            found[f"spinseg demo, {name}, seconds"] = time.perf_counter() - began
    return found
