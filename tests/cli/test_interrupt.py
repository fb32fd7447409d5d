"""Ctrl-C, and processes that are killed: what is finished is saved, and nothing is half written."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from test_cli import FILES

from effort import exhaustive
from processes import PATIENCE
from spinseg import cli
from spinseg.segmentation import batch
from spinseg.segmentation.batch import segment_files
from spinseg.segmentation.result import Segmentation

# The command, whose processes say on standard error that they sample pictures.
TELLING = """
import os, sys
from spinseg.sampler import workers
progress_of, reported = workers._progress, []

def progress(runners, sweeps):
    if min(runner.done for runner in runners) and sweeps > 1000 and not reported:
        reported.append(print(f"sampling {os.getpid()}", file=sys.stderr, flush=True))
    return progress_of(runners, sweeps)

workers._progress = progress
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


def started(script, *arguments):
    """The command, run by a script, as the first of its processes."""
    script.write_text(TELLING)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, script, *map(str, arguments)], **pipes, start_new_session=True)


def after_ctrl_c(run, times=1, left=""):
    """The pictures that a run reports after Ctrl-C, which a terminal sends to all its processes."""
    for _ in range(times):
        os.killpg(run.pid, signal.SIGINT)
        time.sleep(0.3)
    output, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130 and "Traceback" not in errors, errors
    assert errors.count("run the same command with --resume") == 1 and f"{left} images are left. " in errors
    return json.loads(output)["images"]


def results(out):
    return {path.parent.name: json.loads(path.read_text()) for path in out.glob("*/result.json")}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_saves_what_is_finished(album, photo, tmp_path, jobs):
    pictures, out = [*[photo] * (jobs - 1), album[1][0], photo, photo], tmp_path / "out"  # the one between is empty
    options = ["--out", out, "--json", "--jobs", jobs, "--sweeps", 200_000, "--chains", 1]
    run = started(tmp_path / "script.py", "segment", *pictures, *options)
    assert len({sampled_by(run) for _ in range(jobs)}) == jobs  # all processes
    reported = after_ctrl_c(run, times=2 * jobs - 1, left=f"interrupted; {len(pictures)} of {len(pictures)}")
    assert [image["interrupted"] for image in reported] == [*[True] * (jobs - 1), False, True]
    assert {path.name for path in out.iterdir()} == {"index.html", *[photo.stem, f"{photo.stem}-2"][:jobs]}
    for result in results(out).values():
        assert result["interrupted"] and 0 < result["sweeps_done"] < 200_000
    page = (out / "index.html").read_text()
    assert page.count("Interrupted after") == jobs and f"{jobs} more interrupted: to continue" in page


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return file.read().split()


@exhaustive
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux")
def test_ctrl_c_while_processes_start(photo, tmp_path):
    options = ["--out", tmp_path / "out", "--json", "--jobs", 2, "--sweeps", 200_000]
    run = started(tmp_path / "script.py", "segment", photo, photo, photo, *options)
    while len(children(run)) < 3:  # the third is Python's own
        time.sleep(0.001)
    reported = after_ctrl_c(run)
    assert reported and all(image["interrupted"] and not image["error"] for image in reported)
    folders = [path for path in (tmp_path / "out").glob("*") if path.is_dir()]
    assert len(results(tmp_path / "out")) == len(folders) == sum("sweeps_done" in image for image in reported)


@pytest.mark.parametrize("error", [None, OSError(errno.ENOSPC, "No space left on device")])
def test_ctrl_c_while_a_result_is_saved_or_cannot_be_saved(photo, tmp_path, monkeypatch, error):
    def save_meanwhile(self, folder, save=Segmentation.save, **options):
        signal.raise_signal(signal.SIGINT)
        if error:
            raise error
        save(self, folder, **options)

    monkeypatch.setattr(Segmentation, "save", save_meanwhile)
    found = segment_files([str(photo)] * 2, tmp_path, {"sweeps": 2, "rng": 0}, jobs=1)
    outcome = next(found)[1]
    assert outcome.error == (error and f"{photo}: {error.strerror}") and (
        error or outcome.summary["interrupted"] is False
    )
    with pytest.raises(KeyboardInterrupt):
        next(found)
    assert sorted(path.name for path in tmp_path.rglob("*.*") if path.is_file()) == ([] if error else FILES)


def test_ctrl_c_ends_what_comes_before_sampling_and_is_no_error(photo, tmp_path):
    """In a process that is asked to stop."""
    seen = []

    def stop(*_):
        seen.append(None)
        raise KeyboardInterrupt

    outcome = batch.segment_file(str(photo), str(tmp_path), {"rng": 0}, progress=batch._Interruptible(stop))
    assert outcome.interrupted and not outcome.error and not outcome.summary
    assert len(seen) == 1 and not list(tmp_path.iterdir())


def test_ctrl_c_ends_sampling_and_not_what_comes_after_it(photo, tmp_path):
    def stop(*_):
        if report.has_draws:
            raise KeyboardInterrupt

    report = batch._Interruptible(stop)
    outcome = batch.segment_file(str(photo), str(tmp_path), {"rng": 0, "sweeps": 200_000}, progress=report)
    assert outcome.interrupted and not outcome.error and outcome.summary["interrupted"]
    assert (tmp_path / "result.json").exists()


def test_a_function_that_ends_sampling_does_not_end_what_comes_after_it(photo, tmp_path):
    def stop(progress):
        if progress.done:
            raise KeyboardInterrupt

    outcome = batch.segment_file(str(photo), str(tmp_path), {"rng": 0, "sweeps": 200_000}, progress=stop)
    assert outcome.interrupted and not outcome.error and outcome.summary["interrupted"]
    assert (tmp_path / "result.json").exists()


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
    assert len(list(tmp_path.iterdir())) <= 1 and not multiprocessing.active_children()  # none before its first draws


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


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_the_web_app_without_a_word_however_often_it_comes():
    command = [sys.executable, "-m", "spinseg", "app", "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as run:
        assert "Ctrl-C" in run.stdout.readline()
        for _ in range(3):
            run.send_signal(signal.SIGINT)
            time.sleep(0.03)  # the system joins signals that come together
        _, errors = run.communicate(timeout=PATIENCE)
    assert (run.returncode, errors) == (0, "")


def test_ctrl_c_while_the_command_loads_is_no_traceback(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("spinseg.cli.program.run", interrupted)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 130
