"""Overlays, boundaries, palettes, heat maps and polygons."""

import re
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from image_files import refusal
from skimage import data
from skimage.segmentation import find_boundaries

from spinseg.image.picture import as_picture
from spinseg.image.polygons import region_polygons
from spinseg.image.render import OUTLINE_COLORS, label_colors, mean_colors, outlines, overlay, probability_picture

HALVES = np.repeat([[1, 1, 1, 2, 2, 2]], 4, axis=0)


def test_outlines_are_the_boundaries_of_scikit_image():
    labels = np.random.default_rng(0).integers(-1, 3, (7, 5, 4))
    assert np.array_equal(outlines(labels) > 0, find_boundaries(labels))


@pytest.mark.parametrize("gray", [0, 128, 255])
@pytest.mark.parametrize(("longest", "wide"), [(6, 1), (650, 1), (1300, 2), (4000, 6)])
def test_boundaries_are_light_and_dark_and_as_wide_as_the_image_asks_for(longest, wide, gray):
    labels = np.repeat([[1, 2]], longest // 2, axis=1) + np.zeros((20, 1), int)
    drawn = overlay(np.full(labels.shape, gray, np.uint8), labels)[10]
    middle = longest // 2
    light, dark = drawn[middle - wide : middle], drawn[middle : middle + wide]
    assert np.all(light == OUTLINE_COLORS[2][:3]) and np.all(dark == round(gray * (1 - OUTLINE_COLORS[1][3] / 255)))
    assert np.all(drawn[: middle - wide] == gray) and np.all(drawn[middle + wide :] == gray)


def test_the_web_app_has_the_same_colors():
    """It paints in JavaScript, with numbers of its own."""
    script = files("spinseg.app").joinpath("static", "painting.js").read_text()
    stops = re.search(r"STOPS = \[(.*?)\];", script, re.DOTALL)[1]
    colors = [list(map(int, stop.split(","))) for stop in re.findall(r"\[([\d, ]+)\]", stops)]
    np.testing.assert_allclose(colors, probability_picture(np.linspace(0, 1, 9)), atol=1)  # a table of 256 steps


def test_a_wide_boundary_goes_round_corners_as_a_disc_would():
    labels = np.ones((1950, 1950), np.int32)
    labels[900:1000, 900:1000] = 2
    light = outlines(labels) == 2
    assert light[897:900, 900:1000].all() and not light[896].any()
    corner = light[897:900, 897:900]  # pixels up to 3 along each axis from the corner of the square
    assert corner[2, 2] and not corner[0, 0]


@pytest.mark.parametrize("shape", [(1, 1), (4, 6), (3, 4, 6)])
def test_the_outside_is_faded_and_may_be_everywhere(shape):
    labels, image = np.zeros(shape, int), np.full((*shape, 5), 0.6)
    assert np.all(mean_colors(image, labels, channel_axis=-1) == 255)
    assert np.all(overlay(image, labels, channel_axis=-1) == 153 // 3 + 170)
    image[..., -1, :], labels[..., :4] = np.nan if shape[-1] == 6 else 0.6, 1
    drawn = overlay(image, labels, channel_axis=-1)
    assert (drawn[..., 0, :] == 153).all() and (shape[-1] < 6 or (drawn[..., 5, :] == 170).all())
    np.testing.assert_array_equal(overlay(image, labels - 1, channel_axis=-1, start_label=0), drawn)


def test_overlay_draws_on_boundaries_only_and_changes_no_input():
    image = data.chelsea()[:60, :80]
    labels = 1 + np.add.outer(np.arange(60) // 20 * 4, np.arange(80) // 20)
    kept = image.copy()
    drawn = overlay(image, labels)
    assert drawn.dtype == np.uint8 and drawn.shape == (60, 80, 3)
    assert np.array_equal(drawn[~find_boundaries(labels)], image[~find_boundaries(labels)])
    assert np.array_equal(image, kept)
    for same in (image / 255, as_picture(image)):
        assert np.array_equal(overlay(same, labels), drawn)


def test_mean_colors():
    image = data.chelsea()[:4, :60:10]
    labels = HALVES * (np.arange(24).reshape(4, 6) > 0)
    painted = mean_colors(image, labels)
    assert painted.dtype == np.uint8 and painted[0, 0].tolist() == [255, 255, 255]
    for label in (1, 2):
        assert (painted[labels == label] == np.rint(image[labels == label].mean(axis=0))).all()


def test_label_colors_are_distinct_and_stable():
    assert label_colors(0).shape == (0, 3) and label_colors(np.int64(5)).shape == (5, 3)
    many = label_colors(2500)
    assert many.dtype == np.uint8 and len(np.unique(many[:1000], axis=0)) == 1000
    for n in (1, 2, 9, 16, 17, 300, 1000):
        assert np.array_equal(label_colors(n), many[:n])
    for n, min_distance in [(6, 70), (12, 50), (20, 35), (50, 20)]:
        colors = as_picture(many[None, :n]).colors[0]
        distances = np.linalg.norm(colors[:, None] - colors, axis=-1) + np.diag(np.full(n, np.inf))
        assert distances.min() > min_distance
    label_colors(5)[:] = 0  # a palette handed out may be changed
    assert label_colors(5).any()


def test_probability_picture_gets_lighter():
    drawn = probability_picture(np.linspace(0, 1, 50).reshape(5, 10))
    assert drawn.dtype == np.uint8 and drawn.shape == (5, 10, 3)
    assert drawn[0, 0].tolist() == [0, 0, 4] and drawn[-1, -1].tolist() == [252, 253, 191]
    assert np.all(np.diff(as_picture(drawn).colors[..., 0].ravel()) > 0)


@pytest.mark.parametrize(
    ("call", "args", "message"),
    [
        (overlay, [np.zeros((3, 3)), HALVES], "labels must have the image's shape (3, 3): got (4, 6)"),
        (mean_colors, [np.zeros((3, 3)), HALVES], "labels must have the image's shape (3, 3): got (4, 6)"),
        (outlines, [[[0.5]]], "labels must be whole numbers: got 'float64'"),
        (outlines, [[[0, -2]]], "labels must number pixels from 0, with -1 outside: got [[ 0 -2]]"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, args, message):
    assert refusal(call, *args) == message


def picture(*rows):
    return np.array([[int(number) for number in row] for row in rows])


label_images = st.integers(0, 4).flatmap(
    lambda n: arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=13), elements=st.integers(0, n))
)


@given(label_images)
@example(picture("1111", "1011", "1101", "1111"))  # two holes that touch in a corner
@example(picture("111", "101", "110"))  # a ring that is closed in a corner
@example(picture("112", "121", "112"))  # a piece that touches the others in two corners
@example(picture("1112", "1211", "2121", "1111"))  # holes that touch the outline
@example(picture("1111111", "1000001", "1011101", "1010101", "1011101", "1000001", "1111111"))  # pieces within holes
@example(picture("1110111", "1010101", "1110111"))  # two pieces with a hole each
def test_polygons_are_valid_and_hold_the_pixels_of_their_regions(regions):
    shapely = pytest.importorskip("shapely")
    found = region_polygons(regions)
    assert sorted(found) == [number for number in np.unique(regions).tolist() if number > 0]
    y, x = np.indices(regions.shape) + 0.5
    for number, polygons in found.items():
        geometry = shapely.MultiPolygon([shapely.Polygon(outer, holes) for outer, *holes in polygons])
        assert geometry.is_valid, shapely.is_valid_reason(geometry)
        np.testing.assert_array_equal(shapely.contains_xy(geometry, x, y), regions == number)
        assert geometry.area == np.count_nonzero(regions == number)
        for polygon in geometry.geoms:
            assert polygon.exterior.is_ccw and not any(hole.is_ccw for hole in polygon.interiors)
        for ring in (ring for polygon in polygons for ring in polygon):
            assert len(set(ring)) == len(ring)  # it meets itself nowhere
            upright = np.diff([*ring, ring[0]], axis=0)[:, 0] == 0
            assert np.all(upright != np.roll(upright, 1))  # corners only


@pytest.mark.parametrize(("level", "shown"), [(0, 0), (54, 255), (120, 255), (135, 135), (200, 200)])
def test_a_dark_image_is_brightened_and_no_other(level, shown):
    image = np.zeros((20, 30, 3), np.uint8)
    image[5:, 5:] = level
    drawn = overlay(image, np.ones((20, 30), int))
    assert drawn.max() == shown and not drawn[:5].any()
