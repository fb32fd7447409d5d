"""Server-sent events: the frames of a session while its chains run."""

import asyncio
import json
import time

from starlette.types import Receive, Scope, Send

from spinseg.app.sessions import Sessions

MIN_FRAME_SECONDS = 1 / 12  # between two frames
MAX_FRAME_SECONDS = 1.0  # between two frames if nothing changes


class Events:
    """The stream of a session's frames. A frame is made only after the one before was sent, so none is out of date."""

    def __init__(self, sessions: Sessions, session_id: str) -> None:
        self.sessions, self.session_id, self.session = sessions, session_id, sessions[session_id]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send frames until the browser disconnects."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        with self.sessions.listener(self.session_id):
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            sending = asyncio.create_task(self._send_frames(send))
            try:
                while not sending.done():
                    received = asyncio.ensure_future(receive())
                    await asyncio.wait({received, sending}, return_when=asyncio.FIRST_COMPLETED)
                    if received.done() and received.result()["type"] == "http.disconnect":
                        break
                    received.cancel()
                if sending.done():
                    sending.result()  # raises if sending failed
            finally:
                sending.cancel()

    async def _send_frames(self, send: Send) -> None:
        frames, run_number, n_sent = self.session.frames, -1, 0
        while not frames.closed and not self.sessions.stopping():
            began, version = time.monotonic(), frames.version
            frame = self.session.frame(run_number, n_sent)
            if not self.sessions.compiled.is_set():
                frame["state"] = "compiling"
            run_number, n_sent = frame["stage"], frame["sweeps"]
            text = f"data: {json.dumps(frame)}\n\n".encode()
            await send({"type": "http.response.body", "body": text, "more_body": True})
            await frames.wait(version, MAX_FRAME_SECONDS)
            await asyncio.sleep(MIN_FRAME_SECONDS - (time.monotonic() - began))
        await send({"type": "http.response.body", "body": b"", "more_body": False})
