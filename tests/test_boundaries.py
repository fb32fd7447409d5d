"""Evidence of boundaries: each cue by its definition, and the couplings it gives."""

import numpy as np
import pytest
from scipy import ndimage

from spinseg.image.adjacency import edge_means, region_adjacency
from spinseg.image.boundaries import LOG_ODDS, REACH, boundary_log_odds, cues, signed_couplings
from spinseg.image.features import site_histograms, site_means
from spinseg.image.pixels import as_picture
from spinseg.image.superpixels import superpixels


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    image = rng.normal(0.5, 0.05, (50, 60, 3)).clip(0, 1)
    image[:, 30:] += [0.3, -0.2, 0.1]
    picture = as_picture(image.clip(0, 1))
    sites = superpixels(picture, n_sites=40)
    words = rng.integers(0, 12, sites.shape) + 12 * (np.arange(60) >= 30)
    return picture, sites, region_adjacency(sites), site_histograms(words, sites, 24)


def test_cues_are_what_they_say(scene):
    picture, sites, adjacency, counts = scene
    found = cues(*scene)
    lab, edges = picture.colours, adjacency.graph.edges
    means = site_means(lab, sites)
    slope = np.sqrt(sum(ndimage.gaussian_gradient_magnitude(lab[..., c], 2.0) ** 2 for c in range(3)))
    table = counts.toarray()
    for e in (0, 7, len(edges) - 1):
        i, j = edges[e]
        assert found[e, 0] == pytest.approx(np.sqrt(np.linalg.norm(means[i] - means[j])))
        pairs = [
            max(slope[a], slope[b])
            for a in zip(*np.nonzero(sites == i), strict=True)
            for b in ((a[0] + 1, a[1]), (a[0] - 1, a[1]), (a[0], a[1] + 1), (a[0], a[1] - 1))
            if 0 <= b[0] < 50 and 0 <= b[1] < 60 and sites[b] == j
        ]
        assert found[e, 1] == pytest.approx(np.sqrt(np.mean(pairs)), rel=1e-5)

        def around(s):
            total = table[s].astype(float)
            for a, b in edges:
                if s in (a, b):
                    other = a + b - s
                    total += np.exp(-np.linalg.norm(means[a] - means[b]) / REACH) * table[other]
            return total / total.sum()

        p, q = around(i), around(j)
        inner = p + q > 0
        assert found[e, 2] == pytest.approx(0.5 * ((p - q)[inner] ** 2 / (p + q)[inner]).sum())


def test_a_boundary_that_is_there_is_likelier(scene):
    _, sites, adjacency, _ = scene
    columns = ndimage.mean(np.broadcast_to(np.arange(60), sites.shape), sites, np.arange(sites.max() + 1))
    across = (columns[adjacency.graph.edges] < 29.5).sum(axis=1) == 1
    log_odds = boundary_log_odds(*scene)
    assert log_odds[across].min() > log_odds[~across].max()
    assert log_odds == pytest.approx(LOG_ODDS[0] + cues(*scene) @ LOG_ODDS[1:])


def test_couplings_change_sign_at_the_threshold():
    beta = signed_couplings(np.array([-2.0, -1.0, 0.0]), np.array([10, 10, 5]), strength=0.5, threshold=-1.0)
    assert beta.tolist() == [5.0, 0.0, -2.5]


def test_means_along_edges_follow_the_order_of_the_graph():
    rng = np.random.default_rng(3)
    sites = superpixels(rng.random((20, 30)), n_sites=12)
    adjacency = region_adjacency(sites, contrast_of=sites.astype(float))
    ones = edge_means(sites, adjacency.graph.edges, np.ones(sites.shape))
    np.testing.assert_array_equal(ones, 1)
    largest = edge_means(sites, adjacency.graph.edges, sites.astype(float))
    np.testing.assert_array_equal(largest, adjacency.graph.edges.max(axis=1))
