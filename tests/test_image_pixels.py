"""Whatever comes in as an image becomes the same picture, and bad input one clear line."""

import numpy as np
import pytest
from skimage import color, data

from spinseg.image.pixels import Picture, as_picture, cielab

RGB = data.astronaut()[100:140, 60:120]


@pytest.mark.parametrize(
    "same",
    [
        RGB.astype(np.uint16) * 257,
        (RGB.astype(np.uint16) * 257).astype(">u2"),
        RGB.astype(np.int64),
        RGB.astype(np.float32),
        RGB.astype(np.float64),
        RGB / 255,
        (RGB / 255).astype(np.float32),
        RGB * np.float32(1 / 255),
        RGB[..., ::-1].copy()[..., ::-1],
        np.asfortranarray(RGB),
        RGB.tolist(),
        np.dstack([RGB, np.full(RGB.shape[:2], 255, np.uint8)]),
    ],
    ids=[
        "uint16",
        "big-endian",
        "int64",
        "float32-255",
        "float64-255",
        "float64",
        "float32",
        "float32-rounded",
        "view",
        "fortran",
        "list",
        "rgba",
    ],
)
def test_dtype_and_value_range_do_not_matter(same):
    expected = as_picture(RGB)
    assert np.array_equal(as_picture(same).codes, expected.codes)
    assert np.array_equal(as_picture(same).colours, expected.colours)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, bool])
def test_the_input_is_never_changed_and_never_shared(dtype):
    image = (RGB > 128) if dtype is bool else RGB.astype(dtype)
    kept = image.copy()
    picture = as_picture(image)
    picture.codes[:] = 7
    assert np.array_equal(image, kept)


def test_grey_is_the_colour_image_with_equal_channels():
    grey = RGB[..., 0]
    expected = as_picture(np.dstack([grey] * 3))
    for same in [grey, grey[..., None], grey / 255]:
        assert np.array_equal(as_picture(same).codes, expected.codes)
    assert np.abs(expected.colours[..., 1:]).max() < 0.01


def test_rgba_lies_on_white():
    image = np.array([[[200, 100, 0, 255], [200, 100, 0, 0], [200, 100, 0, 51]]], np.uint8)
    assert as_picture(image).rgb.tolist() == [[[200, 100, 0], [255, 255, 255], [244, 224, 204]]]


@pytest.mark.parametrize(
    ("given", "axis", "shape", "n_channels"),
    [
        ((5, 6), "auto", (5, 6), 3),
        ((5, 6, 3), "auto", (5, 6), 3),
        ((5, 6, 2), "auto", (5, 6), 2),
        ((5, 6, 7), "auto", (5, 6, 7), 3),
        ((5, 6, 7), -1, (5, 6), 7),
        ((7, 5, 6), 0, (5, 6), 7),
        ((4, 5, 6), 0, (5, 6), 4),
        ((5, 6, 4), "auto", (5, 6), 3),
        ((5, 6, 4), -1, (5, 6), 4),
        ((5, 6, 3), None, (5, 6, 3), 3),
        ((4, 5, 6, 3), "auto", (4, 5, 6), 3),
        ((9, 4, 5, 6), 0, (4, 5, 6), 9),
        ((1, 1), "auto", (1, 1), 3),
    ],
)
def test_axes(given, axis, shape, n_channels):
    image = np.random.default_rng(0).integers(0, 256, given).astype(np.uint8)
    picture = as_picture(image, channel_axis=axis)
    assert picture.shape == shape and picture.n_channels == n_channels
    assert picture.values.shape == picture.colours.shape == (*shape, n_channels)
    assert picture.values.dtype == picture.colours.dtype == np.float32
    assert picture.rgb.shape == (*shape, 3) and picture.rgb.dtype == np.uint8


def test_channels_keep_their_proportions_and_their_order():
    image = np.zeros((2, 2, 6))
    image[0, 0] = [-10, 0, 10, 20, 30, 40]
    values = as_picture(image, channel_axis=-1).values
    np.testing.assert_allclose(values[0, 0], [0, 0.2, 0.4, 0.6, 0.8, 1.0], atol=1e-5)
    np.testing.assert_allclose(values[1, 1], 0.2, atol=1e-5)


