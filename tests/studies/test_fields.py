"""Images of other fields: their ground truth is what was rendered, and the table tells what was scored."""

import numpy as np
import pytest
from scipy import ndimage

from studies.evaluation.datasets import data_root
from studies.questions import field_images as images
from studies.questions import fields
from studies.questions import object_images as objects
from studies.questions.field_images import Sample

needs_cells = pytest.mark.skipif(
    not (data_root() / "extra" / "cells").is_dir(), reason=f"{data_root()} is not here: set SPINSEG_DATA to its folder"
)


@pytest.mark.parametrize("noise", [0.05, 0.12])
def test_phases_have_their_levels_and_their_noise(noise):
    image, truth, _ = images.three_phases(3, noise)
    np.testing.assert_allclose(np.bincount(truth.ravel()) / truth.size, 1 / 3, atol=0.01)
    middle = image[truth == 1]  # which is not clipped: it is four standard deviations from 0 and 1
    assert middle.mean() == pytest.approx(0.5, abs=6 * noise / 140) and middle.std() == pytest.approx(noise, rel=0.05)
    for phase, level in enumerate(images.LEVELS):
        assert np.median(image[truth == phase]) == pytest.approx(level, abs=8 * noise / 140)


@pytest.mark.parametrize("looks", [30.0, 3.0])
def test_speckle_has_its_variance_within_every_field_and_kinds_are_fields_of_one_spectrum(looks):
    by_field, by_kind = images.six_bands(3, looks)
    assert by_field.image.shape == (256, 256, 6) and by_field.image is by_kind.image
    for kind in np.unique(by_kind.truth):
        values = by_kind.image[by_kind.truth == kind]
        if len(values) > 2000:
            np.testing.assert_allclose(values.var(axis=0) / values.mean(axis=0) ** 2, 1 / looks, rtol=0.25)
    assert np.unique(by_kind.truth).size == 8 and by_field.truth.max() >= 11
    for field in np.unique(by_field.truth):
        assert np.unique(by_kind.truth[by_field.truth == field]).size == 1
        assert ndimage.label(by_field.truth == field)[1] == 1


def test_light_on_coins_falls_so_far_that_no_threshold_finds_them():
    image, truth, _ = images.coins_in_uneven_light(3)
    assert ndimage.label(truth)[1] == 16
    ground = ndimage.gaussian_filter(image, 3)[truth == 0]
    assert ground.max() > 2 * ground.min()
    case = fields.Case("", None, None, "ARI")
    assert max(fields.scored(case, (image > level) * 1, truth) for level in np.linspace(0.1, 0.9, 40)) < 0.9


def test_stones_fill_the_plane_and_stars_are_apart():
    image, truth, _ = images.stones(3)
    edge = (truth[1:] != truth[:-1])[:, :-1] | (truth[:, 1:] != truth[:, :-1])[:-1]
    assert truth.min() == 1 and image[:-1, :-1][edge].mean() < image[:-1, :-1][~edge].mean() - 0.15
    image, truth, _ = images.stars(3)
    assert np.array_equal(np.unique(truth), np.arange(41)) and image[truth > 0].mean() > image[truth == 0].mean() + 0.1
    assert ndimage.label(truth > 0)[1] == 40


def test_textures_differ_in_nothing_but_texture():
    image, truth, _ = images.gravel_in_grass(3)
    inside, outside = image[truth == 1], image[truth == 0]
    assert 0.1 < truth.mean() < 0.4
    assert abs(inside.mean() - outside.mean()) < 0.05 and abs(inside.std() - outside.std()) < 0.05


@needs_cells
def test_cells_of_a_part_are_connected():
    for seed in range(3):
        image, truth, _ = images.plant_cells(seed)
        assert image.shape == truth.shape == (256, 256) and truth.min() == 1
        assert all(ndimage.label(truth == cell)[1] == 1 for cell in range(1, truth.max() + 1))


def halves(seed):
    """A bright and a dark half, with a corner outside."""
    truth = np.repeat([0, 1], 20)[None].repeat(30, axis=0)
    mask = np.ones(truth.shape, bool)
    mask[:6, :6] = False
    noise = np.random.default_rng(seed).normal(0, 0.02, truth.shape)
    return Sample(0.2 + 0.5 * truth + noise, np.where(mask, truth, -1), mask)


