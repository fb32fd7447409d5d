"""How far to trust a segmentation, in a few sentences."""

from typing import TYPE_CHECKING, Any

import numpy as np

from spinseg._advice import Advice, Setting
from spinseg.image.boundary.kinds import kind_of_image
from spinseg.image.contrast import Contrast, split_gain
from spinseg.image.layout import Ints, Reading
from spinseg.image.picture import Picture
from spinseg.sampler.convergence import AGREEMENT_LIMIT, ERROR_LIMIT, R_HAT_LIMIT
from spinseg.sampler.diagnostics import Diagnostics
from spinseg.segmentation.presets.preset import Preset

if TYPE_CHECKING:
    from spinseg.segmentation.schedule import Schedule

# Nats per pixel that splits of the largest regions gain (docs/evidence/notebook.md), by the kind of image: what people
# call one thing in a photograph often has parts of different intensity.
SPLIT_LIMITS = {"photograph": 0.07, "measured": 0.02}
ONE_START = "All chains started from the same place, so they may have missed other modes."

# By whether the regions have converged, and whether their probabilities have.
HEADLINES = {
    (True, True): "The {units} and their probabilities have converged.",
    (True, False): "The {units} have converged, but their probabilities have not.",
    (False, True): "The probabilities have converged, but the {units} have not.",
    (False, False): "Neither the {units} nor their probabilities have converged.",
}
OTHERWISE = Advice("; use ", Setting("preset", "photo"), " if it is a photograph")
UNKNOWN = "There are too few chains or draws to assess convergence."


def unit_of(connected: bool) -> str:
    """What the labels of a segmentation number."""
    return "region" if connected else "cluster"


def headline(found: dict[str, Any]) -> tuple[bool | None, str]:
    """Whether all is well, and the verdict in a few words, from a summary of a segmentation."""
    converged = found.get("regions_converged"), found.get("probabilities_converged")
    return headline_of(*converged, found["settings"]["connected"])


def headline_of(regions: bool | None, probabilities: bool | None, connected: bool) -> tuple[bool | None, str]:
    """The headline where the regions, and their probabilities, have converged, have not, or None can tell."""
    if regions is None or probabilities is None:
        return None, UNKNOWN
    return regions and probabilities, HEADLINES[regions, probabilities].format(units=f"{unit_of(connected)}s")


def kind_note(found: dict[str, Any]) -> Advice:
    """What to do if a summary's image was taken for something else than a photograph; empty if you named the preset."""
    if found.get("taken_for") is None or found["settings"]["preset"] == "photo":
        return Advice()
    return Advice(f"Taken for {found['taken_for']}", OTHERWISE, ".")


def shortfalls(found: Diagnostics) -> list[str]:
    """Each number that is known and not good enough, with what is needed: "R-hat 1.210, at most 1.05 needed"."""
    numbers = [
        ("agreement", found.agreement, f"at least {AGREEMENT_LIMIT}", found.partition_converged),
        ("standard error", found.standard_error, f"at most {ERROR_LIMIT}", (found.standard_error or 0) <= ERROR_LIMIT),
        ("R-hat", found.r_hat, f"at most {R_HAT_LIMIT}", (found.r_hat or 0) <= R_HAT_LIMIT),
    ]
    return [
        f"{name} {f'{value:.3f}' if np.isfinite(value) else 'infinite'}, {needed} needed"
        for name, value, needed, is_good in numbers
        if value is not None and not is_good
    ]


