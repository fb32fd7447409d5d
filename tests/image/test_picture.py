"""The same image in any dtype and layout becomes the same picture, without its pixels of no data."""

from functools import partial

import numpy as np
import pytest
import tifffile
from image_files import refusal
from skimage import color, data

import spinseg as ss
from spinseg.image.io import read_picture
from spinseg.image.picture import MAX_CODE, as_picture, cielab

MASKED = "np.ma.masked_invalid(image)"
RGB = data.astronaut()[100:140, 60:120]
GRAY = data.camera()[50:200, 150:350]  # nearly black to nearly white
SAME = {
    "big-endian": (RGB.astype(np.uint16) * 257).astype(">u2"),
    "int64": RGB.astype(np.int64),
    "float32-255": RGB.astype(np.float32),
    "float64": RGB / 255,
    "float32-rounded": RGB * np.float32(1 / 255),
    "view": RGB[..., ::-1].copy()[..., ::-1],
    "fortran": np.asfortranarray(RGB),
    "list": RGB.tolist(),
    "rgba": np.dstack([RGB, np.full(RGB.shape[:2], 255, np.uint8)]),
}


@pytest.mark.parametrize("name", SAME)
def test_dtype_and_intensity_range_do_not_matter_and_the_input_is_neither_changed_nor_shared(name):
    image = np.array(SAME[name])
    found, expected = as_picture(SAME[name]), as_picture(RGB)
    assert np.array_equal(found.codes, expected.codes) and np.array_equal(found.colors, expected.colors)
    found.codes[:] = 7
    assert np.array_equal(SAME[name], image)
    assert as_picture(found) is found
    with pytest.raises(AttributeError):
        found.codes = None


@pytest.mark.parametrize("dtype", [np.uint16, ">u2", np.int32, np.uint64, np.float32, np.float64])
@pytest.mark.parametrize("bits", [9, 12, 15])
def test_more_than_8_bits_are_stretched_to_what_they_use(bits, dtype):
    numbers = GRAY.astype(np.int64) << bits - 8
    codes = as_picture(numbers).codes
    np.testing.assert_allclose(codes / MAX_CODE, as_picture(GRAY).values, atol=0.05)
    assert codes.min() == 0 and codes.max() == MAX_CODE
    for offset in (0, 1000):
        assert np.array_equal(as_picture((numbers + offset).astype(dtype)).codes, codes)


def test_numbers_that_fill_16_bits_and_8_bits_in_more_are_taken_as_they_are():
    deep = np.random.default_rng(0).integers(500, 65_000, (90, 120)).astype(np.uint16)
    for dtype in (np.uint16, np.int32, np.float64, ">u2"):
        assert np.array_equal(as_picture(deep.astype(dtype)).codes[..., 0], deep)
    dull = GRAY // 4 + 60
    for dtype in (np.uint16, np.int64, np.float32):
        for same in (dull, dull.astype(np.uint16) * 257):
            assert np.array_equal(as_picture(same.astype(dtype)).codes, as_picture(dull).codes)


@pytest.mark.parametrize("scale", [1, 16, 250, 1 / 255], ids=["8-bit", "12-bit", "16-bit", "float"])
def test_hot_and_dead_pixels_do_not_count(scale):
    numbers = GRAY * float(scale) if scale < 1 else GRAY.astype(np.uint16) * np.uint16(scale) + np.uint16(200)
    spoilt = numbers.astype(np.float64)
    spoilt[tuple(np.random.default_rng(1).integers(0, 100, (2, 10)))] = 1e7
    spoilt[120, 20:25] = 1e7  # some stand together
    spoilt[140:142, 30:32] = -1e7
    unspoilt = spoilt == numbers
    spoilt = spoilt if scale < 1 else spoilt.clip(0, 65535).astype(np.uint16)
    expected, found = as_picture(numbers).codes[..., 0], as_picture(spoilt).codes[..., 0]
    assert np.array_equal(found[unspoilt], expected[unspoilt])
    assert set(np.unique(found[~unspoilt]).tolist()) <= {0, int(expected.max()), MAX_CODE}


