"""Comparisons: every row is computed once, whatever breaks, and does not depend on who computed it."""

import csv
import json
import os

import numpy as np
import pytest
from photographs import halves, write_photograph, write_png
from PIL import Image
from scipy.stats import wilcoxon

from command import study
from effort import exhaustive
from spinseg._errors import BUG, LOG, InvalidInput
from spinseg._run import executor
from spinseg.segmentation.presets.photo import Photo
from spinseg.segmentation.problem import prepare
from studies.evaluation import benchmark
from studies.evaluation.answers import Answer, EdgeProbabilities
from studies.evaluation.benchmark import evaluate, labels_path, seed_for
from studies.evaluation.boundaries import BoundaryCounts
from studies.evaluation.calibration import Reliability, energy_distance
from studies.evaluation.datasets import Example, get_dataset, read_labels
from studies.evaluation.methods import METHODS, Method, get_methods
from studies.evaluation.metrics import Scores, scores
from studies.evaluation.page import write_comparison
from studies.evaluation.results import COLUMNS, ComparisonFile, Row, read_rows
from studies.evaluation.summary import summarize, wilcoxon_p_value

SIZE = (24, 30)


def cut(image, seed):
    """Labels that depend on the seed: left and right of a column."""
    return halves(np.random.default_rng(seed).integers(5, 25), image.shape[:2]).astype(np.int32)


def stripes(image, seed):
    return np.broadcast_to(np.arange(image.shape[1], dtype=np.int32) // 10, image.shape[:2]).copy()


def method(run, name=None):
    return Method(name or run.__name__, "for tests", run, "")


CUT, STRIPES = method(cut), method(stripes)


@pytest.fixture
def here(monkeypatch):
    """Tasks are done by this process: starting others takes seconds."""
    monkeypatch.setattr(
        executor, "run_in_processes", lambda work, tasks, jobs, started: executor._run_here(work, tasks, started)
    )


@pytest.fixture
def album(tmp_path):
    """A folder of six photographs with ground truth."""
    for i in range(6):
        write_photograph(tmp_path / "album" / "images" / f"p{i}.png", halves(4 * i + 4, SIZE))
        write_png(tmp_path / "album" / "labels" / f"p{i}.png", halves(4 * i + 4, SIZE))
    return tmp_path / "album"


def examples_of(album):
    return get_dataset("folder", album)


def row(image="a", method_name="m", rand=0.5, **changes):
    found = Scores(rand, 1 / 3, 0.1 + 0.2, 0.0, 1e-9, 0.25, 1.0, 0.4)
    values = {"scores": found, "clusters": 3, "regions": 4, "seconds": 1.25}
    values |= {"dataset": "d", "seed": 7, "version": "1", "settings": "s"}
    return Row(image, method_name, **(values | changes))


def test_rows_come_back_from_the_file_as_they_went_in(tmp_path):
    counts = BoundaryCounts((7,) * 24, (3,) * 24, tuple(range(24)), 30)
    reported = Reliability((0.1 + 0.2,) * 10, tuple(i / 3 for i in range(10)), (1e-17,) * 10, 0.7, 2 / 3)
    rows = [
        row("d", graded=1 / 3, energy_distance=-0.1, boundaries=counts, reliability=reported),
        row('a, "b"', error='one line, "quoted"', scores=None, clusters=0, regions=0),
        row(os.fsdecode(b"caf\xe9"), seconds=0.001),  # a name that is no characters
    ]
    ComparisonFile(tmp_path / "r.csv").append(*rows)
    assert read_rows(tmp_path / "r.csv") == rows


def test_a_line_that_was_cut_short_is_dropped_and_the_others_stay(tmp_path, capsys, monkeypatch):
    path, synced = tmp_path / "r.csv", []
    file = ComparisonFile(path)
    file.append(row("a"))
    whole = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    file.append(row("b"))
    both = path.read_bytes()
    assert synced == [len(both)]  # what is appended reaches the disk
    zeros = [whole + bytes(20), whole + bytes(20) + b"\n"]  # as a power cut may leave it
    for content in [both[: len(whole) + 1], both[:-1], *zeros]:
        path.write_bytes(content)
        assert list(ComparisonFile(path).rows) == [("a", "m")] and path.read_bytes() == whole
        assert capsys.readouterr().err == f"spinseg: the last line of {path} was cut short, and is dropped\n"
    assert list(ComparisonFile(path).rows) == [("a", "m")] and capsys.readouterr().err == ""


def test_results_of_another_run_are_refused_and_left_as_they_are(tmp_path):
    path, line = tmp_path / "r.csv", r"another run \(seed 7, not 8, settings s, not t\), which is kept; name another"
    ComparisonFile(path).append(row())
    before = path.read_bytes()
    assert list(ComparisonFile(path, lambda image, method_name: row().provenance).rows) == [("a", "m")]
    with pytest.raises(InvalidInput, match=line):
        ComparisonFile(path, lambda image, method_name: row(settings="t", seed=8).provenance)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["images", "labels"])
