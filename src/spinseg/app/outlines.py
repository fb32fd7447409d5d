"""The outlines that the page displays: refined as those of exports are, at the size of the page."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg.app.frames import Frames
from spinseg.app.run_loop import ChainRun, NotYet, RunLoop
from spinseg.sampler.chains import Chains

IDLE_RATIO = 19  # while the chains run, they have the processor for so many times as long as refining takes
POLL_SECONDS = 0.05


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
