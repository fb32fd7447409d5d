"""Each example runs, says what it found, and stays short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from effort import exhaustive
from studies.evaluation.datasets import data_root

EXAMPLES = Path(__file__).parents[1] / "examples"
# The folder of data and the libraries that each needs.
NEEDS = {
    "brain_volume": ("mni152_brain", ()),
    "spatial_clustering": (None, ("sklearn",)),
}


def run(name, folder, sweeps, **environment):
    """What the example did, as its own process; one thread, since those of scikit-learn wait for each other."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(folder), str(sweeps)]
    return subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
    )


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_an_example_has_fewer_than_60_lines(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 60


@exhaustive
@pytest.mark.parametrize("name", NEEDS)
def test_an_example_runs_and_draws_a_picture(name, tmp_path):
    folder, libraries = NEEDS[name]
    if folder and not (data_root() / "extra" / folder).is_dir():
        pytest.skip(f"no extra/{folder} under {data_root()}")
    for library in libraries:
        pytest.importorskip(library)
    done = run(name, tmp_path, 10)
    assert done.returncode == 0, done.stderr
    assert "clusters" in done.stdout
    colors = Image.open(tmp_path / f"{name}.png").convert("RGB").getcolors(1 << 24)
    assert len(colors) > 5


@exhaustive
@pytest.mark.parametrize("name", [name for name, (folder, _) in NEEDS.items() if folder])
def test_without_data_an_example_says_so_in_one_line(name, tmp_path):
    for library in NEEDS[name][1]:
        pytest.importorskip(library)
    done = run(name, tmp_path, 10, SPINSEG_DATA=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("There is no folder") and len(done.stderr.splitlines()) == 1
