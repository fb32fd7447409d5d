"""Where machine code is kept, and bundles of arrays that compiled code takes by reference."""

import copy
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from spinseg import _compiled
from spinseg._bundle import Bundle


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two files of compiled code, and nobody's NUMBA_CACHE_DIR."""
    for name in ("_compiled.py", "_bundle.py", "some_kernels.py", "kernels/sweep.py", "other.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(_compiled, "PACKAGE", tmp_path)
    monkeypatch.setattr(_compiled.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    return tmp_path


def folder():
    return _compiled.cache_folder.__wrapped__()


def test_an_edit_of_any_compiled_source_names_another_folder_and_clears_the_old(package):
    first = folder()
    assert first == folder() and first.parent == package / "__pycache__" and first.is_dir()
    (package / "other.py").write_text("edited")
    assert folder() == first
    for name in ("some_kernels.py", "kernels/sweep.py", "_bundle.py"):
        before = folder()
        (package / name).write_text("edited")
        assert folder() != before
    assert [path.name for path in (package / "__pycache__").iterdir()] == [folder().name]


def test_where_the_package_is_read_only_the_users_cache_is_taken_and_else_none(package, monkeypatch):
    refused = {package / "__pycache__"}
    mkdir = Path.mkdir

    def only_elsewhere(path, *arguments, **options):
        if path.parent in refused:
            raise OSError("read-only")
        mkdir(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", only_elsewhere)
    assert folder().parent == package / "users" / "spinseg"
    refused.add(package / "users" / "spinseg")
    (package / "some_kernels.py").write_text("edited")
    assert folder() is None


def test_a_folder_that_the_user_names_is_taken(package, monkeypatch):
    monkeypatch.setattr(_compiled.config, "CACHE_DIR", str(package / "mine"))
    assert folder().parent == package / "mine"


class Pair(Bundle):
    """Two arrays."""

    one: np.ndarray  # (n,) float64
    table: np.ndarray  # (n, m) int32


@_compiled.jit
def total(pair):
    """Read both arrays, and write to one."""
    found = 0.0
    for i in range(pair.one.size):
        found += pair.one[i]
        for j in range(pair.table.shape[1]):
            found += pair.table[i, j]
    pair.one[0] = -1.0
    return found


@pytest.mark.parametrize(
    "copied",
    [lambda pair: pair, copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair)), lambda pair: pair._replace()],
    ids=["itself", "deep copy", "pickled", "replaced"],
)
def test_compiled_code_reads_and_writes_the_arrays_of_a_bundle_and_no_others(copied):
    pair = Pair(one=np.array([1.0, 2.0]), table=np.arange(6, dtype=np.int32).reshape(2, 3))
    other = copied(pair)
    other.table[1, 2] += 10
    assert total(other) == 3.0 + 15.0 + 10.0
    assert other.one[0] == -1.0
    shared = np.shares_memory(pair.one, other.one)
    assert (pair.one[0] == -1.0) == shared


def test_a_bundle_has_all_its_arrays_and_no_more():
    with pytest.raises(AssertionError):
        Pair(one=np.zeros(1))
    with pytest.raises(AssertionError):
        Pair(one=np.zeros(1), table=np.zeros((1, 1), np.int32), third=np.zeros(1))


@_compiled.internal
def is_long(row):
    """Whether there are more than two entries."""
    return row.one.size > 2


class Row(Bundle, questions=(is_long,)):
    """An array, and whether it is long."""

    one: np.ndarray  # (n,) float64


@_compiled.internal
def first(row):
    """The first entry."""
    return row.one[0]


@_compiled.internal
def last_of_long(row):
    """The last entry of a long row."""
    return row.one[2] if is_long(row) else np.nan


def ends(row):
    """The first entry, and of a long row the sum of the first and the last."""
    if is_long(row):
        return first(row) + last_of_long(row)
    return first(row)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_branch_is_compiled_for_the_bundles_that_take_it_and_what_asks_nothing_once(monkeypatch):
    monkeypatch.setattr(_compiled, "cache_folder", lambda: None)  # nothing is loaded from disk
    compiled, short, long = _compiled.jit(ends), Row(one=np.array([2.0, 1.0])), Row(one=np.array([2.0, 1.0, 4.0]))
    assert compiled(short) == 2.0
    assert len(last_of_long.signatures) == 0
    assert compiled(long) == 6.0
    assert [len(function.signatures) for function in (compiled, first, last_of_long)] == [2, 1, 1]
