"""What the browser gets of the chains while they run: frames, whether they have converged, and refined outlines."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.app.rendering import match_labels, packed
from spinseg.app.run_loop import ChainRun, NotYet, RunLoop
from spinseg.image.features import site_sizes
from spinseg.sampler.chains import Chains
from spinseg.sampler.diagnostics import Diagnostics, diagnose
from spinseg.sampler.sampler import Sampler
from spinseg.segmentation.schedule import partitions_of_chains
from spinseg.segmentation.verdict import headline, verdict_sentences

DIAGNOSIS_SECONDS = 1.0  # between two diagnoses
MIN_DIAGNOSED_SWEEPS = 40
MAX_THINNED_DRAWS = 400  # of a chain, for diagnoses and maps on the page; exports use all draws
MAX_ESTIMATED_DRAWS = 100  # of a chain, for the partition that it alone gives
IDLE_RATIO = 19  # while the chains run, they have the processor for this many times as long as refining takes
POLL_SECONDS = 0.05
# In the JSON of a frame, "scene" counts how often the sites were made, "stage" counts the runs, and "began" is the
# number of sweeps before the present run. "outlined" is the sweep of the present run at which outlines were refined.
EMPTY_FRAME: dict[str, Any] = {"scene": 0, "stage": 0, "began": 0, "sweeps": 0, "n_sites": 0, "outlined": 0}
EMPTY_FRAME |= {"chains": []}


class Frames:
    """The latest frame of a session; `version` grows whenever there is a newer one."""

    def __init__(self) -> None:
        self.version = 0
        self.closed = False
        self.agreement: dict[str, Any] | None = None
        self.outlined: tuple[Sampler, int] | None = None  # whose draws, after how many sweeps, outlines are made from
        self.labels: list[NDArray[np.int32]] = []  # of each chain, in numbers that clusters keep from frame to frame
        self._latest: tuple[ChainRun, dict[str, Any]] | None = None
        self._changed = asyncio.Condition()

    def record(self, run: ChainRun, header: dict[str, Any], starts: list[str]) -> None:
        """Record where the chains of a run are; they must rest meanwhile."""
        matched: list[NDArray[np.int32]] = []
        for c, labels in enumerate(run.labels()):  # first to the first chain, so that chains can be compared
            matched.append(match_labels(labels, *matched[:1], *self.labels[c : c + 1]))
        self.labels = matched
        chains = [
            {
                "start": starts[c],
                "n_clusters": runner.n_clusters,
                "log_posterior": round(runner.log_posterior, 2),
                "labels": packed(matched[c]),
                "spins": packed(run.sampler.records.spin[run.shown][c]),
            }
            for c, runner in enumerate(run.sampler.runners[run.shown])
        ]
        counts = {"sweeps": run.n_sweeps, "most_sweeps": run.sampler.max_sweeps}
        counts |= {"n_sites": run.problem.model.graph.n_sites, "n_details": run.problem.model.n_components}
        self._latest = run, header | counts | {"chains": chains}

    def frame(self, run_number: int, n_sent: int) -> dict[str, Any]:
        """The latest frame, with the traces from sweep `n_sent` on if `run_number` is still the present run."""
        if self._latest is None:
            return dict(EMPTY_FRAME)
        run, frame = self._latest
        first = n_sent if run_number == frame["stage"] else 0
        traces: dict[str, Any] = {"from": first}
        for name in ("log_posterior", "n_clusters"):
            shown = getattr(run.sampler.records, name)[run.shown, first : frame["sweeps"]]
            traces[name] = np.round(shown, 2).tolist()
        sampler, n_outlined = self.outlined or (None, 0)
        outlined = n_outlined if sampler is run.sampler else 0
        return frame | {"agreement": self.agreement, "outlined": outlined, "traces": traces}

    async def wait(self, version: int, seconds: float) -> None:
        """Wait until there is a version other than this one, but not longer than `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self.version != version or self.closed)

    async def notify(self) -> None:
        """Wake all who wait."""
        self.version += 1
        async with self._changed:
            self._changed.notify_all()


async def diagnose_until_current(loop: RunLoop, frames: Frames, in_thread: Callable[..., Awaitable[Any]]) -> None:
    """Diagnose the chains about once a second, until all that was drawn is diagnosed."""
    diagnosed: tuple[ChainRun, int] | None = None
    while not frames.closed:
        run = loop.chain_run
        if run is None or run.chains < 2 or run.n_sweeps < MIN_DIAGNOSED_SWEEPS:
            return
        if diagnosed == (run, run.n_sweeps):
            return
        with contextlib.suppress(NotYet):  # the chains were restarted meanwhile
            run, draws = await loop.draws()
            thinned = draws.thinned(MAX_THINNED_DRAWS * draws.n_components)
            found = await in_thread(diagnosed_chains, run, thinned)
            diagnosed = run, draws.n_sweeps
            if run is loop.chain_run:
                frames.agreement = agreement_shown(found, run, draws.n_sweeps)
                await frames.notify()
        await asyncio.sleep(DIAGNOSIS_SECONDS)


def diagnosed_chains(run: ChainRun, draws: Chains) -> Diagnostics:
    """What the segmentation that these draws give would say of the chains."""
    problem, few = run.problem, draws.thinned(MAX_ESTIMATED_DRAWS * draws.n_components)
    alone = partitions_of_chains(few, problem.model, problem.preset, run.seed)
    return diagnose(draws, problem.model.graph, alone, site_sizes(problem.sites))


def agreement_shown(found: Diagnostics, run: ChainRun, sweeps: int) -> dict[str, Any]:
    """What the web app says of the chains: whether the regions and their probabilities have converged."""
    problem = run.problem
    numbers: dict[str, Any] = {"ess": _json_number(found.ess), "largest_r_hat": _json_number(found.r_hat)}
    numbers |= {"agreement": _json_number(found.agreement), "standard_error": _json_number(found.standard_error)}
    numbers |= {"r_hat": {name: _json_number(row.r_hat) for name, row in found.table.items()}}
    unknown = problem.preset.not_validated(problem.picture, problem.model.seeds is not None)
    summary: dict[str, Any] = {"settings": {"connected": problem.preset.connected}}
    summary |= {
        "regions_converged": found.partition_converged,
        "probabilities_converged": found.probabilities_converged,
    }
    # Without a schedule: the user decides when to stop.
    verdict = verdict_sentences(found, problem.preset, sweeps, not_validated=unknown)
    return numbers | {"converged": found.converged, "headline": headline(summary)[1], "verdict": verdict}


def _json_number(value: float | None) -> float | str | None:
    """A number as JSON can hold it."""
    return value if value is None or np.isfinite(value) else "inf"


class Outlines:
    """The sites of a session with refined outlines, if its settings refine any; `frames` tell when they were made.

    A refined site is the same site with other pixels, so that labels of sites are labels of refined ones, too.
    """

    def __init__(self, loop: RunLoop, frames: Frames, in_thread: Callable[..., Awaitable[Any]]) -> None:
        self._loop, self._frames, self._in_thread = loop, frames, in_thread
        self._latest: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None  # sites before and after

    def of(self, sites: NDArray[np.int32]) -> NDArray[np.int32]:
        """These sites with the latest outlines; as they are if there are none."""
        latest = self._latest
        return latest[1] if latest is not None and np.array_equal(latest[0], sites) else sites

    async def refine_until_current(self) -> None:
        """Refine the outlines until they are those of all that was drawn: now and then while the chains run."""
        while not self._frames.closed:
            run, began = self._loop.chain_run, time.monotonic()
            if run is None or not run.n_sweeps or not run.problem.preset.refines(run.problem):
                return
            if self._frames.outlined == (run.sampler, run.n_sweeps):
                return
            with contextlib.suppress(NotYet):  # the chains were restarted meanwhile
                run, draws = await self._loop.draws()
                if self._loop.running and not run.is_quick_to_estimate(draws):
                    return
                self._latest = run.problem.sites, await self._in_thread(_refined_sites, run, draws)
                self._frames.outlined = run.sampler, draws.n_sweeps
                await self._frames.notify()
            due = time.monotonic() + IDLE_RATIO * (time.monotonic() - began)
            while self._loop.state == "running" and time.monotonic() < due:
                await asyncio.sleep(POLL_SECONDS)


def _refined_sites(run: ChainRun, draws: Chains) -> NDArray[np.int32]:
    """The sites of the working image as an export would outline them, if the working image were the image."""
    problem = run.problem.at_working_size()
    return problem.outlined_sites(draws, problem.preset.partition(draws, problem, run.seed))
