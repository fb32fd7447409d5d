"""The folder of a run on a large picture: what was damaged is made again, what is not of the run is left alone."""

import os
import shutil

import numpy as np
import pytest

import spinseg as ss
from effort import effort
from large_runs import IMAGES, contents, pieces, times
from spinseg.segmentation.large.segment_large import segment_large

zarr = pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
da = pytest.importorskip("dask.array", reason="the extra [distributed] is not installed")
tifffile = pytest.importorskip("tifffile")

FAST = {"n_sites": 60, "sweeps": 4, "chains": 1, "tile": 64, "jobs": 1, "rng": 0}
SHAPE = (70, 100)  # four tiles
FACTS = ("overview.png", "result.json")

pytestmark = pytest.mark.xdist_group("dask")


def noise(seed=0):
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 60, (*SHAPE, 3)) + 100 * (np.arange(SHAPE[1]) > 50)[:, None]).astype(np.uint8)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A picture, and a finished run on it."""
    folder = tmp_path_factory.mktemp("run")
    zarr.create_array(str(folder / "picture.zarr"), data=noise(), chunks=(50, 60, 3))
    segment_large(folder / "picture.zarr", folder / "whole", **FAST)
    return folder


@pytest.fixture
def out(place, tmp_path):
    """A copy of the run."""
    return shutil.copytree(place / "whole", tmp_path / "out")


def begin(picture, out):
    """Begin a run, which ends as soon as its plan is written, or is the one that is there."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("spinseg.segmentation.large.segment_large._make_tiles", lambda *_, **__: 1 / 0)
        segment_large(picture, out, **FAST)


def check_same(place, out):
    """All that the run wrote is as in the finished one."""
    for theirs, mine in zip(pieces(place / "whole"), pieces(out), strict=True):
        assert np.array_equal(theirs, mine)
    for name in ("plan.json", "overview.png", "result.json"):
        assert (out / name).read_bytes() == (place / "whole" / name).read_bytes()


