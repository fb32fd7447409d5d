"""Pixels and voxels as sites: their graph, and segmentations with them."""

import itertools
import json

import numpy as np
import pytest
from skimage.io import imread

import spinseg as ss
from effort import effort
from spinseg.sampler import sampler
from spinseg.segmentation.files import FILES


def masks(shape):
    """None, holes, one pixel, and pixels that touch nothing."""
    holes = np.random.default_rng(len(shape)).random(shape) < 0.7
    holes.flat[-1] = True
    alone = np.zeros(shape, bool)
    alone.flat[alone.size // 2] = True
    return [None, holes, alone, np.indices(shape).sum(axis=0) % 2 == 0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 5), (3, 1, 4), (2, 3, 4)], ids=str)
def test_the_grid_joins_just_the_neighbors_of_each_pixel(shape):
    for connectivity, inside in itertools.product(range(1, len(shape) + 1), masks(shape)):
        pixels = [pixel for pixel in np.ndindex(*shape) if inside is None or inside[pixel]]
        apart = {(i, j): np.abs(np.subtract(a, b)) for (i, a), (j, b) in itertools.combinations(enumerate(pixels), 2)}
        graph = ss.SiteGraph.grid(shape, connectivity=connectivity, inside=inside)
        assert graph.n_sites == len(pixels) and graph.edges.dtype == np.int32
        expected = sorted(pair for pair, steps in apart.items() if steps.max() == 1 and steps.sum() <= connectivity)
        assert list(map(tuple, graph.edges.tolist())) == expected
    for wrong in (0, len(shape) + 1, 1.5, "two"):
        with pytest.raises(ss.InvalidInput, match="connectivity must be "):
            ss.SiteGraph.grid(shape, connectivity=wrong)


def assert_of_pixels(found, shape, inside=None):
    """A segmentation of an image of this shape whose sites are its pixels."""
    inside = np.ones(shape, bool) if inside is None else inside
    graph = ss.SiteGraph.grid(shape, inside=inside)
    assert found.labels.shape == found.sites.shape == found.boundary_probability.shape == shape
    np.testing.assert_array_equal(found.model.graph.edges, graph.edges)
    assert (found.sites[~inside] == -1).all() and (found.labels[~inside] == 0).all()
    np.testing.assert_array_equal(found.labels, np.append(found.partition + 1, 0)[found.sites])
    assert not found.boundary_probability[~inside].any()
    best = found.chains.best_log_posterior
    assert found.model.log_posterior(found.chains.best_labels) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("preset", ["classes", "paper"])
def test_pixels_inside_a_mask_and_nothing_else_count(picture, preset):
    picture = picture[:48, :60]
    inside = np.hypot(*np.ogrid[-24:24, -30:30]) < 20
    inside[::7, ::5] = False
    inside[40:, 50:] = True  # a second piece
    noisy = picture.copy()
    noisy[~inside] = np.random.default_rng(0).integers(0, 256, noisy[~inside].shape)
    keywords = {"preset": preset, "sites": "pixels", "mask": inside, "sweeps": 4, "rng": 0}
    found = ss.segment(picture, **keywords)
    assert_of_pixels(found, picture.shape[:2], inside)
    np.testing.assert_array_equal(found.labels, ss.segment(noisy, **keywords).labels)


@pytest.mark.parametrize("preset", ["classes", "paper"])
@pytest.mark.parametrize("shape", effort([(1, 1), (16, 24, 24)], [(1, 1), (1, 5), (40, 50), (16, 24, 24)]), ids=str)
def test_a_box_is_found_pixel_by_pixel_in_images_and_volumes_and_saved(shape, preset, tmp_path):
    image, box = np.random.default_rng(0).normal(0.3, 0.02, shape), np.zeros(shape, bool)
    box[tuple(slice(n // 4, n - n // 4) for n in shape)] = True
    options = {"prior": ss.TemperedProcess(1e-6), "count_weight": 0.5, "beta": 1.0, "init": "greedy", "moves": "auto"}
    found = ss.segment(image + 0.4 * box, preset, sites="pixels", channel_axis=None, sweeps=12, rng=0, **options)
    assert_of_pixels(found, shape)
    if image.size > 100:
        assert found.n_clusters == 2 and ((found.labels == 2) == box).mean() > 0.97
    found.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    np.testing.assert_array_equal(imread(tmp_path / "labels.tif"), found.labels)
    reported = json.loads((tmp_path / "result.json").read_text())
    assert reported["n_sites"] == image.size and reported["settings"]["sites"] == "pixels"


def test_a_segmentation_keeps_as_many_draws_as_fit(picture, monkeypatch):
    monkeypatch.setattr(sampler, "MAX_LABELS", 7 * 2 * 48 * 60)
    found = ss.segment(picture[:48, :60], "paper", sites="pixels", sweeps=40, chains=2, rng=0)
    assert found.chains.labels.shape == (2, 6, 48 * 60) and found.chains.thin == 3
    assert found.chains.n_sweeps == 40 and found.chains.burn_in == 20
