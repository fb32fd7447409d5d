"""GeoTIFF: polygons have the coordinates of the map, label images its tags, and other images neither."""

import json

import numpy as np
import pytest
import shapely
import tifffile

import spinseg as ss
from spinseg.image.io import read_image, read_picture

FAST = {"preset": "paper", "count_weight": 1.0, "sweeps": 6, "chains": 1, "rng": 0}
IMAGE = np.full((40, 60), 100, np.uint8)
IMAGE[8:24, 10:40] = 200
IMAGE[12:18, 20:30] = 100
SCALE, TIEPOINT = (33550, "d", 3, (10.0, 5.0, 0.0), True), (33922, "d", 6, (0, 0, 0, 500_000.0, 5_400_000.0, 0), True)
OTHER_TIEPOINT = (33922, "d", 6, (6, 4, 0, 500_060.0, 5_399_980.0, 0), True)
TURNED = (34264, "d", 16, (0, 4.0, 0, 1000, 4.0, 0, 0, 2000, 0, 0, 0, 0, 0, 0, 0, 1.0), True)
NAME = (34737, "s", 0, "WGS 84 / UTM zone 33N|", True)
NORTH_UP, POINT = (10, 0, 500_000, 0, -5, 5_400_000), (10, 0, 499_995, 0, -5, 5_400_002.5)


def keys(**numbers):
    """The directory of a GeoTIFF, with its model, how it has pixels, and its system."""
    names = {"model": 1024, "raster": 1025, "geographic": 2048, "projected": 3072}
    entries = [value for name, number in numbers.items() for value in (names[name], 0, 1, number)]
    return 34735, "H", 4 + len(entries), (1, 1, 0, len(numbers), *entries), True


