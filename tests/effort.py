"""How much is tried: little in `make test`, which is quick, and more in `make test-all`."""

import os
from typing import TypeVar

import pytest

T = TypeVar("T")
EXHAUSTIVE = bool(os.environ.get("SPINSEG_EXHAUSTIVE"))

exhaustive = pytest.mark.exhaustive


def effort(quick: T, thorough: T) -> T:
    """What to try: the first in `make test`, the second in `make test-all`."""
    return thorough if EXHAUSTIVE else quick
