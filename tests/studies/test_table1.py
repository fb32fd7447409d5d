"""The paper's table and its figure of examples, on datasets made up for the test, by methods that take no time."""

import csv
from functools import partial

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

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
    rng = np.random.default_rng(0)

    def photograph(place, edge):
        """Save a photograph of two halves there, and return their labels and where those belong."""
        truth = np.broadcast_to(1 + (np.arange(40) >= edge), (30, 40)).astype(np.uint8)
        colors = np.clip(60 * truth[..., None] + rng.integers(0, 30, (30, 40, 3)), 0, 255)
        for part in ("images", "labels", "ground_truth"):
            (tmp_path / place.replace("images", part)).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(colors.astype(np.uint8)).save(tmp_path / f"{place}.jpg")
        return truth

    for i, name in enumerate(("coast_1", "coast_2", "street_1", "street_2")):
        truth = photograph(f"labelme8/images/{name}", 8 + 7 * i)
        Image.fromarray(truth).save(tmp_path / f"labelme8/labels/{name}.png")
    for i, name in enumerate(("test/101", "test/102", "train/201", "train/202", "train/203", "train/204")):
        cell = np.empty((1, 1), object)
        cell[0, 0] = {"Segmentation": photograph(f"bsds300/images/{name}", 10 + 4 * i).astype(np.uint16)}
        savemat(tmp_path / f"bsds300/ground_truth/{name}.mat", {"groundTruth": cell})
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
