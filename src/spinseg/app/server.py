"""The server: one process on 127.0.0.1; pages ask by HTTP and are told by server-sent events."""

import asyncio
import contextlib
import io
import socket
import tempfile
import threading
import warnings
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from spinseg._checks import number, refuse
from spinseg.app.chosen import Chosen
from spinseg.app.controls import about
from spinseg.app.events import Events
from spinseg.app.guard import UPLOAD_BYTES, Guard, Refused, body_of, json_of, refusal
from spinseg.app.page import NotYet, Page
from spinseg.app.pages import MOST_RUNNING, Pages
from spinseg.image.files import read_picture
from spinseg.image.pixels import Picture
from spinseg.pictures import PICTURES
from spinseg.segmentation import Segmentation

MOST_PIXELS = 25_000_000
EXPORTS = {
    "labels.png": "image/png",
    "labels.tif": "image/tiff",
    "overlay.png": "image/png",
    "boundary_probability.png": "image/png",
    "report.html": "text/html; charset=utf-8",
    "result.json": "application/json",
}

Answer = Callable[[Request], Awaitable[Any]]


def application(pages: Pages, opened: Callable[[], None] = lambda: None) -> Guard:
    """The application; `opened` is called once it is up."""
    static = Path(str(files("spinseg.app").joinpath("static")))

    def page_of(request: Request) -> Page:
        return pages[request.path_params["name"]]

    async def index(request: Request) -> Response:
        return FileResponse(static / "index.html")

    async def told(request: Request) -> Response:
        return JSONResponse(about(MOST_RUNNING, UPLOAD_BYTES, MOST_PIXELS))

    async def example(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in PICTURES:
            raise Refused(404, "There is no such example.")
        return FileResponse(PICTURES[name].path)

    async def create(request: Request) -> Response:
        chosen = request.query_params.get("example")
        body = await body_of(request, UPLOAD_BYTES)
        if chosen is not None and chosen not in PICTURES:
            raise Refused(404, "There is no such example.")
        path = None if chosen is None else PICTURES[chosen].path
        picture = await in_thread(_decoded, body, path)
        source = _harmless(request.query_params.get("name", "")) if path is None else str(path)
        page = await in_thread(Page, picture, source, pages.threads)
        name = pages.add(page)
        shown = {"shape": list(picture.shape), "shown": list(page.shown.shape[:2]), "name": Path(source).name}
        return JSONResponse({"id": name, **shown}, 201)

    async def settings(request: Request) -> Response:
        page, chosen = page_of(request), Chosen.read(await json_of(request))
        if page.running:
            pages.check_room(page, chosen.chains)
        return JSONResponse(await page.choose(chosen))

    async def run(request: Request) -> Response:
        page, sent = page_of(request), await json_of(request)
        speed = sent.get("speed")
        if speed is not None:
            speed = number("speed", speed, at_least=0.1, at_most=1000)
        pages.check_room(page, page.n_chains)
        page.run(speed)
        return JSONResponse({})

    def doing(what: Callable[[Page], Awaitable[None]]) -> Answer:
        async def answer(request: Request) -> Response:
            await json_of(request)
            await what(page_of(request))
            return JSONResponse({})

        return answer

    async def events(request: Request) -> Any:
        found = Events(pages, request.path_params["name"])
        return Response() if request.method == "HEAD" else found

    async def picture(request: Request) -> Response:
        return Response(await asyncio.to_thread(_as_png, page_of(request).shown), media_type="image/png")

    async def sites(request: Request) -> Response:
        return _raw(page_of(request).sites().astype("<i4"))

    async def result(request: Request) -> Response:
        return JSONResponse(await page_of(request).result())

    async def boundaries(request: Request) -> Response:
        return _raw(await page_of(request).boundaries())

    async def together(request: Request) -> Response:
        page, text = page_of(request), request.query_params.get("site", "")
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise Refused(422, "site must be the number of a site.")
        return _raw(await page.together(int(text)))

    async def repeat(request: Request) -> Response:
        return JSONResponse(await page_of(request).repeat())

    async def export(request: Request) -> Response:
        page, name = page_of(request), request.path_params["file"]
        if name not in EXPORTS:
            raise Refused(404, f"There is no such export; there are {', '.join(EXPORTS)}.")
        found = await page.segmentation()
        content = await in_thread(_saved, found, name)
        return Response(
            content, media_type=EXPORTS[name], headers={"content-disposition": f'attachment; filename="{name}"'}
        )

    async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(pages.threads.others, work, *arguments)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(pages.look_after())
        threading.Thread(target=pages.warm_up, daemon=True).start()
        opened()
        yield
        looking.cancel()
        for name in list(pages.by_id):
            pages.forget(name)

    at = "/api/pages/{name}"
    routes = [
        Route("/", index),
        Route("/api/about", told),
        Route("/api/examples/{name}", example),
        Route("/api/pages", create, methods=["POST"]),
        Route(f"{at}/settings", settings, methods=["POST"]),
        Route(f"{at}/run", run, methods=["POST"]),
        Route(f"{at}/pause", doing(Page.pause), methods=["POST"]),
        Route(f"{at}/step", doing(Page.step), methods=["POST"]),
        Route(f"{at}/restart", doing(Page.restart), methods=["POST"]),
        Route(f"{at}/events", events),
        Route(f"{at}/picture", picture),
        Route(f"{at}/sites", sites),
        Route(f"{at}/result", result),
        Route(f"{at}/boundaries", boundaries),
        Route(f"{at}/together", together),
        Route(f"{at}/repeat", repeat),
        Route(f"{at}/export/{{file}}", export),
        Mount("/static", StaticFiles(directory=static)),
    ]
    handlers: dict[Any, Any] = {
        Refused: lambda request, error: refusal(error.status, str(error)),
        ValueError: lambda request, error: refusal(422, f"{error}."),
        NotYet: lambda request, error: refusal(409, "Nothing was drawn yet: start the chains, or step."),
        ClientDisconnect: lambda request, error: refusal(400, "The request was cut short."),
        HTTPException: lambda request, error: refusal(error.status_code, f"{error.detail}."),
        Exception: _failed,
    }
    return Guard(Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan))  # around its failures, too


def _decoded(body: bytes, path: Path | None) -> Picture:
    """The picture of an upload, or of a file that comes along."""
    if path is not None:
        return read_picture(path)
    if not body:
        raise Refused(422, "There is no picture in the request.")
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        upload = Path(folder, "upload")
        upload.write_bytes(body)
        try:
            picture = read_picture(upload, most_pixels=MOST_PIXELS)
        except ValueError as error:
            raise Refused(415, f"{error}.".replace(str(upload), "The picture")) from None
    if len(picture.shape) != 2:
        raise Refused(415, "The page shows pictures, not volumes: use spinseg.segment in Python.")
    return picture


def _harmless(name: str) -> str:
    """What an upload is called in the snippet: the last part of its name, printable, and never used as a path."""
    shown = "".join(c for c in name.replace("\\", "/").split("/")[-1] if c.isprintable())[:120]
    return "picture.png" if shown.strip("-.") == "" else shown.lstrip("-")


def _as_png(picture: NDArray) -> bytes:
    """A picture as the content of a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _raw(numbers: NDArray) -> Response:
    """Numbers as they lie in memory."""
    return Response(numbers.tobytes(), media_type="application/octet-stream")


def _saved(found: Segmentation, name: str) -> bytes:
    """One of the files that a segmentation is saved in."""
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        found.save(folder)
        return Path(folder, name).read_bytes()


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
        refuse("port", "be free, and from 1 to 65535", port)
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