def test_rows_of_files_that_have_changed_are_refused(album, tmp_path, here, kind):
    out, file = tmp_path / "r.csv", album / kind / "p1.png"
    first = evaluate(examples_of(album), [CUT], out, dataset="d")
    os.utime(file, (2**31 - 1, 2**31 - 1))
    assert evaluate(examples_of(album), [CUT], out, dataset="d") == first
    before = out.read_bytes()
    file.write_bytes((album / kind / "p2.png").read_bytes())
    os.utime(file, (1, 1))
    with pytest.raises(InvalidInput, match=r"another run \(p1 or its ground truth has changed since\)"):
        evaluate(examples_of(album), [CUT], out, dataset="d")
    assert out.read_bytes() == before
    others = [example for example in examples_of(album) if example.name != "p1"]
    assert evaluate(others, [CUT], out, dataset="d") == [row for row in first if row.image != "p1"]


@pytest.mark.parametrize("text", ["x,y\n1,2\n", ",".join(COLUMNS) + "\na,b\n", "\x00\xff\n", "short sums"])
def test_a_file_that_holds_other_things_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "r.csv"
    if text == "short sums":
        ComparisonFile(path).append(row(boundaries=BoundaryCounts((7,) * 23, (3,) * 23, (3,) * 23, 30)))
    else:
        path.write_text(text)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"^[^\n]*must[^\n]*$"):
        ComparisonFile(path)
    assert path.read_bytes() == before


@exhaustive
def test_each_row_has_the_scores_of_what_its_method_made(album, tmp_path):
    out = tmp_path / "new" / "folder" / "r.csv"
    found = evaluate(examples_of(album), [CUT, STRIPES], out, dataset="album", jobs=1)
    assert [one.key for one in found] == [(f"p{i}", name) for i in range(6) for name in ("cut", "stripes")]
    assert found == read_rows(out)
    for one, example in zip(found[::2], examples_of(album), strict=True):
        labels = cut(example.image(), seed_for(example.name, 0))
        assert one.scores == scores(labels, example.annotations())
        assert (one.clusters, one.regions, one.seed) == (2, 2, seed_for(example.name, 0))
        assert np.array_equal(read_labels(labels_path(out, one))[0], labels)
    parallel = evaluate(examples_of(album), [CUT, STRIPES], tmp_path / "3.csv", dataset="album", jobs=3)
    assert [one._replace(seconds=0) for one in parallel] == [one._replace(seconds=0) for one in found]
    other = evaluate(examples_of(album), [CUT], tmp_path / "seed.csv", dataset="album", seed=1)
    assert [one.scores for one in other] != [one.scores for one in found[::2]]


def test_what_is_there_is_not_computed_again_and_what_failed_is(album, tmp_path, monkeypatch):
    out, asked = tmp_path / "r.csv", []

    def serially(work, tasks, jobs, started):
        asked.extend("/".join(task.key) for task in tasks)
        return executor._run_here(work, tasks, started)

    monkeypatch.setattr(executor, "run_in_processes", serially)
    first = evaluate(examples_of(album)[:2], [CUT], out, dataset="album")
    picture = album / "images" / "p3.png"
    picture.rename(album / "hidden.png")
    second = evaluate(examples_of(album), [CUT], out, dataset="album")
    assert [one.image for one in second if one.error] == ["p3"]
    (album / "hidden.png").rename(picture)
    third = evaluate(examples_of(album), [CUT, STRIPES], out, dataset="album")
    cuts = [f"p{i}/cut" for i in range(6)]
    assert asked == [*cuts[:2], *cuts[2:], *[k for i in range(6) for k in ([cuts[3]] * (i == 3) + [f"p{i}/stripes"])]]
    assert third[::2] == [*first, *second[2:3], third[6], *second[4:]]
    assert not any(one.error for one in third)


