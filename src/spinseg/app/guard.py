"""Who may ask what: only pages of this server, only so much at a time; and what browsers are told."""

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UPLOAD_BYTES = 32 * 2**20
JSON_BYTES = 16 * 2**10
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


class Refused(Exception):
    """A request that gets a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def refusal(status: int, sentence: str) -> JSONResponse:
    """What a refused request gets."""
    return JSONResponse({"error": sentence}, status)


class Guard:
    """Lets requests through that name this server as their host, and that no other site sent.

    A name that an attacker makes point to 127.0.0.1 (DNS rebinding) is none of its names, and requests of other sites
    carry their origin.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, and pass on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # there are no web sockets here: the server closes them

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        problem = _problem(scope)
        scope["headers"] = [header for header in scope["headers"] if header[0] != b"range"]  # files are sent whole
        respond = self.app if problem is None else refusal(403, problem)
        await respond(scope, receive, with_headers)


def _problem(scope: Scope) -> str | None:
    """Why a request is not let through."""
    headers, port = Headers(scope=scope), (scope.get("server") or ("", 0))[1]
    hosts = [host if port == 80 else f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
    if headers.getlist("host") not in ([host] for host in hosts):
        return "The host must be 127.0.0.1 or localhost, with the port of this server."
    if any(origin != f"http://{headers['host']}" for origin in headers.getlist("origin")):
        return "Pages of other sites may not ask here."
    is_page = scope["path"] == "/" and scope["method"] == "GET"  # a link from elsewhere may lead to it
    if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")) and not is_page:
        return "Pages of other sites may not ask here."
    return None


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request, refused as soon as it is too long."""
    too_long = Refused(413, f"At most {most / 2**20:g} MB can be sent.")
    claimed = request.headers.get("content-length", "0")
    if not claimed.isdecimal() or int(claimed) > most:
        raise too_long
    parts, length = [], 0
    async for part in request.stream():
        length += len(part)
        if length > most:
            raise too_long
        parts.append(part)
    return b"".join(parts)


async def json_of(request: Request) -> Mapping[str, Any]:
    """The JSON object in the body of a request."""
    import json

    body = await body_of(request, JSON_BYTES)
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Refused(400, "The body must be JSON.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The body must be a JSON object.")
    return found
