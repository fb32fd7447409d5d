"""What a page is told while its chains run."""

import asyncio
import json
import time

from starlette.types import Receive, Scope, Send

from spinseg.app.sessions import Pages

FRAME_SECONDS = 1 / 12  # between two frames of a page, at least
STILL_SECONDS = 1.0  # between two frames where nothing happens


class Events:
    """A page's frames as server-sent events: never more than one under way, so that stale ones are never made."""

    def __init__(self, pages: Pages, name: str) -> None:
        self.pages, self.name, self.page = pages, name, pages[name]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send frames until the page is left."""
        pages, name = self.pages, self.name
        pages.listeners[name] = pages.listeners.get(name, 0) + 1
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sending = asyncio.create_task(self._send(send))
        try:
            while not sending.done():
                left = asyncio.ensure_future(receive())
                await asyncio.wait({left, sending}, return_when=asyncio.FIRST_COMPLETED)
                if left.done() and left.result()["type"] == "http.disconnect":
                    break
                left.cancel()
            if sending.done():
                sending.result()  # what went wrong, if anything did
        finally:
            sending.cancel()
            if name in pages.by_id:
                pages.listeners[name] -= 1
                pages.left_at[name] = time.monotonic()

    async def _send(self, send: Send) -> None:
        """Frame after frame."""
        page, seen, stage, sent = self.page, -1, -1, 0
        while not page.closed and not self.pages.stopping():
            began = time.monotonic()
            seen = page.looks
            frame = page.frame(stage, sent)
            if not self.pages.warm.is_set():
                frame["state"] = "compiling"
            stage, sent = frame["stage"], frame["sweeps"]
            text = f"data: {json.dumps(frame)}\n\n".encode()
            await send({"type": "http.response.body", "body": text, "more_body": True})
            await page.wait(seen, STILL_SECONDS)
            await asyncio.sleep(FRAME_SECONDS - (time.monotonic() - began))
        await send({"type": "http.response.body", "body": b"", "more_body": False})
