"""Pictures on disk, tile by tile: what is read, what is written, and what an interruption leaves."""

import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter
from skimage.segmentation import find_boundaries

import spinseg as ss
from command import spinseg
from effort import exhaustive
from large_runs import contents, open_array, pieces, times
from processes import PATIENCE, wait_until
from spinseg._errors import InvalidInput, TaskBug, TaskError, is_expected
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.log_odds import BoundaryEvidence
from spinseg.image.intensity import infer_intensity_range
from spinseg.image.io import read_image
from spinseg.image.picture import as_picture
from spinseg.image.render import paint_edges
from spinseg.sampler.convergence import standard_errors
from spinseg.segmentation.large.files import (
    SHARED_IMAGE,
    OpenedPicture,
    create_ome_zarr,
    open_picture,
    shared_image,
    write_chunk,
)
from spinseg.segmentation.large.segment_large import segment_large
from spinseg.segmentation.large.tiles import Tiling, segment_tile

da = pytest.importorskip("dask.array", reason="the extra [distributed] is not installed")
zarr = pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
tifffile = pytest.importorskip("tifffile")

FAST = {"preset": "photo", "n_sites": 250, "sweeps": 6, "tile": 110, "jobs": 1, "rng": 0}
OPTIONS = ["--preset", "photo", "--n-sites", "250", "--sweeps", "6", "--jobs", "1", "--tile"]
SHAPE = (150, 210)

pytestmark = pytest.mark.xdist_group("dask")  # one cluster, one picture segmented once


@pytest.fixture(scope="module")
def image():
    """Smooth patches with some noise: no two pixels are alike, and they span the 16 bits, as color does."""
    rng = np.random.default_rng(0)
    patches = np.zeros((*SHAPE, 3))
    patches[:, 90:] += (0.65, 0.1, 0.3)
    patches[80:, :] += (0.1, 0.4, 0.0)
    patches[20:60, 120:180] += 0.1  # faint
    values = gaussian_filter(patches, (1, 1, 0)) + 0.1 + 0.03 * rng.normal(size=patches.shape)
    return np.rint(values.clip(0, 1) * 65535).astype(np.uint16)


@pytest.fixture(scope="module")
def place(image, tmp_path_factory):
    """A folder with the picture as Zarr, and in `whole` what became of it."""
    folder = tmp_path_factory.mktemp("large")
    zarr.create_array(str(folder / "picture.zarr"), data=image, chunks=(50, 60, 3))
    return folder


@pytest.fixture(scope="module")
def found(place):
    return segment_large(place / "picture.zarr", place / "whole", **FAST)


def ome(path, array, axes, version):
    group = zarr.open_group(str(path), mode="w", zarr_format=2 if version == "0.4" else 3)
    group.create_array("fine", data=array, chunks=array.shape)
    group.create_array("coarse", data=array[..., ::2, ::2], chunks=array.shape)
    about = [{"axes": [{"name": name} for name in axes], "datasets": [{"path": "fine"}, {"path": "coarse"}]}]
    group.attrs.update({"multiscales": about} if version == "0.4" else {"ome": {"multiscales": about}})


def pyramid(path, array):
    with tifffile.TiffWriter(path) as file:
        options = {"tile": (64, 64), "photometric": "rgb"}
        file.write(array, subifds=1, **options)
        file.write(array[::2, ::2], subfiletype=1, **options)


