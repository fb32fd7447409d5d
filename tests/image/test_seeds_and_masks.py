"""Seeds on pixels and thin masks, which keep their sites apart also where an image is reduced."""

import numpy as np
import pytest
import tifffile
from PIL import Image
from skimage.measure import label

from spinseg import InvalidInput
from spinseg.image.picture import as_picture
from spinseg.image.seeds import cut_sites, reduced_seeds, seed_image, seeds_of_sites, with_own_seeds
from spinseg.image.working import reduce_mask, sites_within_parts, working_copy
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.schedule import Schedule, sample_posterior

PIXELS = np.array([[0, 3, 3], [-1, 0, 900]])


def one_line(match: str):
    return pytest.raises(InvalidInput, match=match)


def test_images_files_and_pixels_are_read_alike(tmp_path):
    expected = np.maximum(PIXELS, 0)
    tifffile.imwrite(tmp_path / "seeds.tif", PIXELS.astype(np.int32))
    Image.fromarray(expected.astype(np.uint16)).save(tmp_path / "sixteen.png")
    points = {3: [(0, 1), (0, 2)], 900: np.array([[1, 2]])}
    for seeds in (PIXELS, PIXELS.tolist(), points, tmp_path / "seeds.tif", str(tmp_path / "sixteen.png")):
        np.testing.assert_array_equal(seed_image(seeds, (2, 3)), expected)
    numbers = np.array([[0, 2, 1]], np.uint8)
    palette = Image.fromarray(numbers)
    palette.putpalette(bytes([0, 0, 0, 255, 0, 0, 0, 0, 255]))
    for image in (palette, Image.fromarray(numbers).convert("RGB")):  # a palette, and equal channels
        image.save(tmp_path / "seeds.png")
        np.testing.assert_array_equal(seed_image(tmp_path / "seeds.png", (1, 3)), numbers)
    palette.convert("RGB").save(tmp_path / "red.png")
    with one_line("seeds must be an image of one number per pixel, without colors or transparency: .*red.png"):
        seed_image(tmp_path / "red.png", (1, 3))
    (tmp_path / "none.png").write_text("none")
    with one_line("none.png must be"):
        seed_image(tmp_path / "none.png", (1, 3))


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (np.zeros((2, 2), int), r"seeds must have the image's shape \(2, 3\): got \(2, 2\)"),
        (PIXELS / 2, "seeds must be whole numbers: got 'float64'"),
        (PIXELS > 0, "seeds must be whole numbers: got 'bool'"),
        (-PIXELS * 0, "seeds must be a positive number at some pixel: got 'none'"),
        ({}, "seeds must be a positive number at some pixel: got 'none'"),
        ({0: [(0, 0)]}, "seeds must be a whole number of at least 1: got 0"),
        ({1: [(0, 0, 0)]}, r"seeds must have a list of pixels for each number, of 2 coordinates each: got \[\("),
        ({1: [(0, 0.5)]}, "seeds must be whole numbers: got 'float64'"),
        ({1: [(0, 3)]}, r"seeds must be pixels of the image, of shape \(2, 3\): got \(0, 3\)"),
        ({1: [(0, 1)], 2: [(1, 1), (0, 1)]}, r"seeds must give each pixel one number: got \(0, 1\)"),
        ({1: [(0, 0)]}, r"seeds must lie inside the mask, and where the image is neither .*: got \(0, 0\)"),
    ],
)
def test_what_is_refused(seeds, message):
    inside = np.arange(6).reshape(2, 3) > 0
    with one_line(message):
        seed_image(seeds, (2, 3), inside)
    assert seed_image(PIXELS, (2, 3), inside)[0, 1] == 3


def test_no_seed_is_lost_when_a_picture_is_reduced():
    rng = np.random.default_rng(0)
    seeds = np.zeros((50, 61), np.int64)
    seeds[7, :] = 1  # a line of one pixel, and points beside it
    for number in range(2, 12):
        seeds[rng.integers(20, 50), 5 * number] = number  # more than a block apart
    seeds[6, 30] = 40
    reduced = reduced_seeds(seeds, 4)
    assert reduced.shape == (13, 16)
    np.testing.assert_array_equal(np.unique(reduced), np.unique(seeds))
    for block in zip(*np.nonzero(reduced), strict=True):
        rows, columns = (slice(4 * i, 4 * i + 4) for i in block)
        assert reduced[block] in seeds[rows, columns]
    np.testing.assert_array_equal(reduced_seeds(seeds, 1), seeds)
    chain = np.zeros((4, 12), np.int64)  # three blocks, shared by 1 and 2, 1 and 3, 1 and 3
    chain[0, 0:2], chain[0, 4:6], chain[0, 8:10] = (1, 2), (1, 3), (1, 3)
    assert sorted(reduced_seeds(chain, 4).ravel().tolist()) == [1, 2, 3]
    crowded = np.zeros((8, 8), np.int64)
    crowded[0, :3] = 1, 2, 3
    with one_line("seeds must lie 4 pixels apart at least, since the image is analyzed at 1/4 of its size"):
        reduced_seeds(crowded, 4)


def test_pixels_whose_seed_their_block_did_not_get_go_to_a_site_that_has_it():
    seeds = np.zeros((4, 8), np.int64)
    seeds[0, 0:2], seeds[0, 3:8] = 1, 2  # in blocks of four, the first has both
    reduced = reduced_seeds(seeds, 4)
    assert reduced.tolist() == [[1, 2]]
    sites = np.repeat(np.array([[0, 1]], np.int32), 4, axis=1).repeat(4, axis=0)
    found = with_own_seeds(sites, np.array([1, 2]), seeds)
    assert (np.array([1, 2])[found] == seeds)[seeds > 0].all()
    assert np.count_nonzero(found != sites) == 1