def spoil(path, how):
    data = path.read_bytes()
    spoilt = {"empty": b"", "truncated": data[: len(data) // 2], "zeros": bytes(len(data)), "gone": None}[how]
    path.unlink()
    if spoilt is not None:
        path.write_bytes(spoilt)


@pytest.mark.parametrize("how", effort(["truncated"], ["empty", "truncated", "zeros", "gone"]))
@pytest.mark.parametrize(("file", "tile"), [("tiles/000002.npz", 2), ("sites.zarr/0/c/0/1", 1)], ids=["draws", "sites"])
def test_a_damaged_tile_is_made_again_and_reported(file, tile, how, place, out, capsys):
    before = times(out)
    spoil(out / file, how)
    segment_large(place / "picture.zarr", out, **FAST)
    check_same(place, out)
    after = times(out)
    assert {name for name in after if after[name] != before.get(name)} == {f"{tile:06d}.npz"}
    is_damaged = (out / file).parent.name != "tiles" or how != "gone"
    assert capsys.readouterr().err == (
        f"spinseg: damaged tiles in {out} are made again: {tile}\n" if is_damaged else ""
    )


@pytest.mark.parametrize("text", ['{"weeks": 3}', "[]", "Monday: rest.", "{", ""], ids=str)
def test_a_plan_that_is_damaged_or_of_something_else_is_refused(text, place, out):
    (out / "plan.json").write_text(text)
    before = contents(out)
    with pytest.raises(ValueError, match=r"^out must be an empty folder, or one of such a run \(name another folder\)"):
        segment_large(place / "picture.zarr", out, **FAST)
    assert contents(out) == before


@pytest.mark.parametrize("file", effort(["zarr.json"], ["zarr.json", "0/zarr.json"]))
@pytest.mark.parametrize("name", IMAGES)
def test_an_array_whose_description_is_damaged_is_made_again(name, file, place, out, capsys):
    (out / name / file).write_bytes(b"")
    for chunk in (out / "labels.zarr" / "0" / "c").glob("*/*"):  # all of which are written again
        chunk.write_bytes(b"")
    segment_large(place / "picture.zarr", out, **FAST)
    check_same(place, out)
    assert f"spinseg: {out / name} is damaged, and is made again\n" in capsys.readouterr().err


def test_sites_and_labels_reach_the_disk_before_what_says_that_they_are_done(place, tmp_path, monkeypatch):
    seen, real_fsync, real_replace = [], os.fsync, os.replace

    def fsync(opened):
        seen.append(os.fstat(opened).st_ino)
        real_fsync(opened)

    def replace(source, target):
        seen.append(os.path.basename(target))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    segment_large(place / "picture.zarr", tmp_path, **FAST)
    for name, done in [("sites.zarr", "000003.npz"), ("labels.zarr", "result.json")]:
        for file in ("zarr.json", "0/zarr.json", "0/c/1/1", "0/c/1"):
            assert seen.index((tmp_path / name / file).stat().st_ino) < seen.index(done)


def test_an_old_result_is_gone_before_labels_are_written_again(place, out, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.large.segment_large.write_images", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        segment_large(place / "picture.zarr", out, **FAST | {"detail": 0.2})
    assert not (out / "result.json").exists()


def as_zarr(path, array, version=3):
    zarr.create_array(str(path), data=array, chunks=(50, 60, 3), zarr_format=version)


def as_ome(path, array):
    group = zarr.open_group(str(path), mode="w")
    group.create_array("fine", data=array, chunks=(50, 60, 3))
    axes = [{"name": name} for name in "yxc"]
    group.attrs["ome"] = {"multiscales": [{"axes": axes, "datasets": [{"path": "fine"}]}]}


def rewrite_in_zarr(path, array):
    zarr.open(str(path), mode="r+")[50:, 60:] = array[50:, 60:]  # one chunk


PICTURES = {
    "zarr-2": (lambda path, array: as_zarr(path, array, 2), rewrite_in_zarr),
    "zarr-3": (as_zarr, rewrite_in_zarr),
    "ome": (as_ome, lambda path, array: rewrite_in_zarr(path / "fine", array)),
    "tiff": (tifffile.imwrite, tifffile.imwrite),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_that_was_written_again_in_place_is_told(kind, tmp_path, capsys):
    write, rewrite = PICTURES[kind]
    write(tmp_path / "picture", noise(0))
    begin(tmp_path / "picture", tmp_path / "out")
    before = contents(tmp_path / "out")
    rewrite(tmp_path / "picture", noise(1))
    line = r"out holds the result of another run \(picture has changed since\), which is kept; name another folder"
    with pytest.raises(ValueError, match=line):
        segment_large(tmp_path / "picture", tmp_path / "out", **FAST)
    assert contents(tmp_path / "out") == before and capsys.readouterr().err == ""


def test_a_picture_is_told_by_its_content_not_by_its_date(tmp_path):
    picture, other, out = tmp_path / "picture.tif", tmp_path / "other.tif", tmp_path / "out"
    tifffile.imwrite(picture, noise(0))
    segment_large(picture, out, **FAST)
    tiles, made = times(out), picture.stat().st_mtime_ns
    shutil.copy(picture, other)
    os.replace(other, picture)
    os.utime(picture, (1, 1))
    segment_large(picture, out, **FAST)
    tifffile.imwrite(other, noise(1))
    assert times(out) == tiles and other.stat().st_size == picture.stat().st_size
    os.replace(other, picture)
    os.utime(picture, ns=(made, made))
    with pytest.raises(ValueError, match=r"another run \(picture has changed since\)"):
        segment_large(picture, out, **FAST)
    assert times(out) == tiles


def test_a_picture_that_changes_while_tiles_are_made_is_told(tmp_path, monkeypatch):
    def tiles(work, tasks, started):
        for place, task in enumerate(tasks):
            yield place, work(task, None)
            tifffile.imwrite(tmp_path / "picture.tif", noise(seed))

    monkeypatch.setattr("spinseg._run.executor._run_here", tiles)
    tifffile.imwrite(tmp_path / "picture.tif", noise(0))
    seed = 0  # written again, but as it was
    segment_large(tmp_path / "picture.tif", tmp_path / "same", **FAST)
    seed, line = 1, r"^the image changed while its tiles were made: .*picture.tif. Remove .*other"
    with pytest.raises(ss.InvalidInput, match=line):
        segment_large(tmp_path / "picture.tif", tmp_path / "other", **FAST)
    assert not (tmp_path / "other" / "result.json").exists()
    with pytest.raises(ss.InvalidInput, match=r"picture has changed since"):
        segment_large(tmp_path / "picture.tif", tmp_path / "other", **FAST)


def test_a_picture_that_nobody_touched_is_not_read_to_tell(place, out, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.large.files.content_hash", lambda path: 1 / 0)
    segment_large(place / "picture.zarr", out, **FAST)


def test_what_others_add_to_a_group_of_zarr_changes_no_picture(tmp_path):
    as_ome(tmp_path / "picture", noise())
    begin(tmp_path / "picture", tmp_path / "out")
    zarr.open_group(str(tmp_path / "picture"))["fine"]  # read by another tool
    zarr.create_array(str(tmp_path / "picture" / "labels"), data=np.zeros((9, 9), np.uint8))
    begin(tmp_path / "picture", tmp_path / "out")


def test_a_dask_array_of_other_numbers_is_told(tmp_path):
    for _ in range(2):
        begin(da.from_array(noise(0)), tmp_path)
    with pytest.raises(ValueError, match=r"holds the result of another run \(picture a Dask"):
        segment_large(da.from_array(noise(1)), tmp_path, **FAST)


def mine(path):
    """Something of the user's, a folder of Zarr or a file."""
    if path.suffix == ".zarr":
        return zarr.open_group(str(path), mode="w").create_array("0", data=np.arange(12).reshape(3, 4))
    return path.write_bytes(b"mine")


def test_a_file_in_the_place_of_the_folder_is_refused(place, tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ValueError, match=r"^cannot write to the folder "):
        segment_large(place / "picture.zarr", tmp_path / "file", **FAST)
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("name", [*IMAGES, *FACTS, "tiles"])
def test_what_others_keep_in_the_folder_is_never_overwritten(name, place, tmp_path):
    mine(tmp_path / name)
    before = contents(tmp_path)
    with pytest.raises(ValueError) as told:
        segment_large(place / "picture.zarr", tmp_path, **FAST)
    rule = "out must be an empty folder, or one of such a run (name another folder)"
    assert str(told.value) == f"{rule}: got '{tmp_path}, which holds {name}'" and contents(tmp_path) == before


def test_other_things_in_the_folder_are_no_hindrance(place, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "tiles").mkdir()  # all that a run leaves that was killed at once
    segment_large(place / "picture.zarr", tmp_path, **FAST)
    check_same(place, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("inside", [".", "results"])
def test_a_folder_within_the_picture_is_refused(inside, tmp_path):
    as_zarr(tmp_path / "picture", noise())
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=r"would change an input: .*picture. Choose another folder"):
        segment_large(tmp_path / "picture", tmp_path / "picture" / inside, **FAST)
    assert contents(tmp_path) == before
