"""The files that a segmentation is saved in: images, tables, a report, and result.json, which describes them."""

import functools
import json
import os
import platform
from collections.abc import Callable, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg._errors import needing
from spinseg._run.atomic import atomic_write, print_warning, printable
from spinseg._validation import InvalidInput, check_choice, invalid
from spinseg._version import VERSION
from spinseg.image.formats import is_zarr
from spinseg.image.io import MAX_PNG_LABELS, write_labels_png, write_labels_tif, write_png, write_tif
from spinseg.image.layout import Georeference
from spinseg.image.picture import Picture
from spinseg.image.polygons import region_polygons
from spinseg.image.render import label_colors, overlay
from spinseg.segmentation.region_table import as_csv
from spinseg.segmentation.report.page import report

if TYPE_CHECKING:
    from spinseg.segmentation.result import Segmentation

FILES = ("labels.tif", "labels.png", "overlay.png", "boundary_probability.png", "report.html", "result.json")
POLYGON_FILES = ("regions.geojson", "outlines.svg")  # of images of one plane
OPTIONAL_FILES = (*POLYGON_FILES, "regions.csv", "boundary_probability.tif")  # that are written if asked
REPORT_DETAILS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # that the report shows beside the chosen one, unless near it
STROKE = "#d81b60"  # of outlines in SVG, seldom a color of photographs
MAX_LISTED = 2  # of files that are kept
LIBRARIES = ("numpy", "scipy", "scikit-image")


