"""The pipeline from a picture to a segmentation and its files."""

import inspect
import json
import pickle
import pydoc
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from skimage.io import imread

import spinseg as ss
from spinseg.image.adjacency import region_adjacency
from spinseg.image.picture import as_picture
from spinseg.model.likelihoods import Flat
from spinseg.pictures import PICTURES
from spinseg.segmentation.segment import segment
from spinseg.segmentation.settings import MOST_COUNTED, PAPER, PHOTO, PRESETS, USUAL_PIXELS, prior_named, settings_of

FILES = ["boundary_probability.png", "labels.png", "labels.tif", "overlay.png", "report.html", "result.json"]


@pytest.fixture(scope="module")
def picture():
    with Image.open(PICTURES["coffee"].path) as image:
        return np.asarray(image)[100:220, 200:360]


@pytest.fixture(scope="module")
def found(picture):
    return ss.segment(picture, rng=3)


def test_segment_is_a_function_however_it_is_imported():
    import spinseg.segmentation.segment as module

    assert ss.segment is module.segment is segment and inspect.isfunction(ss.segment)
    assert list(inspect.signature(ss.segment).parameters)[:2] == ["image", "preset"]
    assert pickle.loads(pickle.dumps(ss.segment)) is ss.segment
    assert "The segmentation of a picture" in pydoc.render_doc(ss.segment)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_a_segmentation_has_the_shape_of_the_picture(picture, preset):
    before = picture.copy()
    found = ss.segment(picture, preset, sweeps=40, chains=2, rng=3)
    np.testing.assert_array_equal(picture, before)
    assert found.labels.shape == found.sites.shape == found.boundary_probability.shape == picture.shape[:2]
    assert found.labels.dtype == np.int32 and set(np.unique(found.labels)) == set(range(found.n_clusters))
    assert found.boundary_probability.min() >= 0 and found.boundary_probability.max() <= 1
    assert found.model.log_posterior(found.chains.best_labels) == pytest.approx(found.chains.best_log_posterior)
    np.testing.assert_array_equal(found.labels, found.partition[found.sites])


@pytest.mark.parametrize("preset", list(PRESETS))
def test_neither_number_type_nor_range_nor_place_of_channels_matter(picture, preset):
    keywords = {"preset": preset, "sweeps": 20, "chains": 1, "rng": 1}
    labels = ss.segment(picture, **keywords).labels
    for same in (picture / 255.0, picture.astype(np.uint16) * 257, (picture / 255).astype(np.float32)):
        np.testing.assert_array_equal(ss.segment(same, **keywords).labels, labels)
    moved = np.moveaxis(picture, -1, 0)
    np.testing.assert_array_equal(ss.segment(moved, channel_axis=0, **keywords).labels, labels)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_12_bits_and_hot_pixels_divide_as_8_bits_do(picture, preset):
    keywords = {"preset": preset, "sweeps": 20, "chains": 1, "rng": 1}
    deep = picture.astype(np.uint16) * 16
    found = ss.segment(deep, **keywords)
    assert found.n_clusters > 1 and np.ptp(found.picture.rgb) > 200
    np.testing.assert_array_equal(ss.segment(deep.astype(np.int32), **keywords).labels, found.labels)
    hot = deep.copy()
    hot[7:9, 11] = hot[60, 70:73] = 65535
    others = (hot == deep).all(axis=-1)
    np.testing.assert_array_equal(ss.segment(hot, **keywords).picture.codes[others], found.picture.codes[others])


def test_a_seed_gives_the_same_again_and_none_draws_one(picture):
    first = ss.segment(picture, sweeps=20, rng=None)
    again = ss.segment(picture, sweeps=20, rng=first.seed, workers=1)
    np.testing.assert_array_equal(first.chains.labels, again.chains.labels)
    drawn = [ss.segment(picture, sweeps=20, rng=np.random.default_rng(5)).seed for _ in range(2)]
    assert drawn[0] == drawn[1] != first.seed


