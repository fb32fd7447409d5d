"""Pixels and voxels as sites: segmentations, the coarse start, and how many draws are kept."""

import inspect
import json
import re

import numpy as np
import pytest
from PIL import Image
from skimage.io import imread
from typer.testing import CliRunner

import spinseg as ss
import spinseg.segmentation.segment as module
from effort import effort, exhaustive
from spinseg.cli.program import app
from spinseg.pictures import PICTURES
from spinseg.sampler import sampler
from spinseg.segmentation.files import FILES
from spinseg.segmentation.presets import PHOTO, PHOTO_OF_PIXELS, PHOTO_UNCONNECTED, PRESETS, changed_settings
from spinseg.segmentation.segment import MAX_SWEEPS
from studies.evaluation.metrics import rand_index

pytestmark = pytest.mark.xdist_group("pixel_sites")  # they share a segmentation


@pytest.fixture(scope="module")
def picture():
    with Image.open(PICTURES["coffee"].path) as image:
        return np.asarray(image)[100:148, 200:260]


@pytest.fixture(scope="module")
def found(picture):
    return ss.segment(picture, sites="pixels", sweeps=12, regions=False, rng=3)


# ---- segmentations ---------------------------------------------------------------------------------------------------


def assert_of_pixels(found, shape, connectivity=1, inside=None):
    """A segmentation of an image of this shape whose sites are its pixels."""
    inside = np.ones(shape, bool) if inside is None else inside
    graph = ss.SiteGraph.grid(shape, connectivity=connectivity, inside=inside)
    assert found.labels.shape == found.sites.shape == found.boundary_probability.shape == shape
    np.testing.assert_array_equal(found.model.graph.edges, graph.edges)
    np.testing.assert_array_equal(found.sites[inside], np.arange(graph.n_sites))
    assert (found.sites[~inside] == -1).all() and (found.labels[~inside] == 0).all()
    np.testing.assert_array_equal(found.labels[inside], found.partition + 1)
    assert set(found.partition.tolist()) == set(range(found.n_clusters))
    assert not found.boundary_probability[~inside].any()
    best = found.chains.best_log_posterior
    assert found.model.log_posterior(found.chains.best_labels) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("preset", effort(["paper"], list(PRESETS)))
def test_pixels_of_a_picture(picture, preset):
    keywords = {"preset": preset, "sites": "pixels", "sweeps": 6, "chains": 2, "rng": 5}
    one, two = (ss.segment(picture, workers=workers, **keywords) for workers in (1, 2))
    assert_of_pixels(one, picture.shape[:2])
    np.testing.assert_array_equal(one.chains.labels, two.chains.labels)
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.settings.regions == (preset == "photo")


@pytest.mark.parametrize("preset", effort(["paper"], list(PRESETS)))
def test_pixels_inside_a_mask(picture, preset):
    inside = np.hypot(*np.ogrid[-24:24, -30:30]) < 20
    inside[::7, ::5] = False
    inside[40:, 50:] = True  # a second piece
    noisy = picture.copy()
    noisy[~inside] = np.random.default_rng(0).integers(0, 256, noisy[~inside].shape)
    keywords = {"preset": preset, "sites": "pixels", "connectivity": 2, "mask": inside, "sweeps": 4, "rng": 0}
    found = ss.segment(picture, **keywords)
    assert_of_pixels(found, picture.shape[:2], 2, inside)
    np.testing.assert_array_equal(found.labels, ss.segment(noisy, **keywords).labels)