def mixes_shapes(image, seed):
    """A mistake such as NumPy finds, with a single picture."""
    return stripes(image, seed) if image.mean() <= 250 else np.zeros(2) + np.zeros(3)


def test_one_bad_image_has_its_line_and_the_others_are_done(here, album, tmp_path, caplog):
    images, labels = album / "images", album / "labels"
    (images / "p0.png").write_bytes(b"no picture")
    (labels / "p1.png").write_bytes(b"no labels")
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(labels / "p2.png")
    (labels / "p3.png").unlink()
    Image.fromarray(np.full((*SIZE, 3), 255, np.uint8)).save(images / "p4.png")  # of which the method has a bug
    with caplog.at_level("DEBUG", LOG.name):
        found = evaluate(examples_of(album), [method(mixes_shapes)], tmp_path / "r.csv", dataset="album")
    parts = ["p0.png", "p1.png", "shape", "ground truth", f"{BUG}: ValueError: operands could not be broadcast", ""]
    for one, part in zip(found, parts, strict=True):
        assert part in one.error and "\n" not in one.error and bool(one.error) == bool(part), one.error
    assert found[5].scores is not None and read_rows(tmp_path / "r.csv") == found
    assert "in mixes_shapes" in caplog.text


@pytest.mark.parametrize("place", ["file/r.csv", "link/r.csv", "folder.csv", "results"])
def test_what_cannot_be_done_is_refused_before_any_work(album, tmp_path, place, monkeypatch):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder.csv").mkdir()
    monkeypatch.setattr(benchmark, "_warm_up", None)  # the first thing that works
    with pytest.raises(InvalidInput, match=r"^(out must be a|cannot write to) [^\n]*$"):
        evaluate(examples_of(album), [STRIPES], tmp_path / place, dataset="album")
    assert (tmp_path / "file").read_text() == "kept"
    with pytest.raises(InvalidInput, match="each name once"):
        evaluate(examples_of(album)[:1] * 2, [CUT], tmp_path / "r.csv", dataset="album")


def test_more_labels_than_a_png_holds_cost_the_label_image_alone(here, album, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "MAX_PNG_LABELS", 2)
    rows = evaluate(examples_of(album)[:1], [CUT, STRIPES], tmp_path / "r.csv", dataset="album")
    assert [labels_path(tmp_path / "r.csv", one).exists() for one in rows] == [True, False]
    assert not any(one.error for one in rows) and "is left out: a PNG holds 2 labels" in capsys.readouterr().err


def test_the_summary_is_what_numpy_and_scipy_say():
    rng = np.random.default_rng(1)
    values = {"a": rng.uniform(size=30), "b": rng.uniform(size=30) + 0.1, "c": rng.uniform(size=30)}
    rows = [row("lost", "a", scores=None, error="no")]
    for name, found in values.items():
        rows += [row(f"i{i}", name, rand=float(found[i]), clusters=i, seconds=float(i)) for i in range(30)]
    summaries = summarize(rows)
    best = max(values, key=lambda name: np.median(values[name]))
    assert [one.p_value is None for one in summaries] == [name == best for name in values]
    for one in summaries:
        assert one.median_rand == np.median(values[one.method])
        assert one.rand == pytest.approx(values[one.method].mean(), abs=1e-12)
        assert (one.median_clusters, one.median_seconds, one.images) == (14.5, 14.5, 30)
        if one.p_value is not None:
            assert one.p_value == wilcoxon(values[best], values[one.method]).pvalue
    assert [one.errors for one in summaries] == [1, 0, 0]
    assert summarize([row(scores=None, error="no")]) == []


def test_the_test_takes_the_images_that_both_have_in_pairs():
    first = {f"i{i}": i / 20 for i in range(20)}
    other = {f"i{i}": (i + (-1) ** i) / 20 for i in range(3, 25)}
    common = sorted(first.keys() & other.keys())
    expected = wilcoxon([first[i] for i in common], [other[i] for i in common]).pvalue
    assert wilcoxon_p_value(first, dict(reversed(other.items()))) == pytest.approx(expected, rel=1e-12)
    assert wilcoxon_p_value(first, first) == 1.0


