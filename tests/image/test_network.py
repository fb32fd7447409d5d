"""The boundary network as matrix products, against plain correlations."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.signal import correlate

import spinseg as ss
from spinseg.image.boundary import network
from spinseg.image.boundary.network import BoundaryNetwork, convolve, network_cues

WIDTHS = (4, 6, 5)


def weights(rng) -> dict[str, np.ndarray]:
    """Of a small network with three levels."""
    shapes = {"head": (8, WIDTHS[0], 1)}
    for level, (n_in, n) in enumerate(zip((12, *WIDTHS), WIDTHS, strict=False)):
        shapes |= {f"down{level}0": (n, n_in, 3), f"down{level}1": (n, n, 3)}
    for level, (n, n_below) in enumerate(pairwise(WIDTHS)):
        shapes |= {f"lateral{level}": (n, n_below, 1), f"up{level}": (n, n, 3)}
    stored = {}
    for name, (n_out, n_in, size) in shapes.items():
        stored[f"{name}.weight"] = rng.normal(0, 0.4, (n_out, n_in, size, size))
        stored[f"{name}.bias"] = rng.normal(0, 0.3, n_out)
    return stored


def plain_convolve(x, weight, bias):
    maps = [sum(correlate(x[c], kernel[c], "same") for c in range(len(x))) for kernel in weight]
    return np.stack(maps) + bias[:, None, None]


def plain_log_odds(stored, rgb):
    """The definition, one pixel block at a time."""

    def block(name, x):
        return np.maximum(plain_convolve(x, stored[f"{name}.weight"], stored[f"{name}.bias"]), 0)

    height, width = rgb.shape[:2]
    x = np.pad(rgb, ((0, -height % 32), (0, -width % 32), (0, 0))) - 0.5
    x = np.stack([x[dy::2, dx::2, c] for c in range(3) for dy in (0, 1) for dx in (0, 1)])
    levels = []
    for level in range(len(WIDTHS)):
        if level:
            x = np.stack([x[:, dy::2, dx::2] for dy in (0, 1) for dx in (0, 1)]).max(axis=0)
        x = block(f"down{level}1", block(f"down{level}0", x))
        levels.append(x)
    for level in range(len(WIDTHS) - 2, -1, -1):
        x = block(f"up{level}", levels[level] + block(f"lateral{level}", x).repeat(2, axis=1).repeat(2, axis=2))
    x = plain_convolve(x, stored["head.weight"], stored["head.bias"])
    whole = np.empty((2, 2 * x.shape[1], 2 * x.shape[2]))
    for c, dy, dx in np.ndindex(2, 2, 2):
        whole[c, dy::2, dx::2] = x[4 * c + 2 * dy + dx]
    return whole[:, :height, :width]


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("block_bytes", [1, 3_000, 2**20])
def test_a_convolution_is_a_sum_of_correlations_whatever_the_blocks(size, block_bytes, monkeypatch):
    monkeypatch.setattr(network, "BLOCK_BYTES", block_bytes)
    rng = np.random.default_rng(size)
    x, bias = rng.normal(size=(3, 13, 9)), rng.normal(size=4)
    weight = rng.normal(size=(4, 3, size, size))
    found = convolve(*(array.astype(np.float32) for array in (x, weight, bias)))
    np.testing.assert_allclose(found, plain_convolve(x, weight, bias), atol=1e-4)


@pytest.mark.parametrize("shape", [(32, 64), (45, 70), (1, 1)])
def test_the_network_is_its_definition(shape):
    rng = np.random.default_rng(3)
    stored, rgb = weights(rng), rng.random((*shape, 3))
    found = BoundaryNetwork(stored).log_odds(rgb.astype(np.float32))
    assert found.shape == (2, *shape) and found.dtype == np.float32
    np.testing.assert_allclose(found, plain_log_odds(stored, rgb), atol=1e-3)


def test_the_cues_are_means_along_boundaries():
    sites = np.array([[0, 0, 1], [0, 2, 1]])
    odds = np.stack([np.arange(6.0).reshape(2, 3), -np.arange(6.0).reshape(2, 3)])
    cues = network_cues(odds, sites, ss.SiteGraph(3, [[0, 1], [0, 2], [1, 2]]).edges)
    np.testing.assert_allclose(cues["network1"], [2, 4, 5])  # the larger of the two pixels of each pair
    np.testing.assert_allclose(cues["network3"], [-1, (-1 - 3) / 2, -4])
