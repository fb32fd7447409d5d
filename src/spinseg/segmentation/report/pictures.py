"""The figures of the report: outlines at each detail, graded boundaries, mean colors, and single draws."""

import base64
import io
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from spinseg._validation import counted
from spinseg.image.light import Light
from spinseg.image.picture import Picture
from spinseg.image.render import (
    OUTLINE_COLORS,
    brightened,
    faded,
    graded_boundaries,
    label_colors,
    mean_colors,
    outlined,
    outlines,
)
from spinseg.sampler.chains import Chains
from spinseg.segmentation.presets.photo import details_of

MAX_SIDE = 1000  # pixels: larger images are reduced
THUMBNAIL_SIDE = 320  # pixels, of a single draw
MAX_PIXELATED_SIDE = 300  # pixels: in smaller images each is shown as a square
MAX_ASPECT_RATIO = 25  # a longer image is shown distorted: a single row of pixels would not be seen
MAX_NUMBERS = 20  # numbers of regions on an image: more would hide it
# Of kinds of regions, the largest first. The color-blind see the difference, too (Okabe and Ito).
KIND_COLORS = {"gray": (130, 130, 130), "orange": (230, 159, 0), "blue": (86, 180, 233), "green": (0, 158, 115)}
NUMBER_GAP = 0.03  # of the longer side, between two numbers at least, or they would hide each other
MIN_DEPTH_SHARE = 0.8  # of a region's largest distance from its outline, for the place of its number
# How images are encoded: those without colored lines may lose some color, which is not seen.
PLAIN, COLORED_LINES, SMALL = (
    {"quality": 88, "subsampling": 2},
    {"quality": 85, "subsampling": 0},
    {"quality": 78, "subsampling": 0},
)
LEGEND_GRAY = 128  # of the ground on which the legend shows boundaries
N_SHOWN = 10  # draws
OUTLINES_SWITCH = (
    '<input type="checkbox" id="outlines" checked><label for="outlines">Outlines</label>'
    '<div class="captions">{caption}</div>'
)
CHOSEN = ' <span class="mark">chosen</span>'


