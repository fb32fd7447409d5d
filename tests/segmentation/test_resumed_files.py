"""`--resume`: a result counts as done if it is whole and of the same files, whatever their dates."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import spinseg as ss
from spinseg.image.formats import content_hash
from spinseg.segmentation.batch import segment_file, segment_files

FAST = {"sweeps": 2, "chains": 1, "n_sites": 9, "rng": 0}


def halves(column):
    """A picture of two halves."""
    image = np.zeros((20, 24), np.uint8)
    image[:, column:] = 200
    return image


def write(path, array):
    if path.suffix == ".zarr":
        zarr = pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
        zarr.create_array(str(path), data=array, chunks=(10, 12))
    else:
        np.save(path, array)


def replace(path, by):
    """Put another file, or folder, of an older date in the place of one, as mv, cp -p, unzip and rsync do."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    by.rename(path)
    for file in [path, *path.rglob("*")]:
        os.utime(file, (1, 1))


def seed_points(*columns):
    """A label image with a seed in each of these columns."""
    seeds = np.zeros((20, 24), np.int32)
    for number, column in enumerate(columns, start=1):
        seeds[10, column] = number
    return seeds


class Collection:
    """One picture with its mask and seeds, and a folder for its result."""

    def __init__(self, place, suffix=".npy"):
        self.place = place
        self.files = {name: place / f"{name}.npy" for name in ("mask", "seeds")} | {"source": place / f"a{suffix}"}
        write(self.files["source"], halves(12))
        write(self.files["mask"], np.ones((20, 24), np.uint8))
        write(self.files["seeds"], seed_points(2, 20))
        self.keywords = FAST | {name: str(self.files[name]) for name in ("mask", "seeds")}

    def run(self, **how):
        arguments = [str(self.files["source"])], self.place / "out", self.keywords
        ((_, outcome),) = segment_files(*arguments, **how)
        return outcome

    @property
    def result(self):
        return self.place / "out" / "a"


OTHERS = {"source": halves(6), "mask": 1 - np.eye(20, 24, dtype=np.uint8), "seeds": seed_points(2, 19)}


@pytest.mark.parametrize(("name", "suffix"), [*((name, ".npy") for name in OTHERS), ("source", ".zarr")])
def test_another_file_of_an_older_date_is_not_taken_for_the_same(name, suffix, tmp_path):
    album = Collection(tmp_path, suffix)
    assert album.run().error is None
    for path in album.files.values():
        os.utime(path, (2**31 - 1, 2**31 - 1))  # a later date of the same content is no change
    assert album.run(resume=True).done_before
    before, other = (album.result / "result.json").read_bytes(), tmp_path / f"other{suffix}"
    write(other, OTHERS[name])
    replace(album.files[name], other)
    words = "image" if name == "source" else name
    assert f"holds the result of another run ({words} has changed since), which is kept" in album.run(resume=True).error
    assert (album.result / "result.json").read_bytes() == before
    again = album.run(resume=True, overwrite=True)
    assert again.error is None and not again.done_before
    assert album.run(resume=True).done_before


def test_results_have_the_hashes_of_their_files(tmp_path):
    album = Collection(tmp_path)
    given = {name: str(path) for name, path in album.files.items() if name != "source"}
    ss.segment(album.files["source"], **FAST, **given).save(album.result)
    reported = json.loads((album.result / "result.json").read_text())
    assert reported["sha256"] == {n: hashlib.sha256(f.read_bytes()).hexdigest() for n, f in album.files.items()}
    assert ss.segment(halves(12), **FAST).summary()["sha256"] == {}


def test_a_result_of_a_picture_that_changed_while_it_was_read_is_not_done(tmp_path, monkeypatch):
    album = Collection(tmp_path)
    read = ss.segmentation.problem.read_picture

    def read_late(*arguments, **keywords):
        write(album.files["source"], halves(6))
        return read(*arguments, **keywords)

    with monkeypatch.context() as patched:
        patched.setattr("spinseg.segmentation.problem.read_picture", read_late)
        assert album.run().error is None
    assert "(image has changed since)" in album.run(resume=True).error


def test_a_result_of_a_picture_that_is_gone_is_kept_with_a_line(tmp_path):
    album = Collection(tmp_path)
    assert album.run().error is None
    before = (album.result / "result.json").read_bytes()
    album.files["source"].unlink()
    outcome = album.run(resume=True)
    assert not outcome.done_before and f"cannot read {album.files['source']}" in outcome.error
    assert (album.result / "result.json").read_bytes() == before


