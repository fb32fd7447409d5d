"""How long to sample: a number of sweeps or of seconds, or until the chains have converged."""

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._run.progress import Progress, Report, Stage, reporting, stage_of
from spinseg._validation import check_real, invalid
from spinseg.model.posterior import Model
from spinseg.sampler.chains import Chains, SamplingInterrupted
from spinseg.sampler.convergence import ERROR_LIMIT, R_HAT_LIMIT
from spinseg.sampler.diagnostics import Diagnostics, may_stop
from spinseg.sampler.plan import warn_of_unreachable
from spinseg.sampler.sampler import MAX_LABELS, Sampler, check_length, sample, thin_to_fit
from spinseg.sampler.starts import listed_starts
from spinseg.segmentation.verdict import shortfalls

if TYPE_CHECKING:
    from spinseg.segmentation.presets.preset import Preset

# Sweeps of automatic chains: those discarded, those between two checks, and the most.
BURN_IN, ROUND_SWEEPS, MAX_SWEEPS = 40, 40, 400
USUAL = {"start_label": 1, "channel_axis": "auto", "channel_kind": "auto"}
USUAL |= dict.fromkeys(("intensity_range", "mask", "seeds", "outlines", "one_each"))
FEWEST_SWEEPS = 4  # in a given time


class Schedule(NamedTuple):
    """The number of chains, and of sweeps or of seconds; with neither, chains run until they have converged."""

    chains: int
    sweeps: int | None = None
    seconds: float | None = None

    @classmethod
    def of(
        cls, preset: "Preset", chains: int | None = None, sweeps: int | None = None, seconds: float | None = None
    ) -> "Schedule":
        """The schedule asked for; the preset decides what is None."""
        if seconds is not None:
            if sweeps is not None:
                invalid("seconds", "be None if sweeps are given", seconds)
            check_real("seconds", seconds, above=0)
        elif sweeps is None:
            sweeps = preset.usual_sweeps
        chains = preset.usual_chains if chains is None else chains
        check_length(1 if sweeps is None else sweeps, chains)
        starts = None if isinstance(preset.init, str) else listed_starts(preset.init)
        if starts is not None and len(starts) != chains:
            invalid("init", f"be one start, or one for each of {chains} chains", f"{len(starts)} starts")
        return cls(int(chains), None if sweeps is None else int(sweeps), seconds)

    @property
    def is_automatic(self) -> bool:
        """Whether chains run until they have converged."""
        return self.sweeps is None and self.seconds is None

    def arguments(self, preset: "Preset", n_sweeps: int, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `segment` that repeat `n_sweeps` sweeps, without those that are as usual."""
        sweeps = n_sweeps if self.seconds is not None else self.sweeps
        found: dict[str, Any] = {} if self.chains == preset.usual_chains else {"chains": self.chains}
        found |= {} if sweeps is None or sweeps == preset.usual_sweeps else {"sweeps": sweeps}
        found |= {name: given[name] for name, usual in USUAL.items() if given.get(name, usual) != usual}
        return found | {"rng": seed}


def sample_posterior(
    model: Model,
    preset: "Preset",
    schedule: Schedule,
    seed: int,
    area: NDArray[np.int64] | None = None,
    began: float | None = None,
    **options: Any,
) -> Chains:
    """Chains of a posterior, with `options` of `sample`.

    The first half of the sweeps is burn-in. Automatic chains run until more sweeps are of no use, or for MAX_SWEEPS,
    after a burn-in of BURN_IN. `area` is the number of pixels of each site. A time that the schedule gives has begun at
    `began`, by `time.monotonic`, or begins now. For a large graph fewer draws are kept.
    """
    sampler = (schedule.chains, preset.moves, preset.lam, preset.init)
    stage = stage_of(options.get("progress"))
    n_labels = schedule.chains * model.n_components * model.graph.n_sites  # of one draw of every chain
    if schedule.seconds is not None:
        spent = 0.0 if began is None else time.monotonic() - began
        most = max(FEWEST_SWEEPS, MAX_LABELS // n_labels)
        return _sample_for(schedule.seconds - spent, stage, model, most, *sampler, rng=seed, **options)
    sweeps, burn_in = schedule.sweeps, schedule.sweeps // 2 if schedule.sweeps else BURN_IN
    if sweeps is None:
        sweeps = MAX_SWEEPS
        options |= {"until": _until_converged(model, preset, seed, area, stage), "check_every": ROUND_SWEEPS}
    stage("sampling", (BURN_IN + ROUND_SWEEPS) / MAX_SWEEPS if schedule.is_automatic and schedule.chains > 1 else 1.0)
    thin = thin_to_fit(sweeps - burn_in, n_labels)
    return sample(model, sweeps, *sampler, burn_in=burn_in, thin=thin, rng=seed, **options)


def _sample_for(
    seconds: float, stage: Stage, *args: Any, progress: bool | Report | None = None, **options: Any
) -> Chains:
    """Chains that sample for a time, FEWEST_SWEEPS at least; the first half of their sweeps is burn-in.

    The arguments are those of `Sampler`.
    """
    began, end = time.monotonic(), math.inf

    with reporting(progress) as report:

        def told(latest: Progress) -> None:
            now, fewest = time.monotonic(), FEWEST_SWEEPS * latest.total // sampler.max_sweeps  # of all chains together
            expected = latest.done if now >= end else round(latest.done * (end - began) / max(now - began, 1e-9))
            report(latest._replace(total=max(fewest, min(expected, latest.total))))

        sampler = Sampler(*args, progress=told, **options)
        warn_of_unreachable(sampler.unreachable, stacklevel=4)
        end = began + seconds
        stage("sampling", 1.0)
        try:
            sampler.advance(1)
            while left := sampler.max_sweeps - sampler.n_sweeps:
                now, done = time.monotonic(), sampler.n_sweeps
                enough = int((end - now) / max(now - began, 1e-9) * done)  # the first sweeps are slower than the others
                if enough < 1 and done >= FEWEST_SWEEPS:
                    break
                sampler.advance(max(1, min(enough, done, left)))
        except KeyboardInterrupt:
            raise SamplingInterrupted(sampler.chains.after(sampler.n_sweeps // 2)) from None
    return sampler.chains.after(sampler.n_sweeps // 2)


def _until_converged(
    model: Model, preset: "Preset", seed: int, area: NDArray[np.int64] | None, stage: Stage
) -> Callable[[Chains], bool]:
    """Whether automatic chains may stop, as a function of them that also says what is missing."""
    compared = partial(compared_partitions, model=model, preset=preset, seed=seed)

    def until(drawn: Chains) -> bool:
        known, n_sweeps = list[Diagnostics](), drawn.n_sweeps
        stage("checking convergence", n_sweeps / MAX_SWEEPS)
        if may_stop(drawn, model.graph, compared, area, known.append):
            return True
        words = "".join(f": {shortfall}" for shortfall in shortfalls(known[0])[:1])
        stage(f"sampling{words}", expected_sweeps(known[0], n_sweeps) / MAX_SWEEPS)
        return False

    return until


def expected_sweeps(found: Diagnostics, n_sweeps: int) -> int:
    """About how many sweeps automatic chains take that have these diagnostics after `n_sweeps`.

    Variances, and what R-hat has above 1, fall with the number of draws. If only the agreement is too small, half the
    standard error ends sampling, too.
    """
    if found.standard_error is None:  # one chain never stops early
        return MAX_SWEEPS
    limit = ERROR_LIMIT if found.agreement is None else ERROR_LIMIT / 2
    ratio = max((found.standard_error / limit) ** 2, ((found.r_hat or 1) - 1) / (R_HAT_LIMIT - 1))
    expected = max(n_sweeps + 1, min(BURN_IN + ratio * (n_sweeps - BURN_IN), MAX_SWEEPS))
    return min(-int(-expected // ROUND_SWEEPS) * ROUND_SWEEPS, MAX_SWEEPS)


def compared_partitions(drawn: Chains, model: Model, preset: "Preset", seed: int) -> list[NDArray[np.int32]] | None:
    """The partition from all draws, and those from the first and the second half of each chain; None for one chain.

    Where two partitions are about as good, an estimate from all draws of a chain is one or the other by chance; halves
    show it more often. The best partition visited is one for each chain.
    """
    n_cycles = drawn.labels.shape[1] // drawn.n_components
    if drawn.n_chains < 2 or n_cycles == 0:
        return None
    middle = n_cycles // 2 * drawn.n_components
    halves = [slice(0, middle), slice(middle, None)] if middle and preset.estimate != "best" else [slice(None)]
    parts = [(drawn.with_draws(half), chain) for half in halves for chain in range(drawn.n_chains)]
    whole = preset.estimated(drawn, model, seed)
    return [whole, *(preset.estimated(part, model, seed, chain) for part, chain in parts)]
