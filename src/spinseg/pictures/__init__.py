"""Photographs that come with the package, free of rights; scripts/make_pictures.py says how they were made."""

from pathlib import Path
from typing import NamedTuple


class BundledPicture(NamedTuple):
    """The path of a photograph, and its credit line."""

    path: Path
    credit: str


_FOLDER = Path(__file__).parent
PICTURES = {
    "coffee": BundledPicture(_FOLDER / "coffee.jpg", "a photograph by Rachel Michetti (CC0)"),
    "cat": BundledPicture(_FOLDER / "cat.jpg", "a photograph by Stefan van der Walt (CC0)"),
    "astronaut": BundledPicture(_FOLDER / "astronaut.jpg", "a photograph by NASA (public domain)"),
}
