"""Filters against SciPy, brute force and known answers; the boundary maps of a picture."""

import random

import numpy as np
import pytest
from scipy import ndimage

from spinseg.image.boundary.maps import (
    N_TEXTONS,
    NETWORK_RELIEF,
    Gradient,
    boundary_maps,
    double,
    filter_responses,
    filter_separable,
    gaussian,
    gaussian_d1,
    gaussian_d2,
    gaussian_gradient,
    halve,
    max_oriented_gradient,
    structure_tensor_norm,
)
from spinseg.image.picture import as_picture

SHAPES = [(1, 1), (1, 7), (6, 1), (3, 5), (4, 4), (21, 30)]
SCALES = [0.7, 1.0, 1.5, 2.0, 3.0]
HALF_TURN = np.pi * np.arange(8) / 8


def some_maps(shape, n_maps=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n_maps, *shape)).astype(np.float32)


def some_weights(size, seed):
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


def one_hot(kinds, n_kinds):
    return np.stack([kinds == kind for kind in range(n_kinds)]).astype(np.float32)


def in_direction(found, angle):
    return np.cos(angle) * found.dx.astype(float) + np.sin(angle) * found.dy.astype(float)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 7), (9, 3), (25, 31)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_filtering_is_scipys_correlation_with_mirrored_borders(shape, sizes):
    maps = some_maps(shape)
    before = maps.copy()
    across, down = some_weights(sizes[0], 1), some_weights(sizes[1], 2)
    rows = ndimage.correlate1d(maps.astype(float), across.astype(float), axis=2, mode="reflect")
    expected = ndimage.correlate1d(rows, down.astype(float), axis=1, mode="reflect")
    found = filter_separable(maps, across, down)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()))
    np.testing.assert_array_equal(maps, before)


def test_filtering_takes_maps_of_any_layout():
    across, down = some_weights(3, 1), some_weights(5, 2)
    turned = np.asfortranarray(some_maps((8, 5)))[:, ::-1].astype(np.float64)
    plain = np.ascontiguousarray(turned, np.float32)
    np.testing.assert_array_equal(filter_separable(turned, across, down), filter_separable(plain, across, down))


@pytest.mark.parametrize("scale", SCALES)
def test_a_gaussian_sums_to_one_and_falls_as_it_should(scale):
    weights = gaussian(scale).astype(float)
    middle = weights.size // 2
    assert middle == np.floor(3 * scale + 0.5) and weights.size % 2 == 1
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(weights[middle + 1] / weights[middle], np.exp(-1 / (2 * scale**2)), rtol=1e-5)
    np.testing.assert_allclose(weights[-1] / weights[middle], np.exp(-(middle**2) / (2 * scale**2)), rtol=1e-5)
    np.testing.assert_array_equal(weights, weights[::-1])


