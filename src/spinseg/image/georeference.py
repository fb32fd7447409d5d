"""Where the pixels of a GeoTIFF lie on a map: its tags are read, and written again with label images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_SCALE, _TIEPOINTS, _TRANSFORMATION, _DIRECTORY, _DOUBLES, _TEXTS = 33550, 33922, 34264, 34735, 34736, 34737  # tags
_MODEL, _RASTER, _GEOGRAPHIC, _PROJECTED = 1024, 1025, 2048, 3072  # keys
_IS_PROJECTED, _IS_POINT, _USER_DEFINED = 1, 2, 32767  # values


@dataclass(frozen=True)
class Georeference:
    """A place on a map for every pixel.

    Attributes
    ----------
    transform : six floats, a to f
        x = a column + b row + c and y = d column + e row + f, where (0, 0) is the outer corner of the first pixel.
    epsg : int or None
        The number of the coordinate reference system; None where the file names none.
    tags : tuple
        The tags of the file, as `tifffile.imwrite` takes them.
    """

    transform: tuple[float, float, float, float, float, float]
    epsg: int | None = None
    tags: tuple[Any, ...] = ()

    def place(self, column: float, row: float) -> tuple[float, float]:
        """Return the coordinates x and y on the map."""
        a, b, c, d, e, f = self.transform
        return a * column + b * row + c, d * column + e * row + f

    @property
    def turns_over(self) -> bool:
        """Whether counterclockwise becomes clockwise, as where y counts upward on the map."""
        a, b, _, d, e, _ = self.transform
        return a * e - b * d < 0

    @property
    def name(self) -> str:
        """The coordinate reference system in brackets; empty where it is unknown."""
        return "" if self.epsg is None else f" (EPSG:{self.epsg})"

    @property
    def urn(self) -> str | None:
        """The name of the coordinate reference system in GeoJSON; of EPSG:4326 the one with longitude first."""
        if self.epsg is None:
            return None
        return "urn:ogc:def:crs:OGC:1.3:CRS84" if self.epsg == 4326 else f"urn:ogc:def:crs:EPSG::{self.epsg}"

    def to_json(self) -> dict[str, Any]:
        """Return the transform and the number of the system by name."""
        return {"transform": list(self.transform), "epsg": self.epsg}


def georeference_of(page: Any) -> Georeference | None:
    """Return where a page of a TIFF lies; None without tags, or with such as give no affine transform."""
    values = {tag: page.tags.valueof(tag) for tag in (_SCALE, _TIEPOINTS, _TRANSFORMATION, _DIRECTORY)}
    matrix, scale, tiepoint = values[_TRANSFORMATION], values[_SCALE], values[_TIEPOINTS]
    try:
        if matrix is not None:
            a, b, c, d, e, f = (float(matrix[i]) for i in (0, 1, 3, 4, 5, 7))
        elif scale is not None and tiepoint is not None:
            a, b, d, e = float(scale[0]), 0.0, 0.0, -float(scale[1])
            c, f = float(tiepoint[3] - a * tiepoint[0]), float(tiepoint[4] - e * tiepoint[1])
        else:
            return None
        keys = _keys(values[_DIRECTORY] or ())
    except (TypeError, ValueError, IndexError):  # damaged
        return None
    if keys.get(_RASTER) == _IS_POINT:  # the corner of a pixel is then half a pixel before its place
        c, f = c - (a + b) / 2, f - (d + e) / 2
    system = keys.get(_PROJECTED) if keys.get(_MODEL) == _IS_PROJECTED else keys.get(_GEOGRAPHIC)
    tags = [page.tags[tag] for tag in (*values, _DOUBLES, _TEXTS) if tag in page.tags]
    stored = tuple((int(tag.code), int(tag.dtype), int(tag.count), tag.value, True) for tag in tags)
    return Georeference((a, b, c, d, e, f), system if system and system < _USER_DEFINED else None, stored)


def _keys(directory: Any) -> dict[int, int]:
    """Return the keys of a GeoTIFF whose values are whole numbers, which stand in its directory."""
    entries = zip(*(directory[first::4] for first in range(4, 8)), strict=True)
    return {int(key): int(value) for key, location, _, value in entries if location == 0}