def test_a_row_has_the_scores_of_the_call_and_of_the_recipe_inside_the_mask():
    case = fields.Case("halves", halves, "classes", "ARI", "threshold", lambda sample: (sample.image > 0.45) * 1)
    found = fields.row(case, n_seeds=2)
    assert found["spinseg"] == [1.0, 1.0] == found["recipe_scores"] and found["true"] == found["found"] == [2, 2]
    assert fields.text(found).startswith(
        "classes | ARI 1.00 (1.00-1.00) | 2 (2), 2 (2) | threshold 1.00 (1.00-1.00) | "
    )
    wrong = fields.row(case._replace(their_labels=lambda sample: np.indices(sample.image.shape)[0] // 15), n_seeds=1)
    assert wrong["recipe_scores"][0] < 0.1
    one = {"call": "default", "score": "regions", "spinseg": [np.nan], "found": [1], "true": [0]}
    assert "**one region**" in fields.text(one | {"recipe": "", "recipe_scores": [], "seconds": 1.0})


@pytest.mark.parametrize("case", fields.cases(), ids=lambda case: f"{case.name}, {case.preset}")
def test_cases_with_a_recipe_have_a_name_for_it(case):
    assert (case.their_labels is None) == (case.recipe == "") == (case.score == "regions")


def test_recipes_find_what_they_are_made_for():
    stones, sky = images.stones(3), images.stars(3)
    case = fields.Case("", None, None, "F1")
    assert fields.scored(case, fields.bright_basins(stones), stones.truth) > 0.6
    assert fields.scored(case, fields.peaks(sky), sky.truth) > 0.3
    phases = images.three_phases(3, 0.05)
    assert fields.scored(case._replace(score="ARI"), fields.multi_otsu(phases), phases.truth) > 0.95


# --- objects that are dim beside something else, or in two channels ---


def border(labels):
    """Pixels whose neighbor to the right or below belongs to another region."""
    edge = np.zeros(labels.shape, bool)
    edge[:-1] |= labels[1:] != labels[:-1]
    edge[:, :-1] |= labels[:, 1:] != labels[:, :-1]
    return edge


def test_membranes_lie_on_the_borders_of_cells_and_each_cell_has_a_nucleus():
    image, truth, _ = objects.membrane_and_nucleus(3)
    assert image.shape == (256, 256, 2) and truth.min() == 1
    edge, deep = border(truth), ndimage.distance_transform_edt(~border(truth)) > 6
    assert image[edge, 0].mean() > 3 * image[deep, 0].mean()
    bright = ndimage.maximum(ndimage.gaussian_filter(image[..., 1], 1), truth, np.arange(1, truth.max() + 1))
    assert bright.min() > 0.3 and np.median(image[edge, 1]) < 0.15
    merged = objects.membrane_and_nucleus(3, is_merged=True)
    assert np.array_equal(merged.truth, truth) and merged.image.dtype == np.uint8
    red, green, blue = np.moveaxis(merged.image.astype(int), -1, 0)
    assert np.array_equal(green, blue) and np.corrcoef(green.ravel(), image[..., 0].ravel())[0, 1] > 0.99
    assert np.corrcoef(red.ravel(), image[..., 1].ravel())[0, 1] > 0.99


def test_relaxed_cells_have_about_one_size():
    cells, centers = objects.relaxed_cells(np.random.default_rng(0))
    sizes = np.bincount(cells.ravel())[1:]
    assert len(centers) == sizes.size == 80 and sizes.std() < 0.35 * sizes.mean()


def test_debris_is_far_brighter_than_nuclei_and_counts_neither_way():
    image, truth, _ = objects.nuclei_with_debris(3)
    assert image.dtype == np.uint16 and np.count_nonzero(truth < 0) > 50
    assert image[truth < 0].max() > 20 * np.median(image[truth > 0])
    assert np.percentile(image[truth >= 0], 99.9) < 4 * np.median(image[truth > 0])
    assert np.median(image[truth > 0]) > 2 * np.median(image[truth == 0])


def test_noise_of_nuclei_is_30_of_255():
    image, truth, _ = objects.noisy_nuclei(3)
    assert image.dtype == np.uint8
    ground = image[~ndimage.binary_dilation(truth > 0, iterations=4)].astype(float)
    apart = np.percentile(ground, 84) - np.median(ground)  # less of it is clipped than of the lower half
    assert apart == pytest.approx(30, abs=2)
    assert all(ndimage.label(truth == number)[1] <= 2 for number in range(1, truth.max() + 1))


def test_sources_go_over_decades_and_lie_above_the_noise():
    image, truth, _ = objects.crowded_sky(3)
    sky = np.median(image[truth == 0])
    peaks = ndimage.maximum(image - sky, truth, np.unique(truth)[1:])
    assert len(peaks) > 50 and np.sort(peaks)[-3:].min() > 50 * np.median(image[truth == 0].std())
    rim = (truth > 0) & (ndimage.minimum_filter(truth, 3) == 0)
    assert image[truth == 0].std() < 25 and np.median(image[rim]) > sky + 24


def test_warm_objects_are_one_kelvin_above_what_is_around_them_and_two_are_hot():
    image, truth, _ = objects.warm_objects(3)
    rises = []
    for number in range(1, 15):
        inside = truth == number
        ring = ndimage.binary_dilation(inside, iterations=5) & ~ndimage.binary_dilation(truth > 0, iterations=2)
        rises.append((np.median(image[inside]) - np.median(image[ring])) / 100)
    assert np.allclose(np.sort(rises)[:12], 1, atol=0.45) and min(np.sort(rises)[12:]) > 40
    assert np.ptp(ndimage.median_filter(image[truth == 0] / 100, 9)) > 2  # more than that of objects


def test_textures_of_a_mosaic_have_one_mean_and_one_variance():
    image, truth, _ = objects.texture_mosaic(3)
    parts = [image[truth == kind] for kind in range(3)]
    assert min(map(len, parts)) > 3000
    assert np.ptp([part.mean() for part in parts]) < 0.06
    assert all(part.std() == pytest.approx(0.17, abs=0.03) for part in parts)


RECIPES = fields._object_cases()


@pytest.mark.parametrize("case", RECIPES, ids=[case.name for case in RECIPES])
def test_recipes_find_most_objects(case):
    sample = case.sample(3)
    assert fields.scored(case, case.their_labels(sample), sample.truth) > 0.5


def test_rows_are_chosen_by_a_part_of_their_name(monkeypatch):
    monkeypatch.setattr(
        fields,
        "row",
        lambda case: {
            "call": "default",
            "score": "regions",
            "spinseg": [],
            "found": [1],
            "true": [1],
            "recipe": "",
            "recipe_scores": [],
            "seconds": 0.0,
        },
    )
    assert list(fields.study("STARS and")) == ["image", "stars and galaxies"]
    assert {"stars", "stars and galaxies"} < set(fields.study("stars"))
    with pytest.raises(ValueError, match="no row contains 'cats'"):
        fields.study("cats")
