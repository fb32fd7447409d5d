"""Compiled loops over pixels: the modules are built as one."""

from pathlib import Path

from spinseg._kernels import use_compiled

use_compiled(__name__, Path(__file__).parent)
