"""The compiled code as text, to be changed and run uncompiled."""

import ast
import re
import types
from pathlib import Path

from spinseg.sampler import kernels

KERNELS = "spinseg.sampler.kernels"
IMPORTS = re.compile(r"^from spinseg\S* import (\([^)]*\)|.*)$", re.MULTILINE)


def text_of(name: str) -> str:
    """The text of a file of the kernels."""
    return next(
        Path(folder, f"{name}.py") for folder in kernels.__path__ if Path(folder, f"{name}.py").exists()
    ).read_text()


def files_of(text: str) -> list[str]:
    """The names of the kernels that a text imports, each after those that it imports itself."""
    names: list[str] = []
    for name in re.findall(rf"^from {KERNELS}\.(\w+) import", text, re.MULTILINE):
        names += [*files_of(text_of(name)), name]
    return list(dict.fromkeys(names))


def source_of(text: str) -> str:
    """All kernels that a text imports as one text, which imports nothing of the package and has no name twice."""
    source = IMPORTS.sub("", "\n".join(map(text_of, files_of(text))))
    defined = [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    defined += re.findall(r"\b[A-Z][A-Z_]+\b", "\n".join(re.findall(r"^([A-Z_, ]+) = ", source, re.MULTILINE)))
    assert len(set(defined)) == len(defined)
    return source


def replaced(source: str, right: str, wrong: str) -> str:
    """The source with one line changed, which must be there once."""
    assert source.count(right) == 1, right
    return source.replace(right, wrong)


def names_of(source: str, names: dict | None = None) -> dict:
    """The names that a source defines when it is run uncompiled, among others that it finds."""
    module = types.ModuleType("interpreted_kernels")
    module.__dict__.update(names or {})
    exec(compile(source, "interpreted_kernels.py", "exec"), module.__dict__)
    return module.__dict__