def test_probabilities_are_pooled_over_all_edges_and_boundaries_over_all_pixels():
    rng = np.random.default_rng(4)
    p, h, w = (rng.random(90), rng.random(90), rng.integers(1, 30, 90))
    parts = [slice(0, 10), slice(10, 90)]  # of pictures of unequal size
    sums = [Reliability.of(p[part], h[part], w[part]) for part in parts]
    counts = [BoundaryCounts((100,) * 24, (n,) * 24, (n,) * 24, true) for n, true in ((90, 100), (10, 900))]
    rows = [
        row(f"i{i}", reliability=sums[i], boundaries=counts[i], graded=g, energy_distance=g / 2)
        for i, g in enumerate((0.2, 0.6))
    ]
    plain = [row(f"i{i}", "plain", boundaries=counts[i], energy_distance=0.5) for i in range(2)]
    found, without = summarize([*rows, *plain])
    assert found.brier == pytest.approx(np.average((p - h) ** 2, weights=w))
    assert found.ods == found.ois == without.ods == pytest.approx(2 * 0.5 * 0.1 / 0.6)
    assert (found.graded, found.energy_distance) == (pytest.approx(0.4), pytest.approx(0.2))
    assert found.average_precision is not None
    assert (without.brier, without.graded, without.ois, without.average_precision) == (None,) * 4


def sure(image, seed):
    """An answer with probabilities and draws: two sites, of which the seed draws the boundary."""
    sites = np.zeros(SIZE, np.int32)
    sites[:, 12:] = 1
    edges, length = np.array([[0, 1]], np.int32), np.array([sites.shape[0]], np.int32)
    reported = EdgeProbabilities(sites, edges, length, np.array([0.75]))
    return Answer(sites, reported, np.array([[0, 1], [0, 1], [0, 1], [0, 0]], np.int32))


def test_an_answer_with_probabilities_and_draws_has_all_scores_in_its_row_and_on_the_page(here, album, tmp_path):
    for kind in ("images", "labels"):
        os.rename(album / kind / "p1.png", album / kind / "<b>.png")
    out, examples, methods = tmp_path / "r.csv", examples_of(album), [method(sure, "<sure>"), STRIPES]
    rows = evaluate(examples, methods, out, dataset="album & co", boundaries=True)
    assert read_rows(out) == rows
    quick = evaluate(examples, methods, tmp_path / "quick.csv", dataset="album & co")
    assert [one.boundaries for one in quick] == [None] * len(rows)
    assert [one.energy_distance for one in quick] == [one.energy_distance for one in rows]
    with pytest.raises(InvalidInput, match=r"settings e3b0c442\+boundaries, not"):
        evaluate(examples, methods, out, dataset="album & co")
    [third] = [one for one in rows if one.key == ("p2", "<sure>")]  # its truth is the very boundary
    assert third.reliability.brier == pytest.approx(0.25**2) and third.graded == 1.0
    assert third.boundaries.f[0] == 1.0 and third.boundaries.found[-1] == 0
    answer, people = sure(None, 0), examples[0].annotations()
    assert rows[0].energy_distance == energy_distance(answer.draws, answer.labels, people)
    assert rows[0].energy_distance != pytest.approx(energy_distance(np.arange(2)[None], answer.labels, people))
    write_comparison("album & co", out, examples, methods, rows)
    page = (tmp_path / "r.html").read_text()
    ranked = sorted((one for one in rows if one.method == "stripes"), key=lambda one: -one.scores[0])
    names = [f"<strong>{one.image.replace('<b>', '&lt;b&gt;')}" for one in ranked]
    places = [page.index(name, page.index('id="stripes"')) for name in names]
    assert places == sorted(places) and page.count("<figure><img") == 12
    assert "album &amp; co" in page and "<b>.png" not in page and "<sure>" not in page and 'src="http' not in page
    first, second = csv.DictReader((tmp_path / "r-summary.csv").read_text().splitlines())
    assert second["method"] == "stripes" and second["brier"] == "" and float(first["ods"]) > 0
    assert float(second["rand"]) == pytest.approx(np.mean([one.scores[0] for one in ranked]))


