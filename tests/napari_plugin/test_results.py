"""Segmentations as layers, from memory and from files, without napari."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_images import layer

import spinseg as ss
from spinseg import InvalidInput, napari_plugin
from spinseg.napari_plugin import reader
from spinseg.napari_plugin.layers import image_of
from spinseg.napari_plugin.reader import get_reader
from spinseg.napari_plugin.results import DETAILS, LayerResult, segment_image
from spinseg.pictures import PICTURES
from spinseg.segmentation.large.files import create_ome_zarr


def squares():
    """A dark picture with a gray and a white square."""
    image = np.full((48, 64), 20, np.uint8)
    image[8:40, 6:26], image[12:36, 36:60] = 120, 250
    return image


@pytest.fixture(scope="module")
def found():
    return ss.segment(squares(), sweeps=20, chains=1, rng=0)


@pytest.fixture
def result(found):
    return LayerResult(image_of([layer(squares(), scale=[2.0, 3.0])]), found)


def test_kinds_of_regions_are_a_layer_and_a_feature():
    found = ss.segment(squares(), "objects", sweeps=10, chains=1, rng=0)
    layers = LayerResult(image_of([layer(squares())]), found).layers()
    kinds, attributes, what = layers["kinds"]
    np.testing.assert_array_equal(kinds, 1 + found.kinds[found.labels - 1])
    assert what == "labels" and not attributes["visible"]
    assert layers["labels"][1]["features"]["kind"] == [row["kind"] for row in found.region_rows]


def test_a_segmentation_is_shown_in_three_layers(result, found):
    layers = result.layers()
    (labels, of_labels, kind), (apart, of_apart, kind_of_apart) = layers["labels"], layers["boundaries"]
    np.testing.assert_array_equal(labels, found.labels)
    np.testing.assert_array_equal(apart, found.boundary_probability)
    assert (kind, kind_of_apart) == ("labels", "image") and of_apart["contrast_limits"] == (0, 1)
    assert of_labels["name"] == "cells labels" and of_labels["scale"] == of_apart["scale"] == [2.0, 3.0]
    assert of_labels["features"]["index"] == list(range(1, found.n_clusters + 1))
    assert of_labels["features"]["area"] == np.bincount(labels.ravel())[1:].tolist()
    assert of_labels["metadata"] == {"python": found.python_code}
    assert of_apart["metadata"] == {"boundaries": found.boundary_rows}
    draws, of_draws, kind = layers["draws"]
    assert kind == "labels" and draws.shape == (10, 48, 64) and of_draws["scale"] == [1.0, 2.0, 3.0]
    assert draws.min() == 1 and draws.dtype == np.uint8
    kept = {tuple(draw) for draw in found.chains.labels.reshape(-1, found.chains.labels.shape[-1])}
    for draw in draws:
        one_label = np.array([draw.ravel()[first] for first in np.unique(found.sites, return_index=True)[1]])
        np.testing.assert_array_equal(one_label[found.sites], draw)
        renamed = {}
        assert tuple(renamed.setdefault(label, len(renamed)) for label in one_label.tolist()) in kept


def test_outside_of_the_mask_nothing_is_shown():
    mask = np.arange(64) >= np.full((48, 1), 5)
    masked = ss.segment(squares(), mask=mask, sweeps=8, chains=1, rng=0)
    result = LayerResult(image_of([layer(squares())]), masked)
    layers = result.layers()
    assert not layers["labels"][0][~mask].any() and not layers["draws"][0][:, ~mask].any()
    assert layers["labels"][0][mask].all() and layers["draws"][0][:, mask].all()
    assert result.together((20, 2)) is None
    assert not result.together((20, 10))[0][~mask].any()


def test_other_details_are_fetched_the_wanted_one_first(result, found):
    assert result.in_words(found.preset.detail) == f"{found.n_clusters} regions. {found.verdict}"
    fetching = result.fetch()
    result.detail = 0.2
    assert next(fetching) == 0.2
    result.detail = 1.0
    assert next(fetching) == 1.0
    np.testing.assert_array_equal(result.labels(1.0)[0], found.at(1.0).labels)
    assert result.labels(1.0)[1]["metadata"]["python"] == found.at(1.0).python_code
    assert {0.2, 1.0, *fetching} | {found.preset.detail} == set(DETAILS) == set(result.views)
    assert result.in_words(0.0).endswith(" at detail 0, from the same draws.")


def test_a_place_tells_what_belongs_with_it(result, found):
    probability, attributes, _ = result.together((24.4, 15.6))
    site = found.sites[24, 16]
    np.testing.assert_allclose(probability, ss.co_clustering(found.chains.labels, site)[found.sites], rtol=1e-6)
    assert (probability[found.sites == site] == 1).all() and probability[24, 48] < 0.5
    assert attributes["scale"] == [2.0, 3.0]
    for outside in ((-1, 5), (48, 5), (5, 63.6)):
        assert result.together(outside) is None


def test_a_cancelled_segmentation_keeps_what_is_finished():
    n_chains = 2 * 12

    def report(progress):
        if progress.done == 80 * n_chains:  # all chains wait there for the first look at them
            raise KeyboardInterrupt

    result = segment_image(image_of([layer(squares())]), "photo", {"detail": 0.5}, 0, report)
    assert result.segmentation.interrupted and result.has_draws and result.segmentation.preset.detail == 0.5
    assert "regions. Cancelled after 80 sweeps. " in result.in_words(0.5)


def test_cancelled_before_there_are_draws_there_are_labels_alone(found):
    early = replace(found, chains=found.chains.after(found.chains.n_sweeps), interrupted=True)
    result = LayerResult(image_of([layer(squares())]), early)
    assert not result.has_draws and not result.has_details and set(result.layers()) == {"labels"}
    assert "Cancelled after 20 sweeps. " in result.in_words(result.detail)


def test_clusters_in_several_places_have_no_features_and_no_details():
    alike = np.where(squares() > 100, 200, 20)
    image = image_of([layer(np.stack([alike, alike], axis=-1))], 2)
    result = segment_image(image, "classes", {}, 0, lambda progress: None)
    _, attributes, _ = result.layers()["labels"]
    assert not result.has_details and result.has_draws and attributes["features"] == {}
    assert "cluster" in result.in_words(result.detail) and result.segmentation.picture.n_channels == 2


def test_draws_of_a_volume_are_a_stack_of_volumes_and_its_labels_alone_are_read_again(tmp_path):
    volume = np.repeat(squares()[None, ::2, ::2], 4, axis=0)
    found = ss.segment(volume, channel_axis=None, sweeps=4, chains=1, rng=0)
    result = LayerResult(image_of([layer(volume)]), found)
    draws, attributes, _ = result.layers()["draws"]
    assert draws.shape[1:] == volume.shape and len(attributes["scale"]) == 4
    assert result.together((1, 10, 8))[0].shape == volume.shape
    found.save(tmp_path)
    ((labels, _, _),) = get_reader(str(tmp_path))(str(tmp_path))
    np.testing.assert_array_equal(labels, found.labels)


@pytest.mark.parametrize("start_label", [0, 1])
def test_saved_results_are_read_again(found, tmp_path, start_label):
    found = replace(found, start_label=start_label, labels=found.labels - 1 + start_label)
    found.save(tmp_path / "cells")
    for path in (tmp_path / "cells", tmp_path / "cells" / "result.json"):
        (labels, attributes, kind), (apart, _, kind_of_apart) = get_reader(str(path))(str(path))
        assert (kind, kind_of_apart) == ("labels", "image") and attributes["name"] == "cells labels"
        np.testing.assert_array_equal(labels, found.partition[found.sites] + 1)
        np.testing.assert_allclose(apart, found.boundary_probability, atol=1 / 500)
        assert attributes["features"]["index"] == list(range(1, found.n_clusters + 1))
        assert attributes["metadata"]["spinseg"]["verdict"] == found.verdict


def test_results_of_large_pictures_are_read_in_parts(tmp_path):
    dask = pytest.importorskip("dask.array", reason="the extra [distributed] is not installed")
    pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
    for name in ("labels", "boundary_probability"):
        create_ome_zarr(tmp_path / f"{name}.zarr", (48, 64), 32, np.uint8, 0)[:] = squares()
    (tmp_path / "result.json").write_text('{"verdict": "well"}')
    (labels, attributes, _), (apart, of_apart, _) = get_reader(str(tmp_path))(str(tmp_path))
    assert isinstance(labels, dask.Array) and isinstance(apart, dask.Array)
    np.testing.assert_array_equal(labels.compute(), squares())
    assert of_apart["contrast_limits"] == (0, 255) and attributes["metadata"] == {"spinseg": {"verdict": "well"}}


@pytest.mark.exhaustive
def test_what_segment_large_writes_is_read(tmp_path):
    dask = pytest.importorskip("dask.array", reason="the extra [distributed] is not installed")
    pytest.importorskip("zarr", reason="the extra [zarr] is not installed")
    large = ss.segment_large(dask.from_array(np.tile(squares(), (3, 3))), tmp_path / "slide", sweeps=4, rng=0)
    (labels, attributes, _), _ = get_reader(str(large.folder))(str(large.folder))
    np.testing.assert_array_equal(labels.compute(), large.labels.compute())
    assert attributes["name"] == "slide labels"


def test_other_folders_are_left_to_other_readers(tmp_path):
    assert get_reader(str(tmp_path)) is None and get_reader([str(tmp_path)]) is None
    (tmp_path / "result.json").write_text("{}")
    assert get_reader(str(tmp_path / "result.json")) is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"settings": {"start_label": 1}}', "\xff"])
def test_a_damaged_result_gets_one_line(found, tmp_path, text):
    found.save(tmp_path, ["labels.tif"])
    (tmp_path / "result.json").write_text(text, encoding="latin-1")
    with pytest.raises(InvalidInput, match=r"^result\.json must be one that spinseg wrote: got '.*result\.json'$"):
        get_reader(str(tmp_path))(str(tmp_path))


def test_every_picture_of_the_package_is_a_sample():
    for name, picture in PICTURES.items():
        ((pixels, attributes, kind),) = getattr(reader, name)()
        assert pixels.ndim == 3 and pixels.dtype == np.uint8 and kind == "image" and attributes["rgb"]
        assert attributes["metadata"] == {"credit": picture.credit}


def test_every_command_of_the_manifest_is_there():
    source = Path(napari_plugin.__file__).parents[2]
    named = re.findall(r"python_name: ([\w.]+):(\w+)", (source / "spinseg/napari_plugin/napari.yaml").read_text())
    assert len(named) == 2 + len(PICTURES)
    for module, name in named:
        tree = ast.parse((source / module.replace(".", "/")).with_suffix(".py").read_text())
        defined = {getattr(node, "name", "") for node in tree.body}
        defined |= {ast.unparse(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}
        assert name in defined
