"""The one way to run tasks: who runs them changes nothing, and wrong numbers of processes are refused."""

import os

import pytest

from spinseg._errors import BUG, InvalidInput, TaskFailure
from spinseg._run.executor import check_jobs, run_tasks


def halve(task, check_interrupt):
    check_interrupt("any", "arguments")
    if task % 2:
        raise InvalidInput(f"task must be even; received {task}") if task > 1 else KeyError(task)
    return task // 2, os.getpid()


@pytest.mark.parametrize("in_process", [True, False])
def test_results_come_with_the_indices_of_their_tasks_and_failures_cost_one_task(in_process):
    found = dict(run_tasks(halve, [4, 3, 1, 8], jobs=2, in_process=in_process))
    assert sorted(found) == [0, 1, 2, 3] and (found[0][0], found[3][0]) == (2, 4)
    assert (found[0][1] == os.getpid()) == in_process
    assert isinstance(found[1], TaskFailure) and found[1][1:] == ("task must be even; received 3", "")
    assert found[2].why == f"{BUG}: KeyError: 1" and "in halve" in found[2].traceback


def test_ctrl_c_in_this_process_is_raised_by_the_task():
    def interrupted(task, check_interrupt):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_tasks(interrupted, [1], jobs=1, in_process=True))


def test_no_cluster_is_asked_for_where_there_is_no_task():
    assert list(run_tasks(halve, [], jobs=1, dask="nowhere:1")) == []


def test_jobs_are_a_number_of_processes_and_exclude_a_cluster():
    assert check_jobs(3, None) == check_jobs(3.0, None, default=1) == 3
    assert check_jobs(None, None) == check_jobs(None, "tcp://host:8786") == os.cpu_count()
    assert check_jobs(None, None, default=1) == 1
    with pytest.raises(InvalidInput, match=r"^jobs must be left out where dask is given; received 2$"):
        check_jobs(2, "tcp://host:8786")
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(InvalidInput, match=r"^jobs must be a whole number of at least 1; received "):
            check_jobs(wrong, None)
