"""Which axis holds the channels: names are believed, and lengths decide only where they cannot mislead."""

import numpy as np
import pytest

from spinseg._errors import InvalidInput
from spinseg.image.layout import count_pixels, find_layout
from spinseg.image.picture import as_picture

CHANNELS, PLANES = "channels", "planes"


@pytest.mark.parametrize(
    ("shape", "kind", "otherwise"),
    [
        ((200, 220, 7), CHANNELS, "none"),  # a plane of 220 x 7 pixels is none that people bring
        ((136, 136, 17), PLANES, None),
        ((40, 60, 5), CHANNELS, "none"),
        ((39, 60, 5), PLANES, None),  # less than eight times as long
        ((3, 200, 220), PLANES, "0"),
        ((16, 20, 30), PLANES, "0"),
        ((17, 20, 30), PLANES, None),
        ((9, 9, 3), CHANNELS, None),
        ((9, 9, 1), CHANNELS, None),
        ((9, 9, 4), CHANNELS, "2"),  # the fourth may be opacity or not
        ((4, 9, 9, 3), CHANNELS, None),
        ((9, 9), PLANES, None),
    ],
)
def test_axes_without_names_are_judged_by_their_lengths(shape, kind, otherwise):
    layout = find_layout(shape)
    assert (layout.channel_axis == len(shape) - 1) == (kind == CHANNELS)
    assert as_picture(np.ones(shape)).reading.otherwise == layout.otherwise
    if otherwise is None:
        assert layout.otherwise is None
    else:
        assert f"give channel_axis={otherwise.capitalize()} (--channel-axis {otherwise})" in layout.otherwise
        assert find_layout(shape, None if otherwise == "none" else int(otherwise)).otherwise is None


@pytest.mark.parametrize(
    "axes, shape, spatial, channels",
    [
        ("ZCYX", (7, 5, 30, 40), (0, 2, 3), 1),
        ("TYX", (3, 30, 40), (0, 1, 2), None),
        ("ZYX", (30, 40, 3), (0, 1, 2), None),  # three pixels wide, if the file says so
        ("_C_YX", (1, 5, 1, 30, 40), (3, 4), 1),
        ("CYXS", (1, 30, 40, 3), (1, 2), 3),
        ("CYXS", (1, 30, 40, 1), (1, 2), None),
        ("QYX", (30, 40, 3), (0, 1), 2),
        ("IYXS", (7, 30, 40, 3), (0, 1, 2), 3),
    ],
)
def test_names_are_believed(axes, shape, spatial, channels):
    layout = find_layout(shape, "auto", axes)
    assert (layout.axes, layout.channel_axis) == (spatial, channels)
    array = np.arange(np.prod(shape)).reshape(shape)
    arranged = layout.arrange(array)
    assert arranged.shape == (*(shape[i] for i in spatial), 1 if channels is None else shape[channels])
    assert sorted(arranged.ravel()) == sorted(array.ravel()) and arranged.ravel()[0] == 0


@pytest.mark.parametrize(
    "axes, shape", [("TZCYX", (3, 4, 2, 8, 9)), ("CYXS", (2, 8, 9, 3)), ("X", (9,)), ("TZYX", (2, 3, 8, 9))]
)
def test_what_is_neither_picture_nor_volume_is_refused(axes, shape):
    with pytest.raises(InvalidInput, match=rf"^a.tif must hold one picture or volume, [^\n]*axes {axes} of "):
        find_layout(shape, "auto", axes, name="a.tif")
    with pytest.raises(InvalidInput, match=r"must have two or three axes, and one of channels or none"):
        find_layout((2, 3, 4, 5, 6))


def test_up_to_four_channels_count_once():
    assert count_pixels((30, 40, 4)) == count_pixels((4, 30, 40), "CYX") == count_pixels((30, 40)) == 1200
    assert count_pixels((30, 40, 5)) == count_pixels((5, 30, 40)) == count_pixels((5, 30, 40), "CYX") == 6000


PHRASES = [
    (np.ones((5, 6), bool), "a picture of 5 x 6 pixels, gray, 1 bit, intensities from 0 to 1"),
    (
        np.full((2, 5, 6), 7, np.int16),
        "a volume of 2 planes of 5 x 6 pixels, gray, 16 bits with sign, intensities from 0 to 255",
    ),
    (np.ones((1, 5, 6)), "a volume of 1 plane of 5 x 6 pixels, gray"),
    (np.ones((2, 5, 6, 7), np.float32), "7 channels of a volume of 2 planes of 5 x 6 pixels, 32-bit"),
    (np.ones((2, 5, 6, 3), np.uint8), "a volume of 2 planes of 5 x 6 pixels, color, 8 bits"),
    (np.ones((5, 6, 4), np.uint8), "a picture of 5 x 6 pixels, color with opacity, 8 bits"),
]


@pytest.mark.parametrize(("array", "phrase"), PHRASES)
def test_phrases_of_volumes_types_and_opacity(array, phrase):
    assert str(as_picture(array).reading).startswith(phrase)
