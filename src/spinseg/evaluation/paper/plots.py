"""How all figures look, and how they reach the disk.

Matplotlib is not needed by the rest of the package: it is imported where it is used. Figures are objects of their own,
without pyplot and without settings that outlast them.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spinseg._errors import MissingExtra
from spinseg.evaluation.benchmark import Report
from spinseg.evaluation.results import Row, table_bytes
from spinseg.parallel.atomic import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tell = Callable[[str], None]  # takes a line on how far the work has come

# Okabe & Ito's colours (Color Universal Design, 2008), which colour-blind readers can tell apart.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
INK, GREY, PALE = "#222222", "#767676", "#DDDDDD"

SIZE, SMALL = 10.0, 8.5  # points
DPI = 200


def need_matplotlib() -> None:
    """None, or MissingExtra in one line: to be called before any work whose result is to be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtra("drawing the paper's figures needs Matplotlib: pip install 'spinseg[paper]'") from None


def new_figure(width: float, height: float, ratios: Sequence[float] = (1,)) -> "tuple[Figure, list[Axes]]":
    """A white figure, in inches, with panels side by side whose widths have these ratios."""
    figure, (panels,) = new_grid(width, height, 1, ratios)
    return figure, panels


def new_grid(width: float, height: float, n_rows: int, ratios: Sequence[float]) -> "tuple[Figure, list[list[Axes]]]":
    """A white figure, in inches, with rows of panels whose widths have these ratios."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_rows, len(ratios), squeeze=False, width_ratios=ratios)
    return figure, [list(row) for row in panels]


def telling_rows(tell: Tell | None) -> Report | None:
    """A function to call after each row of a comparison, which tells of it in a line; None where nobody listens."""
    if tell is None:
        return None

    def report(n_done: int, total: int, row: Row) -> None:
        tell(f"{n_done}/{total} {row.image} {row.method}{f': {row.error}' if row.error else ''}")

    return report


def dress(axes: "Axes", x: str, y: str, title: str = "") -> None:
    """Give axes their names, two spines and a faint grid across."""
    axes.set_xlabel(x, fontsize=SIZE, color=INK)
    axes.set_ylabel(y, fontsize=SIZE, color=INK)
    if title:
        axes.set_title(title, fontsize=SIZE, color=INK, loc="left")
    axes.tick_params(labelsize=SMALL, color=GREY, labelcolor=INK, length=3, width=0.8)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GREY)
        spine.set_linewidth(0.8)
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)


def save(figure: "Figure", path: Path) -> Path:
    """The path, where the figure is now a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, canvas.print_png)
    return path


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """The path, where the rows are now a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = table_bytes(header, rows)
    atomic_write(path, lambda file: file.write(content))
    return path
