"""Regions as polygons for other programs: GeoJSON and SVG. Labels and draws as an xarray Dataset."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import MissingExtra
from spinseg._validation import invalid
from spinseg.image.polygons import Polygon, region_polygons

if TYPE_CHECKING:
    from spinseg.segmentation.result import Segmentation

STROKE = "#d81b60"  # of outlines in SVG, seldom a color of photographs


def region_geojson(regions: NDArray[np.int32], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The regions of a picture as a FeatureCollection of GeoJSON (RFC 7946) but for its coordinates, which are pixels.

    Parameters
    ----------
    regions : (H, W) array
        The place of each pixel's region in `rows`, from 1 on; 0 outside.
    rows
        The table of regions, whose entries become the properties of each.
    """
    polygons, features = _polygons(regions), []
    for place, row in enumerate(rows, start=1):
        parts = [[[*ring, ring[0]] for ring in polygon] for polygon in polygons[place]]
        geometry = {"type": "Polygon", "coordinates": parts[0]}
        if len(parts) > 1:
            geometry = {"type": "MultiPolygon", "coordinates": parts}
        features.append({"type": "Feature", "id": row["region"], "geometry": geometry, "properties": dict(row)})
    return {"type": "FeatureCollection", "features": features}


def region_svg(regions: NDArray[np.int32], rows: list[dict[str, Any]]) -> str:
    """The outlines of the regions as SVG, a path for each, whose title and data say which; as in `region_geojson`."""
    height, width = regions.shape
    polygons, paths = _polygons(regions), []
    for place, row in enumerate(rows, start=1):
        rings = [ring for polygon in polygons[place] for ring in polygon]
        steps = "".join(f"M{' '.join(f'{x},{y}' for x, y in ring)}Z" for ring in rings)
        title = escape(f"region {row['region']}, {row['area']:,} pixels")
        paths.append(f'<path data-label="{row["label"]}" d="{steps}"><title>{title}</title></path>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'fill="none" fill-rule="evenodd" stroke="{STROKE}" stroke-linejoin="round" '
        f'stroke-width="{max(1, round(max(regions.shape) / 500))}">\n' + "\n".join(paths) + "\n</svg>\n"
    )


def _polygons(regions: NDArray[np.int32]) -> dict[int, list[Polygon]]:
    if regions.ndim != 2:
        invalid("the segmentation", "be that of a picture, not of a volume, for polygons", regions.shape)
    return region_polygons(regions)


def to_dataset(found: "Segmentation") -> Any:
    """A `Segmentation`, its edges and its draws as an xarray Dataset; see `Segmentation.to_xarray`."""
    try:
        import xarray as xr
    except ImportError:
        raise MissingExtra('to_xarray needs xarray: pip install "spinseg[diagnostics]"') from None
    axes = ("z", "y", "x")[-found.labels.ndim :]
    chains, graph = found.chains, found.model.graph
    variables = {
        "labels": (axes, found.labels),
        "sites": (axes, found.sites),
        "boundary_probability": (axes, found.boundary_probability),
        "partition": ("site", found.partition),
        "edges": (("edge", "end"), graph.edges),
        "separation": ("edge", found.separation),
        "draws": (("chain", "draw", "site"), chains.labels),
    }
    coordinates: dict[str, Any] = {axis: np.arange(n) for axis, n in zip(axes, found.labels.shape, strict=True)}
    coordinates |= {"chain": np.arange(chains.n_chains), "site": np.arange(graph.n_sites)}
    if chains.n_components > 1:
        coordinates["component"] = ("draw", chains.component)
    attributes = {"source": found.source or "", "python": found.python_code, "seed": found.seed}
    attributes |= {"verdict": found.verdict, "preset": found.preset.name}
    return xr.Dataset(variables, coordinates, attributes)
