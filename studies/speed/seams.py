"""A mosaic of photographs in tiles, beside the same photographs and parts of the mosaic segmented singly.

SPINSEG_MOSAIC is the number of photographs along each side of the mosaic, and SPINSEG_MOSAIC_SPLIT their split of
BSDS300, by default train. Log every look at test in docs/evidence/notebook.md.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial, reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spinseg as ss
from spinseg.graph.adjacency import edge_index, region_adjacency
from spinseg.partition.numbering import in_order
from spinseg.partition.pairs import separation_probability
from spinseg.segmentation.large.files import Box, open_labels
from spinseg.segmentation.large.segment_large import segment_large
from spinseg.segmentation.large.tiles import MARGIN, WINDOW, Tiling
from studies.evaluation.calibration import Reliability, annotated_separation
from studies.evaluation.datasets import Example, bsds, data_root
from studies.evaluation.metrics import adjusted_rand_index, rand_index, scores

N_SIDE, SPLIT = int(os.environ.get("SPINSEG_MOSAIC", "5")), os.environ.get("SPINSEG_MOSAIC_SPLIT", "train")
SHAPE = (321, 481)  # of the photographs
METRICS = ("probabilistic_rand_index", "variation_of_information", "segmentation_covering")
BORDER = 6  # pixels at the border of a photograph: in the mosaic there is a boundary that no annotator was shown
N_PARTS = 20  # parts of the mosaic inside tiles, and as many across seams

Labels = NDArray[np.integer]


def photographs() -> list[Example]:
    """Return photographs of BSDS300 of one shape, evenly spaced by name."""
    wide = [each for each in bsds(data_root() / "bsds300", SPLIT) if each.image().shape[:2] == SHAPE]
    return [wide[i] for i in np.linspace(0, len(wide) - 1, N_SIDE**2).round().astype(int)]


def evenly(boxes: list[Box]) -> list[Box]:
    """Return at most N_PARTS of many boxes, evenly spread."""
    return [boxes[i] for i in np.linspace(0, len(boxes) - 1, min(len(boxes), N_PARTS)).round().astype(int)]


def parts(tiling: Tiling) -> dict[str, list[Box]]:
    """Return boxes of the size of windows: those of tiles, and those in the middle of which four tiles meet."""
    inner = [tile.window for tile in tiling.tiles() if _lies_within(tile.core, tiling.shape)]
    corners = product(*(range(tiling.side, length - WINDOW // 2, tiling.side) for length in tiling.shape))
    across = [tuple(slice(at - WINDOW // 2, at + WINDOW // 2) for at in corner) for corner in corners]
    return {"inside tiles": evenly(inner), "across seams": evenly(across)}  # type: ignore[arg-type]


def _lies_within(core: Box, shape: tuple[int, int]) -> bool:
    return all(span.start >= MARGIN and span.stop + MARGIN <= length for span, length in zip(core, shape, strict=True))


def reliability(
    sites: Labels, separation: Callable[[Any], NDArray[np.float64]], annotations: list[Any], border: int
) -> Reliability:
    """Return how well probabilities of edges match annotators' shares; `border` pixels around sites do not count.

    `separation` gives the probabilities of edges of `sites`.
    """
    inner = tuple(slice(border, length - border) for length in sites.shape)
    numbers, flat = np.unique(sites[inner], return_inverse=True)
    local = np.asarray(flat, np.int32).reshape(sites[inner].shape)
    graph = region_adjacency(local)
    shares = annotated_separation(local, graph.edges, [each[inner] for each in annotations])
    return Reliability.of(separation(numbers[graph.edges]), shares, graph.length)


def total(rows: list[Reliability]) -> str:
    """Return Brier score, log loss and calibration error of all rows together."""
    found = reduce(Reliability.plus, rows)
    return f"{found.brier:.4f}, {found.log_loss:.4f}, {found.calibration_error:.4f}"


def compared(image: NDArray[np.uint8], labels: Labels) -> tuple[float, ...]:
    """Return how labels in the middle of a part agree with `segment` on it, and `segment` with another random seed.

    Both as adjusted Rand index and as Rand index.
    """
    middle = (slice(MARGIN, -MARGIN),) * 2
    first, second = (ss.segment(image, "photo", rng=seed).labels[middle] for seed in (1, 2))
    pairs = ((labels[middle], first), (second, first))
    return tuple(index(in_order(a), in_order(b)) for a, b in pairs for index in (adjusted_rand_index, rand_index))


def moved(mosaic: NDArray[np.uint8], across: Box) -> float:
    """Return the adjusted Rand index of `segment` on a part across seams and on the window of one of its tiles.

    It is that of the quarter of the part that lies in the core of this tile: no tiles are joined.
    """
    shift, half = WINDOW // 2 - MARGIN, WINDOW // 2
    before = [span.start >= shift for span in across]  # whether the tile is the one above, or on the left
    starts = [span.start + (-shift if b else shift) for span, b in zip(across, before, strict=True)]
    window = tuple(slice(start, start + WINDOW) for start in starts)
    quarter = tuple(slice(MARGIN, half) if b else slice(half, WINDOW - MARGIN) for b in before)
    same = tuple(slice(half, WINDOW - MARGIN) if b else slice(MARGIN, half) for b in before)
    first, second = (ss.segment(mosaic[box], "photo", rng=1).labels for box in (across, window))
    return adjusted_rand_index(in_order(first[quarter]), in_order(second[same]))


def study() -> dict[str, object]:
    """Return the quality of probabilities and labels in the mosaic and singly, and the agreement inside and across."""
    import dask.array

    examples = photographs()
    images = np.stack([example.image() for example in examples]).reshape(N_SIDE, N_SIDE, *SHAPE, 3)
    mosaic = np.concatenate(np.concatenate(images, axis=1), axis=1)
    with tempfile.TemporaryDirectory() as folder:
        source = dask.array.from_array(mosaic, chunks=(512, 512, 3))
        found = segment_large(source, Path(folder, "out"), "photo", rng=0)
        labels = found.labels.compute()
        sites = found.joined.sites(open_labels(found.folder / "sites.zarr").compute())
    rows: dict[str, list[Reliability]] = {}
    quality, agreement = [], []
    for i, example in enumerate(examples):
        row, column = divmod(i, N_SIDE)
        box = (slice(row * SHAPE[0], (row + 1) * SHAPE[0]), slice(column * SHAPE[1], (column + 1) * SHAPE[1]))
        annotations, seg = example.annotations(), ss.segment(mosaic[box], "photo", rng=0)
        views: dict[str, tuple[Labels, Callable[[Any], NDArray[np.float64]]]] = {
            "mosaic": (sites[box], lambda pairs: found.separation[edge_index(found.graph.edges, *pairs.T)]),
            "singly": (seg.sites, partial(separation_probability, seg.chains.labels)),
        }
        for (name, (numbered, separation)), border in product(views.items(), (0, BORDER)):
            found_here = reliability(numbered, separation, annotations, border)
            rows.setdefault(f"{name}, without {border} pixels at borders", []).append(found_here)
        here = in_order(labels[box])
        quality.append([scores(each, annotations) for each in (here, seg.labels)])
        agreement.append(adjusted_rand_index(here, seg.labels))
    figures: dict[str, object] = {"tiles, regions": f"{found.joined.first.size}, {found.n_regions}"}
    figures |= {f"Brier score, log loss, calibration error: {name}": total(each) for name, each in rows.items()}
    for k, name in enumerate(("mosaic", "singly")):
        means = [np.mean([getattr(row[k], index) for row in quality]) for index in METRICS]
        figures[f"PRI, VoI, covering: {name}"] = ", ".join(f"{mean:.3f}" for mean in means)
    figures["adjusted Rand index, mosaic and singly"] = f"{np.mean(agreement):.3f}, median {np.median(agreement):.3f}"
    for where, boxes in parts(Tiling.of(mosaic.shape[:2], ss.Photo())).items():
        table = np.array([compared(mosaic[box], labels[box]) for box in boxes])
        for k, what in enumerate(("with `segment`", "of `segment`, two seeds")):
            ari, rand = table[:, 2 * k], table[:, 2 * k + 1]
            figures[f"{where}, agreement {what}: ARI (median), Rand"] = (
                f"{ari.mean():.3f} ({np.median(ari):.3f}), {rand.mean():.3f}"
            )
    windows = [moved(mosaic, box) for box in parts(Tiling.of(mosaic.shape[:2], ss.Photo()))["across seams"]]
    figures["`segment` on two windows half a side apart: ARI (median)"] = (
        f"{np.mean(windows):.3f} ({np.median(windows):.3f})"
    )
    return figures | {"verdict": found.verdict}
