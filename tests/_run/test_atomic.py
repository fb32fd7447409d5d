"""`atomic_write` leaves the whole new file or the old one: after a failure, a kill, or a power cut."""

import ast
import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from spinseg._run.atomic import atomic_write, sync, sync_tree

SOURCE = Path(__file__).parents[2] / "src" / "spinseg"


@pytest.fixture
def events(monkeypatch):
    """What is brought to the disk and renamed, in this order: kinds, and sizes of files."""
    seen, real_fsync, real_replace = [], os.fsync, os.replace

    def fsync(place):
        about = os.fstat(place)
        seen.append("folder" if stat.S_ISDIR(about.st_mode) else f"file of {about.st_size}")
        real_fsync(place)

    def replace(source, target):
        seen.append(f"rename to {os.path.basename(target)}")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    return seen


def test_a_file_reaches_the_disk_before_its_name_and_its_name_before_the_end(events, tmp_path):
    atomic_write(tmp_path / "a", lambda file: file.write(b"12345"))
    assert events == ["file of 5", "rename to a", "folder"]
    assert (tmp_path / "a").read_bytes() == b"12345"


def test_a_tree_reaches_the_disk_with_all_its_files_and_folders(events, tmp_path):
    (tmp_path / "c" / "0").mkdir(parents=True)
    (tmp_path / "c" / "0" / "chunk").write_bytes(b"1234567")
    (tmp_path / "about").write_bytes(b"12")
    sync_tree(tmp_path)
    assert events == ["file of 7", "folder", "folder", "file of 2", "folder"]


def test_a_disk_that_fails_leaves_the_old_file_and_one_line(monkeypatch, tmp_path):
    def fsync(place):
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match=r"a must be a file that can be written; received Input/output error$"):
        atomic_write(tmp_path / "a", lambda file: file.write(b"new"))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    with pytest.raises(OSError, match="Input/output error"):
        sync(tmp_path)


def test_folders_that_cannot_be_brought_to_the_disk_are_no_error(monkeypatch, tmp_path):
    real = os.fsync

    def fsync(place):
        if stat.S_ISDIR(os.fstat(place).st_mode):  # as some file systems over a network answer
            raise OSError(errno.EINVAL, "Invalid argument")
        real(place)

    monkeypatch.setattr(os, "fsync", fsync)
    atomic_write(tmp_path / "a", lambda file: file.write(b"new"))
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(mode, tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(mode)
    atomic_write(tmp_path / "a", lambda file: file.write(b"new"))
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode and (tmp_path / "a").read_text() == "new"


def refusal(call, *args, kind=ValueError):
    """Return the one line of an error."""
    with pytest.raises(kind) as caught:
        call(*args)
    text = str(caught.value)
    assert "\n" not in text and " must " in text and "; received " in text
    return text


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit, OSError])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(failure, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    seen = []

    def write(file):
        file.write(b"half")
        file.flush()
        seen.extend(entry.name for entry in tmp_path.iterdir())
        raise failure

    with pytest.raises(failure):
        atomic_write(path, write)
    assert len(seen) == 2 and all(name == "out.txt" or name.startswith(".") for name in seen)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    script = (
        "import os, signal, sys\n"
        "from spinseg._run.atomic import atomic_write\n"
        "def write(file):\n"
        "    file.write(b'half'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "atomic_write(sys.argv[1], write)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert run.returncode == -signal.SIGKILL and path.read_text() == "old"


def test_places_that_are_no_files_are_refused(tmp_path):
    assert "received 'a folder'" in refusal(atomic_write, tmp_path, lambda file: None)
    os.mkfifo(tmp_path / "pipe")
    assert "received 'a pipe or a device'" in refusal(atomic_write, tmp_path / "pipe", lambda file: None)
    refusal(atomic_write, tmp_path / "none" / "x", lambda file: None, kind=FileNotFoundError)


def test_what_is_written_can_be_read_by_others_and_links_stay(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    before = os.umask(0o022)
    try:
        atomic_write(tmp_path / "link", lambda file: file.write(b"new"))
        atomic_write(tmp_path / ("n" * 255), lambda file: np.savez(file, a=np.eye(3)))  # a name as long as it may be
    finally:
        os.umask(before)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "file").read_bytes() == b"new"
    assert (tmp_path / "there" / "file").stat().st_mode & 0o777 == 0o644
    with np.load(tmp_path / ("n" * 255)) as arrays:
        np.testing.assert_array_equal(arrays["a"], np.eye(3))


def test_threads_that_write_the_same_name_never_mix(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"a" * 3000)
    errors = []

    def work(letter):
        def write(file):
            for _ in range(3):
                file.write(letter * 1000)
                file.flush()

        try:
            for _ in range(100):
                atomic_write(path, write)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    seen = set()
    while any(thread.is_alive() for thread in threads):
        seen.add(path.read_bytes())
    assert not errors and seen <= {b"a" * 3000, b"b" * 3000}
    assert list(tmp_path.iterdir()) == [path]


def writers(path):
    """Calls in a file of the package that open a file for writing, or rename one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [
            part.value for part in [*node.args, *(k.value for k in node.keywords)] if isinstance(part, ast.Constant)
        ]
        modes = [
            text for text in texts if isinstance(text, str) and set(text) <= set("rwaxbt+") and set(text) & set("wax+")
        ]
        if name in ("write_text", "write_bytes", "tofile", "savefig", "rename") or (name == "open" and modes):
            yield f"{name} in line {node.lineno}"


def test_every_file_of_the_package_is_written_by_one_function():
    """But for what is opened by others: Zarr; and an upload, which is gone after a run."""
    found = {str(path.relative_to(SOURCE)): list(writers(path)) for path in SOURCE.rglob("*.py")}
    assert {name: len(calls) for name, calls in found.items() if calls} == {"_run/atomic.py": 1, "app/handlers.py": 1}
