"""An early Ctrl-C leaves labels but no draws: probabilities are NaN or None everywhere, and all else works."""

import json

import numpy as np
import pytest
from skimage.io import imread
from test_exports import drawing

import spinseg as ss

KINDS = {
    "photo": {},
    "seeds": {"seeds": {1: [(5, 5)], 2: [(50, 70)]}},
    "classes": {"preset": "classes"},
    "paper": {"preset": "paper"},
    "objects": {"preset": "objects"},
    "volume": {"preset": "classes"},
}


def interrupt(progress):
    if progress.done > 0:
        raise KeyboardInterrupt


@pytest.fixture(scope="module", params=KINDS)
def found(request):
    image = np.stack([drawing()[..., 0]] * 4) if request.param == "volume" else drawing()
    with pytest.raises(ss.SegmentationInterrupted) as stopped:
        ss.segment(image, sweeps=10**6, rng=0, progress=interrupt, **KINDS[request.param])
    seg = stopped.value.segmentation
    assert not seg.chains.labels.size and seg.labels.min() >= 1
    return seg


def test_probabilities_are_nan_or_none(found):
    place = (0,) * found.labels.ndim
    arrays = [found.boundary_probability, found.separation, found.co_clustering(*place), found.hierarchy.boundary]
    assert all(array.size and np.isnan(array).all() for array in [*arrays, found.hierarchy.heights])
    assert found.boundary_probability.shape == found.co_clustering(*place).shape == found.labels.shape
    with pytest.raises(ss.InvalidInput, match=r"^a hierarchy must come from draws"):
        found.hierarchy.labels(0.5)
    assert found.converged is found.agreement is found.r_hat is found.ess is None
    assert {row["probability"] for row in [*found.region_rows, *found.boundary_rows]} == {None}
    assert {row["boundary"] for row in found.region_rows} == {None}


def test_all_else_works(found, tmp_path, capsys):
    found.save(tmp_path, names=["labels.tif", "boundary_probability.png", "boundary_probability.tif", "report.html",
                                "result.json", "regions.csv"])  # fmt: skip
    assert not capsys.readouterr().err  # what was interrupted says so
    assert not (tmp_path / "boundary_probability.png").exists()
    reported = json.loads((tmp_path / "result.json").read_text(), parse_constant=pytest.fail)
    assert list(reported["left_out"]) == ["boundary_probability.png"] and reported["interrupted"]
    assert np.isnan(imread(tmp_path / "boundary_probability.tif")).all()
    assert "No draws, and so no probabilities" in found._repr_html_() and "interrupted" in repr(found)
    assert found.verdict and len(found.regions) and found.python_code
    if found.chains.n_components > 1:
        assert found.at(0.1).labels.shape == found.labels.shape and np.isnan(found.at(0.1).boundary_probability).all()


def test_libraries_take_it(found):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    pytest.importorskip("xarray")
    assert len(found.plot()) == 2
    matplotlib.pyplot.close("all")
    assert np.isnan(found.to_xarray()["boundary_probability"]).all()


def test_without_draws_no_edge_has_a_probability():
    edges = np.array([[0, 1], [1, 2]])
    assert np.isnan(ss.separation_probability(np.zeros((2, 0, 3), np.int32), edges)).all()
