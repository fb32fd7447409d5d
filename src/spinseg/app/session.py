"""Sessions: one image each, with the settings chosen for it, its chains and their results; and limits of them all."""

import asyncio
import contextlib
import ctypes
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import InvalidInput
from spinseg.app.chain_run import MAX_PACKED_LABELS, MAX_THINNED_DRAWS, ChainRun, match_labels, packed
from spinseg.app.controls import RESTARTING, UserSettings, controls
from spinseg.app.run_loop import MAX_RUNNING_CHAINS, NotYet, RunLoop
from spinseg.app.words import Refused, in_user_words
from spinseg.image.contrast import Contrast, contrast_of
from spinseg.image.picture import Picture
from spinseg.image.render import brightened
from spinseg.image.seeds import SeedPoints
from spinseg.image.working import reduce_blocks, working_copy
from spinseg.partition.pairs import co_clustering
from spinseg.sampler.chains import Chains
from spinseg.sampler.starts import with_seeds
from spinseg.segmentation.presets.preset import chosen_preset
from spinseg.segmentation.problem import Problem, prepare
from spinseg.segmentation.report.pictures import draw_words, spread_draws
from spinseg.segmentation.result import Segmentation
from spinseg.segmentation.verdict import one_region_warning, unit_of

MAX_SESSIONS, MAX_TOTAL_PIXELS = 40, 150_000_000
STOP_SECONDS, CLOSE_SECONDS = 2.0, 30.0  # after the last listener left: the chains stop, the session is closed
MAX_DISPLAYED_PIXELS = 300_000
MAX_UNDONE = 10  # strokes that can be removed without a restart of the chains
N_CONDITIONED = 2  # draws of each chain and level of detail that scribbles are applied to at once
FULL = "{running} chains are running already, and at most {most} may run at a time: pause or close another image first."
FORBIDDEN = "This prior forbids the segmentations that the chains had reached, so the chains were restarted."
CUT = "A superpixel was cut between two colors, so the chains were restarted."
WHOLE = "Superpixels that were cut between two colors are whole again, so the chains were restarted."
REMOVED = "Scribbles were removed, so the chains were restarted."
BACK = "Scribbles were removed, so the chains are those from before them."
OTHER_SITES = "There are other superpixels now, so the chains were restarted."
NO_FILE = "Scribbles are part of the Python code. For the command they would be a file, --seeds."
NO_COMMAND = "The settings were changed while the chains ran. The Python code repeats that; one command line cannot."


