"""Run the code of every page: python -m pytest -n 0 docs/*.md docs/*/*.md

The Python blocks of a page run in order, in one namespace, in a folder with small images under the names that pages
use. A block of prompts is a doctest. `% skip: why` above a block, which readers do not see, says why it does not run.
All code has at most 72 columns, so that it does not scroll, and comments on lines of their own.
"""

import contextlib
import doctest
import io
import re
import textwrap
import tokenize
import warnings
from tempfile import TemporaryDirectory

import matplotlib
import nibabel
import numpy as np
import pytest
import tifffile
import zarr
from PIL import Image
from sklearn.exceptions import ConvergenceWarning

from spinseg.pictures import PICTURES

matplotlib.use("agg")
COLUMNS = 72
FENCE = re.compile(
    r"^(?:(?P<skip> *% skip: [^\n]+)\n)?"
    r"(?P<indent> *)```(?P<language>python|sh|yaml|text|bibtex)\n(?P<code>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
INCLUDE = re.compile(r"```\{include\} (.+)\n(?::.*\n)*```")
PYTHON = re.compile(r"^ *```(?:python|py|pycon)\b", re.MULTILINE)
INDENTED = re.compile(r"(?:\A|\n\n)((?:    \S.*\n)+)", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pytest_collect_file(file_path, parent):
    """A page is a test."""
    return Page.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None


class Page(pytest.File):
    """One page of the site."""

    def collect(self):
        """Its code is one test, since later blocks use what earlier ones define."""
        yield Blocks.from_parent(self, name="code")


class Blocks(pytest.Item):
    """The code of a page."""

    def runtest(self):
        """Check how the code is set, and run what is Python."""
        text = INCLUDE.sub(self.included, self.path.read_text(encoding="utf-8"))
        blocks = list(FENCE.finditer(text))
        assert len(PYTHON.findall(text)) == sum(block["language"] == "python" for block in blocks), "an unread block"
        assert not (wrong := [line for block in blocks for line in badly_set(block)]), "\n".join(wrong)
        assert not (wide := [line for line in indented(FENCE.sub("", text)) if len(line) > COLUMNS]), "\n".join(wide)
        run = [block for block in blocks if block["language"] == "python" and not block["skip"]]
        if run:
            with TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the images are too small
                write_samples()
                names = {"__name__": "__main__"}
                for block in run:
                    execute(block, self.path, names)

    def included(self, directive):
        """The text of the file that a page includes."""
        return (self.path.parent / directive[1]).read_text(encoding="utf-8")

    def reportinfo(self):
        """Where it is."""
        return self.path, 0, self.path.name


def badly_set(block):
    """Lines of a block that are too wide, or have a comment after code."""
    code = textwrap.dedent(block["code"])
    lines = code.splitlines()
    wrong = [f"wider than {COLUMNS}: {line}" for line in lines if len(line) > COLUMNS]
    if block["language"] == "sh":
        wrong += [f"comment after code: {line}" for line in lines if re.search(r"\S\s+# ", line)]
    elif block["language"] == "python":
        prompted = [line for line in lines if line.startswith((">>>", "..."))]
        plain = "\n".join(line[4:] for line in prompted) if prompted else code
        tokens = tokenize.generate_tokens(io.StringIO(plain).readline)
        wrong += [
            f"comment after code: {token.line.rstrip()}"
            for token in tokens
            if token.type == tokenize.COMMENT and token.line.strip() != token.string and "doctest:" not in token.string
        ]
    return wrong


def indented(text):
    """The lines of indented code: what follows a blank line, outside a list."""
    return [line[4:] for part in INDENTED.findall(text) for line in part.splitlines()]


def execute(block, path, names):
    """Run a block; a traceback names its lines in the page."""
    line = path.read_text(encoding="utf-8")[: block.start("code")].count("\n")
    code = textwrap.dedent(block["code"])
    if not code.lstrip().startswith(">>>"):
        exec(compile("\n" * line + code, str(path), "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(code, names, path.name, str(path), line)
    runner, printed = doctest.DocTestRunner(optionflags=FLAGS), io.StringIO()
    runner.run(test, out=printed.write, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, printed.getvalue()


def write_samples():
    """Write small images under the names that pages use, in this folder."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:96, :96]
    with Image.open(PICTURES["coffee"].path) as photo:
        small = photo.resize((180, 120))
    for name in ("coffee.jpg", "photo.jpg", "cat.jpg"):
        small.save(name)
    Image.fromarray(np.pad(np.full((80, 120), 255, np.uint8), ((20, 20), (30, 30)))).save("mask.png")
    blobs = ((rows % 32 - 16) ** 2 + (columns % 32 - 16) ** 2 < 80) * 120 + rng.normal(40, 5, (96, 96))
    for name in ("nuclei.png", "gravel.png"):
        Image.fromarray(blobs.astype(np.uint8)).save(name)
    bands = [((rows > 40 + 8 * i) * 2000 + rng.normal(900, 60, (96, 96))).astype(np.uint16) for i in range(3)]
    tifffile.imwrite("cells.tif", np.stack(bands), imagej=True, metadata={"axes": "CYX"})
    walls = ((rows % 32 < 2) | (columns % 32 < 2)) * 120 + rng.normal(40, 5, (96, 96))
    tissue = np.stack([walls, blobs]).astype(np.uint8)
    tifffile.imwrite("tissue.tif", tissue, imagej=True, metadata={"axes": "CYX"})
    place = [(33550, "d", 3, (10.0, 10.0, 0.0), True), (33922, "d", 6, (0.0, 0.0, 0.0, 5e5, 5.4e6, 0.0), True)]
    fields = np.stack(bands, -1)
    tifffile.imwrite("fields.tif", fields, photometric="minisblack", planarconfig="contig", extratags=place)
    tifffile.imwrite("alloy.tif", bands[0])
    volume = rng.normal(100, 5, (16, 32, 32)) + 80 * (np.indices((16, 32, 32))[2] > 15)
    tifffile.imwrite("nuclei.tif", volume.astype(np.uint16))
    for name, array in (("t1.nii.gz", volume), ("brain.nii.gz", np.ones_like(volume))):
        nibabel.save(nibabel.Nifti1Image(array.astype(np.int16), np.eye(4)), name)
    zarr.save("slide.ome.zarr", np.asarray(small))
