"""Filters against SciPy, and the boundary maps of an image."""

import random

import numpy as np
import pytest
from scipy import ndimage

from spinseg.image.boundary.maps import (
    N_TEXTONS,
    boundary_maps,
    double,
    filter_responses,
    filter_separable,
    gaussian,
    gaussian_gradient,
    halve,
    max_oriented_gradient,
    structure_tensor_norm,
)
from spinseg.image.picture import as_picture

SHAPES = [(1, 1), (1, 7), (6, 1), (3, 5), (24, 37)]


def some_maps(shape, n_maps=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n_maps, *shape)).astype(np.float32)


def filtered(maps, across, down):
    """By SciPy, in double precision."""
    rows = ndimage.correlate1d(maps.astype(float), across.astype(float), axis=2, mode="reflect")
    return ndimage.correlate1d(rows, down.astype(float), axis=1, mode="reflect")


def in_direction(found, angle):
    dx, dy, _ = found
    return np.cos(angle) * dx.astype(float) + np.sin(angle) * dy.astype(float)


def largest_change(found):
    changes = [np.abs(in_direction(found, np.pi * step / 8)).sum(axis=0) / 2 for step in range(8)]
    return np.max(changes, axis=0)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 7), (25, 31)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_filtering_is_scipys_correlation_with_mirrored_borders(shape, sizes):
    maps = np.asfortranarray(some_maps(shape))[:, ::-1].astype(np.float64)  # of any layout
    before = maps.copy()
    across, down = (np.random.default_rng(size).normal(size=size).astype(np.float32) for size in sizes)
    found, expected = filter_separable(maps, across, down), filtered(maps, across, down)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))
    np.testing.assert_array_equal(maps, before)


@pytest.mark.parametrize("scale", [0.7, 1.0, 1.5, 3.0])
def test_weights_are_those_of_a_gaussian_and_its_derivatives(scale):
    """Their sums make a step of height 1 a response of 1; a second derivative ignores planes."""
    x = np.arange(-np.floor(3 * scale + 0.5), np.floor(3 * scale + 0.5) + 1)
    bell = np.exp(-(x**2) / (2 * scale**2))
    curved = (x**2 / scale**2 - 1) * bell
    curved -= curved.mean()
    for order, expected, total in ((0, bell, 1), (1, x * bell, 2), (2, curved, 2)):
        np.testing.assert_allclose(
            gaussian(scale, order), total * expected / np.abs(expected).sum(), rtol=1e-5, atol=1e-7
        )
    maps = some_maps((23, 31))
    dx, dy, _ = gaussian_gradient(maps, scale)
    np.testing.assert_allclose(dx, filtered(maps, gaussian(scale, 1), gaussian(scale)), atol=1e-5)
    np.testing.assert_allclose(dy, filtered(maps, gaussian(scale), gaussian(scale, 1)), atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_oriented_gradients_and_structure_tensors_are_largest_over_directions(shape):
    found = some_maps(shape, 5, seed=1), some_maps(shape, 5, seed=2), 1
    np.testing.assert_allclose(max_oriented_gradient(found), largest_change(found), rtol=1e-5)
    angles = np.pi * np.arange(3600) / 3600
    lengths = [np.sqrt(np.square(in_direction(found, angle)).sum(axis=0)) for angle in angles]
    np.testing.assert_allclose(structure_tensor_norm(found), np.max(lengths, axis=0), rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (4, 6), (5, 7)], ids=str)
