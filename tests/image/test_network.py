"""The boundary network against SciPy's correlations and PyTorch."""

from pathlib import Path

import numpy as np
import pytest
from scipy.signal import correlate

from spinseg.image.boundary import network
from spinseg.image.boundary.network import BoundaryNetwork, convolve, span_seen
from spinseg.image.picture import as_picture


def plain_convolve(x, weight, bias):
    maps = [sum(correlate(x[c], kernel[c], "same") for c in range(len(x))) for kernel in weight]
    return np.stack(maps) + bias[:, None, None]


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_convolution_is_a_sum_of_correlations_whatever_the_blocks(size, monkeypatch):
    rng = np.random.default_rng(size)
    arrays = rng.normal(size=(3, 13, 9)), rng.normal(size=(4, 3, size, size)), rng.normal(size=4)
    for block_bytes in (1, 3_000, 2**20):
        monkeypatch.setattr(network, "BLOCK_BYTES", block_bytes)
        found = convolve(*(array.astype(np.float32) for array in arrays))
        np.testing.assert_allclose(found, plain_convolve(*arrays), atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "before", "after"),
    [((176, 160), (16, 16), (32, 16)), ((175, 185), (16, 16), (33, 23)), ((100, 1), (46, 95), (46, 96))],
)
def test_an_image_is_continued_as_in_a_mirror(shape, before, after):
    rgb = np.random.default_rng(3).random((*shape, 3)).astype(np.float32)
    found = BoundaryNetwork.fitted().log_odds(rgb)
    assert found.shape == (2, *shape) and found.dtype == np.float32
    continued = np.pad(rgb, [*zip(before, after, strict=True), (0, 0)], mode="symmetric")
    known = BoundaryNetwork.fitted().convolve_all(np.moveaxis(continued, -1, 0))
    known = known[:, before[0] :, before[1] :][:, : shape[0], : shape[1]]
    np.testing.assert_allclose(found, known, atol=1e-3)


def test_the_network_of_the_package_computes_what_pytorch_computes():
    """`studies/training/reference_output.py` stored PyTorch's output in 16 bits, of a picture continued by zeros."""
    with np.load(Path(__file__).with_name("network_reference.npz")) as stored:
        picture, known = stored["picture"], stored["log_odds"].astype(np.float32)
    height, width = picture.shape[:2]
    x = np.zeros((3, height + -height % 32, width + -width % 32), np.float32)
    x[:, :height, :width] = np.moveaxis(as_picture(picture).values, -1, 0)
    found = BoundaryNetwork.fitted().convolve_all(x)[:, :height, :width]
    assert np.ptp(known) > 8
    assert np.abs(found - known).max() < 0.02


def test_windows_leave_no_seams(monkeypatch):
    """Also where neither the windows nor the image are multiples of a cell."""
    image = np.random.default_rng(0).random((24, 700, 3)).astype(np.float32)
    whole = BoundaryNetwork.fitted().log_odds(image)
    monkeypatch.setattr(network, "WINDOW", 150)
    assert np.abs(BoundaryNetwork.fitted().log_odds(image) - whole).max() < 1e-3
    monkeypatch.setattr(network, "REACH", 2 * network.CELL)
    assert np.abs(BoundaryNetwork.fitted().log_odds(image) - whole).max() > 0.1


@pytest.mark.parametrize("step", [1, 3])
def test_what_a_span_depends_on_begins_with_a_cell(step):
    seen = span_seen(slice(700, 790), 5000, step)
    assert seen.start % (32 * step) == 0
    assert seen.start <= max(0, 700 - 192 * step) and seen.stop >= 790 + 192 * step
    assert span_seen(slice(10, 20), 100, step) == slice(0, 100)
