"""What several test files share."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side; before NumPy is imported
import gc
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings

from compile_all import compile_all
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

from spinseg.pictures import PICTURES  # noqa: E402

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


def pytest_sessionstart(session):
    """Compile once what all tests need, before workers start."""
    if getattr(session.config.option, "numprocesses", None) and not os.environ.get("NUMBA_DISABLE_JIT"):
        compile_all()


class ColdRun(NamedTuple):
    """A first run of the command in an environment of its own, whose kernels check every index."""

    environment: dict[str, str]
    command: list[str]
    reported: str
    compiled_when_told: set[str]
    return_code: int


@pytest.fixture(scope="session")
def cold_run(tmp_path_factory):
    """What the first run said; the kernels it compiled stay in its environment, for all who need them."""
    place = tmp_path_factory.mktemp("cold")
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(place / "cache")}
    picture = str(PICTURES["cat"].path)
    options = ["--out", str(place), "--overwrite", "--sweeps", "4", "--chains", "1", "--n-sites", "60"]
    command = [sys.executable, "-m", "spinseg", "segment", picture, *options]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        reported = run.stderr.readline()
        compiled = {path.name for path in Path(environment["NUMBA_CACHE_DIR"]).rglob("*.nbi")}
        reported += run.stderr.read()
    return ColdRun(environment, command, reported, compiled, run.returncode)


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
