"""The command line: every picture of a call is done or has its line."""

import errno
import json
import multiprocessing
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

from command import spinseg
from conftest import PATIENCE
from effort import exhaustive
from spinseg import cli
from spinseg.cli import main
from spinseg.image.superpixels import KINDS
from spinseg.pictures import PICTURES
from spinseg.segmentation import batch
from spinseg.segmentation.batch import folders_for, segment_file, segment_files
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.settings import PRESETS, PRIOR_PARAMETERS

FAST = ["--sweeps", "10", "--chains", "1"]
FILES = ["boundary_probability.png", "labels.png", "labels.tif", "overlay.png", "report.html", "result.json"]


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


def test_nothing_but_errors_goes_to_a_standard_error_that_is_no_terminal(album, photo, tmp_path):
    missing = album[1][-2]
    run = spinseg("segment", photo, missing, "--out", tmp_path, *FAST, check=2)
    lines = [line for line in run.stderr.splitlines() if not line.startswith("Compiling")]  # in a fresh clone
    assert len(lines) == 1 and missing in lines[0]


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
    assert run.returncode == 0 and b"sweep" in shown and b"log posterior" in shown


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
    assert sorted(batch.FILES) == FILES == sorted(path.name for path in before)
    run = spinseg("segment", photo, "--out", tmp_path, "--seed", 2, *FAST, check=2)
    assert "--overwrite replaces it" in run.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before
    spinseg("segment", photo, "--out", tmp_path, "--seed", 2, "--overwrite", *FAST, check=0)
    assert json.loads((tmp_path / photo.stem / "result.json").read_text())["seed"] == 2


@pytest.mark.parametrize("name", FILES)
def test_any_file_of_a_result_is_kept(photo, tmp_path, name):
    (tmp_path / name).write_text("kept")
    outcome = segment_file(str(photo), str(tmp_path), {"sweeps": 2, "rng": 0})
    assert outcome.error == f"{photo}: {tmp_path} holds {name} already, which is kept; --overwrite replaces it"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "kept")]


def test_an_interrupted_result_is_replaced(photo, tmp_path):
    (tmp_path / "labels.tif").write_text("old")
    (tmp_path / "result.json").write_text('{"interrupted": true}')
    assert segment_file(str(photo), str(tmp_path), {"sweeps": 2, "rng": 0}).error is None
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert json.loads((tmp_path / "result.json").read_text())["sweeps_done"] == 2


def test_an_old_result_does_not_stand_beside_new_labels(photo, tmp_path, monkeypatch):
    (tmp_path / "result.json").write_text("old")
    monkeypatch.setattr("spinseg.segmentation.result.write_labels_tif", lambda *_: 1 / 0)  # as if killed there
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


def test_a_folder_of_the_users_stays(tmp_path):
    (tmp_path / "missing").mkdir()
    assert segment_file("missing.jpg", str(tmp_path / "missing"), {}).error
    assert (tmp_path / "missing").is_dir()


