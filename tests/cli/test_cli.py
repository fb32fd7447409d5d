"""The command line: every picture of a call is done or has its line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np
import pytest
from PIL import Image

from command import spinseg
from effort import exhaustive
from spinseg.pictures import PICTURES
from spinseg.segmentation import batch
from spinseg.segmentation.batch import folders_for, segment_file
from spinseg.segmentation.files import OPTIONAL_FILES

FAST = ["--sweeps", "10", "--chains", "1"]
FILES = ["boundary_probability.png", "labels.png", "labels.tif", "overlay.png", "report.html", "result.json"]


def test_good_pictures_are_done_whatever_the_bad_ones_do(album, photo, tmp_path):
    good, bad = album
    arguments = [*good[:3], *bad, *good[3:], photo]
    run = spinseg("segment", *arguments, "--out", tmp_path, "--json", *FAST, check=2)
    reported = json.loads(run.stdout)["images"]
    assert [image["source"] for image in reported] == list(map(str, arguments))
    errors = {image["source"]: image["error"] for image in reported}
    for path in bad:
        assert path in errors[path] and "\n" not in errors[path]
        assert f"spinseg: {errors[path]}" in run.stderr.splitlines()
        assert not (tmp_path / os.path.basename(path).split(".")[0]).exists()
    for path in (*good, str(photo)):
        assert errors[path] is None
        folder = tmp_path / os.path.basename(path).rsplit(".", 1)[0]
        assert sorted(file.name for file in folder.iterdir()) == FILES
    shape = json.loads((tmp_path / "turned" / "result.json").read_text())["shape"]
    assert shape == [40, 30]  # upright
    assert "30000" in errors[bad[3]] and "pixels" in errors[bad[3]]


def test_a_folder_of_images_becomes_a_page(photo, tmp_path):
    folder, out = tmp_path / "my <photos>", tmp_path / "out"
    folder.mkdir()
    for name in ("b.jpg", "a & b.jpg", ".hidden.jpg"):
        (folder / name).write_bytes(photo.read_bytes())
    (folder / "notes.txt").write_text("not an image")
    (folder / "empty").mkdir()
    run = spinseg("segment", folder, folder / "empty", "--out", out, "--jobs", 1, *FAST, check=2)
    assert run.stdout.strip().splitlines()[-1] == f"Open {out.resolve() / 'index.html'}"
    page = (out / "index.html").read_text()
    assert page.count("<li>") == 2 and "a &amp; b.jpg" in page and 'src="a%20%26%20b/overlay.png"' in page
    assert "Not segmented" in page and "a folder without images" in page and "<photos>" not in page
    (out / "index.html").write_text("mine")
    again = spinseg("segment", folder, "--out", out, "--resume", *FAST, check=0)
    assert (out / "index.html").read_text() == "mine" and "was left as it is" in again.stderr


@pytest.mark.parametrize("n_images", [0, 2])
def test_results_may_lie_in_the_folder_of_the_images(photo, tmp_path, n_images):
    for number in range(n_images):
        (tmp_path / f"{number}.jpg").write_bytes(photo.read_bytes())
    (tmp_path / "further down").mkdir()
    for again in ([], ["--resume"]):
        options = ["--out", tmp_path / "results", "--jobs", 1, "--quiet", *FAST, *again]
        run = spinseg("segment", tmp_path, *options, check=0 if n_images else 2)
        assert ("got 'a folder without images'" in run.stderr) == (n_images == 0), run.stderr
    assert len(list(tmp_path.glob("results/*/labels.tif"))) == n_images


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of files are any bytes on Linux")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_name_that_is_no_text_costs_nothing(photo, tmp_path, as_json):
    folder, out = tmp_path / "photos", tmp_path / "out"
    folder.mkdir()
    for name in (b"a.jpg", b"b\xff\xfe.jpg"):
        (folder / os.fsdecode(name)).write_bytes(photo.read_bytes())
    options = ["--out", out, "--jobs", 1, *FAST, *(["--json"] if as_json else [])]
    run = spinseg("segment", folder, *options, check=0)
    assert run.stdout.encode()  # any terminal can show it
    assert len(json.loads(run.stdout)["images"]) == 2 if as_json else "b??.jpg" in run.stdout
    links = [unquote_to_bytes(link) for link in re.findall(r'href="([^"]+)"', (out / "index.html").read_text())]
    assert links == [b"a/report.html", b"b\xff\xfe/report.html"]
    assert all(os.path.exists(os.path.join(os.fsencode(out), link)) for link in links)


def test_what_was_found_is_printed_where_the_page_cannot_be_written(photo, tmp_path):
    (tmp_path / "index.html").mkdir()
    run = spinseg("segment", photo, photo, "--out", tmp_path, "--jobs", 1, "--json", *FAST)
    assert run.returncode == 2 and len(json.loads(run.stdout)["images"]) == 2
    assert "index.html" in run.stderr.splitlines()[-1]


def without_errors(*command):
    """Run Python without a standard error."""
    line = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, *map(str, command)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.name != "posix", reason="shells")
@pytest.mark.parametrize("n_images", [1, 2])
def test_standard_error_may_be_closed(photo, tmp_path, n_images):
    images = [photo, PICTURES["cat"].path][:n_images]
    options = ["--out", tmp_path, "--jobs", n_images, "--n-sites", 60, "--json", *FAST]
    run = without_errors("-m", "spinseg", "segment", *images, *options)
    assert run.returncode == 0 and len(json.loads(run.stdout)["images"]) == n_images


@pytest.mark.skipif(os.name != "posix", reason="shells")
def test_what_libraries_print_does_not_end_in_a_file_that_is_written(tmp_path):
    script = "import os, sys; from spinseg import cli; cli._open_closed_streams(); file = open(sys.argv[1], 'wb')"
    run = without_errors("-c", f"{script}; os.write(2, b'warning')", tmp_path / "labels.tif")
    assert run.returncode == 0 and not (tmp_path / "labels.tif").read_bytes()


def test_a_process_without_standard_error_prints_no_progress(photo, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    found = dict(batch.segment_files([str(photo)] * 2, tmp_path, {"sweeps": 2, "rng": 0}, jobs=1, progress=True))
    assert all(outcome.summary for outcome in found.values())
    assert capsys.readouterr().out == ""


def test_a_countdown_says_how_long_the_others_take(monkeypatch):
    monkeypatch.setattr(batch.time, "monotonic", lambda: now)
    now = 0.0
    countdown = batch.Countdown(10)
    assert countdown.title(1) == "[1/10] " and batch.Countdown(1).title(1) == ""
    now, countdown.n_done = 20.0, 4
    assert countdown.title(5) == "[5/10, about 30 s left] "
    now = 400.0
    assert countdown.title(5) == "[5/10, about 10 min left] "


@exhaustive
@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_a_terminal_shows_a_bar(photo, tmp_path):
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "spinseg", "segment", str(photo), "--out", str(tmp_path), "--sweeps", "2000"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as run:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the end of a terminal
            pass
    os.close(ours)
    stages = [b"reading", b"finding superpixels", b"sampling", b"drawing outlines", b"writing the report"]
    places = [shown.index(stage, shown.index(b"reading")) for stage in stages]
    assert run.returncode == 0 and photo.name.encode() in shown and places == sorted(places)


@exhaustive
def test_the_same_seed_gives_the_same_files_for_any_number_of_jobs(album, tmp_path):
    pictures = [*album[0][:2], album[0][4]]
    spinseg("segment", *pictures, "--out", tmp_path / "one", "--quiet", *FAST, check=0)
    run = spinseg("segment", *pictures, "--out", tmp_path / "two", "--jobs", 2, *FAST, check=0)
    assert "3/3" in run.stderr
    for path in sorted((tmp_path / "one").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path


@pytest.mark.parametrize("name", FILES)
def test_any_file_of_a_result_is_kept(photo, tmp_path, name):
    (tmp_path / name).write_text("kept")
    outcome = segment_file(str(photo), str(tmp_path), {"sweeps": 2, "rng": 0})
    assert outcome.error == f"{photo}: {tmp_path} holds {name} already, which is kept; --overwrite replaces it"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "kept")]
    assert segment_file(str(photo), str(tmp_path), {"sweeps": 2, "rng": 1}, overwrite=True).summary["seed"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES == sorted(batch.FILES)


def test_results_that_are_kept_are_one_line(album, tmp_path):
    pictures = album[0][:2]
    for picture in map(Path, pictures):
        (tmp_path / picture.stem).mkdir()
        (tmp_path / picture.stem / "overlay.png").write_text("kept")
    run = spinseg("segment", *pictures, "--out", tmp_path, *FAST, check=2)
    line = "2 results are kept: use --resume to add what is missing, or --overwrite to replace them"
    assert run.stderr == f"spinseg: {line}\n"
    assert f"Left as it was segmented before: {pictures[0]}, {pictures[1]}" in run.stdout
    assert "failed" not in run.stdout


def test_an_interrupted_result_is_replaced(photo, tmp_path):
    (tmp_path / "labels.tif").write_text("old")
    (tmp_path / "result.json").write_text('{"interrupted": true}')
    assert segment_file(str(photo), str(tmp_path), {"sweeps": 2, "rng": 0}).error is None
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert json.loads((tmp_path / "result.json").read_text())["sweeps_done"] == 2


def test_an_old_result_does_not_stand_beside_new_labels(photo, tmp_path, monkeypatch):
    (tmp_path / "result.json").write_text("old")
    monkeypatch.setattr("spinseg.segmentation.files.write_labels_tif", lambda *_: 1 / 0)  # as if killed there
    outcome = segment_file(str(photo), str(tmp_path), {"sweeps": 2, "rng": 0}, overwrite=True)
    assert "ZeroDivisionError: division by zero" in outcome.error and "1 / 0" in outcome.traceback
    assert not list(tmp_path.iterdir())


def test_a_file_that_came_meanwhile_is_kept(photo, tmp_path, monkeypatch):
    def segment(*arguments, **keywords):
        (tmp_path / "overlay.png").write_text("kept")
        return ss_segment(*arguments, **keywords)

    ss_segment = batch.segment
    monkeypatch.setattr(batch, "segment", segment)
    outcome = segment_file(str(photo), str(tmp_path), {"sweeps": 2, "rng": 0})
    assert f"{tmp_path} holds overlay.png already, which is kept" in outcome.error
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("overlay.png", "kept")]


def test_a_folder_of_the_users_stays_and_so_does_a_file_in_its_place(photo, tmp_path):
    (tmp_path / "missing").mkdir()
    assert segment_file("missing.jpg", str(tmp_path / "missing"), {}).error
    assert (tmp_path / "missing").is_dir()
    (tmp_path / "file").write_text("kept")
    outcome = segment_file(str(photo), str(tmp_path / "file"), {}, overwrite=True)
    assert "file must be a folder" in outcome.error and (tmp_path / "file").read_text() == "kept"


def test_options_reach_the_model(photo, tmp_path):
    options = ["--preset", "classes", "--prior", "PitmanYor(2, discount=0.3)", "--min-size", "2", "--max-size", "500"]
    options += ["--beta", "0.1", "--phi", "20", "--regions", "--count-weight", "0.2", "--n-words", "60"]
    options += ["--lam", "5", "--n-sites", "60", "--seed", "9", "--estimate", "binder", "--init", "one"]
    options += ["--start-label", "0", "--geojson", "--svg", "--csv", "--probabilities"]
    run = spinseg("segment", photo, "--out", tmp_path, "--json", *options, *FAST, check=0)
    reported = json.loads(run.stdout)["images"][0]
    expected = {"preset": "classes", "beta": 0.1, "lam": 5, "n_sites": 60, "count_weight": 0.2, "phi": 20}
    expected |= {"n_words": 60, "estimate": "binder", "regions": True, "init": "one", "start_label": 0}
    expected |= {"prior": "ss.PitmanYor(concentration=2.0, discount=0.3, min_size=2, max_size=500)"}
    assert reported["seed"] == 9 and expected.items() <= reported["settings"].items()
    folder = tmp_path / photo.stem
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, *OPTIONAL_FILES])
    regions = json.loads((folder / "result.json").read_text())["regions"]
    polygons = json.loads((folder / "regions.geojson").read_text())["features"]
    assert [feature["properties"] for feature in polygons] == regions and regions[0]["label"] == 0


def test_quiet_says_nothing_and_plain_shows_a_table_and_of_errors_one_line(album, photo, tmp_path):
    run = spinseg("segment", photo, "--out", tmp_path, "--quiet", *FAST, check=0)
    assert run.stdout == run.stderr == ""
    missing = album[1][-2]
    run = spinseg("segment", photo, missing, "--out", tmp_path, "--overwrite", "--jobs", 1, *FAST, check=2)
    assert photo.name in run.stdout and "regions" in run.stdout and missing not in run.stdout
    assert "1 of 2 images failed; the errors above say why." in run.stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", run.stderr)  # nothing that only a terminal understands
    lines = run.stderr.splitlines()
    assert len(lines) == 4 and lines[0] == "2 images"
    assert lines[1] == f"[1/2] {photo}"  # which begins
    assert lines[2].startswith("[2/2, about ") and lines[2].endswith(f" left] {missing}")
    assert lines[3] == f"spinseg: cannot read {missing}: no such file or directory"


WRONG = {
    "--chains 0": "--chains must be a whole number of at least 1: got 0",
    "--sweeps 5 --seconds 5": "--seconds must be None if sweeps are given: got 5.0",
    "--jobs 2 --dask tcp://nowhere:1": "--jobs must not be combined with dask: got 2",
    "--n-sites -3": "--n-sites must be a whole number of at least 1: got -3",
    "--init one,x --chains 2": "--init must be one of 'one', 'singletons', 'greedy': got 'x'",
    "--init one,one --chains 3": "--init must be one start, or one for each of 3 chains",
    "--prior Potts": "--prior must be a call, such as 'PitmanYor(3.0, discount=0.25)', of Dirichlet",
    "--min-size 0": "--min-size must be a whole number of at least 1",
    "--mask no-such-mask.png": "cannot read no-such-mask.png: no such file or directory",
    "--preset nice": "--preset must be one of 'auto', 'photo', 'measured', 'classes', 'objects', 'paper': got 'nice'",
    "--detail 2 --resume": "--detail must be a finite number of at least 0 and at most 1: got 2.0",
    "--sites pixels --jobs 2": "--sites must be one of",
}


@pytest.mark.parametrize("options", WRONG)
def test_what_is_wrong_for_all_pictures_is_told_once(photo, tmp_path, options):
    """Also where results are there already, and where a picture is not."""
    (tmp_path / photo.stem).mkdir()
    (tmp_path / photo.stem / "labels.tif").write_bytes(b"kept")
    run = spinseg("segment", photo, tmp_path / "none.png", photo, "--out", tmp_path, *options.split(), check=2)
    assert run.stderr.startswith(f"spinseg: {WRONG[options]}") and len(run.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.rglob("*.*")] == ["labels.tif"]


@pytest.mark.parametrize("options", ["--start-label 2", "--n-sites many", "--nonsense 1", "--seed -1"])
def test_what_an_option_does_not_take_is_refused(photo, tmp_path, options):
    run = spinseg("segment", photo, "--out", tmp_path / "out", *options.split(), check=2)
    assert options.split()[0] in run.stderr and "Usage: " in run.stderr and not (tmp_path / "out").exists()


def test_a_mask_leaves_the_rest_out_and_must_fit(photo, tmp_path):
    mask = np.zeros((90, 120), np.uint8)
    mask[20:60, 30:90] = 255
    for name, pixels, code in (("mask", mask, 0), ("small", mask[20:29, 30:39], 2)):
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
        given = ["--mask", tmp_path / f"{name}.png", "--out", tmp_path / name]
        run = spinseg("segment", photo, *given, *FAST, check=code)
    assert f"{photo}: --mask must have the image's shape (90, 120): got (9, 9)" in run.stderr
    with Image.open(tmp_path / "mask" / photo.stem / "labels.tif") as image:
        assert ((np.asarray(image) > 0) == (mask > 0)).all()


def test_seeds_are_read_from_a_file(photo, tmp_path):
    seeds = np.zeros((90, 120), np.uint8)
    seeds[20, 30], seeds[70, 90] = 1, 2
    Image.fromarray(seeds).save(tmp_path / "seeds.png")
    options = ["--sweeps", "4", "--chains", "1", "--n-sites", "60"]
    spinseg("segment", photo, "--out", tmp_path, "--seeds", tmp_path / "seeds.png", *options, check=0)
    (result,) = tmp_path.rglob("result.json")
    assert json.loads(result.read_text())["seeds"] == str(tmp_path / "seeds.png")
    run = spinseg("segment", photo, "--out", tmp_path / "out", "--seeds", photo, *options, check=2)
    assert "seeds must be an image of one number per pixel" in run.stderr and len(run.stderr.splitlines()) == 1


may_write_anywhere = pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")


@pytest.mark.parametrize("out", ["file", "file/out", "link", pytest.param("locked/out", marks=may_write_anywhere)])
def test_out_must_be_a_folder_that_can_be_written(photo, tmp_path, out):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "locked").mkdir(0o500)
    run = spinseg("segment", photo, photo, "--out", tmp_path / out, *FAST, check=2)
    assert run.stderr == f"spinseg: cannot write to the folder {tmp_path / out}\n"
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(
    "sources, names",
    [
        (["x/a.jpg", "y/a.png", "b.tar.gz", "x/a.jpg"], ["a", "a-2", "b.tar", "a-3"]),
        (["a.jpg", "x/a.jpg", "a-2.jpg", "y/a-2.jpg"], ["a", "a-3", "a-2", "a-2-2"]),
        (["a-2.jpg", "a.jpg", "x/a.jpg"], ["a-2", "a", "a-3"]),
        (["a.jpg", "A.jpg", "A-2.jpg"], ["a", "A-3", "A-2"]),
        ([".", "c/a.png"], ["slide", "a"]),
    ],
)
def test_folders_have_names_of_their_own_in_the_folder_for_results(sources, names, tmp_path, monkeypatch):
    (tmp_path / "slide.zarr").mkdir()
    monkeypatch.chdir(tmp_path / "slide.zarr")
    assert folders_for(sources, "out") == [os.path.join("out", name) for name in names]


def test_the_demo_keeps_what_is_in_a_folder_of_the_users_own(tmp_path):
    (tmp_path / "coffee").mkdir()
    (tmp_path / "coffee" / "result.json").write_text("mine")
    run = spinseg("demo", "--out", tmp_path)
    assert run.returncode != 0 and "is kept" in run.stderr
    assert (tmp_path / "coffee" / "result.json").read_text() == "mine"


@exhaustive  # it is what `make demo` runs, and README runs the same call
def test_the_demo_says_where_to_look(tmp_path):
    run = spinseg("demo", "--out", tmp_path, check=0)
    assert run.stdout.strip().splitlines()[-1] == f"Open {tmp_path.resolve() / 'coffee' / 'report.html'}"
    assert (tmp_path / "coffee" / "report.html").exists()