@pytest.mark.parametrize("side", [3, 4, 12])
def test_a_small_object_counts(side):
    image = np.random.default_rng(0).integers(1000, 1300, (200, 200)).astype(np.uint16)
    image[100 : 100 + side, 90 : 90 + side] = 4000
    values = as_picture(image).values[..., 0]
    assert (values[100 : 100 + side, 90 : 90 + side] == 1).all() and values[image < 4000].max() < 0.11
    at_the_edge = np.roll(image, (-100, -90), (0, 1))
    assert np.array_equal(as_picture(at_the_edge).values[..., 0], np.roll(values, (-100, -90), (0, 1)))


def test_few_levels_and_few_pixels_do_not_collapse():
    rare = np.zeros((200, 200), np.uint16)
    rare[np.arange(0, 200, 10), np.arange(0, 200, 10)] = 1000  # 0.05 %, each alone
    assert np.array_equal(as_picture(rare).codes[..., 0], np.where(rare, MAX_CODE, 0))
    few = np.array([[1000, 1001], [1002, 5000]], np.uint16)
    assert as_picture(few).codes.max() == MAX_CODE and as_picture(few).codes.min() == 0


@pytest.mark.parametrize("number", [0, 300, -7, 2**53, -(2**62), np.uint64(2**63), 1e99, np.float32(-3.4028235e38)])
def test_a_constant_picture_of_any_number_is_read(number):
    picture = as_picture(np.full((6, 8), number))
    assert len(np.unique(picture.codes)) == 1 and picture.inside is None


def test_all_channels_have_one_range_and_planes_are_judged_one_by_one():
    image = np.dstack([GRAY.astype(np.uint16) * 16, np.full(GRAY.shape, 400, np.uint16)])
    values = as_picture(image).values
    assert values[..., 0].max() == 1 and np.ptp(values[..., 1]) == 0 and 0.05 < values[0, 0, 1] < 0.15
    volume = np.stack([GRAY.astype(np.uint16) * 16] * 4)
    hot = volume.copy()
    hot[:, 70, 80] = 65535  # one pixel of the camera
    unspoilt = hot == volume
    hot, volume = (as_picture(each, channel_axis=None) for each in (hot, volume))
    assert np.array_equal(hot.codes[unspoilt], volume.codes[unspoilt])


def test_only_what_is_inside_counts_for_the_range():
    image = GRAY.astype(np.float64) * 16
    inside = np.broadcast_to(np.arange(200) < 150, GRAY.shape)
    expected = as_picture(image[:, :150]).codes
    for value in (65535, np.nan):
        other = np.where(inside, image, value)
        assert np.array_equal(as_picture(other, mask=inside).codes[:, :150], expected)
        assert np.array_equal(as_picture(np.ma.array(other, mask=~inside)).codes[:, :150], expected)


def test_numbers_in_0_to_1_are_kept_whatever_is_rare_and_may_overshoot():
    image = np.full((100, 100), 0.2)
    image[3, 4], image[50, 60] = 0.9, 0.01
    assert np.array_equal(as_picture(image).codes[..., 0], np.rint(image * MAX_CODE))
    overshot = np.linspace(0, 1.08, 12).reshape(3, 4)
    np.testing.assert_allclose(as_picture(overshot).values[..., 0], overshot / 1.08, atol=1e-5)


def test_the_intensity_range_may_be_given():
    image = np.array([[0, 100, 1000, 5000]], np.uint16)
    found = as_picture(image, intensity_range=(100, 1100)).values[0, :, 0]
    np.testing.assert_allclose(found, [0, 0, 0.9, 1], atol=1e-4)