def verdict_sentences(
    diagnostics: Diagnostics,
    preset: Preset,
    sweeps: int,
    schedule: "Schedule | None" = None,
    *,
    warning: str | None = None,
    taken_for: str | None = None,
    not_validated: str | None = None,
) -> Advice:
    """A warning, whether the regions and the probabilities have converged after this many sweeps, and caveats.

    Without a schedule the sweeps were cut short. `not_validated` is what `Preset.not_validated` returns.
    """
    sentences = [warning] if warning else []
    if diagnostics.agreement is None or diagnostics.standard_error is None or diagnostics.r_hat is None:
        sentences.append(diagnostics.verdict)
    else:
        automatic = schedule is not None and schedule.is_automatic
        converged = diagnostics.partition_converged, diagnostics.probabilities_converged
        sentences += [headline_of(*converged, preset.connected)[1], _numbers(diagnostics, sweeps, automatic)]
        if diagnostics.converged and isinstance(preset.init, str) and preset.init == "greedy":
            sentences.append(ONE_START)
    if taken_for:
        otherwise = OTHERWISE if preset.name != "photo" else ""
        validated = "" if not_validated else "; the probabilities have been validated on everyday photographs"
        sentences.append(Advice(f"Taken for {taken_for}", otherwise, f"{validated}."))
    if not_validated:
        sentences.append(f"These probabilities have not been validated against human annotations for {not_validated}.")
    return Advice.joined(" ", sentences)


def _numbers(diagnostics: Diagnostics, sweeps: int, automatic: bool) -> str:
    """The numbers behind the headline, and advice; `automatic`: the program chose the number of sweeps."""
    agreement, error, r_hat = diagnostics.agreement, diagnostics.standard_error, diagnostics.r_hat
    assert agreement is not None and error is not None and r_hat is not None
    if diagnostics.converged:
        found = f"Parts of the draws alone repeat the regions to {agreement:.2f} (1 is best)"
        return f"{found}, and uncertain probabilities have an error of {error:.3f}."
    missing = "; ".join(shortfalls(diagnostics))
    if diagnostics.probabilities_converged:
        return (
            f"Several segmentations may fit about as well, or the chains are too short ({missing}); the boundary "
            "probabilities show where they differ."
        )
    if automatic:
        advice = (
            f"Treat probabilities closer than {2 * error:.2f}, two standard errors, as equal, or run four times as "
            "many chains to halve the error."
        )
    elif r_hat > R_HAT_LIMIT:
        advice = "Run more sweeps if the log posterior of a chain still rises. If each is level, run more chains."
    else:
        advice = "Four times as many sweeps halve the error."
    return f"After {sweeps:,} sweeps: {missing}. {advice}"


def split_warning(picture: Picture, regions: Ints, preset: Preset) -> Advice | None:
    """What to try if the largest regions, the first numbers, have parts that differ; else None."""
    if not preset.connected or split_gain(picture, regions) <= SPLIT_LIMITS[kind_of_image(picture)]:
        return None
    seen = "Large regions have parts of clearly different intensity, between which the preset sees no boundary."
    return Advice(f"{seen} If they belong apart, try ", preset.advice(picture), ".")


def one_region_warning(
    contrast: Contrast, reading: Reading | None, preset: Preset, advice: Advice | None = None
) -> Advice | None:
    """What to try if an image came back as one region though its parts differ; else None.

    `advice` is that of the preset for the image, if it was asked.
    """
    share = f"{contrast.difference:.0%}" if contrast.difference >= 0.01 else f"{contrast.difference:.1%}"
    if contrast.is_visible:
        advice = advice or preset.finer
        if reading is not None and reading.otherwise:  # more is wrong than the detail
            advice = Advice("another reading: ", reading.otherwise, "; or ", advice)
        seen = "The image came back as one region despite visible contrast"
        return Advice(f"{seen}: its parts differ by {share} of full intensity. Try ", advice, ".")
    if contrast.is_hidden:
        low, high = (0.0, 1.0) if reading is None else reading.intensity_range
        ends = tuple(float(f"{low + used * (high - low):.4g}") for used in contrast.used)
        seen = f"The image came back as one region, and its parts differ by only {share} of the intensities from"
        filled = Setting("intensity_range", ends)
        return Advice(f"{seen} {low:.6g} to {high:.6g}. Try ", filled, ", which its numbers fill.")
    return None