def test_photo_gives_regions_that_hold_together_and_none_too_small(found):
    graph = found.model.graph
    ends = found.partition[graph.edges]
    for cluster in range(found.n_clusters):
        inner = graph.edges[(ends == cluster).all(axis=1)]
        sites = np.flatnonzero(found.partition == cluster)
        reached = {int(sites[0])}
        while grown := {int(j) for e in inner for j in e if set(e.tolist()) & reached} - reached:
            reached |= grown
        assert reached == set(sites.tolist())
        assert np.count_nonzero(found.labels == cluster) >= 0.0045 * found.labels.size
    pieces = ss.segment(found.picture, rng=3, regions=False)
    assert pieces.model.log_posterior(pieces.partition) == pytest.approx(pieces.chains.best_log_posterior)


def test_every_keyword_overrides_the_preset(picture):
    words = ss.Codebook.fit(picture, 20, rng=0)
    own = np.arange(picture.shape[0] * picture.shape[1]).reshape(picture.shape[:2]) // 400
    for keywords in (
        {"sites": "slic", "n_sites": 50},
        {"sites": "grid", "n_words": 30},
        {"sites": own, "codebook": words},
        {"codebook": "image", "n_words": 17},
        {"count_weight": 0.01, "phi": 1.0, "beta": 0.5},
        {"prior": ss.PitmanYor(1.0, 0.3), "lam": 3.0},
        {"moves": "gsw", "chains": 3, "sweeps": 7, "regions": False},
    ):
        keywords = {"sweeps": 6, "chains": 1} | keywords
        found = ss.segment(picture, rng=0, **keywords)
        assert found.settings.changes().keys() == keywords.keys() - {"n_words"} | ({"n_words"} & keywords.keys())
        assert found.chains.n_chains == keywords["chains"] and found.chains.n_sweeps == keywords["sweeps"]
    assert found.model.graph.n_sites > 50
    np.testing.assert_array_equal(ss.segment(picture, sites=own, sweeps=4, rng=0).sites, own)


def test_the_paper_preset_is_the_papers(picture):
    found = ss.segment(picture, "paper", sweeps=5, rng=0)
    n_sites = found.model.graph.n_sites
    assert picture.shape[0] * picture.shape[1] / n_sites == pytest.approx(60, rel=0.2)
    assert PAPER.n_words == 120 and PAPER.lam == 10 and PAPER.moves == "gsw"
    assert found.model.prior.concentration == 3 and (found.model.beta == 0.02).all()
    assert found.model.likelihood.concentration == 50
    np.testing.assert_array_equal(found.partition, found.chains.best_labels)


@pytest.mark.parametrize("preset", list(PRESETS))
def test_what_is_masked_or_transparent_is_as_outside_a_mask(picture, preset, tmp_path):
    inside = np.ones(picture.shape[:2], bool)
    inside[20:70, 30:90] = False
    keywords = {"preset": preset, "sweeps": 10, "rng": 0}
    expected = ss.segment(picture, mask=inside, **keywords).labels
    masked = np.ma.array(picture, mask=np.repeat(~inside[..., None], 3, axis=-1))
    clear = np.dstack([picture, np.where(inside, 255, 0).astype(np.uint8)])
    clear[~inside, :3] = 7  # of no matter
    Image.fromarray(clear).save(tmp_path / "clear.png")
    for image in (masked, clear, tmp_path / "clear.png"):
        found = ss.segment(image, **keywords)
        np.testing.assert_array_equal(found.labels, expected)
        assert ((found.labels == -1) == ~inside).all()
    found.save(tmp_path, ["labels.tif", "labels.png"])
    np.testing.assert_array_equal(imread(tmp_path / "labels.tif"), expected)
    half = inside.copy()
    half[:, 80:] = False
    found = ss.segment(masked, mask=half, **keywords)
    assert ((found.labels == -1) == ~half).all()


