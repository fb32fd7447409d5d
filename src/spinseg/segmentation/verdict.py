"""How far to trust a segmentation, in a few sentences."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.image.contrast import Contrast
from spinseg.image.layout import Reading
from spinseg.image.picture import Picture
from spinseg.inference.chains import Chains
from spinseg.inference.convergence import R_HAT_LIMIT, SETTLED_ERROR
from spinseg.inference.diagnostics import Diagnostics
from spinseg.model.mixture import Mixture
from spinseg.model.posterior import Model
from spinseg.partition.contingency import contingency_table, rand_index_of
from spinseg.segmentation.estimate import estimated_partition
from spinseg.segmentation.presets import PHOTO
from spinseg.segmentation.settings import Settings

SETTLED_AGREEMENT = 0.95  # of the regions that chains give alone, as a share of pairs of pixels
# These settings leave the posterior as it is.
CALIBRATION_IGNORES = {"detail", "estimate", "moves", "lam", "init", "sweeps", "seconds", "chains", "start_label"}
UNSEEN = "No number can show divisions that no chain visited."

# By whether the regions are settled, and whether their probabilities are.
HEADLINES = {
    (True, True): "The regions and their probabilities are settled.",
    (True, False): "The regions are settled, but their probabilities are not yet.",
    (False, True): "Several divisions are about as good; their probabilities are settled.",
    (False, False): "Neither the regions nor their probabilities are settled.",
}
# By whether the chains agree.
HEADLINES_OF_CHAINS = {
    True: "The chains agree with each other.",
    False: "The chains do not agree yet: the segmentation shown is the best that was found, but its probabilities "
    "describe partitions near it, not the whole posterior.",
    None: "There is not enough to tell whether the chains agree.",
}


def agreement_of_chains(
    drawn: Chains, model: Model | Mixture, settings: Settings, seed: int, area: NDArray[np.int64]
) -> float | None:
    """How alike the regions are that each chain alone gives: the Rand index of pixels, its mean over pairs of chains.

    None for one chain or without draws. `area` has the pixels of each site.
    """
    if drawn.n_chains < 2 or not drawn.labels.size:
        return None
    found = [estimated_partition(drawn, model, settings, seed, chain) for chain in range(drawn.n_chains)]
    pairs = [(a, b) for a in range(len(found)) for b in range(a)]
    return float(np.mean([rand_index_of(contingency_table(found[a], found[b], area)) for a, b in pairs]))


def verdict_of_regions(diagnostics: Diagnostics, agreement: float | None, sweeps: int, automatic: bool = False) -> str:
    """Whether the regions are settled, and whether their probabilities are, after so many sweeps.

    `automatic` says that the program chose their number. It made as many as it ever does where the probabilities are
    not settled, so that the advice is another one than to make more.
    """
    error, r_hat = diagnostics.separation_error, diagnostics.r_hat
    if agreement is None or error is None or r_hat is None:
        return diagnostics.verdict
    alike = f"chains from different starts, each alone, judge {agreement:.0%} of the pairs of pixels alike"
    if agreement >= SETTLED_AGREEMENT:
        regions = f"The regions are settled: {alike}."
    else:
        regions = (
            f"The regions are not settled: {alike}. Other divisions are about as good as this one; "
            "the boundary probabilities say where."
        )
    return f"{regions} {verdict_of_probabilities(diagnostics, sweeps, automatic)}"


def verdict_of_probabilities(diagnostics: Diagnostics, sweeps: int, automatic: bool = False) -> str:
    """Whether the probabilities are settled after so many sweeps; `automatic` as in `verdict_of_regions`."""
    error, r_hat = diagnostics.separation_error, diagnostics.r_hat
    if error is None or r_hat is None:
        return diagnostics.verdict
    largest = f"{r_hat:.2f}" if np.isfinite(r_hat) else "infinite"
    exact = f"their standard error is about {error:.3f}, and R-hat is {largest}"
    if is_converged(diagnostics):
        return f"The probabilities are settled: {exact}.{_single_details(diagnostics)} {UNSEEN}"
    advice = _advice(error, r_hat, automatic)
    wanted = f"at most {SETTLED_ERROR} and {R_HAT_LIMIT} are wanted"
    return f"The probabilities are not settled after {sweeps:,} sweeps: {exact}; {wanted}. {advice}"


def _single_details(diagnostics: Diagnostics) -> str:
    """A clause for draws of a mixture whose single details have not settled, though their mean has."""
    alone = [row.r_hat_of_components for row in diagnostics.table.values() if row.r_hat_of_components is not None]
    if not alone or max(alone) <= R_HAT_LIMIT:
        return ""
    largest = f"up to {max(alone):.1f}" if np.isfinite(max(alone)) else "infinite"
    return f" That holds for all details together, not for each: of one alone, R-hat is {largest}."


def is_converged(diagnostics: Diagnostics) -> bool | None:
    """Whether R-hat is at most 1.05 and the probabilities are exact to 0.02; None where one cannot tell."""
    error, r_hat = diagnostics.separation_error, diagnostics.r_hat
    return None if error is None or r_hat is None else r_hat <= R_HAT_LIMIT and error <= SETTLED_ERROR


def _advice(error: float, r_hat: float, automatic: bool) -> str:
    """What to do about probabilities that are not settled."""
    if automatic:
        return (
            f"By default no more are made: take probabilities that differ by less than {2 * error:.2f} for equal, "
            "or give more chains, of which four times as many halve the error."
        )
    if r_hat > R_HAT_LIMIT:
        return "More sweeps help if the log posterior of a chain still rises; where each is level, give more chains."
    return "Four times as many sweeps halve the error."


def verdict_sentence(diagnostics: Diagnostics, start: Any, n_chains: int) -> str:
    """Whether the chains agree, in plain language; `start` is the setting `init`."""
    if not isinstance(start, str) or start not in ("greedy", "coarse") or n_chains < 2:
        return diagnostics.verdict
    return f"{diagnostics.verdict} All of them started from one place, so other modes may have been missed."


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
    return f" These probabilities have not been checked against people for {kind}." if kind else ""


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
    agreement, converged, agree = found.get("agreement"), found.get("converged"), found.get("agree")
    if agree is None or agreement is None or converged is None:
        return agree, HEADLINES_OF_CHAINS[agree]
    is_settled = agreement >= SETTLED_AGREEMENT
    return is_settled and converged, HEADLINES[is_settled, converged]
