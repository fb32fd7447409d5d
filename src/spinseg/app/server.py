"""The server: one process on 127.0.0.1, which answers no requests but those of its own page."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
import warnings
import webbrowser
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spinseg._validation import InvalidInput, invalid
from spinseg.app.handlers import STATIC, Handlers
from spinseg.app.run_loop import NotYet
from spinseg.app.session import Sessions
from spinseg.app.words import Refused, refusal

FAILED = "There was an error in spinseg; its terminal shows the details."
N_THREADS = 3  # for all work but that of chains: uploads are read, and results are estimated, a few at a time


HEADERS = {
    "content-security-policy": "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


class _StaticFiles(StaticFiles):
    """Files of a folder; a name with a zero byte is none, for which Starlette before 1.0 fails."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Where the file is, and what the system knows of it."""
        return ("", None) if "\0" in path else super().lookup_path(path)


def error_response(status: int, sentence: str) -> JSONResponse:
    """The response to a refused request."""
    return JSONResponse({"error": sentence}, status)


class Guard:
    """Passes requests on that name this server as their host and were not sent by another site.

    The host protects against DNS rebinding, and browsers send the origin with requests from other sites.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # web sockets are not supported: the server closes them

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        problem = _problem(scope)
        scope["headers"] = [header for header in scope["headers"] if header[0] != b"range"]  # no partial responses
        respond = self.app if problem is None else error_response(403, problem)
        await respond(scope, receive, with_headers)


def _problem(scope: Scope) -> str | None:
    """Why a request is refused, if it is."""
    headers, port = Headers(scope=scope), (scope.get("server") or ("", 0))[1]
    hosts = [host if port == 80 else f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
    if headers.getlist("host") not in ([host] for host in hosts):
        return "The host must be 127.0.0.1 or localhost, with the port of this server."
    if any(origin != f"http://{headers['host']}" for origin in headers.getlist("origin")):
        return "Pages of other sites may not send requests."
    is_page = scope["path"] == "/" and scope["method"] == "GET"  # other sites may link to it
    if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")) and not is_page:
        return "Pages of other sites may not send requests."
    return None


def application(sessions: Sessions, started: Callable[[], None] = lambda: None) -> Guard:
    """The application; `started` is called when it is ready for requests."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(N_THREADS))
        reaping = asyncio.create_task(sessions.reap_idle())
        started()
        yield
        reaping.cancel()
        for session in sessions.by_id.values():
            session.loop.close()

    error_handlers: dict[Any, Any] = {
        Refused: lambda request, error: error_response(error.status, str(error)),
        InvalidInput: lambda request, error: error_response(422, refusal(error)),
        NotYet: lambda request, error: error_response(409, "There are no draws yet: start the chains."),
        ClientDisconnect: lambda request, error: error_response(400, "The request was cut short."),
        HTTPException: lambda request, error: error_response(error.status_code, f"{error.detail}."),
        Exception: lambda request, error: error_response(500, FAILED),
    }
    routes = [*Handlers(sessions).routes(), Mount("/static", _StaticFiles(directory=STATIC))]
    app = Starlette(routes=routes, exception_handlers=error_handlers, lifespan=lifespan)
    return Guard(app)  # outside, so that error responses get its headers, too


def serve(port: int | None = None, open_browser: bool = True) -> None:
    """Serve the web app on 127.0.0.1 until Ctrl-C, on any free port unless one is given."""
    import uvicorn
    from PIL import Image

    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # images that are too large are refused
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port or 0))
    except (OSError, OverflowError):
        invalid("port", "be free, and from 1 to 65535", port)
    listening.listen()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    sessions = Sessions()

    def started() -> None:
        print(f"spinseg is at {address} - stop it with Ctrl-C", flush=True)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    options: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False, "ws": "none"}
    server = uvicorn.Server(uvicorn.Config(application(sessions, started), timeout_graceful_shutdown=3, **options))
    sessions.stopping = lambda: server.should_exit
    forced = server.handle_exit

    def stop(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:  # a second one would end requests, and asyncio, with tracebacks
            server.should_exit = True
        else:
            forced(number, frame)

    server.handle_exit = stop
    signal.signal(signal.SIGINT, stop)  # before and after those of uvicorn, else asyncio has one of its own
    server.run(sockets=[listening])
