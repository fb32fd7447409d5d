"""SPINSEG_TEST_SEED=n gives every seed of the suite, and of the processes that it starts, other luck.

Python loads a module of this name when it starts, where its folder is on the path; `conftest.py` sees to that.
"""

import os
from typing import Any

import numpy as np

SHIFT = int(os.environ.get("SPINSEG_TEST_SEED") or 0)
default_rng = np.random.default_rng


def shifted_rng(seed: Any = None) -> np.random.Generator:
    """As NumPy's, but a whole number is a seed together with SHIFT."""
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    return default_rng([SHIFT, int(seed)] if whole else seed)


if SHIFT:
    np.random.default_rng = shifted_rng