def test_what_is_masked_or_transparent_is_outside():
    masked = np.ma.array(RGB, mask=np.zeros(RGB.shape, bool))
    assert as_picture(masked).inside is None
    masked[3:5, 6, 1] = np.ma.masked  # in one channel
    picture = as_picture(masked)
    assert np.argwhere(~picture.inside).tolist() == [[3, 6], [4, 6]]
    assert np.array_equal(picture.codes[picture.inside], as_picture(RGB).codes[picture.inside])
    moved = np.ma.array(np.moveaxis(masked.data, -1, 0), mask=np.moveaxis(masked.mask, -1, 0))
    assert np.array_equal(as_picture(moved, channel_axis=0).inside, picture.inside)
    clear = np.dstack([RGB, np.full(RGB.shape[:2], 255, np.uint8)])
    clear[3:5, 6, 3], clear[9, 9] = 0, (200, 100, 0, 51)
    assert np.array_equal(as_picture(clear).inside, picture.inside)
    assert as_picture(clear).rgb[[3, 9], [6, 9]].tolist() == [[255, 255, 255], [244, 224, 204]]  # it lies on white
    assert as_picture(clear, channel_axis=-1).inside is None  # four channels, none of them opacity
    mask = np.ones(RGB.shape[:2], bool)
    mask[0] = False
    for image in (masked, clear, picture):
        assert np.array_equal(as_picture(image, mask=mask).inside, picture.inside & mask)
    assert np.array_equal(as_picture(RGB, mask=np.ma.array(mask, mask=~picture.inside)).inside, picture.inside & mask)


@pytest.mark.parametrize("full", [1, 255, 4095, 65535])
def test_opacity_has_a_range_of_its_own(full):
    image = np.dstack([RGB.astype(np.float64) * 16, np.full(RGB.shape[:2], float(full))])
    color = partial(as_picture, channel_kind="color")
    assert np.array_equal(color(image).codes, color(RGB.astype(np.float64) * 16).codes)
    image[0, 0] = np.nan, np.inf, -1e9, 0  # of no matter where it is transparent
    assert np.array_equal(color(image).codes[1:], color(RGB.astype(np.float64) * 16).codes[1:])


COUNTS = RGB.astype(np.uint16) * 16 + 7  # 12 bits


@pytest.mark.parametrize(
    "image, kind",
    [
        (RGB, "color"),
        (RGB / 255, "color"),
        (RGB.astype(np.float32), "color"),
        (RGB.astype(np.uint16) * 257, "color"),
        (COUNTS, "measured"),
        (COUNTS.astype(np.uint32) * 1000, "measured"),
        (RGB / 255 - 0.7, "measured"),
        (RGB[..., :2], "measured"),
        (np.dstack([RGB, RGB]), "measured"),
        (RGB[..., 0], "color"),
        (COUNTS[..., 0], "color"),
    ],
)
def test_the_kind_of_channels_is_guessed_from_the_numbers_and_stated(image, kind):
    picture = as_picture(image, channel_axis=-1 if image.ndim == 3 else None)
    assert (picture.channel_kind, picture.is_color) == (kind, kind == "color")
    reported, n_channels = picture.reading, 1 if image.ndim == 2 else image.shape[-1]
    assert reported.to_json()["channel_kind"] == (None if image.ndim == 2 else kind)
    if n_channels == 3:
        assert str(reported).startswith(
            "an image of 60 x 40 pixels, color" if picture.is_color else "3 measured channels"
        )
        assert (reported.otherwise is None) == picture.is_color
        other = "measured" if picture.is_color else "color"
        otherwise = as_picture(image, channel_kind=other)
        assert otherwise.channel_kind == other and np.array_equal(otherwise.codes, picture.codes)
        assert otherwise.reading.otherwise is None and not np.array_equal(otherwise.colors, picture.colors)


def test_measured_channels_are_not_converted_to_lightness_and_chroma():
    picture = as_picture(COUNTS)
    assert np.allclose(picture.colors, picture.values * 100 / np.sqrt(3))
    assert np.array_equal(as_picture(COUNTS, channel_kind="color").colors, cielab(picture.codes))