def reduced(picture: Picture, labels: NDArray[np.int32], max_side: int = MAX_SIDE) -> tuple[NDArray[np.uint8], int]:
    """An image no larger than `max_side`, faded where labels are -1, and the side of the squares that are a pixel.

    A dark one is brightened.
    """
    step = -(-max(labels.shape) // max_side)
    rgb = Picture(downsample(picture.codes, step, np.mean).round().astype(np.uint16)).rgb
    return faded(brightened(rgb), downsample_labels(labels, step) < 0), step


def whole_figures(
    found: dict[str, Any],
    picture: Picture,
    labels: NDArray[np.int32],
    boundary_probability: NDArray[np.float32],
    chains: Chains,
    unit: str,
    details: Mapping[float, tuple[NDArray[np.int32], int]],
) -> tuple[str, str]:
    """The outlines as HTML, and the other images of the whole; `unit` is what clusters are called."""
    first, regions = np.int32(found["settings"]["start_label"]), found["regions"]
    labels = labels - first  # from 0 on, with -1 outside
    rgb, step = reduced(picture, labels)
    labels = downsample_labels(labels, step)
    views = {d: (downsample_labels(each - first, step), n) for d, (each, n) in details.items() if len(details) > 1}
    numbers, numbered = _region_numbers(regions, labels + first, step), ""
    if numbers:
        numbered = ", with the numbers of the table below" + (
            " (of the largest, and of those with the least probable outlines)" if len(regions) > len(numbers) else ""
        )
    caption = f"{unit.capitalize()}s in their mean colors"
    colors = mean_colors(rgb, labels, channel_axis=-1, start_label=0)
    figures = [_figure(caption, colors, f"{caption}.", jpeg=None)]
    if has_kinds(regions):
        n_kinds = max(row["kind"] for row in regions) + 1
        named_colors = np.array(list(KIND_COLORS.values()), np.uint8)
        palette = np.concatenate([named_colors, label_colors(n_kinds)[len(named_colors) :]])
        of_label = {row["label"] - first: palette[row["kind"]] for row in regions} | {-1: np.full(3, 255, np.uint8)}
        named = ", ".join(f"kind {kind} in {name}" for kind, name in zip(range(n_kinds), KIND_COLORS, strict=False))
        caption = f"Kinds of regions: {named}"
        colors = np.array([of_label[label] for label in sorted(of_label)])[labels + 1]
        figures.append(_figure(caption, colors, f"{caption}.", jpeg=None))
    if chains.labels.shape[1] > 0:
        probability = downsample(boundary_probability, step, np.max)  # the maximum keeps thin lines
        figures.insert(0, _probability_figure(rgb, probability, chains.n_components > 1))
    outlines = _outline_figure(rgb, labels, "".join(numbers), numbered, views, found["settings"].get("detail"))
    return outlines, "\n".join(figures)


def _outline_figure(
    rgb: NDArray[np.uint8],
    labels: NDArray[np.int32],
    numbers: str,
    numbered: str,
    details: Mapping[float, tuple[NDArray[np.int32], int]],
    chosen: float | None,
) -> str:
    """The outlines over the image as HTML, with a row of details, if there are any, of which one is shown at a time.

    `details` has the labels and the number of regions at each. The `numbers` of regions, and the words `numbered` in
    the caption that explain them, belong to the chosen detail.
    """
    if not details:
        caption = f"Outlines of the clusters{numbered}"
        switch = OUTLINES_SWITCH.format(caption=f'<p class="caption only">{escape(caption)}.</p>')
        layer = _layer(caption, labels, "layer only", numbers)
        return f'<div class="stage">{switch}{_frame(rgb, "The image", layer)}</div>'
    stops, layers, captions = "", "", ""
    for i, (detail, (at_detail, n_regions)) in enumerate(details.items()):
        is_chosen = detail == chosen
        css, count = f"d{i} chosen" if is_chosen else f"d{i}", counted(n_regions, "region")
        number, _, noun = count.partition(" ")
        stops += (
            f'<input type="radio" name="detail" id="d{i}" style="--i:{i + 1}"{" checked" if is_chosen else ""}>'
            f'<label for="d{i}" style="--i:{i + 1}"><b>{detail:g}</b> <span>{number}<span class="noun"> {noun}</span>'
            f"</span>{CHOSEN if is_chosen else ''}</label>"
        )
        alt = f"Outlines of {count} at level of detail {detail:g}"
        layers += _layer(alt, at_detail, f"layer {css}", numbers if is_chosen else "")
        words = f"{alt}{numbered}." if is_chosen else f"{alt}. The rest of this report uses level {chosen:g}."
        captions += f'<p class="caption {css}">{escape(words)}</p>'
    return (
        f'<fieldset class="stage" style="--n:{len(details)}"><legend>Level of detail, from coarse to fine</legend>'
        f"{stops}{OUTLINES_SWITCH.format(caption=captions)}{_frame(rgb, 'The image', layers)}</fieldset>"
    )


def _layer(alt: str, labels: NDArray[np.int32], css: str, over: str) -> str:
    """Outlines as a transparent PNG with a palette, with the HTML `over` them."""
    from PIL import Image

    image = Image.fromarray(outlines(labels))
    image.putpalette([channel for color in OUTLINE_COLORS for channel in color[:3]])
    opacity = bytes(color[3] for color in OUTLINE_COLORS)
    url = data_url(image, "PNG", transparency=opacity, bits=2, optimize=True)
    return f'<div class="{css}"><img alt="{escape(alt)}" src="{url}">{over}</div>'


def _probability_figure(rgb: NDArray[np.uint8], probability: NDArray[np.float32], every_detail: bool) -> str:
    """The graded boundaries as HTML, with a legend."""
    samples = ""
    for percent in (5, 50, 95):
        ground = np.full((1, 1, 3), LEGEND_GRAY, np.uint8)
        color = "#{:02x}{:02x}{:02x}".format(*graded_boundaries(ground, np.full((1, 1), percent / 100))[0, 0])
        samples += f'<span class="sample"><span style="background:{color}"></span></span> {percent}% '
    draws = "draws of all levels of detail" if every_detail else "draws"
    caption = (
        f"<strong>How probable each boundary is.</strong> The brighter a line, the more of the {draws} have a boundary "
        f'there: <span class="legend">{samples}</span>'
    )
    return _figure("How probable each boundary is", graded_boundaries(rgb, probability), caption, COLORED_LINES)


def light_figure(light: Light) -> str:
    """The uneven light as HTML, from black to white, and its range."""
    low, high = float(np.nanmin(light.field)), float(np.nanmax(light.field))
    field = downsample(np.nan_to_num(light.field, nan=low), -(-max(light.field.shape) // MAX_SIDE), np.mean)
    shades = np.rint(255 * (field - low) / max(high - low, 1e-9)).astype(np.uint8)
    how, mean = ("This field was subtracted from", 0) if light.is_added else ("This field divided", 1)
    caption = (
        f"<strong>Uneven light.</strong> {how} the intensities before they were compared: {low:.2f} where it is black, "
        f"{high:.2f} where it is white, {mean} on average."
    )
    return _figure("Uneven light", np.repeat(shades[..., None], 3, axis=-1), caption, PLAIN)


def spread_draws(chains: Chains, n: int = N_SHOWN) -> list[tuple[int, int]]:
    """The chain and the index of up to `n` draws, from coarse to fine, spread over details, chains and sweeps."""
    n_details = chains.n_components
    component = [(2 * i + 1) * n_details // (2 * n) for i in range(n)]  # of each draw, in equal shares
    places = []
    for i, d in enumerate(component):
        of_detail = np.flatnonzero(chains.component == d)
        if of_detail.size:
            order = component[:i].count(d)  # among the draws of the same detail
            draw = of_detail[(2 * order + 1) * of_detail.size // (2 * component.count(d))]
            places.append((i % chains.n_chains, int(draw)))
    return list(dict.fromkeys(places))


def draw_words(chains: Chains, place: tuple[int, int], unit: str) -> str:
    """The detail of a draw, its number of clusters, which are called `unit`, and its chain."""
    chain, draw = place
    count = f"{counted(int(chains.labels[place].max()) + 1, unit)}, chain {chain + 1}"
    if chains.n_components == 1:
        return count
    return f"Detail {details_of(chains.n_components)[chains.component[draw]]:.2f}: {count}"


def draw_figures(chains: Chains, picture: Picture, sites: NDArray[np.int32], unit: str) -> list[str]:
    """A few draws, as HTML; `unit` is what their clusters are called."""
    rgb, step = reduced(picture, sites, THUMBNAIL_SIDE)
    figures = []
    for place in spread_draws(chains):
        words, labels = draw_words(chains, place, unit), np.append(chains.labels[place], np.int32(-1))[sites]
        figures.append(_figure(words, outlined(rgb, downsample_labels(labels, step)), escape(words), SMALL))
    return figures


def one_region_each(regions: list[dict[str, Any]]) -> bool:
    """Whether every label is one region."""
    return len({region["label"] for region in regions}) == len(regions)


def has_kinds(regions: list[dict[str, Any]]) -> bool:
    """Whether regions have kinds."""
    return "kind" in regions[0]


def _region_numbers(regions: list[dict[str, Any]], labels: NDArray[np.int32], step: int) -> list[str]:
    """The numbers of some regions as HTML, each placed over its region in an image that is `reduced`.

    They are the largest, and of the others those with the least probable outlines.
    """
    if regions and len(regions[0]["bbox"]) > 4 and not one_region_each(regions):
        return []  # in a plane of a volume, the pieces of a cluster cannot be matched with its regions
    places: dict[str, NDArray[np.float64]] = {}
    for region in [*regions[: MAX_NUMBERS // 2], *doubtful(regions)]:
        ends = region["bbox"]
        sides = zip(ends[len(ends) // 2 - 2 : len(ends) // 2], ends[-2:], strict=True)
        rows, columns = (slice(a // step, max(-(-b // step), a // step + 1)) for a, b in sides)
        inside = _piece(labels[rows, columns] == region["label"], region["area"] / step**2)
        if inside.any():
            place = np.array([rows.start, columns.start]) + central_pixel(inside) + 0.5
            if all(np.abs(place - other).max() >= NUMBER_GAP * max(labels.shape) for other in places.values()):
                top, left = place / labels.shape
                places[f'<b style="left:{left:.2%};top:{top:.2%}">{region["region"]}</b>'] = place
    return list(places)


def doubtful(regions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A few regions with the least probable outlines, besides the largest."""
    half = MAX_NUMBERS // 2
    others = sorted(regions[half:], key=lambda row: 1.0 if row["boundary"] is None else row["boundary"])
    return others[:half]


def _piece(inside: NDArray[np.bool_], area: float) -> NDArray[np.bool_]:
    """The connected piece of nearest area: the box may hold other regions of the same cluster."""
    pieces, n_pieces = ndimage.label(inside)
    if n_pieces < 2:
        return inside
    areas = np.bincount(pieces.ravel())[1:]
    return pieces == np.abs(areas - area).argmin() + 1


def central_pixel(inside: NDArray[np.bool_]) -> tuple[int, int]:
    """The row and column of a pixel of a region: the nearest to its middle of those far from its outline."""
    depth = ndimage.distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]  # the frame of the image is an outline, too
    deep = np.argwhere(depth >= MIN_DEPTH_SHARE * depth.max())
    middle = np.argwhere(inside).mean(axis=0)
    row, column = deep[np.square(deep - middle).sum(axis=1).argmin()]
    return int(row), int(column)


def downsample_labels(labels: NDArray[np.int32], step: int) -> NDArray[np.int32]:
    """The label in the middle of each square, or if that is outside the mask, another one of the square."""
    middle = downsample(labels, step, lambda squares, axis: squares[:, squares.shape[1] // 2, :, squares.shape[3] // 2])
    return np.where(middle < 0, downsample(labels, step, np.max), middle) if middle.min() < 0 else middle


def downsample(values: NDArray[Any], step: int, summary: Callable[..., NDArray[Any]]) -> NDArray[Any]:
    """One value for each square of `step` pixels; in an image that is narrower, for each smaller rectangle."""
    rows, columns = (max(length // step, 1) for length in values.shape[:2])
    kept = values[: rows * step, : columns * step]
    squares = kept.reshape(rows, kept.shape[0] // rows, columns, kept.shape[1] // columns, *values.shape[2:])
    return summary(squares, axis=(1, 3)) if step > 1 else values


def _frame(pixels: NDArray[np.uint8], alt: str, over: str = "", jpeg: dict[str, int] | None = PLAIN) -> str:
    """An image as HTML, no higher than the window, with the HTML `over` it; a PNG where `jpeg` is None."""
    height, width = pixels.shape[:2]
    ratio = min(max(width / height, 1 / MAX_ASPECT_RATIO), MAX_ASPECT_RATIO)
    coarse = max(height, width) <= MAX_PIXELATED_SIDE and jpeg is not SMALL
    url = data_url(pixels, "PNG") if coarse or jpeg is None else data_url(pixels, "JPEG", **jpeg)
    return (
        f'<div class="frame{" coarse" if coarse else ""}" style="--ratio:{ratio:.4f}">'
        f'<img alt="{escape(alt)}" src="{url}">{over}</div>'
    )


def _figure(alt: str, pixels: NDArray[np.uint8], caption: str, jpeg: dict[str, int] | None) -> str:
    """An image as HTML with its caption, which is HTML."""
    return f"<figure>{_frame(pixels, alt, jpeg=jpeg)}<figcaption>{caption}</figcaption></figure>"


def data_url(image: Any, kind: str, **options: Any) -> str:
    """An image of Pillow, or its pixels, as a data URL; without subsampling, thin lines keep their color."""
    from PIL import Image

    buffer = io.BytesIO()
    image = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
