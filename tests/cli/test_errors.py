"""Wrong input and a machine that fails get one line; anything else is a bug, and shows itself as one."""

import errno
import json
import logging
import pickle
import signal
import sys

import numpy as np
import pytest
from PIL import Image

import spinseg as ss
from effort import exhaustive
from spinseg import cli
from spinseg._advice import Advice, Setting
from spinseg._errors import BUG, LOG, TaskBug, TaskError, error_line, is_expected
from spinseg._run.atomic import atomic_write
from spinseg.cli.commands import with_flags
from spinseg.image.io import read_picture
from spinseg.segmentation import batch
from spinseg.segmentation.batch import Outcome, segment_files
from spinseg.segmentation.result import Segmentation


def raised(call, *arguments):
    """The exception of a call."""
    with pytest.raises(Exception) as caught:
        call(*arguments)
    return caught.value


ADVICE = {
    ss.Photo().finer: "a larger detail, such as --detail 0.9 instead of 0.65",
    ss.Paper().finer: "--preset photo, or more superpixels, such as --n-sites 2000",
    Advice("use ", Setting("channel_axis", None), "; or"): "use --channel-axis none; or",
    Advice("Try ", Setting("intensity_range", (0.0, 0.02)), ", which"): "Try --intensity-range 0 0.02, which",
    Advice("widen ", Setting("intensity_range"), " to"): "widen --intensity-range to",
}


@pytest.mark.parametrize("advice", ADVICE)
def test_advice_names_options_of_the_command(advice):
    assert with_flags(advice) == with_flags(pickle.loads(pickle.dumps(advice))) == ADVICE[advice]


def no_room(file):
    raise OSError(errno.ENOSPC, "No space left on device")


def closed(file):
    file.close()
    file.write(b"")


@pytest.mark.parametrize(
    ("error", "own"),
    [
        (ss.InvalidInput("beta must be finite: got nan"), True),
        (ss.MissingExtra("plots need Matplotlib"), True),
        (TaskError("tile 3: gone"), True),
        (MemoryError(), True),
        (FileNotFoundError("no BSDS under here"), True),
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError("cannot write mode F as PNG"), False),
        (OSError(errno.EBADF, "Bad file descriptor"), False),
        (ValueError("operands could not be broadcast together with shapes (2,) (3,)"), False),
        (ImportError("cannot import name 'x'"), False),
        (ZeroDivisionError("division by zero"), False),
        (TaskBug(f"a.png: {BUG}: KeyError: 1", "Traceback"), False),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_expected_has_its_own_line_and_the_rest_is_called_a_bug(error, own):
    assert is_expected(error) == own
    assert (BUG in error_line(error)) != own and "\n" not in error_line(error)
    assert (getattr(error, "strerror", "") or str(error)) in error_line(error) and error_line(error)


def test_an_error_that_names_the_file_is_judged_by_its_origin(tmp_path):
    assert is_expected(raised(read_picture, tmp_path / "missing.png"))
    assert is_expected(raised(read_picture, tmp_path / ("long" * 100)))
    assert is_expected(raised(atomic_write, tmp_path / "full", no_room))
    assert not is_expected(raised(atomic_write, tmp_path / "closed", closed))


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command; its exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["spinseg", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, *capsys.readouterr()

    yield run
    LOG.setLevel(logging.NOTSET)
    LOG.handlers.clear()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def broken(*arguments, **keywords):
    """A mistake of this program, such as NumPy finds."""
    return np.zeros(2) + np.zeros(3)


@pytest.mark.parametrize("line", ["segment a", "--debug segment a", "segment --debug a", "segment a --debug"])
def test_a_bug_is_one_line_with_its_own_exit_code_and_debug_shows_its_traceback(command, monkeypatch, line):
    monkeypatch.setattr("spinseg.cli.segment.segment_and_print", broken)
    code, output, errors = command(*line.split())
    *others, last = errors.splitlines()
    assert (code, output) == (70, "") and last.endswith("(run it with --debug to see the traceback)")
    assert last.startswith("spinseg: this is a bug in spinseg; please report it: ValueError: operands could not be")
    assert bool(others) == ("--debug" in line) == ("in broken" in errors) == ("Traceback (most recent call" in errors)


def test_debug_leaves_wrong_input_its_one_line_apart_from_the_traceback(command):
    for debug in ([], ["--debug"]):
        code, _, errors = command("segment", "a.png", "--prior", "Potts(0)", *debug)
        *others, line = errors.splitlines()
        assert code == 2 and line == "spinseg: n_labels must be a whole number of at least 1: got 0"
        assert bool(others) == bool(debug) == ("Traceback" in errors)


def test_a_missing_extra_is_one_line_and_another_failed_import_is_a_bug(command, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "nibabel", None)
    (tmp_path / "scan.nii").write_bytes((348).to_bytes(4, "little") + bytes(340) + b"n+1\0" + bytes(60))
    code, _, errors = command("segment", tmp_path / "scan.nii", "--out", tmp_path)
    assert code == 2 and "pip install" in errors and len(errors.splitlines()) == 1
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "spinseg.segmentation.large.segment_large", None)
    code, _, errors = command("large", "picture.tif")
    assert code == 70 and "ModuleNotFoundError" in errors


@pytest.fixture
def pictures(tmp_path):
    """Three pictures, of which the one in the middle is odd."""
    for i in range(3):
        Image.new("RGB", (12, 10 + (i == 1)), (90 * i, 50, 20)).save(tmp_path / f"p{i}.png")
    return [str(tmp_path / f"p{i}.png") for i in range(3)]


def save_unless_odd(self, folder, save=Segmentation.save, **options):
    if self.labels.shape[0] == 11:
        broken()
    save(self, folder, **options)


def test_a_bug_with_one_picture_is_its_line_and_the_others_are_done(command, pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(Segmentation, "save", save_unless_odd)
    fast = ["--out", tmp_path / "out", "--sweeps", "4", "--chains", "1", "--jobs", "1"]
    code, output, errors = command("segment", *pictures, *fast, "--json", "--quiet")
    reported = json.loads(output)["images"]
    assert [image["error"] is None for image in reported] == [True, False, True] and code == 70
    assert reported[1]["error"].startswith(
        f"{pictures[1]}: this is a bug in spinseg; please report it: ValueError: oper"
    )
    assert errors == f"spinseg: {reported[1]['error']} (run it with --debug to see the traceback)\n"
    code, _, errors = command("segment", "--debug", *pictures, *fast, "--quiet", "--overwrite")
    assert code == 70 and "in save_unless_odd" in errors


def segment_unless_odd(how, countdown, task, check_interrupt):
    """What a process does of a batch."""
    if "p1" in task[0]:
        broken()
    return Outcome(*task, 0.0, {"interrupted": False})


@exhaustive
def test_a_bug_in_a_process_is_its_line_and_the_others_are_done(pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "_segment_task", segment_unless_odd)
    found = dict(segment_files(pictures, tmp_path / "out", {"rng": 0}, jobs=2))
    assert found[0].summary and found[2].summary
    assert found[1].error.startswith(f"{pictures[1]}: {BUG}: ValueError: operands could not")
    assert "in broken" in found[1].traceback and "memory" not in found[1].error


def test_an_unexpected_end_of_a_file_is_a_bug_like_any_other(command, monkeypatch):
    def ended(*_):
        raise EOFError("Ran out of input")

    monkeypatch.setattr("spinseg.segmentation.batch.listed", ended)
    code, _, errors = command("info", "image.tif")
    assert code == 70 and errors.startswith(f"spinseg: {BUG}: EOFError: Ran out of input") and "Aborted" not in errors
