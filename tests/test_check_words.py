"""The check of words, which is fed bad ones."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_words.py"


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_words", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("src/a.py", "x = 1\n# Draw it an" + "ew\n", 2),
        ("tests/a.py", "'must be one; recei" + "ved 2'", 1),
        ("docs/a.md", "# Title\n\nIt was t" + "old.\n", 3),
        ("docs/a.md", "the gr" + "ey level", 1),
        ("README.md", "a pict" + "ure of a cat", 1),
    ],
)
def test_a_bad_word_is_found_with_its_line(check, name, text, line):
    (fault,) = check.faults_of(name, text)
    assert fault.startswith(f"{name}:{line}: ")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/a.md", "`seg.picture` of an image, see [here](pictures.md)"),
        ("docs/a.md", "```python\nfrom spinseg.pictures import PICTURES\n```\n"),
        ("src/a.py", "picture = read_picture(path)"),
        ("docs/a.md", "the Greyhound"),
    ],
)
def test_code_and_names_are_left_alone(check, name, text):
    assert check.faults_of(name, text) == []
