"""The command, run as a user would."""

import io
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

import studies.__main__ as studies
from spinseg import cli
from spinseg.cli import program


def spinseg(*arguments, check=None, **options):
    """Run the command, in a process of its own where it has options of one: starting one takes seconds."""
    command = [sys.executable, "-m", "spinseg", *map(str, arguments)]
    if options:
        run = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    else:
        run = in_this_process(command)
    assert "Traceback" not in run.stderr, run.stderr
    if check is not None:
        assert run.returncode == check, run.stderr
    return run


def study(*arguments):
    """Run `python -m studies`."""
    run = in_this_process([sys.executable, "-m", "studies", *map(str, arguments)], lambda: program.run(studies.app))
    assert "Traceback" not in run.stderr, run.stderr
    return run


def in_this_process(command, main=cli.main):
    """The same as `subprocess.run` gives, without a terminal."""
    output, errors, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.setattr(sys, "argv", command[2:])
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # which an interrupted command no longer obeys
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())
