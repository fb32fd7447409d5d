"""Kinds of images: photographs, and what an instrument measured; what the network for those reads."""

import gc
import weakref

import numpy as np
import pytest
from PIL import Image

import spinseg as ss
from spinseg.image.boundary import kinds as module
from spinseg.image.boundary.kinds import kind_of_image, photograph_log_odds, stretched
from spinseg.image.boundary.network import BoundaryNetwork
from spinseg.pictures import PICTURES
from studies.scenes import RENDERERS, render


@pytest.mark.parametrize("name", PICTURES)
def test_photographs_are_recognized_in_color_in_gray_and_in_part(name):
    picture = ss.read_picture(PICTURES[name].path)
    height, width = picture.shape
    parts = [picture.rgb, picture.rgb.mean(axis=-1).astype(np.uint8), picture.rgb[: height // 2, : width // 2]]
    assert [kind_of_image(ss.as_picture(part)) for part in parts] == ["photograph"] * 3


@pytest.mark.parametrize("name", PICTURES)
def test_photographs_with_a_cast_and_haze_are_recognized(name):
    rgb = ss.read_picture(PICTURES[name].path).rgb
    under_water = np.rint([0.2, 0.7, 1] * (0.3 * rgb + 0.7 * 150)).astype(np.uint8)
    assert kind_of_image(ss.as_picture(under_water)) == "photograph"


def test_most_scenes_are_recognized():
    kinds = [kind_of_image(ss.as_picture(_gray(kind, i))) for i in range(4) for kind in RENDERERS]
    assert kinds.count("measured") >= 0.85 * len(kinds)


@pytest.mark.parametrize("shape", [(40, 60, 3), (256, 256, 3), (200, 320, 3), (320, 330, 3)])
def test_the_whole_image_and_its_middle_are_looked_at(shape):
    rgb, network = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8), BoundaryNetwork.fitted("measured")
    middle = tuple(slice(max(n - 256, 0) // 2, (n + 256) // 2) for n in shape[:2])
    values = rgb / np.float32(255)
    small = [round(min(1, 256 / max(shape)) * n) for n in shape[:2]]
    whole = np.stack(
        [Image.fromarray(x).resize(small[::-1], Image.Resampling.BILINEAR) for x in values.T.swapaxes(1, 2)]
    )
    expected = (network.features(np.moveaxis(whole, 0, -1)) + network.features(values[middle])) / 2
    np.testing.assert_allclose(module.kind_features(rgb), expected, rtol=1e-3, atol=1e-4)


def test_a_kind_is_judged_once_and_forgotten_with_its_image(monkeypatch):
    judged = []
    monkeypatch.setattr(module, "photograph_log_odds", lambda rgb: judged.append(rgb.shape) or 1.0)
    picture = ss.as_picture(_gray("blobs", 0))
    kept = weakref.ref(picture)
    assert kind_of_image(picture) == kind_of_image(picture) == "photograph" and len(judged) == 1
    del picture
    gc.collect()
    assert kept() is None


def test_volumes_and_measured_channels_are_no_photographs():
    photograph = ss.read_picture(PICTURES["cat"].path).rgb
    assert kind_of_image(ss.as_picture(photograph, channel_kind="measured")) == "measured"
    assert kind_of_image(ss.as_picture(np.concatenate([photograph] * 2, axis=-1), channel_axis=-1)) == "measured"
    assert kind_of_image(ss.as_picture(np.stack([photograph[..., 0]] * 20))) == "measured"


def test_the_kind_does_not_depend_on_gain_or_offset():
    image = _gray("blobs", 0)
    before, after = (photograph_log_odds(stretched(ss.as_picture(x)).rgb) for x in (image, 0.2 + 0.4 * image))
    assert abs(before - after) < 0.05 * abs(before) + 0.1


def test_a_dark_image_is_stretched_and_numbers_outside_do_not_count():
    image, inside = np.random.default_rng(0).uniform(0.1, 0.2, (40, 50)), np.ones((40, 50), bool)
    image[0], inside[0] = 1.0, False
    values = stretched(ss.as_picture(image), inside).values[1:]
    assert values.min() == 0 and values.max() == 1
    assert abs(np.median(values) - 0.5) < 0.05
    few = stretched(ss.as_picture(np.full((5, 5), 0.3))).values
    assert np.ptp(few) == 0


def test_the_map_of_strengths_is_that_of_the_kind():
    image = _gray("blobs", 0)
    picture = ss.as_picture(image)
    if kind_of_image(picture) == "measured":
        expected = BoundaryNetwork.fitted("measured").mean_log_odds(stretched(picture).values, (1.0, 1.4))[0]
        np.testing.assert_allclose(ss.boundary_strength(image), 1 / (1 + np.exp(-expected)), atol=1e-5)
    bands = np.random.default_rng(0).uniform(size=(40, 50, 5))
    assert ss.boundary_strength(bands).shape == (40, 50)
    with pytest.raises(ss.InvalidInput, match=r"^image must be of one plane: got 'shape \(20, 30, 40\)'$"):
        ss.boundary_strength(np.zeros((20, 30, 40)))


def _gray(kind, seed):
    return render(kind, (160, 160), np.random.default_rng([5, seed])).image.mean(axis=-1)