def test_four_bands_of_counts_are_no_color_with_opacity():
    bands = np.dstack([COUNTS, COUNTS[..., 0] * (COUNTS[..., 1] > 1000)])
    picture = as_picture(bands)
    assert picture.n_channels == 4 and picture.inside is None and "channel_kind='color'" in picture.reading.otherwise


def fourth(share_full, share_empty):
    """Numbers of a channel: shares of them are 255 and 0, and all others lie between."""
    numbers = np.random.default_rng(5).integers(1, 255, RGB.shape[:2])
    place = np.random.default_rng(6).permutation(numbers.size).reshape(numbers.shape) / numbers.size
    return np.where(place < share_full, 255, np.where(place >= 1 - share_empty, 0, numbers))


@pytest.mark.parametrize(
    "share_full, share_empty, has_opacity",
    [
        (1.0, 0.0, True),
        (0.7, 0.2, True),
        (0.2, 0.75, True),  # an object cut out
        (0.0, 1.0, False),
        (0.0, 0.18, False),  # near infrared, 0 in water
        (0.3, 0.1, False),
    ],
)
@pytest.mark.parametrize("dtype, full", [("u1", 255), ("u2", 65535), ("f4", 1)])
def test_the_fourth_channel_is_opacity_only_if_it_looks_like_it(share_full, share_empty, has_opacity, dtype, full):
    image = (np.dstack([RGB, fourth(share_full, share_empty)]) / 255 * full).astype(dtype)
    picture, reading = as_picture(image), as_picture(image).reading
    assert picture.n_channels == (3 if has_opacity else 4) and reading.has_opacity == has_opacity
    assert (picture.inside is None) == (not has_opacity or share_empty == 0)
    if has_opacity:
        assert "color with opacity" in str(reading) and reading.otherwise.endswith("use channel_axis=2")
        assert (
            as_picture(image, channel_axis=2).n_channels == as_picture(image, channel_kind="measured").n_channels == 4
        )
    else:
        assert str(reading).startswith("4 channels of 60 x 40 pixels")
        assert reading.otherwise == "if the last of its four channels is opacity, use channel_kind='color'"
        if share_full:
            other = as_picture(image, channel_kind="color")
            assert other.n_channels == 3 and np.array_equal(other.inside, image[..., 3] > 0)


def test_a_file_that_declares_an_opacity_that_does_not_look_like_it_says_how_to_read_it_otherwise(tmp_path):
    for shares, says in (
        ((0.9, 0.1), ""),
        ((0.0, 0.18), "; if the last channel is not opacity, use channel_kind='measured'"),
    ):
        bands = np.dstack([RGB, fourth(*shares)]).astype(np.uint8)
        tifffile.imwrite(tmp_path / "a.tif", bands, photometric="rgb", extrasamples=["unassalpha"])
        found = read_picture(tmp_path / "a.tif").reading
        assert found.has_opacity and found.with_doubt == f"{found}{says}"
        assert read_picture(tmp_path / "a.tif", channel_kind="measured").n_channels == 4


def test_a_constant_of_no_meaning_is_no_opacity():
    for value in (4095, 300, 2):
        assert as_picture(np.dstack([RGB.astype(np.uint16) * 257, np.full(RGB.shape[:2], value)])).n_channels == 4


def test_numbers_outside_the_mask_do_not_make_opacity():
    image = np.dstack([RGB / 255, fourth(0.9, 0.0) / 255])
    mask = np.ones(RGB.shape[:2], bool)
    mask[:, :5] = False
    for value in (9999.0, np.nan, np.inf):
        image[:, :5] = value
        masked = np.ma.array(image, mask=np.broadcast_to(~mask[..., None], image.shape))
        for picture in (as_picture(image, mask=mask), as_picture(masked)):
            assert picture.reading.has_opacity and np.array_equal(picture.inside, mask)


