"""Tasks in processes: what one raises is told as it is, and only a process that is gone is guessed about."""

import errno
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from spinseg._errors import BUG, InvalidInput, TaskBug, TaskError, TaskFailure
from spinseg._run.processes import UNGUARDED, run_in_processes


def do(task, check_interrupt):
    """What a task asks for."""
    if task == "bug":
        np.zeros(2) + np.zeros(3)
    if task == "full":
        raise OSError(errno.ENOSPC, "No space left on device")
    if task == "closed":
        raise OSError(errno.EBADF, "Bad file descriptor")
    if task == "wrong":
        raise InvalidInput("beta must be finite; received nan")
    if task == "die":
        os._exit(3)
    if task == "interrupted":
        raise KeyboardInterrupt
    if task == "unpicklable":
        return (number for number in range(3))
    return task


def test_an_exception_is_told_with_its_traceback_and_costs_its_task_alone():
    found = dict(run_in_processes(do, ["bug", "one", "two"], 1))
    assert found[1] == "one" and found[2] == "two"
    assert found[0].why.startswith(f"{BUG}: ValueError: operands could not be broadcast") and "\n" not in found[0].why
    assert "np.zeros(2) + np.zeros(3)" in found[0].traceback and "memory" not in found[0].why
    error = found[0].to_exception("p1.png")
    assert isinstance(error, TaskBug) and str(error) == f"p1.png: {found[0].why}"
    assert "np.zeros(2) + np.zeros(3)" in error.__notes__[0]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is TaskBug and str(again) == str(error) and again.__notes__ == error.__notes__


def test_errors_of_the_machine_and_of_the_input_keep_their_line():
    found = dict(run_in_processes(do, ["full", "closed", "wrong", "one"], 1))
    assert found[0].why == "[Errno 28] No space left on device" and not found[0].traceback
    assert found[1].why.startswith(f"{BUG}: OSError") and found[1].traceback
    assert found[2].why == "beta must be finite; received nan" and not found[2].traceback
    assert isinstance(found[2].to_exception("a"), TaskError) and found[3] == "one"


def test_only_a_process_that_died_gives_its_exit_code():
    found = dict(run_in_processes(do, ["die", "one"], 1))
    assert found[1] == "one" and not found[0].traceback
    assert found[0].why == "its process ended with exit code 3; perhaps the memory was not enough"


def test_a_script_without_a_guard_is_told_what_it_lacks(tmp_path):
    script = "from spinseg._run.processes import run_in_processes\nprint(dict(run_in_processes(print, [1], 1))[0].why)"
    (tmp_path / "script.py").write_text(script)
    run = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True)
    assert run.stdout == f"its process ended with exit code 1; {UNGUARDED}\n"


def test_a_task_that_is_cut_short_without_a_result_is_no_process_that_died():
    found = dict(run_in_processes(do, ["interrupted", "one"], 1))
    assert found[0].why == "it was interrupted before there was a result" and found[1] == "one"


def test_what_cannot_be_sent_back_is_told():
    found = dict(run_in_processes(do, ["unpicklable", "one"], 1))
    assert isinstance(found[0], TaskFailure) and "pickle" in found[0].why and found[1] == "one"


def not_here():
    raise KeyError("not in this process")


class Foreign:
    """What can be pickled, and not unpickled."""

    def __reduce__(self):
        return not_here, ()


def test_what_cannot_be_unpacked_there_is_told():
    found = dict(run_in_processes(do, [Foreign(), "one"], 1))
    assert "KeyError" in found[0].why and "not_here" in found[0].traceback and found[1] == "one"


def test_functions_without_a_name_are_sent():
    pytest.importorskip("cloudpickle", reason="the extra [distributed] is not installed")
    more = 5
    assert dict(run_in_processes(lambda task, check_interrupt: task() + more, [lambda: 1, lambda: 2], 1)) == {
        0: 6,
        1: 7,
    }
