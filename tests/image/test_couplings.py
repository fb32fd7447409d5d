"""Couplings from the log-odds of a boundary, and how they change with the detail."""

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import spinseg as ss
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.log_odds import boundary_log_odds, plain_log_odds, signed_couplings
from spinseg.image.boundary.maps import boundary_maps
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.picture import as_picture
from spinseg.image.superpixels import superpixels
from spinseg.pictures import PICTURES
from spinseg.segmentation.image_model import maps_for, picture_posterior
from spinseg.segmentation.presets import (
    COUPLING,
    EVIDENCE,
    MIN_REGION_SHARE,
    PHOTO,
    coupling_at,
    details_of,
    min_region_share,
    region_coupling_at,
    settings_of,
)


def test_couplings_change_sign_at_the_threshold():
    beta = signed_couplings(np.array([-2.0, -1.0, 0.0]), np.array([10, 10, 5]), strength=0.5, threshold=-1.0)
    assert beta.tolist() == [5.0, 0.0, -2.5]


def test_couplings_saturate_far_from_the_threshold():
    log_odds = np.array([-30.0, -0.001, 0.0, 0.001, 30.0])
    beta = signed_couplings(log_odds, np.ones(5, np.int32), strength=0.5, threshold=0.0, saturation=3.0)
    np.testing.assert_allclose(beta, [1.5, 0.0005, 0.0, -0.0005, -1.5], rtol=1e-6)


def test_what_lies_outside_the_mask_is_no_neighbor():
    image = np.random.default_rng(0).random((40, 60, 3))
    mask = np.ones((40, 60), bool)
    mask[:, 28:32] = False
    found = ss.segment(image, mask=mask, sweeps=4, chains=1, rng=0)
    ends = found.model.graph.edges
    left = ndimage.maximum(
        np.broadcast_to(np.arange(60) < 30, mask.shape), found.sites, np.arange(found.sites.max() + 1)
    )
    assert (left[ends[:, 0]] == left[ends[:, 1]]).all()
    assert all(np.isfinite(model.beta).all() for model in found.model.components)
    assert ((found.labels == 0) == ~mask).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (12, 15)], ids=str)
def test_a_picture_of_one_site_has_no_boundaries(shape):
    picture = as_picture(np.random.default_rng(0).random((*shape, 3)))
    sites = np.zeros(shape, np.int32)
    counts = site_histograms(np.zeros(shape, int), sites, 4)
    found = boundary_log_odds(picture, sites, region_adjacency(sites), counts, boundary_maps(picture))
    assert found.shape == (0,)
    assert ss.segment(picture, sites=sites, sweeps=2, chains=1, rng=0).n_clusters == 1


