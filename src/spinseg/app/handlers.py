"""The handlers of all requests."""

import asyncio
import io
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from spinseg._errors import MissingExtra
from spinseg._validation import InvalidInput, check_real
from spinseg.app.controls import UserSettings, page_description
from spinseg.app.guard import UPLOAD_BYTES, Refused, read_body, read_json
from spinseg.app.run_loop import NotYet
from spinseg.app.session import Session
from spinseg.app.sessions import MAX_RUNNING_CHAINS, Sessions
from spinseg.image.intensity import check_intensity_range
from spinseg.image.io import read_picture
from spinseg.image.picture import Picture
from spinseg.pictures import PICTURES
from spinseg.segmentation.report.pictures import N_SHOWN
from spinseg.segmentation.result import Segmentation

STATIC = Path(str(files("spinseg.app").joinpath("static")))
MAX_PIXELS = 25_000_000
MAX_ANSWERS = 20  # single draws of one request
MIN_FRAME_SECONDS, MAX_FRAME_SECONDS = 1 / 12, 1.0  # between two frames; the longest if nothing changes
EXPORTS = {
    "labels.png": "image/png",
    "labels.tif": "image/tiff",
    "overlay.png": "image/png",
    "boundary_probability.png": "image/png",
    "report.html": "text/html; charset=utf-8",
    "result.json": "application/json",
}


class Handlers:
    """One method for each kind of request."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def _session(self, request: Request) -> Session:
        return self.sessions[request.path_params["id"]]

    async def index(self, request: Request) -> Response:
        """The page itself."""
        return FileResponse(STATIC / "index.html")

    async def about(self, request: Request) -> Response:
        """The JSON that the page is built from."""
        return JSONResponse(page_description(MAX_RUNNING_CHAINS, UPLOAD_BYTES, MAX_PIXELS))

    async def example(self, request: Request) -> Response:
        """An example image."""
        return FileResponse(_example_path(request.path_params["name"]))

    async def create(self, request: Request) -> Response:
        """Create a session, with an upload or an example."""
        example, body = request.query_params.get("example"), await read_body(request, UPLOAD_BYTES)
        path = None if example is None else _example_path(example)
        given = _reading_options(request)
        picture = await self.sessions.threads.do(_decode, body, path, given)
        source = _printable_name(request.query_params.get("name", "")) if path is None else str(path)
        session = await self.sessions.threads.do(Session, picture, source, self.sessions.threads, given)
        shapes = {"shape": list(picture.shape), "shown": list(session.image.shape[:2])}
        reading = {"read_as": str(picture.reading), "read_otherwise": picture.reading and picture.reading.otherwise}
        return JSONResponse({"id": self.sessions.add(session), "name": Path(source).name, **shapes, **reading}, 201)

    async def settings(self, request: Request) -> Response:
        """Apply settings."""
        session, settings = self._session(request), UserSettings.from_json(await read_json(request))
        if session.loop.running:
            self.sessions.check_capacity(session, settings.chains)
        return JSONResponse(await session.apply(settings))

    async def run(self, request: Request) -> Response:
        """Let the chains run."""
        session, sent = self._session(request), await read_json(request)
        speed = sent.get("speed")
        if speed is not None:
            speed = check_real("speed", speed, at_least=0.1, at_most=1000)
        self.sessions.check_capacity(session, session.n_chains)
        session.loop.start(speed)
        return JSONResponse({})

    def action(self, act: Callable[[Session], Awaitable[None]]) -> Callable[[Request], Awaitable[Response]]:
        """Make the handler of a request that has no parameters."""

        async def handler(request: Request) -> Response:
            session = self._session(request)
            await read_json(request)
            await act(session)
            return JSONResponse({})

        return handler

    async def events(self, request: Request) -> Response:
        """The frames of a session while its chains run, as server-sent events."""
        frames = self._frames(request.path_params["id"], self._session(request))
        return StreamingResponse("" if request.method == "HEAD" else frames, media_type="text/event-stream")

    async def _frames(self, session_id: str, session: Session) -> AsyncIterator[str]:
        """Frames until the browser disconnects; each is made after the one before was sent, so none is out of date."""
        run_number, n_sent = -1, 0
        with self.sessions.listener(session_id):
            while not session.frames.closed and not self.sessions.stopping():
                began, version = time.monotonic(), session.frames.version
                frame = session.frame(run_number, n_sent)
                if not self.sessions.compiled.is_set():
                    frame["state"] = "compiling"
                run_number, n_sent = frame["stage"], frame["sweeps"]
                yield f"data: {json.dumps(frame)}\n\n"
                await session.frames.wait(version, MAX_FRAME_SECONDS)
                await asyncio.sleep(MIN_FRAME_SECONDS - (time.monotonic() - began))

    async def picture(self, request: Request) -> Response:
        """The displayed image."""
        return Response(await asyncio.to_thread(_as_png, self._session(request).image), media_type="image/png")

    async def sites(self, request: Request) -> Response:
        """The site of each displayed pixel."""
        return _binary(self._session(request).sites().astype("<i4"))

    async def outlines(self, request: Request) -> Response:
        """The same, with refined outlines."""
        return _binary(self._session(request).outlines().astype("<i4"))

    async def result(self, request: Request) -> Response:
        """The segmentation so far, at the detail of the settings or at another one; null before the first sweep.

        The page asks again and again, so that it is no error to ask too early.
        """
        session, text = self._session(request), request.query_params.get("detail")
        detail = None if text is None else _detail(text)
        try:
            return JSONResponse(await session.result(detail))
        except NotYet:
            return JSONResponse(None)

    async def boundaries(self, request: Request) -> Response:
        """Boundary probabilities."""
        return _binary(await self._session(request).boundaries())

    async def together(self, request: Request) -> Response:
        """Probabilities of sharing a cluster with one site."""
        session, site = self._session(request), _whole_number(request.query_params.get("site", ""))
        if site is None:
            raise Refused(422, "site must be the number of a site.")
        return _binary(await session.together(site))

    async def answers(self, request: Request) -> Response:
        """Single draws, as pictures."""
        session, count = self._session(request), _whole_number(request.query_params.get("count", str(N_SHOWN)))
        if count is None or not 1 <= count <= MAX_ANSWERS:
            raise Refused(422, f"count must be a whole number from 1 to {MAX_ANSWERS}.")
        return JSONResponse({"answers": await session.answers(count)})

    async def repeat(self, request: Request) -> Response:
        """The Python code and the command that give the same result."""
        return JSONResponse(await self._session(request).repeat())

    async def export(self, request: Request) -> Response:
        """A file to download."""
        session, name = self._session(request), request.path_params["file"]
        if name not in EXPORTS:
            raise Refused(404, f"There is no such export; there are {', '.join(EXPORTS)}.")
        content = await self.sessions.threads.do(_file_content, await session.segmentation(), name)
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=EXPORTS[name], headers=headers)


def _whole_number(text: str) -> int | None:
    """A number from the address of a request, if it is one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _detail(text: str) -> float:
    """A detail from the address of a request."""
    try:
        return check_real("detail", float(text[:30]), at_least=0, at_most=1)
    except ValueError:
        raise Refused(422, "detail must be a number from 0 to 1.") from None


