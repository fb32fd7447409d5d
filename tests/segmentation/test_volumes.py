"""Volumes: the default call finds small objects, within a bounded size, and says what was not validated."""

from itertools import product

import numpy as np
import pytest

import spinseg as ss
from spinseg.image.boundary.log_odds import final_log_odds, fitted_weights
from spinseg.image.boundary.volumes import volume_cues
from spinseg.image.working import working_copy
from spinseg.segmentation.presets import measured
from spinseg.segmentation.problem import prepare


def nuclei(rng, noise=0.03):
    """Eight balls, seven voxels wide, in pairs that touch; 0 is the ground."""
    at = np.indices((16, 24, 24))
    distances = np.array(
        [np.linalg.norm(at - np.reshape(c, (3, 1, 1, 1)), axis=0) for c in product((4, 11), (6, 17), (8.5, 15.5))]
    )
    truth = np.where(distances.min(axis=0) < 3.5, distances.argmin(axis=0) + 1, 0)
    return np.where(truth > 0, 0.9 - 0.03 * distances.min(axis=0) ** 2, 0.1) + rng.normal(0, noise, truth.shape), truth


@pytest.mark.parametrize("is_inverted", [False, True])
def test_the_default_call_finds_nuclei_of_seven_voxels_that_touch(is_inverted):
    volume, truth = nuclei(np.random.default_rng(0))
    found = ss.segment(1 - volume if is_inverted else volume, channel_axis=None, sweeps=60, rng=0)
    assert found.preset.name == "measured"
    ground = np.bincount(found.labels.ravel()).argmax()
    n_found = 0
    for ball in range(1, 9):
        label = np.bincount(found.labels[truth == ball]).argmax()
        both = np.count_nonzero((found.labels == label) & (truth == ball))
        n_found += label != ground and both > 0.5 * np.count_nonzero((found.labels == label) | (truth == ball))
    assert n_found >= 7
    assert found.n_clusters <= 11


def test_cues_are_those_of_the_two_sites_and_their_boundary():
    rng = np.random.default_rng(1)
    volume, _ = nuclei(rng)
    preset = ss.Measured()
    image = preset.analyzed(working_copy(ss.as_picture(volume, channel_axis=None), None, None))
    maps = preset.maps(image)
    sites = preset.make_sites(image, maps)
    graph = preset.graph(sites, image)
    cues = volume_cues(image.picture, sites, graph, maps)
    lightness, faces = image.picture.colors[..., 0], {}
    for axis in range(3):
        for here in product(*(range(n - (i == axis)) for i, n in enumerate(sites.shape))):
            there = tuple(n + (i == axis) for i, n in enumerate(here))
            if sites[here] != sites[there]:
                faces.setdefault(tuple(sorted((sites[here], sites[there]))), []).append((here, there))
    for edge in rng.permutation(graph.n_edges)[:10]:
        pairs, ends = faces[tuple(graph.edges[edge])], [sites == site for site in graph.edges[edge]]
        means = [lightness[end].mean() for end in ends]
        highest = [max(maps.relief[here], maps.relief[there]) for here, there in pairs]
        assert cues["saddle"][edge] == pytest.approx(min(highest))
        assert cues["relief"][edge] == pytest.approx(np.mean(highest))
        bottom = max(maps.relief[end].min() for end in ends)
        assert cues["depth"][edge] == pytest.approx(min(highest) - bottom, abs=1e-5)
        assert cues["brighter"][edge] == pytest.approx(max(means), rel=1e-4)
        dip = min(means) - np.mean([min(lightness[here], lightness[there]) for here, there in pairs])
        assert cues["dip"][edge] * abs(cues["dip"][edge]) == pytest.approx(dip, abs=1e-2)
        bump = np.mean([max(lightness[here], lightness[there]) for here, there in pairs]) - max(means)
        assert cues["bump"][edge] * abs(cues["bump"][edge]) == pytest.approx(bump, abs=1e-2)
        assert cues["ground"][edge] == pytest.approx(max(maps.relief[end].mean() for end in ends), rel=1e-4)
    log_odds = preset.evidence.log_odds(image.picture, sites, graph, None, maps)
    np.testing.assert_array_equal(log_odds, final_log_odds(fitted_weights()["volume"], cues))


def test_a_large_volume_is_reduced_and_given_sites_of_one_get_the_plain_cues(monkeypatch):
    volume, truth = nuclei(np.random.default_rng(2))
    monkeypatch.setattr(ss.Measured, "max_pixels", volume.size // 4)
    problem = prepare(volume, ss.Measured(), channel_axis=None)
    assert problem.working_image.step == 2 and problem.relief.shape == (8, 12, 12)
    monkeypatch.setattr(measured, "MAX_MAP_PIXELS", volume.size - 1)
    problem = prepare(volume, ss.Measured(sites=truth), channel_axis=None)
    assert problem.working_image.step == 1 and problem.relief is None
    assert problem.model.graph.n_sites == 9


def test_a_volume_of_any_channels_with_a_mask_and_seeds():
    rng = np.random.default_rng(3)
    volume, _ = nuclei(rng)
    volume, inside = volume[:9, :13, :18], np.ones((9, 13, 18), bool)
    inside[:2] = False
    for n_channels in (1, 3, 5):
        stack = np.stack([volume + rng.normal(0, 0.05, volume.shape) for _ in range(n_channels)], axis=-1)
        seeds = {1: [(4, 6, 8)], 2: [(7, 12, 17)]}
        found = ss.segment(stack, channel_axis=-1, mask=inside, seeds=seeds, sweeps=4, chains=1, rng=0)
        assert found.preset.name == "measured" and (found.labels[~inside] == 0).all()
        assert found.labels[4, 6, 8] != found.labels[7, 12, 17]
        assert "for volumes" in found.verdict


def test_shells_of_a_volume_are_no_light():
    """Of a plane with the same slope, light is removed."""
    y, x = np.indices((60, 60)) / 60
    disc = np.where(np.hypot(y - 0.5, x - 0.5) < 0.3, 0.8, 0.4) * np.exp(0.8 * x)
    noisy = disc + 0.01 * np.random.default_rng(0).normal(size=disc.shape)
    plane, volume = ss.as_picture(noisy), ss.as_picture(np.stack([noisy] * 8), channel_axis=None)
    assert ss.Classes().light(working_copy(plane, None, None)) is not None
    assert ss.Classes(even_light=False).light(working_copy(plane, None, None)) is None
    assert ss.Classes().light(working_copy(volume, None, None)) is None


def test_a_region_of_a_measured_image_costs_nothing():
    """The prior is the same for every partition, so that regions which meet in a corner alone need not join."""
    assert len({ss.Measured().prior.log_g(sizes) for sizes in ([9], [3, 6], [1] * 9)}) == 1
