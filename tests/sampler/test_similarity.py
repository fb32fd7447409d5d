"""The table of similar sites does not depend on how a processor breaks ties."""

import numpy as np
import pytest

import spinseg as ss
from spinseg.sampler.plan import MAX_SIMILAR, _smallest, similar_sites


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20])
def test_ties_go_to_the_first_columns(n):
    values = np.random.default_rng(0).integers(0, 4, (50, 20)).astype(float)
    expected = [np.sort(np.argsort(row, kind="stable")[:n]) for row in values]
    np.testing.assert_array_equal(_smallest(values, n), expected)


def test_similar_sites_are_the_nearest_in_features_and_never_the_site_itself():
    n_sites = MAX_SIMILAR + 60
    values = np.random.default_rng(1).permutation(n_sites).astype(float)
    model = ss.Model(ss.SiteGraph(n_sites, []), ss.DiagonalGaussian(values[:, None]), ss.DirichletProcess(1.0))
    found = similar_sites(model)
    assert found.shape == (n_sites, MAX_SIMILAR)
    for site, row in enumerate(found):
        distance = np.abs(values - values[site])
        distance[site] = np.inf
        assert distance[row].max() <= np.sort(distance)[MAX_SIMILAR]
        assert site not in row and (np.diff(row.astype(int)) > 0).all()
