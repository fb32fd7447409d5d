"""Codebooks against exact nearest words, and statistics of sites against loops."""

import io

import numpy as np
import pytest
import scipy.sparse as sparse
from skimage import data

from spinseg.image.features import Codebook, k_means, nearest_center, site_histograms, site_means, site_sizes
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels

PHOTO = data.astronaut()[:160:2, 60:260:2]


def distances(codebook, picture, words):
    """Return the distance of every pixel from its word."""
    return np.linalg.norm(picture.colors - codebook.colors[words], axis=-1)


@pytest.mark.parametrize("n_words", [30, 60, 120, 240, 480])
def test_the_general_codebook(n_words):
    codebook = Codebook.general(n_words)
    assert len(codebook) == n_words and codebook.colors.shape == (n_words, 3)
    assert codebook.colors.dtype == np.float32 and not codebook.colors.flags.writeable
    assert len(np.unique(codebook.colors, axis=0)) == n_words
    assert codebook.colors[:, 0].min() > -1 and codebook.colors[:, 0].max() < 101
    assert np.all(np.diff(codebook.colors[:, 0]) >= 0)


def test_every_colour_is_near_a_general_word():
    steps = np.linspace(0, 255, 12).astype(np.uint8)
    cube = as_picture(np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(1, -1, 3))
    codebook = Codebook.general()
    assert distances(codebook, cube, codebook.words(cube)).max() < 45
    assert distances(codebook, as_picture(PHOTO), codebook.words(PHOTO)).mean() < 8


@pytest.mark.parametrize("codebook", [Codebook.general(), Codebook.fit(PHOTO, rng=0)], ids=["general", "fitted"])
def test_words_from_the_table_are_nearly_the_nearest(codebook):
    picture = as_picture(PHOTO)
    words = codebook.words(PHOTO)
    assert words.dtype == np.int32 and words.shape == PHOTO.shape[:2]
    every = np.linalg.norm(picture.colors[:, :, None] - codebook.colors, axis=-1)
    missed = distances(codebook, picture, words) - every.min(axis=-1)
    assert missed.min() > -1e-3 and missed.mean() < 0.25 and missed.max() < 5  # cells are a few CIELAB units wide


def test_words_are_exact_in_the_middle_of_cells():
    rng = np.random.default_rng(0)
    image = (rng.integers(0, 64, (50, 50, 3)) * 1024 + 512).astype(np.uint16)
    codebook = Codebook.general()
    every = np.linalg.norm(as_picture(image).colors[:, :, None] - codebook.colors, axis=-1)
    assert np.array_equal(codebook.words(image), every.argmin(axis=-1))


def test_many_channels_get_the_nearest_word_exactly():
    image = np.random.default_rng(0).random((30, 40, 6))
    codebook = Codebook.fit(image, n_words=9, channel_axis=-1, rng=0)
    assert codebook.colors.shape == (9, 6)
    every = np.linalg.norm(as_picture(image, channel_axis=-1).colors[:, :, None] - codebook.colors, axis=-1)
    assert np.array_equal(codebook.words(image, channel_axis=-1), every.argmin(axis=-1))


def test_value_range_does_not_matter_and_the_input_is_never_changed():
    kept = PHOTO.copy()
    expected = Codebook.general().words(PHOTO)
    for same in [PHOTO / 255, PHOTO.astype(np.float32), PHOTO.astype(np.uint16) * 257, as_picture(PHOTO)]:
        assert np.array_equal(Codebook.general().words(same), expected)
        assert np.array_equal(Codebook.fit(same, 20, rng=3).colors, Codebook.fit(PHOTO, 20, rng=3).colors)
    assert np.array_equal(PHOTO, kept)


def test_a_seed_gives_one_codebook_and_other_seeds_others():
    first = Codebook.fit(PHOTO, rng=1).colors
    assert np.array_equal(first, Codebook.fit(PHOTO, rng=1).colors)
    assert np.array_equal(first, Codebook.fit(PHOTO, rng=np.random.default_rng(1)).colors)
    assert not np.array_equal(first, Codebook.fit(PHOTO, rng=2).colors)


def test_a_fitted_codebook_is_nearer_than_the_general_one():
    picture = as_picture(PHOTO)
    fitted, general = (
        distances(book, picture, book.words(picture)).mean()
        for book in (Codebook.fit(PHOTO, rng=0), Codebook.general())
    )
    assert fitted < 0.7 * general