def test_halves_are_means_of_blocks_and_doubles_repeat_them(shape):
    maps = some_maps(shape)
    found = halve(maps)
    height, width = shape
    assert found.shape == (2, (height + 1) // 2, (width + 1) // 2) and found.dtype == np.float32
    for m, y, x in np.ndindex(found.shape):
        below, beside = min(2 * y + 1, height - 1), min(2 * x + 1, width - 1)
        block = [maps[m, j, i] for j in (2 * y, below) for i in (2 * x, beside)]
        assert found[m, y, x] == pytest.approx(np.mean(block), abs=1e-6)
    back = double(found[0], shape)
    assert back.shape == shape
    assert all(back[y, x] == found[0, y // 2, x // 2] for y, x in np.ndindex(shape))


def every_number(maps):
    changes = [*maps.color.values(), *maps.histogram.values()]
    return [*(part for found in changes for part in found[:2]), maps.relief, maps.textons, maps.responses]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_maps_fit_the_image_whatever_its_size_and_are_the_same_again(shape):
    picture = as_picture(np.random.default_rng(0).random((*shape, 3)))
    before, plain = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    maps = boundary_maps(picture)
    assert (np.random.get_state()[1] == before).all() and random.getstate() == plain  # noqa: NPY002
    assert maps.relief.shape == maps.textons.shape == shape
    for name, (dx, dy, stride) in (maps.color | maps.histogram).items():
        assert stride == {"g1": 1, "g2": 1, "g4": 2}.get(name, 4 if name.endswith("12") else 2)
        assert dx.shape[1:] == dy.shape[1:] == tuple(-(-length // stride) for length in shape)
    assert all(np.isfinite(numbers).all() for numbers in every_number(maps))
    assert maps.textons.min() >= 0 and maps.textons.max() < N_TEXTONS
    for one, other in zip(every_number(maps), every_number(boundary_maps(picture)), strict=True):
        np.testing.assert_array_equal(one, other)
    squares = np.square(maps.responses.reshape(*shape, 3, 5).astype(float))  # five filters at each of three scales
    np.testing.assert_allclose(maps.energies, np.sqrt(squares.mean(axis=-1)), rtol=1e-5)


def test_relief_adds_steps_of_color_changes_of_histograms_and_the_network():
    image = np.random.default_rng(6).normal(0.5, 0.1, (33, 46, 3))
    image[8:20, 10:30] += [0.2, -0.2, 0.1]
    maps = boundary_maps(as_picture(image.clip(0, 1)))
    coarse = np.zeros((33, 46))
    for name, weight in {"L3": 1.0, "C3": 1.5, "C6": 0.5, "T6": 0.5}.items():
        coarse += weight * np.kron(largest_change(maps.histogram[name]), np.ones((2, 2)))[:33, :46]
    expected = ndimage.gaussian_filter(coarse, 0.7, mode="reflect", radius=2)
    for name in ("g1", "g2"):
        tensor = np.stack(maps.color[name][:2]).astype(float)
        largest = np.linalg.svd(np.moveaxis(tensor, (0, 1), (-2, -1)), compute_uv=False)[..., 0]
        expected += largest / 20
    expected += 8 / (1 + np.exp(-maps.network[0].astype(float)))
    np.testing.assert_allclose(maps.relief, expected, rtol=1e-4, atol=1e-5)


def test_responses_are_compressed_derivatives_at_three_scales_and_half_the_size():
    lightness = 9 * some_maps((40, 52), 1)
    expected = []
    for maps, scale, stride in ((lightness, 1.0, 2), (lightness, 2.0, 2), (halve(lightness), 2.0, 1)):
        smooth, d1, d2 = (gaussian(scale, order) for order in range(3))
        for across, down in ((d1, smooth), (smooth, d1), (d2, smooth), (smooth, d2), (d1, d1)):
            response = filtered(maps, across, down)[0, ::stride, ::stride]
            expected.append(np.sign(response) * np.log(1 + np.abs(response) / 0.3))
    found = filter_responses(lightness, halve(lightness))
    np.testing.assert_allclose(found, np.stack(expected, axis=-1), atol=1e-4)


def test_textons_part_stripes_from_noise_of_the_same_color():
    gray = np.full((80, 100), 0.5)
    gray[:, :50] += 0.2 * np.where(np.arange(50) // 2 % 2, 1, -1)
    gray[:, 50:] += 0.2 * np.random.default_rng(5).choice([-1, 1], (80, 50))
    maps = boundary_maps(as_picture(gray))
    left, right = (np.bincount(half.ravel(), minlength=N_TEXTONS) for half in np.split(maps.textons, 2, axis=1))
    assert np.abs(left - right).sum() / (80 * 100) > 0.75
    change = max_oriented_gradient(maps.histogram["T12"]).mean(axis=0)
    assert 11 <= change.argmax() <= 14 and change.max() > 1.2 * change[[2, 3, 21, 22]].max()


def test_textons_do_not_depend_on_pixels_outside():
    image = np.random.default_rng(0).random((40, 60))
    other = np.where(np.arange(60) < 40, image, 0.5)
    inside = np.broadcast_to(np.arange(60) < 20, image.shape)
    found = [boundary_maps(as_picture(array), inside).textons[:, :20] for array in (image, other)]
    np.testing.assert_array_equal(*found)
