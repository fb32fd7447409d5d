"""One page: a picture, the choices made for it, and its chains, in rounds so that all are at the same sweep."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinseg._validation import invalid
from spinseg.app.chain_run import Stage
from spinseg.app.looks import MOST_NUMBERS, keeping_numbers, packed, shown_boundaries, shown_picture, shown_sites
from spinseg.app.user_settings import Chosen
from spinseg.image.picture import Picture
from spinseg.inference.chains import Chains
from spinseg.inference.diagnostics import diagnose
from spinseg.inference.estimates.pairs import co_clustering, separation_probability
from spinseg.model.posterior import Model
from spinseg.segmentation.problem import prepare
from spinseg.segmentation.result import Segmentation

ROUND_SECONDS = 0.07  # of all chains side by side, between two looks at them
JUDGED_SECONDS, FEWEST_JUDGED = 1.0, 40  # between two judgements of whether chains agree; sweeps before the first
MOST_DRAWS = 400  # of a chain, that a judgement or a map on the page is made from; exports use all
FORBIDDEN = "This prior forbids the partitions that the chains were at, so they began anew."
NO_COMMAND = "The settings were changed while the chains ran: Python repeats that, one command line cannot."


class NotYet(Exception):
    """What is asked for needs a sweep that was not made yet."""


class Threads(NamedTuple):
    """Where work is done that takes long."""

    chains: Executor
    others: Executor

    async def do(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """What some work gives that is not a chain's."""
        return await asyncio.get_running_loop().run_in_executor(self.others, work, *arguments)


