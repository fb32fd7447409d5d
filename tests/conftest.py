"""What several test files share."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side; before NumPy is imported
import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import settings

from effort import effort
from processes import PATIENCE, SMALL_CLUSTER, find_in_children

TESTS = Path(__file__).parent
find_in_children(TESTS)
find_in_children(TESTS.parent)  # for `studies`
if os.environ.get("SPINSEG_TEST_SEED"):  # before anything draws
    sys.path.insert(0, str(TESTS / "other_seeds"))
    sys.modules.pop("sitecustomize", None)
    import sitecustomize  # noqa: F401

    find_in_children(TESTS / "other_seeds")


# A shell that runs this in the background ignores Ctrl-C for it and all it starts; tests send it to both.
if threading.current_thread() is threading.main_thread():  # a worker of a cluster imports this in another one
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("any machine", deadline=None, max_examples=effort(15, 100))
settings.load_profile("any machine")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without looking for garbage, which takes a third of the time, and never look at what was collected."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def dask_client():
    """A client of a cluster of two workers; those who use it are of the group "dask", so that there is one.

    The cluster has a process of its own: some tests look at the children of this one.
    """
    distributed = pytest.importorskip("distributed", reason="the extra [distributed] is not installed")
    script = (
        "import sys; from distributed import LocalCluster\n"
        f"with LocalCluster(n_workers=2, **{SMALL_CLUSTER}) as cluster:\n"
        "    print(cluster.scheduler_address, flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", script], text=True, **pipes) as process:
        with distributed.Client(process.stdout.readline().strip(), set_as_default=False) as client:
            yield client
        process.stdin.close()  # which ends it


@pytest.fixture
def cluster(dask_client):
    """The same, with both its workers: one that a test has killed is there again."""
    dask_client.wait_for_workers(2, timeout=PATIENCE)
    return dask_client
