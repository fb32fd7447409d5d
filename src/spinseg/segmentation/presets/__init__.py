"""Presets, one file for each: every preset in this folder is known by its name, the default first."""

from importlib import import_module
from pkgutil import iter_modules

from spinseg.segmentation.presets.preset import DEFAULT, Preset

for module in ("measured", *(each.name for each in iter_modules(__path__))):
    import_module(f"{__name__}.{module}")
for name in [name for name in Preset.known if name != DEFAULT]:
    Preset.known[name] = Preset.known.pop(name)
