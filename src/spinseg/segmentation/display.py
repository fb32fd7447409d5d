"""How a segmentation shows itself: in a line or two, in a notebook, and on Matplotlib axes."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinseg._run.atomic import printable
from spinseg._validation import counted
from spinseg.image.layout import in_pixels
from spinseg.image.picture import Picture
from spinseg.image.render import graded_boundaries, outlined
from spinseg.sampler.plots import new_axes
from spinseg.segmentation.report.pictures import COLORED_LINES, data_url, downsample, downsample_labels, reduced
from spinseg.segmentation.verdict import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from spinseg.segmentation.result import Segmentation

SHOWN_SIDE = 640  # pixels of the longer side of an image in a notebook
N_ROWS = 8  # of the table of regions in a notebook
CELL = "padding:2px 10px 2px 0;text-align:right"


def in_words(found: "Segmentation") -> str:
    """What a segmentation is, in a line, how far to trust it, in another, and a warning if there is one."""
    return "\n  ".join([_contents(found), _trust(found), *([found.warning] if found.warning else [])])


def _contents(found: "Segmentation") -> str:
    """What a segmentation is, in one line, whatever the name of its file."""
    name = f" of {printable(Path(found.source).name)}" if found.source else ""
    detail = [] if found.detail is None else [f"detail {found.detail:g}"]
    how = ", ".join([found.preset.name, *detail, f"seed {found.seed}"])
    regions, size = counted(found.n_clusters, unit_of(found.preset.connected)), in_pixels(found.labels.shape)
    return f"Segmentation{name}: {regions}, {size} ({how})"


def _trust(found: "Segmentation") -> str:
    """Whether the chains have converged, in a few words and numbers."""
    if found.interrupted:
        return f"interrupted after {counted(found.chains.n_sweeps, 'sweep')}"
    agreement, error = found.agreement, found.diagnostics.standard_error
    if found.converged is None or agreement is None or error is None:
        return "too few chains or draws to assess convergence"
    converged = "converged" if found.converged else "not converged"
    if not found.converged and found.diagnostics.partition_converged:
        converged = f"{unit_of(found.preset.connected)}s converged, probabilities not"
    return f"{converged} (agreement {agreement:.2f}, standard error {error:.3f})"


def _pictures(found: "Segmentation", max_side: int) -> list[tuple[str, Any]]:
    """The outlines over the image and the graded boundaries, each with its title."""
    plane = found._plane
    labels = found.labels[plane] - np.int32(found.start_label)
    rgb, step = reduced(Picture(found.picture.codes[plane]), labels, max_side)
    apart = downsample(found.boundary_probability[plane], step, np.max)
    title = "How probable each boundary is" if found.chains.labels.size else "No draws, and so no probabilities"
    return [
        (f"Outlines of the {unit_of(found.preset.connected)}s", outlined(rgb, downsample_labels(labels, step))),
        (title, graded_boundaries(rgb, np.nan_to_num(apart))),
    ]


def as_html(found: "Segmentation") -> str:
    """The segmentation in a notebook: images, the verdict, and the largest regions; without scripts or styles."""
    figures = "".join(
        f'<figure style="margin:0"><img alt="{title}" style="width:100%;max-width:420px;height:auto" '
        f'src="{data_url(pixels, "JPEG", **COLORED_LINES)}">'
        f'<figcaption style="font-size:90%">{title}</figcaption></figure>'
        for title, pixels in _pictures(found, SHOWN_SIDE)
    )
    rows = found.region_rows[:N_ROWS]
    names = ("region", "area", "share", "color", "probability", "boundary")
    head = "".join(f'<th style="{CELL}">{name}</th>' for name in names)
    body = "".join(f"<tr>{''.join(_cell(name, row[name]) for name in names)}</tr>" for row in rows)
    more = len(found.region_rows) - len(rows)
    rest = f"<p>and {counted(more, 'smaller region')}, in <code>regions</code></p>" if more else ""
    return (
        f"<div><p><b>{escape(_contents(found))}</b></p>"
        f'<div style="display:flex;flex-wrap:wrap;gap:12px">{figures}</div>'
        f"<p>{escape(found.verdict)}</p><details><summary>{counted(len(found.region_rows), 'region')}</summary>"
        f'<table style="border-collapse:collapse"><tr>{head}</tr>{body}</table>{rest}</details></div>'
    )


def _cell(name: str, value: Any) -> str:
    """A cell of the table of regions."""
    if value is None:
        words = "-"
    elif name == "color":
        patch = f"display:inline-block;width:0.9em;height:0.9em;background:{value}"
        words = f'<span style="{patch}"></span> {value}'
    else:
        words = f"{value:,}" if isinstance(value, int) else f"{value:.0%}"
    return f'<td style="{CELL}">{words}</td>'


def plot(found: "Segmentation", axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
    """Draw the outlines and the probability of each boundary on two Matplotlib axes, new ones by default.

    For a volume, it shows the middle plane.
    """
    drawn = _pictures(found, max(found.labels.shape))
    height, width = drawn[0][1].shape[:2]
    axes = new_axes(len(drawn), 10, min(max(5 * height / width + 0.5, 2), 12)) if axes is None else axes
    for each, (title, pixels) in zip(axes, drawn, strict=True):
        each.imshow(pixels, interpolation="nearest")
        each.set_title(title)
        each.set_axis_off()
    return axes