def box(shape):
    """Noise with a brighter box in it, and where the box is."""
    where = np.zeros(shape, bool)
    where[tuple(slice(n // 4, n - n // 4) for n in shape)] = True
    return np.random.default_rng(0).normal(0.3, 0.02, shape) + 0.4 * where, where


@pytest.mark.parametrize(
    ("shape", "connectivity"), effort([((40, 50), 2)], [((40, 50), 1), ((40, 50), 2), ((16, 24, 24), 1)]), ids=str
)
def test_a_box_is_found_pixel_by_pixel_in_pictures_and_volumes(shape, connectivity):
    image, where = box(shape)
    found = ss.segment(image, sites="pixels", connectivity=connectivity, channel_axis=None, sweeps=20, rng=0)
    assert_of_pixels(found, shape, connectivity)
    assert found.n_clusters == 2
    assert np.mean((found.labels == 2) != where) < 0.001  # the box is the smaller one


@pytest.mark.parametrize("preset", list(PRESETS))
def test_voxels_may_have_26_neighbours(preset):
    image, _ = box((6, 9, 12))
    found = ss.segment(image, preset, sites="pixels", connectivity=3, channel_axis=None, sweeps=4, rng=0)
    assert_of_pixels(found, image.shape, 3)


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("shape", effort([(1, 1), (12, 14, 5)], [(1, 1), (1, 5), (2, 2), (12, 14, 5)]), ids=str)
def test_tiny_pictures_and_many_channels(shape, preset, tmp_path):
    image = np.random.default_rng(1).random(shape)
    axis = -1 if len(shape) == 3 else None
    found = ss.segment(image, preset, sites="pixels", channel_axis=axis, sweeps=4, rng=0)
    assert_of_pixels(found, shape[:2])
    found.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    ("keywords", "line"),
    [
        ({"sites": "pixels", "connectivity": 3}, "connectivity must be at most the 2 axes of the image; received 3"),
        ({"sites": "pixels", "connectivity": 0}, "connectivity must be a whole number of at least 1; received 0"),
        ({"sites": "pixels", "connectivity": [1, 2]}, "connectivity must be a whole number of at least 1; received"),
        ({"connectivity": 2}, "connectivity must be 1 where sites are not pixels; received 2"),
        ({"sites": np.zeros((48, 60), int), "connectivity": 2}, "connectivity must be 1 where sites are not pixels"),
        ({"sites": "pixels", "n_sites": 9}, "n_sites must be None where every pixel is a site; received 9"),
    ],
)
def test_wrong_wishes_get_one_line_before_anything_is_sampled(picture, keywords, line, monkeypatch):
    monkeypatch.setattr(module, "sample", None)
    for preset in PRESETS:
        with pytest.raises(ValueError, match=f"^{re.escape(line)}") as error:
            ss.segment(picture, preset, **keywords)
        assert "\n" not in str(error.value)


# ---- from coarse to fine ---------------------------------------------------------------------------------------------


@pytest.fixture
def starts(monkeypatch):
    """Where the chains of every call of `sample` from `segment` start."""
    seen = []

    def noted(*arguments, **keywords):
        seen.append(keywords["init"] if "init" in keywords else arguments[5])
        return sampler.sample(*arguments, **keywords)

    monkeypatch.setattr(module, "sample", noted)
    return seen


def test_chains_start_from_the_coarse_segmentation(picture, found):
    coarse = ss.segment(picture, rng=3, start_label=0).labels.ravel()
    value = found.model.log_posterior(coarse)
    assert coarse.max() > 0
    assert found.chains.best_log_posterior >= value
    from_one = ss.sample(found.model, 12, 2, burn_in=6, rng=3)
    assert found.chains.best_log_posterior > from_one.best_log_posterior
    one = found.model.log_posterior(np.zeros_like(coarse))
    assert (found.chains.trace("log_posterior")[:, 0] > (value + one) / 2).all()
    assert rand_index(found.partition, found.chains.best_labels) == 1  # regions=False


def test_the_coarse_segmentation_has_the_detail_chains_mask_and_seed_that_are_asked_for(picture, starts):
    inside = np.zeros(picture.shape[:2], bool)
    inside[5:40, 10:50] = True
    shared = {"detail": 0.9, "chains": 1, "mask": inside, "rng": 8}
    ss.segment(picture, sites="pixels", sweeps=2, **shared)
    coarse = ss.segment(picture, **shared)
    before, first, moved, again = starts  # coarse, by single pixels, fine; coarse
    np.testing.assert_array_equal(first, coarse.labels[inside] - 1)
    assert before == again == "dispersed" and first.shape == moved.shape


@exhaustive
@pytest.mark.parametrize("connectivity", [1, 3])
def test_a_box_in_a_volume_is_found_though_its_coarse_outline_is_off(connectivity):
    truth = np.zeros((10, 20, 24), bool)
    truth[3:7, 5:15, 6:18] = True
    volume = np.where(truth, 0.7, 0.3) + np.random.default_rng(0).normal(0, 0.02, truth.shape)
    found = ss.segment(volume.clip(0, 1), sites="pixels", connectivity=connectivity, sweeps=20, chains=1, rng=0)
    assert found.n_clusters == 2
    assert (found.labels == found.labels[5, 10, 12])[truth].mean() > 0.99
    assert (found.labels == found.labels[0, 0, 0])[~truth].mean() > 0.99


@pytest.mark.parametrize("limits", effort([{"max_size": 300}], [{"max_size": 300}, {"min_size": 1500}]), ids=str)
def test_a_coarse_start_that_the_prior_forbids_is_not_used(picture, starts, limits):
    found = ss.segment(
        picture, sites="pixels", prior=ss.TemperedProcess(1e-3, **limits), sweeps=3, regions=False, rng=0
    )
    assert starts == ["dispersed", "one"]
    sizes = np.bincount(found.partition)
    assert sizes.max() <= limits.get("max_size", sizes.sum()) and sizes.min() >= limits.get("min_size", 1)


def stop_at(sweeps):
    """Ctrl-C in the run of so many sweeps of all chains."""

    def progress(at):
        if at.total == sweeps:
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_while_pixels_are_sampled(picture, tmp_path):
    with pytest.raises(ss.SegmentationInterrupted) as stopped:
        ss.segment(picture, sites="pixels", sweeps=40_000, rng=0, progress=stop_at(80_000))
    kept = stopped.value.segmentation
    assert kept.interrupted and kept.chains.n_sweeps < 40_000 and kept.settings.sites_are_pixels
    assert_of_pixels(kept, picture.shape[:2])
    assert kept.n_clusters > 1  # the coarse start at least
    kept.save(tmp_path)
    assert json.loads((tmp_path / "result.json").read_text())["interrupted"]


def test_ctrl_c_in_the_first_sweeps_of_single_pixels_is_told_too(picture, monkeypatch):
    def stopped_at_pixels(model, *arguments, **keywords):
        chains = ss.sample(model, *arguments, **keywords)
        if model.graph.n_sites == picture.shape[0] * picture.shape[1]:
            raise ss.SamplingInterrupted(chains)
        return chains

    monkeypatch.setattr(module, "sample", stopped_at_pixels)
    with pytest.raises(ss.SegmentationInterrupted) as stopped:
        ss.segment(picture, sites="pixels", sweeps=5, start_label=0, rng=0)
    kept = stopped.value.segmentation
    assert kept.interrupted and not kept.settings.sites_are_pixels and kept.labels.min() == 0


def test_ctrl_c_while_the_coarse_segmentation_runs(picture, tmp_path):
    path = tmp_path / "coffee.png"
    Image.fromarray(picture).save(path)
    inside = np.zeros(picture.shape[:2], bool)
    inside[5:40, 10:50] = True
    with pytest.raises(ss.SegmentationInterrupted) as stopped:
        ss.segment(
            path,
            sites="pixels",
            sweeps=5,
            mask=inside,
            channel_axis=-1,
            rng=0,
            progress=stop_at(2 * PHOTO.n_details * MAX_SWEEPS),
        )
    kept = stopped.value.segmentation
    assert kept.interrupted and not kept.settings.sites_are_pixels
    assert ((kept.labels > 0) == inside).all()
    assert kept.python_code == f"ss.segment({str(path)!r}, channel_axis=-1, mask=mask, rng=0)"
    kept.save(tmp_path / "out")
    told = json.loads((tmp_path / "out" / "result.json").read_text())
    assert told["interrupted"] and told["source"] == str(path) and told["settings"]["sites"] == "watershed"


# ---- files and the command -------------------------------------------------------------------------------------------


@exhaustive
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"preset": "paper", "beta": 0.7},
        {"connectivity": 2, "prior": ss.TemperedProcess(1e-5, min_size=3), "count_weight": 0.4, "chains": 1},
    ],
    ids=str,
)
def test_the_line_of_python_repeats_the_run(picture, keywords):
    found = ss.segment(picture, sites="pixels", sweeps=3, rng=7, **keywords)
    assert changed_settings(found.settings).keys() == {"sites", "sweeps"} | keywords.keys() - {"preset"}
    assert changed_settings(found.settings).keys() <= inspect.signature(module.segment).parameters.keys()
    again = eval(found.python_code, {"ss": ss, "image": picture})
    assert again.settings.sites_are_pixels
    np.testing.assert_array_equal(again.chains.labels, found.chains.labels)
    np.testing.assert_array_equal(again.labels, found.labels)