@pytest.mark.parametrize("n_planes", [1, 3, 4, 5])
def test_an_array_whose_first_axis_may_hold_channels_is_a_volume_with_a_warning(n_planes):
    image = np.random.default_rng(0).random((n_planes, 40, 60))
    with pytest.warns(
        UserWarning, match=rf"volume of {n_planes} plane.*; if axis 0 holds {n_planes} channel.*use channel_axis=0"
    ) as caught:
        assert as_picture(image).shape == image.shape
    assert len(caught) == 1 and str(caught[0].message).endswith("if it holds planes, channel_axis=None")
    assert as_picture(image, channel_axis=0).shape == (40, 60)  # without a warning, which would be an error
    assert as_picture(image, channel_axis=None).shape == image.shape
    as_picture(image[:, :, :39].repeat(5, axis=0))  # a volume, surely


def test_the_notices_are_part_of_what_a_segmentation_was_read_as():
    bands = np.dstack([RGB, fourth(0.0, 0.18)]).astype(np.uint8)
    fast = {"preset": "paper", "count_weight": 1.0, "sweeps": 2, "chains": 1, "rng": 0}
    seg = ss.segment(bands, **fast)
    assert (
        seg.read_as == f"{seg.picture.reading}; if the last of its four channels is opacity, use channel_kind='color'"
    )
    assert (seg.labels > 0).all() and seg.summary()["read_as"] == str(seg.picture.reading)
    with pytest.warns(UserWarning, match="use channel_axis=0"):
        seg = ss.segment(np.moveaxis(RGB / 255, -1, 0), **fast)
    assert "channel_axis=0" in seg.read_as
    opaque = ss.segment(np.dstack([RGB, fourth(1.0, 0.0)]).astype(np.uint8), **fast)
    assert "color with opacity" in opaque.read_as and opaque.read_as.endswith("use channel_axis=2")


@pytest.mark.parametrize(
    "image, kind, rule",
    [
        (RGB, "rgb", "be one of 'auto', 'color', 'measured'"),
        (RGB[..., :2], "color", "be 'auto' or 'measured' for an image of 2 channels"),
        (as_picture(RGB), "color", "be 'auto' for a Picture, which has one"),
    ],
)
def test_a_wrong_kind_of_channels_is_one_line(image, kind, rule):
    with pytest.raises(ss.InvalidInput, match=rf"^channel_kind must {rule}: got '{kind}'$"):
        as_picture(image, channel_kind=kind)


@pytest.mark.parametrize(
    ("given", "axis", "shape", "n_channels"),
    [
        ((5, 6, 1), "auto", (5, 6), 3),
        ((5, 6, 2), "auto", (5, 6), 2),
        ((5, 6, 7), -1, (5, 6), 7),
        ((4, 5, 6), 0, (5, 6), 4),
        ((5, 6, 4), "auto", (5, 6), 4),
        ((5, 6, 3), None, (5, 6, 3), 3),
        ((4, 5, 6, 3), "auto", (4, 5, 6), 3),
    ],
)
def test_axes(given, axis, shape, n_channels):
    image = np.random.default_rng(0).integers(0, 256, given).astype(np.uint8)
    picture = as_picture(image, channel_axis=axis)
    assert picture.shape == shape and picture.n_channels == n_channels
    assert picture.values.shape == picture.colors.shape == (*shape, n_channels)
    assert picture.values.dtype == picture.colors.dtype == np.float32
    assert picture.rgb.shape == (*shape, 3) and picture.rgb.dtype == np.uint8
    if given[-1] != 4:  # gray is the color image with equal channels
        channels = image[..., None] if axis is None else np.moveaxis(image, axis if axis != "auto" else -1, -1)
        np.testing.assert_allclose(picture.values, np.broadcast_to(channels / 255, picture.values.shape), atol=1e-5)


def test_black_to_white_is_a_distance_of_100_in_any_number_of_channels():
    for n_channels in (1, 2, 3, 5, 12):
        ends = np.array([np.zeros(n_channels), np.ones(n_channels)])[None]
        colors = as_picture(ends, channel_axis=-1).colors[0]
        assert np.linalg.norm(colors[1] - colors[0]) == pytest.approx(100, abs=0.01)