class Session:
    """One image and its chains; `source` is its name in the Python code and the command that repeat the run.

    `reading_options` are the keywords `channel_axis` and `intensity_range` with which the image was read. `loop`
    advances the chains. `n_listeners` counts the browsers that listen, and `left_at` is when the last of them left.
    """

    def __init__(self, picture: Picture, source: str, **reading_options: Any) -> None:
        self.picture, self.source, self.reading_options = picture, source, reading_options
        self.n_pixels = int(np.prod(picture.shape))
        self.image = displayed_image(picture)
        self.loop = RunLoop()
        self.n_listeners, self.left_at = 0, time.monotonic()
        self._pending_chains: list[int] = []  # of settings that are being applied
        self._shown_detail: float | None = None  # of the last result
        self._whole: Problem | None = None  # the present posterior before superpixels were cut, if there was one
        # The runs before each of the latest changes of scribbles, with what was known of their agreement.
        self._before: list[tuple[ChainRun, dict[str, Any] | None]] = []

    @property
    def n_chains(self) -> int:
        """The number of chains, including those of settings that are being applied."""
        run = self.loop.chain_run
        return max(0 if run is None else run.settings.chains, *self._pending_chains, 0)

    # --- settings ---

    async def apply(self, settings: UserSettings) -> None:
        """Apply new settings: the chains continue under the new posterior if they can, or else restart."""
        self._pending_chains.append(settings.chains)
        try:
            async with self.loop.lock:
                run = self.loop.chain_run
                changes = {"preset"} if run is None else settings.changes(run.settings)
                if run is not None and changes == {"detail"}:  # draws are of every detail
                    self.loop.change_detail(self._at_detail(run, settings))
                elif run is not None and changes and changes <= {"detail", "seeds"}:
                    await self._change_scribbles(run, settings)
                elif changes:
                    self._before.clear()
                    await self.loop.begin(await asyncio.to_thread(self._new_run, settings, self._reporter()))
        finally:
            self.loop.report(None)
            self._pending_chains.remove(settings.chains)

    def _at_detail(self, run: ChainRun, settings: UserSettings) -> ChainRun:
        """A run under settings that differ from its own in the detail alone."""
        problem = replace(run.problem, preset=settings.preset_for(self.picture))
        return run._replace(problem=problem, settings=settings)

    async def _change_scribbles(self, run: ChainRun, settings: UserSettings) -> None:
        """Continue with other scribbles; if some were removed, with the run from before them and all its draws."""
        same = [i for i, (kept, _) in enumerate(self._before) if settings.changes(kept.settings) <= {"detail"}]
        if not same:
            following = await asyncio.to_thread(self._new_run, settings, self._reporter())
            self._before = [*self._before, (run, self.loop.agreement)][-MAX_UNDONE:]
            return await self.loop.begin(following)
        kept, agreement = self._before[same[-1]]
        del self._before[same[-1] :]
        scene = run.scene + (not np.array_equal(run.problem.sites, kept.problem.sites))
        kept = self._at_detail(kept, settings)._replace(scene=scene, stage=run.stage + 1, note=BACK)
        await self.loop.begin(kept, agreement)

    def _reporter(self) -> Callable[[str], None]:
        """A function for other threads that shows what is being prepared."""
        events = asyncio.get_running_loop()

        def report(words: str) -> None:
            events.call_soon_threadsafe(self.loop.report, f"{words.capitalize()}.")

        return report

    def _new_run(self, settings: UserSettings, stage: Callable[[str], None]) -> ChainRun:
        """A run under new settings: from where the chains are, if the prior allows it, else from its own start."""
        run = self.loop.chain_run
        problem = self._prepared(settings, stage) if run is None else self._problem(run, settings, stage)
        stage("starting the chains")
        if run is None:
            return ChainRun.create(problem, settings)
        changes = settings.changes(run.settings)
        same_sites = np.array_equal(run.problem.sites, problem.sites)
        about: dict[str, Any] = {"scene": run.scene + (not same_sites), "stage": run.stage + 1}
        earlier = run.earlier
        if run.n_sweeps:
            earlier += ((run.n_sweeps, run.python_line(self.source)),)
        if earlier and not changes & RESTARTING:
            labels, keeps_seeds = run.labels(), settings.keeps_seeds_of(run.settings)
            if keeps_seeds and labels.shape[1] == problem.model.graph.n_sites:
                with contextlib.suppress(InvalidInput):  # which says that no such start is allowed
                    return ChainRun.create(problem, settings, labels, earlier, **about)
            same_sites_note = FORBIDDEN if keeps_seeds else REMOVED
            about["note"] = same_sites_note if same_sites else _new_sites_note(changes, run.problem, problem)
        return ChainRun.create(problem, settings, **about)

    def _problem(self, run: ChainRun, settings: UserSettings, stage: Callable[[str], None]) -> Problem:
        """The posterior under new settings, with the sites and the likelihood of the present run where they serve."""
        changes, problem = settings.changes(run.settings), run.problem
        if changes & {"preset", *(name for name, control in controls().items() if control.group == "posterior")}:
            self._whole = None
            return self._prepared(settings, stage)
        if "seeds" in changes:
            if not problem.is_cut:
                self._whole = problem
            with_seeds = self._whole and self._whole.with_seeds(settings.seeds or None)
            if with_seeds is None:
                return self._prepared(settings, stage)
            problem = with_seeds
        return replace(problem, model=problem.model.with_prior(settings.preset_for(self.picture).prior))

    def _prepared(self, settings: UserSettings, stage: Callable[[str], None]) -> Problem:
        """The posterior under settings, made of the image."""
        stage("recognizing the kind of image")
        preset = settings.preset_for(self.picture)
        problem = prepare(self.picture, preset, seeds=settings.seeds or None, stage=stage)
        n_sites = problem.model.graph.n_sites
        if n_sites >= MAX_PACKED_LABELS:  # the number of sites is only about that asked for
            raise Refused(422, "There would be too many superpixels: ask for fewer.")
        return replace(problem, provenance=problem.provenance | {"source": self.source, **self.reading_options})

    async def restart(self) -> None:
        """Start the chains again, with the same settings and seed."""
        async with self.loop.lock:
            run = self.loop.prepared()
            about: dict[str, Any] = {"scene": run.scene, "stage": run.stage + 1}
            await self.loop.begin(await asyncio.to_thread(ChainRun.create, run.problem, run.settings, **about))

    # --- results ---

    def sites(self) -> NDArray[np.int32]:
        """The site of each displayed pixel."""
        return displayed_sites(self.loop.prepared().problem.sites, self.image.shape)

    def outlines(self) -> NDArray[np.int32]:
        """The site of each displayed pixel, with refined outlines as soon as there are any."""
        return displayed_sites(self.loop.outlined_sites(self.loop.prepared()), self.image.shape)

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
        reference = self.loop.labels[:1]  # taken before the await: the sites may be replaced meanwhile
        shown = getattr(problem.preset, "detail", None)
        is_new = detail is None and shown != self._shown_detail
        async with self.loop.lock if is_new else contextlib.nullcontext():  # the chains rest, so that it is quick
            partition = await asyncio.to_thread(problem.preset.partition, draws, problem, run.seed)
        if detail is None:
            self._shown_detail = shown
        warning = run.sampler.unreachable
        if not partition.any():
            contrast = await asyncio.to_thread(lambda: self._contrast)
            warning = one_region_warning(contrast, self.picture.reading, problem.preset) or warning
        return _described(partition, problem, draws, *reference) | {"warning": warning and in_user_words(warning)}

    async def conditioned(self, seeds: SeedPoints) -> dict[str, Any]:
        """The result of some of the draws so far, each changed as little as scribbles demand: the first answer to them.

        Raises NotYet where there are no draws, or where a superpixel must be cut, so that none can be used.
        """

        def estimate(run: ChainRun, reference: list[NDArray[np.int32]]) -> dict[str, Any]:
            draws = run.draws()
            few = draws.thinned(N_CONDITIONED * draws.n_components)
            problem = run.problem.with_seeds(seeds) if seeds and run.problem.preset.connected else None
            if problem is None:
                raise NotYet
            used = few.with_draws(problem.preset.relevant(few))
            components = [problem.model.component(int(c)) for c in used.component]
            kept = [[with_seeds(*pair) for pair in zip(components, chain, strict=True)] for chain in used.labels]
            used = replace(used, labels=np.array(kept))
            return _described(problem.preset.partition(used, problem, run.seed), problem, draws, *reference)

        async with self.loop.lock:  # the chains rest, so that it is quick
            return await asyncio.to_thread(estimate, self.loop.sampled(), self.loop.labels[:1])

    @cached_property
    def _contrast(self) -> Contrast:
        return contrast_of(self.picture)

    async def boundaries(self) -> NDArray[np.uint8]:
        """The boundary probability at each displayed pixel, scaled to 0..255."""
        run, draws = await self.loop.draws()
        sites = self.loop.outlined_sites(run)

        def paint() -> NDArray[np.uint8]:
            probability = run.problem.boundary_probability(sites, draws.thinned(MAX_THINNED_DRAWS))
            return displayed_boundaries(probability, self.image.shape)

        return await asyncio.to_thread(paint)

    async def together(self, site: int) -> NDArray[np.uint8]:
        """The probability that each site shares a cluster with this one, scaled to 0..255."""
        _, draws = await self.loop.draws()
        probability = await asyncio.to_thread(co_clustering, draws.thinned(MAX_THINNED_DRAWS).labels, site)
        return np.rint(255 * probability).astype(np.uint8)

    async def answers(self) -> list[dict[str, Any]]:
        """Single draws: the words below each, how many regions it has, and the labels of its sites."""
        run, draws = await self.loop.draws()
        unit, reference = unit_of(run.problem.preset.connected), self.loop.labels[:1]
        shown = [(draw_words(draws, place, unit), draws.labels[place]) for place in spread_draws(draws)]
        return [
            {"words": words, "n_regions": int(labels.max()) + 1, "labels": packed(match_labels(labels, *reference))}
            for words, labels in shown
        ]

    async def export(self, write: Callable[[Segmentation], bytes]) -> bytes:
        """What `write` makes of the segmentation that the Python code of `repeat` gives; the chains rest meanwhile."""
        async with self.loop.lock:
            run = self.loop.sampled()
            return await asyncio.to_thread(lambda: write(run.segmentation()))

    async def repeat(self) -> dict[str, str | None]:
        """The Python code, and the command line if one is enough, that give the same result."""
        async with self.loop.lock:
            run = self.loop.sampled()
            lines = ["import spinseg as ss", *(line for _, line in run.earlier), run.python_line(self.source)]
            found: dict[str, str | None] = {"python": "\n".join(lines), "command": None, "note": NO_COMMAND}
            if run.settings.seeds:
                found |= {"note": NO_FILE}
            elif not run.earlier:
                command = run.settings.command(self.source, self.n_pixels, run.n_sweeps, self.reading_options)
                found |= {"command": command, "note": None}
            return found