WRITERS = {
    "yx": lambda path, a: zarr.create_array(str(path), data=a[..., 0]),
    "yxc": lambda path, a: zarr.create_array(str(path), data=a, chunks=(50, 60, 3)),
    "cyx": lambda path, a: zarr.create_array(str(path), data=np.moveaxis(a, -1, 0)),
    "big-endian": lambda path, a: zarr.create_array(str(path), data=a.astype(">u2"), zarr_format=2),
    "ome-0.4": lambda path, a: ome(path, np.moveaxis(a, -1, 0)[None, :, None], "tczyx", "0.4"),
    "ome-0.5": lambda path, a: ome(path, np.moveaxis(a, -1, 0)[None, :, None], "tczyx", "0.5"),
    "ome-xy": lambda path, a: ome(path, a[..., 0].T, "xy", "0.5"),
    "ome-time": lambda path, a: ome(path, a[None, ..., 0], ["time", "y", "x"], "0.4"),
    "tiled": lambda path, a: tifffile.imwrite(path, a, tile=(64, 64), photometric="rgb"),
    "striped": lambda path, a: tifffile.imwrite(path, a, rowsperstrip=7, photometric="rgb", byteorder=">"),
    "planar": lambda path, a: tifffile.imwrite(path, np.moveaxis(a, -1, 0), photometric="rgb", planarconfig="separate"),
    "gray": lambda path, a: tifffile.imwrite(path, a[..., 0], tile=(64, 64)),
    "pyramid": pyramid,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_files_are_opened_as_rows_columns_and_channels(kind, image, tmp_path):
    WRITERS[kind](tmp_path / "picture", image)
    array = open_array(tmp_path / "picture")
    assert isinstance(array, da.Array)
    expected = image[..., :1] if kind in ("yx", "ome-xy", "ome-time", "gray") else image
    assert array.shape == expected.shape and np.array_equal(array.compute(), expected)


def test_a_tiff_file_is_open_only_while_it_is_read(image, tmp_path, monkeypatch):
    opened, real = [], tifffile.TiffFile
    monkeypatch.setattr(tifffile, "TiffFile", lambda *given, **how: opened.append(real(*given, **how)) or opened[-1])
    WRITERS["tiled"](tmp_path / "picture", image)
    array = open_array(tmp_path / "picture")
    assert opened and all(file.filehandle.closed for file in opened)
    assert np.array_equal(array[20:90, 30:].compute(), image[20:90, 30:])
    assert all(file.filehandle.closed for file in opened)
    assert np.array_equal(pickle.loads(pickle.dumps(array)).compute(), image)


def dangling(path):
    ome(path, np.zeros((3, 9, 9), np.uint8), "cyx", "0.5")
    (path / "fine" / "zarr.json").unlink()


def damaged(path):
    path.mkdir()
    (path / "zarr.json").write_text("[]")


def as_zarr(data):
    return lambda path: zarr.create_array(str(path), data=data)


def as_ome(shape, axes):
    return lambda path: ome(path, np.zeros(shape, np.uint8), axes, "0.5")


NO_ZARR = "be a Zarr array, or a group with OME-Zarr multiscales"
WRONG = {
    "missing": (lambda path: None, "exist"),
    "text": (lambda path: path.write_text("text"), "be a PNG, JPEG, "),
    "empty-file": (lambda path: path.write_bytes(b""), "be a PNG, JPEG, "),
    "cut": (lambda path: path.write_bytes(b"II*\0\x08\0\0\0"), "the TIFF file is damaged"),
    "empty-folder": (lambda path: path.mkdir(), NO_ZARR),
    "group": (lambda path: zarr.open_group(str(path), mode="w"), NO_ZARR),
    "damaged": (damaged, NO_ZARR),
    "dangling": (dangling, NO_ZARR),
    "complex": (as_zarr(np.zeros((9, 9), complex)), "hold numbers"),
    "nan": (as_zarr(np.full((9, 9), np.nan)), "hold finite numbers"),
    "volume": (as_zarr(np.zeros((9, 9, 9), np.uint8)), "be one plane"),
    "no-pixel": (as_zarr(np.zeros((0, 9), np.uint8)), "hold at least one pixel"),
    "ome-volume": (as_ome((5, 9, 9), "zyx"), "be one plane"),
    "ome-times": (as_ome((5, 9, 9), ["time", "y", "x"]), "be one plane"),
    "ome-few-axes": (as_ome((3, 9, 9), "yx"), "have the 2 axes that its"),
    "ome-no-rows": (as_ome((3, 9, 9), "cxz"), "have axes y and x"),
    "tiff-volume": (lambda path: tifffile.imwrite(path, np.zeros((5, 9, 9), np.uint8)), "be one plane"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_such_picture_gets_one_line(kind, tmp_path):
    write, rule = WRONG[kind]
    write(tmp_path / "picture")
    with pytest.raises(
        ValueError, match=rf"^(cannot read )?(image|{tmp_path / 'picture'})( must|:) {re.escape(rule)}[^\n]*$"
    ):
        segment_large(tmp_path / "picture", tmp_path / "out", **FAST)
    assert not (tmp_path / "out").exists()


def test_an_array_in_memory_and_missing_libraries_get_one_line(image, monkeypatch):
    first = np.moveaxis(np.concatenate([image, image[..., :2]], axis=-1), -1, 0)
    with pytest.raises(ValueError, match=r"^image must be one plane: .*\(5, 150, 210\)$"):
        open_array(da.from_array(first))  # five channels that come first need a name
    assert open_array(da.from_array(first), channel_axis=0).shape == (*SHAPE, 5)
    with pytest.raises(ValueError, match=r"^image must be a path or a Dask array: got "):
        open_array(image)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"^images larger than memory need Dask and Zarr: pip install 'spinseg\["):
        open_array("picture.zarr")


@pytest.mark.parametrize("side", [64, 2048])
def test_an_array_that_is_there_is_kept(side, tmp_path):
    how = (side, np.int32, -1)
    first = create_ome_zarr(tmp_path / "a.zarr", SHAPE, *how)
    assert (first[:] == -1).all() and first.chunks == (side, side)
    first[:] = 5
    assert (create_ome_zarr(tmp_path / "a.zarr", SHAPE, *how)[:] == 5).all()
    about = json.loads((tmp_path / "a.zarr" / "0" / "zarr.json").read_text())
    assert about["dimension_names"] == ["y", "x"]  # which OME-Zarr 0.5 demands
    assert (create_ome_zarr(tmp_path / "a.zarr", (9, 9), *how)[:] == -1).all()


def same_files(found, other):
    return all(np.array_equal(mine, theirs) for mine, theirs in zip(pieces(found.folder), pieces(other), strict=True))


def numbered(cells):
    """Sites numbered from 0 in the order of their cells."""
    return np.unique(cells, return_inverse=True)[1].reshape(cells.shape).astype(np.int32)


def check_written(found):
    """All files say what the segmentation says."""
    stored, labels, apart = pieces(found.folder)
    sites, graph = numbered(stored), found.graph
    assert sites.max() + 1 == graph.n_sites == found.partition.size
    assert labels.dtype == np.int32 and np.array_equal(labels, found.partition[sites] + 1)
    assert np.array_equal(found.labels.compute(), labels)
    assert np.array_equal(read_image(found.folder / "labels.tif"), labels)
    touching = region_adjacency(sites)
    assert np.array_equal(touching.edges, graph.edges) and np.array_equal(touching.length, graph.length)
    painted = paint_edges(sites, graph.edges, found.separation)
    assert apart.dtype == np.uint8 and np.array_equal(apart, np.rint(255 * painted))
    assert np.array_equal(found.boundary_probability.compute(), apart)
    told = json.loads((found.folder / "result.json").read_text())
    assert told["n_regions"] == found.n_regions == labels.max() == np.unique(labels).size
    assert graph.is_connected(found.partition)
    return told


def test_what_is_written_is_what_was_found(found, image):
    told, graph = check_written(found), found.graph
    expected = {"shape": list(SHAPE), "n_tiles": 4, "seed": 0, "n_sites": graph.n_sites, "n_edges": graph.n_edges}
    assert (
        told | expected | {"sweeps_done": 6, "detail": found.detail, "verdict": found.verdict} == told
        and found.seed == 0
    )
    assert open_array(found.folder / "boundary_probability.zarr").shape == (*SHAPE, 1)  # as others find it, too
    assert 1 < found.n_regions < 20
    assert found.separation.shape == (graph.n_edges,) and 0 < found.separation.max() <= 1
    labels = found.labels.compute()
    assert labels[40, 40] != labels[120, 160]  # patches that differ most


def test_regions_are_described_as_those_of_a_segmentation(found, image):
    labels, regions = found.labels.compute(), found.region_rows
    assert len(regions) == found.n_regions == found.n_clusters
    assert list(regions[0]) == list(ss.segment(image[:60, :60], sweeps=2, chains=1, rng=0).region_rows[0])
    assert [row["area"] for row in regions] == np.bincount(labels.ravel())[1:].tolist()
    assert sum(row["share"] for row in regions) == pytest.approx(1, abs=1e-5)
    rgb = as_picture(image).rgb.reshape(-1, 3).astype(float)  # stretched to the numbers used
    for row in regions:
        inside = labels == row["label"]
        rows, columns = np.nonzero(inside)
        assert row["area"] == rows.size
        assert row["centroid"] == pytest.approx([rows.mean(), columns.mean()], abs=0.01)
        assert row["bbox"] == [rows.min(), columns.min(), rows.max() + 1, columns.max() + 1]
        color = [int(row["color"][i : i + 2], 16) for i in (1, 3, 5)]
        assert np.allclose(color, rgb[inside.ravel()].mean(axis=0), atol=1)
    ends, largest, length = found.partition[found.graph.edges], regions[0], found.graph.length
    outline = (ends == largest["label"] - 1).sum(axis=1) == 1
    mean = np.average(found.separation[outline], weights=length[outline])
    assert largest["boundary"] == pytest.approx(mean, abs=1e-6) and largest["probability"] is None


def test_boundaries_have_the_probabilities_and_errors_of_their_edges(found):
    rows = {(row["region"], row["neighbor"]): row for row in found.boundary_rows}
    ends, length, apart = found.partition[found.graph.edges] + 1, found.graph.length, found.joined.apart
    assert set(rows) == {tuple(sorted(pair)) for pair in ends.tolist() if pair[0] != pair[1]}
    for pair, row in rows.items():
        along = (np.sort(ends, axis=1) == pair).all(axis=1)
        of_chains = np.average(apart[..., along], axis=-1, weights=length[along])  # (chain, level)
        (error,) = standard_errors(of_chains[..., None], apart)
        assert row["length"] == length[along].sum()
        assert [row["probability"], row["standard_error"]] == pytest.approx([of_chains.mean(), error], abs=1e-5)


def test_an_overview_has_the_proportions_of_the_picture(found, place, monkeypatch):
    with Image.open(found.folder / "overview.png") as overview:
        assert overview.size == SHAPE[::-1]
    # every fifth pixel, out of step with the tiles
    monkeypatch.setattr("spinseg.segmentation.large.result.MAX_OVERVIEW_PIXELS", 45)
    before = times(found.folder)
    again = segment_large(place / "picture.zarr", found.folder, **FAST)
    with Image.open(found.folder / "overview.png") as overview:
        picture = np.array(overview)
    assert picture.shape == (30, 42, 3)
    assert times(found.folder) == before and np.array_equal(again.partition, found.partition)
    labels = found.labels.compute()[::5, ::5]
    edge = (picture == (255, 230, 0)).all(axis=-1)
    assert (
        np.array_equal(edge, find_boundaries(labels) & (labels > 1)) and edge.any()
    )  # the largest is the ground of others


@exhaustive
def test_neither_jobs_nor_kinds_of_arrays_change_the_labels(found, image, place):
    """The same tiles, of an array of lambdas, by two processes."""
    two = segment_large(derived(image), place / "two", **FAST | {"jobs": 2})
    assert same_files(found, two.folder) and not (two.folder / SHARED_IMAGE).exists()
    again = segment_large(derived(image), place / "two", **FAST | {"rng": None})
    assert again.seed == 0 and np.array_equal(again.partition, two.partition)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"image": "other.zarr"}, "picture "),
        ({"tile": 80}, "tile 110, not 80), which is kept; name another folder, or remove this one"),
        ({"n_sites": 90}, "n_sites 250, not 90)"),
        ({"preset": "measured"}, "preset photo, not measured, "),
        ({"sweeps": 8}, "sweeps 6, not 8)"),
        ({"rng": 1}, "seed 0, not 1)"),
    ],
)
def test_a_folder_of_another_run_is_refused_and_kept(found, place, changes, line):
    if not (place / "other.zarr").exists():
        zarr.create_array(str(place / "other.zarr"), data=np.zeros(SHAPE, np.uint8))
    before = contents(found.folder)
    keywords = FAST | changes
    told = re.escape(f"{found.folder} holds the result of another run ({line}")
    with pytest.raises(ValueError, match=rf"^{told}[^\n]*$"):
        segment_large(place / keywords.pop("image", "picture.zarr"), found.folder, **keywords)
    assert contents(found.folder) == before


