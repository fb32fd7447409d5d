"""The one way to run tasks: who runs them changes nothing, and what one raises costs that task alone."""

import errno
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from processes import PATIENCE
from spinseg._errors import BUG, InvalidInput, TaskBug, TaskError, TaskFailure
from spinseg._run.executor import UNGUARDED, check_jobs, n_processors, run_in_processes, run_tasks

RAISED = {
    "full": OSError(errno.ENOSPC, "No space left on device"),
    "closed": OSError(errno.EBADF, "Bad file descriptor"),
    "wrong": InvalidInput("beta must be finite: got nan"),
    "interrupted": KeyboardInterrupt(),
}


def do(task, check_interrupt):
    """What a task asks for."""
    check_interrupt("any", "arguments")
    if task in RAISED:
        raise RAISED[task]
    if task == "bug":
        np.zeros(2) + np.zeros(3)
    if task == "die":
        os._exit(3)
    if task == "die as a script":
        os._exit(1)
    if task == "exit":
        sys.exit(1)
    if task == "unpicklable":
        return (number for number in range(3))
    return task, os.getpid()


def not_here():
    raise KeyError("not in this process")


class Foreign:
    """What can be pickled, and not unpickled."""

    def __reduce__(self):
        return not_here, ()


FAILURES = {  # the beginning of the line, and what the traceback of a bug has
    "bug": (f"{BUG}: ValueError: operands could not be broadcast", "np.zeros(2) + np.zeros(3)"),
    "closed": (f"{BUG}: OSError", "Bad file descriptor"),
    "full": ("No space left on device", ""),
    "wrong": ("beta must be finite: got nan", ""),
}
OF_PROCESSES = {
    "exit": (f"{BUG}: SystemExit: 1", "sys.exit(1)"),
    "die": ("its process ended with exit code 3; perhaps the memory was not enough", ""),
    "die as a script": ("its process ended with exit code 1; perhaps the memory was not enough", ""),
    "interrupted": ("it was interrupted before there was a result", ""),
    "unpicklable": (f"{BUG}: TypeError: cannot pickle", "pickle"),
    "foreign": (f"{BUG}: KeyError", "not_here"),
}


@pytest.mark.parametrize("in_process", [True, False])
def test_a_failure_has_its_line_and_costs_its_task_alone(in_process):
    expected = FAILURES if in_process else FAILURES | OF_PROCESSES
    tasks = ["one", *(Foreign() if name == "foreign" else name for name in expected), "two"]
    found = dict(run_tasks(do, tasks, jobs=2, in_process=in_process))
    assert sorted(found) == list(range(len(tasks)))
    assert (found[0][0], found[len(tasks) - 1][0]) == ("one", "two") and (found[0][1] == os.getpid()) == in_process
    for index, (line, traceback) in enumerate(expected.values(), start=1):
        failure = found[index]
        assert isinstance(failure, TaskFailure) and failure.why.startswith(line) and "\n" not in failure.why
        assert traceback in failure.traceback and bool(failure.traceback) == bool(traceback)


def test_the_exception_of_a_failure_can_be_sent_on():
    error = TaskFailure(1.0, "the line", "the traceback").to_exception("p1.png")
    assert isinstance(error, TaskBug) and str(error) == "p1.png: the line" and error.__notes__ == ["the traceback"]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is TaskBug and str(again) == str(error) and again.__notes__ == error.__notes__
    assert type(TaskFailure(1.0, "the line").to_exception("p1.png")) is TaskError


UNGUARDED_SCRIPTS = {
    "tasks": """
from functools import partial
from spinseg._run.executor import run_in_processes
list(run_in_processes(partial(print, bytes(2**20)), range(3), jobs=2))
""",
    "images": """
import numpy as np
from spinseg.segmentation.batch import segment_files
np.save("a.npy", np.zeros((9, 9)))
list(segment_files(["a.npy", "a.npy"], "out", {"sweeps": 2, "rng": 0}, jobs=2))
""",
    "tiles": """
import numpy as np
import spinseg as ss
np.save("a.npy", np.zeros((99, 99)))
ss.segment_large("a.npy", "out", tile=64, n_sites=20, sweeps=2, rng=0, jobs=2)
""",
}


@pytest.mark.parametrize("script", UNGUARDED_SCRIPTS)
def test_a_script_without_a_guard_gets_one_error(script, tmp_path):
    """The processes would wait for each other forever where they are given much to start with."""
    if script == "tiles":
        pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
    (tmp_path / "script.py").write_text(UNGUARDED_SCRIPTS[script])
    how = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": PATIENCE}
    run = subprocess.run([sys.executable, "script.py"], check=False, **how)
    *_, last = run.stderr.splitlines()
    assert run.returncode == 1 and last == f"spinseg._errors.InvalidInput: {UNGUARDED}"
    assert run.stderr.count("Traceback") == 1 and not run.stdout


def test_one_task_at_a_time_needs_no_guard(tmp_path):
    pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
    (tmp_path / "script.py").write_text(UNGUARDED_SCRIPTS["tiles"].replace("jobs=2", "jobs=1"))
    how = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": PATIENCE}
    subprocess.run([sys.executable, "script.py"], check=True, **how)
    assert (tmp_path / "out" / "result.json").exists()


def test_functions_without_a_name_are_sent():
    pytest.importorskip("cloudpickle", reason="the extra [distributed] is not installed")
    more = 5
    found = dict(run_in_processes(lambda task, check_interrupt: task() + more, [lambda: 1, lambda: 2], 1))
    assert found == {0: 6, 1: 7}


def test_ctrl_c_in_this_process_is_raised_and_no_cluster_is_asked_for_without_a_task():
    with pytest.raises(KeyboardInterrupt):
        list(run_tasks(do, ["interrupted"], jobs=1, in_process=True))
    assert list(run_tasks(do, [], jobs=1, dask="nowhere:1")) == []


def test_jobs_are_a_number_of_processes_and_exclude_a_cluster():
    assert check_jobs(3, None) == 3
    assert check_jobs(None, None) == check_jobs(None, "tcp://host:8786") == n_processors() <= os.cpu_count()
    with pytest.raises(InvalidInput, match=r"^jobs must not be combined with dask: got 2$"):
        check_jobs(2, "tcp://host:8786")
    with pytest.raises(InvalidInput, match=r"^jobs must be a whole number of at least 1: got 0"):
        check_jobs(0, None)
