"""Noise that is measured: its overdispersion between sites, and what a pixel counts for."""

from itertools import islice

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import spinseg as ss
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.noise import (
    LEAST_OBSERVATIONS,
    LEAST_WEIGHT,
    MOST_WEIGHT,
    observations_per_pixel,
    overdispersion,
    smoothed,
)
from spinseg.image.picture import Picture, as_picture
from spinseg.image.superpixels import superpixels


def grid(shape=(240, 240), side=6):
    rows, columns = (np.arange(length) // side for length in shape)
    sites = (rows[:, None] * (columns[-1] + 1) + columns).astype(np.int32)
    return sites, region_adjacency(sites)


def shared(values, sites, deviation, rng):
    """Add to every site a number of its own, the same in all channels."""
    return values + deviation * rng.normal(size=sites.max() + 1)[sites][..., None]


@pytest.mark.parametrize("n_channels", [1, 4])
def test_independent_noise_has_no_overdispersion(n_channels):
    sites, graph = grid()
    noise = np.random.default_rng(1).normal(size=(*sites.shape, n_channels))
    assert 0.5 < overdispersion(noise, sites, graph) < 1.6


@pytest.mark.parametrize("n_channels", [1, 4])
def test_overdispersion_is_that_of_the_worst_direction(n_channels):
    """With a deviation t that the pixels of a site share in all channels: 1 + n t^2 times the number of channels."""
    rng = np.random.default_rng(2)
    sites, graph = grid()
    values = shared(rng.normal(size=(*sites.shape, n_channels)), sites, 0.5, rng)
    exact = 1 + 36 * 0.5**2 * n_channels
    assert 0.6 * exact < overdispersion(values, sites, graph) < 1.3 * exact


def test_edges_between_classes_are_no_overdispersion():
    rng = np.random.default_rng(3)
    sites, graph = grid()
    steps = 5.0 * (np.indices(sites.shape)[1] // 30)
    values = (steps + rng.normal(size=sites.shape))[..., None]
    assert overdispersion(values, sites, graph) < 1.6


def test_variation_over_several_sites_is_seen():
    """Neighbors share a wave that is longer than a site; sites three steps apart do not."""
    rng = np.random.default_rng(4)
    sites, graph = grid()
    wave = gaussian_filter(rng.normal(size=sites.shape), 10, mode="wrap")
    values = (wave / wave.std() + rng.normal(size=sites.shape))[..., None]
    assert overdispersion(values, sites, graph) > 5


def test_count_weight_from_clean_to_hopeless():
    rng = np.random.default_rng(5)
    sites, graph = grid()

    def weight(noise):
        return observations_per_pixel(as_picture(np.clip(0.5 + noise, 0, 1)), sites, graph)

    independent = rng.normal(size=sites.shape)
    assert weight(0 * independent) == LEAST_OBSERVATIONS / 36
    assert weight(0.05 * independent) == MOST_WEIGHT
    assert weight(0.3 * independent) > MOST_WEIGHT
    assert weight(shared(0.02 * independent[..., None], sites, 0.1, rng)[..., 0]) < 0.1


@pytest.mark.parametrize("side", [1, 6, 12])
def test_a_site_of_one_channel_counts_for_more_than_one_observation(side):
    """Unless it is a single pixel."""
    sites, graph = grid((48, 48), side)
    flat = np.full(sites.shape, 0.5)
    gray, color = (as_picture(x) for x in (flat, np.stack([flat, flat, 0 * flat], axis=-1)))
    assert observations_per_pixel(gray, sites, graph) * side**2 == pytest.approx(min(LEAST_OBSERVATIONS, side**2))
    assert observations_per_pixel(color, sites, graph) == LEAST_WEIGHT


def test_sites_do_not_follow_noise():
    picture = as_picture(np.clip(0.5 + np.random.default_rng(6).normal(0, 0.12, (96, 96)), 0, 1))

    def dispersion(made_of):
        sites = superpixels(made_of, pixels_per_site=30)
        return overdispersion(picture.colors, sites, region_adjacency(sites))

    assert dispersion(picture) > 8 > 2 > dispersion(smoothed(picture, 30))


def test_a_photograph_is_not_smoothed():
    ramp = np.linspace(0, 60000, 64, dtype=np.uint16)[:, None, None].repeat(64, 1).repeat(3, 2)
    picture = Picture(ramp + np.random.default_rng(7).integers(0, 1500, ramp.shape, dtype=np.uint16))
    assert smoothed(picture, 30) is picture


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.12, 0.2])
def test_three_phases_are_three_classes(noise):
    rng = np.random.default_rng(8)
    field = gaussian_filter(rng.normal(size=(128, 128)), 9, mode="wrap")
    phase = np.digitize(field, np.quantile(field, [0.35, 0.7]))
    image = np.clip(0.25 + 0.25 * phase + rng.normal(0, noise, phase.shape), 0, 1)
    seg = ss.segment(image, "classes", rng=0, sweeps=20)
    together = seg.labels[:, :-1] == seg.labels[:, 1:]
    assert seg.n_clusters == 3
    assert np.mean(together == (phase[:, :-1] == phase[:, 1:])) > 0.93


def test_noise_alone_is_one_class_or_the_chains_disagree():
    """Of images this small, 16 of 40 had more classes, and no chains that agreed; of 192 x 192 pixels, none of 16."""
    images = (np.clip(0.5 + np.random.default_rng(seed).normal(0, 0.15, (96, 96)), 0, 1) for seed in range(9, 15))
    found = (ss.segment(image, "classes", rng=0) for image in images)
    assert len(list(islice((seg for seg in found if seg.n_clusters == 1 or not seg.diagnostics.converged), 5))) == 5
