"""How far to trust a segmentation, in a few sentences."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.image.contrast import Contrast
from spinseg.image.layout import Reading
from spinseg.image.picture import Picture
from spinseg.model.posterior import Model
from spinseg.sampler.chains import Chains
from spinseg.sampler.convergence import AGREEMENT_LIMIT, ERROR_LIMIT, IN_DOUBT, R_HAT_LIMIT
from spinseg.sampler.diagnostics import Diagnostics
from spinseg.segmentation.estimate import estimated_partition
from spinseg.segmentation.presets import PHOTO
from spinseg.segmentation.settings import Settings

# These settings leave the posterior as it is.
CALIBRATION_IGNORES = {"detail", "estimate", "moves", "lam", "init", "sweeps", "seconds", "chains", "start_label"}
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


def partitions_of_chains(
    drawn: Chains, model: Model, settings: Settings, seed: int
) -> list[list[NDArray[np.int32]]] | None:
    """The partitions that the first and the second half of the draws of each chain give; None for one chain.

    Where two partitions are about as good, an estimate from all draws of a chain is one or the other by chance; halves
    show it more often. The best partition visited is one for each chain.
    """
    n_cycles = drawn.labels.shape[1] // drawn.n_components
    if drawn.n_chains < 2 or n_cycles == 0:
        return None
    middle = n_cycles // 2 * drawn.n_components
    halves = [slice(0, middle), slice(middle, None)] if middle and settings.estimate != "best" else [slice(None)]
    parts = [drawn.with_draws(half) for half in halves]
    chains = range(drawn.n_chains)
    return [[estimated_partition(part, model, settings, seed, chain) for part in parts] for chain in chains]


def verdict_sentences(diagnostics: Diagnostics, settings: Settings, sweeps: int, interrupted: bool = False) -> str:
    """Whether the regions have converged, and whether their probabilities have, after this many sweeps."""
    if diagnostics.converged is None:
        return diagnostics.verdict
    regions = _regions_sentence(diagnostics, units(settings.connected))
    return f"{regions} {_probabilities_sentence(diagnostics, settings, sweeps, interrupted)}"


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


def _probabilities_sentence(diagnostics: Diagnostics, settings: Settings, sweeps: int, interrupted: bool) -> str:
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
        same_start = isinstance(settings.init, str) and settings.init in ("greedy", "coarse")
        return (
            f"The boundary probabilities have converged: {numbers}.{_single_details(diagnostics)} "
            f"{ONE_START if same_start else UNSEEN}"
        )
    needed = f"at most {ERROR_LIMIT} and {R_HAT_LIMIT} are needed"
    advice = _advice(diagnostics, settings.chooses_sweeps and not interrupted)
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


def unchecked_kind(picture: Picture, settings: Settings, has_seeds: bool = False) -> str | None:
    """What kind of picture or settings the probabilities have not been compared with people for; None for the others.

    Those of "photo" have been, on photographs in color and in gray (docs/evidence/accuracy.md).
    """
    if settings.preset != "photo":
        return f"the preset {settings.preset}"
    if len(picture.shape) == 3:
        return "volumes"
    if picture.n_channels != 3:
        return f"pictures with {picture.n_channels} channels"
    if settings.sites_are_pixels:
        return "sites that are pixels"
    if has_seeds:
        return "pictures with seeds"
    names = set(vars(settings)) - CALIBRATION_IGNORES
    return (
        None if all(repr(getattr(settings, name)) == repr(getattr(PHOTO, name)) for name in names) else "these settings"
    )


def calibration_clause(kind: str | None) -> str:
    """The clause of a verdict for what `unchecked_kind` returns; empty where probabilities were compared."""
    return f" These probabilities have not been validated against human annotations for {kind}." if kind else ""


def one_region_warning(contrast: Contrast, reading: Reading | None, settings: Settings) -> str | None:
    """A warning that a picture came back as one region though its parts differ, with what to try; None if not so."""
    share = f"{contrast.difference:.0%}" if contrast.difference >= 0.01 else f"{contrast.difference:.1%}"
    if contrast.is_visible:
        advice = [_finer(settings)]
        if reading is not None and reading.otherwise:  # more is wrong than the detail
            advice = [f"another reading: {reading.otherwise}", f"or {advice[0]}"]
        return (
            f"The picture shows contrast, but came back as one region: parts of it differ by {share} of full "
            f"intensity. Try {'; '.join(advice)}."
        )
    if contrast.is_hidden:
        low, high = (0.0, 1.0) if reading is None else reading.intensity_range
        ends = [low + share_of_range * (high - low) for share_of_range in contrast.used]
        return (
            f"The picture came back as one region, and its parts differ by only {share} of the intensities from "
            f"{low:.6g} to {high:.6g}. Try intensity_range=({ends[0]:.4g}, {ends[1]:.4g}), which its numbers fill."
        )
    return None


def _finer(settings: Settings) -> str:
    """What to try for a finer division."""
    if settings.uses_detail and settings.detail < 1:
        return f"a larger detail, such as detail=1 instead of {settings.detail:g}"
    if settings.preset != "photo":
        return "preset='photo', or a smaller beta and a larger count_weight"
    return "more sites, as with n_sites=2000"


def headline(found: dict[str, Any]) -> tuple[bool | None, str]:
    """Whether all is well, and the verdict in a few words, from a summary of a segmentation."""
    regions, probabilities = found.get("regions_converged"), found.get("probabilities_converged")
    if regions is None or probabilities is None:
        return None, UNKNOWN
    return regions and probabilities, HEADLINES[regions, probabilities].format(
        units=units(found["settings"]["connected"])
    )