def test_another_detail_is_found_in_the_same_tiles_and_without_writing(found, place):
    before, files = times(found.folder), contents(found.folder)
    coarser, finer = found.at(0.02), found.at(0.98)
    assert coarser.n_regions < finer.n_regions and contents(found.folder) == files
    written = segment_large(place / "picture.zarr", found.folder, **FAST | {"detail": np.float32(0.98)})
    assert check_written(written)["detail"] == np.float32(0.98)
    assert np.array_equal(written.labels.compute(), found.at(np.float32(0.98)).labels.compute())
    back = segment_large(place / "picture.zarr", found.folder, **FAST)
    assert np.array_equal(back.partition, found.partition) and times(found.folder) == before
    after = contents(found.folder)
    assert {name for name in after if after[name] != files[name]} <= {Path("overview.png")}  # another test shrinks it


@pytest.mark.parametrize("wrong", [{"preset": "classes"}, {"preset": "objects"}, {"preset": ss.Paper()}])
def test_presets_whose_clusters_cross_tiles_are_refused(place, wrong):
    rule = r"^preset must be auto, photo or measured for an image in tiles: got "
    with pytest.raises(InvalidInput, match=rule):
        segment_large(place / "picture.zarr", place / "wrong", **{**FAST, "n_sites": None, **wrong})
    refused = {"estimate": "best", "sites": np.zeros(SHAPE, int), "init": np.zeros(9, int)}
    refused["evidence"] = BoundaryEvidence(network_relief=4.0)  # the stored settings do not tell two networks apart
    for name, value in refused.items():
        with pytest.raises(InvalidInput, match=rf"^{name} must be left as it is for an image in tiles: got "):
            segment_large(place / "picture.zarr", place / "wrong", **FAST, **{name: value})
    prior = ss.TabulatedPrior(log_v=lambda k: -2.0 * k, log_w=lambda m: 0.0)
    with pytest.raises(InvalidInput, match=r"^prior must be a call, such as 'PitmanYor\(3.0, discount=0.25\)'"):
        segment_large(place / "picture.zarr", place / "wrong", **FAST, prior=prior)
    assert not (place / "wrong").exists()


