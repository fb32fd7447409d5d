"""A session: one image, the settings chosen for it, its chains, and their results."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import InvalidInput, invalid
from spinseg.app.controls import UserSettings
from spinseg.app.frames import MAX_THINNED_DRAWS, Frames, Outlines, diagnose_until_current
from spinseg.app.rendering import (
    MAX_PACKED_LABELS,
    displayed_answers,
    displayed_boundaries,
    displayed_image,
    displayed_sites,
    match_labels,
    packed,
)
from spinseg.app.run_loop import BackgroundTask, ChainRun, NotYet, RunLoop
from spinseg.image.contrast import Contrast, contrast_of
from spinseg.image.picture import Picture
from spinseg.partition.pairs import co_clustering
from spinseg.sampler.starts import OPPOSITE_STARTS
from spinseg.segmentation.presets.preset import Preset, chosen_preset
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.verdict import one_region_warning

FORBIDDEN = "This prior forbids the partitions that the chains had reached, so the chains were restarted."
CUT = "A superpixel was cut between two seeds, so the chains were restarted."
OTHER_SITES = "There are other superpixels now, so the chains were restarted."
NO_FILE = "Seeds are part of the Python code. For the command they would be a file, --seeds."
NO_COMMAND = "The settings were changed while the chains ran. The Python code repeats that; one command line cannot."


class Threads(NamedTuple):
    """Threads for chains, and for all other work that takes long."""

    chains: Executor
    others: Executor

    async def do(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """The result of some work that is not a chain's."""
        return await asyncio.get_running_loop().run_in_executor(self.others, work, *arguments)