def test_cielab_is_that_of_skimage():
    steps = np.concatenate([np.arange(0, 30), np.arange(30, 256, 15), [254, 255]])
    rgb = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 1, 3).astype(np.uint8)
    assert np.abs(cielab(as_picture(rgb).codes) - color.rgb2lab(rgb)).max() < 2e-3


FINITE = "image must hold finite numbers"
SHAPE = "image must have two or three axes, and one of channels or none: got"
AXIS = "channel_axis must be None, 'auto' or an axis of the image of {} axes: got {}"
FLAT, TOP = np.zeros((3, 4)), np.arange(12).reshape(3, 4) < 4
BAD = [
    (np.zeros((5, 5, 0)), {}, "image must hold at least one pixel: got (5, 5, 0)"),
    (7, {}, f"{SHAPE} ()"),
    (FLAT, {"channel_axis": 0}, f"{SHAPE} (3, 4)"),
    (FLAT, {"channel_axis": 2}, AXIS.format(2, 2)),
    (FLAT, {"channel_axis": "last"}, AXIS.format(2, "'last'")),
    (np.zeros((3, 4, 5)), {"channel_axis": True}, AXIS.format(3, True)),
    (np.array([[1.0, np.nan]]), {}, f"{FINITE} (a mask leaves others out: in Python, {MASKED}): got nan"),
    (np.array([[np.nan, np.nan]]), {}, f"{FINITE}: got nan"),
    (np.array([[1.0, np.inf]]), {"mask": [[False, True]]}, f"{FINITE} inside the mask: got inf"),  # none is left
    (np.zeros((3, 3), complex), {}, "image must be an array of numbers: got 'complex128'"),
    ("cat.jpg", {}, "image must be an array of numbers: got 'cat.jpg'"),
    ([[1, 2], [3]], {}, "image must be an array of numbers: got [[1, 2], [3]]"),
    (FLAT, {"mask": np.ones((4, 3), bool)}, "mask must have the image's shape (3, 4): got (4, 3)"),
    (FLAT, {"mask": np.zeros((3, 4), bool)}, "mask must leave some pixel inside: got 'all False'"),
    (FLAT, {"mask": np.ones((3, 4))}, "mask must be True inside and False outside: got 'float64'"),
    (np.ma.array(FLAT, mask=True), {}, "image must have a pixel that is not masked: got 'all masked'"),
    (
        np.zeros((3, 4, 4), "u1"),
        {"channel_kind": "color"},
        "image must have a pixel that is not transparent: got 'an opacity of 0",
    ),
    (np.ma.array(FLAT, mask=TOP), {"mask": TOP}, "mask must leave some pixel inside that is neither masked nor trans"),
    (FLAT, {"intensity_range": (5, 5)}, "intensity_range must "),
]


@pytest.mark.parametrize(("image", "keywords", "message"), BAD)
def test_bad_images_are_refused_in_one_line(image, keywords, message):
    assert refusal(partial(as_picture, image, **keywords)).startswith(message)


HEIGHTS = np.random.default_rng(0).uniform(120, 2400, (20, 24))
HOLE = np.zeros(HEIGHTS.shape, bool)
HOLE[3:9, 4:12] = True
FLOAT32_LOWEST = float(np.finfo(np.float32).min)


def write_geotiff(path, array, nodata):
    tifffile.imwrite(path, array, extratags=[(42113, "s", 0, nodata, True)])
    return path


VALUES = (-9999, -32768, FLOAT32_LOWEST, 1e20, 9.969209968386869e36)
LARGEST = {np.int16: 2**15, np.int32: 2**31, np.float16: 2**15, np.float32: -FLOAT32_LOWEST, np.float64: np.inf}