def test_a_picture_in_0_to_1_may_overshoot():
    image = np.linspace(0, 1.08, 12).reshape(3, 4)
    np.testing.assert_allclose(as_picture(image).values[..., 0], image / 1.08, atol=1e-5)


def test_a_picture_passes_as_it_is():
    picture = as_picture(RGB)
    assert as_picture(picture) is picture


def test_black_to_white_is_a_distance_of_100_in_any_number_of_channels():
    for n_channels in (1, 2, 3, 5, 12):
        ends = np.array([np.zeros(n_channels), np.ones(n_channels)])[None]
        colours = as_picture(ends, channel_axis=-1).colours[0]
        assert np.linalg.norm(colours[1] - colours[0]) == pytest.approx(100, abs=0.01)


def test_cielab_is_that_of_skimage():
    steps = np.concatenate([np.arange(0, 30), np.arange(30, 256, 15), [254, 255]])
    rgb = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 1, 3).astype(np.uint8)
    assert np.abs(cielab(as_picture(rgb).codes) - color.rgb2lab(rgb)).max() < 2e-3


def test_mask_hides_what_is_not_finite_and_has_a_say_in_the_range():
    image = np.array([[0.0, 1.0], [np.nan, 1e30]])
    picture = as_picture(image, mask=[[True, True], [False, False]])
    assert picture.rgb[..., 0].tolist() == [[0, 255], [0, 255]]


@pytest.mark.parametrize(
    ("image", "keywords", "message"),
    [
        (np.zeros((0, 5)), {}, "image must hold at least one pixel; received (0, 5)"),
        (np.zeros((5, 5, 0)), {}, "image must hold at least one pixel; received (5, 5, 0)"),
        (np.zeros(5), {}, "image must have two or three axes, and one of channels or none; received (5,)"),
        (
            np.zeros((2, 2, 2, 2, 2)),
            {},
            "image must have two or three axes, and one of channels or none; received (2, 2, 2, 2, 2)",
        ),
        (7, {}, "image must have two or three axes, and one of channels or none; received ()"),
        (
            np.zeros((3, 4)),
            {"channel_axis": 0},
            "image must have two or three axes, and one of channels or none; received (3, 4)",
        ),
        (
            np.zeros((3, 4)),
            {"channel_axis": 2},
            "channel_axis must be None, 'auto' or an axis of the image of 2 axes; received 2",
        ),
        (
            np.zeros((3, 4)),
            {"channel_axis": "last"},
            "channel_axis must be None, 'auto' or an axis of the image of 2 axes; received 'last'",
        ),
        (np.array([[1.0, np.nan]]), {}, "image must hold finite numbers; received nan"),
        (np.array([[1.0, np.inf]]), {}, "image must hold finite numbers; received inf"),
        (
            np.array([[1.0, np.nan]]),
            {"mask": [[False, True]]},
            "image must hold finite numbers inside the mask; received nan",
        ),
        (np.array([["a", "b"]]), {}, "image must be an array of numbers; received 'str32'"),
        (np.zeros((3, 3), complex), {}, "image must be an array of numbers; received 'complex128'"),
        ("cat.jpg", {}, "image must be an array of numbers; received 'str224'"),
        ([[1, 2], [3]], {}, "image must be an array of numbers; received [[1, 2], [3]]"),
        (np.zeros((3, 4)), {"mask": np.ones((4, 3), bool)}, "mask must have the image's shape (3, 4); received (4, 3)"),
        (np.zeros((3, 4)), {"mask": np.zeros((3, 4), bool)}, "mask must leave some pixel inside; received 'all False'"),
        (
            np.zeros((3, 4)),
            {"mask": np.ones((3, 4))},
            "mask must be True inside and False outside; received 'float64'",
        ),
    ],
)
def test_bad_images_are_refused_in_one_line(image, keywords, message):
    with pytest.raises(ValueError) as caught:
        as_picture(image, **keywords)
    assert str(caught.value) == message


def test_a_picture_is_frozen():
    with pytest.raises(AttributeError):
        as_picture(RGB).codes = None
    assert isinstance(as_picture(RGB), Picture)
