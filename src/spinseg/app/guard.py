"""Access control: only the page of this server may send requests, and bodies have a maximum length."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

UPLOAD_BYTES = 32 * 2**20
JSON_BYTES = 64 * 2**10
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
    """Raised to refuse a request, with a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def error_response(status: int, sentence: str) -> JSONResponse:
    """The response to a refused request."""
    return JSONResponse({"error": sentence}, status)


class Guard:
    """Passes requests on that name this server as their host and were not sent by another site.

    The host protects against names that an attacker lets point to 127.0.0.1 (DNS rebinding); browsers send the origin
    with requests from other sites.
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


async def read_body(request: Request, max_bytes: int) -> bytes:
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


async def read_json(request: Request) -> Mapping[str, Any]:
    """The JSON object in the body of a request."""
    body = await read_body(request, JSON_BYTES)
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Refused(400, "The body must be JSON.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The body must be a JSON object.")
    return found