def test_files_tell_of_pixels(found, tmp_path):
    found.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    told = json.loads((tmp_path / "result.json").read_text())
    assert told["n_sites"] == 48 * 60 and told["settings"]["sites"] == "pixels"
    assert told["settings"]["init"] == "coarse" and told["settings"]["beta"] == "contrast"
    assert sum(region["area"] for region in told["regions"]) == 48 * 60
    assert told["python"] == "ss.segment(image, sites='pixels', regions=False, sweeps=12, rng=3)"
    np.testing.assert_array_equal(imread(tmp_path / "labels.tif"), found.labels)
    page = (tmp_path / "report.html").read_text()
    assert "2,880 sites, a picture of 48 x 60 pixels, " in page and "<tr><th>sites</th><td>pixels</td></tr>" in page


@exhaustive
def test_the_command_takes_pixels(picture, tmp_path):
    path = tmp_path / "coffee.png"
    Image.fromarray(picture).save(path)
    out = ["--out", str(tmp_path), "--sweeps", "3", "--chains", "1", "--json"]
    segment = ["segment", str(path), "--site-kind", "pixels", *out]
    run = CliRunner().invoke(app, [*segment, "--min-size", "4"])
    assert run.exit_code == 0, run.output
    told = json.loads(run.stdout)["images"][0]
    assert told["n_sites"] == 48 * 60 and told["settings"]["sites"] == "pixels"
    assert told["settings"]["prior"] == "ss.TemperedProcess(concentration=1e-06, min_size=4)"  # as without a limit
    prior = ss.TemperedProcess(1e-6, min_size=4)
    expected = ss.segment(path, sites="pixels", prior=prior, sweeps=3, chains=1, rng=0)
    np.testing.assert_array_equal(imread(tmp_path / "coffee" / "labels.tif"), expected.labels)
    run = CliRunner().invoke(app, [*segment, "--sites", "9", "--overwrite"])
    assert str(run.exception) == "n_sites must be None where every pixel is a site; received 9" and not run.stdout


# ---- how many draws are kept -----------------------------------------------------------------------------------------


def test_a_segmentation_keeps_as_many_draws_as_fit(picture, monkeypatch):
    monkeypatch.setattr(sampler, "MAX_LABELS", 7 * 2 * 48 * 60)
    found = ss.segment(picture, "paper", sites="pixels", sweeps=40, chains=2, rng=0)
    assert found.chains.labels.shape == (2, 6, 48 * 60) and found.chains.thin == 3
    assert found.chains.n_sweeps == 40 and found.chains.burn_in == 20


def test_the_settings_of_pixels_differ_in_what_they_must():
    usual, pixels = vars(PHOTO_UNCONNECTED), vars(PHOTO_OF_PIXELS)
    changed = {name for name in usual if usual[name] != pixels[name]}
    assert changed == {"sites", "likelihood", "count_weight", "prior", "beta", "init"}
    assert changed_settings(PHOTO_OF_PIXELS) == {"sites": "pixels"}
