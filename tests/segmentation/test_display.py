"""How objects show themselves: in words, in a notebook, and on Matplotlib axes."""

import base64
import io
import re
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from PIL import Image
from test_exports import drawing

import spinseg as ss
from spinseg._errors import MissingExtra
from spinseg.sampler.diagnostics import Diagnostics


@pytest.fixture(scope="module")
def found():
    return ss.segment(drawing(), "measured", sweeps=30, chains=2, rng=0)


@pytest.fixture
def agg(monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_a_segmentation_says_what_it_is_and_how_far_to_trust_it(found):
    first, second = repr(replace(found, source="/tmp/some/cup.jpg")).splitlines()
    assert (
        first == f"Segmentation of cup.jpg: {found.n_clusters} regions, 80 x 60 pixels (measured, detail 0.5, seed 0)"
    )
    assert re.fullmatch(
        r"  (not converged|regions converged, probabilities not|converged) \(agreement -?[\d.]+, standard error [\d.]+\)",
        second,
    )
    assert second.startswith("  converged") is found.converged
    for judgement, words in (
        ((0.95, 0.03, 1.0), "  converged ("),
        ((0.95, 0.3, 1.0), "  regions converged, probabilities not ("),
        ((0.5, 0.3, 1.0), "  not converged ("),
    ):
        judged = replace(found)
        judged.__dict__["diagnostics"] = Diagnostics(*judgement, found.diagnostics.table, found.diagnostics.verdict)
        assert repr(judged).splitlines()[1].startswith(words)
    assert repr(replace(found, interrupted=True)).endswith("interrupted after 30 sweeps")
    alone = ss.segment(drawing(), "paper", sweeps=4, rng=0)
    assert repr(alone).splitlines()[1].startswith("  too few chains") and "cluster" in repr(alone)


def test_objects_say_what_they_are_in_three_lines(found):
    graph = found.model.graph
    size = f"{graph.n_sites:,} sites and {graph.n_edges:,} edges"
    assert repr(graph) == f"SiteGraph of {size}"
    assert repr(ss.SiteGraph(1, [])) == "SiteGraph of 1 site and 0 edges"
    model = found.model.component(0)
    assert repr(model).startswith(f"Model of {size} in connected clusters\n") and "couplings from " in repr(model)
    assert repr(found.model).splitlines()[0] == f"Model of {size} in connected clusters, 12 components"
    plain = ss.Model(graph, ss.Flat(), ss.DirichletProcess(2.0), beta=0.5)
    assert repr(plain).splitlines()[1:] == ["  Flat()", "  DirichletProcess(concentration=2.0), couplings of 0.5"]
    assert "no couplings" in repr(ss.Model(graph, ss.Flat(), ss.DirichletProcess(2.0)))
    assert repr(ss.DirichletMultinomial([[1, 2, 3], [0, 1, 1]])) == "DirichletMultinomial of 2 sites and 3 bins"
    assert repr(ss.PoissonGamma([1, 2])) == "PoissonGamma of 2 sites and 1 channel"
    both = ss.Product(ss.Gaussian([[1.0, 2], [2, 4], [5, 1]]), ss.DiagonalGaussian([1.0, 2, 3]))
    assert repr(both) == "Product(Gaussian, DiagonalGaussian) of 3 sites"
    assert repr(found.chains).splitlines()[0] == (
        f"Chains: 2 chains of 12 components, 30 sweeps, burn-in 15; 180 draws of each kept, of {graph.n_sites} sites"
    )
    estimate = ss.minimize_vi([[0, 0, 1], [0, 0, 1]], rng=0)
    assert repr(estimate) == "Estimate of 2 clusters for 3 sites, expected loss 0"
    assert found.diagnostics.verdict in repr(found.diagnostics) and "R-hat" in repr(found.diagnostics)


def words_of(page):
    """The text of a page."""
    return unescape(re.sub(r"<[^>]*>", "", page))


def test_a_notebook_shows_pictures_and_runs_nothing(found):
    page = replace(found, source="<b>&.png")._repr_html_()
    tags = re.findall(r"<(\w+)", page)
    assert not {"script", "style", "iframe", "link"} & set(tags) and tags.count("b") == 1
    assert "<b>&.png" in words_of(page) and found.verdict in words_of(page)  # as text, not as markup
    pictures = re.findall(r'src="data:image/jpeg;base64,([^"]*)"', page)
    assert len(pictures) == tags.count("img") == 2
    for data in pictures:
        assert Image.open(io.BytesIO(base64.b64decode(data))).size == (80, 60)
    assert tags.count("tr") == 1 + min(8, len(found.region_rows))


def test_one_region_shows_its_warning_and_any_file_name_is_one_line(found):
    one = replace(found, labels=np.ones_like(found.labels), partition=np.zeros_like(found.partition))
    assert one.warning and repr(one).splitlines()[2].strip() == one.warning
    assert one.warning in words_of(one._repr_html_())
    odd = replace(found, source="/tmp/two\nlines.png")
    assert len(repr(odd).splitlines()) == 2 and "two?lines.png" in odd._repr_html_()


def test_plots_draw_what_there_is(found, agg):
    outlines, probability = found.plot()
    assert outlines.images[0].get_array().shape == probability.images[0].get_array().shape == (60, 80, 3)
    log_posterior, n_clusters = found.chains.plot()
    assert len(log_posterior.lines) == len(n_clusters.lines) == 2
    np.testing.assert_allclose(n_clusters.lines[1].get_ydata(), found.chains.trace("n_clusters")[1])
    axes = found.diagnostics.plot()
    shown = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert sorted(shown) == sorted(row.r_hat for row in found.diagnostics.table.values() if np.isfinite(row.r_hat))


def test_plots_go_on_axes_that_are_given(found, agg):
    figure, axes = agg.subplots(1, 5)
    assert found.plot(axes[:2])[0] is axes[0] and found.chains.plot(axes[2:4])[1] is axes[3]
    assert found.diagnostics.plot(axes[4]) is axes[4] and all(each.has_data() for each in axes)
    assert agg.get_fignums() == [figure.number]


def test_without_matplotlib_a_line_names_the_extra(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for plot in (found.plot, found.chains.plot, found.diagnostics.plot):
        with pytest.raises(MissingExtra, match=r'^plots need Matplotlib: pip install "spinseg\[plot\]"$'):
            plot()
