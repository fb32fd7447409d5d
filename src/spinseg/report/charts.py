"""Small charts as SVG: lines over sweeps, and bars. They take their colours from the page."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 520, 200
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 12, 34  # room for the tick labels
MOST_POINTS = 400  # of a line: more cannot be seen


def lines(series: NDArray, title: str, *, shaded: int = 0) -> str:
    """A line for each row of `series` over its columns, counted from 1; the first `shaded` ones on a darker ground."""
    n_lines, length = series.shape
    columns = np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(int))
    after = series[:, min(shaded, length - 1) :]  # the scale is that of what counts: a start may lie far below
    low, high = float(after.min()), float(after.max())
    pad = 0.15 * (high - low) or max(1.0, 1e-6 * abs(high))
    low, high = max(low - pad, float(series.min()) - 0.05 * pad), min(high + pad, float(series.max()) + 0.05 * pad)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    x = _scale((columns + 1).astype(float), (1, max(length, 2)), (LEFT, WIDTH - RIGHT))
    parts = [_frame(title)]
    if shaded:
        edge = _scale(np.array([shaded + 0.5]), (1, max(length, 2)), (LEFT, WIDTH - RIGHT))[0]
        parts.append(
            f'<rect class="burn" x="{LEFT}" y="{TOP}" width="{edge - LEFT:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        )
    parts.append(_ticks((1, max(length, 2)), (low, high), "sweep"))
    for i in range(n_lines):
        y = _scale(np.clip(series[i, columns], low, high), (low, high), (HEIGHT - BOTTOM, TOP))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        parts.append(f'<polyline class="line c{i % 4}" points="{points}"/>')
    return "".join(parts) + "</svg>"


def bars(shares: Mapping[int, float], title: str, axis: str) -> str:
    """A bar for each number, as high as its share."""
    numbers = range(min(shares), max(shares) + 1)
    highest = max(shares.values())
    step = (WIDTH - LEFT - RIGHT) / len(numbers)
    parts = [_frame(title)]
    every = -(-len(numbers) // 12)
    for i, number in enumerate(numbers):
        share = shares.get(number, 0.0)
        height = share / highest * (HEIGHT - TOP - BOTTOM)
        x, width = LEFT + (i + 0.1) * step, min(0.8 * step, 60)
        x += (0.8 * step - width) / 2
        parts.append(
            f'<rect class="bar" x="{x:.1f}" y="{HEIGHT - BOTTOM - height:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}"><title>{number}: {share:.1%}</title></rect>'
        )
        if i % every == 0:
            parts.append(f'<text x="{x + width / 2:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{number}</text>')
    for share in (0.0, highest / 2, highest):
        y = HEIGHT - BOTTOM - share / highest * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 3}" text-anchor="middle">{escape(axis)}</text>')
    return "".join(parts) + "</svg>"


def _frame(title: str) -> str:
    """The beginning of a chart."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
    )


def _ticks(across: tuple[float, float], up: tuple[float, float], axis: str) -> str:
    """Numbers along both axes."""
    parts = []
    for value in _round_numbers(*across):
        x = _scale(np.array([value]), across, (LEFT, WIDTH - RIGHT))[0]
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 18}" text-anchor="middle">{value:,.0f}</text>')
    numbers = _round_numbers(*up)
    digits = 0 if len(numbers) < 2 or numbers[1] - numbers[0] >= 1 else 1
    for value in numbers:
        y = _scale(np.array([value]), up, (HEIGHT - BOTTOM, TOP))[0]
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,.{digits}f}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 3}" text-anchor="middle">{axis}</text>')
    return "".join(parts)


def _round_numbers(low: float, high: float) -> Sequence[float]:
    """Three to six round numbers between two."""
    raw = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    return [float(value) for value in np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step]


def _scale(values: NDArray, source: tuple[float, float], target: tuple[float, float]) -> NDArray:
    """Values from one interval to another."""
    return target[0] + (values - source[0]) / (source[1] - source[0]) * (target[1] - target[0])
