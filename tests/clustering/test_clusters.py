"""How sure a label is: draws matched with labels, against all ways to match them."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinseg as ss
from spinseg.clustering.clusters import TOTAL_COUPLING, clustering_model, find_clusters, membership

N_SITES = 7


def partitions(n_labels):
    return st.lists(st.integers(0, n_labels - 1), min_size=N_SITES, max_size=N_SITES).map(
        lambda z: np.unique(z, return_inverse=True)[1].astype(np.int32)
    )


@given(partitions(4), partitions(3))
def test_a_draw_gets_the_labels_with_which_most_sites_keep_theirs(draw, labels):
    found = membership(draw, labels)
    names = [*range(4), *(-1 - np.arange(4))]  # a negative one matches no label
    most = max(np.sum(np.array(order)[draw] == labels) for order in permutations(names, int(draw.max()) + 1))
    assert found[np.arange(N_SITES), labels].sum() == most
    assert set(np.unique(found)) <= {0.0, 1.0} and (found.sum(axis=1) <= 1).all()
    for cluster in np.unique(draw):  # all its sites get the same label
        assert (found[draw == cluster] == found[draw == cluster][0]).all()


@given(st.integers(0, 2**32))
def test_membership_does_not_depend_on_how_clusters_are_numbered(seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3, dtype=np.int32), 5)
    draws = np.where(rng.random((20, 15)) < 0.2, rng.integers(0, 3, (20, 15)), labels)
    shuffled = np.array([rng.permutation(3)[draw] for draw in draws])
    assert np.array_equal(membership(draws, labels), membership(shuffled.reshape(4, 5, 15), labels))
    tied = np.array([0, 1, 0, 1])
    assert np.array_equal(membership(tied, np.sort(tied)), membership(1 - tied, np.sort(tied)))


def test_a_cluster_that_shares_no_site_with_a_label_does_not_get_it():
    found = membership([[0, 0, 0, 1, 0]], np.array([0, 0, 0, 0, 1], np.int32))
    assert found.tolist() == [[1, 0], [1, 0], [1, 0], [0, 0], [1, 0]]


def test_a_site_between_two_clusters_is_less_sure_than_others():
    values = np.array([0.0, 0.1, -0.1, 0.05, 1.5, 3.0, 3.1, 2.9, 2.95])
    model = ss.Model(ss.SiteGraph.grid((9,)), ss.DiagonalGaussian(values, rate=0.3), ss.Potts(2), beta=1.0)
    found = find_clusters(model, sweeps=400, chains=2, seed=0)
    assert found.probability.argmin() == 4 and found.probability[[0, 8]].min() > found.probability[4] + 0.1
    together = [ss.co_clustering(found.draws, site)[4] for site in (0, 8)]
    assert found.membership[4].sum() == pytest.approx(1.0) and (found.membership[4][found.labels[[0, 8]]] > 0).all()
    assert (together[0] > together[1]) == (found.labels[4] == found.labels[0])


def test_couplings_are_beta_times_weights_and_by_default_add_up_to_a_constant():
    graph, values = ss.SiteGraph(3, [[0, 1], [1, 2]], weights=[1.0, 3.0]), np.arange(3.0)[:, None]
    settings = {"prior": None, "likelihood": "gaussian", "connected": False}
    assert clustering_model(values, graph, beta=0.5, **settings).beta.tolist() == [0.5, 1.5]
    usual = clustering_model(values, graph, beta=None, **settings)
    assert usual.beta.sum() * 2 / 3 == pytest.approx(TOTAL_COUPLING) and usual.beta[1] == 3 * usual.beta[0]
    assert repr(usual.prior) == "TemperedProcess(concentration=0.3333333333333333, power=0.0)"
    alone = clustering_model(values, ss.SiteGraph(3, []), beta=None, **settings)
    assert alone.beta.size == 0 and repr(alone.prior) == "DirichletProcess(concentration=1.0)"
