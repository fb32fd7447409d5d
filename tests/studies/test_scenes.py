"""Rendered scenes: their ground truth is what was drawn, and the instrument does what it says."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import ndimage

from studies.scenes import (
    RENDERERS,
    WEIGHTS,
    Scene,
    debris,
    in_three_channels,
    light,
    observe,
    random_kind,
    read_noise,
    render,
    speckle,
    telescope,
    thermal_camera,
)
from studies.scenes.basic import fields, phases
from studies.scenes.cells import cells_with_nuclei, membrane_stain, plant_cells
from studies.scenes.instruments import LARGE
from studies.scenes.lines import pages, vessels
from studies.scenes.nuclei import crowds, seams, tissue
from studies.scenes.parts import border_distance, cells, connected, packed, whitened
from studies.scenes.patterns import PATTERNS, UNLIKE, _look, _unlike, standardized
from studies.scenes.sky import stars, thermal

WITHOUT_OBJECTS = {"grains", "fields", "phases", "textures", "mosaics", "inlays"}
FULL = {"membranes", "plant_cells"}  # of objects


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", RENDERERS)
def test_regions_are_connected_and_numbered_and_values_are_from_0_to_1(kind, seed):
    scene = render(kind, (90, 120), np.random.default_rng(seed))
    assert scene.image.shape[:2] == scene.labels.shape == (90, 120) and scene.image.ndim == 3
    assert scene.image.min() >= 0 and scene.image.max() <= 1
    np.testing.assert_array_equal(np.unique(scene.labels), np.arange(scene.kinds.size))
    assert all(ndimage.label(scene.labels == region)[1] == 1 for region in range(scene.kinds.size))


@pytest.mark.parametrize("kind", RENDERERS)
def test_the_same_seed_gives_the_same_scene_and_another_seed_another(kind):
    first, again, other = (render(kind, (64, 64), np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.image, again.image)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.image, other.image)


@pytest.mark.parametrize("kind", RENDERERS)
def test_objects_are_given_where_a_scene_has_them_and_some_are_background(kind):
    scenes = [RENDERERS[kind]((90, 120), np.random.default_rng([1, seed])) for seed in range(6)]
    if kind in WITHOUT_OBJECTS:
        assert all(scene.objects is None for scene in scenes)
        return
    flags = [scene.objects for scene in scenes]
    assert all(
        each.dtype == bool and each.shape == scene.kinds.shape for each, scene in zip(flags, scenes, strict=True)
    )
    assert any(each.any() for each in flags) and (kind in FULL) == all(each.all() for each in flags)


def test_kinds_are_drawn_by_their_weights():
    assert list(WEIGHTS) == list(RENDERERS)
    rng = np.random.default_rng(0)
    drawn = [random_kind(rng) for _ in range(4000)]
    total = sum(WEIGHTS.values())
    for kind, weight in WEIGHTS.items():
        assert drawn.count(kind) / 4000 == pytest.approx(weight / total, abs=0.02)
    assert drawn.count("crowds") > 2 * drawn.count("pages")


# --- parts ---


def test_pieces_of_an_owner_are_numbered_by_owner_and_small_ones_join_the_nearest():
    owner = np.array([[2, 2, 0, 2], [2, 2, 0, 2], [0, 0, 0, 2]])
    labels, sources = connected(owner, least=0)
    assert labels.tolist() == [[1, 1, 0, 2], [1, 1, 0, 2], [0, 0, 0, 2]] and sources.tolist() == [0, 2, 2]
    labels, sources = connected(owner, least=4)
    assert sources.tolist() == [0, 2] and (labels[:, 3] == 0).all()
    corners, _ = connected(np.eye(2, dtype=int), least=0)
    assert corners.tolist() == [[2, 0], [1, 3]]  # pixels that share a corner are apart


def test_pieces_of_a_volume_are_connected():
    owner = np.zeros((3, 4, 5), int)
    owner[0, :2, :2] = owner[2, 3, 3:] = 1
    labels, sources = connected(owner, least=0)
    assert sources.tolist() == [0, 1, 1] and labels[0, 0, 0] == 1 and labels[2, 3, 4] == 2


def test_the_distance_to_a_border_is_half_a_pixel_on_either_side():
    labels = np.repeat([0, 1], 5)[None].repeat(4, axis=0)
    assert border_distance(labels)[2].tolist() == [4.5, 3.5, 2.5, 1.5, 0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    assert (border_distance(np.zeros((3, 4), int)) == 4).all()


def test_a_region_is_whitened_to_a_disc_of_radius_1():
    y, x = np.indices((80, 120)) - np.array([40, 60])[:, None, None]
    turned = np.abs(0.8 * y + 0.6 * x) ** 2 / 12**2 + np.abs(0.8 * x - 0.6 * y) ** 2 / 40**2
    radius = np.hypot(*whitened((turned < 1).astype(np.int32)))[turned < 1]
    assert 0.95 < radius.max() < 1.1
    np.testing.assert_allclose(radius, np.sqrt(turned[turned < 1]), atol=0.06)


def test_packed_circles_overlap_by_their_share_at_most():
    within = np.zeros((100, 100), bool)
    within[:50] = True
    centers, radii = packed((100, 100), np.full(400, 6.0), np.random.default_rng(1), overlap=0.25, within=within)
    apart = np.hypot(*(centers[:, None] - centers[None]).transpose(2, 0, 1)) + 99 * np.eye(len(centers))
    assert len(radii) > 12 and 0.75 * 12 < apart.min() < 12 and centers[:, 0].max() < 51


# --- what is drawn ---


@pytest.mark.parametrize("renderer", [fields, phases])
def test_regions_of_a_kind_never_touch(renderer):
    n_borders = 0
    for seed in range(5):
        scene = renderer((100, 100), np.random.default_rng(seed))
        for here, there in ((scene.labels[1:], scene.labels[:-1]), (scene.labels[:, 1:], scene.labels[:, :-1])):
            apart = here != there
            n_borders += np.count_nonzero(apart)
            assert (scene.kinds[here[apart]] != scene.kinds[there[apart]]).all()
    assert n_borders > 0


def test_the_middle_of_a_membrane_is_the_border_between_two_cells():
    for seed in range(4):
        rng = np.random.default_rng([2, seed])
        labels, _ = cells((120, 120), rng, 30, jitter=0.6)
        border = border_distance(labels)
        stain = membrane_stain(labels, border, np.ones(labels.max() + 1, bool), rng)
        by_distance = [np.median(stain[(border > r - 0.6) & (border <= r)]) for r in (0.5, 1.5, 2.5, 4.5, 8)]
        assert all(near > far for near, far in pairwise(by_distance[:3])) and by_distance[0] > 1.5 * by_distance[-1]


def test_a_nucleus_is_no_region_of_its_own_and_a_channel_shows_it():
    found, several = [], 0
    for seed in range(12):
        scene = cells_with_nuclei((150, 150), np.random.default_rng([3, seed]))
        several += scene.image.shape[-1] > 1
        border, is_cell = border_distance(scene.labels), scene.objects[scene.labels]
        deep = is_cell & (np.hypot(*whitened(scene.labels)) < 0.2) & (border > 3)
        rim = is_cell & (border > 4) & (np.hypot(*whitened(scene.labels)) > 0.65)
        if deep.any() and rim.any():
            contrast = np.abs(np.median(scene.image[deep], axis=0) - np.median(scene.image[rim], axis=0))
            found.append(contrast.max())
    assert np.mean(np.array(found) > 0.15) > 0.8 and several >= 8


def test_cells_with_nuclei_fill_the_plane_or_lie_on_a_background():
    full = [cells_with_nuclei((90, 90), np.random.default_rng([4, seed])).objects.all() for seed in range(16)]
    assert 2 < sum(full) < 14


def test_crowded_nuclei_touch_and_some_borders_cannot_be_seen():
    touching, invisible = 0, 0
    for seed in range(16):
        scene = crowds((120, 120), np.random.default_rng([5, seed]))
        seam = seams(scene.labels, scene.kinds) < 1
        touching += seam.any()
        if np.count_nonzero(seam) > 50:
            inside = scene.objects[scene.labels] & ~seam & (border_distance(scene.labels) > 1.5)
            gray = scene.image.mean(axis=-1)
            invisible += abs(np.median(gray[seam]) - np.median(gray[inside])) < 0.1 * np.ptp(gray)
    assert touching >= 12 and invisible >= 3


def test_seams_are_between_objects_alone():
    labels = np.array([[0, 0, 0, 0], [1, 1, 2, 2], [1, 1, 2, 2], [0, 0, 0, 0]])
    found = seams(labels, np.array([0, 1, 2])) < 1
    assert found.tolist() == [[False] * 4, [False, True, True, False], [False, True, True, False], [False] * 4]


def test_nuclei_of_a_tissue_are_darker_than_their_surroundings():
    for seed in range(6):
        scene = tissue((120, 120), np.random.default_rng([6, seed]))
        assert scene.image.shape[-1] == 3
        is_nucleus = scene.objects[scene.labels]
        red = scene.image[..., 0]
        assert np.median(red[is_nucleus]) < np.median(red[~is_nucleus]) - 0.05


def test_a_star_is_where_it_exceeds_the_sky_and_peaks_go_over_two_decades():
    spans = []
    for seed in range(8):
        scene = stars((160, 160), np.random.default_rng([7, seed]))
        light_of, is_star = scene.image[..., 0], scene.objects[scene.labels]
        assert np.quantile(light_of[is_star], 0.01) > 1.1  # standard deviations of the noise of the sky
        assert light_of[~is_star].max() < 4
        peaks = ndimage.maximum(light_of, scene.labels, np.flatnonzero(scene.objects))
        spans.append(max(peaks) / min(peaks))
    assert max(spans) > 100


def test_a_telescope_adds_noise_of_the_sky_in_the_units_of_a_scene():
    flat = Scene(np.zeros((200, 200, 1)), np.zeros((200, 200), np.int32), np.zeros(1, np.int64), np.zeros(1, bool))
    flat.image[80:120, 80:120] = 50
    for seed in range(4):
        seen = telescope(flat, np.random.default_rng(seed)).image[..., 0]
        spread = 1.48 * np.median(np.abs(seen[:80] - ndimage.median_filter(seen[:80], 25)))
        step = np.median(seen[80:120, 80:120]) - np.median(seen[75:125, 60:78])
        assert 30 < step / spread < 60 and seen.max() == 1


def test_thermal_objects_are_above_their_surroundings_by_kelvins():
    rises = []
    for seed in range(8):
        scene = thermal((140, 140), np.random.default_rng([8, seed]))
        kelvin, seen = scene.image[..., 0], thermal_camera(scene, np.random.default_rng(seed)).image[..., 0]
        np.testing.assert_allclose(
            ndimage.gaussian_filter(655.35 * seen, 3), ndimage.gaussian_filter(kelvin, 3), atol=9
        )
        np.testing.assert_allclose(np.rint(65535 * seen), 65535 * seen, atol=1e-6)
        ring = ndimage.binary_dilation(scene.objects[scene.labels], iterations=3) & ~scene.objects[scene.labels]
        for region in np.flatnonzero(scene.objects):
            near = ring & ndimage.binary_dilation(scene.labels == region, iterations=4)
            if near.any():
                rises.append(np.median(kelvin[scene.labels == region]) - np.median(kelvin[near]))
    assert np.mean(np.array(rises) > 0.2) > 0.9 and 0.5 < np.median(rises) < 6 and max(rises) > 10


def test_thin_things_are_darker_or_brighter_than_what_is_around_them():
    for renderer, seed in ((vessels, 0), (vessels, 1), (pages, 0), (pages, 1)):
        scene = renderer((120, 120), np.random.default_rng([9, seed]))
        thin = scene.objects[scene.labels]
        assert 0 < thin.mean() < 0.5 and ndimage.distance_transform_edt(thin).max() < 20
        apart = np.median(scene.image[thin], axis=0) - np.median(scene.image[~thin], axis=0)
        assert (np.abs(apart) > 2 * scene.image[~thin].std(axis=0) * thin.mean()).any() and np.abs(apart).max() > 0.03


def test_plant_cells_have_very_different_sizes_and_bright_walls():
    ranges = []
    for seed in range(6):
        scene = plant_cells((200, 200), np.random.default_rng([10, seed]))
        border = border_distance(scene.labels)
        wall, inside = (scene.image[part] for part in (border < 1, border > 3.5))
        color = wall.mean(axis=0) - inside.mean(axis=0)
        assert np.quantile(wall @ color, 0.25) > np.quantile(inside @ color, 0.7)
        sizes = np.bincount(scene.labels.ravel())
        ranges.append(sizes.max() / np.median(sizes))
    assert max(ranges) > 8


# --- textures ---


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.__name__)
def test_patterns_have_the_same_mean_and_variance_in_all_their_parts(pattern):
    for seed in range(2):
        found = standardized(pattern((192, 192), np.random.default_rng(seed)))
        assert found.mean() == pytest.approx(0, abs=1e-9) and found.std() == pytest.approx(1)
        parts = found.reshape(3, 64, 3, 64).swapaxes(1, 2).reshape(9, -1)
        assert (
            np.abs(parts.mean(axis=1)).max() < 0.5 and 0.75 < parts.std(axis=1).min() < parts.std(axis=1).max() < 1.25
        )


def test_patterns_of_a_scene_look_different_and_a_turned_one_looks_like_another():
    for seed in range(4):
        looks = [_look(pattern) for pattern in _unlike((160, 160), 4, np.random.default_rng(seed))]
        assert len(looks) == 4
        assert all(np.abs(a - b).max() > UNLIKE for i, a in enumerate(looks) for b in looks[:i])
    rng = np.random.default_rng(3)
    noise, more = rng.normal(size=(2, 160, 160))
    assert np.abs(_look(noise) - _look(more)).max() < 0.1
    stripes = np.sin(np.arange(160) / 2)[None] + 0.1 * noise
    assert np.abs(_look(stripes) - _look(stripes.T)).max() > UNLIKE


@pytest.mark.parametrize("kind", ["mosaics", "inlays"])
def test_regions_of_texture_hardly_differ_in_brightness(kind):
    for seed in range(4):
        scene = RENDERERS[kind]((160, 160), np.random.default_rng([11, seed]))
        gray = scene.image.mean(axis=-1)
        large = np.flatnonzero(np.bincount(scene.labels.ravel()) > 2500)
        means = [gray[scene.labels == region].mean() for region in large]
        assert large.size and np.ptp(means) < 1.2 * gray.std()


# --- the instrument ---


def test_speckle_multiplies_by_noise_of_mean_1_and_variance_1_over_looks():
    noise = speckle(np.ones((400, 400, 1)), np.random.default_rng(0), looks=4.0)
    assert noise.mean() == pytest.approx(1, abs=0.02) and noise.var() == pytest.approx(0.25, rel=0.05)


def test_some_read_noise_is_above_30_of_255():
    levels = [read_noise(np.full((60, 60, 1), 0.5), np.random.default_rng(seed)).std() for seed in range(40)]
    assert min(levels) < 0.05 and 5 < np.count_nonzero(np.array(levels) > 30 / 255) < 30 and max(levels) < 0.32


def test_light_falls_from_1_by_its_strength():
    field = light((50, 80), 0.5, np.random.default_rng(2))
    assert field.max() == pytest.approx(1) and field.min() == pytest.approx(np.exp(-0.5))
    assert np.abs(np.diff(field, axis=0)).max() < 0.05


def test_an_instrument_leaves_the_ground_truth_as_it_is():
    scene = phases((60, 60), np.random.default_rng(4))
    seen = observe(scene, np.random.default_rng(0))
    assert seen.labels is scene.labels and seen.kinds is scene.kinds and not np.array_equal(seen.image, scene.image)


def test_debris_is_many_times_as_bright_and_only_large_specks_change_the_truth():
    kept, changed, dimmed = 0, 0, []
    for seed in range(20):
        scene = RENDERERS["blobs"]((120, 120), np.random.default_rng([12, seed]))
        seen = debris(scene, np.random.default_rng(seed))
        dimmed.append(np.percentile(scene.image, 90) / np.percentile(seen.image, 90))
        same = (border_distance(seen.labels) == 0.5) == (border_distance(scene.labels) == 0.5)
        new = seen.objects[seen.labels] & (seen.kinds[seen.labels] == 2)
        kept += not new.any()
        changed += bool(new.any())
        was = (scene.kinds[scene.labels] == 1) | new
        assert np.count_nonzero(was != seen.objects[seen.labels]) < 20  # pixels cut off from their region
        assert same[~ndimage.binary_dilation(new, iterations=2)].all()
        assert all(size > LARGE / 3 for size in np.bincount(seen.labels.ravel())[seen.kinds == 2])
        assert seen.image.max() == 1 and all(
            ndimage.label(seen.labels == region)[1] == 1 for region in range(seen.kinds.size)
        )
    assert kept >= 3 and changed >= 3 and np.median(dimmed) > 3


@pytest.mark.parametrize("n_channels", [1, 2, 3, 6])
def test_any_number_of_channels_becomes_three_that_still_show_the_regions(n_channels):
    labels = np.repeat([0, 1], 32)[:, None] * np.ones((1, 64), int)
    spectra = np.stack([np.linspace(0.3, 0.6, n_channels), np.linspace(0.9, 0.5, n_channels)])
    image = spectra[labels] + np.random.default_rng(1).normal(0, 0.01, (64, 64, n_channels))
    seen = in_three_channels(Scene(image, labels, np.arange(2)).image)
    assert seen.shape == (64, 64, 3) and seen.min() >= 0 and seen.max() <= 1
    means = np.stack([seen[labels == region].mean(axis=0) for region in (0, 1)])
    assert np.abs(means[0] - means[1]).max() > 0.5
