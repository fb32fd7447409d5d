"""The pictures of the report, with the numbers of the regions over one of them."""

import base64
import io
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from spinseg.image.picture import Picture
from spinseg.image.render import mean_colours, overlay, probability_picture

WIDEST = 1000  # pixels of a picture in the report
COARSE = 300  # pixels of a picture that is small enough to show each as a square
LONGEST = 25  # times as long as wide that a picture is shown at most: a single row of pixels would not be seen
MOST_NUMBERS = 20  # of regions on a picture: more would hide it
DEEP = 0.8  # of the largest distance from the outline that there is in a region


def pictures(
    regions: list[dict[str, Any]],
    picture: Picture,
    labels: NDArray[np.int32],
    boundary_probability: NDArray[np.float32] | None,
) -> str:
    """The picture and what was found in it, side by side; probabilities are left out where they are None."""
    step = -(-max(labels.shape) // WIDEST)
    picture = Picture(_reduced(picture.codes, step, np.mean).round().astype(np.uint16))
    labels = _reduced_labels(labels, step)
    numbers = _numbers(regions, labels, step)
    outlines = "Boundaries of the clusters"
    if numbers:
        outlines += ", and numbers of the regions" + (" (the largest)" if len(regions) > MOST_NUMBERS else "")
    figures = [
        _figure("The picture", picture.rgb, "JPEG"),
        _figure(outlines, overlay(picture, labels), "JPEG", numbers),
        _figure("Clusters in their mean colours", mean_colours(picture, labels), "PNG"),
    ]
    if boundary_probability is not None:
        likely = probability_picture(_reduced(boundary_probability, step, np.max))  # thin lines stay
        figures.append(_figure("Probability of a boundary, from black (0) to pale yellow (1)", likely, "PNG"))
    return "\n".join(figures)


def place_inside(inside: NDArray[np.bool_]) -> tuple[int, int]:
    """The row and column of a pixel well inside: near the middle, among those far from what is not inside."""
    depth = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]  # beyond the picture is not inside
    deep = np.argwhere(depth >= DEEP * depth.max())
    middle = np.argwhere(inside).mean(axis=0)
    row, column = deep[np.square(deep - middle).sum(axis=1).argmin()]
    return int(row), int(column)


def one_region_each(regions: list[dict[str, Any]]) -> bool:
    """Whether every cluster is one region, so that the number of the one says all about the other."""
    return len({region["cluster"] for region in regions}) == len(regions)


def _numbers(regions: list[dict[str, Any]], labels: NDArray[np.int32], step: int) -> str:
    """The numbers of the largest regions, each to be written over its region."""
    if regions and len(regions[0]["box"]) > 4 and not one_region_each(regions):
        return ""  # of a plane of a volume: which piece of a cluster is which region cannot be told
    written = []
    for region in regions[:MOST_NUMBERS]:
        box = _box(region, step)
        inside = _piece(labels[box] == region["cluster"], region["area"] / step**2)
        if inside.any():
            row, column = place_inside(inside)
            down = (box[0].start + row + 0.5) / labels.shape[0]
            across = (box[1].start + column + 0.5) / labels.shape[1]
            written.append(f'<b style="left:{across:.2%};top:{down:.2%}">{region["region"]}</b>')
    return "".join(written)


def _box(region: dict[str, Any], step: int) -> tuple[slice, slice]:
    """Rows and columns of the reduced picture that a region lies in."""
    ends = region["box"]
    first, last = ends[len(ends) // 2 - 2 : len(ends) // 2], ends[-2:]
    rows, columns = (slice(a // step, max(-(-b // step), a // step + 1)) for a, b in zip(first, last, strict=True))
    return rows, columns


def _piece(inside: NDArray[np.bool_], area: float) -> NDArray[np.bool_]:
    """Of the connected pieces the one whose area is the nearest: other regions of the cluster may share the box."""
    pieces, n_pieces = ndimage.label(inside)
    if n_pieces < 2:
        return inside
    areas = np.bincount(pieces.ravel())[1:]
    return pieces == np.abs(areas - area).argmin() + 1


def _reduced_labels(labels: NDArray[np.int32], step: int) -> NDArray[np.int32]:
    """The label in the middle of each square; where that is outside, one of those inside, so that few are seen too."""
    middle = _reduced(labels, step, lambda squares, axis: squares[:, squares.shape[1] // 2, :, squares.shape[3] // 2])
    return np.where(middle < 0, _reduced(labels, step, np.max), middle) if middle.min() < 0 else middle


def _reduced(values: NDArray[Any], step: int, summary: Callable[..., NDArray[Any]]) -> NDArray[Any]:
    """One value for each square of `step` pixels that fits; one that is smaller, where none does."""
    rows, columns = (max(length // step, 1) for length in values.shape[:2])
    kept = values[: rows * step, : columns * step]
    squares = kept.reshape(rows, kept.shape[0] // rows, columns, kept.shape[1] // columns, *values.shape[2:])
    return summary(squares, axis=(1, 3)) if step > 1 else values


def _figure(caption: str, pixels: NDArray[np.uint8], kind: str, over: str = "") -> str:
    """A picture with its caption, and what is written over it; no higher than the window."""
    height, width = pixels.shape[:2]
    ratio = min(max(width / height, 1 / LONGEST), LONGEST)
    coarse = max(height, width) <= COARSE
    return (
        f'<figure><div class="frame{" coarse" if coarse else ""}" '
        f'style="aspect-ratio:{ratio:.4f};width:min(100%,{85 * ratio:.2f}vh)">'
        f'<img alt="{escape(caption)}" src="{embedded(pixels, "PNG" if coarse else kind)}">{over}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def embedded(pixels: NDArray[np.uint8], kind: str, quality: int = 92) -> str:
    """A picture as a data address."""
    from PIL import Image

    buffer = io.BytesIO()
    options = {"quality": quality, "subsampling": 0} if kind == "JPEG" else {}  # thin lines keep their colour
    Image.fromarray(pixels).save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
