"""The server: one process on 127.0.0.1; pages ask by HTTP and are told by server-sent events."""

import asyncio
import contextlib
import socket
import threading
import warnings
import webbrowser
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from spinseg._validation import InvalidInput, invalid
from spinseg.app.guard import Guard, Refused, refusal
from spinseg.app.handlers import STATIC, Answers
from spinseg.app.session import NotYet
from spinseg.app.sessions import Pages


def application(pages: Pages, opened: Callable[[], None] = lambda: None) -> Guard:
    """The application; `opened` is called once it is up."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(pages.look_after())
        threading.Thread(target=pages.warm_up, daemon=True).start()
        opened()
        yield
        looking.cancel()
        for name in list(pages.by_id):
            pages.forget(name)

    answers = Answers(pages)
    at = "/api/pages/{name}"
    routes = [
        Route("/", answers.index),
        Route("/api/about", answers.told),
        Route("/api/examples/{name}", answers.example),
        Route("/api/pages", answers.create, methods=["POST"]),
        Route(f"{at}/settings", answers.settings, methods=["POST"]),
        Route(f"{at}/run", answers.run, methods=["POST"]),
        Route(f"{at}/pause", answers.pause, methods=["POST"]),
        Route(f"{at}/step", answers.step, methods=["POST"]),
        Route(f"{at}/restart", answers.restart, methods=["POST"]),
        Route(f"{at}/events", answers.events),
        Route(f"{at}/picture", answers.picture),
        Route(f"{at}/sites", answers.sites),
        Route(f"{at}/result", answers.result),
        Route(f"{at}/boundaries", answers.boundaries),
        Route(f"{at}/together", answers.together),
        Route(f"{at}/repeat", answers.repeat),
        Route(f"{at}/export/{{file}}", answers.export),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    handlers: dict[Any, Any] = {
        Refused: lambda request, error: refusal(error.status, str(error)),
        InvalidInput: lambda request, error: refusal(422, f"{error}."),
        NotYet: lambda request, error: refusal(409, "Nothing was drawn yet: start the chains, or step."),
        ClientDisconnect: lambda request, error: refusal(400, "The request was cut short."),
        HTTPException: lambda request, error: refusal(error.status_code, f"{error.detail}."),
        Exception: _failed,
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan))  # around its failures, too


def _failed(request: Request, error: Exception) -> Response:
    """What a page gets where this program is at fault; the server prints the rest on standard error."""
    return refusal(500, "Something went wrong in spinseg; its terminal says what.")


def serve(port: int | None = None, open_browser: bool = True) -> None:
    """Serve pages on 127.0.0.1 until Ctrl-C, on any free port unless one is given."""
    import uvicorn
    from PIL import Image

    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # what is too large is refused
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port or 0))
    except (OSError, OverflowError):
        invalid("port", "be free, and from 1 to 65535", port)
    listening.listen()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    pages = Pages()

    def opened() -> None:
        print(f"spinseg is at {address} - stop it with Ctrl-C", flush=True)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    how: dict[str, Any] = {"log_level": "error", "access_log": False, "server_header": False, "ws": "none"}
    server = uvicorn.Server(uvicorn.Config(application(pages, opened), timeout_graceful_shutdown=3, **how))
    pages.stopping = lambda: server.should_exit
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