def test_the_methods_of_the_same_evidence_have_the_same_edges():
    image = np.zeros((48, 64, 3), np.uint8)
    image[10:40, 20:50] = (200, 90, 40)
    problem = prepare(image, Photo())  # as `spinseg` has it
    expected = problem.sites, problem.model.graph.edges, problem.model.graph.length
    for name in ("spinseg", "evidence"):
        *found, separation = METHODS[name].answer(image, 3).probabilities
        assert all(map(np.array_equal, found, expected))
        assert separation.shape == found[-1].shape and 0 <= separation.min() <= separation.max() <= 1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_labels_every_pixel_and_repeats_itself(name):
    pytest.importorskip({"mean-shift": "cv2", "gaussian-mixture": "sklearn"}.get(name.removesuffix("-tuned"), "numpy"))
    image = np.random.default_rng(0).integers(0, 12, (48, 64, 3)).astype(np.uint8)
    image[:, 32:] += np.array([200, 90, 40], np.uint8)
    labels = METHODS[name].answer(image, 5).labels
    assert labels.shape == (48, 64) and labels.dtype == np.int32
    assert np.array_equal(np.unique(labels), np.arange(labels.max() + 1))
    assert np.array_equal(labels, METHODS[name].answer(image, 5).labels)


@pytest.mark.parametrize("name", ["rdd-crp", "evidence"])
def test_transparent_pixels_have_no_label_and_are_no_cluster(here, name, tmp_path):
    picture = np.full((40, 40, 4), 255, np.uint8)
    picture[:, 20:, :3] = 60
    picture[:12, :12, 3] = 0
    labels = METHODS[name].answer(picture, 0).labels
    assert np.array_equal(labels < 0, picture[..., 3] == 0)
    Image.fromarray(picture).save(tmp_path / "image.png")
    Image.fromarray((picture[..., 0] < 100).astype(np.uint8)).save(tmp_path / "truth.png")
    example = Example("transparent", tmp_path / "image.png", (tmp_path / "truth.png",))
    answered = method(lambda image, seed: labels, name)
    [found] = evaluate([example], [answered], tmp_path / "rows.csv", dataset="d", jobs=1)
    assert found.clusters == 2


def test_methods_differ_in_their_marks_where_their_settings_do_and_unknown_ones_are_refused():
    marks = [found.settings_hash for found in METHODS.values()]
    assert len(set(marks)) == len(marks)
    with pytest.raises(ValueError, match=r"rdd-crp.*got 'magic'"):
        get_methods(["spinseg", "magic"])
    with pytest.raises(ValueError, match="each once"):
        get_methods(["spinseg", "spinseg"])


def test_the_command_prints_a_table_or_json_and_says_of_errors_by_its_exit_code(here, album, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "broken", method(mixes_shapes, "broken"))
    out = tmp_path / "new" / "r.csv"

    def run(code, *more, methods="felzenszwalb,slic-rag"):
        found = study("evaluate", "folder", "--root", album, "--methods", methods, "--out", out, "--jobs", 1, *more)
        assert found.returncode == code, found.stderr
        return found

    assert "ODS" in run(0).stdout
    found = json.loads(run(0, "--json").stdout)  # all rows are there
    assert (found["rows"], found["errors"], found["dataset"]) == (12, 0, "folder")
    (album / "images" / "p0.png").write_bytes(b"no picture")
    assert "p0 or its ground truth has changed since" in run(2, "--json").stderr
    out.unlink()
    found = run(2, "--json", "--limit", 2)
    assert json.loads(found.stdout)["errors"] == 2 and "p0" in found.stderr and "2 of 4 rows" in found.stderr
    Image.fromarray(np.full((*SIZE, 3), 255, np.uint8)).save(album / "images" / "p0.png")
    out.unlink()
    first, second = run(70, "--quiet", methods="broken").stderr.splitlines()
    assert "1 of 6 rows" in first and "1 of them failed because of a bug" in second


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["labelme8", "--root", "nowhere"], "Label Transfer"),
        (["magic", "--root", "."], "bsds500"),
        (["folder", "--root", ".", "--methods", "magic"], "rdd-crp"),
        (["folder", "--root", ".", "--jobs", "2", "--dask", "tcp://x:1"], "jobs"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, arguments, reported):
    monkeypatch.chdir(tmp_path)
    run = study("evaluate", *arguments, "--out", tmp_path / "r.csv")
    assert run.returncode == 2 and reported in run.stderr and len(run.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "r.csv").exists()