def test_numbers_of_12_bits_are_stretched_alike_in_all_tiles_also_of_a_run_that_goes_on(image, tmp_path, monkeypatch):
    """Hot pixels, and a bright corner that only some tiles show, change nothing of the range of the others."""
    seen, module = [], "spinseg.segmentation.large"
    monkeypatch.setattr(
        f"{module}.segment_large.segment_tile", lambda *task: seen.append(task[0]) or segment_tile(*task)
    )
    deep, fast = image[:100, :120] // 16, FAST | {"n_sites": 95, "tile": 64, "chains": 1}
    deep[3, 4] = deep[90, 100:103] = 65535
    found = segment_large(da.from_array(deep), tmp_path, **fast)
    low, high = json.loads((tmp_path / "plan.json").read_text())["settings"]["used_range"]
    assert 0 <= low < 500 and 3000 < high <= 4095 and found.n_regions > 1 and check_written(found)
    whole, tiles = as_picture(deep, channel_axis=-1), list(Tiling.of((100, 120), ss.Photo(), 64).tiles())
    (tmp_path / "tiles" / "000001.npz").unlink()
    monkeypatch.setattr(OpenedPicture, "inferred_range", lambda _: (0.0, 1e6))  # which the run has not begun with
    again = segment_large(da.from_array(deep), tmp_path, **fast)
    assert np.array_equal(again.partition, found.partition)
    for picture, tile in zip(seen, [*tiles, tiles[1]], strict=True):
        assert np.array_equal(picture.codes, whole.codes[tile.window])