class Page:
    """A picture under way. What waits for the round in progress is a coroutine.

    Attributes
    ----------
    source : str
        What the snippet calls the picture.
    scene_number, stage_number : int
        How often the sites were made anew, and how often chains began anew or went on under another posterior.
    looks : int
        Grows when there is something new to see.
    """

    def __init__(self, picture: Picture, source: str, threads: Threads) -> None:
        self.picture, self.source, self.threads = picture, source, threads
        self.n_pixels = int(np.prod(picture.shape))
        self.shown = shown_picture(picture)
        self.chosen: Chosen | None = None
        self.scene_number = self.stage_number = self.looks = 0
        self.running = self.closed = self._in_round = False
        self._coming: list[int] = []  # chains of settings that are being taken up
        self._stage: Stage | None = None
        self._speed: float | None = None
        self._note: str | None = None
        self._earlier: list[tuple[int, str]] = []  # sweeps and Python of the stages that this one goes on from
        self._seen: tuple[Stage, dict[str, Any]] | None = None  # chains, and what there was to see of them
        self._numbers: list[NDArray[np.int32]] = []
        self._agreement: dict[str, Any] | None = None
        self._per_second = 0.0
        self._lock, self._changed = asyncio.Lock(), asyncio.Condition()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    # --- what a person does ---

    async def choose(self, chosen: Chosen) -> dict[str, Any]:
        """Take up new settings: chains go on from where they are where they can, else they begin anew."""
        self._coming.append(chosen.chains)
        try:
            return await self._chosen(chosen)
        finally:
            self._coming.remove(chosen.chains)

    async def _chosen(self, chosen: Chosen) -> dict[str, Any]:
        """The same, once it is counted how many chains there will be."""
        async with self._lock:
            if chosen == self.chosen:
                return {"restarted": False, "note": None}
            before, stage = self.chosen, self._stage
            earlier, labels = self._earlier, None
            if before is not None and stage is not None and not chosen.begins_anew(before):
                earlier = [*earlier, (stage.done, stage.line(self.source))] if stage.done else earlier
                labels = stage.labels() if earlier else None
            new = await self.threads.do(self._staged, chosen, labels, chosen.seed + len(earlier))
            note = FORBIDDEN if labels is not None and not new.goes_on else None
            self.chosen, self._earlier, self._note = chosen, earlier if new.goes_on else [], note
            self.scene_number += before is None or chosen.of_sites() != before.of_sites()
            await self._begin(new)
        return {"restarted": not new.goes_on, "note": note}

    def _staged(self, chosen: Chosen, labels: NDArray[np.int32] | None, seed: int) -> Stage:
        """Chains under new choices: from `labels` where the prior allows them, else from the start."""
        settings, before = chosen.settings(self.n_pixels), self._stage
        if before is not None and self.chosen is not None and chosen.of_evidence() == self.chosen.of_evidence():
            old = before.scene.model
            model = Model(old.graph, old.likelihood, settings.prior, old.beta)
            scene = replace(before.scene, settings=settings, model=model)
        else:
            scene = prepare(self.picture, settings)
            if scene.model.graph.n_sites >= MOST_NUMBERS:  # sites are only about as many as asked for
                invalid("n_sites", f"make less than {MOST_NUMBERS} sites", scene.model.graph.n_sites)
            scene = replace(scene, told=scene.told | {"source": self.source})
        sizes = [] if labels is None else [np.bincount(row) for row in labels]
        if sizes and all(scene.model.log_prior_of_sizes(each) > -np.inf for each in sizes):
            return Stage.of(scene, seed, labels)
        return Stage.of(scene, chosen.seed)

    async def restart(self) -> None:
        """Begin anew, with the same settings and seed."""
        async with self._lock:
            stage, chosen = self._ready(), self.chosen
            assert chosen is not None
            scene = replace(stage.scene, settings=chosen.settings(self.n_pixels))
            self._earlier, self._note = [], None
            await self._begin(await self.threads.do(Stage.of, scene, chosen.seed))

    def run(self, speed: float | None) -> None:
        """Let the chains run, at most `speed` sweeps a second."""
        self.running, self._speed = True, speed
        self._keep_going("drive", self._drive)

    async def pause(self) -> None:
        """Let the chains rest."""
        self.running = False
        async with self._lock:
            await self._tell()

    async def step(self) -> None:
        """One sweep."""
        self.running = False
        async with self._lock:
            stage = self._ready()
            if stage.done < stage.most_sweeps:
                await self._advance(stage, stage.done + 1)
            self._keep_going("judge", self._judged)
            await self._tell()

    def close(self) -> None:
        """Stop for good, as soon as a spin-cluster is moved."""
        self.running, self.closed = False, True
        for runner in self._stage.sampling.runners if self._stage else []:
            runner.stop()

    # --- what a person sees ---

    @property
    def n_chains(self) -> int:
        """Chains that it has, or is about to have."""
        return max(0 if self.chosen is None else self.chosen.chains, *self._coming, 0)

    @property
    def state(self) -> str:
        """In a word."""
        if self._stage is None:
            return "building"
        if self._stage.done >= self._stage.most_sweeps:
            return "done"
        return "running" if self.running or self._in_round else "paused"

    async def wait(self, seen: int, seconds: float) -> None:
        """Until there is something that was not seen yet, or so many seconds have passed."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self.looks != seen or self.closed)
        except TimeoutError:
            pass

    def frame(self, stage_number: int, sent: int) -> dict[str, Any]:
        """What there is to see, with the traces of this stage since sweep `sent` of that stage."""
        if self._seen is None:
            empty: dict[str, Any] = {"scene": 0, "stage": 0, "began": 0, "sweeps": 0, "n_sites": 0, "chains": []}
            return empty | {"state": self.state}
        stage, seen = self._seen
        done, first = seen["sweeps"], sent if stage_number == seen["stage"] else 0
        traces: dict[str, Any] = {"from": first}
        for name in ("log_posterior", "n_clusters"):
            traces[name] = np.round(getattr(stage.sampling.records, name)[:, first:done], 2).tolist()
        told = {"state": self.state, "per_second": round(self._per_second, 1), "agreement": self._agreement}
        return seen | told | {"traces": traces}

    def sites(self) -> NDArray[np.int32]:
        """The site of each pixel shown."""
        return shown_sites(self._ready().scene, self.shown.shape)

    async def result(self) -> dict[str, Any]:
        """The segmentation as it would be exported now."""
        stage, drawn = await self._drawn()
        now = self._numbers[:1]  # of the same sites, whatever comes meanwhile
        partition = await self.threads.do(stage.scene.partition, drawn, stage.seed)
        shown = packed(keeping_numbers(partition, *now))
        found = {"n_regions": int(partition.max()) + 1, "cut": stage.scene.settings.regions}
        return found | {"sweeps": drawn.n_sweeps, "labels": shown}

    async def boundaries(self) -> NDArray[np.uint8]:
        """How probable a boundary is beside each pixel shown, 255 for certain."""
        stage, drawn = await self._drawn()

        def painted() -> NDArray[np.uint8]:
            separation = separation_probability(_some(drawn), stage.scene.model.graph.edges)
            return shown_boundaries(stage.scene.boundary_probability(separation), self.shown.shape)

        return await self.threads.do(painted)

    async def together(self, site: int) -> NDArray[np.uint8]:
        """How probable it is that each site shares a cluster with this one, 255 for certain."""
        _, drawn = await self._drawn()
        found = await self.threads.do(co_clustering, _some(drawn), site)
        return np.rint(255 * found).astype(np.uint8)

    async def segmentation(self) -> Segmentation:
        """What the snippet gives."""
        stage, drawn = await self._drawn()
        scene = replace(stage.scene, settings=stage.settings())
        earlier = tuple(line for _, line in self._earlier)
        return await self.threads.do(scene.segmentation, drawn, stage.seed, False, earlier)

    async def repeat(self) -> dict[str, str | None]:
        """The Python, and the command line where one is enough, that give the same."""
        async with self._lock:
            stage = self._swept()
            lines = ["import spinseg as ss", *(line for _, line in self._earlier), stage.line(self.source)]
            told: dict[str, str | None] = {"python": "\n".join(lines), "command": None, "note": NO_COMMAND}
            if not self._earlier and self.chosen is not None:
                command = self.chosen.command(self.source, self.n_pixels, stage.done)
                told |= {"command": command, "note": None}
            return told

    # --- how it goes on ---

    async def _begin(self, stage: Stage) -> None:
        """Let a stage take the place of the one before."""
        self.stage_number += 1
        if not stage.goes_on:
            self._numbers = []
        await self.threads.do(self._look, stage)
        self._stage, self._agreement = stage, None
        await self._tell()

    async def _drive(self) -> None:
        """Round after round, until there is no room or the page is paused.

        Nothing is awaited between the last look at `running` and the end, so that `run` knows whether to begin it anew.
        """
        size, due = 1, time.perf_counter()
        while self.running:
            async with self._lock:
                began, stage, speed = time.perf_counter(), self._stage, self._speed
                if stage is None or stage.done >= stage.most_sweeps:
                    self.running = False
                if stage is None or not self.running:
                    break
                size = size if speed is None else max(1, round(speed * ROUND_SECONDS))
                size = min(size, stage.most_sweeps - stage.done)
                self._in_round = True
                try:
                    await self._advance(stage, stage.done + size)
                finally:
                    self._in_round = False
                took = time.perf_counter() - began
                self._keep_going("judge", self._judged)
            await self._tell()
            due = max(due + size / speed, time.perf_counter()) if speed is not None else time.perf_counter()
            while self.running and self._speed == speed and (rest := due - time.perf_counter()) > 0:
                await asyncio.sleep(min(0.05, rest))
            rate = size / (time.perf_counter() - began)
            self._per_second += (0.2 if self._per_second else 1.0) * (rate - self._per_second)  # not every jolt
            size = max(1, min(int(size * ROUND_SECONDS / took), 2 * size))

    async def _advance(self, stage: Stage, sweeps: int) -> None:
        """Advance all chains to so many sweeps, each in a thread, and look at them."""
        loop = asyncio.get_running_loop()
        work = [loop.run_in_executor(self.threads.chains, runner.advance, sweeps) for runner in stage.sampling.runners]
        await asyncio.gather(*work)
        await loop.run_in_executor(self.threads.chains, self._look, stage)

    def _look(self, stage: Stage) -> None:
        """Note what there is to see; clusters keep their numbers, hence their colours."""
        labels, records = stage.labels(), stage.sampling.records
        numbers: list[NDArray[np.int32]] = []
        for c, row in enumerate(labels):  # like the first chain's as far as they are alike, so that one can compare
            numbers.append(keeping_numbers(row, *numbers[:1], *self._numbers[c : c + 1]))
        self._numbers = numbers
        starts = self.chosen.starts(self.n_pixels) if self.chosen is not None else ""
        chains = [
            {
                "start": starts if isinstance(starts, str) else starts[c],
                "n_clusters": runner.n_clusters,
                "log_posterior": round(runner.log_posterior, 2),
                "labels": packed(self._numbers[c]),
                "spins": packed(records.spin[c]),
            }
            for c, runner in enumerate(stage.sampling.runners)
        ]
        seen = {
            "scene": self.scene_number,
            "stage": self.stage_number,
            "began": sum(sweeps for sweeps, _ in self._earlier),
            "sweeps": stage.done,
            "most_sweeps": stage.most_sweeps,
            "note": self._note,
            "n_sites": stage.scene.model.graph.n_sites,
            "chains": chains,
        }
        self._seen = stage, seen

    async def _judged(self) -> None:
        """Judge whether the chains agree, and again after a while, until there is nothing new to judge."""
        judged: tuple[Stage, int] | None = None
        while not self.closed:
            stage = self._stage
            if stage is None or len(stage.sampling.runners) < 2 or stage.done < FEWEST_JUDGED:
                return
            if judged == (stage, stage.done):
                return
            with contextlib.suppress(NotYet):  # begun anew meanwhile
                stage, drawn = await self._drawn()
                found = await self.threads.do(diagnose, replace(drawn, labels=_some(drawn)), stage.scene.model.graph)
                r_hat = {name: _finite(row.r_hat) for name, row in found.table.items()}
                judged = stage, drawn.n_sweeps
                if stage is self._stage:
                    self._agreement = {"r_hat": r_hat, "verdict": found.verdict, "agree": found.agree}
                    await self._tell()
            await asyncio.sleep(JUDGED_SECONDS)

    async def _drawn(self) -> tuple[Stage, Chains]:
        """The chains so far."""
        async with self._lock:
            stage = self._swept()
            return stage, stage.drawn()

    def _ready(self) -> Stage:
        """The stage, where the settings have come."""
        if self._stage is None:
            raise NotYet
        return self._stage

    def _swept(self) -> Stage:
        """The stage, where a sweep was made."""
        stage = self._ready()
        if not stage.done:
            raise NotYet
        return stage

    def _keep_going(self, name: str, work: Callable[[], Any]) -> None:
        """Begin a task, unless one of its name is under way."""
        if name not in self._tasks or self._tasks[name].done():
            self._tasks[name] = asyncio.create_task(work())
            self._tasks[name].add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task that fails stops the chains, and the terminal says why."""
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.running = False
            traceback.print_exception(problem)

    async def _tell(self) -> None:
        """Wake those who wait for something new."""
        self.looks += 1
        async with self._changed:
            self._changed.notify_all()


def _some(drawn: Chains) -> NDArray[np.int32]:
    """At most MOST_DRAWS draws of each chain, evenly spaced."""
    return drawn.labels[:, :: -(-drawn.labels.shape[1] // MOST_DRAWS)]


def _finite(r_hat: float | None) -> float | str | None:
    """R-hat as JSON knows it."""
    return r_hat if r_hat is None or np.isfinite(r_hat) else "inf"
