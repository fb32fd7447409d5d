"""The photographs that come with the package, as layers."""

import numpy as np
from PIL import Image

from spinseg.napari_plugin.layers import LayerData
from spinseg.pictures import PICTURES


def coffee() -> list[LayerData]:
    """A cup of coffee."""
    return _layer("coffee")


def cat() -> list[LayerData]:
    """A cat."""
    return _layer("cat")


def astronaut() -> list[LayerData]:
    """An astronaut."""
    return _layer("astronaut")


def _layer(name: str) -> list[LayerData]:
    """The photograph of this name, with its credit line."""
    with Image.open(PICTURES[name].path) as image:
        pixels = np.asarray(image)
    return [(pixels, {"name": name, "rgb": True, "metadata": {"credit": PICTURES[name].credit}}, "image")]
