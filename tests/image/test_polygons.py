"""Polygons of regions against the pixels that they were made of."""

import json
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from spinseg.image.polygons import region_polygons
from spinseg.segmentation.files import region_geojson, region_svg


def filled(shape, rings):
    """The pixels whose middles lie within rings, by counting the upright sides to their left."""
    inside = np.zeros(shape, int)
    for ring in rings:
        for (x, y), (next_x, next_y) in zip(ring, [*ring[1:], ring[0]], strict=True):
            assert (x == next_x) != (y == next_y)  # along a side of pixels
            if x == next_x:
                inside[min(y, next_y) : max(y, next_y), x:] += 1
    return inside % 2 == 1


def area(ring):
    """That within a ring, positive where it runs counterclockwise if y counts upward."""
    return sum(x * v - u * y for (x, y), (u, v) in zip(ring, [*ring[1:], ring[0]], strict=True)) // 2


def assert_right(regions):
    found = region_polygons(regions)
    assert sorted(found) == [number for number in np.unique(regions).tolist() if number > 0]
    for number, polygons in found.items():
        expected, together = regions == number, np.zeros(regions.shape, int)
        for outer, *holes in polygons:
            together += filled(regions.shape, [outer, *holes])
            assert not (filled(regions.shape, holes) & ~filled(regions.shape, [outer])).any()
            assert area(outer) > 0 and all(area(hole) < 0 for hole in holes)
        np.testing.assert_array_equal(together, expected)  # no pixel twice
        rings = [ring for polygon in polygons for ring in polygon]
        assert sum(map(area, rings)) == expected.sum()
        for ring in rings:
            assert len(set(ring)) == len(ring)  # it meets itself nowhere
            upright = [x == next_x for (x, _), (next_x, _) in zip(ring, [*ring[1:], ring[0]], strict=True)]
            assert all(a != b for a, b in zip(upright, [*upright[1:], upright[0]], strict=True))  # corners only


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n", [2, 3, 9])
def test_polygons_of_noise_hold_its_pixels(seed, n):
    rng = np.random.default_rng(seed)
    assert_right(rng.integers(0, n, rng.integers(1, 14, 2)))


@pytest.mark.parametrize(
    "rows",
    [
        ["1"],
        ["111", "101", "111"],
        ["1111", "1011", "1101", "1111"],  # two holes that touch in a corner
        ["111", "101", "110"],  # a ring that is closed in a corner
        ["10", "01"],  # two pieces that touch in a corner
        ["11111", "10001", "10101", "10001", "11111"],  # a piece within the hole of another
        ["1111111", "1000001", "1011101", "1010101", "1011101", "1000001", "1111111"],
        ["2222", "2112", "2112", "2222"],
    ],
)
def test_holes_corners_and_pieces(rows):
    assert_right(picture(*rows))


def picture(*rows):
    return np.array([[int(number) for number in row] for row in rows])


label_images = st.integers(1, 4).flatmap(
    lambda n: arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(1, n))
)


@given(label_images)
@example(picture("112", "121", "112"))  # a piece that touches the others in two corners
@example(picture("11111", "12121", "11211", "12111", "11111"))  # holes that touch each other
@example(picture("1112", "1211", "2121", "1111"))  # holes that touch the outline
def test_geometries_are_valid_and_cover_the_picture_once(regions):
    shapely = pytest.importorskip("shapely")
    numbers = np.unique(regions)
    places = np.searchsorted(numbers, regions) + 1
    rows = [{"region": 1 + i, "label": int(number), "area": 0} for i, number in enumerate(numbers)]
    features = region_geojson(places, rows)["features"]
    geometries = [shapely.from_geojson(json.dumps(feature["geometry"])) for feature in features]
    for number, geometry in zip(numbers, geometries, strict=True):
        assert geometry.is_valid, shapely.is_valid_reason(geometry)
        assert geometry.area == (regions == number).sum()
        for polygon in getattr(geometry, "geoms", [geometry]):
            assert polygon.exterior.is_simple and polygon.exterior.is_ccw
            assert not any(hole.is_ccw for hole in polygon.interiors)
        y, x = np.nonzero(regions == number)
        assert shapely.contains_xy(geometry, x + 0.5, y + 0.5).all()
    assert shapely.union_all(geometries).equals(shapely.box(0, 0, *regions.shape[::-1]))
    assert sum(geometry.area for geometry in geometries) == regions.size  # and none overlaps another
    paths = re.findall(r' d="([^"]*)"', region_svg(places, rows))
    for number, path in zip(numbers, paths, strict=True):
        rings = [re.findall(r"(\d+),(\d+)", part) for part in path.split("M")[1:]]
        rings = [[(int(x), int(y)) for x, y in ring] for ring in rings]
        np.testing.assert_array_equal(filled(regions.shape, rings), regions == number)


def test_a_picture_without_regions_has_no_polygons():
    assert region_polygons(np.zeros((3, 4), int)) == {}


def test_a_hole_belongs_to_the_piece_around_it():
    regions = np.zeros((9, 20), int)
    regions[1:8, 1:8] = regions[1:8, 10:17] = 1
    regions[3, 3] = regions[5, 5] = regions[4, 13] = 0
    assert sorted(map(len, region_polygons(regions)[1])) == [2, 3]
    assert_right(regions)