def test_a_palette_with_transparency_has_an_outside(picture, tmp_path):
    indexed = Image.fromarray(picture).quantize(31)
    drawn = np.array(indexed)
    drawn[20:70, 30:90] = 31
    image = Image.fromarray(drawn)
    image.putpalette([*indexed.getpalette()[:93], 0, 0, 0])
    for name in ("picture.png", "picture.gif"):
        image.save(tmp_path / name, transparency=31)
        found = ss.segment(tmp_path / name, sweeps=10, rng=0)
        assert ((found.labels == -1) == (drawn == 31)).all(), name
    Image.new("RGBA", (30, 20), (9, 9, 9, 0)).save(tmp_path / "nothing.png")
    with pytest.raises(ValueError, match=r"^image must have a pixel that is not transparent; received .*$"):
        ss.segment(tmp_path / "nothing.png")


def test_outside_the_mask_nothing_is_labelled(picture, tmp_path):
    mask = np.zeros(picture.shape[:2], bool)
    mask[20:70, 30:90] = True
    found = ss.segment(picture, sweeps=20, mask=mask, rng=0)
    assert ((found.labels == -1) == ~mask).all()
    assert not found.boundary_probability[~mask].any()
    found.save(tmp_path)
    np.testing.assert_array_equal(imread(tmp_path / "labels.tif"), found.labels)
    assert found.repeat.endswith("mask=mask, rng=0)")


def test_the_line_of_python_names_what_it_needs(picture, tmp_path):
    np.save(tmp_path / "x.npy", np.moveaxis(picture, -1, 0))
    found = ss.segment(tmp_path / "x.npy", channel_axis=0, beta=np.float64(0.3), sweeps=2, rng=np.int64(4))
    assert found.labels.shape == picture.shape[:2]
    assert found.repeat.endswith("beta=0.3, sweeps=2, channel_axis=0, rng=4)")
    own = np.where(np.arange(picture[..., 0].size).reshape(picture.shape[:2]) < 5000, -1, 3)
    book = ss.Codebook.fit(picture, 9, rng=0)
    found = ss.segment(picture, "paper", sites=own, codebook=book, lam=ss.DataDriven(5.0, 1.0), sweeps=1000, rng=4)
    told = "ss.segment(image, 'paper', sites=sites, codebook=codebook, lam=ss.DataDriven(lam=5.0, tau=1.0, "
    assert found.repeat == told + "distance='hellinger'), rng=4)"


@pytest.mark.parametrize("preset", list(PRESETS))
def test_what_lies_outside_the_mask_has_no_say(picture, preset):
    inside = np.hypot(*np.ogrid[-60:60, -80:80]) < 50
    noisy = picture.copy()
    noisy[~inside] = np.random.default_rng(0).integers(0, 256, noisy[~inside].shape)
    keywords = {"preset": preset, "codebook": "image", "mask": inside, "sweeps": 10, "rng": 0}
    np.testing.assert_array_equal(ss.segment(picture, **keywords).labels, ss.segment(noisy, **keywords).labels)


def test_a_large_picture_is_looked_at_at_a_smaller_size(picture):
    large = np.kron(picture, np.ones((6, 6, 1), np.uint8))[:-3, :-5]
    mask = np.zeros(large.shape[:2], bool)
    mask[100:601, 50:903] = True
    found = ss.segment(large, mask=mask, sweeps=20, rng=0)
    small = ss.segment(picture, mask=mask[::6, ::6], sweeps=20, rng=0)
    assert found.labels.shape == large.shape[:2] and ((found.labels >= 0) == mask).all()
    assert found.model.graph.n_sites < large[..., 0].size / 190 / 2
    assert 1 < found.n_clusters < 3 * small.n_clusters
    assert found.boundary_probability.shape == large.shape[:2] and not found.boundary_probability[~mask].any()


@pytest.mark.parametrize(
    "image",
    [np.zeros((1, 1)), np.ones((2, 2)), np.full((40, 50, 3), 7, np.uint8), np.zeros((3, 200))],
    ids=["1x1", "2x2", "constant", "thin"],
)
@pytest.mark.parametrize("preset", list(PRESETS))
def test_the_smallest_pictures_work(image, preset, tmp_path):
    found = ss.segment(image, preset, sweeps=10, rng=0)
    assert found.n_clusters == 1
    found.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_more_sites_than_pixels_are_as_many_as_pixels():
    image = np.random.default_rng(0).random((6, 7))
    for kind in ("slic", "watershed", "grid"):
        assert ss.segment(image, sites=kind, n_sites=1000, sweeps=5, rng=0).model.graph.n_sites <= 42
    assert ss.segment(image, sites="pixels", sweeps=5, rng=0).model.graph.n_sites == 42


