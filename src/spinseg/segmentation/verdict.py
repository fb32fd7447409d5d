"""How far to trust a segmentation, in a few sentences."""

from typing import Any

import numpy as np

from spinseg.image.contrast import Contrast
from spinseg.image.layout import Reading
from spinseg.sampler.convergence import AGREEMENT_LIMIT, ERROR_LIMIT, IN_DOUBT, R_HAT_LIMIT
from spinseg.sampler.diagnostics import Diagnostics
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.schedule import Schedule

UNSEEN = "Diagnostics cannot detect segmentations that no chain reached."
ONE_START = "All chains started from the same place, so they may have missed other modes."

# By whether the regions have converged, and whether their probabilities have.
HEADLINES = {
    (True, True): "The {units} and their probabilities have converged.",
    (True, False): "The {units} have converged, but their probabilities have not.",
    (
        False,
        True,
    ): "The probabilities have converged, but the {units} have not: several segmentations fit about as well.",
    (False, False): "Neither the {units} nor their probabilities have converged.",
}
UNKNOWN = "There are too few chains or draws to assess convergence."


def verdict_sentences(diagnostics: Diagnostics, preset: Preset, sweeps: int, schedule: Schedule | None = None) -> str:
    """Whether the regions have converged, and whether their probabilities have, after this many sweeps.

    Without a schedule the sweeps were cut short.
    """
    if diagnostics.converged is None:
        return diagnostics.verdict
    regions = _regions_sentence(diagnostics, units(preset.connected))
    automatic = schedule is not None and schedule.is_automatic
    same_start = isinstance(preset.init, str) and preset.init == "greedy"
    return f"{regions} {_probabilities_sentence(diagnostics, sweeps, automatic, same_start)}"


def units(connected: bool) -> str:
    """What the labels of a segmentation number."""
    return "regions" if connected else "clusters"


def _regions_sentence(diagnostics: Diagnostics, noun: str) -> str:
    """Whether the regions have converged."""
    if diagnostics.agreement is None:
        return f"There are too few draws to assess whether the {noun} have converged."
    agreement = f"the agreement between chains is {diagnostics.agreement:.2f} (adjusted Rand index)"
    if diagnostics.partition_converged:
        return f"The {noun} have converged: {agreement}."
    return (
        f"The {noun} have not converged: {agreement}, and at least {AGREEMENT_LIMIT} is needed. Other segmentations "
        "fit about as well; the boundary probabilities show where they differ."
    )


def _probabilities_sentence(diagnostics: Diagnostics, sweeps: int, automatic: bool, same_start: bool) -> str:
    """Whether the boundary probabilities have converged, and what to do if not."""
    error, r_hat = diagnostics.standard_error, diagnostics.r_hat
    if error is None or r_hat is None:
        return "There are too few draws to assess whether the boundary probabilities have converged."
    largest = f"{r_hat:.2f}" if np.isfinite(r_hat) else "infinite"
    doubt = f"between {IN_DOUBT[0]} and {IN_DOUBT[1]}"
    numbers = f"those {doubt} have a standard error of {error:.3f}, and R-hat is {largest}"
    if diagnostics.probabilities_converged:
        if error == 0:
            numbers = f"R-hat is {largest}"
        return (
            f"The boundary probabilities have converged: {numbers}.{_single_details(diagnostics)} "
            f"{ONE_START if same_start else UNSEEN}"
        )
    needed = f"at most {ERROR_LIMIT} and {R_HAT_LIMIT} are needed"
    advice = _advice(diagnostics, automatic)
    return f"The boundary probabilities have not converged after {sweeps:,} sweeps: {numbers}; {needed}. {advice}"


def _single_details(diagnostics: Diagnostics) -> str:
    """A clause for draws of a mixture that have not converged at every single level of detail."""
    alone = [row.r_hat_of_components for row in diagnostics.table.values() if row.r_hat_of_components is not None]
    if not alone or max(alone) <= R_HAT_LIMIT:
        return ""
    largest = f"up to {max(alone):.1f}" if np.isfinite(max(alone)) else "infinite"
    return f" That holds for all levels of detail together: at a single one, R-hat is {largest}."


def _advice(diagnostics: Diagnostics, automatic: bool) -> str:
    """What to do about probabilities that have not converged.

    `automatic` says that the program chose the number of sweeps, and ran as many as it ever does.
    """
    error, r_hat = diagnostics.standard_error or 0.0, diagnostics.r_hat or 1.0
    if automatic:
        return (
            f"Treat probabilities closer than {2 * error:.2f}, two standard errors, as equal, or run four times as "
            "many chains to halve the error."
        )
    if r_hat > R_HAT_LIMIT:
        return "Run more sweeps if the log posterior of a chain still rises. If each is level, run more chains."
    return "Four times as many sweeps halve the error."


def calibration_clause(kind: str | None) -> str:
    """The clause of a verdict for what `Preset.not_validated` returns; empty where probabilities were compared."""
    return f" These probabilities have not been validated against human annotations for {kind}." if kind else ""


def one_region_warning(contrast: Contrast, reading: Reading | None, preset: Preset) -> str | None:
    """What to try if an image came back as one region though its parts differ; else None."""
    share = f"{contrast.difference:.0%}" if contrast.difference >= 0.01 else f"{contrast.difference:.1%}"
    if contrast.is_visible:
        advice = [preset.finer]
        if reading is not None and reading.otherwise:  # more is wrong than the detail
            advice = [f"another reading: {reading.otherwise}", f"or {advice[0]}"]
        return (
            f"The image came back as one region despite visible contrast: its parts differ by {share} of full "
            f"intensity. Try {'; '.join(advice)}."
        )
    if contrast.is_hidden:
        low, high = (0.0, 1.0) if reading is None else reading.intensity_range
        ends = [low + share_of_range * (high - low) for share_of_range in contrast.used]
        return (
            f"The image came back as one region, and its parts differ by only {share} of the intensities from "
            f"{low:.6g} to {high:.6g}. Try intensity_range=({ends[0]:.4g}, {ends[1]:.4g}), which its numbers fill."
        )
    return None


def headline(found: dict[str, Any]) -> tuple[bool | None, str]:
    """Whether all is well, and the verdict in a few words, from a summary of a segmentation."""
    regions, probabilities = found.get("regions_converged"), found.get("probabilities_converged")
    if regions is None or probabilities is None:
        return None, UNKNOWN
    return regions and probabilities, HEADLINES[regions, probabilities].format(
        units=units(found["settings"]["connected"])
    )
