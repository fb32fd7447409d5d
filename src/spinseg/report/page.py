"""The report: what was found, how sure it is, and how to repeat it."""

import base64
import io
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.image.pixels import Picture
from spinseg.image.render import mean_colours, overlay, probability_picture
from spinseg.inference.chains import Chains
from spinseg.report.charts import bars, lines

WIDEST = 1000  # pixels of a picture in the report
MOST_ROWS = 40  # of the table of regions


def report(
    found: dict[str, Any],
    picture: Picture,
    labels: NDArray[np.int32],
    boundary_probability: NDArray[np.float32],
    chains: Chains,
) -> str:
    """The report as HTML: of the summary of a segmentation, its picture, what was found there, and its chains.

    The same segmentation gives the same text.
    """
    size = " x ".join(map(str, found["shape"]))
    template = Template(files("spinseg.report").joinpath("page.html").read_text(encoding="utf-8"))
    shares = {int(k): share for k, share in found["n_clusters_posterior"].items()}
    return template.substitute(
        title=escape(Path(found["source"]).name if found["source"] else "Segmentation"),
        facts=escape(
            f"{_counted(found['n_clusters'], 'cluster')}, {_counted(found['n_regions'], 'region')}, "
            f"{found['n_sites']:,} sites, {size} pixels"
        ),
        verdict=escape(found["verdict"]),
        pictures=_pictures(picture, labels, boundary_probability),
        log_posterior=lines(chains.log_posterior, "log posterior over sweeps", shaded=chains.burn_in),
        n_clusters=lines(chains.n_clusters, "number of clusters over sweeps", shaded=chains.burn_in),
        posterior=bars(shares, "posterior of the number of clusters", "clusters") if shares else "",
        before_regions=", before they are cut into regions" if found["settings"]["regions"] else "",
        regions=_regions(found["regions"]),
        python=escape(f"import spinseg as ss\n{found['python']}"),
        settings=_rows(found["settings"]),
        versions=_rows(found["versions"]),
    )


def _counted(number: int, thing: str) -> str:
    """1 cluster, 2 clusters."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _pictures(picture: Picture, labels: NDArray[np.int32], boundary_probability: NDArray[np.float32]) -> str:
    """The picture and what was found in it, side by side."""
    step = -(-max(labels.shape) // WIDEST)
    picture = Picture(_reduced(picture.codes, step, np.mean).round().astype(np.uint16))
    labels = labels[step // 2 :: step, step // 2 :: step][: picture.shape[0], : picture.shape[1]]
    boundary = _reduced(boundary_probability, step, np.max)  # so that thin lines stay
    figures = [
        ("The picture", picture.rgb, "JPEG"),
        ("Boundaries of the clusters", overlay(picture, labels), "JPEG"),
        ("Clusters in their mean colours", mean_colours(picture, labels), "PNG"),
        ("Probability of a boundary, from black (0) to pale yellow (1)", probability_picture(boundary), "PNG"),
    ]
    return "\n".join(
        f'<figure><img alt="{escape(caption)}" src="{_embedded(pixels, kind)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for caption, pixels, kind in figures
    )


def _reduced(values: NDArray[Any], step: int, summary: Callable[..., NDArray[Any]]) -> NDArray[Any]:
    """One value for each square of `step` pixels that fits."""
    rows, columns = (max(length // step, 1) for length in values.shape[:2])
    squares = values[: rows * step, : columns * step].reshape(rows, -1, columns, *(step, *values.shape[2:]))
    return summary(squares, axis=(1, 3)) if step > 1 else values


def _embedded(pixels: NDArray[np.uint8], kind: str) -> str:
    """A picture as a data address."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **({"quality": 92} if kind == "JPEG" else {}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _regions(regions: list[dict[str, Any]]) -> str:
    """Rows of the table of regions, the largest first."""
    rows = []
    for region in regions[:MOST_ROWS]:
        boundary = "" if region["boundary"] is None else f"{region['boundary']:.0%}"
        rows.append(
            f'<tr><td>{region["region"]}</td><td><span class="swatch" style="background:{region["colour"]}"></span> '
            f"{region['colour']}</td><td>{region['area']:,}</td><td>{region['share']:.1%}</td>"
            f"<td>{', '.join(map(str, region['box']))}</td><td>{region['cluster']}</td>"
            f"<td>{region['probability']:.0%}</td><td>{boundary}</td></tr>"
        )
    if len(regions) > MOST_ROWS:
        rows.append(f'<tr><td colspan="8">and {len(regions) - MOST_ROWS:,} smaller, in result.json</td></tr>')
    return "\n".join(rows)


def _rows(values: dict[str, Any]) -> str:
    """Names and values as rows of a table."""
    return "\n".join(
        f"<tr><th>{escape(name)}</th><td>{escape('automatic' if value is None else str(value))}</td></tr>"
        for name, value in values.items()
    )