def test_a_file_in_the_place_of_a_folder_is_kept(photo, tmp_path):
    (tmp_path / "file").write_text("kept")
    outcome = segment_file(str(photo), str(tmp_path / "file"), {}, overwrite=True)
    assert "file must be a folder" in outcome.error and (tmp_path / "file").read_text() == "kept"


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
        (["--jobs", "2", "--dask", "tcp://nowhere:1"], "jobs must be left out where dask is given; received 2"),
        (["--mask", "no-such-mask.png"], "no-such-mask.png must be a file that can be read"),
        (["--seed", "-1"], "rng must be a whole number"),
        (["--preset", "nice"], "nice"),
    ],
)
def test_wrong_usage_is_exit_code_2(photo, tmp_path, options, line, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["spinseg", "segment", str(photo), "--out", str(tmp_path), *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2 and line in capsys.readouterr().err
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize(
    "options, line",
    [
        (["--chains", "0"], "chains must be a whole number of at least 1; received 0"),
        (["--sites", "-3"], "n_sites must be a whole number of at least 1; received -3"),
        (["--init", "one,x", "--chains", "2"], "init must be one of 'one', 'singletons', 'greedy'; received 'x'"),
        (["--preset", "paper", "--detail", "0.9"], "detail must be left out where couplings do not carry the evidence"),
        (["--seed", "-1"], "rng must be a whole number of at least 0, a Generator or None; received -1"),
        (["--mask", "no-such-mask.png"], "no-such-mask.png must be a file that can be read"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--resume"], ["--jobs", "2"]], ids=str)
def test_what_is_wrong_for_all_pictures_is_told_once(photo, tmp_path, options, line, more, monkeypatch, capsys):
    """Also where results are there already, and where a picture is not."""
    (tmp_path / photo.stem).mkdir()
    (tmp_path / photo.stem / "labels.tif").write_bytes(b"kept")
    sources = [str(photo), str(tmp_path / "none.png"), str(photo)]
    monkeypatch.setattr(sys, "argv", ["spinseg", "segment", *sources, "--out", str(tmp_path), *options, *more])
    with pytest.raises(SystemExit) as end:
        main()
    told = capsys.readouterr().err
    assert end.value.code == 2 and told.startswith(f"spinseg: {line}") and len(told.splitlines()) == 1
    assert [path.name for path in tmp_path.rglob("*.*")] == ["labels.tif"]


def test_a_mask_must_fit(photo, tmp_path):
    Image.new("L", (9, 9), 255).save(tmp_path / "mask.png")
    run = spinseg("segment", photo, "--out", tmp_path / "out", "--mask", tmp_path / "mask.png", *FAST, check=2)
    assert f"{photo}: mask must have the image's shape (90, 120); received (9, 9)" in run.stderr


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
    run = spinseg("segment", photo, "--out", tmp_path / "out", *FAST, check=2)
    assert run.stderr == f"spinseg: out must be a folder that can be written; received '{tmp_path / 'out'}'\n"


@pytest.mark.parametrize("out", ["file", "file/out", "link"])
def test_out_must_be_a_folder(photo, tmp_path, out):
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    run = spinseg("segment", photo, photo, "--out", tmp_path / out, *FAST, check=2)
    assert run.stderr == f"spinseg: out must be a folder that can be written; received '{tmp_path / out}'\n"
    assert (tmp_path / "file").read_text() == "kept"


# The command, whose processes say on standard error that they sample pictures.
TELLING = """
import os, sys
from spinseg.inference import workers
Progress, told = workers.Progress, []

def progress(done, total, *others):
    if done and total > 1000 and not told:
        told.append(print(f"sampling {os.getpid()}", file=sys.stderr, flush=True))
    return Progress(done, total, *others)

workers.Progress = progress
if __name__ == "__main__":
    from spinseg.cli import main
    main()
"""


def sampled_by(run):
    """The process that comes next to say that it samples."""
    for line in run.stderr:
        if line.startswith("sampling "):
            return line
    pytest.fail("it ended before")


@pytest.fixture(scope="module")
def telling(tmp_path_factory):
    path = tmp_path_factory.mktemp("telling") / "telling.py"
    path.write_text(TELLING)
    return path


def started(*arguments, script=None):
    command = [sys.executable, *(["-m", "spinseg"] if script is None else [str(script)]), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=os.name == "posix"
    )


def after_ctrl_c(run, times=1):
    """The pictures that a run tells of after Ctrl-C, which a terminal sends to all its processes."""
    for _ in range(times):
        os.killpg(run.pid, signal.SIGINT)
        time.sleep(0.3)
    output, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130 and "Traceback" not in errors, errors
    assert errors.count("interrupted; what is finished is saved") == 1
    return json.loads(output)["images"]


def results(out):
    return {path.parent.name: json.loads(path.read_text()) for path in out.glob("*/result.json")}


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_saves_what_is_finished(album, photo, tmp_path, telling):
    empty = album[1][0]
    arguments = [empty, photo, photo, "--out", tmp_path, "--json", "--sweeps", 200_000, "--chains", 1]
    run = started("segment", *arguments, script=telling)
    sampled_by(run)
    told = after_ctrl_c(run)
    assert [image["interrupted"] for image in told] == [False, True]
    assert [path.name for path in tmp_path.iterdir()] == [photo.stem]
    assert 0 < results(tmp_path)[photo.stem]["sweeps_done"] < 200_000


@exhaustive
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_saves_what_several_jobs_have_finished(album, photo, tmp_path, telling):
    arguments = [photo, album[1][0], photo, photo]
    options = ["--out", tmp_path, "--json", "--jobs", 2, "--sweeps", 200_000, "--chains", 1]
    run = started("segment", *arguments, *options, script=telling)
    assert sampled_by(run) != sampled_by(run)  # both processes
    told = after_ctrl_c(run, times=3)
    assert [image["interrupted"] for image in told] == [True, False, True]
    names = {photo.stem, f"{photo.stem}-2"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert all(result["interrupted"] and result["sweeps_done"] > 0 for result in results(tmp_path).values())


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return file.read().split()


@exhaustive
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="Linux")
def test_ctrl_c_while_processes_start(photo, tmp_path):
    run = started("segment", photo, photo, photo, "--out", tmp_path, "--json", "--jobs", 2, "--sweeps", 200_000)
    while len(children(run)) < 3:  # the third is Python's own
        time.sleep(0.001)
    told = after_ctrl_c(run)
    assert told and all(image["interrupted"] and not image["error"] for image in told)
    assert len(results(tmp_path)) == len(list(tmp_path.iterdir())) == len(told)


def test_ctrl_c_while_a_result_is_saved(photo, tmp_path, monkeypatch):
    def save_meanwhile(self, folder, save=Segmentation.save, **options):
        signal.raise_signal(signal.SIGINT)
        save(self, folder, **options)

    monkeypatch.setattr(Segmentation, "save", save_meanwhile)
    found = segment_files([str(photo)] * 2, tmp_path, {"sweeps": 2, "rng": 0})
    assert next(found)[1].summary["interrupted"] is False
    with pytest.raises(KeyboardInterrupt):
        next(found)
    assert sorted(path.name for path in tmp_path.rglob("*.*") if path.is_file()) == FILES


def test_ctrl_c_while_a_result_cannot_be_saved(photo, tmp_path, monkeypatch):
    def fail_meanwhile(self, folder, **options):
        signal.raise_signal(signal.SIGINT)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Segmentation, "save", fail_meanwhile)
    found = segment_files([str(photo)] * 2, tmp_path, {"sweeps": 2, "rng": 0})
    assert next(found)[1].error == f"{photo}: [Errno {errno.ENOSPC}] No space left on device"
    with pytest.raises(KeyboardInterrupt):
        next(found)


@pytest.fixture
def gallery(album, photo, tmp_path):
    """Outcomes of a picture that is missing, one that takes long, and two that do not, by two processes."""
    sources = ["missing.jpg", str(photo), *album[0][4:6]]
    return segment_files(sources, tmp_path, {"sweeps": 20_000, "chains": 1, "rng": 0}, jobs=2)


def test_every_outcome_comes_once_and_none_begins_after_ctrl_c(gallery, tmp_path):
    found = []
    with pytest.raises(KeyboardInterrupt):
        for index, outcome in gallery:
            found.append((index, outcome.interrupted))
            signal.raise_signal(signal.SIGINT)
    assert found == [(0, False), (1, True)]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(list(tmp_path.iterdir())) == 1 and not multiprocessing.active_children()


def test_a_batch_that_nobody_listens_to_ends(gallery):
    next(gallery)
    gallery.close()
    assert not multiprocessing.active_children()


@exhaustive
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_process_is_one_line_and_the_rest_is_done(gallery):
    found = dict([next(gallery)])
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    found |= gallery
    assert found[1].error.startswith(f"{found[1].source}: its process ended with exit code -9")
    assert found[2].summary and found[3].summary and len(found) == 4


@exhaustive
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


@pytest.mark.parametrize(
    "sources, names",
    [
        (["x/a.jpg", "y/a.png", "b.tar.gz", "x/a.jpg"], ["a", "a-2", "b.tar", "a-3"]),
        (["a.jpg", "x/a.jpg", "a-2.jpg", "y/a-2.jpg"], ["a", "a-3", "a-2", "a-2-2"]),
        (["a-2.jpg", "a.jpg", "x/a.jpg"], ["a-2", "a", "a-3"]),
        (["a.jpg", "A.jpg", "A-2.jpg"], ["a", "A-3", "A-2"]),
    ],
)
def test_folders_have_names_of_their_own(sources, names):
    assert folders_for(sources, "out") == [os.path.join("out", name) for name in names]


def test_choices_are_those_of_the_package():
    assert [choice.value for choice in cli.Preset] == list(PRESETS)
    assert [choice.value for choice in cli.Prior] == list(PRIOR_PARAMETERS)
    assert [choice.value for choice in cli.Sites] == list(KINDS)


def test_the_demo_says_where_to_look(tmp_path):
    run = spinseg("demo", "--out", tmp_path, check=0)
    assert run.stdout.strip().splitlines()[-1] == f"Look at {tmp_path.resolve() / 'coffee' / 'report.html'}"
    assert (tmp_path / "coffee" / "report.html").exists()


@exhaustive
@pytest.mark.xdist_group("cold")  # compiling takes half a minute: once is enough
def test_the_first_run_says_that_it_compiles_and_later_ones_do_not(cold_run):
    assert cold_run.return_code == 0
    assert cold_run.told.startswith("Compiling the sampler") and cold_run.told.count("\n") == 1
    assert not any("agglomerate" in name for name in cold_run.compiled_when_told)  # what comes first when it samples
    later = subprocess.run(cold_run.command, env=cold_run.environment, capture_output=True, text=True, check=True)
    assert later.stderr == ""


def test_all_is_compiled_before_processes_start():
    script = (
        "from spinseg.segmentation import batch; from spinseg.inference.kernels.agglomerate import agglomerate;"
        "from spinseg.inference.kernels.iterations import run_iterations; batch._compile(progress=False);"
        "assert run_iterations.signatures and agglomerate.signatures"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
