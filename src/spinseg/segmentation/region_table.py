"""The table of regions of `Segmentation` and `LargeSegmentation`."""

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinseg.graph.merging import touching_regions
from spinseg.graph.site_graph import SiteGraph
from spinseg.partition.pairs import cohesion
from spinseg.sampler.convergence import standard_errors

if TYPE_CHECKING:
    from pandas import DataFrame

    from spinseg.segmentation.large.result import LargeSegmentation
    from spinseg.segmentation.result import Segmentation

MAX_DRAWS = 500  # about as many draws of each chain give the probabilities of regions


def region_table(
    found: "Segmentation | LargeSegmentation",
    regions: NDArray[np.int32],
    areas: NDArray[np.int64],
    centroids: NDArray[np.float64],
    boxes: NDArray[np.int64],
    colors: NDArray[np.float64] | None,
) -> list[dict[str, Any]]:
    """A row for each region, largest first, as `Segmentation.region_rows` describes them.

    `regions` is the region of each site; the others have a row for each region, and `colors` run from 0 to 255.
    """
    graph, start_label, n_pixels = found.graph, found.start_label, areas.sum()
    chains = getattr(found, "chains", None)  # no tile of a large image has draws of a whole region
    has_draws = np.isfinite(found.separation).all()
    cohesions = np.full(areas.size, np.nan)
    if chains is not None and has_draws:
        cohesions = cohesion(chains.thinned(MAX_DRAWS).labels, regions)
        cohesions[np.bincount(regions) == 1] = np.nan  # one site holds together in every draw, whatever is in it
    ends = regions[graph.edges]
    across = ends[:, 0] != ends[:, 1]
    by_length = (graph.length[across], (graph.length * found.separation)[across])
    lengths, apart = (sum(np.bincount(ends[across, side], w, areas.size) for side in (0, 1)) for w in by_length)
    outlines = np.where(lengths > 0, apart / np.maximum(lengths, 1e-300), np.nan)
    clusters = found.partition[np.unique(regions, return_index=True)[1]]
    rgb = None if colors is None else np.rint(colors).astype(int)
    kinds = getattr(found, "kinds", None)  # large segmentations have none
    marked = getattr(found, "_is_marked", None)
    return [
        {
            "region": start_label + i,
            "label": start_label + int(clusters[r]),
            "area": int(areas[r]),
            "share": round(float(areas[r] / n_pixels), 6),
            "centroid": np.round(centroids[r], 2).tolist(),
            "bbox": boxes[r].tolist(),
            "color": None if rgb is None else "#{:02x}{:02x}{:02x}".format(*rgb[r]),
            "probability": round(float(cohesions[r]), 6) if np.isfinite(cohesions[r]) else None,
            "boundary": round(float(outlines[r]), 6) if has_draws and np.isfinite(outlines[r]) else None,
        }
        | ({} if kinds is None else {"kind": int(kinds[clusters[r]])})
        | ({} if marked is None else {"marked": bool(marked[r])})
        for i, r in enumerate(np.argsort(-areas, kind="stable"))
    ]


def boundary_table(
    graph: SiteGraph, of_chains: NDArray[np.floating], regions: NDArray[np.int32], start_label: int
) -> list[dict[str, Any]]:
    """A row for each pair of touching regions; `of_chains` is as `separation_of_chains` gives it."""
    pairs, across, pair = touching_regions(regions, graph.edges)
    lengths = np.bincount(pair, graph.length[across], len(pairs))
    weighted = (graph.length * of_chains)[..., across]
    sums = np.apply_along_axis(lambda each: np.bincount(pair, each, len(pairs)), -1, weighted)
    along = sums / lengths
    return [
        {
            "region": start_label + int(a),
            "neighbor": start_label + int(b),
            "length": int(length),
            "probability": round(float(probability), 6) if np.isfinite(probability) else None,
            "standard_error": round(float(error), 6) if np.isfinite(error) else None,
        }
        for (a, b), length, probability, error in zip(
            pairs, lengths, along.mean(axis=(0, 1)), standard_errors(along, of_chains), strict=True
        )
    ]


def as_table(rows: list[dict[str, Any]]) -> "DataFrame | list[dict[str, Any]]":
    """Rows as a pandas DataFrame, with a column for each number of a list; as they are where there is no pandas."""
    try:
        from pandas import DataFrame
    except ImportError:
        return rows
    return DataFrame([_flat(row) for row in rows])


def as_csv(rows: list[dict[str, Any]], image: str) -> str:
    """Rows as comma-separated values under their names, after the name of the image."""
    flat = [{"image": image} | _flat(row) for row in rows]
    text = StringIO()
    writer = csv.DictWriter(text, list(flat[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with an entry for each number of a list, named as by `skimage.measure.regionprops_table`."""
    entries: dict[str, Any] = {}
    for name, value in row.items():
        numbered = {f"{name}-{i}": number for i, number in enumerate(value)} if isinstance(value, list) else {}
        entries |= numbered or {name: value}
    return entries
