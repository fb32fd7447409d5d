"""The version tells commits apart: in a clone, in an sdist, in what was installed from either, and without Git."""

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import spinseg as ss
from spinseg import _version
from spinseg._run.provenance import Provenance
from spinseg.segmentation.batch import segment_files

FILE = Path(_version.__file__)
BASE = "0.3.0.dev0"
SOURCE = re.sub(r'^RELEASE = "[^"]+"', f'RELEASE = "{BASE}"', FILE.read_text(), flags=re.M)
COMMITS = ["0123456789abcdef0123456789abcdef01234567", "fedcba9876543210fedcba9876543210fedcba98"]


def version_in(folder, source=SOURCE, layout="src/spinseg"):
    """The version that the file has in a folder, laid out as in the repository or as installed."""
    place = folder / layout / "_version.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(source)
    return runpy.run_path(str(place))["VERSION"]


def clone_at(folder, **files):
    """A folder with these files of Git, whose names have __ in place of /."""
    for name, content in files.items():
        place = folder / ".git" / name.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return folder


@pytest.mark.parametrize("commit", COMMITS)
def test_a_clone_has_the_commit_wherever_git_keeps_it(commit, tmp_path):
    expected = f"{BASE}+g{commit[:10]}"
    detached = clone_at(tmp_path / "detached", HEAD=f"{commit}\n")
    branch = clone_at(tmp_path / "branch", HEAD="ref: refs/heads/a/b\n", refs__heads__a__b=f"{commit}\n")
    listed = f"# pack-refs with: peeled fully-peeled sorted\n{COMMITS[0][::-1]} refs/heads/a\n{commit} refs/heads/a/b\n"
    packed = clone_at(tmp_path / "packed", HEAD="ref: refs/heads/a/b\n", **{"packed-refs": listed})
    for clone in (detached, branch, packed):
        assert version_in(clone) == expected
    for clone in (branch, packed):
        inner = clone / ".git" / "worktrees" / "w"
        inner.mkdir(parents=True)
        (inner / "HEAD").write_text("ref: refs/heads/a/b\n")
        (inner / "commondir").write_text("../..\n")
        (tmp_path / f"w-{clone.name}").mkdir()
        (tmp_path / f"w-{clone.name}" / ".git").write_text(f"gitdir: {inner}\n")
        assert version_in(tmp_path / f"w-{clone.name}") == expected


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_clone_has_the_commit_that_git_reports(tmp_path):
    def git(*words, cwd=tmp_path / "clone"):
        config = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *config, *words], cwd=cwd, check=True, capture_output=True, text=True
        ).stdout.strip()

    (tmp_path / "clone").mkdir()
    git("init")
    assert version_in(tmp_path / "clone") == BASE  # nothing is committed
    for prepare in ([], ["pack-refs", "--all"], ["checkout", "--detach"], ["worktree", "add", "-b", "b", "../other"]):
        git("commit", "--allow-empty", "-m", "a")
        if prepare:
            git(*prepare)
        expected = f"{BASE}+g{git('rev-parse', 'HEAD')[:10]}"
        assert version_in(tmp_path / "clone") == expected
    assert version_in(tmp_path / "other") == expected
    git("commit", "--allow-empty", "-m", "a", cwd=tmp_path / "other")
    assert version_in(tmp_path / "clone") == expected != version_in(tmp_path / "other")


def test_an_sdist_and_an_installation_have_the_version_that_they_record(tmp_path):
    recorded = f"{BASE}+g{COMMITS[0][:10]}"
    text = f"Metadata-Version: 2.4\nName: spinseg\nVersion: {recorded}\n\nVersion: 1\n"
    clone_at(tmp_path / "sdist", HEAD=COMMITS[1])  # that of who packs it for a distribution
    (tmp_path / "sdist" / "PKG-INFO").write_text(text)
    assert version_in(tmp_path / "sdist") == recorded
    info = tmp_path / "site-packages" / f"spinseg-{recorded}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(text)
    assert version_in(tmp_path / "site-packages", layout="spinseg") == recorded
    (info / "METADATA").write_text(text.replace(BASE, "0.2.9"))  # of another
    assert version_in(tmp_path / "site-packages", layout="spinseg") == BASE


def test_without_git_and_in_the_repository_of_others_there_is_no_commit(tmp_path):
    assert version_in(tmp_path / "archive") == BASE
    project = clone_at(tmp_path / "project", HEAD=COMMITS[0])
    assert version_in(project, layout="lib/spinseg") == BASE
    for number, head in enumerate(("ref: refs/heads/gone", "ref: refs/heads/.invalid")):
        assert version_in(clone_at(tmp_path / f"{number}", HEAD=head)) == BASE
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / ".git").write_text("gitdir: /no/such/folder\n")
    assert version_in(tmp_path / "moved") == BASE


def test_a_release_has_no_commit(tmp_path):
    clone = clone_at(tmp_path, HEAD=COMMITS[0])
    assert version_in(clone, SOURCE.replace(BASE, "0.3.0")) == "0.3.0"


def test_a_result_of_another_commit_is_not_resumed(tmp_path, monkeypatch):
    assert ss.__version__ == _version.VERSION == Provenance.of_run({}).version
    Image.fromarray(np.eye(24, dtype=np.uint8) * 255).save(tmp_path / "a.png")
    keywords = {"preset": "paper", "sweeps": 2, "chains": 1, "rng": 0}

    def run():
        ((_, outcome),) = segment_files([str(tmp_path / "a.png")], tmp_path / "out", keywords, resume=True)
        return outcome

    first = run()
    assert first.error is None and first.summary["versions"]["spinseg"] == _version.VERSION and run().done_before
    later = f"{BASE}+g{COMMITS[1][:10]}"
    monkeypatch.setattr("spinseg.segmentation.resume.VERSION", later)
    assert f"another run (spinseg {_version.VERSION}, not {later})" in run().error
