"""Ctrl-C, and processes that are killed: what is finished is saved, and nothing is half written."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image
from test_cli import FAST, FILES

from effort import exhaustive
from processes import PATIENCE
from spinseg.segmentation.batch import segment_files
from spinseg.segmentation.result import Segmentation

# The command, whose processes say on standard error that they sample pictures.
TELLING = """
import os, sys
from spinseg.sampler import workers
Progress, told = workers.Progress, []

def progress(done, total, *others):
    if done and total > 1000 and not told:
        told.append(print(f"sampling {os.getpid()}", file=sys.stderr, flush=True))
    return Progress(done, total, *others)

workers.Progress = progress
if __name__ == "__main__":
    from spinseg.cli import main
    main()
"""


def sampled_by(run):
    """The process that comes next to say that it samples."""
    for line in run.stderr:
        if line.startswith("sampling "):
            return line
    pytest.fail("it ended before")


@pytest.fixture(scope="module")
def telling(tmp_path_factory):
    path = tmp_path_factory.mktemp("telling") / "telling.py"
    path.write_text(TELLING)
    return path


def started(*arguments, script=None):
    command = [sys.executable, *(["-m", "spinseg"] if script is None else [str(script)]), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=os.name == "posix"
    )


def after_ctrl_c(run, times=1):
    """The pictures that a run tells of after Ctrl-C, which a terminal sends to all its processes."""
    for _ in range(times):
        os.killpg(run.pid, signal.SIGINT)
        time.sleep(0.3)
    output, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130 and "Traceback" not in errors, errors
    assert errors.count("interrupted; what is finished is saved") == 1
    return json.loads(output)["images"]


def results(out):
    return {path.parent.name: json.loads(path.read_text()) for path in out.glob("*/result.json")}


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_saves_what_is_finished(album, photo, tmp_path, telling):
    empty = album[1][0]
    arguments = [empty, photo, photo, "--out", tmp_path, "--json", "--sweeps", 200_000, "--chains", 1]
    run = started("segment", *arguments, script=telling)
    sampled_by(run)
    told = after_ctrl_c(run)
    assert [image["interrupted"] for image in told] == [False, True]
    assert [path.name for path in tmp_path.iterdir()] == [photo.stem]
    assert 0 < results(tmp_path)[photo.stem]["sweeps_done"] < 200_000


@exhaustive
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_saves_what_several_jobs_have_finished(album, photo, tmp_path, telling):
    arguments = [photo, album[1][0], photo, photo]
    options = ["--out", tmp_path, "--json", "--jobs", 2, "--sweeps", 200_000, "--chains", 1]
    run = started("segment", *arguments, *options, script=telling)
    assert sampled_by(run) != sampled_by(run)  # both processes
    told = after_ctrl_c(run, times=3)
    assert [image["interrupted"] for image in told] == [True, False, True]
    names = {photo.stem, f"{photo.stem}-2"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert all(result["interrupted"] and result["sweeps_done"] > 0 for result in results(tmp_path).values())


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return file.read().split()


@exhaustive
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux")
def test_ctrl_c_while_processes_start(photo, tmp_path):
    run = started("segment", photo, photo, photo, "--out", tmp_path, "--json", "--jobs", 2, "--sweeps", 200_000)
    while len(children(run)) < 3:  # the third is Python's own
        time.sleep(0.001)
    told = after_ctrl_c(run)
    assert told and all(image["interrupted"] and not image["error"] for image in told)
    assert len(results(tmp_path)) == len(list(tmp_path.iterdir())) == len(told)


@pytest.mark.parametrize("error", [None, OSError(errno.ENOSPC, "No space left on device")])
def test_ctrl_c_while_a_result_is_saved_or_cannot_be_saved(photo, tmp_path, monkeypatch, error):
    def save_meanwhile(self, folder, save=Segmentation.save, **options):
        signal.raise_signal(signal.SIGINT)
        if error:
            raise error
        save(self, folder, **options)

    monkeypatch.setattr(Segmentation, "save", save_meanwhile)
    found = segment_files([str(photo)] * 2, tmp_path, {"sweeps": 2, "rng": 0})
    outcome = next(found)[1]
    assert outcome.error == (error and f"{photo}: {error}") and (error or outcome.summary["interrupted"] is False)
    with pytest.raises(KeyboardInterrupt):
        next(found)
    assert sorted(path.name for path in tmp_path.rglob("*.*") if path.is_file()) == ([] if error else FILES)


@pytest.fixture
def gallery(album, photo, tmp_path):
    """Outcomes of a picture that is missing, one that takes long, and two that do not, by two processes."""
    sources = ["missing.jpg", str(photo), *album[0][4:6]]
    return segment_files(sources, tmp_path, {"sweeps": 20_000, "chains": 1, "rng": 0}, jobs=2)


@exhaustive
def test_every_outcome_comes_once_and_none_begins_after_ctrl_c(gallery, tmp_path):
    found = []
    with pytest.raises(KeyboardInterrupt):
        for index, outcome in gallery:
            found.append((index, outcome.interrupted))
            signal.raise_signal(signal.SIGINT)
    assert found == [(0, False), (1, True)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(list(tmp_path.iterdir())) == 1 and not multiprocessing.active_children()


@exhaustive
def test_a_batch_that_nobody_listens_to_ends(gallery):
    next(gallery)
    gallery.close()
    assert not multiprocessing.active_children()


@exhaustive
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_process_is_one_line_and_the_rest_is_done(gallery):
    found = dict([next(gallery)])
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    found |= gallery
    assert found[1].error.startswith(f"{found[1].source}: its process ended with exit code -9")
    assert found[2].summary and found[3].summary and len(found) == 4


@exhaustive
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_killed_in_the_middle_nothing_is_half_written(photo, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(4):
        run = started("segment", photo, "--out", tmp_path, "--overwrite", *FAST)
        time.sleep(rng.uniform(0.8, 2.2))
        run.kill()
        run.communicate()
        folder = tmp_path / photo.stem
        for path in folder.glob("[!.]*") if folder.exists() else ():
            if path.suffix in (".png", ".tif"):
                with Image.open(path) as image:
                    image.load()
            elif path.suffix == ".json":
                json.loads(path.read_text())
            else:
                assert path.read_text().rstrip().endswith("</html>")
