"""The figures of the report: the picture, its boundaries with numbers of regions, clusters and probabilities."""

import base64
import io
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from spinseg.image.picture import Picture
from spinseg.image.render import mean_colors, overlay, probability_picture

MAX_SIDE = 1000  # pixels: larger pictures are reduced
MAX_PIXELATED_SIDE = 300  # pixels: in smaller pictures each is shown as a square
MAX_ASPECT_RATIO = 25  # a longer picture is shown distorted: a single row of pixels would not be seen
MAX_NUMBERS = 20  # numbers of regions on a picture: more would hide it
MIN_DEPTH_SHARE = 0.8  # of a region's largest distance from its outline, for the place of its number


def pictures(
    regions: list[dict[str, Any]],
    picture: Picture,
    labels: NDArray[np.int32],
    boundary_probability: NDArray[np.float32] | None,
) -> str:
    """The figures of the report as HTML; there is none of the probabilities where they are None."""
    step = -(-max(labels.shape) // MAX_SIDE)
    picture = Picture(_downsample(picture.codes, step, np.mean).round().astype(np.uint16))
    labels = _downsample_labels(labels, step)
    numbers = _numbers(regions, labels, step)
    outlines = "Boundaries of the clusters"
    if numbers:
        outlines += ", and numbers of the regions" + (" (the largest)" if len(regions) > MAX_NUMBERS else "")
    figures = [
        _figure("The picture", picture.rgb, "JPEG"),
        _figure(outlines, overlay(picture, labels), "JPEG", numbers),
        _figure("Clusters in their mean colors", mean_colors(picture, labels), "PNG"),
    ]
    if boundary_probability is not None:
        likely = probability_picture(_downsample(boundary_probability, step, np.max))  # the maximum keeps thin lines
        figures.append(_figure("Probability of a boundary, from black (0) to pale yellow (1)", likely, "PNG"))
    return "\n".join(figures)


def central_pixel(inside: NDArray[np.bool_]) -> tuple[int, int]:
    """The row and column of a pixel of a region: the nearest to its middle of those far from its outline."""
    depth = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]  # the frame of the picture is an outline, too
    deep = np.argwhere(depth >= MIN_DEPTH_SHARE * depth.max())
    middle = np.argwhere(inside).mean(axis=0)
    row, column = deep[np.square(deep - middle).sum(axis=1).argmin()]
    return int(row), int(column)


def one_region_each(regions: list[dict[str, Any]]) -> bool:
    """Whether every cluster is one region."""
    return len({region["cluster"] for region in regions}) == len(regions)


def _numbers(regions: list[dict[str, Any]], labels: NDArray[np.int32], step: int) -> str:
    """The numbers of the largest regions as HTML, each placed over its region."""
    if regions and len(regions[0]["box"]) > 4 and not one_region_each(regions):
        return ""  # in a plane of a volume, the pieces of a cluster cannot be matched with its regions
    numbers = []
    for region in regions[:MAX_NUMBERS]:
        box = _box(region, step)
        inside = _piece(labels[box] == region["cluster"], region["area"] / step**2)
        if inside.any():
            row, column = central_pixel(inside)
            top = (box[0].start + row + 0.5) / labels.shape[0]
            left = (box[1].start + column + 0.5) / labels.shape[1]
            numbers.append(f'<b style="left:{left:.2%};top:{top:.2%}">{region["region"]}</b>')
    return "".join(numbers)


def _box(region: dict[str, Any], step: int) -> tuple[slice, slice]:
    """The rows and columns of the reduced picture that hold a region."""
    ends = region["box"]
    first, last = ends[len(ends) // 2 - 2 : len(ends) // 2], ends[-2:]
    rows, columns = (slice(a // step, max(-(-b // step), a // step + 1)) for a, b in zip(first, last, strict=True))
    return rows, columns


def _piece(inside: NDArray[np.bool_], area: float) -> NDArray[np.bool_]:
    """The connected piece of nearest area: the box may hold other regions of the same cluster."""
    pieces, n_pieces = ndimage.label(inside)
    if n_pieces < 2:
        return inside
    areas = np.bincount(pieces.ravel())[1:]
    return pieces == np.abs(areas - area).argmin() + 1


def _downsample_labels(labels: NDArray[np.int32], step: int) -> NDArray[np.int32]:
    """The label in the middle of each square, or if that is outside the mask, another one of the square."""
    middle = _downsample(
        labels, step, lambda squares, axis: squares[:, squares.shape[1] // 2, :, squares.shape[3] // 2]
    )
    return np.where(middle < 0, _downsample(labels, step, np.max), middle) if middle.min() < 0 else middle


def _downsample(values: NDArray[Any], step: int, summary: Callable[..., NDArray[Any]]) -> NDArray[Any]:
    """One value for each square of `step` pixels; in a picture that is narrower, for each smaller rectangle."""
    rows, columns = (max(length // step, 1) for length in values.shape[:2])
    kept = values[: rows * step, : columns * step]
    squares = kept.reshape(rows, kept.shape[0] // rows, columns, kept.shape[1] // columns, *values.shape[2:])
    return summary(squares, axis=(1, 3)) if step > 1 else values


def _figure(caption: str, pixels: NDArray[np.uint8], kind: str, over: str = "") -> str:
    """A picture as HTML, no higher than the window, with its caption and with the HTML `over` it."""
    height, width = pixels.shape[:2]
    ratio = min(max(width / height, 1 / MAX_ASPECT_RATIO), MAX_ASPECT_RATIO)
    coarse = max(height, width) <= MAX_PIXELATED_SIDE
    return (
        f'<figure><div class="frame{" coarse" if coarse else ""}" '
        f'style="aspect-ratio:{ratio:.4f};width:min(100%,{85 * ratio:.2f}vh)">'
        f'<img alt="{escape(caption)}" src="{data_url(pixels, "PNG" if coarse else kind)}">{over}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def data_url(pixels: NDArray[np.uint8], kind: str, quality: int = 92) -> str:
    """A picture as a data URL."""
    from PIL import Image

    buffer = io.BytesIO()
    options = {"quality": quality, "subsampling": 0} if kind == "JPEG" else {}  # so that thin lines keep their color
    Image.fromarray(pixels).save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
