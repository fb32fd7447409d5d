"""Where machine code is kept, and bundles of arrays that compiled code takes by reference."""

import copy
import errno
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.caching import IndexDataCacheFile

from effort import exhaustive
from spinseg import _compiled, _numba
from spinseg._bundle import Bundle


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with two files of compiled code, and nobody's NUMBA_CACHE_DIR."""
    for name in ("_compiled.py", "_bundle.py", "_numba.py", "some_kernels.py", "kernels/sweep.py", "other.py"):
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
    for name in ("some_kernels.py", "kernels/sweep.py", "_bundle.py", "_numba.py"):
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


def doubled(number):
    """Twice a number."""
    return 2 * number


def emptied(path):
    path.write_bytes(b"")


def zeroed(path):
    path.write_bytes(bytes(path.stat().st_size))


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
@pytest.mark.parametrize("damage", [emptied, zeroed, cut])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_damaged_machine_code_is_compiled_and_stored_again(tmp_path, monkeypatch, kind, damage):
    monkeypatch.setattr(_compiled, "cache_folder", lambda: tmp_path)
    assert _compiled.jit(doubled)(2) == 4
    [damaged] = tmp_path.rglob(f"*.{kind}")
    damage(damaged)
    again, loaded = _compiled.jit(doubled), _compiled.jit(doubled)
    assert again(2) == loaded(2) == 4
    assert not again.stats.cache_hits and loaded.stats.cache_hits


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_machine_code_is_used_where_it_cannot_be_stored(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_compiled, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    assert _compiled.jit(doubled)(2) == 4 and not list(tmp_path.rglob("*.nb*"))


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


class Fields(Bundle):
    """Arrays of every kind that the package has."""

    signed: np.ndarray  # (n,) int64
    small: np.ndarray  # (n,) int32
    unsigned: np.ndarray  # (n,) uint32
    flag: np.ndarray  # (n,) bool
    rows: np.ndarray  # (n, m) float64, C order
    columns: np.ndarray  # (n, m) float64, Fortran order
    apart: np.ndarray  # (n,) float64, every other element of an array


def fields(seed):
    random = np.random.default_rng(seed)
    return Fields(
        signed=random.integers(-9, 9, 5),
        small=random.integers(0, 5, 5, np.int32),
        unsigned=random.integers(0, 5, 5, np.uint32),
        flag=random.random(5) < 0.5,
        rows=random.normal(size=(5, 4)),
        columns=np.asfortranarray(random.normal(size=(5, 4))),
        apart=random.normal(size=10)[::2],
    )


def summed(row):
    """The sum of an array."""
    total = 0.0
    for i in range(row.size):
        total += row[i]
    return total


summed = _compiled.internal(summed)


def read_and_write(bundle):
    """Every way to read and to write what a bundle holds."""
    chosen = bundle.rows if bundle.flag[0] else bundle.rows[1:]
    total = chosen[3, 3] + bundle.signed.size + bundle.columns.shape[0] * bundle.columns.shape[1]
    for i in range(bundle.small.size):
        total += bundle.rows[bundle.small[i], 0] + bundle.columns[bundle.unsigned[i], i % 4] + bundle.apart[i]
        total += summed(bundle.rows[i]) + summed(bundle.columns[i, 1:3]) + summed(bundle.apart)
        bundle.signed[i] += 7
        bundle.unsigned[i] = bundle.unsigned[i] + bundle.small[0]
        bundle.rows[i, 1], bundle.columns[i, 2] = bundle.columns[i, 2], bundle.small[i]
        bundle.flag[i] = not bundle.flag[i]
    bundle.rows[2, :] = 3
    bundle.apart[1:3] = bundle.apart[0]
    return total


@pytest.mark.parametrize("seed", range(4))
def test_the_arrays_of_a_bundle_are_read_and_written_as_without_compiling(seed, monkeypatch):
    monkeypatch.setattr(_compiled, "cache_folder", lambda: None)
    bundle, plain = fields(seed), fields(seed)
    total = _compiled.jit(read_and_write)(bundle)
    monkeypatch.setitem(globals(), "summed", getattr(summed, "py_func", summed))  # it has no entry
    assert total == pytest.approx(read_and_write(plain), rel=1e-12)
    for name, array in plain._asdict().items():
        np.testing.assert_array_equal(bundle._asdict()[name], array, err_msg=name)


def walk(numbers, start, stop, step):
    """Loops and branches of every kind, with what is assigned in some of them only."""
    last, n, product = -1, 0, 1.0
    for i in range(start, stop, step):
        if i % 7 == 5:
            break
        for j in range(i):
            if j > 3:
                continue
            last = i * j
        else:
            n += 1
        product = max(product, numbers[abs(i) % numbers.size]) if i > 2 else min(product, 0.5)
    while n > 4:
        n -= 3
        last, n = n, min(n, last)
    for u in range(np.uint64(2), np.uint64(numbers.size)):
        product += numbers[u]
    return last, n, product, int(10 * product), max(n, 0.5), min(last, n, start), max(start, stop)


compiled_walk = numba.njit(pipeline_class=_numba.compiler_of(has_entry=True))(walk)


@given(*[st.integers(-9, 9)] * 2, st.integers(1, 4), st.booleans())
def test_loops_and_branches_do_as_without_compiling(start, stop, step, back):
    numbers = np.random.default_rng(abs(start)).normal(size=6)
    steps = (stop, start, -step) if back else (start, stop, step)
    assert compiled_walk(numbers, *steps) == walk(numbers, *steps)


def extremes(a, b):
    """The larger, and the smaller."""
    return max(a, b), min(a, b)


EXTREMES = numba.njit(extremes)
SHORT_EXTREMES = numba.njit(pipeline_class=_numba.compiler_of(has_entry=True))(extremes)


@pytest.mark.parametrize("pair", [(1, 2.5), (2.5, 1), (-3, 4), (np.uint64(3), np.uint64(9)), (np.int32(5), 2)])
def test_the_larger_and_smaller_number_are_those_of_numba(pair):
    assert SHORT_EXTREMES(*pair) == EXTREMES(*pair) == extremes(*pair)
    for swapped in ((math.nan, 1.0), (1.0, math.nan), (0.0, -0.0), (-0.0, 0.0)):
        np.testing.assert_array_equal(np.signbit(SHORT_EXTREMES(*swapped)), np.signbit(EXTREMES(*swapped)))
        np.testing.assert_array_equal(SHORT_EXTREMES(*swapped), EXTREMES(*swapped))


def test_numbas_own_compiler_is_used_for_a_debugger(monkeypatch):
    monkeypatch.setattr(numba.config, "DEBUGINFO_DEFAULT", 1)
    assert _numba.compiler_of(has_entry=True) is _numba.compiler_of(has_entry=False) is numba.core.compiler.Compiler


def test_another_version_of_numba_compiles_with_its_own_compiler(monkeypatch):
    monkeypatch.setattr(_compiled, "cache_folder", lambda: None)
    for version, has_own in (("0.61.2", True), ("0.62.0", False), ("0.68.1", False), ("0.69.0rc1", True)):
        monkeypatch.setattr(numba, "__version__", version)
        assert (_numba.compiler_of(has_entry=True) is numba.core.compiler.Compiler) == has_own
        assert (_numba.compiler_of(has_entry=False) is numba.core.compiler.Compiler) == has_own
    pair = Pair(one=np.array([1.0, 2.0]), table=np.arange(6, dtype=np.int32).reshape(2, 3))
    assert _compiled.jit(getattr(total, "py_func", total))(pair) == 3.0 + 15.0


DRAWS = """
import sys
import numpy as np
import numba
if sys.argv[1] == "own":
    numba.__version__ = "0.0"
import spinseg as ss
random = np.random.default_rng(0)
site = np.arange(144).reshape(12, 12)
edges = np.concatenate([np.stack([site[1:], site[:-1]], -1), np.stack([site.T[1:], site.T[:-1]], -1)]).reshape(-1, 2)
graph, bins = ss.SiteGraph(144, edges), ss.DirichletMultinomial(random.integers(0, 4, (144, 3)), 1.0)
model = ss.Model(graph, bins, ss.DirichletProcess(1.0), 0.3, connected=True)
print(ss.sample(model, 30, 2, rng=0).labels.tobytes().hex())
"""


@exhaustive
def test_the_draws_are_those_that_numbas_own_compiler_gives(tmp_path):
    def run(compiler):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / compiler)}
        done = subprocess.run([sys.executable, "-c", DRAWS, compiler], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("short") == run("own")
