"""Bayesian nonparametric image segmentation with a generalized Swendsen-Wang sampler.

Names are listed in `__init__.pyi`, and loaded when they are first used: importing the package costs next to nothing.
"""

import lazy_loader

from spinseg._version import VERSION

__version__ = VERSION
__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
_NEED_EXTRAS = {"SpatialClustering"}  # to be loaded at all, which `from spinseg import *` does
__all__ = ["__version__", *(name for name in _names if name not in _NEED_EXTRAS)]