@pytest.mark.parametrize("preset", list(PRESETS))
def test_volumes_and_many_channels(preset, tmp_path):
    rng = np.random.default_rng(0)
    volume = rng.normal(0.3, 0.02, (12, 24, 30))
    volume[:, 8:, 10:20] += 0.4
    found = ss.segment(volume, preset, channel_axis=None, n_sites=60, sweeps=30, rng=0)
    assert found.labels.shape == volume.shape
    found.save(tmp_path)
    np.testing.assert_array_equal(imread(tmp_path / "labels.tif"), found.labels)
    bands = np.concatenate([volume[0, ..., None]] * 6, axis=2)
    many = ss.segment(bands, preset, channel_axis=-1, n_sites=60, sweeps=30, rng=0)
    assert many.labels.shape == bands.shape[:2]


@pytest.mark.parametrize(
    "keywords, line",
    [
        ({"preset": "nice"}, "preset must be one of 'photo', 'paper'; received 'nice'"),
        ({"mask": np.ones((3, 3), bool)}, r"mask must have the image's shape \(120, 160\); received \(3, 3\)"),
        ({"mask": np.zeros((120, 160), bool)}, "mask must leave some pixel inside"),
        ({"beta": "strong"}, "beta must be a finite number; received 'strong'"),
        ({"beta": np.ones(3)}, "beta must be a finite number; received"),
        ({"mask": [[True], [True, False]]}, "mask must be True inside"),
        ({"prior": 3}, "prior must be a PartitionPrior; received 3"),
        ({"sites": "hexagons"}, "sites must be one of"),
        ({"sites": np.zeros((2, 2), int)}, "sites must have the image's shape"),
        ({"n_sites": 0}, "n_sites must be a whole number of at least 1; received 0"),
        ({"codebook": "mine"}, "codebook must be one of 'general', 'image'"),
        ({"count_weight": -1}, "count_weight must be a finite number above 0"),
        ({"regions": "yes"}, "regions must be True or False"),
        ({"rng": -4}, "rng must be a whole number"),
        ({"sweeps": 0}, "sweeps must be a whole number of at least 1"),
    ],
)
def test_wrong_wishes_get_one_line(picture, keywords, line):
    with pytest.raises(ValueError, match=line) as error:
        ss.segment(picture, **keywords)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "keywords, line",
    [
        ({"chains": 0}, "chains must be a whole number of at least 1; received 0"),
        ({"chains": 2.5}, "chains must be a whole number of at least 1; received 2.5"),
        ({"sweeps": "9"}, "sweeps must be a whole number of at least 1; received '9'"),
        ({"sweeps": 10**9, "chains": 8}, "sweeps must keep the traces below 8 GB; received 1000000000"),
        ({"n_sites": -3}, "n_sites must be a whole number of at least 1; received -3"),
        ({"n_sites": 9, "sites": "pixels"}, "n_sites must be None where every pixel is a site; received 9"),
        ({"sites": 7}, "sites must be a kind of sites or have two or three axes; received ()"),
        ({"sites": np.zeros((4, 5))}, "sites must be whole numbers; received 'float64'"),
        ({"moves": "x"}, "moves must be one of 'auto', 'gsw'; received 'x'"),
        ({"lam": -1}, "lam must be a finite number of at least 0; received -1"),
        ({"lam": "strong"}, "lam must be a finite number of at least 0; received 'strong'"),
        ({"lam": [1.0, -2.0]}, "lam must not be negative; received -2.0"),
        ({"lam": np.ones((2, 2))}, "lam must have shape (any); received (2, 2)"),
        ({"init": "x"}, "init must be one of 'one', 'singletons', 'greedy'; received 'x'"),
        ({"init": ("one", "x"), "chains": 2}, "init must be one of 'one', 'singletons', 'greedy'; received 'x'"),
        (
            {"init": ["one"] * 3, "chains": 2},
            "init must be one start, or one for each of 2 chains; received '3 starts'",
        ),
        ({"init": np.zeros(9)}, "init must be whole numbers; received 'float64'"),
        ({"init": np.zeros((3, 9), int)}, "init must be one start, or one for each of 2 chains; received '3 starts'"),
        ({"init": np.zeros((2, 3, 4), int)}, "init must be labels of the sites, or such for each chain; rec"),
        ({"connectivity": 0, "sites": "pixels"}, "connectivity must be a whole number of at least 1; received 0"),
        ({"n_words": 0}, "n_words must be a whole number of at least 1; received 0"),
        ({"phi": 0}, "phi must be a finite number above 0; received 0"),
        ({"estimate": "mean"}, "estimate must be one of 'best', 'vi'; received 'mean'"),
        ({"workers": 0}, "workers must be a whole number of at least 1; received 0"),
        ({"channel_axis": "last"}, "channel_axis must be None, 'auto' or the number of an axis; received 'last'"),
        ({"channel_axis": 1.0}, "channel_axis must be None, 'auto' or the number of an axis; received 1.0"),
        ({"mask": np.zeros((5, 5), bool)}, "mask must leave some pixel inside; received 'all False'"),
        ({"mask": np.zeros((5, 5))}, "mask must be True inside and False outside; received 'float64'"),
        ({"mask": "no such mask.png"}, "no such mask.png must be a file that can be read"),
        ({"rng": -1}, "rng must be a whole number of at least 0, a Generator or None; received -1"),
    ],
)
def test_settings_are_checked_before_the_picture_is_read(keywords, line):
    with pytest.raises((ValueError, OSError), match="^" + re.escape(line)) as error:
        ss.segment("no such picture.png", **keywords)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "keywords, line",
    [
        ({"sites": np.zeros((2, 2), int)}, "sites must have the image's shape (120, 160); received (2, 2)"),
        ({"sites": "pixels", "connectivity": 3}, "connectivity must be at most the 2 axes of the image; received 3"),
        ({"preset": "paper", "n_words": 100}, "n_words must be one of 30, 60, 120, 240, 480 for the general codebook"),
    ],
)
def test_what_does_not_fit_the_picture_is_told_before_sites_are_made(picture, keywords, line, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.problem.maps_for", lambda *_: 1 / 0)
    with pytest.raises(ValueError, match="^" + re.escape(line)):
        ss.segment(picture, **keywords)


@pytest.mark.parametrize(
    "keywords",
    [
        {"preset": "paper"},
        {"beta": 0.3, "regions": False},
        {"preset": "paper", "sites": "pixels", "init": "coarse"},
        {"sites": "pixels", "init": "one", "regions": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("detail", [0.5, 0.9])
def test_a_detail_without_effect_is_refused(keywords, detail):
    with pytest.raises(ValueError, match=rf"^detail must be left out where .*; received {detail}$"):
        ss.segment("no such picture.png", detail=detail, **keywords)


@pytest.mark.parametrize(
    "keywords", [{"beta": 0.3}, {"regions": False}, {"preset": "paper", "regions": True}, {"sites": "pixels"}], ids=str
)
def test_a_detail_with_an_effect_is_not_refused(keywords):
    given = {"detail": 0.9, **keywords}
    assert settings_of(given.pop("preset", "photo"), given).detail == 0.9


def test_chains_of_pixels_may_start_from_coarse_settings_of_the_paper():
    image = np.zeros((20, 24))
    image[:, 12:] = 1
    found = ss.segment(image, "paper", sites="pixels", init="coarse", beta=1.0, sweeps=2, rng=0)
    assert found.labels.shape == image.shape


def test_ctrl_c_keeps_the_sweeps_that_are_finished(picture):
    def stop(at):
        if at.done > 20:
            raise KeyboardInterrupt

    with pytest.raises(ss.SegmentationInterrupted) as stopped:
        ss.segment(picture, sweeps=1_000_000, regions=False, rng=0, progress=stop)
    kept = stopped.value.segmentation
    assert kept.interrupted and kept.summary()["interrupted"]
    assert 0 < kept.chains.n_sweeps < 1_000_000
    assert kept.model.log_posterior(kept.partition) == pytest.approx(kept.chains.best_log_posterior)


# ---- files -----------------------------------------------------------------------------------------------------------


def test_saved_files_are_complete_and_the_same_twice(picture, found, tmp_path):
    found.save(tmp_path / "one")
    ss.segment(picture, rng=3, workers=1).save(tmp_path / "two")
    for folder in ("one", "two"):
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == FILES
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    np.testing.assert_array_equal(imread(tmp_path / "one" / "labels.tif"), found.labels)
    with Image.open(tmp_path / "one" / "labels.png") as image:
        np.testing.assert_array_equal(np.asarray(image), found.labels)
    probability = imread(tmp_path / "one" / "boundary_probability.png")
    np.testing.assert_allclose(probability / 255, found.boundary_probability, atol=0.5 / 255 + 1e-6)


def test_files_that_are_there_are_kept_unless_they_may_be_replaced(found, tmp_path):
    for name in ("labels.png", "result.json"):
        (tmp_path / name).write_text("mine")
    told = f"{tmp_path} holds labels.png, result.json already, which are kept; overwrite=True replaces them"
    with pytest.raises(FileExistsError) as problem:
        found.save(tmp_path)
    assert str(problem.value) == told
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"labels.png": "mine", "result.json": "mine"}
    found.save(tmp_path, ["labels.tif", "overlay.png"])  # which are not there
    with pytest.raises(
        FileExistsError, match=r" holds overlay\.png already, which is kept; overwrite=True replaces it$"
    ):
        found.save(tmp_path, ["overlay.png"])
    found.save(tmp_path, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert json.loads((tmp_path / "result.json").read_text())["seed"] == 3
    np.testing.assert_array_equal(read_labels_png(tmp_path / "labels.png"), found.labels)


def test_an_old_result_does_not_outlast_files_that_are_replaced(found, tmp_path, monkeypatch):
    found.save(tmp_path)
    monkeypatch.setattr("spinseg.segmentation.result.write_labels_tif", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        found.save(tmp_path, overwrite=True)
    assert not (tmp_path / "result.json").exists()


def read_labels_png(path):
    with Image.open(path) as image:
        return np.asarray(image)


def one_each(found, shape):
    """A segmentation in which every pixel is a cluster."""
    sites = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    partition, graph = sites.ravel(), region_adjacency(sites).graph
    return replace(
        found,
        labels=sites,
        sites=sites,
        partition=partition,
        boundary_probability=np.ones(shape, np.float32),
        separation=np.ones(graph.n_edges),
        model=ss.Model(graph, Flat(), ss.DirichletProcess(1.0)),
        chains=replace(found.chains, labels=partition[None, None], best_labels=partition),
        picture=as_picture(np.random.default_rng(0).random((*shape, 3)), channel_axis=-1),
    )


def test_more_clusters_than_a_png_holds_leave_it_out_and_nothing_else(found, tmp_path, capsys):
    many = one_each(found, (256, 257))
    (tmp_path / "labels.png").write_text("of another result")
    many.save(tmp_path, overwrite=True)
    why = "a PNG holds 65,535 labels at most, and there are 65,792; labels.tif has them all"
    assert capsys.readouterr().err == f"spinseg: {tmp_path / 'labels.png'} is left out: {why}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [name for name in FILES if name != "labels.png"]
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["n_clusters"] == len(told["regions"]) == 256 * 257 and told["left_out"] == {"labels.png": why}
    labels = imread(tmp_path / "labels.tif")
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, many.labels)


def test_a_png_of_as_many_clusters_as_it_holds_is_written(found, tmp_path):
    many = one_each(found, (255, 257))  # 65,535
    many.save(tmp_path, ["labels.png", "labels.tif"])
    for name in ("labels.png", "labels.tif"):
        labels = imread(tmp_path / name)
        assert labels.dtype == np.uint16
        np.testing.assert_array_equal(labels, many.labels)


def test_of_a_volume_the_labels_of_the_plane_that_is_shown_count(found, tmp_path, monkeypatch):
    monkeypatch.setattr("spinseg.segmentation.result.MOST_LABELS_PNG", 30)
    few = replace(found, labels=np.arange(60, dtype=np.int32).reshape(3, 4, 5) // 2)
    many = replace(found, labels=np.arange(60, dtype=np.int32).reshape(3, 4, 5))
    assert few.left_out == {} and list(many.left_out) == ["labels.png"]


def test_result_json_tells_all(found, tmp_path):
    found.save(tmp_path)
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["n_clusters"] == found.n_clusters and told["seed"] == 3
    assert sum(region["area"] for region in told["regions"]) == found.labels.size
    assert {region["cluster"] for region in told["regions"]} == set(range(found.n_clusters))
    assert told["settings"]["count_weight"] == PHOTO.count_weight
    assert told["versions"].keys() >= {"python", "spinseg", "numpy", "numba"}
    assert sum(told["n_clusters_posterior"].values()) == pytest.approx(1, abs=1e-4)
    assert told["verdict"] and told["left_out"] == {}


def test_the_table_of_regions_is_right(found):
    graph = found.model.graph
    for region in found.regions:
        top, left, bottom, right = region["box"]
        inside = np.zeros(found.labels.shape, bool)
        inside[top:bottom, left:right] = True
        here = (found.labels == region["cluster"]) & inside
        assert here.sum() == region["area"]  # with `regions`, a cluster is one region
        mean = np.rint(found.picture.rgb[here].mean(axis=0)).astype(int)
        assert region["colour"] == "#{:02x}{:02x}{:02x}".format(*mean)
        sites = np.unique(found.sites[here])
        draws = found.chains.labels.reshape(-1, graph.n_sites)[:, sites]
        pairs = [(draw[:, None] == draw[None, :])[np.triu_indices(sites.size, 1)].mean() for draw in draws]
        if sites.size > 1:
            assert region["probability"] == pytest.approx(np.mean(pairs), abs=1e-6)
        assert 0 <= region["boundary"] <= 1


def test_the_line_of_python_repeats_the_run(picture, tmp_path):
    Image.fromarray(picture).save(tmp_path / "a picture.png")
    keywords = {"prior": ss.DirichletProcess(2.0, min_size=2), "sweeps": 20, "n_words": 60, "lam": 4.0}
    found = ss.segment(tmp_path / "a picture.png", "paper", rng=11, **keywords)
    again = eval(found.repeat, {"ss": ss})
    np.testing.assert_array_equal(found.chains.labels, again.chains.labels)
    np.testing.assert_array_equal(found.labels, again.labels)


class Outline(HTMLParser):
    """Counts of the elements of a page, and every address in it."""

    def __init__(self, text):
        super().__init__()
        self.counts, self.addresses = {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.addresses += [value for name, value in attributes if name in ("src", "href")]


def test_the_report_stands_alone_and_shows_all(found, tmp_path):
    found.save(tmp_path)
    text = (tmp_path / "report.html").read_text()
    page = Outline(text)
    assert page.counts["img"] == 4 and page.counts["svg"] == 3
    assert all(address.startswith("data:image/") for address in page.addresses)
    assert not re.search(r"https?://|url\(|@import|<script", text)
    assert page.counts["tr"] >= 1 + len(found.regions)
    assert f"rng={found.seed})" in text and "nan" not in text.lower().split("base64")[0]


def test_the_report_does_not_trust_a_name(picture, tmp_path):
    name = "<script>alert(1)<&>.png".replace("/", "")
    Image.fromarray(picture).save(tmp_path / name)
    found = ss.segment(tmp_path / name, sweeps=4, rng=0)
    found.save(tmp_path / "out")
    assert "<script>" not in (tmp_path / "out" / "report.html").read_text()


# ---- settings --------------------------------------------------------------------------------------------------------


def test_priors_by_name():
    assert prior_named(None, "photo") is None
    assert repr(prior_named("dp", "paper", concentration=2.0)) == "DirichletProcess(concentration=2.0)"
    assert repr(prior_named(None, "paper", min_size=3)) == "DirichletProcess(concentration=3.0, min_size=3)"
    assert repr(prior_named("py", "photo", discount=0.5)) == "PitmanYor(concentration=3.0, discount=0.5)"
    assert repr(prior_named("potts", "photo", n_labels=4, max_size=9)) == "Potts(n_labels=4, max_size=9)"
    assert repr(prior_named("finite", "photo", n_labels=4)) == "FiniteDirichlet(n_labels=4)"
    assert repr(prior_named("mfm", "photo", n_labels=6)) == "MixtureOfFiniteMixtures(mean_labels=6.0)"
    assert repr(prior_named(None, "photo", min_size=2)) == "TemperedProcess(min_size=2)"
    for wrong in (
        {"name": "potts"},
        {"name": "dp", "discount": 0.1},
        {"name": "potts", "n_labels": 3, "concentration": 1},
    ):
        with pytest.raises(ValueError, match=r"must be (given|left out) for the prior"):
            prior_named(wrong.pop("name"), "photo", **wrong)


def test_the_tempered_process_weighs_sizes_less():
    log_v, log_w = ss.TemperedProcess(0.4).tables(50)
    assert log_v[3] == pytest.approx(3 * np.log(0.4)) and log_w[5] == pytest.approx(0.1 * np.log(24))
    assert ss.TemperedProcess().tables(1600)[1][5] == pytest.approx(0.05 * np.log(24))


def test_larger_pictures_count_like_one_of_reference_size():
    rng = np.random.default_rng(0)
    small = (rng.random((40, 60, 3)) * 255).astype(np.uint8)
    sites = np.arange(40 * 60).reshape(40, 60) // 120
    from spinseg.segmentation import image_model as picture_model

    def weights(factor):
        large = np.kron(small, np.ones((factor, factor, 1), np.uint8))
        large_sites = np.kron(sites, np.ones((factor, factor), int)).astype(np.int32)
        adjacency = region_adjacency(large_sites)
        model = picture_model.picture_model(
            ss.segment(large, sites=large_sites, sweeps=1, rng=0).picture, large_sites, adjacency, PHOTO
        )
        return sum(term.statistics[:, 0].sum() for term in model.likelihood.terms())

    expected = [min(MOST_COUNTED * n, USUAL_PIXELS) for n in (40 * 60, 40 * 60 * 100)]
    assert weights(10) / weights(1) == pytest.approx(expected[1] / expected[0])


def test_chains_start_where_they_are_told(picture):
    first = segment(picture, "paper", init=("one", "singletons"), chains=2, sweeps=9, rng=4)
    assert "init=('one', 'singletons')" in first.repeat
    assert "started from one place" not in first.verdict
    whole = first.chains.n_clusters[:, 0]
    assert whole[1] > 5 * whole[0]
    on = segment(picture, "paper", init=first.chains.labels[:, -1], chains=2, sweeps=6, rng=5)
    chains = ss.sample(first.model, 6, 2, "gsw", 10.0, list(first.chains.labels[:, -1]), burn_in=3, rng=5)
    np.testing.assert_array_equal(on.chains.labels, chains.labels)
    assert "init=init" in on.repeat


@pytest.mark.parametrize(
    "init, line",
    [
        ("coarse", "init must be one of 'one', 'singletons', 'greedy'; received 'coarse'"),
        ("two", "init must be one of 'one', 'singletons', 'greedy'; received 'two'"),
        (("one",), "init must be one start, or one for each of 2 chains; received '1 starts'"),
    ],
)
def test_other_starts_get_one_line(picture, init, line):
    with pytest.raises(ValueError, match=re.escape(line)):
        segment(picture, init=init, chains=2, sweeps=2, rng=0)
