"""What a segmentation holds, and the files it is saved in."""

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from skimage.io import imread

import spinseg as ss
from effort import exhaustive
from spinseg.graph.adjacency import region_adjacency
from spinseg.segmentation.files import FILES

pytestmark = pytest.mark.xdist_group("result")  # they share a segmentation

ALL = [*FILES, "regions.csv", "outlines.svg"]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def read_labels_png(path):
    with Image.open(path) as image:
        return np.asarray(image)


def test_the_line_of_python_names_what_it_needs(picture, tmp_path):
    np.save(tmp_path / "x.npy", np.moveaxis(picture, -1, 0))
    found = ss.segment(tmp_path / "x.npy", channel_axis=0, kappa=np.float64(0.3), sweeps=2, rng=np.int64(4))
    assert found.labels.shape == picture.shape[:2]
    assert found.python_code.endswith("kappa=0.3, sweeps=2, channel_axis=0, rng=4)")
    np.testing.assert_array_equal(eval(found.python_code, {"ss": ss}).labels, found.labels)
    own = np.where(np.arange(picture[..., 0].size).reshape(picture.shape[:2]) < 5000, -1, 3)
    book = ss.Codebook.fit(picture, 9, rng=0)
    found = ss.segment(picture, "paper", sites=own, codebook=book, sweeps=1000, rng=4)
    assert found.python_code == "ss.segment(image, 'paper', sites=sites, codebook=codebook, rng=4)"
    np.testing.assert_array_equal(found.sites, np.minimum(own, 0))


