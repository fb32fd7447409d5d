"""What each request is answered with."""

import asyncio
import io
import tempfile
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from spinseg._validation import InvalidInput, check_real
from spinseg.app.controls import about
from spinseg.app.events import Events
from spinseg.app.guard import UPLOAD_BYTES, Refused, body_of, json_of
from spinseg.app.session import Page
from spinseg.app.sessions import MOST_RUNNING, Pages
from spinseg.app.user_settings import Chosen
from spinseg.image.io import read_picture
from spinseg.image.picture import Picture
from spinseg.pictures import PICTURES
from spinseg.segmentation.result import Segmentation

STATIC = Path(str(files("spinseg.app").joinpath("static")))
MOST_PIXELS = 25_000_000
EXPORTS = {
    "labels.png": "image/png",
    "labels.tif": "image/tiff",
    "overlay.png": "image/png",
    "boundary_probability.png": "image/png",
    "report.html": "text/html; charset=utf-8",
    "result.json": "application/json",
}


class Answers:
    """One method for each kind of request."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages

    def _page(self, request: Request) -> Page:
        return self.pages[request.path_params["name"]]

    async def index(self, request: Request) -> Response:
        """The page itself."""
        return FileResponse(STATIC / "index.html")

    async def told(self, request: Request) -> Response:
        """What the page is built from."""
        return JSONResponse(about(MOST_RUNNING, UPLOAD_BYTES, MOST_PIXELS))

    async def example(self, request: Request) -> Response:
        """A picture that comes along."""
        name = request.path_params["name"]
        if name not in PICTURES:
            raise Refused(404, "There is no such example.")
        return FileResponse(PICTURES[name].path)

    async def create(self, request: Request) -> Response:
        """A new page, of an upload or an example."""
        chosen = request.query_params.get("example")
        body = await body_of(request, UPLOAD_BYTES)
        if chosen is not None and chosen not in PICTURES:
            raise Refused(404, "There is no such example.")
        path = None if chosen is None else PICTURES[chosen].path
        picture = await self.pages.threads.do(_decoded, body, path)
        source = _harmless(request.query_params.get("name", "")) if path is None else str(path)
        page = await self.pages.threads.do(Page, picture, source, self.pages.threads)
        name = self.pages.add(page)
        shown = {"shape": list(picture.shape), "shown": list(page.shown.shape[:2]), "name": Path(source).name}
        return JSONResponse({"id": name, **shown}, 201)

    async def settings(self, request: Request) -> Response:
        """Take up settings."""
        page, chosen = self._page(request), Chosen.read(await json_of(request))
        if page.running:
            self.pages.check_room(page, chosen.chains)
        return JSONResponse(await page.choose(chosen))

    async def run(self, request: Request) -> Response:
        """Let the chains run."""
        page, sent = self._page(request), await json_of(request)
        speed = sent.get("speed")
        if speed is not None:
            speed = check_real("speed", speed, at_least=0.1, at_most=1000)
        self.pages.check_room(page, page.n_chains)
        page.run(speed)
        return JSONResponse({})

    async def pause(self, request: Request) -> Response:
        """Let the chains rest."""
        return await self._do(Page.pause, request)

    async def step(self, request: Request) -> Response:
        """One sweep."""
        return await self._do(Page.step, request)

    async def restart(self, request: Request) -> Response:
        """Begin anew."""
        return await self._do(Page.restart, request)

    async def _do(self, what: Callable[[Page], Awaitable[None]], request: Request) -> Response:
        page = self._page(request)
        await json_of(request)
        await what(page)
        return JSONResponse({})

    async def events(self, request: Request) -> Any:
        """Frames, as long as it is listened to."""
        found = Events(self.pages, request.path_params["name"])
        return Response() if request.method == "HEAD" else found

    async def picture(self, request: Request) -> Response:
        """The picture as it is shown."""
        return Response(await asyncio.to_thread(_as_png, self._page(request).shown), media_type="image/png")

    async def sites(self, request: Request) -> Response:
        """The site of each pixel shown."""
        return _raw(self._page(request).sites().astype("<i4"))

    async def result(self, request: Request) -> Response:
        """The segmentation so far."""
        return JSONResponse(await self._page(request).result())

    async def boundaries(self, request: Request) -> Response:
        """Boundary probabilities."""
        return _raw(await self._page(request).boundaries())

    async def together(self, request: Request) -> Response:
        """Probabilities of being together with a site."""
        page, text = self._page(request), request.query_params.get("site", "")
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise Refused(422, "site must be the number of a site.")
        return _raw(await page.together(int(text)))

    async def repeat(self, request: Request) -> Response:
        """Python and command that give the same."""
        return JSONResponse(await self._page(request).repeat())

    async def export(self, request: Request) -> Response:
        """A file to keep."""
        page, name = self._page(request), request.path_params["file"]
        if name not in EXPORTS:
            raise Refused(404, f"There is no such export; there are {', '.join(EXPORTS)}.")
        found = await page.segmentation()
        content = await self.pages.threads.do(_saved, found, name)
        return Response(
            content, media_type=EXPORTS[name], headers={"content-disposition": f'attachment; filename="{name}"'}
        )


def _decoded(body: bytes, path: Path | None) -> Picture:
    """The picture of an upload, or of a file that comes along."""
    if path is not None:
        return read_picture(path)
    if not body:
        raise Refused(422, "There is no picture in the request.")
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        upload = Path(folder, "upload")
        upload.write_bytes(body)  # read at once and gone: nothing that a power cut could spoil
        try:
            picture = read_picture(upload, most_pixels=MOST_PIXELS)
        except InvalidInput as error:
            raise Refused(415, f"{error}.".replace(str(upload), "The picture")) from None
    if len(picture.shape) != 2:
        raise Refused(415, "The page shows pictures, not volumes: use spinseg.segmentation.segment in Python.")
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
    if name in found.left_out:
        raise Refused(404, f"There is no {name}: {found.left_out[name]}.")
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        found.save(folder, [name])
        return Path(folder, name).read_bytes()
