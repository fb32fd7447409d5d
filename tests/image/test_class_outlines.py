"""Outlines of classes, against their definition in plain NumPy and against every single move."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from skimage.measure import label

import spinseg as ss
from spinseg.image.outlines import OUTLINE_COUPLING, refine_classes, with_connected_regions, word_log_frequencies
from spinseg.image.superpixels import superpixels
from studies.evaluation.metrics import adjusted_rand_index

N_WORDS = 6


def phantom(rng, shape, noise):
    """A picture or volume of three materials with noise, and the materials."""
    field = gaussian_filter(rng.normal(size=shape), 5)
    materials = np.digitize(field, np.quantile(field, [0.15, 0.6]))
    return np.clip(0.2 + 0.3 * materials + rng.normal(0, noise, shape), 0, 1).astype(np.float32), materials


def problem(rng, shape):
    """Sites of a phantom, the class of each, and the word of each pixel; some pixels are outside."""
    values, materials = phantom(rng, shape, 0.1)
    inside = np.ones(shape, bool)
    inside[..., -3:] = False
    sites = superpixels(values, kind="grid", pixels_per_site=20, mask=inside, channel_axis=None)
    means = np.bincount(sites[inside], materials[inside]) / np.bincount(sites[inside])
    words = np.minimum((values * N_WORDS).astype(np.int32), N_WORDS - 1)
    return sites, np.rint(means).astype(np.int32), words


def fit(classes, words, log_frequency, coupling):
    """How well the pixels fit: frequencies of words, and pairs of touching pixels of one class."""
    inside = classes >= 0
    total = log_frequency[classes[inside], words[inside]].sum()
    for axis in range(classes.ndim):
        a, b = np.delete(classes, -1, axis), np.delete(classes, 0, axis)
        total += coupling * np.count_nonzero((a == b) & (a >= 0))
    return total


@pytest.mark.parametrize("shape", [(20, 26), (6, 10, 12)])
def test_no_single_move_fits_better(shape):
    sites, class_of, words = problem(np.random.default_rng(0), shape)
    refined = refine_classes(sites, class_of, words, N_WORDS)
    how = words, word_log_frequencies(sites, class_of, words, N_WORDS), OUTLINE_COUPLING[len(shape)]
    before, classes = (np.append(class_of, -1)[each] for each in (sites, refined))
    reached = fit(classes, *how)
    assert reached > fit(before, *how) and np.array_equal(refined < 0, sites < 0)
    sizes = np.bincount(refined[refined >= 0], minlength=len(class_of))
    assert sizes.min() >= 1
    padded, steps = np.pad(classes, 1, constant_values=-1), np.eye(len(shape), dtype=int)
    for place in np.argwhere((classes >= 0) & (sizes[refined] > 1)):
        for step in (*steps, *-steps):
            other = classes.copy()
            other[tuple(place)] = padded[tuple(place + step + 1)]
            assert other[tuple(place)] < 0 or fit(other, *how) <= reached + 1e-9


def test_frequencies_are_those_of_a_class_with_one_more_of_each_word():
    found = np.exp(word_log_frequencies(np.array([[0, 0, 1, -1]]), np.array([0, 1]), np.array([[2, 0, 2, 1]]), 3))
    assert found == pytest.approx(np.array([[2 / 5, 1 / 5, 2 / 5], [1 / 4, 1 / 4, 2 / 4]]))


def test_no_site_loses_its_last_pixel_and_nothing_moves_where_there_is_one_class():
    sites = np.zeros((7, 7), np.int32)
    sites[3, 3] = 1
    for class_of in ([0, 1], [0, 0]):
        assert np.array_equal(refine_classes(sites, np.array(class_of, np.int32), np.zeros((7, 7), int), 2), sites)


@pytest.mark.parametrize("shape", [(90, 110), (24, 30, 36)])
def test_materials_are_found_wherever_they_are(shape):
    values, materials = phantom(np.random.default_rng(2), shape, 0.08)
    found = ss.segment(values, "classes", channel_axis=None, sweeps=60, rng=0)
    assert found.n_clusters == 3
    assert adjusted_rand_index(found.labels, materials) > 0.8
    assert np.array_equal(found.partition[found.sites] + 1, found.labels)


def test_pieces_cut_off_from_their_region_join_a_touching_one():
    rng = np.random.default_rng(0)
    sites = (np.arange(20)[:, None] // 5 * 4 + np.arange(24) // 6).astype(np.int32)
    region_of = (np.arange(16) // 4).astype(np.int32)
    sites = np.where(rng.random(sites.shape) < 0.1, rng.integers(0, 16, sites.shape), sites).astype(np.int32)
    sites[0, :3] = -1
    found = with_connected_regions(sites, region_of)
    assert np.array_equal(found < 0, sites < 0) and np.unique(found[found >= 0]).size == 16
    regions = np.append(region_of, -1)[found]
    assert all(label(regions == region, connectivity=1).max() == 1 for region in range(4))
    assert np.array_equal(with_connected_regions(found, region_of), found)
