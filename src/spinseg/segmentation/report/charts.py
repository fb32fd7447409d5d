"""Charts as SVG, which take their colors from the page.

They are as narrow as the narrowest screen, so that no screen shows their text smaller than its font size.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

WIDTH, HEIGHT = 360, 200
RIGHT, TOP, BOTTOM = 8, 26, 38  # margins, for the legend and for the numbers below
NAME_WIDTH = 18  # pixels of the name of the y axis, which is turned
DIGIT_WIDTH = 7.7  # pixels of a digit in the widest of the usual fonts (DejaVu Sans)
MAX_POINTS = 400  # points of a line: more cannot be seen
N_COLORS = 8  # colors of lines that the page has
ROUNDING_SHARE = 1e-7  # relative range of values that differ by rounding alone

Range = tuple[float, float]
Ticks = list[tuple[float, str]]  # values, and the text at each
Axis = tuple[Range, Ticks, str]  # the values at its ends, its ticks, and its name


class Chart:
    """A chart with two axes, to which marks are added at values of `x` and `y`."""

    def __init__(self, title: str, x: Axis, y: Axis, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
        width, height = size
        (self.x_span, x_ticks, x_name), (self.y_span, y_ticks, y_name) = x, y
        left = 10 + DIGIT_WIDTH * max(len(text) for _, text in y_ticks) + NAME_WIDTH * bool(y_name)
        self.x_pixels, self.y_pixels = (left, float(width - RIGHT)), (float(height - BOTTOM), float(TOP))
        self.parts = [_open_svg(title, size)]
        for value, text in y_ticks:
            self.parts.append(f'<path class="grid" d="M{left:.1f} {self.y(value):.1f}H{width - RIGHT}"/>')
            self.text(left - 6, self.y(value) + 4, text, anchor="end")
        for value, text in x_ticks:
            self.text(min(self.x(value), width - DIGIT_WIDTH / 2 * len(text)), height - 21, text)
        self.parts.append(f'<path class="axis" d="M{left:.1f} {TOP}V{height - BOTTOM}H{width - RIGHT}"/>')
        self.text(sum(self.x_pixels) / 2, height - 5, x_name)
        if y_name:
            self.parts.append(f'<g transform="translate(13 {sum(self.y_pixels) / 2}) rotate(-90)">')
            self.text(0, 0, y_name)
            self.parts.append("</g>")

    def x(self, values: Any) -> Any:
        """Where values lie across, in pixels."""
        return _scale(values, self.x_span, self.x_pixels)

    def y(self, values: Any) -> Any:
        """Where values lie down, in pixels."""
        return _scale(values, self.y_span, self.y_pixels)

    def text(self, x: float, y: float, words: str, *, anchor: str = "middle") -> None:
        """Add a text at a pixel."""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, x: ArrayLike, y: ArrayLike, css: str) -> None:
        """Add a line, cut where it lies outside the y axis."""
        low, high = self.y_span
        values = np.asarray(y, float)
        beyond = np.pad((values < low) | (values > high), 1, constant_values=True)
        hidden = beyond[:-2] & beyond[1:-1] & beyond[2:]
        begins = np.append(True, hidden[:-1])
        across, down = self.x(np.asarray(x, float)), self.y(np.clip(values, low, high))
        steps = (f"{'M' if begins[i] else 'L'}{across[i]:.1f} {down[i]:.1f}" for i in np.flatnonzero(~hidden))
        self.parts.append(f'<path class="{css}" d="{"".join(steps)}"/>')

    def box(self, x: Range, y: Range, css: str, title: str = "") -> None:
        """Add a rectangle, whose title appears under the pointer."""
        (left, right), (bottom, top) = map(self.x, x), map(self.y, y)
        place = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"'
        self.parts.append(f'<rect class="{css}" {place}><title>{escape(title)}</title></rect>')

    def svg(self) -> str:
        """The chart."""
        return "".join(self.parts) + "</svg>"


def line_chart(series: NDArray, title: str, *, shaded: int = 0) -> str:
    """A chart with a line for each row of `series`, (chain, sweep); the first `shaded` sweeps have a darker ground."""
    n_lines, length = series.shape
    if length == 0:
        return _empty_chart(title, "no sweep was finished")
    x_range, y_range = (1.0, float(max(length, 2))), _shown_range(series, shaded)
    x_axis = (x_range, _ticks(x_range, integers=True), "sweep")
    chart = Chart(title, x_axis, (y_range, _ticks(y_range, integers=series.dtype.kind in "iu"), ""))
    if shaded:
        chart.box((1.0, min(shaded + 0.5, x_range[1])), y_range, "burn", "burn-in")
    columns = np.unique(np.linspace(0, length - 1, min(length, MAX_POINTS)).round().astype(int))
    for i in range(n_lines):
        chart.line(columns + 1, series[i, columns], f"line c{i % N_COLORS}")
    if 2 <= n_lines <= N_COLORS:  # each chain has its own color
        left, _ = chart.x_pixels
        chart.text(left, 14, "chain", anchor="start")
        for i in range(n_lines):
            x = left + 40 + 28 * i
            chart.parts.append(f'<path class="key c{i}" d="M{x:.1f} 10h12"/>')
            chart.text(x + 15, 14, str(i + 1), anchor="start")
    return chart.svg()


def bar_chart(shares: Mapping[int, float], title: str, axis: str) -> str:
    """A chart with a bar for each number, as high as its share."""
    if not shares:
        return _empty_chart(title, "nothing was drawn")
    numbers = range(min(shares), max(shares) + 1)
    y_range = (0.0, 100 * max(shares.values()))
    y_ticks = [(value, f"{text}%") for value, text in _ticks(y_range)]
    x_ticks: Ticks = [(number, f"{number:,}") for number in numbers[:: -(-len(numbers) // 10)]]
    chart = Chart(title, ((numbers[0] - 0.5, numbers[-1] + 0.5), x_ticks, axis), (y_range, y_ticks, ""))
    half = min(0.4, 0.1 * len(numbers))
    for number in numbers:
        share = shares.get(number, 0.0)
        chart.box((number - half, number + half), (0.0, 100 * share), "bar", f"{number}: {share:.1%}")
    return chart.svg()


def _open_svg(title: str, size: tuple[int, int] = (WIDTH, HEIGHT)) -> str:
    return f'<svg viewBox="0 0 {size[0]} {size[1]}" role="img" aria-label="{escape(title)}">'


def _empty_chart(title: str, why: str) -> str:
    """A chart without data, which says why there are none."""
    frame = f'<path class="axis" d="M{RIGHT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    return f'{_open_svg(title)}{frame}<text x="{WIDTH / 2}" y="{HEIGHT / 2}" text-anchor="middle">{why}</text></svg>'


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


def _ticks(span: Range, *, integers: bool = False) -> Ticks:
    """Two to six round numbers in a range, with as many digits as they need to differ."""
    low, high = span
    raw = max((high - low) / 5, 1.0 if integers else 0.0)
    power = int(np.floor(np.log10(raw)))
    step = next(10.0**power * factor for factor in (1, 2, 5, 10) if 10.0**power * factor >= raw * (1 - 1e-9))
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    values = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step
    return [(float(value), f"{value + 0.0:,.{digits}f}") for value in values]


def _scale(values: Any, source: Range, target: Range) -> Any:
    """Values mapped linearly from one interval to another."""
    return target[0] + (values - source[0]) / (source[1] - source[0]) * (target[1] - target[0])