@pytest.mark.parametrize("scale", SCALES)
def test_the_lobes_of_a_first_derivative_sum_to_one_each(scale):
    weights = gaussian_d1(scale).astype(float)
    middle = weights.size // 2
    assert weights[middle] == 0
    assert weights[middle + 1 :].sum() == pytest.approx(1, abs=1e-6) and (weights[middle + 1 :] > 0).all()
    assert weights[:middle].sum() == pytest.approx(-1, abs=1e-6) and (weights[:middle] < 0).all()
    far, near = weights[middle + 2], weights[middle + 1]
    assert far / near == pytest.approx(2 * np.exp(-3 / (2 * scale**2)), rel=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_a_second_derivative_ignores_planes_and_has_absolute_sum_two(scale):
    weights = gaussian_d2(scale).astype(float)
    places = np.arange(weights.size) - weights.size // 2
    assert weights.sum() == pytest.approx(0, abs=1e-6) and weights @ places == pytest.approx(0, abs=1e-5)
    assert np.abs(weights).sum() == pytest.approx(2, abs=1e-6)
    assert weights.argmin() == weights.size // 2 and weights @ places**2 > 0


@pytest.mark.parametrize("scale", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("height", [8.0, -8.0])
def test_a_step_edge_is_met_by_its_height_on_both_its_sides(scale, height):
    maps = np.zeros((1, 40, 40), np.float32)
    maps[:, :, 20:] = height
    found = gaussian_gradient(maps, scale)
    np.testing.assert_allclose(found.dx[:, :, 19:21], height, rtol=1e-5)
    np.testing.assert_allclose(found.dy, 0, atol=1e-5)
    assert (np.abs(found.dx[:, :, [0, 18, 21, 39]]) < abs(height) - 0.1).all()

    turned = gaussian_gradient(np.swapaxes(maps, 1, 2), scale)
    np.testing.assert_allclose(turned.dy[:, 19:21], height, rtol=1e-5)
    np.testing.assert_allclose(turned.dx, 0, atol=1e-5)


def test_steps_turn_with_the_picture():
    maps = some_maps((23, 31))
    upright, turned = gaussian_gradient(maps, 1.5), gaussian_gradient(np.rot90(maps, axes=(1, 2)), 1.5)
    np.testing.assert_allclose(turned.dx, np.rot90(upright.dy, axes=(1, 2)), atol=1e-5)
    np.testing.assert_allclose(turned.dy, -np.rot90(upright.dx, axes=(1, 2)), atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_maximal_oriented_gradient_is_the_largest_over_eight_directions(shape):
    found = Gradient(some_maps(shape, 5, seed=1), some_maps(shape, 5, seed=2), 1)
    largest = np.max([0.5 * np.abs(in_direction(found, angle)).sum(axis=0) for angle in HALF_TURN], axis=0)
    np.testing.assert_allclose(max_oriented_gradient(found), largest, rtol=1e-5)


def test_the_change_of_histograms_is_from_zero_to_one():
    kinds = np.random.default_rng(4).integers(0, 6, (30, 40))
    kinds[:, 20:] += 6
    kinds[5:15, 5:15] = 0
    change = max_oriented_gradient(gaussian_gradient(one_hot(kinds, 12), 3.0))
    assert change.min() >= 0 and change.max() <= 1 + 1e-5
    np.testing.assert_allclose(change[:, 19:21], 1, atol=0.01)
    assert change[15, 30] < 0.5
    np.testing.assert_allclose(
        max_oriented_gradient(gaussian_gradient(one_hot(np.zeros((9, 9)), 2), 1.5)), 0, atol=1e-6
    )


def test_the_structure_tensor_norm_is_the_largest_over_all_directions():
    found = Gradient(some_maps((7, 9), 3, seed=1), some_maps((7, 9), 3, seed=2), 1)
    angles = np.pi * np.arange(3600) / 3600
    lengths = [np.sqrt(np.square(in_direction(found, angle)).sum(axis=0)) for angle in angles]
    np.testing.assert_allclose(structure_tensor_norm(found), np.max(lengths, axis=0), rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 1), (2, 2), (4, 6), (5, 7), (4, 3)], ids=str)
def test_halves_are_means_of_blocks_and_doubles_repeat_them(shape):
    maps = some_maps(shape, 2)
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


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (3, 5), (24, 37)], ids=str)
def test_maps_fit_the_picture_whatever_its_size(shape):
    picture = as_picture(np.random.default_rng(0).random((*shape, 3)))
    maps = boundary_maps(picture)
    assert maps.relief.shape == maps.textons.shape == shape
    assert maps.responses.shape == (*shape, 15) and maps.energies.shape == (*shape, 3)
    assert list(maps.color) == ["g1", "g2", "g4"]
    assert set(maps.histogram) == {"L3", "C3", "L6", "L12", "C6", "C12", "T6", "T12"}
    for name, found in (maps.color | maps.histogram).items():
        size = {"g1": 1, "g2": 1, "g4": 2}.get(name, 4 if name.endswith("12") else 2)
        assert found.stride == size
        assert found.dx.shape[1:] == found.dy.shape[1:] == tuple(-(-length // size) for length in shape)
    assert all(np.isfinite(numbers).all() for numbers in every_number(maps))
    assert maps.relief.min() >= 0 and maps.responses.min() >= 0
    assert maps.textons.min() >= 0 and maps.textons.max() < N_TEXTONS


def test_a_flat_picture_has_no_relief():
    maps = boundary_maps(as_picture(np.full((30, 41, 3), [0.2, 0.7, 0.4])))
    assert maps.network.max() < -3  # near the border of the picture; less elsewhere
    np.testing.assert_allclose(maps.relief, NETWORK_RELIEF / (1 + np.exp(-maps.network[0])), atol=1e-4)
    np.testing.assert_allclose(maps.responses, 0, atol=1e-3)


@pytest.mark.parametrize("change", [(0.3, 0.3, 0.3), (0.3, -0.15, 0.0)], ids=["lightness", "chroma"])
def test_relief_is_highest_along_a_painted_boundary(change):
    image = np.random.default_rng(1).normal(0.5, 0.02, (50, 61, 3))
    image[:, 27:] += change
    maps = boundary_maps(as_picture(image.clip(0, 1)))
    assert set(maps.relief.argmax(axis=1)) <= {26, 27}
    assert maps.relief[:, 26:28].min() > 2 * maps.relief[:, np.r_[:18, 36:61]].max()

    turned = boundary_maps(as_picture(np.swapaxes(image, 0, 1).clip(0, 1)))
    assert set(turned.relief.argmax(axis=0)) <= {26, 27}


def test_relief_adds_steps_of_colour_changes_of_histograms_and_the_network():
    image = np.random.default_rng(6).normal(0.5, 0.1, (33, 46, 3))
    image[8:20, 10:30] += [0.2, -0.2, 0.1]
    maps = boundary_maps(as_picture(image.clip(0, 1)))
    coarse = np.zeros((33, 46))
    for name, weight in {"L3": 1.0, "C3": 1.5, "C6": 0.5, "T6": 0.5}.items():
        changes = [np.abs(in_direction(maps.histogram[name], angle)).sum(axis=0) / 2 for angle in HALF_TURN]
        coarse += weight * np.kron(np.max(changes, axis=0), np.ones((2, 2)))[:33, :46]
    expected = ndimage.gaussian_filter(coarse, 0.7, mode="reflect", radius=2)
    for name in ("g1", "g2"):
        tensor = np.stack([maps.color[name].dx, maps.color[name].dy]).astype(float)
        largest = np.linalg.svd(np.moveaxis(tensor, (0, 1), (-2, -1)), compute_uv=False)[..., 0]
        expected += largest / 20
    expected += 8 / (1 + np.exp(-maps.network[0].astype(float)))
    np.testing.assert_allclose(maps.relief, expected, rtol=1e-4, atol=1e-5)


def test_the_same_picture_has_the_same_maps_and_nobody_elses_luck_changes():
    picture = as_picture(np.random.default_rng(2).random((70, 80, 3)))
    before, plain = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    first = boundary_maps(picture)
    assert (np.random.get_state()[1] == before).all() and random.getstate() == plain  # noqa: NPY002
    for one, other in zip(every_number(first), every_number(boundary_maps(picture)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_energies_are_roots_of_mean_squares_of_the_five_responses_of_a_scale():
    maps = boundary_maps(as_picture(np.random.default_rng(3).random((9, 11, 3))))
    for scale in range(3):
        squares = np.square(maps.responses[..., 5 * scale : 5 * scale + 5].astype(float))
        np.testing.assert_allclose(maps.energies[..., scale], np.sqrt(squares.mean(axis=-1)), rtol=1e-5)


@pytest.mark.parametrize("scale", [0, 1, 2])
def test_responses_tell_the_direction_the_sign_and_the_scale(scale):
    lightness = np.zeros((1, 80, 80), np.float32)
    lightness[:, :, 40:] = 6
    across = filter_responses(lightness, halve(lightness))
    down = filter_responses(-np.swapaxes(lightness, 1, 2), -np.swapaxes(halve(lightness), 1, 2))
    first = 5 * scale
    np.testing.assert_allclose(across[:, 20, first], np.log(1 + 6 / 0.3), rtol=1e-4)
    np.testing.assert_allclose(down[20, :, first + 1], -np.log(1 + 6 / 0.3), rtol=1e-4)
    np.testing.assert_allclose(across[..., [first + 1, first + 3, first + 4]], 0, atol=1e-4)
    np.testing.assert_allclose(down[..., [first, first + 2, first + 4]], 0, atol=1e-4)
    assert across[20, 19, first + 2] > 0.5 > -0.5 > across[20, 20, first + 2]
    reach = np.flatnonzero(np.abs(across[20, :, first]) > 1e-3)
    assert np.ptp(reach) == pytest.approx([3, 6, 12][scale], abs=1)
    lightness[:, :40] = 0  # now there is a corner
    found = filter_responses(lightness, halve(lightness))
    np.testing.assert_allclose(found[20, 20, first + 4], np.log(1 + 6 / 0.3), rtol=1e-4)


def test_textons_part_stripes_from_noise_of_the_same_colour():
    rng = np.random.default_rng(5)
    gray = np.full((80, 100), 0.5)
    gray[:, :50] += 0.2 * np.where(np.arange(50) // 2 % 2, 1, -1)
    gray[:, 50:] += 0.2 * rng.choice([-1, 1], (80, 50))
    assert abs(gray[:, :50].mean() - gray[:, 50:].mean()) < 0.02
    maps = boundary_maps(as_picture(gray))
    left = np.bincount(maps.textons[:, :44].ravel(), minlength=N_TEXTONS) / (80 * 44)
    right = np.bincount(maps.textons[:, 56:].ravel(), minlength=N_TEXTONS) / (80 * 44)
    assert np.abs(left - right).sum() / 2 > 0.8
    change = max_oriented_gradient(maps.histogram["T12"]).mean(axis=0)
    assert 11 <= change.argmax() <= 14 and change.max() > 1.2 * change[[2, 3, 21, 22]].max()


def test_textons_do_not_depend_on_pixels_outside():
    rng = np.random.default_rng(0)
    image = rng.random((40, 60))
    other = image.copy()
    other[:, 40:] = 0.5
    inside = np.zeros(image.shape, bool)
    inside[:, :20] = True
    found = [boundary_maps(as_picture(array), inside).textons[:, :20] for array in (image, other)]
    np.testing.assert_array_equal(*found)
