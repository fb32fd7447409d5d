"""Collections: who does the work changes nothing, a worker that is lost costs nothing, and what is done stays done."""

import errno
import json
import os
import signal
import threading

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from effort import exhaustive
from processes import PATIENCE, SMALL_CLUSTER
from spinseg._errors import BUG, TaskFailure
from spinseg._run.executor import TASKS_PER_THREAD, run_on_dask
from spinseg.cli.program import app
from spinseg.pictures import PICTURES
from spinseg.segmentation.batch import segment_file, segment_files
from spinseg.segmentation.result import Segmentation

FAST = {"sweeps": 10, "chains": 1, "rng": 0, "mask": "mask.png", "preset": "photo"}
OPTIONS = ["--sweeps", "10", "--chains", "1", "--mask", "mask.png", "--preset", "photo"]
SOURCES = [f"p{i}.png" for i in range(5)]
LATCH = threading.Barrier(TASKS_PER_THREAD + 1)

pytestmark = pytest.mark.xdist_group("dask")  # one cluster, one collection done serially


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    """A folder with five pictures and a mask, and in `serial` what one process made of them."""
    folder = tmp_path_factory.mktemp("collection")
    with Image.open(PICTURES["coffee"].path) as image:
        for i, name in enumerate(SOURCES):
            image.crop((150 + 20 * i, 100, 210 + 20 * i, 140)).save(folder / name)
    mask = np.full((40, 60), 255, np.uint8)
    mask[:9] = 0
    Image.fromarray(mask).save(folder / "mask.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert all(outcome.summary for _, outcome in segment_files(SOURCES, "serial", FAST))
    return folder


@pytest.fixture
def here(collection, monkeypatch):
    monkeypatch.chdir(collection)
    return collection


def spinseg(*arguments):
    """What `spinseg segment` exits with, its one JSON object, and its lines on standard error."""
    run = CliRunner().invoke(app, ["segment", *map(str, arguments), "--json", "--quiet"])
    assert run.exception is None or isinstance(run.exception, SystemExit), run.exception
    return run.exit_code, json.loads(run.stdout)["images"], run.stderr.splitlines()


def contents(out):
    """The bytes of all files of results; the index of the folder is the command's alone."""
    return {path.relative_to(out): path.read_bytes() for path in out.glob("*/*.*")}


def times(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


@exhaustive
def test_a_cluster_gives_the_files_that_one_process_gives(here, cluster):
    code, reported, _ = spinseg(*SOURCES, "missing.png", *OPTIONS, "--out", "dask", "--dask", cluster.scheduler.address)
    assert code == 2 and [image["source"] for image in reported] == [*SOURCES, "missing.png"]
    assert [image["error"] is None for image in reported] == [True] * 5 + [False]
    assert reported[-1]["error"].startswith(
        "cannot read missing.png: "
    )  # though the workers have another working directory
    assert contents(here / "dask") == contents(here / "serial")


@exhaustive
def test_a_worker_lost_after_writing_its_files_costs_nothing(here, cluster):
    def die_after_saving():
        def save_and_die(self, folder, save=Segmentation.save, **options):
            save(self, folder, **options)
            os._exit(3)

        Segmentation.save = save_and_die

    first = next(iter(cluster.scheduler_info()["workers"]))
    cluster.run(die_after_saving, workers=[first])
    found = dict(segment_files(SOURCES, "killed", FAST, dask=cluster.scheduler.address))
    assert first not in cluster.scheduler_info()["workers"]
    assert not any(outcome.error for outcome in found.values()) and sorted(found) == list(range(5))
    assert contents(here / "killed") == contents(here / "serial")


@pytest.fixture
def small(request):
    """A cluster of threads, of one worker or as many as are asked for."""
    distributed = pytest.importorskip("distributed", reason="the extra [distributed] is not installed")
    with distributed.LocalCluster(n_workers=getattr(request, "param", 1), processes=False, **SMALL_CLUSTER) as cluster:
        yield cluster


def wait_for_the_others(task, check_interrupt):
    if task:
        LATCH.wait(timeout=PATIENCE)
    return task


def test_workers_that_come_later_get_work(small):
    coming = run_on_dask(wait_for_the_others, [0, 0, 0, *[1] * LATCH.parties], small.scheduler_address)
    first = [next(coming)]
    small.scale(LATCH.parties)
    small.wait_for_workers(LATCH.parties, timeout=PATIENCE)
    assert sorted(index for index, found in first + list(coming) if found in (0, 1)) == list(range(7))


def test_a_lost_scheduler_loses_no_task_from_sight(small, monkeypatch):
    monkeypatch.setattr("spinseg._run.executor.CONNECT_SECONDS", 1)
    coming = run_on_dask(wait_for_the_others, [0] * 9, small.scheduler_address)
    found = [next(coming)]
    small.close()
    found += coming
    assert sorted(index for index, _ in found) == list(range(9))
    assert found[0][1] == 0 and isinstance(found[-1][1], TaskFailure)


def fail(task, check_interrupt):
    """A mistake of this program, an error such as of a full disk, or nothing."""
    if task == "bug":
        np.zeros(2) + np.zeros(3)
    if isinstance(task, Exception):
        raise task
    return task


def test_an_exception_has_its_traceback_and_costs_its_task_alone(small):
    full, lacking = OSError(errno.ENOSPC, "No space left"), ModuleNotFoundError("No module named 'spinseg'")
    found = dict(run_on_dask(fail, ["bug", full, lacking, "one"], small.scheduler_address))
    assert found[3] == "one"
    assert found[0].why.startswith(f"{BUG}: ValueError: operands") and "np.zeros(2) + np.zeros(3)" in found[0].traceback
    assert found[1].why == "No space left" and not found[1].traceback
    assert found[2].why == "the cluster gave it up: No module named 'spinseg'" and not found[2].traceback


@pytest.mark.parametrize("small", [0], indirect=True, ids=["no workers"])
def test_a_scheduler_without_workers_is_reported_and_given_up_unless_they_come(small, monkeypatch, capsys):
    monkeypatch.setattr("spinseg._run.executor.WORKER_CHECK_SECONDS", 0.05)
    address = small.scheduler_address
    with monkeypatch.context() as patch:
        patch.setattr("spinseg._run.executor.MAX_SECONDS_WITHOUT_WORKERS", 0.3)
        found = dict(run_on_dask(fail, ["one", "two"], address))
    why = f"the Dask scheduler at {address} had no workers for 0.3 seconds"
    assert found == {0: TaskFailure(0.0, why), 1: TaskFailure(0.0, why)}
    line = f"spinseg: the Dask scheduler at {address} has no workers; waiting up to 0.3 seconds\n"
    assert capsys.readouterr().err == line
    monkeypatch.setattr("spinseg._run.executor.print_warning", lambda line: small.scale(1))
    assert dict(run_on_dask(fail, ["one"], address)) == {0: "one"}


@pytest.mark.parametrize("address", ["tcp://host", "post://host:8786"])
def test_what_is_no_address_is_refused_at_once(address, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra [distributed] is not installed")
    monkeypatch.setattr(distributed, "Client", None)  # it would leave a thread behind that waits
    with pytest.raises(ValueError, match=r"dask must be the address of a scheduler.*(missing port|unknown address)"):
        next(run_on_dask(wait_for_the_others, [0], address))


@exhaustive
def test_going_on_after_an_interruption_ends_as_without_one(here, cluster):
    """Two pictures are done, one was cut short by Ctrl-C, one was killed midway, one was never begun."""

    def ctrl_c(progress):
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        for index, _ in segment_files(SOURCES, "out", FAST, jobs=1):
            if index == 1:
                signal.raise_signal(signal.SIGINT)
    assert segment_file(SOURCES[2], "out/p2", FAST | {"sweeps": 10_000}, progress=ctrl_c).summary["interrupted"]
    (here / "out" / "p3").mkdir()
    (here / "out" / "p3" / "labels.tif").write_bytes(b"of a try that was killed")
    before = [times(here / "out" / name) for name in ("p0", "p1")]
    going_on = [*OPTIONS, "--out", "out", "--resume"]
    for done, sources, cluster_too in (2, SOURCES[:4], []), (4, SOURCES, ["--dask", cluster.scheduler.address]):
        code, reported, lines = spinseg(*sources, *going_on, *cluster_too)
        assert code == 0 and not lines and [image["source"] for image in reported] == sources
        assert [image["done_before"] for image in reported] == [i < done for i in range(len(sources))]
    assert [times(here / "out" / name) for name in ("p0", "p1")] == before
    assert contents(here / "out") == contents(here / "serial")
    run = CliRunner().invoke(app, ["segment", *SOURCES, *going_on, "--dask", "nowhere:1"])
    assert run.exit_code == 0 and run.stdout.startswith("5 skipped (already complete)\n")  # no cluster was asked for


def test_a_result_that_is_there_is_kept_on_a_cluster_too(here, small):
    before = contents(here / "serial")
    code, reported, lines = spinseg(SOURCES[0], *OPTIONS, "--out", "serial", "--dask", small.scheduler_address)
    assert code == 2 and reported[0]["error"].endswith("which are kept; --overwrite replaces them")
    assert contents(here / "serial") == before and lines == [f"spinseg: {reported[0]['error']}"]


@pytest.mark.parametrize(
    ("source", "changes", "line"),
    [
        ("p0.png", {"rng": 1, "sweeps": 20}, "(seed 0, not 1, sweeps 10, not 20)"),
        ("p0.png", {"mask": None, "preset": "paper"}, "(mask {here}/mask.png, not None, preset photo, not paper, "),
        ("elsewhere/p0.png", {}, "(image {here}/p0.png, not {here}/elsewhere/p0.png)"),
    ],
)
def test_a_result_of_another_run_does_not_pass_for_done(here, source, changes, line):
    before = contents(here / "serial")
    [(_, outcome)] = segment_files([source], "serial", FAST | changes, resume=True)
    assert not outcome.done_before and "serial/p0 holds the result of another run" in outcome.error
    assert line.format(here=here) in outcome.error
    assert outcome.error.endswith("which is kept; --overwrite replaces it")
    assert contents(here / "serial") == before
