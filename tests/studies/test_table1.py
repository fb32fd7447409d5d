"""The paper's table and its figure of examples, on datasets made up for the test, by methods that take no time."""

import csv
from functools import partial

import numpy as np
import pytest
from photographs import halves, write_mat, write_photograph, write_png

from effort import exhaustive
from studies.evaluation.methods import METHODS, Method
from studies.evaluation.results import read_rows
from studies.evaluation.summary import summarize
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


def test_the_berkeley_photographs_are_those_of_test_and_every_second_of_train(root):
    assert [example.name for example in table1.berkeley(root)] == ["101", "102", "202", "204"]


@exhaustive
def test_the_table_has_the_medians_of_its_rows_beside_the_papers(root, tmp_path):
    out, messages = tmp_path / "out", []
    paths = reproduce("table1", out, root, progress=messages.append, jobs=2)
    assert [path.name for path in paths] == ["table1.csv", "table1.png"]
    assert len(messages) == 2 * 4 * N_METHODS
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
    reproduce("table1", out, root, progress=messages.append)
    assert len(messages) == 2 * 4 * N_METHODS  # nothing was done again


def test_what_needs_data_says_so(tmp_path):
    for what in ("figure4", "figure5", "table1"):
        with pytest.raises(ValueError, match="root must be the folder that has the datasets"):
            reproduce(what, tmp_path)
        with pytest.raises(FileNotFoundError, match="Label Transfer"):
            reproduce(what, tmp_path, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="figure1"):
        reproduce("figure9", tmp_path)
