"""Pixels without data are left out, with a notice; ordinary pictures are left alone."""

import numpy as np
import pytest
import tifffile

import spinseg as ss
from spinseg.image.io import read_picture
from spinseg.image.picture import as_picture

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
    with pytest.raises(
        ss.InvalidInput, match=r"^image must have a pixel with data; received 'nodata, -1, everywhere'$"
    ):
        read_picture(everywhere)


def test_nan_in_a_file_is_left_out(tmp_path):
    np.save(tmp_path / "heights.npy", np.where(HOLE, np.nan, HEIGHTS))
    picture = read_picture(tmp_path / "heights.npy")
    assert np.array_equal(picture.inside, ~HOLE) and "48 pixels left out as nodata (nan)" in str(picture.reading)
    with pytest.raises(ss.InvalidInput, match=r"np\.ma\.masked_invalid\(image\)"):
        as_picture(np.load(tmp_path / "heights.npy"))  # in an array it may be a mistake
