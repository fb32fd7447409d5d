"""Presets, one file for each: every preset in this folder is known by its name, the default first."""

from importlib import import_module
from pkgutil import iter_modules

for module in ("measured", *(each.name for each in iter_modules(__path__))):
    import_module(f"{__name__}.{module}")