class Session:
    """One image and its chains; `source` is its name in the Python code and the command that repeat the run.

    `reading_options` are the keywords `channel_axis` and `intensity_range` with which the image was read.
    `loop` advances the chains, `frames` holds what the browser displays of them.
    """

    def __init__(
        self, picture: Picture, source: str, threads: Threads, reading_options: Mapping[str, Any] | None = None
    ) -> None:
        self.picture, self.source, self.threads = picture, source, threads
        self.reading_options = dict(reading_options or {})
        self.n_pixels = int(np.prod(picture.shape))
        self.image = displayed_image(picture)
        self.settings: UserSettings | None = None
        self.frames = Frames()
        self.loop = RunLoop(threads.chains, self._record, self._announce)
        self._diagnosis = BackgroundTask(partial(diagnose_until_current, self.loop, self.frames, threads.do), self.loop)
        self._outlines = Outlines(self.loop, self.frames, threads.do)
        self._refinement = BackgroundTask(self._outlines.refine_until_current, self.loop)
        self._pending_chains: list[int] = []  # of settings that are being applied
        self._earlier: list[tuple[int, str]] = []  # sweeps and Python of the runs that the present run continues
        self._shown_detail: float | None = None  # of the last result
        self._starts: list[str] = []  # of the chains
        self._header: dict[str, Any] = {"scene": 0, "stage": 0}

    @property
    def n_chains(self) -> int:
        """The number of chains, including those of settings that are being applied."""
        return max(0 if self.settings is None else self.settings.chains, *self._pending_chains, 0)

    def frame(self, run_number: int, n_sent: int) -> dict[str, Any]:
        """The latest frame, as in `Frames`, with the state of the loop."""
        state = {"state": self.loop.state, "per_second": round(self.loop.sweeps_per_second, 1)}
        return self.frames.frame(run_number, n_sent) | state

    def close(self) -> None:
        """Stop the chains for good."""
        self.frames.closed = True
        self.loop.close()

    # --- settings ---

    async def apply(self, settings: UserSettings) -> dict[str, Any]:
        """Apply new settings: the chains continue under the new posterior if they can, or else restart."""
        self._pending_chains.append(settings.chains)
        try:
            async with self.loop.lock:
                if settings == self.settings:
                    return {"restarted": False, "note": None}
                return await self._apply(settings)
        finally:
            self._pending_chains.remove(settings.chains)

    async def _apply(self, settings: UserSettings) -> dict[str, Any]:
        before, run = self.settings, self.loop.chain_run
        if before is not None and run is not None and before.without_detail() == settings.without_detail():
            problem = replace(run.problem, preset=settings.chosen(self.n_pixels))  # draws are of every detail
            self.settings, self.loop.chain_run = settings, run._replace(problem=problem)
            await self._announce()
            return {"restarted": False, "note": None}
        earlier, labels = self._earlier, None
        if before is not None and run is not None and not settings.needs_restart(before):
            earlier = [*earlier, (run.n_sweeps, run.python_line(self.source))] if run.n_sweeps else earlier
            labels = run.labels() if earlier else None
        new = await self.threads.do(self._new_run, settings, labels, settings.seed + len(earlier))
        same_sites = run is not None and np.array_equal(run.problem.sites, new.problem.sites)
        note = None
        if before is not None and labels is not None and not new.continued:
            note = FORBIDDEN if same_sites else CUT if settings.seeds != before.seeds else OTHER_SITES
        self.settings, self._earlier = settings, earlier if new.continued else []
        self._header["scene"] += not same_sites
        await self._begin(new, note)
        return {"restarted": not new.continued, "note": note}

    def _new_run(self, settings: UserSettings, labels: NDArray[np.int32] | None, seed: int) -> ChainRun:
        """A run under new settings: from `labels`, which keep new seeds then, if the prior allows it; else anew."""
        preset, before = settings.chosen(self.n_pixels), self.loop.chain_run
        problem, seeds = None, dict(settings.seeds) or None
        if before and self.settings and settings.posterior_key() == self.settings.posterior_key():
            problem = before.problem
            if settings.seeds != self.settings.seeds:
                problem = problem.with_seeds(seeds)
        if problem is not None:
            problem = replace(problem, preset=preset, model=problem.model.with_prior(preset.prior))
        else:
            problem = prepare(self.picture, preset, seeds=seeds)
            if problem.model.graph.n_sites >= MAX_PACKED_LABELS:  # the number of sites is only about that asked for
                invalid("n_sites", f"make less than {MAX_PACKED_LABELS} sites", problem.model.graph.n_sites)
            provenance = problem.provenance | {"source": self.source, **self.reading_options}
            problem = replace(problem, provenance=provenance)
        if labels is not None and labels.shape[1] == problem.model.graph.n_sites:
            with contextlib.suppress(InvalidInput):  # which says that no such start is allowed
                return ChainRun.create(problem, settings.chains, seed, labels)
        return ChainRun.create(problem, settings.chains, settings.seed)

    async def restart(self) -> None:
        """Start the chains again, with the same settings and seed."""
        async with self.loop.lock:
            run, settings = self.loop.prepared(), self.settings
            assert settings is not None
            problem = replace(run.problem, preset=settings.chosen(self.n_pixels))
            self._earlier = []
            new = await self.threads.do(ChainRun.create, problem, settings.chains, settings.seed)
            await self._begin(new, None)

    async def _begin(self, run: ChainRun, note: str | None) -> None:
        """Replace the present run by a new one."""
        assert self.settings is not None
        init: Any = self.settings.chosen(self.n_pixels).init
        starts = OPPOSITE_STARTS if init == "opposite" else [init] if isinstance(init, str) else init
        self._starts = [starts[c % len(starts)] for c in range(run.chains)]
        first_sweep = sum(n_sweeps for n_sweeps, _ in self._earlier)
        self._header |= {"stage": self._header["stage"] + 1, "began": first_sweep, "note": note}
        if not run.continued:
            self.frames.labels = []
        await self.threads.do(self._record, run)
        self.loop.chain_run, self.frames.agreement, self.frames.outlined = run, None, None
        await self._announce()

    def _record(self, run: ChainRun) -> None:
        self.frames.record(run, self._header, self._starts)

    async def _announce(self) -> None:
        self._diagnosis.start()
        self._refinement.start()
        await self.frames.notify()

    # --- results ---

    def sites(self) -> NDArray[np.int32]:
        """The site of each displayed pixel."""
        return displayed_sites(self.loop.prepared().problem.sites, self.image.shape)

    def outlines(self) -> NDArray[np.int32]:
        """The site of each displayed pixel, with refined outlines as soon as there are any."""
        return displayed_sites(self._outlines.of(self.loop.prepared().problem.sites), self.image.shape)

    async def result(self, detail: float | None = None) -> dict[str, Any]:
        """The segmentation as an export would have it now, or as it would be at another detail.

        Raises NotYet while the chains run and it would take long, and for a detail where draws have none.
        """
        run, draws = await self.loop.draws()
        if self.loop.running and not run.is_quick_to_estimate(draws):
            raise NotYet
        problem = run.problem
        if detail is not None:
            if draws.n_components == 1:  # the preset was changed since the browser asked
                raise NotYet
            problem = replace(problem, preset=chosen_preset(problem.preset, {"detail": detail}))
        reference = self.frames.labels[:1]  # taken before the await: the sites may be replaced meanwhile
        preset, shown = problem.preset, getattr(problem.preset, "detail", None)
        is_new = detail is None and shown != self._shown_detail
        async with self.loop.lock if is_new else contextlib.nullcontext():  # the chains rest, so that it is quick
            partition = await self.threads.do(preset.partition, draws, problem, run.seed)
        if detail is None:
            self._shown_detail = shown
        warning = run.sampler.unreachable
        if not partition.any():
            warning = await self.threads.do(self._warning, preset) or warning
        facts = {"n_regions": int(partition.max()) + 1, "cut": getattr(preset, "regions", preset.connected)}
        facts |= {"sweeps": draws.n_sweeps, "detail": shown, "estimate": preset.estimate, "warning": warning}
        return facts | {"labels": packed(match_labels(partition, *reference))}

    def _warning(self, preset: Preset) -> str | None:
        """What to try where the image came back as one region."""
        return one_region_warning(self._contrast, self.picture.reading, preset)

    @cached_property
    def _contrast(self) -> Contrast:
        return contrast_of(self.picture)

    async def boundaries(self) -> NDArray[np.uint8]:
        """The boundary probability at each displayed pixel, scaled to 0..255."""
        run, draws = await self.loop.draws()
        sites = self._outlines.of(run.problem.sites)

        def paint() -> NDArray[np.uint8]:
            probability = run.problem.boundary_probability(sites, draws.thinned(MAX_THINNED_DRAWS))
            return displayed_boundaries(probability, self.image.shape)

        return await self.threads.do(paint)

    async def together(self, site: int) -> NDArray[np.uint8]:
        """The probability that each site shares a cluster with this one, scaled to 0..255."""
        _, draws = await self.loop.draws()
        probability = await self.threads.do(co_clustering, draws.thinned(MAX_THINNED_DRAWS).labels, site)
        return np.rint(255 * probability).astype(np.uint8)

    async def answers(self, n: int) -> list[dict[str, str]]:
        """Single draws, as `displayed_answers` gives them."""
        run, draws = await self.loop.draws()
        return await self.threads.do(displayed_answers, run.problem, self._outlines.of(run.problem.sites), draws, n)

    async def segmentation(self) -> Segmentation:
        """The segmentation that the Python code of `repeat` gives."""
        run, draws = await self.loop.draws()
        found = partial(run.problem.segmentation, preceding_code=tuple(line for _, line in self._earlier))
        return await self.threads.do(found, draws, run.seed, run.schedule)

    async def repeat(self) -> dict[str, str | None]:
        """The Python code, and the command line if one is enough, that give the same result."""
        async with self.loop.lock:
            run, settings = self.loop.sampled(), self.settings
            lines = ["import spinseg as ss", *(line for _, line in self._earlier), run.python_line(self.source)]
            found: dict[str, str | None] = {"python": "\n".join(lines), "command": None, "note": NO_COMMAND}
            if settings is not None and settings.seeds:
                found |= {"note": NO_FILE}
            elif not self._earlier and settings is not None:
                command = settings.command(self.source, self.n_pixels, run.n_sweeps, self.reading_options)
                found |= {"command": command, "note": None}
            return found
