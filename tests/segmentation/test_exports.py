"""Round trips of a segmentation through GeoJSON, SVG, xarray and pandas."""

import json
import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
import shapely
import tifffile

import spinseg as ss

KEYWORDS = {"sweeps": 20, "chains": 2, "rng": 0}

pytestmark = pytest.mark.xdist_group("exports")  # they share a segmentation


def drawing():
    """A ring on a ground, with a patch in its hole."""
    y, x = np.mgrid[:60, :80]
    distance = np.hypot(y - 30, x - 40)
    image = np.where((distance > 14) & (distance < 24), 220, 60) + 90.0 * (distance < 6)
    return np.clip(image + np.random.default_rng(0).normal(0, 3, image.shape), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module", params=["photo", "paper"])
def found(request):
    mask = np.ones((60, 80), bool)
    mask[:, :5] = False
    return ss.segment(drawing(), request.param, mask=mask, **KEYWORDS)


@pytest.fixture(scope="module")
def volume():
    image = np.zeros((6, 20, 20))
    image[:, 5:15, 5:15] = 1
    return ss.segment(image, channel_axis=None, **KEYWORDS)


def pixels_within(geometry, shape):
    """The pixels whose middles lie within a geometry."""
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    return shapely.contains_xy(geometry, x, y)


def test_polygons_hold_the_pixels_of_the_labels(found):
    collection = json.loads(json.dumps(found.to_geojson()))
    assert collection["type"] == "FeatureCollection" and len(collection["features"]) == len(found.region_rows)
    labels = np.full(found.labels.shape, 0)
    for feature, row in zip(collection["features"], found.region_rows, strict=True):
        assert feature["type"] == "Feature" and feature["properties"] == row and feature["id"] == row["region"]
        geometry = shapely.from_geojson(json.dumps(feature["geometry"]))
        assert geometry.is_valid and geometry.area == row["area"]
        for polygon in getattr(geometry, "geoms", [geometry]):
            assert polygon.exterior.is_ccw and not any(hole.is_ccw for hole in polygon.interiors)
        assert geometry.centroid.coords[0] == pytest.approx([c + 0.5 for c in row["centroid"][::-1]], abs=0.01)
        top, left, bottom, right = row["bbox"]
        assert geometry.bounds == (left, top, right, bottom)
        within = pixels_within(geometry, labels.shape)
        assert not labels[within].any()
        labels[within] = row["label"]
    np.testing.assert_array_equal(labels, found.labels)


def test_svg_has_a_path_for_every_region(found):
    root = ElementTree.fromstring(found.to_svg())
    assert root.attrib["viewBox"] == "0 0 80 60"
    paths = root.findall("{http://www.w3.org/2000/svg}path")
    for path, feature in zip(paths, found.to_geojson()["features"], strict=True):
        rings = [re.findall(r"(\d+),(\d+)", part) for part in path.attrib["d"].split("M")[1:]]
        outline = {tuple(map(int, corner)) for ring in rings for corner in ring}
        geometry = feature["geometry"]
        polygons = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
        assert outline == {tuple(corner) for polygon in polygons for ring in polygon for corner in ring}
        assert path.attrib["data-label"] == str(feature["properties"]["label"])


def test_a_dataset_survives_a_file(found, tmp_path):
    xr = pytest.importorskip("xarray")
    found.to_xarray().to_netcdf(tmp_path / "found.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "found.nc", engine="h5netcdf") as stored:
        for name in ("labels", "sites", "boundary_probability", "partition", "separation"):
            np.testing.assert_array_equal(stored[name], getattr(found, name), strict=False)
            assert stored[name].dtype == getattr(found, name).dtype
        np.testing.assert_array_equal(stored["draws"], found.chains.labels)
        np.testing.assert_array_equal(stored["edges"], found.model.graph.edges)
        assert stored["labels"].dims == ("y", "x") and stored.attrs["python"] == found.python_code
        assert int(stored["labels"].sel(y=30, x=40)) == found.labels[30, 40]


def test_regions_are_a_table_where_pandas_is_there(found, monkeypatch):
    pandas = pytest.importorskip("pandas")
    table = found.at(0.65).regions if found.chains.n_components > 1 else found.regions
    assert isinstance(table, pandas.DataFrame)
    assert {"label", "area", "centroid-0", "centroid-1", "bbox-0", "bbox-3", "probability", "boundary"} <= set(table)
    for (_, row), plain in zip(found.regions.iterrows(), found.region_rows, strict=True):
        assert row["area"] == plain["area"] and [row["centroid-0"], row["centroid-1"]] == plain["centroid"]
        assert [row[f"bbox-{i}"] for i in range(4)] == plain["bbox"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    again = ss.segment(drawing(), sweeps=4, rng=0)
    assert again.regions is again.region_rows


def test_a_volume_has_no_polygons_but_loses_nothing(volume, tmp_path, capsys):
    with pytest.raises(ss.InvalidInput, match=r"^the segmentation must be that of an image, not of a volume[^\n]*$"):
        volume.to_geojson()
    volume.save(tmp_path, ["labels.tif", "regions.geojson", "result.json"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.tif", "result.json"]
    assert "regions.geojson is left out: a volume has no polygons" in capsys.readouterr().err
    assert volume.to_xarray()["labels"].dims == ("z", "y", "x")


def test_a_table_and_probabilities_in_files_are_those_in_memory(found, tmp_path):
    pandas = pytest.importorskip("pandas")
    found.save(tmp_path, names=["regions.csv", "boundary_probability.tif"])
    table = pandas.read_csv(tmp_path / "regions.csv")
    regions = found.regions.astype({"boundary": float})  # of one region alone it is None
    pandas.testing.assert_frame_equal(table.drop(columns="image"), regions)
    stored = tifffile.imread(tmp_path / "boundary_probability.tif")
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored, found.boundary_probability)
