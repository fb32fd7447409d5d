"""Summaries of a comparison: means and medians of each method, and tests against the best method."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from studies.evaluation.boundaries import BoundaryBenchmark, BoundaryCounts
from studies.evaluation.calibration import Reliability
from studies.evaluation.objects import ObjectScores
from studies.evaluation.results import Row

GroupScores = dict[str, dict[str, ObjectScores]]  # by group, then by method
SIGNIFICANCE_LEVEL = 0.01  # as in the paper's table


class Summary(NamedTuple):
    """The scores of one method over the images that it segmented: means, or medians where the name says so.

    `p_value` is that of the two-sided Wilcoxon signed-rank test of its Rand index against the best method's, image by
    image, over the images that both segmented; None for the best itself, the method of highest median Rand index.

    The scores of boundaries matched one to one, and those of probabilities, are of all images together: of the sums of
    their pixels and edges. They are None where a method has no probabilities; it then has one boundary map, and its F
    is `ods`. `f_50` and `f_75` are those of objects, None where the ground truth has none.
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
    ods: float | None = None
    ois: float | None = None
    average_precision: float | None = None
    brier: float | None = None
    log_loss: float | None = None
    calibration_error: float | None = None
    graded: float | None = None
    energy_distance: float | None = None
    f_50: float | None = None
    f_75: float | None = None


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
    whole = Summary(
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
    objects = _mean_objects([row.objects for row in scored])
    whole = whole._replace(**_of_boundaries(scored), **_of_probabilities(scored))
    return whole if objects is None else whole._replace(**objects._asdict())


def scores_by_group(rows: Sequence[Row]) -> GroupScores:
    """Return the mean scores of objects by group, in alphabetical order, and by method; empty without objects."""
    found: GroupScores = {}
    for group in sorted({row.group for row in rows if row.objects}):
        for method in dict.fromkeys(row.method for row in rows):
            mean = _mean_objects([row.objects for row in rows if (row.group, row.method) == (group, method)])
            if mean is not None:
                found.setdefault(group, {})[method] = mean
    return found


def _mean_objects(scores: Sequence[ObjectScores | None]) -> ObjectScores | None:
    """Return the means over images of those that are there; None if none is."""
    known = [found for found in scores if found is not None]
    return ObjectScores(*np.mean(known, axis=0).tolist()) if known else None


def pooled_reliability(rows: Sequence[Row]) -> Reliability | None:
    """Return the sums over the edges of all rows that have probabilities; None if no row has."""
    found = [row.reliability for row in rows if row.reliability is not None]
    return reduce(Reliability.plus, found) if found else None


def pooled_boundaries(rows: Sequence[Row]) -> BoundaryCounts | None:
    """Return the counts over the boundary pixels of all rows that have any; None if no row has."""
    found = [row.boundaries for row in rows if row.boundaries is not None]
    return reduce(BoundaryCounts.plus, found) if found else None


def _of_boundaries(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the scores of boundaries matched one to one; without probabilities there is one map and one score."""
    found = [row.boundaries for row in rows if row.boundaries is not None]
    if not found:
        return {}
    scores = BoundaryBenchmark.of(found)
    return dict(scores._asdict()) if pooled_reliability(rows) else {"ods": scores.ods}


def _of_probabilities(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the scores of probabilities and draws."""
    means = {
        "graded": _mean([row.graded for row in rows]),
        "energy_distance": _mean([row.energy_distance for row in rows]),
    }
    predicted = pooled_reliability(rows)
    if predicted is None:
        return means
    return means | {
        "brier": predicted.brier,
        "log_loss": predicted.log_loss,
        "calibration_error": predicted.calibration_error,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of those that are there; None if none is."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


# The columns of a summary that are displayed, in two tables: heading and format.
Columns = Mapping[str, tuple[str, str]]
DISPLAYED_COLUMNS: Columns = {
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
PROBABILITY_COLUMNS: Columns = {
    "brier": ("Brier", "{:.4f}"),
    "log_loss": ("log loss", "{:.4f}"),
    "calibration_error": ("ECE", "{:.4f}"),
    "graded": ("graded", "{:.0%}"),
    "energy_distance": ("energy distance", "{:.4f}"),
    "ods": ("ODS", "{:.3f}"),
    "ois": ("OIS", "{:.3f}"),
    "average_precision": ("AP", "{:.3f}"),
}
OBJECT_COLUMNS: Columns = {
    "f_50": ("F1, IoU > .5", "{:.3f}"),
    "f_75": ("F1, IoU > .75", "{:.3f}"),
    "median_regions": ("regions", "{:g}"),
    "brier": ("Brier", "{:.4f}"),
    "calibration_error": ("ECE", "{:.4f}"),
    "median_seconds": ("seconds", "{:.2f}"),
}


def format_cells(summary: Summary, columns: Columns = DISPLAYED_COLUMNS) -> list[str]:
    """Return the values of the columns as text."""
    values = summary._asdict() | {"p_value": format_p_value(summary.p_value)}
    return ["-" if values[name] is None else form.format(values[name]) for name, (_, form) in columns.items()]


def format_groups(groups: GroupScores) -> dict[str, list[str]]:
    """Return the two scores of each method in each group as text, by method.

    Examples
    --------
    >>> half, all_ = ObjectScores(0.5, 0.25), ObjectScores(1.0, 1.0)
    >>> format_groups(
    ...     {"stained": {"a": half, "b": all_}, "bright": {"b": half}}
    ... )
    {'a': ['0.500 / 0.250', '-'], 'b': ['1.000 / 1.000', '0.500 / 0.250']}
    """
    methods = dict.fromkeys(method for of_methods in groups.values() for method in of_methods)
    return {
        method: [" / ".join(f"{f:.3f}" for f in of_methods.get(method, ())) or "-" for of_methods in groups.values()]
        for method in methods
    }


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