def test_the_range_of_a_large_picture_is_found_from_some_places(monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.large.files.SAMPLE_PIXELS", 16)
    rng = np.random.default_rng(0)
    picture = rng.integers(1000, 3000, (500, 400, 2)).astype(np.uint16)
    read = []
    blocks = da.from_array(picture, chunks=25)
    asked = blocks.map_blocks(lambda block: (read.append(block.size), block)[1], dtype="u2", meta=picture[:0, :0])
    low, high = open_picture(asked).inferred_range()
    assert 1000 <= low < 1050 and 2950 < high < 3000
    assert (low, high) == open_picture(asked).inferred_range() and sum(read) < 2 * picture.size
    assert open_picture(da.from_array(picture.astype(np.uint8))).inferred_range() == (0, 255)
    small = picture[:100, :120]
    assert open_picture(da.from_array(small)).inferred_range() == infer_intensity_range(small)


def test_a_generator_gives_the_seed(place, tmp_path, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.large.segment_large._make_tiles", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        segment_large(place / "picture.zarr", tmp_path, **FAST | {"rng": np.random.default_rng(3)})
    assert json.loads((tmp_path / "plan.json").read_text())["seed"] == np.random.default_rng(3).integers(2**63)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_other_channels_and_shapes(n_channels, tmp_path, capsys):
    """Flat, so that all of it is one region, in tiles of which some have a single row."""
    flat = da.from_array(np.full((65, 30, n_channels), 77, np.uint8))
    found = segment_large(flat, tmp_path, **FAST | {"n_sites": 12, "sweeps": 8, "tile": 64}, chains=1)
    assert capsys.readouterr() == ("", "")
    assert found.diagnostics.converged is None and "One chain cannot show" in found.verdict
    assert check_written(found)["n_regions"] == 1 and (found.labels.compute() == 1).all()
    (region,) = found.region_rows
    assert region["bbox"] == [0, 0, 65, 30] and region["area"] == 65 * 30 and region["boundary"] is None
    assert region["color"] == {1: "#4d4d4d", 2: None}[n_channels]


def started(*arguments):
    command = [sys.executable, "-m", "spinseg", "large", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux")
@exhaustive
def test_killed_and_interrupted_it_goes_on_to_the_same_end(place, capsys):
    out, smaller = place / "killed", FAST | {"tile": 64}
    found = segment_large(place / "picture.zarr", place / "smaller", **smaller)
    for _ in range(20):  # on a busy machine this process may be late
        shutil.rmtree(out, ignore_errors=True)
        run = started(place / "picture.zarr", "--out", out, *OPTIONS, "64")
        wait_until(lambda ended=run.poll: ended() is not None or len(list(out.glob("tiles/*.npz"))) >= 2)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        before = times(out)
        if len(before) < 12:
            break
    assert 2 <= len(before) < 12 and not (out / "result.json").exists()

    run = started(place / "picture.zarr", "--out", out, *OPTIONS, "64", "--jobs", "2")
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    wait_until(lambda: len(children.read_text().split()) > 1)  # one is Python's own
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=PATIENCE)
    after = times(out)
    assert len(after) > len(before) and before.items() <= after.items()  # that which was under way is finished
    assert run.returncode == 130 and re.fullmatch(r"tile \d+/12", errors.splitlines()[-1])
    assert len(after) < 12 and not (out / "result.json").exists()

    segment_large(place / "picture.zarr", out, **smaller, progress=True)
    assert capsys.readouterr().err.splitlines()[0] == f"tile {len(after) + 1}/12"
    assert after.items() <= times(out).items() and len(times(out)) == 12
    ours, theirs = contents(out), contents(found.folder)
    assert ours.keys() == theirs.keys() and all(ours[path] == theirs[path] for path in ours)


def test_the_command_prints_what_is_asked(found, place):
    arguments = ("large", place / "picture.zarr", "--out", found.folder, *OPTIONS, "110")
    run = spinseg(*arguments, check=0)
    regions, look = run.stdout.splitlines()
    assert regions == f"{found.n_regions} regions of {found.graph.n_sites} sites"
    assert str(found.folder / "overview.png") in look and str(found.folder / "labels.tif") in look
    assert "writing tile 4/4" in run.stderr
    run = spinseg(*arguments, "--quiet", check=0)
    assert run.stdout == run.stderr == ""
    run = spinseg(*arguments, "--json", "--quiet", check=0)
    assert run.stderr == "" and json.loads(run.stdout)["n_regions"] == found.n_regions


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--tile", "63"], "tile must be a whole number of at least 64: got 63"),
        (["--n-sites", "0"], "n-sites must be a whole number of at least 1: got 0"),
        (["--sweeps", "0"], "sweeps must be a whole number of at least 1: got 0"),
        (["--chains", "0"], "chains must be a whole number of at least 1: got 0"),
        (["--jobs", "0"], "jobs must be a whole number of at least 1: got 0"),
        (["--detail", "2"], "detail must be a finite number of at least 0 and at most 1: got 2.0"),
        (["--jobs", "1", "--dask", "tcp://nowhere:1"], "jobs must not be combined with dask: got 1"),
    ],
    ids=" ".join,
)
def test_wrong_options_get_one_line(place, options, line):
    run = spinseg("large", place / "picture.zarr", "--out", place / "wrong", *options, check=2)
    assert run.stdout == "" and run.stderr.startswith(f"spinseg: --{line}") and len(run.stderr.splitlines()) == 1
    assert not (place / "wrong").exists()


