"""The compiled code of the sampler: its modules are built as one, so that they call each other without Python."""

from pathlib import Path

from spinseg._kernels import use_compiled

use_compiled(__name__, Path(__file__).parent)
