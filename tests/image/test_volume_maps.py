"""Boundary maps of volumes: the network in three planes."""

import numpy as np
import pytest

import spinseg as ss
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.image.boundary.volumes import volume_maps


class Seen(BoundaryNetwork):
    """A network whose log-odds are the first two channels of what it sees."""

    def __init__(self):
        self.shapes = []

    def log_odds(self, rgb, min_side):
        self.shapes.append(rgb.shape)
        return np.ascontiguousarray(np.moveaxis(rgb[..., :2], -1, 0))


def doubled(values, axis):
    """Linear interpolation at a quarter and at three quarters of each step; constant beyond the ends."""
    around = np.moveaxis(values, axis, 0)
    before, after = np.concatenate([around[:1], around[:-1]]), np.concatenate([around[1:], around[-1:]])
    pairs = np.stack([0.75 * around + 0.25 * before, 0.75 * around + 0.25 * after], axis=1)
    return np.moveaxis(pairs.reshape(-1, *around.shape[1:]), 0, axis)


def test_a_voxel_has_the_largest_log_odds_of_three_enlarged_planes():
    values = np.random.default_rng(0).random((8, 9, 10, 3))
    picture, network = ss.as_picture(values, channel_axis=-1, channel_kind="color"), Seen()
    maps = volume_maps(picture, network, 20.0)
    assert sorted(network.shapes) == sorted([(18, 20, 3)] * 8 + [(16, 20, 3)] * 9 + [(16, 18, 3)] * 10)
    expected = np.full((8, 9, 10, 2), -np.inf)
    for first, second in ((1, 2), (0, 2), (0, 1)):
        large = doubled(doubled(picture.values[..., :2], first), second)
        blocks = [large.take(range(i, large.shape[first], 2), first) for i in (0, 1)]
        parts = [block.take(range(i, block.shape[second], 2), second) for block in blocks for i in (0, 1)]
        expected = np.maximum(expected, np.max(parts, axis=0))
    np.testing.assert_allclose(maps.network, np.moveaxis(expected, -1, 0), rtol=1e-5)


@pytest.mark.parametrize("axis", range(3))
def test_a_stack_of_few_planes_is_seen_from_above_alone(axis):
    values = np.moveaxis(np.random.default_rng(0).random((7, 9, 10, 3)), 0, axis)
    network = Seen()
    maps = volume_maps(ss.as_picture(values, channel_axis=-1, channel_kind="color"), network, 20.0)
    assert network.shapes == [(18, 20, 3)] * 7 and np.isfinite(maps.network).all()


@pytest.mark.parametrize("axis", range(3))
def test_a_wall_across_any_axis_is_seen_where_it_is(axis):
    volume = np.moveaxis(np.broadcast_to((np.arange(20) >= 12) * 1.0, (14, 16, 20)), -1, axis)
    picture = ss.as_picture(np.repeat(volume[..., None], 3, axis=-1), channel_axis=-1, channel_kind="color")
    maps = volume_maps(picture, BoundaryNetwork.fitted("measured"), 20.0)
    across = np.moveaxis(maps.network[0], axis, 0)
    assert set(across.argmax(axis=0).ravel().tolist()) <= {11, 12}
    assert across[11:13].min() > 0 > across[[2, 3, 4, 17, 18]].max()
    relief = np.moveaxis(maps.relief, axis, 0).mean(axis=(1, 2))
    assert relief[11:13].min() > 10 > relief[:8].max()
