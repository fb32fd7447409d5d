"""The sources of the package, parsed once for all tests that look at them."""

import ast
import functools
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "spinseg"


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file, breadth first, to be read only."""
    return list(ast.walk(ast.parse(path.read_text())))
