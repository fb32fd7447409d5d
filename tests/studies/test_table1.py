"""The paper's table and its figure of examples, on datasets made up for the test, by methods that take no time."""

import csv
from functools import partial

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from effort import exhaustive
from studies.evaluation.benchmark import labels_path
from studies.evaluation.methods import METHODS, Method
from studies.evaluation.results import read_rows
from studies.evaluation.summary import Summary, summarize
from studies.paper import figure5, reproduce, table1

pytest.importorskip("matplotlib", reason="the extra [paper] is not installed")


def cut(image, seed, *, width):
    """Stripes of a width."""
    columns = np.broadcast_to(np.arange(image.shape[1], dtype=np.int32) // width, image.shape[:2])
    return columns.copy()


def quick_methods(names):
    return [
        Method(name, METHODS[name].about, partial(cut, width=5 + 3 * i), f"width {i}") for i, name in enumerate(names)
    ]


N_METHODS = 7  # the six of the paper, and rdd-CRP with a smaller count weight


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Four photographs of LabelMe, and of BSDS two for testing and four for training."""
    rng = np.random.default_rng(0)
    places = [tmp_path / "labelme8" / "images", tmp_path / "labelme8" / "labels"]
    places += [
        tmp_path / "bsds300" / part / split for part in ("images", "ground_truth") for split in ("test", "train")
    ]
    for place in places:
        place.mkdir(parents=True)
    truth = np.zeros((30, 40), np.uint8)

    def photograph(place, edge):
        truth[:] = 1 + (np.arange(40) >= edge)
        colors = np.clip(60 * truth[..., None] + rng.integers(0, 30, (30, 40, 3)), 0, 255)
        Image.fromarray(colors.astype(np.uint8)).save(place)

    for i, name in enumerate(("coast_1", "coast_2", "street_1", "street_2")):
        photograph(places[0] / f"{name}.jpg", 8 + 7 * i)
        Image.fromarray(truth).save(places[1] / f"{name}.png")
    for split, names in {"test": ("101", "102"), "train": ("201", "202", "203", "204")}.items():
        for i, name in enumerate(names):
            photograph(tmp_path / "bsds300" / "images" / split / f"{name}.jpg", 10 + 6 * i)
            cell = np.empty((1, 1), object)
            cell[0, 0] = {"Segmentation": truth.astype(np.uint16)}
            savemat(tmp_path / "bsds300" / "ground_truth" / split / f"{name}.mat", {"groundTruth": cell})
    monkeypatch.setattr(table1, "get_methods", quick_methods)
    monkeypatch.setattr(figure5, "get_methods", quick_methods)
    return tmp_path


def test_the_berkeley_photographs_are_those_of_test_and_every_second_of_train(root):
    assert [example.name for example in table1.berkeley(root)] == ["101", "102", "202", "204"]


@exhaustive
def test_the_table_has_the_medians_of_its_rows_beside_the_papers(root, tmp_path):
    out = tmp_path / "out"
    messages = []
    paths = reproduce("table1", out, root, progress=messages.append, jobs=2)
    assert [path.name for path in paths] == ["table1.csv", "table1.png"]
    assert len(messages) == 2 * 4 * N_METHODS
    with Image.open(paths[1]) as picture:
        assert picture.width > 1000
    lines = list(csv.DictReader(paths[0].read_text().splitlines()))
    assert len(lines) == 2 * N_METHODS
    for name, first in (("LabelMe", 0), ("Berkeley", N_METHODS)):
        rows = read_rows(out / f"table1-{name.lower()}.csv")
        of_paper = summarize([row for row in rows if row.method in table1.COLUMNS])
        for line, summary, printed in zip(lines[first:], of_paper, table1.PAPER[name], strict=False):
            assert (line["dataset"], line["method"]) == (name, summary.method)
            assert float(line["median_rand"]) == summary.median_rand
            assert line["p_value"] == ("best" if summary.p_value is None else str(summary.p_value))
            assert (float(line["printed_median_rand"]), line["printed_p_value"]) == (printed.rand, printed.p_value)
        assert all(
            line["p_value"] == line["printed_median_rand"] == "" for line in lines[first + 6 : first + N_METHODS]
        )
    reproduce("table1", out, root, progress=messages.append)
    assert len(messages) == 2 * 4 * N_METHODS  # nothing was done again


def test_a_method_that_failed_everywhere_has_blank_cells_and_only_p_values_are_best(tmp_path):
    of_all = Summary(*[None] * len(Summary._fields))._replace(method="mean-shift", median_rand=0.7)
    of_all = of_all._replace(median_clusters=3.0, median_regions=4.0)
    cells = dict(zip(Summary._fields, table1._cells("LabelMe", of_all)[4:], strict=True))
    assert cells["p_value"] == "best" and cells["brier"] is None and list(cells.values()).count("best") == 1
    lines = table1._block("LabelMe", {"mean-shift": of_all})
    assert lines[1] == ["", "median Rand", "0.7000", *[""] * 5] and {len(line) for line in lines} == {8}
    assert table1.draw(tmp_path / "table.png", lines).exists()


@exhaustive
def test_figure_5_shows_six_photographs_under_each_method(root, tmp_path):
    picture, table = reproduce("figure5", tmp_path / "out", root, jobs=2)
    lines = list(csv.DictReader(table.read_text().splitlines()))
    assert len(lines) == 6 * 6
    assert [line["method"] for line in lines[:6]] == list(table1.COLUMNS)
    assert len({line["image"] for line in lines}) == 6
    with Image.open(picture) as image:
        assert image.height > 1000
    rows = read_rows(tmp_path / "out" / "figure5-rows.csv")
    assert all(labels_path(tmp_path / "out" / "figure5-rows.csv", row).exists() for row in rows)


def test_what_needs_data_says_so(tmp_path):
    for what in ("figure4", "figure5", "table1"):
        with pytest.raises(ValueError, match="root must be the folder that has the datasets"):
            reproduce(what, tmp_path)
        with pytest.raises(FileNotFoundError, match="Label Transfer"):
            reproduce(what, tmp_path, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="figure1"):
        reproduce("figure9", tmp_path)
