"""The figures of the report: outlines at each detail, graded boundaries, mean colors, and single draws."""

import base64
import io
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from spinseg._validation import counted
from spinseg.image.picture import Picture
from spinseg.image.render import OUTLINE_COLORS, graded_boundaries, mean_colors, outlined, outlines
from spinseg.sampler.chains import Chains
from spinseg.segmentation.presets.photo import details_of

MAX_SIDE = 1000  # pixels: larger pictures are reduced
THUMBNAIL_SIDE = 320  # pixels, of a single draw
MAX_PIXELATED_SIDE = 300  # pixels: in smaller pictures each is shown as a square
MAX_ASPECT_RATIO = 25  # a longer picture is shown distorted: a single row of pixels would not be seen
MAX_NUMBERS = 20  # numbers of regions on a picture: more would hide it
MIN_DEPTH_SHARE = 0.8  # of a region's largest distance from its outline, for the place of its number
# How pictures are encoded: those without colored lines may lose some color, which is not seen.
PLAIN, COLORED_LINES, SMALL = (
    {"quality": 88, "subsampling": 2},
    {"quality": 85, "subsampling": 0},
    {"quality": 78, "subsampling": 2},
)
LEGEND_GRAY = 128  # of the ground on which the legend shows boundaries
N_SHOWN = 10  # draws


class DetailView(NamedTuple):
    """The labels that the report shows at a detail, and the number of their regions."""

    detail: float
    labels: NDArray[np.int32]
    n_regions: int


