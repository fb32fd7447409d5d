"""Segmentations with seeds: every draw and every estimate of a photograph keeps them, and the call repeats."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from skimage.measure import label

import spinseg as ss
from effort import exhaustive
from spinseg.model.seeds import keeps_seeds
from spinseg.segmentation.batch import segment_files

SHORT = {"sweeps": 12, "rng": 0}

pytestmark = pytest.mark.xdist_group("segment_with_seeds")  # they share a segmentation


def scribbles(shape):
    """A stroke across the cup, a point in the dark, and two seeds close together, in one site."""
    seeds = np.zeros(shape, int)
    seeds[15:100:2, 80] = 1
    seeds[110, 10] = 2
    seeds[60, 4], seeds[60, 7] = 3, 4
    return seeds


def assert_kept(labels, seeds):
    """Pixels of the same seed have one label, and those of different seeds have different ones."""
    pairs = np.unique(np.stack([seeds, labels])[:, seeds > 0], axis=1)
    n_seeds = np.unique(seeds[seeds > 0]).size
    assert pairs.shape[1] == n_seeds == np.unique(pairs[1]).size


@pytest.fixture(scope="module")
def seeded(picture):
    return ss.segment(picture, seeds=scribbles(picture.shape[:2]), **SHORT)


def test_every_draw_of_a_photograph_keeps_the_seeds(seeded):
    draws = seeded.chains.labels.reshape(-1, seeded.model.graph.n_sites)
    assert len(draws) == 144
    assert all(keeps_seeds(draw, seeded.model.seeds) for draw in draws)
    for draw in draws[::7]:
        assert seeded.model.graph.is_connected(draw)
        assert_kept(draw[seeded.sites], scribbles(seeded.labels.shape))
    assert len(np.unique(draws, axis=0)) > 30


def test_every_estimate_keeps_the_seeds(seeded):
    seeds = scribbles(seeded.labels.shape)
    assert_kept(seeded.labels, seeds)
    for detail in (0.0, 1.0):
        found = seeded.at(detail)
        assert_kept(found.labels, seeds)
        assert seeded.model.graph.is_connected(found.partition)
    for level in (0.0, 0.05, 0.5, 1.0):
        assert_kept(seeded.hierarchy.labels(level), seeds)
    assert seeded.hierarchy.boundary.min() >= 0 and seeded.hierarchy.boundary.max() == 1
    for estimate in ("binder", "best"):
        found = replace(seeded, preset=replace(seeded.preset, estimate=estimate)).at(0.5)
        assert_kept(found.labels, seeds)


def test_without_the_seeds_they_are_not_kept(picture):
    """So that the tests above can fail."""
    with pytest.raises(AssertionError):
        assert_kept(ss.segment(picture, **SHORT).labels, scribbles(picture.shape[:2]))


@exhaustive
def test_regions_of_a_least_size_keep_the_seeds(picture):
    seeds = scribbles(picture.shape[:2])
    found = ss.segment(picture, seeds=seeds, prior=ss.TemperedProcess(0.1, power=0.0, min_size=4), sweeps=4, rng=0)
    assert_kept(found.labels, seeds)
    assert np.bincount(found.partition).min() >= 4
    assert all(found.model.allows(draw) for draw in found.chains.labels.reshape(-1, found.model.graph.n_sites)[::9])


def test_a_picture_that_is_reduced_keeps_the_seeds_of_its_own_pixels(picture, monkeypatch):
    monkeypatch.setattr(ss.Photo, "max_pixels", 6000)
    seeds = scribbles(picture.shape[:2])
    seeds[31, 20:60:7] = 9  # single pixels
    seeds[61, 5] = 8  # in the same block as a pixel of 3
    seeds[60, 2] = 3
    found = ss.segment(picture, seeds=seeds, sweeps=2, rng=0)
    n_sites = ss.segment(picture[::2, ::2], sweeps=2, rng=0).model.graph.n_sites
    assert abs(found.model.graph.n_sites - n_sites) < n_sites / 2  # it was reduced
    assert_kept(found.labels, seeds)
    assert_kept(found.at(0.1).labels, seeds)


def test_a_volume_and_sites_of_ones_own_keep_the_seeds():
    volume = np.random.default_rng(0).random((6, 12, 12))
    seeds = {1: [(0, 0, 0), (5, 11, 11)], 2: [(0, 11, 0)]}
    found = ss.segment(volume, seeds=seeds, n_sites=40, sweeps=4, rng=0)
    assert found.labels[0, 0, 0] == found.labels[5, 11, 11] != found.labels[0, 11, 0]
    sites = np.repeat(np.arange(4), 10)[None].repeat(30, 0)
    found = ss.segment(np.full((30, 40), 0.5), seeds={1: [(0, 0)], 2: [(20, 1)]}, sites=sites, sweeps=4, rng=0)
    assert found.labels[0, 0] != found.labels[20, 1] and found.model.graph.n_sites == 5


def test_the_call_and_the_files_repeat_the_seeds(seeded, picture, tmp_path):
    assert not seeded.calibrated and "validated against human annotations for images with seeds" in seeded.verdict
    assert seeded.python_code == "ss.segment(image, 'photo', sweeps=12, seeds=seeds, rng=0)"
    points = {1: [(15, 80), (60, 80)], 2: [(110, 10)]}
    found = ss.segment(picture, seeds=points, sweeps=2, rng=0)
    assert f"seeds={points}" in found.python_code
    again = eval(found.python_code, {"ss": ss, "image": picture})
    np.testing.assert_array_equal(again.labels, found.labels)
    found.save(tmp_path / "points", ["result.json"])
    stored = json.loads((tmp_path / "points" / "result.json").read_text())
    assert stored["seeds"] == {"1": [[15, 80], [60, 80]], "2": [[110, 10]]} and stored["python"] == found.python_code

    Image.fromarray(picture).save(tmp_path / "picture.png")
    Image.fromarray(scribbles(picture.shape[:2]).astype(np.uint8)).save(tmp_path / "seeds.png")
    keywords = {"seeds": str(tmp_path / "seeds.png"), **SHORT}
    ((_, outcome),) = segment_files([str(tmp_path / "picture.png")], tmp_path / "out", keywords)
    assert outcome.error is None and outcome.summary["seeds"] == keywords["seeds"]
    assert repr(keywords["seeds"]) in outcome.summary["python"]
    with Image.open(tmp_path / "out" / "picture" / "labels.png") as labels:
        np.testing.assert_array_equal(np.asarray(labels), seeded.labels)
    ((_, outcome),) = segment_files([str(tmp_path / "picture.png")], tmp_path / "out", SHORT, resume=True)
    assert "another run (seeds" in outcome.error


@pytest.mark.parametrize("preset", ["classes", "paper"])
def test_seeds_require_connected_clusters(preset):
    with pytest.raises(ss.InvalidInput, match=f"^seeds must be given with connected clusters only, .*'{preset}'$"):
        ss.segment("no such image.png", preset, seeds={1: [(0, 0)]})


def test_seeds_that_contradict_the_mask_or_each_other_are_refused(picture):
    mask = np.zeros(picture.shape[:2], bool)
    mask[:, :50] = mask[:, 100:] = True
    with pytest.raises(ss.InvalidInput, match=r"seeds must lie inside the mask, .*: got \(3, 70\)"):
        ss.segment(picture, mask=mask, seeds={1: [(3, 3), (3, 70)]})
    with pytest.raises(ss.InvalidInput, match=r"seeds must have sites that can be connected .*: got 'seed 1'"):
        ss.segment(picture, mask=mask, seeds={1: [(3, 3), (3, 120)]})
    walls = np.zeros(picture.shape[:2], int)
    walls[:, 70:72] = 2
    walls[50, 10] = walls[50, 140] = 1
    with pytest.raises(
        ss.InvalidInput, match=r": got 'seed 1', whose parts at \(50, 10\) and \(50, 140\) are kept apart\. Give"
    ):
        ss.segment(picture, seeds=walls)
    with pytest.raises(ss.InvalidInput, match="seeds must have sites that can be connected without passing another"):
        ss.segment(picture, seeds=walls)


@pytest.mark.parametrize("step", [1, 2])
def test_labels_of_an_earlier_image_in_parts_are_refused_with_their_places_and_the_remedies_work(
    picture, step, monkeypatch
):
    if step > 1:
        monkeypatch.setattr(ss.Photo, "max_pixels", picture.shape[0] * picture.shape[1] // step**2)
    bands = np.arange(picture.shape[1]) // 8
    before = np.broadcast_to(
        np.where(bands == 3, 2, np.where(bands == 9, 3, 1)), picture.shape[:2]
    )  # 1 is in three parts
    with pytest.raises(ss.InvalidInput, match=r"^seeds must [^\n]*: got 'seed 1', [^\n]*\.$") as refused:
        ss.segment(picture, "photo", seeds=before, **SHORT)
    first, second = (tuple(map(int, place.split(", "))) for place in re.findall(r"\((\d+, \d+)\)", str(refused.value)))
    parts = label(before, connectivity=1)
    assert before[first] == before[second] == 1 and parts[first] != parts[second]
    assert "Give each part a number of its own, or set enough pixels between them to 0." in str(refused.value)
    assert_kept(ss.segment(picture, "photo", seeds=parts, **SHORT).labels, parts)
    free = before.copy()
    free[:40] = 0
    assert_kept(ss.segment(picture, "photo", seeds=free, **SHORT).labels, free)
