"""All pages of a server: how many there may be, how many chains may run, and when they are given up."""

import asyncio
import contextlib
import ctypes
import os
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from spinseg.app.chain_run import Stage
from spinseg.app.guard import Refused
from spinseg.app.session import Page, Threads
from spinseg.app.user_settings import Chosen
from spinseg.image.picture import as_picture
from spinseg.inference.diagnostics import diagnose
from spinseg.segmentation.problem import prepare

MOST_PAGES, MOST_PIXELS_OF_ALL = 40, 150_000_000
MOST_RUNNING = max(4, os.cpu_count() or 1)  # chains, of all pages together
STOP_SECONDS, FORGET_SECONDS = 2.0, 30.0  # after a page was last listened to: its chains stop, it is forgotten
FULL = "{running} chains are running already, and here {most} may run at a time: pause or close another page first."


class Pages:
    """All pages, by their ids, which nobody can guess."""

    def __init__(self) -> None:
        self.threads = Threads(ThreadPoolExecutor(MOST_RUNNING, "chain"), ThreadPoolExecutor(2, "other"))
        self.by_id: dict[str, Page] = {}
        self.listeners: dict[str, int] = {}
        self.left_at: dict[str, float] = {}
        self.warm = threading.Event()
        self.stopping: Callable[[], bool] = lambda: False

    def add(self, page: Page) -> str:
        """A new page's id, unless there are too many already."""
        if len(self.by_id) >= MOST_PAGES:
            raise Refused(429, f"{MOST_PAGES} pages are open already: close one first.")
        if sum(other.n_pixels for other in self.by_id.values()) + page.n_pixels > MOST_PIXELS_OF_ALL:
            raise Refused(429, "The pictures of all open pages are too large together: close a page first.")
        name = secrets.token_urlsafe(16)
        self.by_id[name] = page
        self.left_at[name] = time.monotonic()
        return name

    def __getitem__(self, name: str) -> Page:
        """The page of an id."""
        if name not in self.by_id:
            raise Refused(404, "There is no such page, or it was closed.")
        return self.by_id[name]

    def check_room(self, page: Page, chains: int) -> None:
        """Refuse so many chains of a page, where too many of others are running."""
        running = sum(other.n_chains for other in self.by_id.values() if other is not page and other.running)
        if running + chains > MOST_RUNNING:
            raise Refused(429, FULL.format(running=running, most=MOST_RUNNING))

    async def look_after(self) -> None:
        """Stop and forget pages that nobody listens to any more."""
        while True:
            await asyncio.sleep(0.5)
            for name, page in list(self.by_id.items()):
                if self.listeners.get(name):
                    continue
                gone = time.monotonic() - self.left_at[name]
                if gone > STOP_SECONDS:
                    page.running = False
                if gone > FORGET_SECONDS:
                    self.forget(name)
                    self.threads.others.submit(give_memory_back)

    def forget(self, name: str) -> None:
        """Close a page for good."""
        self.by_id.pop(name).close()
        self.listeners.pop(name, None)
        del self.left_at[name]

    def warm_up(self) -> None:
        """Do all that a page does once, so that code is compiled and loaded before the first picture comes."""
        try:
            rows, columns = np.mgrid[:96, :128]
            picture = as_picture(((rows // 24 + columns // 32) % 4 * 60).astype(np.uint8))
            for preset in ("photo", "paper"):
                scene = prepare(picture, Chosen(preset=preset).settings(picture.codes[..., 0].size))
                stage = Stage.of(scene, 0)
                for runner in stage.sampling.runners:
                    runner.advance(16)
                drawn = stage.drawn()
                diagnose(drawn, scene.model.graph)
                replace(scene, settings=stage.settings()).segmentation(drawn, 0)
        finally:
            self.warm.set()


def give_memory_back() -> None:
    """Return to the system what was freed; the C library of Linux would keep it for later."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
