"""Polygons of regions against the pixels that they were made of."""

import json
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from spinseg.image.polygons import region_polygons
from spinseg.segmentation.exports import region_geojson, region_svg


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


def picture(*rows):
    return np.array([[int(number) for number in row] for row in rows])


label_images = st.integers(0, 4).flatmap(
    lambda n: arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=13), elements=st.integers(0, n))
)


@given(label_images)
@example(picture("1111", "1011", "1101", "1111"))  # two holes that touch in a corner
@example(picture("111", "101", "110"))  # a ring that is closed in a corner
@example(picture("10", "01"))  # two pieces that touch in a corner
@example(picture("1111111", "1000001", "1011101", "1010101", "1011101", "1000001", "1111111"))  # pieces within holes
@example(picture("1110111", "1010101", "1110111"))  # two pieces with a hole each
def test_polygons_hold_the_pixels_of_their_regions(regions):
    found = region_polygons(regions)
    assert sorted(found) == [number for number in np.unique(regions).tolist() if number > 0]
    for number, polygons in found.items():
        together = np.zeros(regions.shape, int)
        for outer, *holes in polygons:
            together += filled(regions.shape, [outer, *holes])
            assert not (filled(regions.shape, holes) & ~filled(regions.shape, [outer])).any()
            assert area(outer) > 0 and all(area(hole) < 0 for hole in holes)
        np.testing.assert_array_equal(together, regions == number)  # no pixel twice
        for ring in (ring for polygon in polygons for ring in polygon):
            assert len(set(ring)) == len(ring)  # it meets itself nowhere
            upright = [x == next_x for (x, _), (next_x, _) in zip(ring, [*ring[1:], ring[0]], strict=True)]
            assert all(a != b for a, b in zip(upright, [*upright[1:], upright[0]], strict=True))  # corners only


@given(label_images)
@example(picture("112", "121", "112"))  # a piece that touches the others in two corners
@example(picture("11111", "12121", "11211", "12111", "11111"))  # holes that touch each other
@example(picture("1112", "1211", "2121", "1111"))  # holes that touch the outline
def test_geometries_are_valid_and_cover_the_image_once(labels):
    shapely = pytest.importorskip("shapely")
    numbers, places = np.unique(labels, return_inverse=True)
    regions = places.reshape(labels.shape) + 1
    rows = [{"region": 1 + i, "label": int(number), "area": 0} for i, number in enumerate(numbers)]
    features = region_geojson(regions, rows)["features"]
    geometries = [shapely.from_geojson(json.dumps(feature["geometry"])) for feature in features]
    paths = re.findall(r' d="([^"]*)"', region_svg(regions, rows))
    for row, geometry, path in zip(rows, geometries, paths, strict=True):
        expected = regions == row["region"]
        assert geometry.is_valid, shapely.is_valid_reason(geometry)
        assert geometry.area == expected.sum()
        assert all(polygon.exterior.is_ccw for polygon in getattr(geometry, "geoms", [geometry]))
        y, x = np.nonzero(expected)
        assert shapely.contains_xy(geometry, x + 0.5, y + 0.5).all()
        rings = [re.findall(r"(\d+),(\d+)", part) for part in path.split("M")[1:]]
        rings = [[(int(x), int(y)) for x, y in ring] for ring in rings]
        np.testing.assert_array_equal(filled(regions.shape, rings), expected)
    assert shapely.union_all(geometries).equals(shapely.box(0, 0, *regions.shape[::-1]))
