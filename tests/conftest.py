"""What several test files share."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from spinseg.pictures import PICTURES


class ColdRun(NamedTuple):
    """A first run of the command in an environment of its own, whose kernels check every index."""

    environment: dict[str, str]
    command: list[str]
    told: str
    compiled_when_told: set[str]
    return_code: int


@pytest.fixture(scope="session")
def cold_run(tmp_path_factory):
    """What the first run said; the kernels it compiled stay in its environment, for all who need them."""
    place = tmp_path_factory.mktemp("cold")
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(place / "cache")}
    picture = str(PICTURES["cat"].path)
    options = ["--out", str(place), "--overwrite", "--sweeps", "4", "--chains", "1", "--sites", "60"]
    command = [sys.executable, "-m", "spinseg", "segment", picture, *options]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        told = run.stderr.readline()
        compiled = {path.name for path in Path(environment["NUMBA_CACHE_DIR"]).rglob("*.nbi")}
        told += run.stderr.read()
    return ColdRun(environment, command, told, compiled, run.returncode)
