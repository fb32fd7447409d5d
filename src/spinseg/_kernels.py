"""Where kernels come from: the extension modules or, with SPINSEG_INTERPRETED=1, their sources."""

import os
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

INTERPRETED = os.environ.get("SPINSEG_INTERPRETED") == "1"


def use_compiled(package: str, folder: Path) -> None:
    """Let every module of a package of kernels be the one extension module that is built from all of them."""
    if INTERPRETED:
        return
    try:
        compiled = import_module(f"{package}._compiled")
    except ModuleNotFoundError as error:
        if error.name != f"{package}._compiled":
            raise
        raise ImportError(
            "spinseg was not built: run `pip install .` in its folder, with a C compiler, "
            "or set SPINSEG_INTERPRETED=1 to run without, a hundred times slower"
        ) from error
    for module in pkgutil.iter_modules([str(folder)]):
        sys.modules[f"{package}.{module.name}"] = compiled
