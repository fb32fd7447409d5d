"""Files that outlast a power cut: what reaches the disk, and in which order."""

import ast
import errno
import os
import stat
from pathlib import Path

import pytest

from spinseg._run.atomic import append, atomic_write, complete_lines, sync, sync_tree

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


def test_what_is_appended_reaches_the_disk(events, tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    append(tmp_path / "a", b"45")
    assert events == ["file of 5"] and (tmp_path / "a").read_bytes() == b"12345"


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


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"", b""),
        (b"a,1\nb,2\n", b"a,1\nb,2\n"),
        (b"a,1\nb,", b"a,1\n"),
        (b"a,1", b""),
        (b"a,1\n\0\0\0", b"a,1\n"),
        (b"a,1\n\0\0\0\n", b"a,1\n"),
        (b"\0\n", b""),
    ],
)
def test_a_torn_last_line_is_left_out(data, kept):
    assert complete_lines(data) == kept


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
    """But for what is opened by others: Zarr; an upload, and numbers for other processes, which are gone after a run."""
    found = {str(path.relative_to(SOURCE)): list(writers(path)) for path in SOURCE.rglob("*.py")}
    apart = {name: calls for name, calls in found.items() if calls}
    assert len(apart.pop("_run/atomic.py")) == 2  # a whole file, and the end of one
    assert len(apart.pop("app/handlers.py")) == 1
    assert len(apart.pop("_run/shared_arrays.py")) == 3
    assert apart == {}