def _example_path(name: str) -> Path:
    """The file of an example image."""
    if name not in PICTURES:
        raise Refused(404, "There is no such example.")
    return PICTURES[name].path


def _reading_options(request: Request) -> dict[str, Any]:
    """The keywords of `read_picture` in the address of a request: `channel_axis` and `intensity_range`."""
    axis, ends = (request.query_params.get(name) for name in ("channel_axis", "intensity_range"))
    found: dict[str, Any] = {}
    try:
        if axis not in (None, "auto"):
            found["channel_axis"] = None if axis == "none" else int(axis[:9])
    except ValueError:
        raise Refused(422, "channel_axis must be auto, none or the number of an axis.") from None
    try:
        if ends is not None:
            low, high = (float(number[:30]) for number in ends.split(","))
            found["intensity_range"] = check_intensity_range((low, high))
    except ValueError:
        raise Refused(422, "intensity_range must be two numbers, the smaller first, with a comma.") from None
    return found


def _decode(body: bytes, path: Path | None, given: dict[str, Any]) -> Picture:
    """The image of an upload, or of the file at `path`, read as `given` asks for."""
    if path is not None:
        return read_picture(path, **given)
    if not body:
        raise Refused(422, "There is no image in the request.")
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        upload = Path(folder, "upload")
        upload.write_bytes(body)  # not atomically: it is read and deleted at once
        try:
            picture = read_picture(upload, max_pixels=MAX_PIXELS, **given)
        except (InvalidInput, MissingExtra) as error:
            raise Refused(415, f"{error}.".replace(str(upload), "The picture")) from None
    if len(picture.shape) != 2:
        raise Refused(415, _volume_sentence(picture))
    return picture


def _volume_sentence(picture: Picture) -> str:
    """Why a volume is refused, how it was read, and what to do."""
    reading = picture.reading
    sentence = f"The web app shows images, not volumes, and this is {reading}: use spinseg.segment in Python."
    if reading is not None and reading.otherwise is not None:
        sentence += " If one of its axes holds channels, say which below Choose a file."
    return sentence


def _printable_name(name: str) -> str:
    """The last part of an upload's name, without unprintable characters; it is displayed, never used as a path."""
    printable = "".join(c for c in name.replace("\\", "/").split("/")[-1] if c.isprintable())[:120]
    return "picture.png" if printable.strip("-.") == "" else printable.lstrip("-")


def _as_png(image: NDArray) -> bytes:
    """The content of a PNG file."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _binary(array: NDArray) -> Response:
    """An array as its bytes in memory."""
    return Response(array.tobytes(), media_type="application/octet-stream")


def _file_content(found: Segmentation, name: str) -> bytes:
    """The content of one of the files that `Segmentation.save` writes."""
    if name in found.skipped_files:
        raise Refused(404, f"There is no {name}: {found.skipped_files[name]}.")
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        found.save(folder, [name])
        return Path(folder, name).read_bytes()
