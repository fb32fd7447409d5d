"""The paper's figures and table: numbers against exact ones, pictures against what the sampler did."""

import csv
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from photographs import halves, write_mat, write_photograph, write_png
from scipy.special import digamma

import exact
import spinseg as ss
from effort import effort, exhaustive
from spinseg._errors import TaskError
from spinseg._run import executor
from studies.evaluation.datasets import Example, labelme
from studies.evaluation.methods import Method
from studies.evaluation.results import read_rows
from studies.evaluation.summary import summarize
from studies.paper import figure1, figure2, figure3, figure4, figure5, reproduce, table1


@pytest.fixture
def drawing():
    return pytest.importorskip("matplotlib", reason="figures are drawn by Matplotlib")


def table(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def assert_pictures(paths, folder, names):
    assert [path.name for path in paths] == names
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)  # nothing half-written stays
    assert paths[0].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("figure", [figure1, figure2, figure3, figure4], ids=lambda figure: figure.__name__)
def test_without_matplotlib_one_line_says_what_to_install_before_any_work(figure, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(figure, "sample", None, raising=False)
    with pytest.raises(ImportError, match=r"^[^\n]+pip install 'spinseg\[plot\]'$"):
        figure.reproduce(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("alpha", [0.2, 3.0])
def test_the_exact_distribution_is_that_of_all_partitions_and_has_the_exact_mean(alpha):
    prior, listed = ss.DirichletProcess(alpha), np.zeros(7)
    for row in exact.partitions(6):
        listed[row.max() + 1] += math.exp(prior.log_g(np.bincount(row)) - prior.log_normalizer(6))
    np.testing.assert_allclose(figure1.exact_distribution(alpha, 6), listed, atol=1e-12)
    for n_sites in (1, 1000):
        mean = alpha * (digamma(alpha + n_sites) - digamma(alpha))
        distribution = figure1.exact_distribution(alpha, n_sites)
        assert distribution.sum() == pytest.approx(1, abs=1e-12)
        assert distribution @ np.arange(n_sites + 1) == pytest.approx(mean, abs=1e-9)
        assert figure1.exact_mean(alpha, n_sites) == pytest.approx(mean, abs=1e-12)


def test_simulated_frequencies_are_the_exact_ones():
    distribution = figure1.exact_distribution(3.0, 200)
    seen = figure1.simulate(3.0, 200, figure1.SimulationSize(chains=24, burn_in=100, sweeps=500), rng=4)
    likely = distribution > 0.01
    assert np.count_nonzero(likely) > 10
    score = (seen.frequency - distribution)[likely] / seen.standard_error[likely]
    assert np.abs(score).max() < 4.5
    assert 0.5 < np.sqrt(np.mean(score**2)) < 1.6  # the standard errors are neither too large nor too small
    assert seen.standard_error[likely].max() < 0.01
    assert seen.frequency.sum() == pytest.approx(1)


def test_figure1_writes_its_picture_and_its_numbers(drawing, monkeypatch, tmp_path):
    monkeypatch.setattr(figure1, "N_SITES", 100)
    monkeypatch.setattr(figure1, "QUICK", figure1.SimulationSize(chains=4, burn_in=20, sweeps=120))
    paths = figure1.reproduce(tmp_path, None, True)
    assert_pictures(paths, tmp_path, ["figure1.png", "figure1.csv"])
    rows = table(paths[1])
    for alpha in (3.0, 5.0):
        mine = [row for row in rows if float(row["alpha"]) == alpha]
        assert sum(float(row["exact"]) for row in mine) == pytest.approx(1, abs=1e-6)
        assert sum(float(row["simulated"]) for row in mine) == pytest.approx(1, abs=1e-4)


def test_the_graph_has_as_many_sites_as_the_papers_and_is_one_piece():
    graph = figure2.site_graph()
    assert graph.n_sites == 1099
    assert 2.5 * 1099 < graph.n_edges < 3 * 1099 - 6  # planar, nearly a triangulation
    links = sparse.coo_array((np.ones(graph.n_edges), tuple(graph.edges.T)), shape=(1099, 1099))
    assert sparse.csgraph.connected_components(links, directed=False)[0] == 1


@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_simulated_means_are_those_of_all_partitions(beta):
    graph, _ = exact.graph(6)
    model = ss.Model(graph, ss.Flat(), ss.DirichletProcess(3.0), beta)
    partitions = exact.partitions(6)
    weight = np.exp([model.log_posterior(row) for row in partitions])
    wanted = (weight * (partitions.max(axis=1) + 1)).sum() / weight.sum()
    point = figure2.simulate(graph, 3.0, beta, figure2.SimulationSize((beta,), 4, 50, 4050), rng=5)
    assert point[:2] == (3.0, beta) and point.r_hat < 1.02
    assert 0.001 < point.standard_error < 0.03
    assert abs(point.mean - wanted) < 4.5 * point.standard_error


@exhaustive
def test_figure2_marks_the_exact_means_and_opposite_starts_agree(drawing, monkeypatch, tmp_path):
    monkeypatch.setattr(figure2, "QUICK", figure2.SimulationSize((0.0, 0.1), 4, 100, 350))
    paths = figure2.reproduce(tmp_path, None, True)
    assert_pictures(paths, tmp_path, ["figure2.png", "figure2.csv"])
    rows = table(paths[1])
    assert [float(row["exact"]) for row in rows[::2]] == pytest.approx([7.58, 18.24, 27.50], abs=0.01)
    for row in rows:
        assert float(row["r_hat"]) < 1.15
    distribution = figure1.exact_distribution(5.0, 1099)
    sd = math.sqrt(distribution @ np.arange(1100) ** 2 - (distribution @ np.arange(1100)) ** 2)
    assert float(rows[4]["standard_error"]) > 1.5 * sd / math.sqrt(4 * 250)  # draws of a chain are not independent
    for free, bound in zip(rows[::2], rows[1::2], strict=True):
        gap = float(free["mean"]) - float(free["exact"])
        assert abs(gap) < 4.5 * float(free["standard_error"])
        assert float(bound["mean"]) < 0.4 * float(free["mean"])


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.parametrize("lam", effort([2.0], [0.0, 1.0, 2.0, 6.0]))
@pytest.mark.parametrize("seed", effort([figure3.SEED], [0, 1, figure3.SEED]))
def test_the_sweep_drawn_is_one_that_the_sampler_does(lam, seed):
    model, start = figure3.lattice_model(), figure3.paper_partition()
    found = figure3.one_sweep(model, start, lam, seed)
    assert same_partition(found.before, start)
    assert set(map(tuple, found.bonds)) <= set(map(tuple, model.graph.edges))  # neighbors
    assert (found.before[found.bonds[:, 0]] == found.before[found.bonds[:, 1]]).all()  # of one cluster
    links = sparse.coo_array((np.ones(len(found.bonds)), tuple(found.bonds.T)), shape=(36, 36))
    pieces = sparse.csgraph.connected_components(links, directed=False)[1]
    assert same_partition(pieces, found.spin_cluster)
    for c in range(found.spin_cluster.max() + 1):
        assert np.unique(found.after[found.spin_cluster == c]).size == 1
    drawn = ss.sample(model, sweeps=1, chains=1, moves="gsw", lam=lam, init=start, rng=seed)
    assert same_partition(found.after, drawn.labels[0, 0])
    assert lam > 0 or (len(found.bonds) == 0 and found.spin_cluster.max() == 35)


def test_figure3_shows_a_sweep_in_which_everything_happens(drawing, tmp_path):
    found, paths = figure3.choose_sweep(), figure3.reproduce(tmp_path)
    assert np.bincount(found.before).tolist() == [15, 14, 7]  # red, green and blue in the paper's source
    moved = found.before != found.after
    assert np.unique(found.spin_cluster[moved]).size >= 4
    assert np.setdiff1d(found.after, found.before).size == 1  # a new cluster
    assert set(found.before[~moved]) == {0, 1, 2}  # else a number freed and taken again would have the same color
    assert_pictures(paths, tmp_path, ["figure3.png", "figure3.csv", "figure3-bonds.csv"])
    rows, bonds = table(paths[1]), table(paths[2])
    assert [int(row["after"]) for row in rows] == found.after.tolist()
    assert [[int(row["site"]), int(row["other_site"])] for row in bonds] == found.bonds.tolist()


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Two pictures of a few patches each, where LabelMe's would be."""
    root, rng = tmp_path_factory.mktemp("root"), np.random.default_rng(6)
    for name in ("coast_a1", "forest_b2"):
        truth = rng.integers(0, 4, (4, 5)).repeat(16, axis=0).repeat(16, axis=1)
        write_photograph(root / "labelme" / "images" / f"{name}.jpg", truth)
        write_png(root / "labelme" / "labels" / f"{name}.png", truth + 1)
    return root


@exhaustive
def test_figure4_compares_samplers_in_processes(drawing, photographs, monkeypatch, tmp_path):
    monkeypatch.setattr(figure4, "QUICK_SWEEPS", 40)
    messages = []
    paths = figure4.reproduce(tmp_path, photographs, True, messages.append)
    assert_pictures(paths, tmp_path, ["figure4.png", "figure4.csv", "figure4-trace.csv", "figure4-summary.csv"])
    assert len(messages) == 2
    rows, traces = table(paths[1]), table(paths[2])
    assert len(rows) == 2 * len(figure4.SAMPLERS)
    best = {(row["image"], row["sampler"]): float(row["best_log_posterior"]) for row in rows}
    for row in rows:
        base = best[row["image"], "lambda=0"]
        nats = float(row["best_log_posterior"]) - base
        assert float(row["increase_nats"]) == pytest.approx(nats, abs=1e-5)
        assert float(row["increase_percent"]) == pytest.approx(100 * nats / abs(base), abs=1e-5)
    image = figure4.median_image(list(figure4.RunsFile(paths[1]).rows.values()))
    for name in list(traces[0])[1:]:  # the very chains of the table
        assert max(float(row[name]) for row in traces) == pytest.approx(best[image, name], abs=1e-3)


def test_an_interrupted_run_goes_on_with_what_is_missing_and_a_picture_that_cannot_be_read_is_named(
    photographs, monkeypatch, tmp_path
):
    monkeypatch.setattr(
        executor, "run_in_processes", lambda work, tasks, jobs, started: executor._run_here(work, tasks, started)
    )
    tasks = [figure4.Task(example, 10) for example in labelme(photographs)]
    whole = figure4.all_runs(tasks, tmp_path / "whole.csv", 1, None)
    content = (tmp_path / "whole.csv").read_bytes()
    (tmp_path / "cut.csv").write_bytes(content[: content.index(b"forest_b2") + 70])
    messages = []
    again = figure4.all_runs(tasks, tmp_path / "cut.csv", 1, messages.append)
    assert len(messages) == 1
    for one, other in zip(again, whole, strict=True):
        assert one[:2] == other[:2] and one[2:6] == pytest.approx(other[2:6], abs=1e-5)
    damaged = tmp_path / "street_x.jpg"
    damaged.write_bytes(b"\xff\xd8\xff no picture")
    with pytest.raises(TaskError, match=r"^street_x: [^\n]*street_x.jpg must be a [^\n]*$"):
        figure4.all_runs([*tasks, figure4.Task(Example("street_x", damaged, ()), 10)], tmp_path / "cut.csv", 1, None)
    line = r"^[^\n]*cut.csv holds the result of another run \(settings sweeps=10 "
    with pytest.raises(ss.InvalidInput, match=line):
        figure4.all_runs([figure4.Task(tasks[0].example, 4)], tmp_path / "cut.csv", 1, None)


def test_photographs_are_spread_over_categories_whatever_their_order():
    names = [f"{category}_{number:03d}" for category in "abcdefgh" for number in range(50)]
    examples = [Example(name, Path(name), ()) for name in np.random.default_rng(0).permutation(names)]
    picked = [example.name for example in figure4.choose_examples(examples, 6)]
    assert picked[:7] == ["a_000", "a_010", "a_020", "a_029", "a_039", "a_049", "b_000"]
    assert len(set(picked)) == 48 and picked == sorted(picked)
    assert [example.name for example in figure4.choose_examples(examples[:1], 6)] == [examples[0].name]


def test_the_model_is_that_of_the_paper_preset(photographs):
    example = labelme(photographs)[0]
    ours = figure4.model_of(example)
    theirs = ss.segment(example.image_path, preset="paper", sweeps=2, rng=0)
    assert ours.log_posterior(theirs.partition) == pytest.approx(theirs.model.log_posterior(theirs.partition))
    assert ours.graph.n_sites == theirs.model.graph.n_sites and ours.prior.concentration == 3.0


def cut(image, seed, *, width):
    """Stripes of a width."""
    columns = np.broadcast_to(np.arange(image.shape[1], dtype=np.int32) // width, image.shape[:2])
    return columns.copy()


def quick_methods(names):
    """Methods of these names that take no time."""
    return [Method(name, "", partial(cut, width=5 + 3 * i), f"width {i}") for i, name in enumerate(names)]


N_METHODS = 7  # the six of the paper, and rdd-CRP with a smaller count weight


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Four photographs of LabelMe, and of BSDS two for testing and four for training."""
    labelme, berkeley = tmp_path / "labelme8", tmp_path / "bsds300"
    for i, name in enumerate(("coast_1", "coast_2", "street_1", "street_2")):
        write_photograph(labelme / "images" / f"{name}.jpg", halves(8 + 7 * i))
        write_png(labelme / "labels" / f"{name}.png", 1 + halves(8 + 7 * i))
    for i, name in enumerate(("test/101", "test/102", "train/201", "train/202", "train/203", "train/204")):
        write_photograph(berkeley / "images" / f"{name}.jpg", halves(10 + 4 * i))
        write_mat(berkeley / "ground_truth" / f"{name}.mat", halves(10 + 4 * i))
    monkeypatch.setattr(table1, "get_methods", quick_methods)
    monkeypatch.setattr(figure5, "get_methods", quick_methods)
    return tmp_path


@exhaustive
def test_the_table_has_the_medians_of_its_rows_beside_the_papers(root, drawing, tmp_path):
    assert [example.name for example in table1.berkeley(root)] == ["101", "102", "202", "204"]  # of train every second
    out, messages = tmp_path / "out", []
    paths = reproduce("table1", out, root, progress=messages.append, jobs=2)
    assert [path.name for path in paths] == ["table1.csv", "table1.png"]
    assert len(messages) == 2 * 4 * N_METHODS
    lines = table(paths[0])
    assert len(lines) == 2 * N_METHODS
    for name, first in (("LabelMe", 0), ("Berkeley", N_METHODS)):
        rows = read_rows(out / f"table1-{name.lower()}.csv")
        of_paper = summarize([row for row in rows if row.method in table1.COLUMNS])
        for line, summary, printed in zip(lines[first:], of_paper, table1.PAPER[name], strict=False):
            assert (line["dataset"], line["method"]) == (name, summary.method)
            assert float(line["median_rand"]) == summary.median_rand
            assert line["p_value"] == ("best" if summary.p_value is None else str(summary.p_value))
            assert (float(line["printed_median_rand"]), line["printed_p_value"]) == (printed.rand, printed.p_value)
    reproduce("table1", out, root, progress=messages.append)
    assert len(messages) == 2 * 4 * N_METHODS  # nothing was done again


def test_what_needs_data_says_so(drawing, tmp_path):
    for what in ("figure4", "figure5", "table1"):
        with pytest.raises(ValueError, match="root must be the folder that has the datasets"):
            reproduce(what, tmp_path)
        with pytest.raises(FileNotFoundError, match="Label Transfer"):
            reproduce(what, tmp_path, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="figure1"):
        reproduce("figure9", tmp_path)
