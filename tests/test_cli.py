"""The command line: every picture of a call is done or has its line."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from spinseg.batch import folders_for
from spinseg.pictures import PICTURES

FAST = ["--sweeps", "10", "--chains", "1"]
FILES = ["boundary_probability.png", "labels.png", "labels.tif", "overlay.png", "report.html", "result.json"]


def spinseg(*arguments, check=None, **options):
    command = [sys.executable, "-m", "spinseg", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert "Traceback" not in run.stderr, run.stderr
    if check is not None:
        assert run.returncode == check, run.stderr
    return run


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "a café.jpg"
    with Image.open(PICTURES["coffee"].path) as image:
        image.crop((150, 100, 270, 190)).save(path)
    return path


def header_of_a_bomb():
    """A PNG that claims 30,000 x 30,000 pixels and has none."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0))
        + chunk(b"IEND", b"")
    )


@pytest.fixture(scope="module")
def album(tmp_path_factory, photo):
    """Pictures good and bad, by name: whether they can be segmented."""
    folder = tmp_path_factory.mktemp("album")
    with Image.open(photo) as image:
        image = image.convert("RGB")
    tiny = image.resize((40, 30))
    tiny.convert("CMYK").save(folder / "cmyk.jpg")
    tiny.convert("P").save(folder / "palette.png")
    tiny.save(folder / "moving.gif", save_all=True, append_images=[tiny.rotate(90)])
    exif = Image.Exif()
    exif[274] = 6
    tiny.save(folder / "turned.jpg", exif=exif)
    Image.new("RGB", (1, 1)).save(folder / "one.png")
    Image.new("RGB", (2, 2)).save(folder / "two.png")
    Image.new("RGB", (50, 40), "teal").save(folder / "constant.png")
    good = ["cmyk.jpg", "palette.png", "moving.gif", "turned.jpg", "one.png", "two.png", "constant.png"]
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "cut.jpg").write_bytes(photo.read_bytes()[:1500])
    (folder / "text.jpg").write_text("this is no picture\n" * 9)
    (folder / "bomb.png").write_bytes(header_of_a_bomb())
    np.save(folder / "nan.npy", np.full((20, 20), np.nan))
    bad = ["empty.jpg", "cut.jpg", "text.jpg", "bomb.png", "nan.npy", "missing.jpg"]
    (folder / "folder").mkdir()
    return [str(folder / name) for name in good], [str(folder / name) for name in (*bad, "folder")]


def test_good_pictures_are_done_whatever_the_bad_ones_do(album, photo, tmp_path):
    good, bad = album
    arguments = [*good[:3], *bad, *good[3:], photo]
    run = spinseg("segment", *arguments, "--out", tmp_path, "--json", *FAST, check=2)
    told = json.loads(run.stdout)["images"]
    assert [image["source"] for image in told] == list(map(str, arguments))
    errors = {image["source"]: image["error"] for image in told}
    for path in bad:
        assert errors[path] and "\n" not in errors[path]
        assert f"spinseg: {errors[path]}" in run.stderr.splitlines()
        assert not (tmp_path / os.path.basename(path).split(".")[0]).exists()
    for path in (*good, str(photo)):
        assert errors[path] is None
        folder = tmp_path / os.path.basename(path).rsplit(".", 1)[0]
        assert sorted(file.name for file in folder.iterdir()) == FILES
    shape = json.loads((tmp_path / "turned" / "result.json").read_text())["shape"]
    assert shape == [40, 30]  # upright
    assert "30000" in errors[bad[3]] and "pixels" in errors[bad[3]]