UTM = keys(model=1, raster=1, projected=32633)
KINDS = {
    "UTM": ((SCALE, TIEPOINT, UTM, NAME), NORTH_UP, 32633, "urn:ogc:def:crs:EPSG::32633"),
    "another pixel tied": ((SCALE, OTHER_TIEPOINT, UTM), NORTH_UP, 32633, "urn:ogc:def:crs:EPSG::32633"),
    "middles of pixels": (
        (SCALE, TIEPOINT, keys(model=1, raster=2, projected=3857)),
        POINT,
        3857,
        "urn:ogc:def:crs:EPSG::3857",
    ),
    "turned": ((TURNED, UTM), (0, 4, 1000, 4, 0, 2000), 32633, "urn:ogc:def:crs:EPSG::32633"),
    "degrees": ((SCALE, TIEPOINT, keys(model=2, geographic=4326)), NORTH_UP, 4326, "urn:ogc:def:crs:OGC:1.3:CRS84"),
    "a system of one's own": ((SCALE, TIEPOINT, keys(model=1, projected=32767, geographic=4326)), NORTH_UP, None, None),
    "no keys": ((SCALE, TIEPOINT), NORTH_UP, None, None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_polygons_and_label_images_lie_where_the_image_lies(kind, tmp_path):
    tags, transform, epsg, urn = KINDS[kind]
    tifffile.imwrite(tmp_path / "a.tif", IMAGE, extratags=tags)
    found = ss.segment(tmp_path / "a.tif", **FAST)
    assert ("(EPSG:" in found.read_as) == (epsg is not None) and "map coordinates" in found.read_as
    assert found.summary()["georeference"] == {"transform": list(transform), "epsg": epsg}
    collection = json.loads(json.dumps(found.to_geojson()))
    assert collection.get("crs", {}).get("properties", {}).get("name") == urn
    rows, columns = np.mgrid[:40, :60] + 0.5  # the middles of pixels
    a, b, c, d, e, f = transform
    x, y = a * columns + b * rows + c, d * columns + e * rows + f
    labels = np.zeros(IMAGE.shape, int)
    for feature in collection["features"]:
        geometry = shapely.from_geojson(json.dumps(feature["geometry"]))
        assert geometry.is_valid and geometry.area == pytest.approx(feature["properties"]["area"] * abs(a * e - b * d))
        for polygon in getattr(geometry, "geoms", [geometry]):
            assert polygon.exterior.is_ccw and not any(hole.is_ccw for hole in polygon.interiors)
        labels[shapely.contains_xy(geometry, x, y)] = feature["properties"]["label"]
    assert found.n_clusters > 1 and np.array_equal(labels, found.labels)
    found.save(tmp_path / "out", names=["labels.tif", "boundary_probability.tif"])
    for name in ("labels.tif", "boundary_probability.tif"):
        again = read_picture(tmp_path / "out" / name).reading.georeference
        assert again == read_picture(tmp_path / "a.tif").reading.georeference and len(again.tags) == len(tags)
    assert np.array_equal(read_image(tmp_path / "out" / "labels.tif"), found.labels)


@pytest.mark.parametrize("kind", ["UTM", "turned"])
@pytest.mark.parametrize("how", [{"tile": (16, 16)}, {}, {"compression": "zlib"}], ids=str)
def test_what_is_written_of_an_image_in_tiles_lies_there_too(kind, how, tmp_path):
    pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
    pytest.importorskip("dask", reason="the extra [distributed] is not installed")
    tags, transform, epsg, urn = KINDS[kind]
    tifffile.imwrite(tmp_path / "a.tif", np.kron(IMAGE, np.ones((3, 3), np.uint8)), extratags=tags, **how)
    also, place = ("regions.geojson", "regions.csv", "boundary_probability.tif"), {"tile": 64, "jobs": 1, "rng": 0}
    large = ss.segment_large(tmp_path / "a.tif", tmp_path / "large", sweeps=4, also=also, **place)
    whole = ss.segment(tmp_path / "a.tif", sweeps=4, rng=0)
    assert large.read_as == whole.read_as and "map coordinates" in large.read_as
    assert large.summary()["georeference"] == {"transform": list(transform), "epsg": epsg}
    for name in ("labels.tif", "boundary_probability.tif"):
        again = read_picture(tmp_path / "large" / name).reading.georeference
        assert again == whole.picture.reading.georeference
    assert np.array_equal(read_image(tmp_path / "large" / "labels.tif"), large.labels.compute())
    probability = read_image(tmp_path / "large" / "boundary_probability.tif")
    assert np.abs(255 * probability - large.boundary_probability.compute()).max() < 0.01
    collection = json.loads((tmp_path / "large" / "regions.geojson").read_text())
    assert collection["crs"]["properties"]["name"] == urn and collection == json.loads(json.dumps(large.to_geojson()))
    a, b, _, d, e, _ = transform
    for feature, row in zip(collection["features"], large.region_rows, strict=True):
        area = shapely.from_geojson(json.dumps(feature["geometry"])).area
        assert feature["properties"] == row and area == pytest.approx(row["area"] * abs(a * e - b * d))
    rows = (tmp_path / "large" / "regions.csv").read_text().splitlines()
    assert len(rows) == 1 + large.n_regions and rows[0].startswith("image,region,label,area")


@pytest.mark.parametrize(
    "tags",
    [
        (),
        (SCALE,),
        (TIEPOINT, UTM),  # points of control need more than an affine transform
        ((33550, "d", 1, 10.0, True), TIEPOINT),  # damaged
        (SCALE, TIEPOINT, (34735, "H", 6, (1, 1, 0, 1, 1024, 0), True)),
        (SCALE, TIEPOINT, UTM, (274, "H", 1, 6, True)),  # turned when it is read
    ],
)
def test_without_a_place_nothing_changes(tags, tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", IMAGE, extratags=tags)
    found = ss.segment(tmp_path / "a.tif", **FAST)
    assert found.picture.reading.georeference is None and "map" not in found.read_as
    assert found.summary()["georeference"] is None
    collection = found.to_geojson()
    whole = shapely.from_geojson(json.dumps(collection)).bounds
    assert "crs" not in collection and whole == (0, 0, *found.labels.shape[::-1])