def test_saved_files_are_complete_and_the_same_twice(picture, found, tmp_path):
    found.save(tmp_path / "one")
    ss.segment(picture, rng=3, workers=1).save(tmp_path / "two")
    assert names_in(tmp_path / "one") == names_in(tmp_path / "two") == sorted(FILES)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    np.testing.assert_array_equal(imread(tmp_path / "one" / "labels.tif"), found.labels)
    np.testing.assert_array_equal(read_labels_png(tmp_path / "one" / "labels.png"), found.labels)
    probability = imread(tmp_path / "one" / "boundary_probability.png")
    np.testing.assert_allclose(probability / 255, found.boundary_probability, atol=0.5 / 255 + 1e-6)
    reported = json.loads((tmp_path / "one" / "result.json").read_text())
    assert (
        reported["n_clusters"] == found.n_clusters
        and reported["seed"] == 3
        and reported["left_out"] == {}
        and reported["verdict"]
    )
    assert sum(region["area"] for region in reported["regions"]) == found.labels.size
    assert reported["settings"]["count_weight"] == ss.Photo().count_weight and reported["settings"]["chains"] == 2
    assert reported["versions"].keys() >= {"python", "spinseg", "numpy", "scipy"}
    assert sum(reported["n_clusters_posterior"].values()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("names", [FILES, ["result.json"]], ids=["all", "result.json"])
def test_no_file_of_another_result_stays_beside_one_that_replaces_it(found, tmp_path, names):
    found.save(tmp_path / "alone", ALL)
    other = replace(found, labels=found.labels[::-1].copy(), sites=found.sites[::-1].copy(), seed=found.seed + 1)
    other.save(tmp_path / "both", ALL)
    assert (tmp_path / "both" / "regions.csv").read_bytes() != (tmp_path / "alone" / "regions.csv").read_bytes()
    for _ in range(2):  # over another result, and over its own
        found.save(tmp_path / "both", names, overwrite=True)
        assert names_in(tmp_path / "both") == sorted(ALL)
        for name in ALL:
            assert (tmp_path / "both" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name


def test_files_that_are_there_are_kept_unless_they_may_be_replaced(found, tmp_path):
    for name in ("labels.png", "result.json", "regions.csv"):
        (tmp_path / name).write_text("mine")
    reported = f"{tmp_path} holds labels.png, result.json already, which are kept; overwrite=True replaces them"
    with pytest.raises(FileExistsError) as problem:
        found.save(tmp_path)
    assert str(problem.value) == reported
    assert {path.read_text() for path in tmp_path.iterdir()} == {"mine"}
    found.save(tmp_path, ["labels.tif", "overlay.png"])  # which are not there
    kept = r" holds overlay\.png already, which is kept; overwrite=True replaces it$"
    with pytest.raises(FileExistsError, match=kept):
        found.save(tmp_path, ["overlay.png"])
    found.save(tmp_path, overwrite=True)
    assert names_in(tmp_path) == sorted([*FILES, "regions.csv"])
    assert json.loads((tmp_path / "result.json").read_text())["seed"] == 3
    np.testing.assert_array_equal(read_labels_png(tmp_path / "labels.png"), found.labels)


def test_a_folder_in_the_place_of_a_file_costs_no_other_file(found, tmp_path):
    found.save(tmp_path)
    before = (tmp_path / "result.json").read_bytes()
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ss.InvalidInput, match=r"report.html must be a file: got 'a folder'$"):
        found.save(tmp_path, overwrite=True)
    assert (tmp_path / "result.json").read_bytes() == before


def test_an_old_result_does_not_outlast_files_that_are_replaced(found, tmp_path, monkeypatch):
    found.save(tmp_path)
    monkeypatch.setattr("spinseg.segmentation.files.write_labels_tif", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        found.save(tmp_path, overwrite=True)
    assert not (tmp_path / "result.json").exists()


def one_each(found, shape):
    """A segmentation in which every pixel is a cluster."""
    sites = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    graph = region_adjacency(sites)
    drawn = ss.sample(ss.Model(ss.SiteGraph(1, []), ss.Flat(), ss.DirichletProcess(1.0)), 1, 1, rng=0)
    return replace(
        found,
        labels=sites + np.int32(1),
        sites=sites,
        partition=sites.ravel(),
        boundary_probability=np.ones(shape, np.float32),
        separation=np.ones(graph.n_edges),
        model=ss.Model(graph, ss.Flat(), ss.DirichletProcess(1.0)),
        chains=replace(drawn, labels=sites.reshape(1, 1, -1), best_labels=sites.ravel()),
        picture=ss.as_picture(np.random.default_rng(0).random((*shape, 3)), channel_axis=-1),
    )


@exhaustive
def test_more_clusters_than_a_png_holds_leave_it_out_and_nothing_else(found, tmp_path, capsys):
    many = one_each(found, (256, 257))
    (tmp_path / "labels.png").write_text("of another result")
    many.save(tmp_path, overwrite=True)
    why = "a PNG holds 65,535 labels at most, and there are 65,792; labels.tif has them all"
    assert capsys.readouterr().err == f"spinseg: {tmp_path / 'labels.png'} is left out: {why}\n"
    assert names_in(tmp_path) == sorted(name for name in FILES if name != "labels.png")
    reported = json.loads((tmp_path / "result.json").read_text())
    assert reported["n_clusters"] == len(reported["regions"]) == 256 * 257 and reported["left_out"] == {
        "labels.png": why
    }
    np.testing.assert_array_equal(imread(tmp_path / "labels.tif"), many.labels, strict=True)


def test_a_png_of_as_many_clusters_as_it_holds_is_written(found, tmp_path):
    many = one_each(found, (255, 257))  # 65,535
    many.save(tmp_path, ["labels.png", "labels.tif"])
    for name in ("labels.png", "labels.tif"):
        np.testing.assert_array_equal(imread(tmp_path / name), many.labels.astype(np.uint16), strict=True)


def test_for_a_volume_the_labels_of_the_plane_that_is_shown_count(found, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.files.MAX_PNG_LABELS", 30)
    many = 1 + np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    assert replace(found, labels=many // 2 + 1).skipped_files == {}
    assert list(replace(found, labels=many).skipped_files) == ["labels.png"]


def test_the_report_does_not_trust_a_name(picture, tmp_path):
    name = "<script>alert(1)<&>.png".replace("/", "")
    Image.fromarray(picture).save(tmp_path / name)
    ss.segment(tmp_path / name, sweeps=4, rng=0).save(tmp_path / "out", ["report.html"])
    assert "<script>" not in (tmp_path / "out" / "report.html").read_text()


def test_the_table_of_regions_is_right(found):
    for region in found.region_rows:
        top, left, bottom, right = region["bbox"]
        inside = np.zeros(found.labels.shape, bool)
        inside[top:bottom, left:right] = True
        here = (found.labels == region["label"]) & inside
        assert here.sum() == region["area"] and region["region"] == region["label"]  # a cluster is one region
        assert region["centroid"] == pytest.approx(np.argwhere(here).mean(axis=0), abs=0.01)
        mean = np.rint(found.picture.rgb[here].mean(axis=0)).astype(int)
        assert region["color"] == "#{:02x}{:02x}{:02x}".format(*mean)
        sites = np.unique(found.sites[here])
        draws = found.chains.labels.reshape(-1, found.partition.size)[:, sites]
        upper = np.triu_indices(sites.size, 1)
        if sites.size == 1:
            assert region["probability"] is None
        else:
            pairs = [(draw[:, None] == draw[None, :])[upper].mean() for draw in draws]
            assert region["probability"] == pytest.approx(np.mean(pairs), abs=1e-6)
        sides = [side for side in found.boundary_rows if region["region"] in (side["region"], side["neighbor"])]
        mean = np.average([side["probability"] for side in sides], weights=[side["length"] for side in sides])
        assert region["boundary"] == pytest.approx(mean, abs=1e-5)


def test_the_table_of_boundaries_is_right(found):
    sites_of = {region["region"]: set(found.sites[found.labels == region["label"]]) for region in found.region_rows}
    graph = found.model.graph
    edges = list(zip(graph.edges.tolist(), graph.length, found.separation, strict=True))
    touching = set()
    for row in found.boundary_rows:
        a, b = sites_of[row["region"]], sites_of[row["neighbor"]]
        here = [(length, apart) for (i, j), length, apart in edges if (i in a and j in b) or (i in b and j in a)]
        lengths, separations = zip(*here, strict=True)
        assert row["region"] < row["neighbor"] and row["length"] == sum(lengths)
        assert row["probability"] == pytest.approx(np.average(separations, weights=lengths), abs=1e-6)
        assert row["standard_error"] is None or 0 <= row["standard_error"] <= 0.5
        touching.add((row["region"], row["neighbor"]))
    assert touching == {(a + 1, b + 1) for a, b in region_adjacency(found.labels - 1).edges.tolist()} and list(
        found.boundaries["region"]
    ) == [row["region"] for row in found.boundary_rows]


def test_what_belongs_with_a_place_is_counted_over_the_draws(found):
    together, site = found.co_clustering(10, 20), found.sites[10, 20]
    draws = found.chains.labels.reshape(-1, found.partition.size)
    for row, column in ((10, 20), (0, 0), (119, 159), (60, 80)):
        share = np.mean(draws[:, found.sites[row, column]] == draws[:, site])
        assert together[row, column] == pytest.approx(share, abs=1e-6)


def test_places_outside_are_refused(picture):
    mask = np.ones(picture.shape[:2], bool)
    mask[:20] = False
    found = ss.segment(picture, mask=mask, sweeps=4, chains=1, rng=0)
    assert not found.co_clustering(60, 60)[:20].any()
    wrong = {(10, 20): "inside the mask", (60,): "2 numbers", (60, 160): "160", (-1, 0): "at least 0"}
    for place, rule in wrong.items():
        with pytest.raises(ss.InvalidInput, match=rule):
            found.co_clustering(*place)
