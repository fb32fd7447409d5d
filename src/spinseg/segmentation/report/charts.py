"""Small charts as SVG: lines over sweeps, and bars. They take their colours from the page.

They are drawn as narrow as the narrowest screen shows them, so that their text is never smaller than it says.
"""

from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 360, 200
RIGHT, TOP, BOTTOM = 8, 26, 38  # room for the legend and for the numbers below
LETTER = 7.7  # pixels that a digit takes in the widest of the usual types (DejaVu Sans)
MOST_POINTS = 400  # of a line: more cannot be seen
N_COLOURS = 8  # of lines, in the page
FLAT = 1e-7  # of a value: what varies by a smaller share does so by rounding

Range = tuple[float, float]


class Tick(NamedTuple):
    """A place on an axis, and what is written there."""

    value: float
    text: str


def lines(series: NDArray, title: str, *, shaded: int = 0) -> str:
    """A line for each row of `series` over its columns, counted from 1; the first `shaded` ones on a darker ground.

    Whole numbers get whole ticks.
    """
    n_lines, length = series.shape
    if length == 0:
        return _empty(title, "no sweep was finished")
    across, up = (1.0, float(max(length, 2))), _span(series, shaded)
    upward = _ticks(up, whole=series.dtype.kind in "iu")
    left = _margin(upward)
    columns = np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(int))
    x = _scale(columns + 1.0, across, (left, WIDTH - RIGHT))
    parts = [_start(title)]
    if shaded:
        edge = _scale(min(shaded + 0.5, across[1]), across, (left, WIDTH - RIGHT))
        ground = f'x="{left:.1f}" y="{TOP}" width="{edge - left:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
        parts.append(f'<rect class="burn" {ground}/>')
    parts += [_up_axis(upward, up, left), _across_axis(_ticks(across, whole=True), across, left, "sweep")]
    for i in range(n_lines):
        parts.append(f'<path class="line c{i % N_COLOURS}" d="{_line(x, series[i, columns], up)}"/>')
    return "".join([*parts, _legend(n_lines, left)]) + "</svg>"


def bars(shares: Mapping[int, float], title: str, axis: str) -> str:
    """A bar for each number, as high as its share."""
    if not shares:
        return _empty(title, "nothing was drawn")
    numbers = range(min(shares), max(shares) + 1)
    up = (0.0, 100 * max(shares.values()))
    upward = [Tick(value, f"{text}%") for value, text in _ticks(up)]
    left = _margin(upward)
    step = (WIDTH - RIGHT - left) / len(numbers)
    width = min(0.8 * step, 60)
    every = -(-len(numbers) // 10)
    parts = [_start(title), _up_axis(upward, up, left)]
    for i, number in enumerate(numbers):
        share = shares.get(number, 0.0)
        middle, top = left + (i + 0.5) * step, _scale(100 * share, up, (HEIGHT - BOTTOM, TOP))
        place = f'x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{HEIGHT - BOTTOM - top:.1f}"'
        parts.append(f'<rect class="bar" {place}><title>{number}: {share:.1%}</title></rect>')
        if i % every == 0:
            parts.append(_text(middle, HEIGHT - 21, f"{number:,}"))
    return "".join([*parts, _text((left + WIDTH - RIGHT) / 2, HEIGHT - 5, axis)]) + "</svg>"


def _start(title: str) -> str:
    """The beginning of a chart."""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'


def _empty(title: str, why: str) -> str:
    """A chart that shows nothing, and says why."""
    frame = f'<path class="axis" d="M{RIGHT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    return _start(title) + frame + _text(WIDTH / 2, (TOP + HEIGHT - BOTTOM) / 2, why) + "</svg>"


def _line(x: NDArray, values: NDArray, up: Range) -> str:
    """A line as a path, which leaves the chart where values leave its range and comes back where they do."""
    beyond = np.pad((values < up[0]) | (values > up[1]), 1, constant_values=True)
    hidden = beyond[:-2] & beyond[1:-1] & beyond[2:]
    y = _scale(np.clip(values, *up), up, (HEIGHT - BOTTOM, TOP))
    begins = np.append(True, hidden[:-1])
    return "".join(f"{'M' if begins[i] else 'L'}{x[i]:.1f} {y[i]:.1f}" for i in np.flatnonzero(~hidden))


def _legend(n_lines: int, left: float) -> str:
    """Which line is which chain, where there are several and each has a colour of its own."""
    if not 2 <= n_lines <= N_COLOURS:
        return ""
    parts = [_text(left, 14, "chain", anchor="start")]
    for i in range(n_lines):
        x = left + 40 + 28 * i
        parts.append(f'<path class="key c{i}" d="M{x:.1f} 10h12"/>' + _text(x + 15, 14, str(i + 1), anchor="start"))
    return "".join(parts)


def _up_axis(ticks: list[Tick], up: Range, left: float) -> str:
    """The frame, and a number and a thin line for each tick of the axis that goes up."""
    parts = []
    for value, text in ticks:
        y = _scale(value, up, (HEIGHT - BOTTOM, TOP))
        parts.append(f'<path class="grid" d="M{left:.1f} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(left - 6, y + 4, text, anchor="end"))
    return "".join(parts) + f'<path class="axis" d="M{left:.1f} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'


def _across_axis(ticks: list[Tick], across: Range, left: float, name: str) -> str:
    """The numbers below, and what they count."""
    parts = []
    for value, text in ticks:
        x = _scale(value, across, (left, WIDTH - RIGHT))
        parts.append(_text(min(x, WIDTH - LETTER / 2 * len(text)), HEIGHT - 21, text))
    return "".join([*parts, _text((left + WIDTH - RIGHT) / 2, HEIGHT - 5, name)])


def _text(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _margin(ticks: list[Tick]) -> float:
    """Room on the left for the longest number."""
    return 10 + LETTER * max(len(tick.text) for tick in ticks)


def _span(series: NDArray, shaded: int) -> Range:
    """From where to where lines are shown: the scale is that of what is not shaded, for a start may lie far below."""
    finite = series[np.isfinite(series)].astype(float)
    after = series[:, shaded:] if shaded < series.shape[1] else series
    after = after[np.isfinite(after)].astype(float)
    if after.size == 0:
        return -1.0, 1.0
    low, high = float(after.min()), float(after.max())
    if high - low <= FLAT * max(abs(low), abs(high)):
        return low - 1, high + 1
    pad = 0.15 * (high - low)
    return max(low - pad, float(finite.min()) - 0.05 * pad), min(high + pad, float(finite.max()) + 0.05 * pad)


def _ticks(span: Range, *, whole: bool = False) -> list[Tick]:
    """Two to six round numbers in a range, with the digits that tell them apart."""
    low, high = span
    raw = max((high - low) / 5, 1.0 if whole else 0.0)
    power = int(np.floor(np.log10(raw)))
    step = next(10.0**power * factor for factor in (1, 2, 5, 10) if 10.0**power * factor >= raw * (1 - 1e-9))
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    values = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step
    return [Tick(float(value), f"{value + 0.0:,.{digits}f}") for value in values]


def _scale(values: Any, source: Range, target: Range) -> Any:
    """A value, or an array of them, from one interval to another."""
    return target[0] + (values - source[0]) / (source[1] - source[0]) * (target[1] - target[0])
