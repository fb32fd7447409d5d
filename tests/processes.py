"""Processes that tests start: what they can import, and how long tests wait for them."""

import os
import time

# Tests wait for conditions, however busy the machine is. These seconds only end a test that would hang forever.
PATIENCE = 600

# Options of a Dask cluster: no more than is needed, and a free port.
SMALL_CLUSTER = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 60}


def wait_until(true, seconds=PATIENCE, every=0.01):
    """Wait for a condition, and look this often."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(every)


def find_in_children(folder):
    """Let processes that tests start import what lies in a folder."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
