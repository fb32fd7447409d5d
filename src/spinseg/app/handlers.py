"""The answers to all requests."""

import asyncio
import contextlib
import inspect
import io
import json
import mimetypes
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from spinseg._errors import MissingExtra
from spinseg._validation import InvalidInput, check_real
from spinseg.app.controls import MAX_CHAINS, UserSettings, checked_seeds, page_description
from spinseg.app.run_loop import MAX_RUNNING_CHAINS, NotYet
from spinseg.app.session import Session, Sessions
from spinseg.app.words import Refused, in_user_words, refusal
from spinseg.image.intensity import check_intensity_range
from spinseg.image.io import read_picture
from spinseg.image.picture import Picture
from spinseg.pictures import PICTURES
from spinseg.segmentation.files import FILES
from spinseg.segmentation.result import Segmentation

STATIC = Path(str(files("spinseg.app").joinpath("static")))
UPLOAD_BYTES, JSON_BYTES = 32 * 2**20, 64 * 2**10
MAX_PIXELS = 25_000_000
MIN_FRAME_SECONDS, MAX_FRAME_SECONDS = 1 / 12, 1.0  # between two frames; the longest if nothing changes
CUTOUT = "cutout.png"  # an export that `Segmentation.save` does not have: one region
LIMITS = {"upload_bytes": UPLOAD_BYTES, "pixels": MAX_PIXELS, "chains": MAX_CHAINS, "running": MAX_RUNNING_CHAINS}


