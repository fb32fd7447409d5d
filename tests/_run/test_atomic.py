"""`atomic_write` leaves the whole new file or the old one: after a failure, a kill, or a power cut."""

import ast
import errno
import os
import re
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sources import SOURCE, nodes
from spinseg._run.atomic import atomic_write, sync, sync_tree


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


def test_files_reach_the_disk_before_their_names_and_a_tree_as_a_whole(events, tmp_path):
    atomic_write(tmp_path / "a", lambda file: file.write(b"12345"))
    assert events == ["file of 5", "rename to a", "folder"]
    assert (tmp_path / "a").read_bytes() == b"12345"
    events.clear()
    (tmp_path / "c" / "0").mkdir(parents=True)
    (tmp_path / "c" / "0" / "chunk").write_bytes(b"1234567")
    sync_tree(tmp_path)
    assert events == ["file of 7", "folder", "folder", "file of 5", "folder"]


@pytest.mark.parametrize("folders_alone", [False, True])
def test_a_disk_that_fails_leaves_the_old_file_but_folders_need_not_reach_it(monkeypatch, tmp_path, folders_alone):
    real = os.fsync

    def fsync(place):
        if not folders_alone:
            raise OSError(errno.EIO, "Input/output error")
        if stat.S_ISDIR(os.fstat(place).st_mode):  # as some file systems over a network answer
            raise OSError(errno.EINVAL, "Invalid argument")
        real(place)

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(os, "fsync", fsync)
    if folders_alone:
        atomic_write(tmp_path / "a", lambda file: file.write(b"new"))
    else:
        with pytest.raises(OSError, match=r"^cannot write .*a: input/output error$"):
            atomic_write(tmp_path / "a", lambda file: file.write(b"new"))
        with pytest.raises(OSError, match="Input/output error"):
            sync(tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new" if folders_alone else "old"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
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


def test_places_that_are_no_files_are_refused_in_one_line(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    lines = {".": "must be a file: got 'a folder'", "pipe": "got 'a pipe or a device'"}
    for name, line in {**lines, "none/x": "^cannot write .*none/x: no such file or directory"}.items():
        with pytest.raises((ValueError, FileNotFoundError), match=rf"{line}$"):
            atomic_write(tmp_path / name, lambda file: None)


@pytest.mark.parametrize("mode", [None, 0o600, 0o664, 0o444])
def test_new_files_can_be_read_by_others_old_ones_keep_their_permissions_and_links_stay(mode, tmp_path):
    (tmp_path / "there").mkdir()
    file, link = tmp_path / "there" / ("n" * 255), tmp_path / "link"  # a name as long as it may be
    link.symlink_to(file)
    if mode:
        file.write_text("old")
        file.chmod(mode)
    before = os.umask(0o022)
    try:
        atomic_write(link, lambda file: np.savez(file, a=np.eye(3)))
    finally:
        os.umask(before)
    assert link.is_symlink() and stat.S_IMODE(file.stat().st_mode) == (mode or 0o644)
    with np.load(file) as arrays:
        np.testing.assert_array_equal(arrays["a"], np.eye(3))


def test_threads_that_write_the_same_name_never_mix(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"a" * 3000)

    def work(letter):
        def write(file):
            for _ in range(3):
                file.write(letter * 1000)
                file.flush()

        for _ in range(100):
            atomic_write(path, write)

    with ThreadPoolExecutor(2) as pool:
        coming, seen = [pool.submit(work, letter) for letter in (b"a", b"b")], set()
        while not all(one.done() for one in coming):
            seen.add(path.read_bytes())
    assert [one.result() for one in coming] == [None, None] and seen <= {b"a" * 3000, b"b" * 3000}
    assert list(tmp_path.iterdir()) == [path]


def writers(path):
    """Calls in a file of the package that open a file for writing, or rename one."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            given = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            modes = [text for text in given if isinstance(text, str) and re.fullmatch("[rbt]*[wax+][rwaxbt+]*", text)]
            if name in ("write_text", "write_bytes", "tofile", "savefig", "rename") or (name == "open" and modes):
                yield f"{name} in line {node.lineno}"


def test_every_file_of_the_package_is_written_by_one_function():
    """But for what is opened by others: Zarr; and an upload, which is gone after a run."""
    found = {str(path.relative_to(SOURCE)): list(writers(path)) for path in SOURCE.rglob("*.py")}
    assert {name: len(calls) for name, calls in found.items() if calls} == {"_run/atomic.py": 1, "app/handlers.py": 1}