@pytest.mark.parametrize("name", ["labels.tif", "report.html"])
def test_a_result_that_lacks_a_file_is_made_again(name, tmp_path):
    album = Collection(tmp_path)
    assert album.run(also=["regions.csv"]).error is None
    whole = {path.name: path.read_bytes() for path in album.result.iterdir()}
    (album.result / name).unlink()
    again = album.run(resume=True)
    assert again.error is None and not again.done_before
    assert {path.name: path.read_bytes() for path in album.result.iterdir()} == whole
    assert album.run(resume=True).done_before


def test_a_file_that_could_not_be_written_is_not_lacking(tmp_path, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.files.MAX_PNG_LABELS", 1)
    album = Collection(tmp_path)
    assert segment_file(str(album.files["source"]), str(album.result), album.keywords).error is None
    assert not (album.result / "labels.png").exists()
    assert album.run(resume=True).done_before


@pytest.mark.parametrize("how", ["resume", "overwrite"])
@pytest.mark.parametrize("name", ["source", "mask", "seeds"])
def test_a_file_that_is_read_is_never_written(name, how, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"source": halves(12), "mask": np.ones((20, 24), np.uint8), "seeds": seed_points(2, 20)}
    files = {"source": "overlay.png", "mask": "mask.png", "seeds": "seeds.png"} | {name: "overlay/overlay.png"}
    Path("overlay").mkdir()
    for key, array in given.items():
        Image.fromarray(array.astype(np.uint8)).save(files[key])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.png")}
    keywords = FAST | {key: files[key] for key in ("mask", "seeds")}
    ((_, outcome),) = segment_files([files["source"]], ".", keywords, **{how: True})
    line = "saving in ./overlay would change an input: overlay/overlay.png. Choose another folder."
    assert line in outcome.error and not outcome.traceback
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_no_result_is_saved_in_a_zarr_folder_that_is_read(tmp_path):
    album = Collection(tmp_path, ".zarr")
    image = tmp_path / "slide"
    album.files["source"].rename(image)
    before = sorted(image.rglob("*"))
    for out in (tmp_path, image / "results"):
        ((_, outcome),) = segment_files([str(image)], out, FAST)
        assert f"would change an input: {image}. Choose another folder." in outcome.error
    assert sorted(image.rglob("*")) == before


def test_saving_over_the_image_itself_is_refused_and_beside_it_is_not(tmp_path):
    Image.fromarray(halves(12)).save(tmp_path / "labels.png")
    before = (tmp_path / "labels.png").read_bytes()
    found = ss.segment(tmp_path / "labels.png", **FAST)
    with pytest.raises(ss.InvalidInput, match="would change an input"):
        found.save(tmp_path, overwrite=True)
    found.save(tmp_path, ["labels.tif", "report.html"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.png", "labels.tif", "report.html"]
    assert (tmp_path / "labels.png").read_bytes() == before


@pytest.mark.parametrize("content", [b"[]", b'{"a"', b"id,score", b"\xff"], ids=str)
def test_a_result_file_of_another_program_is_kept(content, tmp_path):
    album = Collection(tmp_path)
    album.result.mkdir(parents=True)
    (album.result / "result.json").write_bytes(content)
    for resume in (False, True):
        assert "holds result.json already, which is kept; --overwrite replaces it" in album.run(resume=resume).error
        assert {path.name: path.read_bytes() for path in album.result.iterdir()} == {"result.json": content}
    assert album.run(resume=True, overwrite=True).error is None


@pytest.mark.parametrize("spoil", [lambda whole: b"", lambda whole: whole[:99], lambda whole: bytes(99)])
def test_a_result_file_that_is_damaged_is_made_again(spoil, tmp_path):
    album = Collection(tmp_path)
    assert album.run().error is None
    whole = (album.result / "result.json").read_bytes()
    (album.result / "result.json").write_bytes(spoil(whole))
    assert album.run(resume=True).error is None and (album.result / "result.json").read_bytes() == whole


def test_a_mask_of_many_pictures_is_hashed_once(tmp_path, monkeypatch):
    album, hashed = Collection(tmp_path), []
    arguments = [str(album.files["source"])] * 2, album.place / "out", album.keywords
    assert not any(outcome.error for _, outcome in segment_files(*arguments, jobs=1))
    monkeypatch.setattr(
        "spinseg.segmentation.resume.content_hash", lambda path: hashed.append(path) or content_hash(path)
    )
    assert all(outcome.done_before for _, outcome in segment_files(*arguments, resume=True))
    assert hashed.count(album.keywords["mask"]) == hashed.count(album.keywords["seeds"]) == 1