class ReducedPicture(NamedTuple):
    """A picture no larger than the report shows it: one pixel for each square of `step`, faded outside the mask."""

    picture: Picture
    rgb: NDArray[np.uint8]
    step: int

    @classmethod
    def of(cls, picture: Picture, labels: NDArray[np.int32], max_side: int = MAX_SIDE) -> "ReducedPicture":
        """The picture of these labels, with its longer side at most about `max_side`."""
        step = -(-max(labels.shape) // max_side)
        reduced = Picture(downsample(picture.codes, step, np.mean).round().astype(np.uint16))
        rgb, outside = reduced.rgb.copy(), downsample_labels(labels, step) < 0
        rgb[outside] = rgb[outside] // 3 + 170
        return cls(reduced, rgb, step)

    def labels_of(self, labels: NDArray[np.int32]) -> NDArray[np.int32]:
        """Labels of the whole picture, from 0 on with -1 outside, at its reduced size."""
        return downsample_labels(labels, self.step)


def outline_figure(
    regions: list[dict[str, Any]],
    shown: ReducedPicture,
    labels: NDArray[np.int32],
    start_label: int,
    details: Sequence[DetailView],
    chosen: float,
) -> str:
    """The outlines over the picture as HTML, with a row of details, if there are any, of which one is shown at a time.

    The numbers of the regions, which the table explains, belong to the chosen detail and stand over it alone. There
    the label of cluster 0 is `start_label`.
    """
    numbers = _numbers(regions, shown.labels_of(labels) + start_label, shown.step)
    numbered = ", with the numbers of the table below" + (" (the largest)" if len(regions) > MAX_NUMBERS else "")
    if not details:
        caption = "Outlines of the clusters" + (numbered if numbers else "")
        layer = _layer(caption, labels, shown, "layer only", numbers)
        switch = OUTLINES_SWITCH.format(caption=f'<p class="caption only">{escape(caption)}.</p>')
        return f'<div class="stage">{switch}{_frame(shown.rgb, "The picture", layer)}</div>'
    stops, layers, captions = [], [], []
    for i, view in enumerate(details):
        is_chosen = view.detail == chosen
        css = f"d{i} chosen" if is_chosen else f"d{i}"
        count = counted(view.n_regions, "region")
        stops.append(_stop(i, view.detail, count, is_chosen))
        alt = f"Outlines of {count} at detail {view.detail:g}"
        layers.append(_layer(alt, view.labels, shown, f"layer {css}", numbers if is_chosen else ""))
        words = f"{alt}{numbered if is_chosen and numbers else ''}."
        if not is_chosen:
            words += f" All else in this report is of detail {chosen:g}."
        captions.append(f'<p class="caption {css}">{escape(words)}</p>')
    switch = OUTLINES_SWITCH.format(caption="".join(captions))
    return (
        f'<fieldset class="stage" style="--n:{len(details)}"><legend>Detail, from coarse to fine</legend>'
        f"{''.join(stops)}{switch}{_frame(shown.rgb, 'The picture', ''.join(layers))}</fieldset>"
    )


OUTLINES_SWITCH = (
    '<input type="checkbox" id="outlines" checked><label for="outlines">Outlines</label>'
    '<div class="captions">{caption}</div>'
)


def _stop(i: int, detail: float, count: str, is_chosen: bool) -> str:
    """A position of the row of details: a radio button, and its label with the number of regions."""
    number, _, noun = count.partition(" ")
    words = f'<b>{detail:g}</b> <span>{number}<span class="noun"> {noun}</span></span>'
    if is_chosen:
        words += ' <span class="mark">chosen</span>'
    return (
        f'<input type="radio" name="detail" id="d{i}" style="--i:{i + 1}"{" checked" if is_chosen else ""}>'
        f'<label for="d{i}" style="--i:{i + 1}">{words}</label>'
    )


def _layer(alt: str, labels: NDArray[np.int32], shown: ReducedPicture, css: str, over: str) -> str:
    """Outlines as a transparent picture, with the HTML `over` them."""
    sides = outlines(shown.labels_of(labels))
    return f'<div class="{css}"><img alt="{escape(alt)}" src="{_outline_url(sides)}">{over}</div>'


def probability_figure(shown: ReducedPicture, boundary_probability: NDArray[np.float32], every_detail: bool) -> str:
    """The graded boundaries as HTML, with a legend."""
    probability = downsample(boundary_probability, shown.step, np.max)  # the maximum keeps thin lines
    samples = "".join(
        f'<span class="sample"><span style="background:{_legend_color(percent / 100)}"></span></span> {percent}% '
        for percent in (5, 50, 95)
    )
    draws = "draws of every detail" if every_detail else "draws"
    caption = "<strong>How probable each boundary is.</strong> The brighter a line, the more of the " + draws
    caption = f'{caption} have a boundary there: <span class="legend">{samples}</span>'
    return _figure("How probable each boundary is", graded_boundaries(shown.rgb, probability), caption, COLORED_LINES)


def means_figure(shown: ReducedPicture, labels: NDArray[np.int32], unit: str) -> str:
    """The clusters in their mean colors, as HTML; `unit` is what they are called."""
    colors = mean_colors(shown.picture, shown.labels_of(labels), start_label=0)
    caption = f"{unit.capitalize()}s in their mean colors"
    return _figure(caption, colors, f"{caption}.", jpeg=None)


class Draw(NamedTuple):
    """One draw: its chain, its detail (None where draws have none), its number of clusters, and its labels."""

    chain: int
    detail: float | None
    n_clusters: int
    labels: NDArray[np.int32]


def spread_draws(chains: Chains, n: int = N_SHOWN) -> list[Draw]:
    """Up to `n` draws, from coarse to fine, spread over levels of detail, chains and sweeps."""
    details, n_details = details_of(chains.n_components), chains.n_components
    component = [(2 * i + 1) * n_details // (2 * n) for i in range(n)]  # of each draw, in equal shares
    places: dict[tuple[int, int], int] = {}
    for i, d in enumerate(component):
        of_detail = np.flatnonzero(chains.component == d)
        if of_detail.size:
            order = component[:i].count(d)  # among the draws of the same detail
            draw = of_detail[(2 * order + 1) * of_detail.size // (2 * component.count(d))]
            places.setdefault((i % chains.n_chains, int(draw)), d)
    return [
        Draw(chain, details[d] if n_details > 1 else None, int(labels.max()) + 1, labels)
        for (chain, draw), d in places.items()
        for labels in [chains.labels[chain, draw]]
    ]


def answer_figures(found: Sequence[Draw], picture: Picture, sites: NDArray[np.int32], unit: str) -> str:
    """Single draws side by side, as HTML; `unit` is what their clusters are called."""
    shown = ReducedPicture.of(picture, sites, THUMBNAIL_SIDE)
    figures = []
    for answer in found:
        words = answer_words(answer, unit)
        figures.append(_figure(words, answer_picture(answer, shown, sites), escape(words), SMALL))
    return "\n".join(figures)


def answer_words(answer: Draw, unit: str) -> str:
    """The detail of a draw, its number of clusters, and its chain."""
    count = f"{counted(answer.n_clusters, unit)}, chain {answer.chain + 1}"
    return count if answer.detail is None else f"Detail {answer.detail:.2f}: {count}"


def answer_picture(answer: Draw, shown: ReducedPicture, sites: NDArray[np.int32]) -> NDArray[np.uint8]:
    """The outlines of one draw over the picture, (rows, columns, 3)."""
    labels = np.append(answer.labels, np.int32(-1))[sites]
    return outlined(shown.rgb, shown.labels_of(labels))


def _legend_color(probability: float) -> str:
    """The color of a boundary of this probability over a gray picture."""
    ground = np.full((1, 1, 3), LEGEND_GRAY, np.uint8)
    return "#{:02x}{:02x}{:02x}".format(*graded_boundaries(ground, np.full((1, 1), probability))[0, 0])


def central_pixel(inside: NDArray[np.bool_]) -> tuple[int, int]:
    """The row and column of a pixel of a region: the nearest to its middle of those far from its outline."""
    depth = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]  # the frame of the picture is an outline, too
    deep = np.argwhere(depth >= MIN_DEPTH_SHARE * depth.max())
    middle = np.argwhere(inside).mean(axis=0)
    row, column = deep[np.square(deep - middle).sum(axis=1).argmin()]
    return int(row), int(column)


def one_region_each(regions: list[dict[str, Any]]) -> bool:
    """Whether every label is one region."""
    return len({region["label"] for region in regions}) == len(regions)


def _numbers(regions: list[dict[str, Any]], labels: NDArray[np.int32], step: int) -> str:
    """The numbers of the largest regions as HTML, each placed over its region."""
    if regions and len(regions[0]["bbox"]) > 4 and not one_region_each(regions):
        return ""  # in a plane of a volume, the pieces of a cluster cannot be matched with its regions
    numbers = []
    for region in regions[:MAX_NUMBERS]:
        box = _box(region, step)
        inside = _piece(labels[box] == region["label"], region["area"] / step**2)
        if inside.any():
            row, column = central_pixel(inside)
            top = (box[0].start + row + 0.5) / labels.shape[0]
            left = (box[1].start + column + 0.5) / labels.shape[1]
            numbers.append(f'<b style="left:{left:.2%};top:{top:.2%}">{region["region"]}</b>')
    return "".join(numbers)


def _box(region: dict[str, Any], step: int) -> tuple[slice, slice]:
    """The rows and columns of the reduced picture that hold a region."""
    ends = region["bbox"]
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


def downsample_labels(labels: NDArray[np.int32], step: int) -> NDArray[np.int32]:
    """The label in the middle of each square, or if that is outside the mask, another one of the square."""
    middle = downsample(labels, step, lambda squares, axis: squares[:, squares.shape[1] // 2, :, squares.shape[3] // 2])
    return np.where(middle < 0, downsample(labels, step, np.max), middle) if middle.min() < 0 else middle


def downsample(values: NDArray[Any], step: int, summary: Callable[..., NDArray[Any]]) -> NDArray[Any]:
    """One value for each square of `step` pixels; in a picture that is narrower, for each smaller rectangle."""
    rows, columns = (max(length // step, 1) for length in values.shape[:2])
    kept = values[: rows * step, : columns * step]
    squares = kept.reshape(rows, kept.shape[0] // rows, columns, kept.shape[1] // columns, *values.shape[2:])
    return summary(squares, axis=(1, 3)) if step > 1 else values


def _frame(pixels: NDArray[np.uint8], alt: str, over: str = "", jpeg: dict[str, int] | None = PLAIN) -> str:
    """A picture as HTML, no higher than the window, with the HTML `over` it; a PNG where `jpeg` is None."""
    height, width = pixels.shape[:2]
    ratio = min(max(width / height, 1 / MAX_ASPECT_RATIO), MAX_ASPECT_RATIO)
    coarse = max(height, width) <= MAX_PIXELATED_SIDE and jpeg is not SMALL
    url = data_url(pixels, "PNG") if coarse or jpeg is None else data_url(pixels, "JPEG", **jpeg)
    return (
        f'<div class="frame{" coarse" if coarse else ""}" style="--ratio:{ratio:.4f}">'
        f'<img alt="{escape(alt)}" src="{url}">{over}</div>'
    )


def _figure(alt: str, pixels: NDArray[np.uint8], caption: str, jpeg: dict[str, int] | None) -> str:
    """A picture as HTML with its caption, which is HTML."""
    return f"<figure>{_frame(pixels, alt, jpeg=jpeg)}<figcaption>{caption}</figcaption></figure>"


def data_url(pixels: NDArray[np.uint8], kind: str, quality: int = 92, subsampling: int = 0) -> str:
    """A picture as a data URL; without subsampling, thin lines keep their color."""
    from PIL import Image

    options = {"quality": quality, "subsampling": subsampling} if kind == "JPEG" else {}
    return _encoded(Image.fromarray(pixels), kind, **options)


def _outline_url(sides: NDArray[np.uint8]) -> str:
    """Outlines as the data URL of a PNG with a palette, which is transparent elsewhere."""
    from PIL import Image

    image = Image.fromarray(sides)
    image.putpalette([channel for color in OUTLINE_COLORS for channel in color[:3]])
    return _encoded(image, "PNG", transparency=bytes(color[3] for color in OUTLINE_COLORS), bits=2, optimize=True)


def _encoded(image: Any, kind: str, **options: Any) -> str:
    """A picture of Pillow as a data URL."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
