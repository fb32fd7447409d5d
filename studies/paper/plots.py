"""The style of all figures, and writing of figures and tables.

The rest of the package does not need Matplotlib, so it is imported inside functions. Figures are made without pyplot,
which has global state.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spinseg._errors import MissingExtra
from spinseg._run.atomic import atomic_write
from studies.evaluation.benchmark import Report
from studies.evaluation.results import Row, table_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ProgressCallback = Callable[[str], None]  # takes a line of text on the progress

# Okabe & Ito's colors (Color Universal Design, 2008), which color-blind readers can distinguish.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
BLACK, GRAY, LIGHT_GRAY = "#222222", "#767676", "#DDDDDD"

SIZE, SMALL = 10.0, 8.5  # points
DPI = 200


def require_matplotlib() -> None:
    """Raise MissingExtra if Matplotlib is not installed; to be called before the computations for a figure."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtra("drawing the paper's figures needs Matplotlib: pip install 'spinseg[plot]'") from None


def new_figure(width: float, height: float, ratios: Sequence[float] = (1,)) -> "tuple[Figure, list[Axes]]":
    """Return a figure of a size in inches, and its row of panels, with these ratios of widths."""
    figure, (panels,) = new_grid(width, height, 1, ratios)
    return figure, panels


def new_grid(width: float, height: float, n_rows: int, ratios: Sequence[float]) -> "tuple[Figure, list[list[Axes]]]":
    """Return a figure of a size in inches, and its rows of panels, with these ratios of widths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_rows, len(ratios), squeeze=False, width_ratios=ratios)
    return figure, [list(row) for row in panels]


def row_reporter(progress: ProgressCallback | None) -> Report | None:
    """Return a function that reports each row of a comparison to `progress`; None if that is None."""
    if progress is None:
        return None

    def report(n_done: int, total: int, row: Row) -> None:
        progress(f"{n_done}/{total} {row.image} {row.method}{f': {row.error}' if row.error else ''}")

    return report


def style_axes(axes: "Axes", x: str, y: str, title: str = "") -> None:
    """Set axis labels and a title, and draw two spines and a light horizontal grid."""
    axes.set_xlabel(x, fontsize=SIZE, color=BLACK)
    axes.set_ylabel(y, fontsize=SIZE, color=BLACK)
    if title:
        axes.set_title(title, fontsize=SIZE, color=BLACK, loc="left")
    axes.tick_params(labelsize=SMALL, color=GRAY, labelcolor=BLACK, length=3, width=0.8)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GRAY)
        spine.set_linewidth(0.8)
    axes.grid(axis="y", color=LIGHT_GRAY, linewidth=0.6)
    axes.set_axisbelow(True)


def save(figure: "Figure", path: Path) -> Path:
    """Write the figure as a PNG file; return the path."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, canvas.print_png)
    return path


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write the rows as a CSV file; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = table_bytes(header, rows)
    atomic_write(path, lambda file: file.write(content))
    return path
