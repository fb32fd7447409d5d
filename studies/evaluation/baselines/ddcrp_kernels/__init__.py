"""The compiled code of dd-CRP, which has those kernels of the sampler in it that it calls."""

from pathlib import Path

from spinseg._kernels import use_compiled

use_compiled(__name__, Path(__file__).parent)
