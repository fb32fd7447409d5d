"""Blobs are found in noise, on an uneven background, of any size, and one by one where they touch."""

from functools import partial

import numpy as np
import pytest
from skimage.measure import label

from rendered_cells import rendered_cells
from spinseg.image.blobs import find_blobs


def counts(blobs, truth):
    """How many true blobs have no core, and several; and how many cores lie in several true blobs, and in none."""
    cores = np.where(blobs.cores, blobs.numbers, 0)
    table = np.zeros((truth.max() + 1, cores.max() + 1), int)
    np.add.at(table, (truth, cores), 1)
    shares = table[:, 1:] / np.maximum(table[:, 1:].sum(axis=0), 1)
    hits = shares[np.unique(truth[truth > 0])] > 0.15
    return [int(np.count_nonzero(each)) for each in (~hits.any(1), hits.sum(1) > 1, hits.sum(0) > 1, ~hits.any(0))]


def nuclei_of(seed, **how):
    """The nuclei of rendered cells, and their channel."""
    cells = rendered_cells(seed, shape=(200, 240), n_cells=30, **how)
    return cells.nuclei, cells.image[..., 1].astype(np.float32)


@pytest.mark.parametrize("how", [{}, {"noise": 0.15}, {"nucleus": 0.3}, {"nucleus": 0.75}, {"noise": 0.0}], ids=str)
def test_nuclei_are_found_one_by_one(how):
    total = np.sum(
        [counts(find_blobs(channel), truth) for truth, channel in map(partial(nuclei_of, **how), range(3))], axis=0
    )
    assert (total <= 4).all(), f"missed, cut, merged, false: {total} of 90"


def test_an_uneven_background_hides_none():
    truth, channel = nuclei_of(1)
    rows, columns = np.indices(channel.shape) / max(channel.shape)
    assert max(counts(find_blobs((channel + 0.6 * columns + 0.3 * rows).astype(np.float32)), truth)) <= 2


def test_two_disks_that_overlap_are_two_and_an_oval_is_one():
    y, x = np.indices((60, 100))
    two = (np.hypot(y - 30, x - 38) < 13) | (np.hypot(y - 30, x - 58) < 13)
    oval = np.hypot((y - 30) / 12, (x - 50) / 20) < 1
    assert [find_blobs(each.astype(np.float32)).numbers.max() for each in (two, oval)] == [2, 1]


def test_cores_are_connected_parts_of_blobs_of_consecutive_numbers():
    _, channel = nuclei_of(2, nucleus=0.75)
    blobs = find_blobs(channel)
    cores = np.where(blobs.cores, blobs.numbers, 0)
    assert np.array_equal(np.unique(cores), np.arange(blobs.numbers.max() + 1))
    assert label(cores, connectivity=1).max() == cores.max()


def test_a_speck_is_no_blob_and_a_hole_is_filled():
    y, x = np.indices((80, 80))
    disk, hole = np.hypot(y - 40, x - 40) < 15, np.hypot(y - 40, x - 40) < 4
    image = (disk & ~hole).astype(np.float32)
    image[5:7, 5:7] = 1
    numbers = find_blobs(image).numbers
    assert numbers.max() == 1 and numbers[40, 40] == 1 and numbers[6, 6] == 0


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (40, 50), (4, 20, 30)], ids=str)
def test_noise_and_constant_channels_have_no_blobs(shape):
    noise = np.random.default_rng(0).normal(0.5, 0.1, shape).astype(np.float32)
    channels = [np.zeros(shape, np.float32), np.ones(shape, np.float32), *([noise] if len(noise.ravel()) > 9 else [])]
    assert not any(find_blobs(channel).numbers.any() for channel in channels)


def test_nothing_outside_the_mask_is_a_blob_or_changes_one():
    truth, channel = nuclei_of(3)
    inside = np.zeros(channel.shape, bool)
    inside[20:180, 20:220] = True
    blobs = find_blobs(channel, inside)
    assert not blobs.numbers[~inside].any()
    assert max(counts(blobs, np.where(inside, truth, 0))) <= 4


def test_blobs_in_a_volume():
    z, y, x = np.indices((20, 40, 60))
    far = [np.sqrt((z - 10) ** 2 + (y - 20) ** 2 + (x - middle) ** 2) for middle in (15, 30, 48)]
    volume = sum(each < 8.5 for each in far) + np.random.default_rng(0).normal(0, 0.1, z.shape)
    assert find_blobs(volume.astype(np.float32)).numbers.max() == 3