class Handlers:
    """The answers to all requests; those of a session are given it, and answer with a response, an array or JSON."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[Route]:
        """All requests but those for static files."""
        get: dict[str, Callable[[Request, Session], Any]] = {
            "events": self.events,
            "picture": self.picture,
            "sites": lambda request, session: session.sites(),
            "outlines": lambda request, session: session.outlines(),
            "result": self.result,
            "boundaries": lambda request, session: session.boundaries(),
            "together": self.together,
            "answers": lambda request, session: session.answers(),
            "repeat": lambda request, session: session.repeat(),
            "export/{file}": self.export,
        }
        post: dict[str, Callable[[Mapping[str, Any], Session], Awaitable[dict[str, Any] | None]]] = {
            "settings": self.settings,
            "conditioned": self.conditioned,
            "run": self.run,
            "pause": lambda sent, session: session.loop.pause(),
            "step": lambda sent, session: session.loop.step(),
            "restart": lambda sent, session: session.restart(),
        }

        at = "/api/pages/{id}"
        return [
            Route("/", lambda request: FileResponse(STATIC / "index.html")),
            Route("/api/about", lambda request: JSONResponse(page_description() | {"limits": LIMITS})),
            Route("/api/examples/{name}", lambda request: FileResponse(_example_path(request.path_params["name"]))),
            Route("/api/pages", self.create, methods=["POST"]),
            *(Route(f"{at}/{name}", partial(self._read, answer)) for name, answer in get.items()),
            *(Route(f"{at}/{name}", partial(self._change, act), methods=["POST"]) for name, act in post.items()),
        ]

    async def _read(self, answer: Callable[[Request, Session], Any], request: Request) -> Response:
        found = answer(request, self.sessions[request.path_params["id"]])
        found = await found if inspect.isawaitable(found) else found
        if isinstance(found, np.ndarray):
            content = found.astype(found.dtype.newbyteorder("<")).tobytes()
            return Response(content, media_type="application/octet-stream")
        return found if isinstance(found, Response) else JSONResponse(found)

    async def _change(self, act: Callable[[Mapping[str, Any], Session], Awaitable[Any]], request: Request) -> Response:
        session = self.sessions[request.path_params["id"]]
        return JSONResponse(await act(await _read_json(request), session))

    async def create(self, request: Request) -> Response:
        """Create a session, with an upload or an example."""
        example, body = request.query_params.get("example"), await _read_body(request, UPLOAD_BYTES)
        path = None if example is None else _example_path(example)
        given = _reading_options(request)
        name = _printable_name(request.query_params.get("name", ""))
        picture = await asyncio.to_thread(_decode, body, path, given, name)
        source = name if path is None else str(path)
        session = await asyncio.to_thread(Session, picture, source, **given)
        shapes = {"shape": list(picture.shape), "shown": list(session.image.shape[:2])}
        otherwise = picture.reading and picture.reading.otherwise
        reading = {"read_as": str(picture.reading), "read_otherwise": otherwise and f"{in_user_words(otherwise)}."}
        return JSONResponse({"id": self.sessions.add(session), "name": Path(source).name, **shapes, **reading}, 201)

    async def settings(self, sent: Mapping[str, Any], session: Session) -> None:
        """Apply settings."""
        settings = UserSettings.from_json(sent)
        if session.loop.running:
            self.sessions.check_capacity(session, settings.chains)
        await session.apply(settings)

    async def conditioned(self, sent: Mapping[str, Any], session: Session) -> dict[str, Any] | None:
        """The first answer to scribbles, from the draws so far; null where these cannot be used."""
        seeds = checked_seeds(sent.get("seeds") or {})
        with contextlib.suppress(NotYet):
            return await session.conditioned(seeds)
        return None

    async def run(self, sent: Mapping[str, Any], session: Session) -> None:
        """Let the chains run."""
        speed = sent.get("speed")
        if speed is not None:
            speed = check_real("speed", speed, at_least=0.1, at_most=1000)
        self.sessions.check_capacity(session, session.n_chains)
        session.loop.start(speed)

    def events(self, request: Request, session: Session) -> Response:
        """The frames of a session while its chains run, as server-sent events."""
        frames = "" if request.method == "HEAD" else self._frames(session)
        return StreamingResponse(frames, media_type="text/event-stream")

    async def _frames(self, session: Session) -> AsyncIterator[str]:
        """Frames until the browser disconnects; each is made after the one before was sent, so none is out of date."""
        loop, stage, n_sent = session.loop, -1, 0
        session.n_listeners += 1
        try:
            while not loop.closed and not self.sessions.stopping():
                began, changed, frame = time.monotonic(), loop.changed, loop.frame(stage, n_sent)
                stage, n_sent = frame["stage"], frame["sweeps"]
                yield f"data: {json.dumps(frame)}\n\n"
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), MAX_FRAME_SECONDS)
                await asyncio.sleep(MIN_FRAME_SECONDS - (time.monotonic() - began))
        finally:
            session.n_listeners -= 1
            session.left_at = time.monotonic()

    async def picture(self, request: Request, session: Session) -> Response:
        """The displayed image."""
        file, image = io.BytesIO(), Image.fromarray(session.image)
        await asyncio.to_thread(image.save, file, "PNG", compress_level=1)
        return Response(file.getvalue(), media_type="image/png")

    async def result(self, request: Request, session: Session) -> dict[str, Any] | None:
        """The segmentation so far, at the detail of the settings or at another one; null before the first sweep."""
        text, detail = request.query_params.get("detail"), None
        if text is not None:
            try:
                detail = check_real("detail", float(text[:30]), at_least=0, at_most=1)
            except ValueError:
                raise Refused(422, "detail must be a number from 0 to 1.") from None
        try:
            return await session.result(detail)
        except NotYet:
            return None

    async def together(self, request: Request, session: Session) -> NDArray[np.uint8]:
        """Probabilities of sharing a cluster with one site."""
        return await session.together(_whole_number(request, "site", "the number of a site"))

    async def export(self, request: Request, session: Session) -> Response:
        """A file to download."""
        name = request.path_params["file"]
        if name == CUTOUT:
            place = _place(request, session.picture.shape)
            content = await session.export(lambda found: _cut_out(found, place))
        elif name in FILES:
            content = await session.export(lambda found: _file_content(found, name))
        else:
            raise Refused(404, f"There is no such export; there are {', '.join((*FILES, CUTOUT))}.")
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=mimetypes.guess_type(name)[0], headers=headers)


async def _read_body(request: Request, max_bytes: int) -> bytes:
    """The body of a request; raises Refused as soon as it is too long."""
    too_long = Refused(413, f"At most {max_bytes / 2**20:g} MB can be sent.")
    claimed = request.headers.get("content-length", "0")
    if not claimed.isdecimal() or int(claimed) > max_bytes:
        raise too_long
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length > max_bytes:
            raise too_long
        parts.append(part)
    return b"".join(parts)


async def _read_json(request: Request) -> Mapping[str, Any]:
    """The JSON object in the body of a request."""
    body = await _read_body(request, JSON_BYTES)
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Refused(400, "The body must be JSON.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The body must be a JSON object.")
    return found


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
        if ends is not None:
            low, high = (float(number[:30]) for number in ends.split(","))
            found["intensity_range"] = check_intensity_range((low, high))
    except ValueError:
        line = "channel_axis must be auto, none or an axis, and intensity_range two numbers, the smaller first"
        raise Refused(422, f"{line}.") from None
    return found


def _whole_number(request: Request, name: str, kind: str) -> int:
    """A number in the address of a request, 0 or larger; `kind` says what it must be."""
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Refused(422, f"{name} must be {kind}.")
    return int(text)


def _place(request: Request, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The pixel of an image of this shape that the address of a request names."""
    place = tuple(_whole_number(request, axis, "that of a pixel of the image") for axis in ("row", "column"))
    if any(at >= length for at, length in zip(place, shape, strict=True)):
        raise Refused(422, "This place is outside the image.")
    return place