def test_sites_with_several_seeds_are_cut_between_them():
    rng = np.random.default_rng(2)
    sites = np.kron(np.arange(12).reshape(3, 4), np.ones((9, 9), int)).astype(np.int32)
    sites[:2] = -1
    seeds = np.where((rng.random(sites.shape) < 0.02) & (sites >= 0), rng.integers(1, 4, sites.shape), 0)
    seeds[13, 10], seeds[13, 14] = 1, 2
    cut = cut_sites(sites, seeds, None)
    found, of_new = seeds_of_sites(cut, seeds), cut >= 0
    assert (found[cut[of_new]] == seeds[of_new])[seeds[of_new] > 0].all()
    np.testing.assert_array_equal(of_new, sites >= 0)
    assert np.unique(cut[of_new]).size > np.unique(sites).size
    for site in np.unique(cut[of_new]):
        assert np.unique(sites[cut == site]).size == 1 and label(cut == site, connectivity=1).max() == 1


def test_the_cut_follows_the_relief_and_sites_with_one_seed_stay():
    sites, seeds, relief = np.zeros((5, 9), np.int32), np.zeros((5, 9), np.int64), np.zeros((5, 9))
    seeds[2, 0], seeds[2, 8], relief[:, 2] = 1, 2, 5.0
    cut = cut_sites(sites, seeds, relief)
    assert np.unique(cut[:, :2]).size == 1 and np.unique(cut[:, 3:]).size == 1 and cut[0, 0] != cut[0, 3]
    assert cut_sites(sites, seeds, None)[2, 3] == 0  # else it lies in the middle
    sites = np.array([[0, 0, 1, 1]], np.int32)
    np.testing.assert_array_equal(cut_sites(sites, np.array([[1, 1, 2, 0]]), None), sites)
    np.testing.assert_array_equal(cut_sites(sites, np.array([[1, 2, 2, 0]]), None), [[0, 2, 1, 1]])


SHAPE = (48, 66)
ROWS, COLUMNS = np.indices(SHAPE)
MASKS = {f"column {at}": at != COLUMNS for at in (32, 33, 34)} | {f"row {at}": at != ROWS for at in (22, 23)}
MASKS |= {
    "diagonal": ~np.isin(COLUMNS - ROWS, (5, 6)),
    "cross": (ROWS != 20) & (COLUMNS != 33),
    "ring": np.abs(np.hypot(ROWS - 24, COLUMNS - 30) - 15) > 0.75,
}


@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("name", MASKS)
def test_parts_that_do_not_touch_stay_apart(name, step):
    inside = MASKS[name]
    reduced, changed = reduce_mask(inside, step)
    parts, of_blocks = label(inside, connectivity=1), label(reduced, connectivity=1)
    assert parts.max() >= 2 and changed
    blocks = of_blocks.repeat(step, axis=0).repeat(step, axis=1)[:48, :66]
    sites = sites_within_parts(np.where(inside, blocks - 1, -1).astype(np.int32), inside)
    assert np.array_equal(sites >= 0, inside)
    for site in range(of_blocks.max()):
        assert np.unique(parts[sites == site]).size == 1  # in one part alone
        assert label(sites == site, connectivity=1).max() == 1


@pytest.mark.parametrize("n_axes", [2, 3])
def test_any_mask_keeps_a_block_of_every_part(n_axes):
    rng = np.random.default_rng(0)
    for share in (0.1, 0.4, 0.6, 0.95):
        inside = rng.random((13, 14, 12)[:n_axes]) < share
        reduced, _ = reduce_mask(inside, 3)
        every = np.zeros(reduced.shape, bool)
        every[tuple(axis // 3 for axis in np.nonzero(inside))] = True
        assert not (reduced & ~every).any() and reduced.any()


def test_a_mask_of_one_part_and_pixels_that_are_held_stay_inside():
    inside = np.ones(SHAPE, bool)
    inside[10:20, 30] = False  # a slit, around which all is connected
    reduced, changed = reduce_mask(inside, 2)
    assert reduced.all() and not changed
    assert reduce_mask(COLUMNS != 31, 2, np.isin(COLUMNS, (30, 32)))[0].all()
    assert not working_copy(as_picture(np.zeros((40, 40))), None, 500).keeps_parts


@pytest.mark.parametrize("at", [39, 40])
def test_a_line_of_one_pixel_separates_the_regions_of_a_reduced_image(at, monkeypatch):
    monkeypatch.setattr(Photo, "max_pixels", 1500)
    image = np.random.default_rng(0).normal(0.5, 0.01, (60, 80))
    mask = np.ones(image.shape, bool)
    mask[:, at] = False
    preset, schedule = Photo(n_details=2, init="one"), Schedule(chains=2, sweeps=6)
    for seeds in (None, {1: [(5, at - 1)], 2: [(5, at + 1)]}):
        problem = prepare(image, preset, mask, seeds=seeds)
        assert problem.working_image.step == 2
        seg = problem.segmentation(sample_posterior(problem.model, preset, schedule, 0), 0, schedule)
        assert np.array_equal(seg.labels > 0, mask)
        for number in range(1, seg.n_clusters + 1):
            assert label(seg.labels == number, connectivity=1).max() == 1
        assert np.unique(seg.labels[:, 0]).tolist() != np.unique(seg.labels[:, -1]).tolist()
