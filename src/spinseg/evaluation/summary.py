"""Summaries of a comparison: means and medians of each method, and tests against the best method."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spinseg.evaluation.results import Row

SIGNIFICANCE_LEVEL = 0.01  # as in the paper's table


class Summary(NamedTuple):
    """The scores of one method over the images that it segmented: means, or medians where the name says so.

    `p_value` is that of the two-sided Wilcoxon signed-rank test of its Rand index against the best method's, image by
    image, over the images that both segmented; None for the best itself, the method of highest median Rand index.
    """

    method: str
    images: int
    errors: int
    median_rand: float
    p_value: float | None
    median_clusters: float
    median_regions: float
    rand: float
    adjusted_rand: float
    variation_of_information: float
    covering: float
    consistency_error: float
    boundary_f: float
    median_seconds: float


def summarize(rows: Sequence[Row]) -> list[Summary]:
    """Return a summary of each method that segmented any image, in their order in the rows."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    rand = {
        method: {row.image: row.scores.probabilistic_rand_index for row in of_method if row.scores}
        for method, of_method in by_method.items()
    }
    rand = {method: found for method, found in rand.items() if found}
    if not rand:
        return []
    best = max(rand, key=lambda method: float(np.median(list(rand[method].values()))))
    return [
        _summary(by_method[method], None if method == best else wilcoxon_p_value(rand[best], rand[method]))
        for method in rand
    ]


def wilcoxon_p_value(best: dict[str, float], other: dict[str, float]) -> float:
    """Return the p-value of the two-sided Wilcoxon signed-rank test over their common images; 1 if all are equal."""
    from scipy.stats import wilcoxon

    common = sorted(best.keys() & other.keys())
    differences = np.array([best[image] - other[image] for image in common])
    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0


def _summary(rows: Sequence[Row], p_value: float | None) -> Summary:
    scored = [row for row in rows if row.scores is not None]
    table = np.array([row.scores for row in scored], dtype=float)
    rand, adjusted, information, consistency, covering, _, _, boundary_f = table.mean(axis=0).tolist()
    clusters, regions, seconds = np.median([(r.clusters, r.regions, r.seconds) for r in scored], axis=0).tolist()
    return Summary(
        method=rows[0].method,
        images=len(scored),
        errors=len(rows) - len(scored),
        median_rand=float(np.median(table[:, 0])),
        p_value=p_value,
        median_clusters=clusters,
        median_regions=regions,
        rand=rand,
        adjusted_rand=adjusted,
        variation_of_information=information,
        covering=covering,
        consistency_error=consistency,
        boundary_f=boundary_f,
        median_seconds=seconds,
    )


# The columns of a summary that are displayed: heading and format.
DISPLAYED_COLUMNS = {
    "median_rand": ("median Rand", "{:.4f}"),
    "p_value": ("p", "{}"),
    "median_clusters": ("clusters", "{:g}"),
    "median_regions": ("regions", "{:g}"),
    "rand": ("mean Rand", "{:.4f}"),
    "variation_of_information": ("VoI, bits", "{:.3f}"),
    "covering": ("covering", "{:.3f}"),
    "boundary_f": ("boundary F", "{:.3f}"),
    "median_seconds": ("seconds", "{:.2f}"),
}


def format_cells(summary: Summary) -> list[str]:
    """Return the values of `DISPLAYED_COLUMNS` as text."""
    values = summary._asdict() | {"p_value": format_p_value(summary.p_value)}
    return [form.format(values[name]) for name, (_, form) in DISPLAYED_COLUMNS.items()]


def format_p_value(p_value: float | None) -> str:
    """Return a p-value in the format of the paper's table.

    Examples
    --------
    >>> format_p_value(None), format_p_value(0.0108), format_p_value(1e-5)
    ('best', '.0108', '< .001')
    """
    if p_value is None:
        return "best"
    return "< .001" if p_value < 0.001 else f"{p_value:.4f}".removeprefix("0") if p_value < 1 else "1"