def _decode(body: bytes, path: Path | None, given: dict[str, Any], name: str = "") -> Picture:
    """The image of an upload called `name`, or of the file at `path`, read as `given` asks for."""
    if path is not None:
        return read_picture(path, **given)
    if not body:
        raise Refused(422, "There is no image in the request.")
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        upload = Path(folder, "upload")
        upload.write_bytes(body)  # not atomically: it is read and deleted at once
        try:
            picture = read_picture(upload, max_pixels=MAX_PIXELS, **given)
        except InvalidInput as error:
            sentence = refusal(error).replace(str(upload), name or "The image")
            raise Refused(415, sentence) from None
        except MissingExtra as error:
            raise Refused(415, f"{error}.") from None
    if len(picture.shape) != 2:
        reading = picture.reading
        sentence = f"The web app shows images, not volumes, and this is {reading}: use spinseg.segment in Python."
        if reading is not None and reading.otherwise is not None:
            sentence += " If one of its axes holds channels, say which below Choose a file."
        raise Refused(415, sentence)
    return picture


def _printable_name(name: str) -> str:
    """The last part of an upload's name, without unprintable characters; it is displayed, never used as a path."""
    printable = "".join(c for c in name.replace("\\", "/").split("/")[-1] if c.isprintable())[:120]
    return "picture.png" if printable.strip("-.") == "" else printable.lstrip("-")


def _file_content(found: Segmentation, name: str) -> bytes:
    """The content of one of the files that `Segmentation.save` writes."""
    if name in found.skipped_files:
        raise Refused(404, f"There is no {name}: {found.skipped_files[name]}.")
    with tempfile.TemporaryDirectory(prefix="spinseg-") as folder:
        found.save(folder, [name])
        return Path(folder, name).read_bytes()


def _cut_out(found: Segmentation, place: tuple[int, ...]) -> bytes:
    """The region at a place, as a PNG of the size of the image in which all else is transparent."""
    if found.labels[place] < found.start_label:
        raise Refused(422, "There is no region at this place.")
    inside = found.labels == found.labels[place]
    image = np.zeros((*inside.shape, 4), np.uint8)
    image[inside, :3] = found.picture.rgb[inside]
    image[inside, 3] = 255
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()
