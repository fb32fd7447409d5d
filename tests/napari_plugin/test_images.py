"""From layers of napari to images, and where other layers lie on them, without napari."""

import numpy as np
import pytest

import spinseg as ss
from spinseg import InvalidInput
from spinseg.napari_plugin.layers import image_of


def layer(array, name="cells", kind="image", rgb=False, axis_labels=None, **more):
    """What `Layer.as_layer_data_tuple` of napari returns, as far as it is read."""
    n_axes = array.ndim - rgb
    attributes = {
        "name": name,
        "rgb": rgb,
        "multiscale": False,
        "scale": [1.0] * n_axes,
        "translate": [0.0] * n_axes,
        "units": ("pixel",) * n_axes,
        "axis_labels": axis_labels or tuple(str(axis - n_axes) for axis in range(n_axes)),
        "rotate": np.eye(n_axes),
        "shear": np.zeros(n_axes),
        "affine": np.eye(n_axes + 1),
    }
    return array, attributes | more, kind


def zeros(*shape):
    return np.zeros(shape, np.uint8)


NAMED = layer(zeros(5, 30, 40), axis_labels=("Channel", "y", "x"))


@pytest.mark.parametrize(
    ("layers", "asked", "channel_axis", "axes"),
    [
        ([layer(zeros(30, 40))], "auto", None, (0, 1)),
        ([layer(zeros(5, 30, 40))], "auto", None, (0, 1, 2)),
        ([layer(zeros(5, 30, 40))], 0, 0, (1, 2)),
        ([NAMED], "auto", 0, (1, 2)),
        ([NAMED], None, None, (0, 1, 2)),
        ([layer(zeros(30, 40, 3), rgb=True)], "auto", "auto", (0, 1)),
        ([layer(zeros(30, 40, 3), rgb=True)], 0, "auto", (0, 1)),
        ([layer(zeros(5, 30, 40, 3), rgb=True)], "auto", "auto", (0, 1, 2)),
        ([layer(zeros(80, 90, 5))], "auto", 2, (0, 1)),
        ([layer(zeros(30, 40, 4))], "auto", 2, (0, 1)),
        ([layer(zeros(5, 30, 40, 2))], "auto", 3, (0, 1, 2)),
        ([layer(zeros(2, 5, 30, 40))], 0, 0, (1, 2, 3)),
        ([layer(zeros(30, 40)), layer(zeros(30, 40), "nuclei")], "auto", -1, (0, 1)),
        ([layer(zeros(5, 30, 40)), layer(zeros(5, 30, 40), "nuclei")], "auto", -1, (0, 1, 2)),
    ],
)
def test_axes_are_read_as_napari_shows_them(layers, asked, channel_axis, axes):
    image = image_of(layers, asked)
    assert (image.name, image.channel_axis, image.axes) == ("cells", channel_axis, axes)
    assert image.channel_kind == ("measured" if len(layers) > 1 else "color" if layers[0][1]["rgb"] else "auto")
    picture = ss.as_picture(image.array, channel_axis=image.channel_axis)
    assert picture.shape == tuple(layers[0][0].shape[axis] for axis in axes)


def test_opacity_counts_only_where_napari_shows_it():
    four = zeros(30, 40, 4)
    four[:, :20, 3] = 255
    shown, plain = image_of([layer(four, rgb=True)]), image_of([layer(four)])
    assert ss.as_picture(shown.array, channel_axis=shown.channel_axis).inside.sum() == 600
    assert ss.as_picture(plain.array, channel_axis=plain.channel_axis).inside is None


def test_the_finest_level_of_several_is_taken():
    levels, attributes, kind = layer(zeros(30, 40))
    image = image_of([([levels, levels[::2, ::2]], attributes | {"multiscale": True}, kind)])
    assert image.array.shape == (30, 40)


class Huge:
    """An array that must not be loaded."""

    shape, ndim = (40_000, 40_000), 2

    def __array__(self, *_):
        pytest.fail("loaded")


@pytest.mark.parametrize(
    ("layers", "asked", "line"),
    [
        ([], "auto", "the selected layer must be an image: got 'no layer'"),
        ([layer(zeros(9, 9), kind="labels")], "auto", "must be an image: got 'cells, of the kind labels'"),
        ([layer(zeros(9, 9)), layer(zeros(9, 9), kind="shapes")], "auto", "must be an image"),
        ([layer(zeros(9, 9)), layer(zeros(9, 8))], "auto", "selected layers must have one shape and no color"),
        ([layer(zeros(9, 9, 3), rgb=True)] * 2, "auto", "selected layers must have one shape and no color"),
        ([layer(zeros(9))], "auto", "the selected layer must have two or three axes"),
        ([layer(zeros(4, 4, 4, 9, 9))], "auto", "the selected layer must have two or three axes"),
        ([layer(zeros(4, 4, 4, 9, 9, 3), rgb=True)], "auto", "the selected layer must hold one image or volume"),
        ([layer(zeros(2, 5, 30, 40))], "auto", "channels must name the axis of the channels of a layer"),
        ([layer(zeros(30, 40))], 0, "the selected layer must have two or three axes"),
        ([layer(zeros(30, 40))], 2, "channel_axis must be None, 'auto' or an axis of the image of 2 axes"),
        ([layer(Huge())], "auto", "the selected layer must have at most 134,217,728 pixels"),
    ],
)
def test_what_cannot_be_segmented_gets_one_line(layers, asked, line):
    with pytest.raises(InvalidInput) as error:
        image_of(layers, asked)
    assert line in str(error.value) and "\n" not in str(error.value)


def test_other_layers_lie_where_the_image_lies():
    turned = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0.0]])
    moved = np.diag([1.0, 2, 3, 1])
    moved[:3, 3] = 5, 6, 7
    of_layer = {"scale": [9.0, 0.5, 0.25], "translate": [9.0, 10.0, 20.0], "units": ("pixel", "um", "um")}
    of_layer |= {"rotate": turned, "affine": moved, "shear": [0.0, 0.0, 0.3]}
    image = image_of([layer(zeros(5, 30, 40), axis_labels=("c", "y", "x"), **of_layer)])
    placed = image.placement()
    assert placed["scale"] == [0.5, 0.25] and placed["translate"] == [10.0, 20.0] and placed["units"] == ("um", "um")
    np.testing.assert_array_equal(placed["rotate"], [[0, -1], [1, 0]])
    np.testing.assert_array_equal(placed["shear"], [[1, 0.3], [0, 1]])
    np.testing.assert_array_equal(placed["affine"], [[2, 0, 6], [0, 3, 7], [0, 0, 1]])
    stacked = image.placement("draw")
    assert stacked["scale"] == [1.0, 0.5, 0.25] and stacked["axis_labels"] == ("draw", "y", "x")
    np.testing.assert_array_equal(stacked["affine"], [[1, 0, 0, 0], [0, 2, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])


def test_axes_without_labels_are_counted_from_the_last():
    image = image_of([layer(zeros(80, 90, 5))])
    assert image.placement()["axis_labels"] == ("-2", "-1")
    assert image.placement("draw")["axis_labels"] == ("draw", "-2", "-1")
