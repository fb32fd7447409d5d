"""Tiles of a large image, against what the whole image gives, and what is joined across their seams."""

import weakref
from itertools import product

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import spinseg as ss
from large_runs import pieces
from spinseg.graph.site_graph import SiteGraph
from spinseg.image.boundary.kinds import stretched
from spinseg.image.components import three_components
from spinseg.segmentation.large import files
from spinseg.segmentation.large.joining import NUMBERS_OF_TILE, LargeGraph, join_tiles, most_shared, seam_edges, seams
from spinseg.segmentation.large.segment_large import segment_large
from spinseg.segmentation.large.tiles import MARGIN, WINDOW, Tiling, relative_to

da = pytest.importorskip("dask.array", reason="the extra [distributed] is not installed")
pytest.importorskip("zarr", reason="the extra [zarr] is not installed")

FAST = {"sweeps": 8, "chains": 1, "jobs": 1, "rng": 3}


def patches(shape=(100, 130), seed=0):
    """Four patches that differ, with noise."""
    image = np.zeros((*shape, 3))
    image[:, shape[1] // 2 :] += (0.6, 0.1, 0.3)
    image[shape[0] // 2 :] += (0.1, 0.4, 0.0)
    noise = np.random.default_rng(seed).normal(size=image.shape)
    return (255 * (gaussian_filter(image, (1, 1, 0)) + 0.1 + 0.03 * noise).clip(0, 1)).astype(np.uint8)


@pytest.mark.parametrize("shape", [(1000, 1300), (400, 2000), (3, 900), (1, 1)], ids=str)
@pytest.mark.parametrize(("n_sites", "tile"), [(None, None), (None, 200), (300, None), (300, 250)])
def test_cores_cover_the_image_once_and_windows_show_a_margin(shape, n_sites, tile):
    tiling = Tiling.of(shape, ss.Photo(n_sites=n_sites), tile)
    covered, n_tiles, reach = np.zeros(shape, int), 0, MARGIN * tiling.step
    size = tiling.side + 2 * reach
    for number, (_, core, window) in enumerate(tiling.tiles()):
        covered[core] += 1
        n_tiles = number + 1
        for inner, outer, length in zip(core, window, shape, strict=True):
            assert inner.start % tiling.side == 0 and outer.start % tiling.step == 0
            assert 0 <= outer.start <= max(inner.start - reach, 0)
            assert min(inner.stop + reach, length) <= outer.stop <= length
            assert min(size, length) <= outer.stop - outer.start < size + tiling.step
            assert outer.stop == length or (outer.stop - outer.start) % tiling.step == 0  # no block lies half within
    assert (covered == 1).all() and n_tiles == np.prod(tiling.grid)
    if n_tiles > 1 and tile is None:  # a window has the size of a photograph
        assert size == tiling.step * WINDOW


def test_large_images_are_reduced_and_small_ones_are_one_tile():
    assert Tiling.of((20_000, 20_000), ss.Photo()) == ((20_000, 20_000), 3, 3 * (WINDOW - 2 * MARGIN))
    assert Tiling.of((400, 500), ss.Photo()) == ((400, 500), 1, 500)
    assert Tiling.of((400, 500), ss.Photo(n_sites=100)) == ((400, 500), 1, 500)
    assert Tiling.of((600, 600), ss.Photo(n_sites=200)).step == 3


@pytest.mark.parametrize(("preset", "n_channels"), [("photo", 3), ("measured", 3), ("photo", 5)])
def test_an_image_of_one_tile_is_segmented_as_segment_does(preset, n_channels, tmp_path):
    """Its sites and all probabilities are the same, bit by bit; only the partition is another estimate from them."""
    image = np.concatenate([patches(), patches(seed=1)], axis=-1)[..., :n_channels]
    how = {"sweeps": 8, "rng": 3, "channel_axis": -1}
    one = ss.segment(image, preset, **how)
    large = segment_large(da.from_array(image), tmp_path, preset, **how, jobs=1)
    sites, labels, apart = pieces(tmp_path)
    assert np.array_equal(sites, one.sites)
    assert np.array_equal(apart, np.rint(255 * one.boundary_probability))
    mine, theirs = (
        {tuple(e): s for e, s in zip(x.graph.edges.tolist(), x.separation, strict=True)} for x in (large, one)
    )
    assert all(mine[edge] == pytest.approx(theirs[edge], abs=1e-6) for edge in mine.keys() & theirs.keys())
    assert len(mine.keys() & theirs.keys()) > 0.9 * len(theirs)
    rows, other = large.diagnostics.table, one.diagnostics.table
    for name in ("n_clusters", "edge_agreement"):
        assert rows[name].r_hat == other[name].r_hat > 0
        assert rows[name].chain_means == pytest.approx(other[name].chain_means)
    assert large.seed == one.seed and large.preset == one.preset and labels.max() == large.n_regions > 1


def test_regions_go_on_across_seams(tmp_path):
    """Four patches in six tiles, whose seams lie within patches."""
    image = patches((150, 210))
    large = segment_large(da.from_array(image), tmp_path, "photo", tile=80, n_sites=160, **FAST)
    labels = large.labels.compute()
    assert large.joined.first.size == 6 and large.n_regions == 4
    for row, column in product((0, 1), repeat=2):
        patch = labels[row * 80 : row * 80 + 70, column * 110 : column * 110 + 100]
        assert (patch == np.bincount(patch.ravel()).argmax()).mean() > 0.999


def made_tile(sites, numbers, draws, n_levels):
    return {"sites": sites, "numbers": numbers, "draws": draws, "apart": np.zeros((2, n_levels, 0))}


@pytest.mark.parametrize("axis", [0, 1])
def test_probabilities_across_a_seam_are_the_mean_of_what_both_tiles_drew(axis):
    """By hand: random sites and draws; in the other window a site is the one with most of its pixels."""
    rng = np.random.default_rng(axis)
    shape, n_levels = ((200, 150), (150, 200))[axis], 3
    tiling = Tiling(shape, 1, 100)
    (tile, other), *_ = [
        pair for pair in seams(tiling, list(tiling.tiles())) if pair[0].core[1 - axis] == pair[1].core[1 - axis]
    ]
    stored, found = np.full(shape, -1, np.int64), {}
    for each in (tile, other):
        size = [span.stop - span.start for span in each.window]
        down, across = (np.arange(n) // 20 for n in size)
        sites = (down[:, None] * (across.max() + 1) + across).astype(np.uint16)
        moved = rng.random(sites.shape) < 0.2  # so that outlines in the two windows differ
        sites[moved] = rng.integers(0, sites.max(), sites.shape)[moved]
        numbers, core = np.unique(sites[relative_to(each.core, each.window)], return_inverse=True)
        stored[each.core] = core.reshape([s.stop - s.start for s in each.core]) + NUMBERS_OF_TILE * each.number
        draws = rng.integers(0, 3, (2, 4 * n_levels, int(sites.max()) + 1)).astype(np.uint16)
        found[each.number] = made_tile(sites, numbers, draws, n_levels)
    pairs, lengths, apart = seam_edges(tiling, tile, other, found.__getitem__, stored)
    first, second = (np.take(stored, 99 + k, axis=axis)[: tile.core[1 - axis].stop] % NUMBERS_OF_TILE for k in (0, 1))
    assert lengths.sum() == first.size and len(np.unique(pairs, axis=0)) == len(pairs)
    shown = [np.full(shape, -1), np.full(shape, -1)]
    for image, each in zip(shown, (tile, other), strict=True):
        image[each.window] = found[each.number]["sites"]
    both = (shown[0] >= 0) & (shown[1] >= 0)
    for (a, b), length, of_chains in zip(pairs, lengths, np.moveaxis(apart, -1, 0), strict=True):
        assert length == np.count_nonzero((first == a) & (second == b))
        x, y = found[tile.number]["numbers"][a], found[other.number]["numbers"][b]
        seen_y, seen_x = (np.bincount(i[both & (j == k)]).argmax() for i, j, k in ((*shown, y), (*shown[::-1], x)))
        for chain, level in product(range(2), range(n_levels)):
            here, there = (found[each.number]["draws"][chain, level::n_levels] for each in (tile, other))
            expected = ((here[:, x] != here[:, seen_y]).mean() + (there[:, seen_x] != there[:, y]).mean()) / 2
            assert of_chains[chain, level] == pytest.approx(expected)


def test_most_pixels_decide_which_site_is_meant():
    sites, others = np.array([0, 0, 0, 2, 2]), np.array([5, 5, 1, 1, 7])
    assert most_shared(sites, others, np.array([2, 0, 0])).tolist() == [1, 5, 5]  # the first of equals


def test_a_partition_has_boundaries_more_likely_than_not_near_its_level():
    """A line of five sites; boundaries that only fine levels have, that all have, and that one chain has."""
    apart = np.zeros((2, 12, 4), np.float32)
    apart[:, 8:, 0], apart[..., 1], apart[0, :, 2] = 1, 0.7, 0.9
    graph = SiteGraph(5, [[i, i + 1] for i in range(4)], np.ones(4))
    pixels = np.array([9, 1, 4, 4, 4])
    joined = LargeGraph(graph, apart, *[None] * 1, pixels, *[None] * 7)
    assert joined.partition(0.1).tolist() == [1, 1, 0, 0, 0]
    assert joined.partition(0.95).tolist() == [1, 2, 0, 0, 0]
    assert joined.partition(0.1, chain=0).tolist() == [0, 0, 2, 1, 1]
    assert joined.partition(0.1, chain=1).tolist() == [1, 1, 0, 0, 0]


def test_no_more_is_read_at_a_time_than_a_window_and_two_tiles(tmp_path, monkeypatch):
    image, boxes, alive = patches((140, 210)), [], []
    real_part, real_join = files.OpenedPicture._pixels, join_tiles

    def pixels(opened, box):
        boxes.append([span.stop - span.start for span in box])
        return real_part(opened, box)

    def watched(tiling, read_tile, sites):
        living = weakref.WeakSet()

        class Read(dict):
            __hash__ = object.__hash__

        def read(number):
            found = Read(read_tile(number))
            living.add(found)
            alive.append(len(living))
            return found

        return real_join(tiling, read, sites)

    monkeypatch.setattr(files.OpenedPicture, "_pixels", pixels)
    monkeypatch.setattr("spinseg.segmentation.large.segment_large.join_tiles", watched)
    segment_large(da.from_array(image, chunks=64), tmp_path, "photo", tile=70, n_sites=200, **FAST | {"sweeps": 2})
    windows = [box for box in boxes if box != [140, 210]]
    assert len(windows) == 6 and max(map(max, windows)) <= 70 + 2 * MARGIN
    assert len(boxes) - len(windows) <= 1  # of a small image, what shows its intensities
    assert max(alive) == 3


def test_a_part_is_stretched_like_the_whole():
    gray = np.random.default_rng(0).normal(120, 30, (90, 80)).clip(0, 255).astype(np.uint8)
    whole = ss.as_picture(gray)
    part = ss.Picture(whole.codes[:40])
    assert np.array_equal(stretched(part, None, whole).codes, stretched(whole).codes[:40])
    assert not np.array_equal(stretched(part).codes, stretched(whole).codes[:40])
    bands = np.random.default_rng(1).poisson(np.linspace(5, 60, 90)[:, None, None], (90, 80, 5)).astype(np.uint16)
    assert np.allclose(three_components(bands[:40], None, bands), three_components(bands)[:40], atol=1e-6)
    assert not np.allclose(three_components(bands[:40]), three_components(bands)[:40], atol=0.01)


def test_a_reduced_image_has_labels_at_its_full_size(tmp_path):
    image = patches((140, 190)).repeat(2, axis=0).repeat(2, axis=1)
    large = segment_large(da.from_array(image), tmp_path, "photo", n_sites=142, tile=200, **FAST)
    assert large.joined.first.size == 4 and Tiling.of(image.shape[:2], ss.Photo(n_sites=142), 200).step == 2
    labels = large.labels.compute()
    assert labels.shape == image.shape[:2] and large.n_regions == 4
    assert len({labels[row, column] for row, column in product((60, 220), (80, 300))}) == 4
    assert sum(row["area"] for row in large.region_rows) == labels.size