class Sessions:
    """All sessions by their ids, which cannot be guessed."""

    def __init__(self) -> None:
        self.by_id: dict[str, Session] = {}
        self.stopping: Callable[[], bool] = lambda: False

    def add(self, session: Session) -> str:
        """Add a session and return its id; raises Refused if there are too many."""
        if len(self.by_id) >= MAX_SESSIONS:
            raise Refused(429, f"{MAX_SESSIONS} images are open already: close one first.")
        if sum(other.n_pixels for other in self.by_id.values()) + session.n_pixels > MAX_TOTAL_PIXELS:
            raise Refused(429, "All open images together are too large: close one first.")
        session_id = secrets.token_urlsafe(16)
        self.by_id[session_id] = session
        return session_id

    def __getitem__(self, session_id: str) -> Session:
        if session_id not in self.by_id:
            raise Refused(404, "This image is not open, or it was closed.")
        return self.by_id[session_id]

    def check_capacity(self, session: Session, n_chains: int) -> None:
        """Raise Refused if a session may not run this many chains beside the others."""
        others = (other for other in self.by_id.values() if other is not session and other.loop.running)
        running = sum(other.n_chains for other in others)
        if running + n_chains > MAX_RUNNING_CHAINS:
            raise Refused(429, FULL.format(running=running, most=MAX_RUNNING_CHAINS))

    async def reap_idle(self) -> None:
        """Stop and close sessions that have had no listener for a while."""
        while True:
            await asyncio.sleep(0.5)
            for session_id, session in list(self.by_id.items()):
                idle_seconds = 0.0 if session.n_listeners else time.monotonic() - session.left_at
                if idle_seconds > STOP_SECONDS:
                    session.loop.running = False
                if idle_seconds > CLOSE_SECONDS:
                    self.by_id.pop(session_id).loop.close()
                    asyncio.get_running_loop().run_in_executor(None, release_memory)