def test_the_same_seed_gives_the_same_files_for_any_number_of_jobs(photo, album, tmp_path):
    pictures = [photo, *album[0][:3]]
    spinseg("segment", *pictures, "--out", tmp_path / "one", "--quiet", "--sweeps", 20, check=0)
    run = spinseg("segment", *pictures, "--out", tmp_path / "two", "--jobs", 2, "--sweeps", 20, check=0)
    assert "4/4" in run.stderr
    for path in sorted((tmp_path / "one").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path


def test_results_are_kept_unless_told_otherwise(photo, tmp_path):
    spinseg("segment", photo, "--out", tmp_path, "--seed", 1, *FAST, check=0)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    run = spinseg("segment", photo, "--out", tmp_path, "--seed", 2, *FAST, check=2)
    assert "--overwrite replaces it" in run.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    spinseg("segment", photo, "--out", tmp_path, "--seed", 2, "--overwrite", *FAST, check=0)
    assert json.loads((tmp_path / photo.stem / "result.json").read_text())["seed"] == 2


def test_options_reach_the_model(photo, tmp_path):
    options = ["--preset", "paper", "--prior", "py", "--alpha", "2", "--discount", "0.3", "--beta", "0.1"]
    options += ["--lambda", "5", "--min-size", "2", "--max-size", "500", "--sites", "60", "--count-weight", "0.2"]
    run = spinseg("segment", photo, "--out", tmp_path, "--json", *options, *FAST, check=0)
    settings = json.loads(run.stdout)["images"][0]["settings"]
    expected = "ss.PitmanYor(concentration=2.0, discount=0.3, min_size=2, max_size=500)"
    assert settings["prior"] == expected and settings["beta"] == 0.1 and settings["lam"] == 5
    assert settings["n_sites"] == 60 and settings["count_weight"] == 0.2 and settings["moves"] == "gsw"


def test_quiet_says_nothing_and_plain_shows_a_table(photo, tmp_path):
    run = spinseg("segment", photo, "--out", tmp_path, "--quiet", *FAST, check=0)
    assert run.stdout == run.stderr == ""
    run = spinseg("segment", photo, "--out", tmp_path, "--overwrite", *FAST, check=0)
    assert photo.name in run.stdout and "clusters" in run.stdout


@pytest.mark.parametrize(
    "options, line",
    [
        (["--beta", "nan"], "beta must be a finite number"),
        (["--prior", "potts"], "labels must be given for the prior 'potts'"),
        (["--min-size", "0"], "min_size must be a whole number of at least 1"),
        (["--sweeps", "0"], "sweeps must be"),
        (["--jobs", "0"], "jobs must be"),
        (["--mask", "no-such-mask.png"], "no-such-mask.png must be a file that can be read"),
        (["--seed", "-1"], "rng must be a whole number"),
        (["--preset", "nice"], "nice"),
    ],
)
def test_wrong_usage_is_exit_code_2(photo, tmp_path, options, line):
    run = spinseg("segment", photo, "--out", tmp_path, *options, check=2)
    assert line in run.stderr
    assert not list(tmp_path.rglob("*.*"))


def test_a_mask_must_fit(photo, tmp_path):
    Image.new("L", (9, 9), 255).save(tmp_path / "mask.png")
    run = spinseg("segment", photo, "--out", tmp_path / "out", "--mask", tmp_path / "mask.png", *FAST, check=2)
    assert "mask must have the image's shape (90, 120); received (9, 9)" in run.stderr


def test_a_mask_leaves_the_rest_out(photo, tmp_path):
    mask = np.zeros((90, 120), np.uint8)
    mask[20:60, 30:90] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    spinseg("segment", photo, "--out", tmp_path, "--mask", tmp_path / "mask.png", *FAST, check=0)
    with Image.open(tmp_path / photo.stem / "labels.tif") as image:
        assert ((np.asarray(image) >= 0) == (mask > 0)).all()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(photo, tmp_path):
    tmp_path.chmod(0o500)
    run = spinseg("segment", photo, "--out", tmp_path, *FAST, check=2)
    assert "Permission denied" in run.stderr


def test_out_may_not_be_a_file(photo, tmp_path):
    (tmp_path / "out").write_text("kept")
    run = spinseg("segment", photo, "--out", tmp_path / "out", *FAST, check=2)
    assert len(run.stderr.strip().splitlines()) == 1 and (tmp_path / "out").read_text() == "kept"


def started(*arguments):
    command = [sys.executable, "-m", "spinseg", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_saves_what_is_finished(photo, tmp_path, jobs):
    copies = [tmp_path / f"{name}.jpg" for name in "ab"]
    for copy in copies:
        copy.write_bytes(photo.read_bytes())
    out = tmp_path / "out"
    spinseg("segment", copies[0], "--out", out, *FAST, check=0)  # done before
    run = started("segment", *copies, "--out", out, "--jobs", jobs, "--sweeps", 300_000)
    while not (out / "b").exists():
        time.sleep(0.1)
    time.sleep(4)  # until it samples
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 130 and "Traceback" not in errors, errors
    assert "interrupted; what is finished is saved" in errors
    assert json.loads((out / "a" / "result.json").read_text())["sweeps_done"] == 10
    assert 0 < json.loads((out / "b" / "result.json").read_text())["sweeps_done"] < 300_000


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_killed_in_the_middle_nothing_is_half_written(photo, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(4):
        run = started("segment", photo, "--out", tmp_path, "--overwrite", *FAST)
        time.sleep(rng.uniform(0.8, 2.2))
        run.kill()
        run.communicate()
        folder = tmp_path / photo.stem
        for path in folder.glob("[!.]*") if folder.exists() else ():
            if path.suffix in (".png", ".tif"):
                with Image.open(path) as image:
                    image.load()
            elif path.suffix == ".json":
                json.loads(path.read_text())
            else:
                assert path.read_text().rstrip().endswith("</html>")


def test_folders_have_names_of_their_own():
    names = folders_for(["x/a.jpg", "y/a.png", "b.tar.gz", "x/a.jpg"], "out")
    assert names == [os.path.join("out", name) for name in ("a", "a-2", "b.tar", "a-3")]


def test_the_demo_says_where_to_look(tmp_path):
    run = spinseg("demo", "--out", tmp_path, check=0)
    assert run.stdout.strip().splitlines()[-1] == f"Look at {tmp_path.resolve() / 'coffee' / 'report.html'}"
    assert (tmp_path / "coffee" / "report.html").exists()


def test_the_first_run_says_that_it_compiles_and_later_ones_do_not(photo, tmp_path):
    cold = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, later = (
        spinseg("segment", photo, "--out", tmp_path, "--overwrite", *FAST, check=0, env=cold).stderr for _ in range(2)
    )
    assert first.count("Compiling the sampler") == 1 and "Compiling" not in later