def save(
    found: "Segmentation", folder: str | os.PathLike[str], names: Sequence[str] = FILES, *, overwrite: bool = False
) -> None:
    """Write labels.tif, labels.png, overlay.png, boundary_probability.png, report.html and result.json, or some.

    Each file is written whole or not at all, result.json last. labels.tif holds `labels`, in 16 bits if they fit;
    labels.png holds them as indices into a palette; boundary_probability.png runs from 0 to 255. For a volume, all
    but labels.tif show the middle plane. A PNG that cannot be written (more than 65,535 labels, no draws) is
    skipped; standard error and result.json say so.

    `names` may also hold regions.geojson, outlines.svg, regions.csv (the table `regions`) and
    boundary_probability.tif (32-bit floats, all planes). If a file exists already, nothing is written unless
    `overwrite` is true. With result.json, all files of these names in the folder are then written again, so that
    they belong to one result.

    Raises
    ------
    FileExistsError
        If the folder holds one of the files and `overwrite` is false.
    """
    for name in names:
        check_choice("names", name, (*FILES, *OPTIONAL_FILES))
    folder, wanted = Path(folder), set(names)
    if overwrite and "result.json" in wanted:  # which describes all of them
        wanted |= {name for name in (*OPTIONAL_FILES, *FILES) if os.path.lexists(folder / name)}
    chosen = [name for name in (*OPTIONAL_FILES, *FILES) if name in wanted]
    check_inputs_kept(folder, chosen, (found.source, found.mask, found.seeds))
    check_replaceable(folder, chosen, overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    if "result.json" in wanted:  # it would describe other files if saving is killed midway
        (folder / "result.json").unlink(missing_ok=True)
    plane, first = found._plane, found.start_label
    picture, labels, apart = Picture(found.picture.codes[plane]), found.labels[plane], found.boundary_probability[plane]
    outside = np.full((first, 3), 255, np.uint8)  # white, where it has a number
    palette = np.concatenate([outside, label_colors(found.n_clusters)])
    writers: dict[str, Callable[[Path], None]] = {
        "labels.tif": lambda path: write_labels_tif(path, found.labels, _place(found)),
        "labels.png": lambda path: write_labels_png(path, labels, palette),
        "overlay.png": lambda path: write_png(path, overlay(picture, labels, start_label=first)),
        "boundary_probability.png": lambda path: write_png(path, np.rint(255 * apart).astype(np.uint8)),
        "boundary_probability.tif": lambda path: write_tif(path, found.boundary_probability, _place(found)),
        "regions.geojson": lambda path: write_utf8(path, json.dumps(to_geojson(found), ensure_ascii=False) + "\n"),
        "outlines.svg": lambda path: write_utf8(path, to_svg(found)),
        "regions.csv": lambda path: write_utf8(path, as_csv(found.region_rows, image=found.source or "")),
        "report.html": lambda path: write_utf8(path, report_of(found)),
        "result.json": lambda path: write_utf8(path, json.dumps(summary(found), indent=2, ensure_ascii=False) + "\n"),
    }
    skipped = skipped_files(found)
    if found.labels.ndim == 3:
        skipped |= dict.fromkeys(POLYGON_FILES, "a volume has no polygons")
    for name in chosen:
        path = folder / name
        if name in skipped:
            path.unlink(missing_ok=True)  # of another result
            if not found.interrupted:
                print_warning(f"{printable(path)} is left out: {skipped[name]}")
        else:
            writers[name](path)


def _place(found: "Segmentation") -> Georeference | None:
    """Where the image lies on a map; None where it did not come from a GeoTIFF."""
    return None if found.picture.reading is None else found.picture.reading.georeference


def write_utf8(path: Path, text: str) -> None:
    """Write text as UTF-8. File names may hold bytes that are no characters; they become question marks."""
    atomic_write(path, lambda file: file.write(text.encode(errors="replace")))


def check_inputs_kept(folder: str | os.PathLike[str], names: Sequence[str], inputs: Sequence[Any]) -> None:
    """Refuse a folder where saving files of these names would change an image, a mask or seeds that were read."""
    for file in inputs:
        if not isinstance(file, str) or not os.path.exists(file):
            continue
        inside = is_zarr(file) and Path(folder).resolve().is_relative_to(Path(file).resolve())
        paths = [os.path.join(folder, name) for name in names]
        if inside or any(os.path.exists(path) and os.path.samefile(path, file) for path in paths):
            line = f"saving in {printable(folder)} would change an input: {printable(file)}. Choose another folder."
            raise InvalidInput(line)


def skipped_files(found: "Segmentation") -> dict[str, str]:
    """The files that `save` cannot write, and why."""
    skipped = {}
    if int(found.labels[found._plane].max()) - found.start_label >= MAX_PNG_LABELS:
        why = f"a PNG holds {MAX_PNG_LABELS:,} labels at most, and there are {found.n_clusters:,}"
        skipped["labels.png"] = f"{why}; labels.tif has them all"
    if not found.chains.labels.size:
        skipped["boundary_probability.png"] = "there are no draws, and so no probabilities"
    return skipped


def summary(found: "Segmentation") -> dict[str, Any]:
    """Everything but the images, as result.json has it: dictionaries, lists, text and numbers."""
    counts, reading = np.bincount(found.chains.n_clusters.ravel()), found.picture.reading
    return {
        "source": found.source,
        "mask": found.mask,
        "read_as": None if reading is None else str(reading),
        "read_otherwise": None if reading is None else reading.otherwise,
        "georeference": None if (place := _place(found)) is None else place.to_json(),
        "channel_axis": found.channel_axis,
        "channel_kind": found.channel_kind,
        "intensity_range": None if found.intensity_range is None else list(map(float, found.intensity_range)),
        "outlines": found.outlines,
        "one_each": found.one_each,
        "seeds": found.seeds,
        "sha256": dict(found.sha256),
        "shape": list(found.labels.shape),
        "n_clusters": found.n_clusters,
        "n_regions": len(found.region_rows),
        "n_sites": found.model.graph.n_sites,
        "n_components": found.model.n_components,
        "log_posterior": found.chains.best_log_posterior,
        "sweeps_done": found.chains.n_sweeps,
        "n_clusters_posterior": {str(k): round(counts[k] / counts.sum(), 6) for k in np.flatnonzero(counts)},
        "interrupted": found.interrupted,
        "agreement": _rounded(found.agreement),
        "converged": found.converged,
        "regions_converged": found.diagnostics.partition_converged,
        "probabilities_converged": found.diagnostics.probabilities_converged,
        "taken_for": found.taken_for,
        "texture": found.texture,
        "calibrated": found.calibrated,
        "r_hat": _rounded(found.r_hat),
        "ess": _rounded(found.ess),
        "standard_error": _rounded(found.diagnostics.standard_error),
        "warning": found.warning,
        "verdict": found.verdict,
        "python": found.python_code,
        "seed": found.seed,
        "settings": found.preset.as_json() | found.schedule._asdict() | {"start_label": found.start_label},
        "left_out": skipped_files(found),
        "versions": {"python": platform.python_version(), "spinseg": VERSION, **library_versions()},
        "regions": found.region_rows,
        "boundaries": found.boundary_rows,
    }


@functools.cache  # each is looked for among all that is installed
def library_versions() -> dict[str, str]:
    """The versions of what results depend on."""
    return {name: version(name) for name in LIBRARIES}


def report_of(found: "Segmentation") -> str:
    """The report as HTML, with the labels at several details unless another detail would give the same ones."""
    plane, chosen, chains = found._plane, found.detail, found.chains
    details = {}
    if chosen is not None and chains.n_components > 1 and chains.labels.size and found.preset.estimate != "best":
        for detail in sorted([chosen, *(each for each in REPORT_DETAILS if abs(each - chosen) > 0.09)]):
            at_detail = found if detail == chosen else found.at(detail)
            details[detail] = at_detail.labels[plane], at_detail.n_clusters
    shown = Picture(found.picture.codes[plane]), found.labels[plane], found.boundary_probability[plane]
    light = found.light and found.light._replace(field=found.light.field[plane])
    return report(summary(found), *shown, chains, found.sites[plane], details, light)


def check_replaceable(folder: Path, names: Sequence[str], overwrite: bool, how: str = "overwrite=True") -> None:
    """Refuse a folder that is none, or holds files of these names, which nobody but `how` allows to replace."""
    if os.path.lexists(folder) and not folder.is_dir():
        invalid(printable(folder), "be a folder", "a file")
    for name in names:
        if (folder / name).is_dir():
            invalid(printable(folder / name), "be a file", "a folder")
    existing = [name for name in names if os.path.lexists(folder / name)]
    if existing and not overwrite:
        kept, them = ("is kept", "it") if len(existing) == 1 else ("are kept", "them")
        listed = ", ".join(existing[:MAX_LISTED]) + (", ..." if len(existing) > MAX_LISTED else "")
        message = f"{printable(folder)} holds {listed} already, which {kept}"
        raise FileExistsError(f"{message}; {how} replaces {them}")


def _rounded(number: float | None) -> float | str | None:
    """A number for JSON, which has no infinity."""
    return number if number is None else round(number, 4) if np.isfinite(number) else "infinite"


def to_geojson(found: "Segmentation") -> dict[str, Any]:
    """The regions as polygons in GeoJSON, with `region_rows` as properties.

    Polygons run along the sides of pixels. Those of a GeoTIFF have the coordinates of its map, and "crs" names their
    system. Otherwise x and y are columns and rows, from (0, 0), the upper left corner of the image, to (width, height).
    """
    if found.labels.ndim != 2:
        invalid("the segmentation", "be that of an image, not of a volume, for polygons", found.labels.shape)
    return geojson_of(found.region_rows, found._region_image, _place(found))


def geojson_of(rows: list[dict[str, Any]], regions: NDArray[np.integer], place: Georeference | None) -> dict[str, Any]:
    """Polygons of the regions of these rows, which have their places in the image `regions`, from 1 on."""
    features, polygons_of = [], region_polygons(regions)
    for number, row in enumerate(rows, start=1):
        polygons = polygons_of[number]
        parts: Any = [[[*ring, ring[0]] for ring in polygon] for polygon in polygons]
        if place is not None:
            order = -1 if place.turns_over else 1  # outer rings run counterclockwise on the map, too
            parts = [[[place.place(*corner) for corner in ring[::order]] for ring in polygon] for polygon in parts]
        geometry = {"type": "Polygon", "coordinates": parts[0]}
        if len(parts) > 1:
            geometry = {"type": "MultiPolygon", "coordinates": parts}
        features.append({"type": "Feature", "id": row["region"], "geometry": geometry, "properties": dict(row)})
    system = None if place is None else place.urn
    crs = {} if system is None else {"crs": {"type": "name", "properties": {"name": system}}}
    return {"type": "FeatureCollection", **crs, "features": features}


def to_svg(found: "Segmentation") -> str:
    """The outlines of the regions as SVG, a path for each, to lay over the image in a drawing program."""
    paths = []
    if found.labels.ndim != 2:
        invalid("the segmentation", "be that of an image, not of a volume, for polygons", found.labels.shape)
    polygons_of = region_polygons(found._region_image)
    for number, row in enumerate(found.region_rows, start=1):
        polygons = polygons_of[number]
        rings = [ring for polygon in polygons for ring in polygon]
        steps = "".join(f"M{' '.join(f'{x},{y}' for x, y in ring)}Z" for ring in rings)
        title = escape(f"region {row['region']}, {row['area']:,} pixels")
        paths.append(f'<path data-label="{row["label"]}" d="{steps}"><title>{title}</title></path>')
    height, width = found.labels.shape
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'fill="none" fill-rule="evenodd" stroke="{STROKE}" stroke-linejoin="round" '
        f'stroke-width="{max(1, round(max(height, width) / 500))}">\n' + "\n".join(paths) + "\n</svg>\n"
    )


def to_xarray(found: "Segmentation") -> Any:
    """Labels, sites, boundary probability, partition, edges with their separation, and draws, as a Dataset.

    It has coordinates y and x, and z in a volume, in pixels; needs xarray (extra [diagnostics]).
    """
    with needing('to_xarray needs xarray: pip install "spinseg[diagnostics]"'):
        import xarray as xr
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