def _new_sites_note(changes: set[str], before: Problem, after: Problem) -> str:
    """Why there are other sites after these changes: scribbles cut some, or leave them whole again."""
    n_before, n_after = (problem.model.graph.n_sites for problem in (before, after))
    if changes != {"seeds"} or n_before == n_after:
        return OTHER_SITES
    return CUT if n_after > n_before else WHOLE


def displayed_image(picture: Picture) -> NDArray[np.uint8]:
    """The image as the page displays it, (rows, columns, 3), reduced if it has more than MAX_DISPLAYED_PIXELS.

    A dark one is brightened.
    """
    return brightened(working_copy(picture, None, MAX_DISPLAYED_PIXELS).picture.rgb)


def displayed_sites(sites: NDArray[np.int32], shape: tuple[int, ...]) -> NDArray[np.int32]:
    """The site of each displayed pixel, where the displayed image has this shape."""
    step = -(-sites.shape[0] // shape[0])
    return np.ascontiguousarray(sites[::step, ::step])


def displayed_boundaries(probability: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Boundary probabilities of the displayed pixels, scaled to 0..255; block maxima, so that thin lines are kept."""
    image, step = np.rint(255 * probability).astype(np.uint8), -(-probability.shape[0] // shape[0])
    return reduce_blocks(image, step, image.ndim, np.maximum, np.uint8)


def _described(
    partition: NDArray[np.int32], problem: Problem, draws: Chains, *reference: NDArray[np.int32]
) -> dict[str, Any]:
    """A result as the web app shows it, with clusters numbered as in the reference."""
    preset = problem.preset
    unit = unit_of(getattr(preset, "regions", preset.connected))
    facts: dict[str, Any] = {"n_regions": int(partition.max()) + 1, "unit": unit}
    facts |= {"sweeps": draws.n_sweeps, "detail": getattr(preset, "detail", None), "estimate": preset.estimate}
    return facts | {"warning": None, "labels": packed(match_labels(partition, *reference))}


def release_memory() -> None:
    """Return freed memory to the system; the C library of Linux keeps it otherwise."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