@exhaustive
def test_a_damaged_part_of_a_picture_gets_one_line(image, tmp_path, capfd, monkeypatch):
    """What is finished by then is kept, and no process is left behind that waits."""
    wide = np.tile(image // 256, (1, 3, 1)).astype(np.uint8)
    zarr.create_array(str(tmp_path / "picture.zarr"), data=wide, chunks=(50, 60, 3))
    (tmp_path / "picture.zarr" / "c" / "2" / str(wide.shape[1] // 60 - 1) / "0").write_bytes(b"nonsense")
    with pytest.raises(InvalidInput, match=rf"^the picture cannot be read: {tmp_path / 'picture.zarr'}: [^\n]*$"):
        segment_large(tmp_path / "picture.zarr", tmp_path / "first", **FAST)  # a part that shows its intensities
    monkeypatch.setattr("spinseg.segmentation.large.files.SHOWN_PIXELS", 4)
    with pytest.raises(TaskError) as told:
        segment_large(tmp_path / "picture.zarr", tmp_path / "out", **FAST)
    assert not multiprocessing.active_children() and capfd.readouterr() == ("", "")
    line = str(told.value)
    assert f": the picture cannot be read: {tmp_path / 'picture.zarr'}: " in line and len(line.splitlines()) == 1
    assert line.endswith(f"; what is finished is kept in {tmp_path / 'out'}")
    assert 0 < len(times(tmp_path / "out")) < 2 * 6 and not (tmp_path / "out" / "result.json").exists()


def broken(*arguments):
    """A mistake of this program, such as NumPy finds."""
    return np.zeros(2) + np.zeros(3)


def test_a_bug_while_a_tile_is_made_is_not_taken_for_a_damaged_picture(place, tmp_path, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.large.segment_large.segment_tile", broken)
    with pytest.raises(TaskBug, match=r"^tile 0: this is a bug .*: ValueError: operands could not be broadcast"):
        segment_large(place / "picture.zarr", tmp_path / "out", **FAST)


def derived(image):
    """The picture as a Dask array that is computed from another one in memory, by functions that have no name."""
    flipped = da.from_array(np.ascontiguousarray(image[::-1]), chunks=(40, 50, 3))
    return flipped[::-1].map_blocks(lambda block: block + np.uint16(0), dtype=image.dtype)


def test_numbers_in_memory_are_written_once_and_not_sent_along(image, tmp_path):
    (tmp_path / SHARED_IMAGE).mkdir()  # of a run that was killed
    with shared_image(open_picture(derived(image)), tmp_path, 64) as (path, channel_axis, _):
        assert channel_axis == -1 and np.array_equal(open_array(path, channel_axis).compute(), image)
    assert not list(tmp_path.iterdir())
    WRITERS["yxc"](tmp_path / "picture.zarr", image)
    with shared_image(open_picture(tmp_path / "picture.zarr"), tmp_path, 64) as source:
        assert source == (str(tmp_path / "picture.zarr"), "auto", "auto") and len(list(tmp_path.iterdir())) == 1


def test_a_dask_array_that_cannot_be_computed_gets_one_line(image, tmp_path):
    broken = da.from_array(image.astype(np.uint8), chunks=70).map_blocks(lambda block: 1 / 0, dtype=np.uint8)
    with pytest.raises(InvalidInput, match=r"^the picture cannot be read: ZeroDivisionError [^\n]*$"):
        segment_large(broken, tmp_path / "out", **FAST)
    assert not (tmp_path / "out" / SHARED_IMAGE).exists()


def test_nothing_is_left_of_an_image_of_which_a_part_cannot_be_computed(image, tmp_path):
    """Other threads write their parts while one fails."""
    begun, done, one_began = [], [], threading.Event()

    def computed(block, block_info):
        if block_info[0]["chunk-location"][:2] == (0, 0):
            one_began.wait(1.0)
            raise ZeroDivisionError
        begun.append(None)
        one_began.set()
        time.sleep(0.3)
        done.append(None)
        return block

    numbers = image.astype(np.uint8)
    broken = da.from_array(numbers, chunks=(64, 64, 3)).map_blocks(computed, dtype=np.uint8, meta=numbers[:0])
    with pytest.raises(InvalidInput, match="ZeroDivisionError"), shared_image(open_picture(broken), tmp_path, 64):
        pass
    assert len(begun) == len(done) and not list(tmp_path.iterdir())


@pytest.fixture
def small_files():
    """A disk that takes files of at most 5 kB: the plan of a run, but no part of an image."""
    resource = pytest.importorskip("resource", reason="limits of processes")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_not_taken_for_a_damaged_picture(tmp_path, small_files):
    noise = np.random.default_rng(0).integers(0, 255, (*SHAPE, 3), np.uint8)  # which cannot be compressed
    with pytest.raises(OSError, match=f"^cannot write {tmp_path / SHARED_IMAGE}: file too large$") as told:
        segment_large(da.from_array(noise), tmp_path, **FAST)
    assert is_expected(told.value)
    assert (tmp_path / "plan.json").exists() and not (tmp_path / SHARED_IMAGE).exists()


def test_a_full_disk_names_the_image_that_is_not_written(tmp_path, small_files):
    labels = create_ome_zarr(tmp_path / "a.zarr", SHAPE, 256, np.int32, 0)
    noise = np.random.default_rng(0).integers(0, 2**31, SHAPE, np.int32)
    with pytest.raises(OSError, match=f"^cannot write {tmp_path / 'a.zarr'}: file too large$") as told:
        write_chunk(labels, tuple(slice(0, length) for length in SHAPE), noise)
    assert is_expected(told.value)


@exhaustive
def test_a_cluster_makes_the_same_labels(found, image, place, cluster):
    keywords = {name: value for name, value in FAST.items() if name != "jobs"}
    for name, source in {"dask": place / "picture.zarr", "dask-derived": derived(image)}.items():
        other = segment_large(source, place / name, **keywords, dask=cluster.scheduler.address)
        assert same_files(found, other.folder)
