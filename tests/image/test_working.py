"""A reduced image keeps the parts of its mask apart, however thin the line between them."""

import numpy as np
import pytest
from skimage.measure import label

from spinseg.image.picture import as_picture
from spinseg.image.working import reduce_mask, sites_within_parts, working_copy
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.schedule import Schedule, sample_posterior

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
