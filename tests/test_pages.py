"""The check of the code on pages of the site, which is fed bad ones."""

import importlib.util
from pathlib import Path

import pytest

for package in ("matplotlib", "nibabel", "sklearn", "zarr"):
    pytest.importorskip(package, reason="an extra is not installed")

CONFTEST = Path(__file__).parents[1] / "docs" / "conftest.py"
GOOD = """# Title

```python
a = 1
```

```python
# uses what the page defined above
assert a == 1
```

% skip: needs a cluster
```python
raise RuntimeError
```

```python
>>> a + 1
2

```
"""
BAD = [
    ("```python\nraise KeyError('in the page')\n```\n", "in the page"),
    ("```python\n>>> a + 1\n3\n\n```\n", "Expected:"),
    (f"```python\nb = '{'x' * 70}'\n```\n", "wider than 72: b"),
    (f"```sh\nspinseg {'x' * 70}\n```\n", "wider than 72: spinseg"),
    ("```python\nb = 1  # one\n```\n", "comment after code: b = 1"),
    ("```python\n>>> b = 1  # one\n\n```\n", "comment after code: b = 1"),
    ("% skip: needs a cluster\n```python\nb = 1  # one\n```\n", "comment after code: b = 1"),
    ("```sh\nmake test  # all\n```\n", "comment after code: make test"),
    ("```pycon\n>>> 1\n```\n", "an unread block"),
    (f"text\n\n    spinseg {'x' * 70}\n", "spinseg xx"),
]


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("pages_conftest", CONFTEST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(pages, path, request):
    page = pages.Page.from_parent(request.session, path=path)
    (blocks,) = page.collect()
    blocks.runtest()


def test_a_good_page_runs(pages, tmp_path, request):
    (tmp_path / "page.md").write_text(GOOD)
    run(pages, tmp_path / "page.md", request)


@pytest.mark.parametrize(("block", "says"), BAD)
def test_each_fault_is_found(pages, block, says, tmp_path, request):
    (tmp_path / "page.md").write_text(GOOD + "\n" + block)
    with pytest.raises((AssertionError, KeyError), match=says):
        run(pages, tmp_path / "page.md", request)
