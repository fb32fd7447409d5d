"""All sessions of a server: their limits, and when idle ones are stopped and closed."""

import asyncio
import contextlib
import ctypes
import secrets
import threading
import time
from collections.abc import Callable

import numpy as np

from spinseg.app.chain_run import ChainRun
from spinseg.app.controls import UserSettings
from spinseg.app.guard import Refused
from spinseg.app.run_loop import MAX_RUNNING_CHAINS
from spinseg.app.session import Session
from spinseg.image.picture import as_picture
from spinseg.segmentation.presets.preset import Preset
from spinseg.segmentation.problem import prepare

MAX_SESSIONS, MAX_TOTAL_PIXELS = 40, 150_000_000
STOP_SECONDS, CLOSE_SECONDS = 2.0, 30.0  # after the last listener left: the chains stop, the session is closed
FULL = "{running} chains are running already, and at most {most} may run at a time: pause or close another page first."


class Sessions:
    """All sessions by their ids, which cannot be guessed."""

    def __init__(self) -> None:
        self.by_id: dict[str, Session] = {}
        self.compiled = threading.Event()
        self.stopping: Callable[[], bool] = lambda: False

    def add(self, session: Session) -> str:
        """Add a session and return its id; raises Refused if there are too many."""
        if len(self.by_id) >= MAX_SESSIONS:
            raise Refused(429, f"{MAX_SESSIONS} pages are open already: close one first.")
        if sum(other.n_pixels for other in self.by_id.values()) + session.n_pixels > MAX_TOTAL_PIXELS:
            raise Refused(429, "The images of all open pages together are too large: close a page first.")
        session_id = secrets.token_urlsafe(16)
        self.by_id[session_id] = session
        return session_id

    def __getitem__(self, session_id: str) -> Session:
        if session_id not in self.by_id:
            raise Refused(404, "There is no such page, or it was closed.")
        return self.by_id[session_id]

    def check_capacity(self, session: Session, n_chains: int) -> None:
        """Raise Refused if a session may not run so many chains beside those of the others."""
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
                    await asyncio.to_thread(release_memory)

    def compile(self) -> None:
        """Do once all that a session does, so that the code is compiled and loaded before the first image comes."""
        try:
            rows, columns = np.mgrid[:96, :128]
            picture = as_picture(((rows // 24 + columns // 32) % 4 * 60).astype(np.uint8))
            for name, kind in Preset.known.items():
                run = ChainRun.create(prepare(picture, kind()), UserSettings(name))
                run.sampler.advance(min(16, run.n_left))
                draws = run.draws()
                run.agreement(draws)
                run.problem.segmentation(draws, run.seed, run.schedule)
        finally:
            self.compiled.set()


def release_memory() -> None:
    """Return freed memory to the system; the C library of Linux keeps it otherwise."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