@pytest.mark.parametrize(
    ("value", "kind"), [(value, kind) for value in VALUES for kind, most in LARGEST.items() if abs(value) <= most]
)
def test_a_value_far_outside_the_data_is_left_out_with_a_notice(value, kind):
    image = np.where(HOLE, value, HEIGHTS).astype(kind)
    with pytest.warns(UserWarning, match=r"48 pixels left out as nodata \(.*\); if .* is a measurement"):
        picture = as_picture(image)
    assert np.array_equal(picture.inside, ~HOLE)
    assert picture.reading.intensity_range[0] > 100
    assert "48 pixels left out as nodata" in str(picture.reading)
    assert "intensity_range" in picture.reading.otherwise


def test_two_values_one_channel_and_the_highest_mountain_do_not_mislead():
    image = np.stack([HEIGHTS, HEIGHTS + 5], axis=-1)
    image[0, 0], image[1, 1, 1], image[2, 2] = FLOAT32_LOWEST, -9999, 8849
    with pytest.warns(UserWarning, match="nodata"):
        seg = ss.segment(image.astype(np.float32), channel_axis=-1, sweeps=2, chains=1, rng=0)
    assert (
        np.argwhere(seg.labels == 0).tolist() == [[0, 0], [1, 1]]
        and "1 pixel left out as nodata (-9999)" in seg.read_as
    )


@pytest.mark.parametrize(
    "image",
    [
        np.where(HOLE, 65535, 7).astype(np.uint16),
        np.where(HOLE, 0, 255).astype(np.uint8),
        np.where(HOLE, -1024, HEIGHTS).astype(np.int16),  # padding of a CT, of no conventional value
        np.where(HOLE, -9999, HEIGHTS - 9000),  # as far as the others
        np.full((6, 8), -9999.0),
        np.where(HOLE, 5000.0, 0.5),
    ],
    ids=range(6),
)
def test_ordinary_images_are_left_alone(image):
    picture = as_picture(image)
    assert picture.inside is None and "nodata" not in str(picture.reading)


def test_an_intensity_range_that_includes_the_value_keeps_it():
    image = np.where(HOLE, -9999, HEIGHTS)
    assert as_picture(image, intensity_range=(-9999, 2400)).inside is None
    with pytest.warns(UserWarning, match="nodata"):
        assert np.array_equal(as_picture(image, intensity_range=(0, 2400)).inside, ~HOLE)


def test_the_value_that_a_geotiff_declares_is_left_out(tmp_path):
    image = np.where(HOLE, -1.0, HEIGHTS).astype(np.float32)
    picture = read_picture(write_geotiff(tmp_path / "heights.tif", image, "-1"))
    assert np.array_equal(picture.inside, ~HOLE)
    assert str(picture.reading).endswith("48 pixels left out as nodata (-1)") and picture.reading.otherwise is None
    color = np.random.default_rng(1).integers(1, 255, (20, 24, 3), np.uint8)
    color[HOLE] = 0
    color[0, 0] = 0, 9, 9  # black in one channel is a color
    assert np.array_equal(read_picture(write_geotiff(tmp_path / "color.tif", color, "0")).inside, ~HOLE)
    for text in ("", "none", "1e999", "0.5"):
        assert read_picture(write_geotiff(tmp_path / "odd.tif", color, text)).inside is None
    everywhere = write_geotiff(tmp_path / "empty.tif", np.full((9, 9), -1, np.int16), "-1")
    with pytest.raises(ss.InvalidInput, match=r"^image must have a pixel with data: got 'nodata, -1, everywhere'$"):
        read_picture(everywhere)


def test_nan_in_a_file_is_left_out(tmp_path):
    np.save(tmp_path / "heights.npy", np.where(HOLE, np.nan, HEIGHTS))
    picture = read_picture(tmp_path / "heights.npy")
    assert np.array_equal(picture.inside, ~HOLE) and "48 pixels left out as nodata (nan)" in str(picture.reading)
    with pytest.raises(ss.InvalidInput, match=r"np\.ma\.masked_invalid\(image\)"):
        as_picture(np.load(tmp_path / "heights.npy"))  # in an array it may be a mistake