def test_a_collection_may_be_a_generator_of_different_kinds_and_serves_all_of_them():
    images = [data.astronaut(), data.chelsea() / 255, data.camera()]
    codebook = Codebook.fit((image for image in images), rng=0)
    assert len(codebook) == 120
    assert np.array_equal(codebook.colors, Codebook.fit(images, rng=0).colors)
    for image in images:
        picture = as_picture(image)
        assert distances(codebook, picture, codebook.words(picture)).mean() < 6


def test_there_are_no_more_words_than_colours():
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


def test_save_and_load(tmp_path):
    codebook = Codebook.fit(PHOTO, 17, rng=0)
    path = tmp_path / "wörter und mehr"
    codebook.save(path)
    codebook.save(path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert np.array_equal(Codebook.load(path).colors, codebook.colors)
    assert repr(Codebook.load(str(path))) == "Codebook(n_words=17, n_channels=3)"


def test_an_interrupted_save_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "book.npz"
    Codebook.general().save(path)

    def stop(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", stop)
    with pytest.raises(KeyboardInterrupt):
        Codebook.fit(PHOTO, 5, rng=0).save(path)
    assert len(Codebook.load(path)) == 120 and [p.name for p in tmp_path.iterdir()] == ["book.npz"]


def stored(save, *arrays, **named):
    """The bytes that a function of NumPy saves."""
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


BOOK = stored(np.savez_compressed, format=np.array("spinseg codebook 1"), colors=Codebook.general().colors)
FOREIGN = {
    "text": b"hello",
    "empty": b"",
    "npy": stored(np.save, np.zeros((3, 3))),
    "other npz": stored(np.savez, colors=np.zeros((3, 3))),
    "pickle": stored(np.savez, colors=np.array([None])),
    "truncated": BOOK[:300],
    "broken": BOOK[:400] + bytes(400) + BOOK[800:],
}


@pytest.mark.parametrize("content", FOREIGN)
def test_foreign_files_are_refused_in_one_line(tmp_path, content):
    (tmp_path / "file").write_bytes(FOREIGN[content])
    for path in (tmp_path / "file", tmp_path):
        with pytest.raises(ValueError) as caught:
            Codebook.load(path)
        assert str(caught.value) == f"path must be a codebook that spinseg saved; received {str(path)!r}"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: Codebook.load("nowhere.npz"), "path must be a file; received 'nowhere.npz'"),
        (
            lambda: Codebook.general(100),
            "n_words must be one of 30, 60, 120, 240, 480 for the general codebook; received 100",
        ),
        (lambda: Codebook.fit(PHOTO, 0), "n_words must be a whole number of at least 1; received 0"),
        (lambda: Codebook.fit([]), "images must hold at least one image; received []"),
        (
            lambda: Codebook.fit([PHOTO, np.zeros((4, 4, 2))]),
            "images must have equally many channels; received [2, 3]",
        ),
        (
            lambda: Codebook.general().words(np.zeros((4, 4, 2))),
            "image must have the codebook's 3 channels; received 2",
        ),
        (lambda: Codebook(np.zeros((0, 3))), "colors must hold at least one word; received (0, 3)"),
        (lambda: Codebook([[np.nan, 0, 0]]), "colors must be finite; received nan"),
        (lambda: site_histograms([[0, 1]], [[0]], 2), "words must have the sites' shape (1, 1); received (1, 2)"),
        (lambda: site_histograms([[2]], [[0]], 2), "words must be whole numbers from 0 to 1; received [2]"),
        (lambda: site_histograms([[0.5]], [[0]], 2), "words must be whole numbers from 0 to 1; received [0.5]"),
        (
            lambda: site_means([[1.0]], [[0, 1]]),
            "values must have the sites' shape (1, 2), and one axis of channels or none; received (1, 1)",
        ),
        (lambda: site_sizes([[True]]), "sites must be whole numbers; received 'bool'"),
    ],
)
def test_bad_input_is_refused_in_one_line(act, message):
    with pytest.raises(ValueError) as caught:
        act()
    assert str(caught.value) == message


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


def test_a_photograph_loses_no_pixel():
    sites = superpixels(PHOTO)
    counts = site_histograms(Codebook.general().words(PHOTO), sites, 120)
    assert np.array_equal(counts.sum(axis=1), site_sizes(sites))
    assert counts.shape == (sites.max() + 1, 120)
