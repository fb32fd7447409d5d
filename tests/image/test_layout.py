"""Which axis holds the channels: names are believed, and lengths decide only where they cannot mislead."""

import numpy as np
import pytest
from image_files import DEEP, RGB, png, saved
from PIL import Image, features

from spinseg._errors import InvalidInput
from spinseg.image.io import read_image, read_picture
from spinseg.image.layout import count_pixels, find_layout
from spinseg.image.picture import as_picture

CHANNELS, PLANES = "channels", "planes"


@pytest.mark.parametrize(
    "shape, kind, doubted",
    [
        ((200, 220, 7), CHANNELS, True),  # a plane of 220 x 7 pixels is none that people bring
        ((128, 128, 16), CHANNELS, True),
        ((136, 136, 17), PLANES, False),
        ((40, 60, 5), CHANNELS, True),
        ((39, 60, 5), PLANES, False),  # less than eight times as long
        ((5, 200, 220), PLANES, True),
        ((3, 200, 220), PLANES, True),
        ((16, 20, 30), PLANES, True),
        ((17, 20, 30), PLANES, False),
        ((9, 9, 9), PLANES, True),
        ((100, 120, 90), PLANES, False),
        ((9, 9, 3), CHANNELS, False),
        ((9, 9, 1), CHANNELS, False),
        ((9, 9, 4), CHANNELS, True),  # the fourth may be opacity or not
        ((4, 9, 9, 3), CHANNELS, False),
        ((4, 9, 9, 7), CHANNELS, True),
        ((9, 9), PLANES, False),
    ],
)
def test_axes_without_names_are_judged_by_their_lengths(shape, kind, doubted):
    layout = find_layout(shape)
    assert (layout.channel_axis == len(shape) - 1) == (kind == CHANNELS)
    assert bool(layout.otherwise) == doubted
    assert as_picture(np.ones(shape)).reading.otherwise == layout.otherwise
    other = None if kind == CHANNELS and len(shape) == 3 and shape[-1] > 4 else 0 if kind == PLANES else -1
    if doubted and shape != (4, 9, 9, 7):
        axis = "None" if other is None else str(other % len(shape))
        assert f"give channel_axis={axis} (--channel-axis {axis.lower()})" in layout.otherwise
        assert find_layout(shape, other).otherwise is None


@pytest.mark.parametrize(
    "axes, shape, spatial, channels",
    [
        ("CYX", (5, 30, 40), (1, 2), 0),
        ("YXC", (30, 40, 5), (0, 1), 2),
        ("ZCYX", (7, 5, 30, 40), (0, 2, 3), 1),
        ("TYX", (3, 30, 40), (0, 1, 2), None),
        ("ZYX", (30, 40, 3), (0, 1, 2), None),  # three pixels wide, if the file says so
        ("_C_YX", (1, 5, 1, 30, 40), (3, 4), 1),
        ("CYXS", (1, 30, 40, 3), (1, 2), 3),
        ("CYXS", (1, 30, 40, 1), (1, 2), None),
        ("QYX", (30, 40, 3), (0, 1), 2),
        ("QYX", (20, 40, 3), (0, 1, 2), None),
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


def test_the_phrase_says_what_was_left_out(tmp_path):
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in np.dstack([DEEP] * 3))
    (tmp_path / "deep.png").write_bytes(png(40, 30, 16, 2, rows))
    assert str(read_picture(tmp_path / "deep.png").reading).endswith(
        "8 bits, intensities from 0 to 255, the upper 8 of 16 bits"
    )
    frames = [Image.fromarray(np.full((6, 8, 3), level, np.uint8)) for level in (200, 90, 10)]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    assert str(read_picture(tmp_path / "film.gif").reading).endswith(", the first of 3 frames")
    assert read_picture(saved(tmp_path / "plain.png", DEEP, "PNG")).reading.note == ""
    pages = [Image.fromarray(np.zeros((6, 8), np.uint8)), Image.fromarray(np.zeros((9, 9), np.uint8))]
    pages[0].save(tmp_path / "two.tif", save_all=True, append_images=pages[1:])
    assert str(read_picture(tmp_path / "two.tif").reading).endswith(", the first of 2 series")


def test_phrases_of_volumes_types_and_opacity():
    def phrase(array, **keywords):
        return str(as_picture(array, **keywords).reading)

    assert phrase(np.ones((5, 6), bool)) == "a picture of 5 x 6 pixels, gray, 1 bit, intensities from 0 to 1"
    volume = phrase(np.ones((2, 5, 6), np.int16) * 7, channel_axis=None)
    assert volume == "a volume of 2 planes of 5 x 6 pixels, gray, 16 bits with sign, intensities from 0 to 255"
    assert phrase(np.ones((1, 5, 6)), channel_axis=None).startswith("a volume of 1 plane of 5 x 6 pixels, gray")
    assert phrase(np.ones((2, 5, 6, 7), np.float32)).startswith(
        "7 channels of a volume of 2 planes of 5 x 6 pixels, 32-bit"
    )
    assert phrase(np.ones((2, 5, 6, 3), np.uint8)).startswith("a volume of 2 planes of 5 x 6 pixels, color, 8 bits")
    assert phrase(np.ones((5, 6, 4), np.uint8)).startswith("a picture of 5 x 6 pixels, color with opacity, 8 bits")


@pytest.mark.skipif(not features.check("jpg_2000"), reason="Pillow was built without JPEG 2000")
def test_jpeg_2000_is_read_without_loss(tmp_path):
    for array in (RGB, DEEP):
        saved(tmp_path / "a.jp2", array, "JPEG2000", irreversible=False)
        np.testing.assert_array_equal(read_image(tmp_path / "a.jp2"), array, strict=True)
    content = (tmp_path / "a.jp2").read_bytes()
    (tmp_path / "a.jp2").write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidInput, match="must be a whole JPEG 2000 file"):
        read_image(tmp_path / "a.jp2")
