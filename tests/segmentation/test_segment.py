"""The pipeline from a picture to a segmentation."""

import inspect
import pickle
import pydoc
from itertools import product

import numpy as np
import pytest
from PIL import Image
from skimage.io import imread

import spinseg as ss
from effort import effort, exhaustive
from spinseg.image.features import Codebook
from spinseg.segmentation.files import FILES
from spinseg.segmentation.presets.photo import MAX_PIXEL_WEIGHT, REFERENCE_PIXELS
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.segment import segment

PRESETS = list(Preset.known)

pytestmark = pytest.mark.xdist_group("segment")  # they share a segmentation


def test_segment_is_a_function_however_it_is_imported():
    import spinseg.segmentation.segment as module

    assert ss.segment is module.segment is segment and inspect.isfunction(ss.segment)
    assert list(inspect.signature(ss.segment).parameters)[:2] == ["image", "preset"]
    assert pickle.loads(pickle.dumps(ss.segment)) is ss.segment
    assert "Segment an image and quantify the uncertainty" in pydoc.render_doc(ss.segment)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_segmentation_has_the_shape_of_the_picture(picture, preset):
    before = picture.copy()
    found = ss.segment(picture, preset, sweeps=12, chains=2, rng=3)
    np.testing.assert_array_equal(picture, before)
    assert found.labels.shape == found.sites.shape == found.boundary_probability.shape == picture.shape[:2]
    assert found.labels.dtype == np.int32 and np.unique(found.labels).tolist() == list(range(1, found.n_clusters + 1))
    assert found.boundary_probability.min() >= 0 and found.boundary_probability.max() <= 1
    model = found.model.component(found.model.n_components // 2) if found.model.n_components > 1 else found.model
    best = model.log_posterior(found.chains.best_labels, found.chains.best_kinds)
    assert best == pytest.approx(found.chains.best_log_posterior)
    np.testing.assert_array_equal(found.labels, found.partition[found.sites] + 1)


def drawing(ground, color, side, shape):
    """A square or a disc of one color on a ground of one color, its height two thirds of the picture's."""
    y, x = np.mgrid[:side, : 3 * side // 2] - [[[side / 2]], [[0.7 * side]]]
    within = np.maximum(abs(x), abs(y)) < side / 3 if shape == "square" else np.hypot(x, y) < side / 3
    return np.where(within[..., None], np.array(color, float), np.array(ground, float)), within


COLORS = {
    "white on black": ((0, 0, 0), (1, 1, 1)),
    "black on white": ((1, 1, 1), (0, 0, 0)),
    "red on black": ((0, 0, 0), (0.8, 0.2, 0.1)),
    "gray on gray": ((0.5, 0.5, 0.5), (0.6, 0.6, 0.6)),
}
DRAWINGS = list(product(COLORS, (60, 130, 260), ("square", "disc")))


@pytest.mark.parametrize(
    ("colors", "side", "shape"),
    [
        pytest.param(*case, marks=[] if i % 11 == 0 else [exhaustive], id=" ".join(map(str, case)))
        for i, case in enumerate(DRAWINGS)
    ],
)
def test_a_drawing_has_its_outline_though_no_photograph_has_such_steps(colors, side, shape):
    image, within = drawing(*COLORS[colors], side, shape)
    found = ss.segment(image, rng=0, sweeps=40, chains=1)
    assert found.n_clusters == 2
    wrong = min(np.mean((found.labels == 1) != within), np.mean((found.labels == 1) == within))
    assert wrong < 0.03


@pytest.mark.parametrize("preset", effort(["photo"], PRESETS))
def test_it_does_not_matter_how_an_image_is_given(picture, preset, tmp_path):
    """By number type, range, place of channels and kind of mask, in an array or in a file."""
    inside = np.ones(picture.shape[:2], bool)
    inside[20:70, 30:90] = False
    keywords = {"preset": preset, "sweeps": 4, "chains": 1, "rng": 1}
    expected = ss.segment(picture, mask=inside, **keywords)
    assert ((expected.labels == 0) == ~inside).all() and not expected.boundary_probability[~inside].any()
    assert expected.python_code.endswith("mask=mask, rng=1)")
    clear = np.dstack([picture, np.where(inside, 255, 0).astype(np.uint8)])
    clear[~inside, :3] = 7  # of no matter
    Image.fromarray(clear).save(tmp_path / "clear.png")
    for given in (
        {"image": picture / 255.0, "mask": inside},
        {"image": picture.astype(np.uint16) * 257, "mask": inside},
        {"image": np.moveaxis(picture, -1, 0), "mask": inside, "channel_axis": 0},
        {"image": np.ma.array(picture, mask=np.repeat(~inside[..., None], 3, axis=-1))},
        {"image": tmp_path / "clear.png"},
    )[:: effort(2, 1)]:
        np.testing.assert_array_equal(ss.segment(**given, **keywords).labels, expected.labels)
    half = inside.copy()
    half[:, 80:] = False
    assert ((ss.segment(clear, mask=half, **keywords).labels == 0) == ~half).all()


def test_a_seed_gives_the_same_again_and_none_draws_one(picture):
    picture = picture[::3, ::3]
    first = ss.segment(picture, sweeps=8, rng=None)
    again = ss.segment(picture, sweeps=8, rng=first.seed, workers=1)
    np.testing.assert_array_equal(first.chains.labels, again.chains.labels)
    drawn = [ss.segment(picture, "paper", sweeps=2, rng=np.random.default_rng(5)).seed for _ in range(2)]
    assert drawn[0] == drawn[1] != first.seed


def test_photo_gives_regions_that_hold_together(found):
    for partition in (found.partition, *found.chains.labels.reshape(-1, found.partition.size)[::7]):
        assert found.model.graph.is_connected(partition)


def test_the_paper_preset_is_the_papers(picture):
    found = ss.segment(picture, "paper", sweeps=5, rng=0)
    n_sites = found.model.graph.n_sites
    assert picture.shape[0] * picture.shape[1] / n_sites == pytest.approx(60, rel=0.2)
    paper = ss.Paper()
    assert paper.n_words == 120 and paper.lam == 10 and paper.moves == "gsw"
    assert found.model.prior.concentration == 3 and (found.model.beta == 0.02).all()
    assert found.model.likelihood.concentration == 50
    assert found.model.log_posterior(found.partition) == pytest.approx(found.chains.best_log_posterior)


@pytest.mark.parametrize("pixels_per_site", [60, 4])
def test_the_paper_preset_takes_mean_histograms_of_touching_sites(picture, pixels_per_site):
    picture = picture[:60, :80]
    found = ss.segment(picture, "paper", n_sites=picture[..., 0].size // pixels_per_site, sweeps=1, rng=0)
    graph, words = found.model.graph, Codebook.general(120).words(picture)
    near = np.eye(graph.n_sites)
    near[tuple(graph.edges.T)] = near[tuple(graph.edges[:, ::-1].T)] = 1
    mean = near / near.sum(axis=1, keepdims=True)
    own = np.array([np.bincount(words[found.sites == site], minlength=120) for site in range(graph.n_sites)])
    smooth = np.linalg.matrix_power(mean, found.preset.smoothing) @ own
    likelihood = found.model.likelihood
    unit = likelihood.count_weight / found.preset.count_weight  # in pixels: what one count of the likelihood stands for
    assert 0 < unit <= 1 and unit == pytest.approx(min(1, smooth.sum() / 60 / graph.n_sites))
    expected = np.rint(smooth / unit)
    np.testing.assert_allclose(likelihood.counts.toarray(), expected[:, expected.any(axis=0)], atol=1)
    plain = ss.segment(picture, "classes", sweeps=1, chains=1, init="one", rng=0)
    assert plain.model.likelihood.counts.sum() == picture.shape[0] * picture.shape[1]


@pytest.mark.parametrize("preset", effort(["photo"], PRESETS))
def test_what_lies_outside_the_mask_has_no_say(picture, preset):
    inside = np.hypot(*np.ogrid[-60:60, -80:80]) < 50
    noisy = picture.copy()
    noisy[~inside] = np.random.default_rng(0).integers(0, 256, noisy[~inside].shape)
    keywords = {"preset": preset, "mask": inside, "sweeps": 10, "rng": 0}
    keywords |= {"codebook": "image"} if preset == "paper" else {}
    np.testing.assert_array_equal(ss.segment(picture, **keywords).labels, ss.segment(noisy, **keywords).labels)


def test_a_large_picture_is_looked_at_at_a_smaller_size(picture):
    large = np.kron(picture, np.ones((6, 6, 1), np.uint8))[:-3, :-5]
    mask = np.zeros(large.shape[:2], bool)
    mask[100:601, 50:903] = True
    fast = {"sweeps": 8, "chains": 1, "rng": 0}
    found, small = ss.segment(large, mask=mask, **fast), ss.segment(picture, mask=mask[::6, ::6], **fast)
    assert found.labels.shape == large.shape[:2] and ((found.labels > 0) == mask).all()
    assert found.model.graph.n_sites < large[..., 0].size / 190 / 2
    assert 1 < found.n_clusters < 3 * small.n_clusters
    assert found.boundary_probability.shape == large.shape[:2] and not found.boundary_probability[~mask].any()


@pytest.mark.parametrize(
    "image",
    [np.zeros((1, 1)), np.ones((2, 2)), np.full((40, 50, 3), 7, np.uint8), np.zeros((3, 200))],
    ids=["1x1", "2x2", "constant", "thin"],
)
@pytest.mark.parametrize("preset", PRESETS)
def test_the_smallest_pictures_work(image, preset, tmp_path):
    found = ss.segment(image, preset, sweeps=10, rng=0)
    assert found.n_clusters == 1
    found.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


def test_more_sites_than_pixels_are_as_many_as_pixels():
    image = np.random.default_rng(0).random((6, 7))
    for kind in ("slic", "watershed", "grid"):
        assert ss.segment(image, sites=kind, n_sites=1000, sweeps=2, chains=1, rng=0).model.graph.n_sites <= 42
    assert ss.segment(image, "paper", sites="pixels", sweeps=2, rng=0).model.graph.n_sites == 42


@pytest.mark.parametrize("preset", PRESETS)
def test_volumes_and_many_channels(preset, tmp_path):
    rng = np.random.default_rng(0)
    volume = rng.normal(0.3, 0.02, (12, 24, 30))
    volume[:, 8:, 10:20] += 0.4
    found = ss.segment(volume, preset, channel_axis=None, n_sites=60, sweeps=4, chains=1, rng=0)
    assert found.labels.shape == volume.shape
    found.save(tmp_path)
    np.testing.assert_array_equal(imread(tmp_path / "labels.tif"), found.labels)
    bands = np.concatenate([volume[0, ..., None]] * 6, axis=2)
    many = ss.segment(bands, preset, channel_axis=-1, n_sites=60, sweeps=4, chains=1, rng=0)
    assert many.labels.shape == bands.shape[:2]


def test_ctrl_c_keeps_the_sweeps_that_are_finished(picture):
    def stop(at):
        if at.done > 20:
            raise KeyboardInterrupt

    with pytest.raises(ss.SegmentationInterrupted) as stopped:
        ss.segment(picture, "paper", sweeps=1_000_000, rng=0, progress=stop)
    kept = stopped.value.segmentation
    assert kept.interrupted and kept.summary()["interrupted"]
    assert 0 < kept.chains.n_sweeps < 1_000_000
    assert kept.model.log_posterior(kept.partition) == pytest.approx(kept.chains.best_log_posterior)
    again = pickle.loads(pickle.dumps(stopped.value))
    assert str(again) == str(stopped.value) and np.array_equal(again.segmentation.labels, kept.labels)


def test_larger_pictures_count_like_one_of_reference_size():
    small = (np.random.default_rng(0).random((40, 60, 3)) * 255).astype(np.uint8)
    sites = np.arange(40 * 60).reshape(40, 60) // 120

    def weight(factor):
        block = np.ones((factor, factor), int)
        image = np.kron(small, block[..., None]).astype(np.uint8)
        model = prepare(image, ss.Photo(sites=np.kron(sites, block))).model
        terms = [term for term in model.likelihood.terms() if term.statistics.shape[1]]
        return terms[0].statistics[:, 0].sum()

    expected = [min(MAX_PIXEL_WEIGHT * n, REFERENCE_PIXELS) for n in (40 * 60, 40 * 60 * 100)]
    assert weight(10) / weight(1) == pytest.approx(expected[1] / expected[0])


def test_chains_start_where_they_should(picture):
    first = segment(picture, "paper", init=("one", "singletons"), chains=2, sweeps=9, rng=4)
    assert "init=('one', 'singletons')" in first.python_code
    assert "started from the same place" not in first.verdict
    whole = first.chains.trace("n_clusters")[:, 0]
    assert whole[1] > 5 * whole[0]
    on = segment(picture, "paper", init=first.chains.labels[:, -1], chains=2, sweeps=6, rng=5)
    chains = ss.sample(first.model, 6, 2, "gsw", 10.0, list(first.chains.labels[:, -1]), burn_in=3, rng=5)
    np.testing.assert_array_equal(on.chains.labels, chains.labels)
    assert "init=init" in on.python_code
