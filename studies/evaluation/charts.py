"""Square charts of probabilities as SVG, which take their colors from the page."""

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from spinseg.segmentation.report.charts import N_COLORS, scale, text_at
from studies.evaluation.boundaries import BoundaryCounts
from studies.evaluation.calibration import N_BINS, Reliability

SIDE = 260  # of the square between the axes
LEFT, TOP, RIGHT, BOTTOM = 48, 10, 14, 42  # margins, for the numbers and the names of the axes
TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
F_LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # of the thin curves of equal F
MIN_SHARE = 0.0005  # of the length: a point of less rests on a few edges


def reliability_diagram(found: Reliability, title: str) -> str:
    """A chart of the share of annotators who draw a boundary over the probability that it was given.

    There is a point for each of N_BINS equal parts of the probabilities, at the means over boundaries weighted by
    length; bars are the share of the length that each part has.
    """
    weight, told, seen = (np.array(values) for values in found[:3])
    whole = max(float(weight.sum()), 1e-300)
    parts = [_frame(title, "probability told", "share of annotators who draw it")]
    for i, length in enumerate(weight / whole):
        x, y = _x((i + 0.1) / N_BINS), _y(float(length))
        place = f'x="{x:.1f}" y="{y:.1f}" width="{0.8 * SIDE / N_BINS:.1f}" height="{_y(0) - y:.1f}"'
        parts.append(f'<rect class="share" {place}/>')
    parts.append(_path([(0, 0), (1, 1)], "ideal"))
    kept = weight > MIN_SHARE * whole
    points = list(zip((told[kept] / weight[kept]).tolist(), (seen[kept] / weight[kept]).tolist(), strict=True))
    parts.append(_path(points, "line c0"))
    for (p, share), length in zip(points, weight[kept] / whole, strict=True):
        words = f"told {p:.2f}, drawn by {share:.0%} of annotators, {length:.1%} of the length"
        parts.append(_dot(p, share, 4, "dot k0", words))
    return "".join(parts) + "</svg>"


def precision_recall_chart(curves: Mapping[str, tuple[BoundaryCounts, bool]], title: str) -> str:
    """A chart of precision over recall: a curve and its best point for each method.

    The value of a method says whether it has probabilities; without them it has the point alone. Thin curves are those
    of equal F.
    """
    parts = [_frame(title, "recall", "precision")]
    for f in F_LEVELS:
        recall = np.linspace(f / (2 - f), 1, 40)
        parts.append(_path(zip(recall.tolist(), (f * recall / (2 * recall - f)).tolist(), strict=True), "equal"))
    for i, (name, (counts, has_curve)) in enumerate(curves.items()):
        recall, precision, best = counts.recall, counts.precision, int(counts.f.argmax())
        if has_curve:
            found = np.array(counts.found) > 0
            line = zip(recall[found].tolist(), precision[found].tolist(), strict=True)
            parts.append(_path(line, f"line c{i % N_COLORS}"))
        words = f"{name}: precision {precision[best]:.2f}, recall {recall[best]:.2f}, F {counts.f[best]:.3f}"
        parts.append(_dot(recall[best], precision[best], 4.5, f"dot k{i % N_COLORS}", words))
    return "".join(parts) + "</svg>"


def legend(names: Iterable[str]) -> str:
    """The names of methods beside their colors, as HTML."""
    keys = (f'<span class="key k{i % N_COLORS}"></span>{escape(name)}' for i, name in enumerate(names))
    return " ".join(f'<span class="entry">{key}</span>' for key in keys)


def _x(value: float) -> float:
    return float(scale(value, (0, 1), (LEFT, LEFT + SIDE)))


def _y(value: float) -> float:
    return float(scale(value, (0, 1), (TOP + SIDE, TOP)))


def _frame(title: str, x_name: str, y_name: str) -> str:
    """The opening tag, both axes from 0 to 1, their numbers and their names."""
    size = f"{LEFT + SIDE + RIGHT} {TOP + SIDE + BOTTOM}"
    parts = [f'<svg viewBox="0 0 {size}" role="img" aria-label="{escape(title)}">']
    for tick in TICKS:
        parts.append(f'<path class="grid" d="M{_x(0)} {_y(tick):.1f}H{_x(1)}M{_x(tick):.1f} {_y(0)}V{_y(1)}"/>')
        parts.append(text_at(_x(0) - 6, _y(tick) + 4, f"{tick:g}", anchor="end"))
        parts.append(text_at(_x(tick), _y(0) + 16, f"{tick:g}"))
    parts.append(f'<path class="axis" d="M{_x(0)} {_y(1)}V{_y(0)}H{_x(1)}"/>')
    parts.append(text_at(_x(0.5), _y(0) + 34, x_name))
    parts.append(f'<g transform="translate(13 {_y(0.5)}) rotate(-90)">{text_at(0, 0, y_name)}</g>')
    return "".join(parts)


def _path(points: Iterable[tuple[float, float]], kind: str) -> str:
    steps = "L".join(f"{_x(x):.1f} {_y(y):.1f}" for x, y in points)
    return f'<path class="{kind}" d="M{steps}"/>' if steps else ""


def _dot(x: float, y: float, radius: float, kind: str, words: str) -> str:
    """A point whose words appear under the pointer."""
    place = f'cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="{radius}"'
    return f'<circle class="{kind}" {place}><title>{escape(words)}</title></circle>'
