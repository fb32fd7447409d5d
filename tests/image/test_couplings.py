"""Couplings from the log-odds of a boundary, and how they change with the detail."""

import numpy as np
import pytest

import spinseg as ss
from spinseg.graph.adjacency import region_adjacency
from spinseg.image.boundary.log_odds import BoundaryEvidence, plain_log_odds, signed_couplings
from spinseg.image.boundary.maps import boundary_maps
from spinseg.image.features import Codebook, site_histograms
from spinseg.image.picture import as_picture
from spinseg.segmentation.presets.photo import Photo, details_of
from spinseg.segmentation.problem import prepare


def test_couplings_change_sign_at_the_threshold_and_saturate_far_from_it():
    beta = signed_couplings(np.array([-2.0, -1.0, 0.0]), np.array([10, 10, 5]), strength=0.5, threshold=-1.0)
    assert beta.tolist() == [5.0, 0.0, -2.5]
    log_odds = np.array([-30.0, -0.001, 0.0, 0.001, 30.0])
    beta = signed_couplings(log_odds, np.ones(5, np.int32), strength=0.5, threshold=0.0, saturation=3.0)
    np.testing.assert_allclose(beta, [1.5, 0.0005, 0.0, -0.0005, -1.5], rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (12, 15)], ids=str)
def test_a_picture_of_one_site_has_no_boundaries(shape):
    picture = as_picture(np.random.default_rng(0).random((*shape, 3)))
    sites = np.zeros(shape, np.int32)
    counts = site_histograms(np.zeros(shape, int), sites, 4)
    found = BoundaryEvidence().log_odds(picture, sites, region_adjacency(sites), counts, boundary_maps(picture))
    assert found.shape == (0,)
    assert ss.segment(picture, sites=sites, sweeps=2, chains=1, rng=0).n_clusters == 1


def test_islands_that_touch_nothing_are_segmented():
    image = np.random.default_rng(0).random((49, 49, 3))
    rows, columns = np.indices((49, 49))
    islands = np.where((rows % 7 < 5) & (columns % 7 < 5), rows // 7 * 7 + columns // 7, -1)
    found = ss.segment(image, sites=islands, sweeps=2, chains=1, rng=0)
    assert found.model.graph.n_edges == 0 and found.n_clusters == 49


PHOTO = Photo()
KINDS = {"photograph": ((30, 40, 3), -1), "volume": ((8, 12, 14), None), "five channels": ((24, 30, 5), -1)}


@pytest.mark.parametrize("kind", KINDS)
def test_sites_are_coupled_by_length_and_evidence_at_every_level_of_detail(kind):
    """By all cues in a photograph, and by the plain ones elsewhere; all edges with the same strength."""
    shape, channel_axis = KINDS[kind]
    image = np.random.default_rng(2).random(shape)
    problem = prepare(image, Photo(sites="grid", n_sites=12), channel_axis=channel_axis)
    picture, sites, model = problem.working_image.picture, problem.sites, problem.model
    maps = PHOTO.maps(picture)
    assert (maps is not None) == (kind == "photograph")
    book = Codebook.fit(picture, 120, rng=0) if kind == "five channels" else Codebook.general(120)
    counts = site_histograms(book.words(picture), sites, len(book))
    log_odds = plain_log_odds(picture, sites, model.graph, counts)
    if maps is not None:
        log_odds = BoundaryEvidence().log_odds(picture, sites, model.graph, counts, maps)
    assert model.n_components == PHOTO.n_details and model.connected and model.power == PHOTO.power
    for beta, detail in zip(model.beta, details_of(PHOTO.n_details), strict=True):
        evidence = 2 * np.tanh((np.log((1 - detail) / detail) - log_odds) / 2)
        strength = beta / (model.graph.length * evidence)
        np.testing.assert_allclose(strength, strength[0])
        assert strength[0] >= PHOTO.coupling.strength
    np.testing.assert_allclose(model.beta[0] / PHOTO.couplings(log_odds, model.graph, 0.5 / 12), strength[0] / 0.8)


def test_sites_of_ones_own_are_coupled_by_all_cues_and_small_ones_by_plain_cues():
    picture = as_picture(np.random.default_rng(2).random((32, 40, 3)))
    for side, is_plain in ((8, False), (4, True)):
        sites = np.arange(32 * 40 // side**2, dtype=np.int32).reshape(32 // side, -1)
        sites = sites.repeat(side, axis=0).repeat(side, axis=1)
        graph, maps = region_adjacency(sites), PHOTO.maps(picture)
        counts = site_histograms(Codebook.general(120).words(picture), sites, 120)
        plain = plain_log_odds(picture, sites, graph, counts)
        assert np.array_equal(PHOTO.log_odds(picture, sites, graph, maps), plain) is is_plain


def test_a_boundary_on_its_own_is_drawn_by_as_many_as_its_log_odds_say():
    log_odds, graph = np.linspace(-3, 3, 13), ss.SiteGraph(14, [[i, i + 1] for i in range(13)])
    drawn = np.mean([PHOTO.couplings(log_odds, graph, detail) < 0 for detail in details_of(1000)], axis=0)
    np.testing.assert_allclose(drawn, 1 / (1 + np.exp(-log_odds)), atol=0.001)
