"""Line charts and bar charts as SVG, which take their colors from the page.

They are as narrow as the narrowest screen, so that no screen shows their text smaller than its font size.
"""

from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 360, 200
RIGHT, TOP, BOTTOM = 8, 26, 38  # margins, for the legend and for the numbers below
DIGIT_WIDTH = 7.7  # pixels of a digit in the widest of the usual fonts (DejaVu Sans)
MAX_POINTS = 400  # points of a line: more cannot be seen
N_COLORS = 8  # colors of lines that the page has
ROUNDING_SHARE = 1e-7  # relative range of values that differ by rounding alone

Range = tuple[float, float]


class Tick(NamedTuple):
    """A value on an axis, and its text."""

    value: float
    text: str


def line_chart(series: NDArray, title: str, *, shaded: int = 0) -> str:
    """A chart with a line for each row of `series`, (chain, sweep); the first `shaded` sweeps have a darker ground.

    Integers get integer ticks.
    """
    n_lines, length = series.shape
    if length == 0:
        return _empty_chart(title, "no sweep was finished")
    x_range, y_range = (1.0, float(max(length, 2))), _shown_range(series, shaded)
    y_ticks = _ticks(y_range, integers=series.dtype.kind in "iu")
    left = _left_margin(y_ticks)
    columns = np.unique(np.linspace(0, length - 1, min(length, MAX_POINTS)).round().astype(int))
    x = scale(columns + 1.0, x_range, (left, WIDTH - RIGHT))
    parts = [_open_svg(title)]
    if shaded:
        edge = scale(min(shaded + 0.5, x_range[1]), x_range, (left, WIDTH - RIGHT))
        ground = f'x="{left:.1f}" y="{TOP}" width="{edge - left:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
        parts.append(f'<rect class="burn" {ground}/>')
    parts += [_y_axis(y_ticks, y_range, left), _x_axis(_ticks(x_range, integers=True), x_range, left, "sweep")]
    for i in range(n_lines):
        parts.append(f'<path class="line c{i % N_COLORS}" d="{_path(x, series[i, columns], y_range)}"/>')
    return "".join([*parts, _legend(n_lines, left)]) + "</svg>"


def bar_chart(shares: Mapping[int, float], title: str, axis: str) -> str:
    """A chart with a bar for each number, as high as its share."""
    if not shares:
        return _empty_chart(title, "nothing was drawn")
    numbers = range(min(shares), max(shares) + 1)
    y_range = (0.0, 100 * max(shares.values()))
    y_ticks = [Tick(value, f"{text}%") for value, text in _ticks(y_range)]
    left = _left_margin(y_ticks)
    step = (WIDTH - RIGHT - left) / len(numbers)
    width = min(0.8 * step, 60)
    every = -(-len(numbers) // 10)
    parts = [_open_svg(title), _y_axis(y_ticks, y_range, left)]
    for i, number in enumerate(numbers):
        share = shares.get(number, 0.0)
        middle, top = left + (i + 0.5) * step, scale(100 * share, y_range, (HEIGHT - BOTTOM, TOP))
        place = f'x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{HEIGHT - BOTTOM - top:.1f}"'
        parts.append(f'<rect class="bar" {place}><title>{number}: {share:.1%}</title></rect>')
        if i % every == 0:
            parts.append(text_at(middle, HEIGHT - 21, f"{number:,}"))
    return "".join([*parts, text_at((left + WIDTH - RIGHT) / 2, HEIGHT - 5, axis)]) + "</svg>"


def _open_svg(title: str) -> str:
    """The opening tag of a chart."""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'


def _empty_chart(title: str, why: str) -> str:
    """A chart without data, which says why there are none."""
    frame = f'<path class="axis" d="M{RIGHT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    return _open_svg(title) + frame + text_at(WIDTH / 2, (TOP + HEIGHT - BOTTOM) / 2, why) + "</svg>"


def _path(x: NDArray, values: NDArray, y_range: Range) -> str:
    """The path of a line, cut where values lie outside the range."""
    beyond = np.pad((values < y_range[0]) | (values > y_range[1]), 1, constant_values=True)
    hidden = beyond[:-2] & beyond[1:-1] & beyond[2:]
    y = scale(np.clip(values, *y_range), y_range, (HEIGHT - BOTTOM, TOP))
    begins = np.append(True, hidden[:-1])
    return "".join(f"{'M' if begins[i] else 'L'}{x[i]:.1f} {y[i]:.1f}" for i in np.flatnonzero(~hidden))


def _legend(n_lines: int, left: float) -> str:
    """The legend of chains, if there are several and each has its own color."""
    if not 2 <= n_lines <= N_COLORS:
        return ""
    parts = [text_at(left, 14, "chain", anchor="start")]
    for i in range(n_lines):
        x = left + 40 + 28 * i
        parts.append(f'<path class="key c{i}" d="M{x:.1f} 10h12"/>' + text_at(x + 15, 14, str(i + 1), anchor="start"))
    return "".join(parts)


def _y_axis(ticks: list[Tick], y_range: Range, left: float) -> str:
    """The frame, and a number and a thin line for each tick of the y axis."""
    parts = []
    for value, text in ticks:
        y = scale(value, y_range, (HEIGHT - BOTTOM, TOP))
        parts.append(f'<path class="grid" d="M{left:.1f} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(text_at(left - 6, y + 4, text, anchor="end"))
    return "".join(parts) + f'<path class="axis" d="M{left:.1f} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'


def _x_axis(ticks: list[Tick], x_range: Range, left: float, name: str) -> str:
    """The numbers of the ticks of the x axis, and its name."""
    parts = []
    for value, text in ticks:
        x = scale(value, x_range, (left, WIDTH - RIGHT))
        parts.append(text_at(min(x, WIDTH - DIGIT_WIDTH / 2 * len(text)), HEIGHT - 21, text))
    return "".join([*parts, text_at((left + WIDTH - RIGHT) / 2, HEIGHT - 5, name)])


def text_at(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    """A text at (x, y)."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _left_margin(ticks: list[Tick]) -> float:
    """The width of the left margin, which holds the longest number."""
    return 10 + DIGIT_WIDTH * max(len(tick.text) for tick in ticks)


def _shown_range(series: NDArray, shaded: int) -> Range:
    """The y range of lines: that of the values that are not shaded, since a chain may start far below."""
    finite = series[np.isfinite(series)].astype(float)
    after = series[:, shaded:] if shaded < series.shape[1] else series
    after = after[np.isfinite(after)].astype(float)
    if after.size == 0:
        return -1.0, 1.0
    low, high = float(after.min()), float(after.max())
    if high - low <= ROUNDING_SHARE * max(abs(low), abs(high)):
        return low - 1, high + 1
    pad = 0.15 * (high - low)
    return max(low - pad, float(finite.min()) - 0.05 * pad), min(high + pad, float(finite.max()) + 0.05 * pad)


def _ticks(span: Range, *, integers: bool = False) -> list[Tick]:
    """Two to six round numbers in a range, with as many digits as they need to differ."""
    low, high = span
    raw = max((high - low) / 5, 1.0 if integers else 0.0)
    power = int(np.floor(np.log10(raw)))
    step = next(10.0**power * factor for factor in (1, 2, 5, 10) if 10.0**power * factor >= raw * (1 - 1e-9))
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    values = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step
    return [Tick(float(value), f"{value + 0.0:,.{digits}f}") for value in values]


def scale(values: Any, source: Range, target: Range) -> Any:
    """A value, or an array of them, mapped linearly from one interval to another."""
    return target[0] + (values - source[0]) / (source[1] - source[0]) * (target[1] - target[0])
