"""Rendered volumes: their ground truth is what was drawn."""

import numpy as np
import pytest
from scipy import ndimage

from studies.scenes import light
from studies.volume_scenes import RENDERERS, balls, long_blur, render_volume

SHAPE = (20, 36, 32)


@pytest.mark.parametrize("kind", RENDERERS)
def test_regions_are_connected_and_numbered_and_values_are_from_0_to_1(kind):
    for seed in range(2):
        scene, again, other = (
            render_volume(kind, SHAPE, np.random.default_rng([3, s])) for s in (seed, seed, seed + 9)
        )
        assert scene.image.shape == (*SHAPE, 1) and scene.labels.shape == SHAPE
        assert scene.image.min() >= 0 and scene.image.max() <= 1
        np.testing.assert_array_equal(np.unique(scene.labels), np.arange(scene.kinds.size))
        assert all(ndimage.label(scene.labels == region)[1] == 1 for region in range(scene.kinds.size))
        np.testing.assert_array_equal(scene.image, again.image)
        assert not np.array_equal(scene.image, other.image)


def test_balls_are_brighter_than_the_background_around_them_and_some_touch():
    touching = 0
    for seed in range(4):
        scene = balls(SHAPE, np.random.default_rng([4, seed]))
        ground, level = np.flatnonzero(scene.kinds == 0), scene.image[..., 0]
        is_ball = scene.kinds[scene.labels] == 1
        assert 0 < is_ball.mean() < 0.7 and ground.size >= 1
        assert level[is_ball].mean() > level[~is_ball].mean() + 0.1
        here, there = scene.labels[:, 1:], scene.labels[:, :-1]
        touching += np.count_nonzero((here != there) & (scene.kinds[here] == 1) & (scene.kinds[there] == 1))
    assert touching > 0


def test_the_blur_of_a_volume_is_longest_along_the_first_axis():
    point = np.zeros((21, 21, 21, 1))
    point[10, 10, 10] = 1
    spread = np.zeros(3)
    for seed in range(8):
        seen = long_blur(point, np.random.default_rng(seed))[..., 0]
        assert seen.sum() == pytest.approx(1)
        spread += [(seen.sum(axis=tuple({0, 1, 2} - {axis})) * (np.arange(21) - 10) ** 2).sum() for axis in range(3)]
    assert spread[0] > 1.5 * spread[1] and spread[1] == pytest.approx(spread[2])


def test_light_of_a_volume_falls_along_every_axis():
    field = light(SHAPE, 0.5, np.random.default_rng(1))
    assert field.shape == SHAPE
    assert field.max() == pytest.approx(1) and field.min() == pytest.approx(np.exp(-0.5))
    assert all(np.abs(np.diff(field, axis=axis)).max() > 0 for axis in range(3))
