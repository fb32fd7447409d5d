"""Codebooks against exact nearest words, and statistics of sites against loops."""

import numpy as np
import pytest
import scipy.sparse as sparse
from image_files import refusal
from skimage import data

from spinseg.image.features import Codebook, k_means, nearest_center, site_histograms, site_means, site_sizes
from spinseg.image.picture import as_picture

PHOTO = data.astronaut()[:160:2, 60:260:2]


def missed(codebook, image, **keywords):
    """How much farther than the nearest word that of every pixel is."""
    picture = as_picture(image, **keywords)
    words = codebook.words(image, **keywords)
    assert words.dtype == np.int32 and words.shape == picture.shape
    every = np.linalg.norm(picture.colors[:, :, None] - codebook.colors, axis=-1)
    return np.take_along_axis(every, words[..., None], axis=-1)[..., 0] - every.min(axis=-1)


@pytest.mark.parametrize("n_words", [30, 60, 120, 240, 480])
def test_the_general_codebook(n_words):
    codebook = Codebook.general(n_words)
    assert codebook.colors.shape == (n_words, 3) and codebook.colors.dtype == np.float32
    assert not codebook.colors.flags.writeable and len(np.unique(codebook.colors, axis=0)) == n_words
    assert codebook.colors[:, 0].min() > -1 and codebook.colors[:, 0].max() < 101
    assert np.all(np.diff(codebook.colors[:, 0]) >= 0)


def test_words_are_the_nearest_in_the_middle_of_cells_and_of_many_channels_and_nearly_elsewhere():
    rng = np.random.default_rng(0)
    middles = (rng.integers(0, 64, (50, 50, 3)) * 1024 + 512).astype(np.uint16)
    assert not missed(Codebook.general(), middles).any()
    many = rng.random((30, 40, 6))
    codebook = Codebook.fit(many, n_words=9, channel_axis=-1, rng=0)
    assert codebook.colors.shape == (9, 6) and missed(codebook, many, channel_axis=-1).max() < 1e-4
    for codebook in (Codebook.general(), Codebook.fit(PHOTO, rng=0)):  # cells are a few CIELAB units wide
        assert missed(codebook, PHOTO).mean() < 0.25 and missed(codebook, PHOTO).max() < 5


def test_a_seed_gives_one_codebook_whatever_the_range_of_values_and_changes_no_input():
    kept, expected = PHOTO.copy(), Codebook.fit(PHOTO, 20, rng=3)
    for same in (PHOTO / 255, PHOTO.astype(np.uint16) * 257, as_picture(PHOTO)):
        found = Codebook.fit(same, 20, rng=np.random.default_rng(3))
        assert np.array_equal(found.colors, expected.colors)
        assert np.array_equal(found.words(same), expected.words(PHOTO))
    assert not np.array_equal(Codebook.fit(PHOTO, 20, rng=2).colors, expected.colors)
    images = [PHOTO, data.chelsea() / 255, data.camera()]  # a generator of different kinds serves all of them
    codebook = Codebook.fit((image for image in images), rng=3)
    assert np.array_equal(codebook.colors, Codebook.fit(images, rng=3).colors)
    assert all(missed(codebook, image[::4, ::4]).mean() < 0.5 for image in images)
    assert np.array_equal(PHOTO, kept)


def test_there_are_no_more_words_than_colors():
    assert len(Codebook.fit(np.full((10, 10), 0.3), rng=0)) == 1
    image = np.array([[0, 90, 180, 255]] * 3, np.uint8)
    codebook = Codebook.fit(image, rng=0)
    assert len(codebook) == 4 and codebook.words(image).tolist() == [[0, 1, 2, 3]] * 3


def test_k_means_finds_separate_groups_and_ends_where_no_centre_moves():
    rng = np.random.default_rng(0)
    middles = rng.uniform(0, 100, (6, 3))
    points = (middles[rng.integers(0, 6, 3000)] + rng.normal(0, 0.5, (3000, 3))).astype(np.float32)
    found = k_means(points, 6, rng)
    distance = np.linalg.norm(found[:, None] - middles, axis=-1)
    assert distance.min(axis=1).max() < 0.2 and len(set(distance.argmin(axis=1))) == 6
    owner = nearest_center(points, found)
    again = np.stack([points[owner == word].mean(axis=0) for word in range(6)])
    assert np.abs(again - found).max() < 0.02


def test_every_point_goes_to_the_first_of_its_nearest_centers():
    rng = np.random.default_rng(0)
    for n_channels in (1, 3, 15):
        points = rng.integers(0, 4, (500, n_channels)).astype(np.float32)  # with many ties
        centers = points[:20]
        distance = np.square(points[:, None] - centers).sum(axis=-1)
        np.testing.assert_array_equal(nearest_center(points, centers), distance.argmin(axis=1))


OTHER = np.zeros((4, 4, 2))


@pytest.mark.parametrize(
    ("call", "args", "message"),
    [
        (Codebook.general, [9], "n_words must be one of 30, 60, 120, 240, 480 for the general codebook: got 9"),
        (Codebook.fit, [PHOTO, 0], "n_words must be a whole number of at least 1: got 0"),
        (Codebook.fit, [[]], "images must hold at least one image: got []"),
        (Codebook.fit, [[PHOTO, OTHER]], "images must have equally many channels: got [2, 3]"),
        (Codebook.general().words, [OTHER], "image must have the codebook's 3 channels: got 2"),
        (Codebook, [np.zeros((0, 3))], "colors must hold at least one word: got (0, 3)"),
        (Codebook, [[[np.nan, 0, 0]]], "colors must be finite: got nan"),
        (site_histograms, [[[0, 1]], [[0]], 2], "words must have the sites' shape (1, 1): got (1, 2)"),
        (site_histograms, [[[2]], [[0]], 2], "words must be whole numbers from 0 to 1: got [2]"),
        (site_means, [[[1.0]], [[0, 1]]], "values must have the sites' shape (1, 2), and one axis of channels or none"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, args, message):
    assert refusal(call, *args).startswith(message)


@pytest.mark.parametrize("shape", [(14, 17), (5, 6, 7)])
@pytest.mark.parametrize("lowest", [0, -1])
def test_histograms_means_and_sizes_against_loops(shape, lowest):
    rng = np.random.default_rng(2)
    sites = rng.integers(lowest, 9, shape)
    words = rng.integers(0, 5, shape)
    image = rng.normal(size=(*shape, 3))
    counts, sums, sizes = np.zeros((9, 7), int), np.zeros((9, 3)), np.zeros(9, int)
    for place in np.ndindex(shape):
        if sites[place] >= 0:
            counts[sites[place], words[place]] += 1
            sums[sites[place]] += image[place]
            sizes[sites[place]] += 1
    found = site_histograms(words, sites, n_words=7)
    assert isinstance(found, sparse.csr_array) and found.dtype == np.int32 and found.has_sorted_indices
    assert np.array_equal(found.toarray(), counts) and found.nnz == np.count_nonzero(counts)
    assert np.array_equal(site_sizes(sites), sizes)
    np.testing.assert_allclose(site_means(image, sites), sums / sizes[:, None], atol=1e-6)
    np.testing.assert_allclose(site_means(image[..., 0], sites)[:, 0], sums[:, 0] / sizes, atol=1e-6)