@pytest.mark.parametrize("n_islands", [4, 7, 8], ids="{} x islands".format)
def test_islands_that_touch_nothing_are_segmented(n_islands):
    image = np.random.default_rng(0).random((7 * n_islands, 7 * n_islands, 3))
    rows, columns = np.indices(image.shape[:2])
    islands = np.where((rows % 7 < 5) & (columns % 7 < 5), rows // 7 * n_islands + columns // 7, -1)
    found = ss.segment(image, sites=islands, sweeps=2, chains=1, rng=0)
    assert found.model.graph.n_edges == 0 and found.n_clusters == n_islands**2


def assert_coupled(posterior, adjacency, log_odds):
    """By length and evidence, all edges with the same strength, at every detail."""
    assert len(posterior.components) == PHOTO.n_details
    for model, detail in zip(posterior.components, details_of(PHOTO.n_details), strict=True):
        coupling = region_coupling_at(detail)
        evidence = coupling.saturation * np.tanh((coupling.threshold - log_odds) / coupling.saturation)
        strength = model.beta / (adjacency.length * evidence)
        np.testing.assert_allclose(strength, strength[0])
        assert strength[0] >= EVIDENCE.strength and model.connected and model.power == PHOTO.power


OTHER_PICTURES = {"volume": ((8, 12, 14), None), "five channels": ((24, 30, 5), -1)}


@pytest.mark.parametrize("kind", list(OTHER_PICTURES))
def test_other_pictures_than_photographs_are_coupled_by_plain_log_odds(kind):
    shape, channel_axis = OTHER_PICTURES[kind]
    picture = as_picture(np.random.default_rng(2).random(shape), channel_axis=channel_axis)
    assert maps_for(picture, PHOTO) is None
    sites = superpixels(picture, kind="grid", n_sites=12)
    adjacency = region_adjacency(sites)
    book = Codebook.general(120) if kind == "volume" else Codebook.fit(picture, 120, rng=0)
    counts = site_histograms(book.words(picture), sites, len(book))
    log_odds = plain_log_odds(picture, sites, adjacency, counts)
    assert_coupled(picture_posterior(picture, sites, adjacency, PHOTO), adjacency, log_odds)


def test_a_photograph_is_coupled_by_all_cues_unless_it_is_not_to_be():
    picture = as_picture(np.random.default_rng(2).random((30, 40, 3)))
    sites = superpixels(picture, kind="grid", n_sites=12)
    adjacency = region_adjacency(sites)
    counts = site_histograms(Codebook.general(120).words(picture), sites, 120)
    maps = maps_for(picture, PHOTO)
    log_odds = boundary_log_odds(picture, sites, adjacency, counts, maps)
    assert_coupled(picture_posterior(picture, sites, adjacency, PHOTO, maps), adjacency, log_odds)
    for preset, given in (("photo", {"sites": "pixels"}), ("paper", {})):
        assert maps_for(picture, settings_of(preset, given)) is None
    for given in ({"sites": sites}, {"beta": 0.1}):
        assert maps_for(picture, settings_of("photo", given)) is not None


def test_more_detail_needs_less_evidence_and_keeps_smaller_regions():
    details = (0, 0.25, 0.5, 0.75, 1)
    thresholds, smallest = [coupling_at(d).threshold for d in details], [min_region_share(d) for d in details]
    assert (np.diff(thresholds) < 0).all() and (np.diff(smallest) < 0).all()
    assert thresholds[0] - thresholds[-1] == pytest.approx(3) and smallest[0] / smallest[-1] == pytest.approx(16)
    assert coupling_at(0.5) == COUPLING and min_region_share(0.5) == MIN_REGION_SHARE
    assert {coupling_at(d).strength for d in details} == {COUPLING.strength}


def test_a_boundary_on_its_own_is_drawn_by_as_many_as_its_log_odds_say():
    log_odds = np.linspace(-3, 3, 13)
    thresholds = np.array([region_coupling_at(detail).threshold for detail in details_of(1000)])
    drawn = np.mean(log_odds > thresholds[:, None], axis=0)
    np.testing.assert_allclose(drawn, 1 / (1 + np.exp(-log_odds)), atol=0.001)


@pytest.mark.parametrize("detail", [-0.01, 1.5, float("nan"), float("inf"), "fine", True], ids=str)
def test_a_detail_outside_zero_to_one_is_refused_in_one_line(detail):
    with pytest.raises(
        ValueError, match=r"^detail must be a finite number of at least 0 and at most 1; rec.*$"
    ) as caught:
        ss.segment(np.zeros((8, 8)), detail=detail)
    assert "\n" not in str(caught.value)


def test_a_picture_falls_into_more_regions_with_more_detail():
    with Image.open(PICTURES["coffee"].path) as image:
        picture = np.asarray(image)[100:220, 200:360]
    coarse, fine = (ss.segment(picture, detail=detail, sweeps=40, chains=1, rng=3) for detail in (0.1, 0.9))
    assert 1 <= coarse.n_clusters < fine.n_clusters
    np.testing.assert_array_equal(coarse.chains.labels, fine.chains.labels)
    np.testing.assert_array_equal(coarse.at(0.9).labels, fine.labels)
    for found, detail in ((coarse, 0.1), (fine, 0.9)):
        assert np.bincount(found.partition).min() >= PHOTO.prior.min_size
        assert found.settings.detail == detail and f"detail={detail}" in found.python_code
