"""The server of the page: access control, harmful files and requests, and limits."""

import ast
import contextlib
import functools
import http.client
import io
import json
import lzma
import pickle
import select
import shlex
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from app_client import LEFT, Listener, Server, complete, is_guarded, is_in_order, small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from effort import effort, exhaustive
from processes import PATIENCE, wait_until
from spinseg.app import handlers, session
from spinseg.app.controls import PRIOR_CHOICES, STARTS, controls
from spinseg.segmentation.presets.preset import Preset

pytestmark = pytest.mark.xdist_group("app")  # one server

SPEED = 12  # sweeps a second of the bystander
MAX_REFUSED_BYTES = 100 * 2**20  # memory that a refused file may take


def fuzz(examples):
    """The same examples every time."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
    return settings(max_examples=examples, derandomize=True, database=None, deadline=None, suppress_health_check=slow)


# The same server with shorter times, an error in /api/about, and an image that takes long.
SPARE = """
import time
from spinseg.app import handlers, server, session
session.STOP_SECONDS, session.CLOSE_SECONDS, session.MAX_SESSIONS, session.MAX_RUNNING_CHAINS = 0.5, 1.5, 12, 4
def fail(*arguments): raise ValueError("a secret of the server")
handlers.page_description = fail
new_run = session.Session._new_run
def slow_run(self, *how): time.sleep(1.2 * (self.source == "slow.png")); return new_run(self, *how)
session.Session._new_run = slow_run
server.serve(open_browser=False)
"""

GETS = ["/", "/api/about", "/api/examples/coffee", "/static/index.html"]
GETS_OF_PAGE = ["picture", "sites", "outlines", "result", "boundaries", "together?site=1", "answers", "repeat"]
GETS_OF_PAGE += ["events", "export/labels.png", "export/report.html", "export/result.json"]
GETS_OF_PAGE += ["export/cutout.png?row=1&column=1"]
POSTS_OF_PAGE = {"settings": '{"chains": 2, "seed": 77}', "run": '{"speed": 999}'}
POSTS_OF_PAGE |= {"conditioned": '{"seeds": {"1": [[1, 1]]}}', "pause": "{}", "step": "{}", "restart": "{}"}


# --- a server and its clients ---


@pytest.fixture(scope="module")
def spare(tmp_path_factory):
    """A server with short timeouts, on which `/api/about` fails."""
    server = Server.started(tmp_path_factory.mktemp("spare"), "-c", SPARE)
    yield server
    reported = server.end()
    faults = [line for line in reported if "Error" in line and not line.startswith(" ")]
    assert set(faults) <= {"ValueError: a secret of the server"}, reported


@pytest.fixture(scope="module")
def bystander(server):
    """The session of another user, which runs slowly until the tests of this file end; its listener stays."""
    page = server.page(chains=1, seed=5)
    listener, began = Listener(server, page), time.monotonic()
    LEFT.append(listener)
    assert server.ask("POST", f"{page}/run", json.dumps({"speed": SPEED})).status == 200
    listener.wait_for(lambda frame: frame["sweeps"] > 0)
    yield page, listener, began
    assert server.ask("POST", f"{page}/pause", "{}").status == 200


@pytest.fixture(autouse=True)
def bystander_is_unaffected(request, bystander):
    """Check that each test leaves the bystander running, with the same chains and settings."""
    _, listener, began = bystander
    before, entered = dict(listener.latest), time.monotonic()
    yield
    if "bystander" in request.function.__code__.co_varnames or time.monotonic() - min(entered, listener.moved) > 1:
        listener.wait_for(lambda frame: frame["sweeps"] > before["sweeps"] + 1)
    after, same = listener.latest, ("scene", "stage", "began", "state", "note")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert after["sweeps"] <= SPEED * (time.monotonic() - began) + 2  # not faster than its speed
    assert listener.problem is None and not listener.ended


@pytest.fixture(scope="module")
def page(server):
    """A session with settings, a sweep and a listener."""
    page = server.page(chains=1, start="greedy")
    with Listener(server, page) as listener:
        assert server.ask("POST", f"{page}/step", "{}").status == 200
        yield page
        assert listener.problem is None and not listener.ended


def everything(page):
    """Every endpoint: method, path and body; those of a page as they would change it."""
    yield from (("GET", path, None) for path in GETS)
    yield "POST", "/api/pages?example=coffee", None
    yield from (("GET", f"{page}/{name}", None) for name in GETS_OF_PAGE)
    yield from (("POST", f"{page}/{name}", body) for name, body in POSTS_OF_PAGE.items())


# --- access control ---


def test_it_listens_at_127_0_0_1_and_nowhere_else(server):
    tables = [path for path in map(Path, ("/proc/net/tcp", "/proc/net/tcp6")) if path.exists()]
    rows = [line.split() for path in tables for line in path.read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == server.port]
    assert listening == [f"0100007F:{server.port:04X}"] or not tables
    for other in ("127.0.0.2", socket.gethostbyname(socket.gethostname())):
        if other != "127.0.0.1":
            with pytest.raises(OSError):
                socket.create_connection((other, server.port), timeout=5).close()


HOSTS = ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost", "127.0.0.1:{other}", "localhost:{other}"]
HOSTS += ["127.0.0.1.evil.example:{port}", "localhost.evil.example:{port}", "0.0.0.0:{port}", "[::1]:{port}"]
HOSTS += ["127.1:{port}", "2130706433:{port}", "127.0.0.1:{port}@evil.example", "evil.example@127.0.0.1:{port}", ""]
HOSTS += ["127.0.0.1:{port}, evil.example", "127.0.0.2:{port}", "127.0.0.1:0{port}", "127.0.0.1:"]


@pytest.mark.parametrize("host", HOSTS[:: effort(4, 1)])
def test_a_request_with_another_host_is_refused(server, bystander, host):
    named = host.format(port=server.port, other=server.port + 1)
    for method, path, body in everything(bystander[0]) if host == HOSTS[0] else [("GET", "/api/about", None)]:
        reply = server.ask(method, path, body, [("Host", named)])
        assert reply.status == 403 and is_in_order(reply), path


def test_a_request_without_a_host_or_with_two_is_refused(server):
    ours, evil = f"Host: 127.0.0.1:{server.port}\r\n", "Host: evil.example\r\n"
    for hosts in ("", ours + evil, evil + ours, ours + ours):
        for version in ("1.0", "1.1"):
            reply = server.raw(f"GET /api/about HTTP/{version}\r\n{hosts}\r\n".encode())
            assert reply.status in (400, 403) and b"presets" not in reply.body
    reply = server.raw(server.head("GET", "http://evil.example/api/about"))
    assert reply.status == 404 and is_in_order(reply)


ORIGINS = ["http://evil.example", "null", "", "file://", "https://127.0.0.1:{port}", "http://127.0.0.1:{other}"]
ORIGINS += ["http://127.0.0.1", "http://localhost:{port}", "http://127.0.0.1:{port}.evil.example"]
ORIGINS += ["http://127.0.0.1:{port}@evil.example", "http://127.0.0.1:{port} http://evil.example", "moz-extension://a"]


OTHER_SITES = [[("Origin", origin)] for origin in ORIGINS[:: effort(4, 1)]]
OTHER_SITES += [
    [("Origin", "http://127.0.0.1:{port}"), ("Origin", "http://evil.example")],
    [("Sec-Fetch-Site", "cross-site")],
    [("Sec-Fetch-Site", "same-site")],  # another port of this machine
    [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")],
    [("Origin", "http://127.0.0.1:{port}"), ("Sec-Fetch-Site", "cross-site")],
    [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "same-origin")],
]


@pytest.mark.parametrize("headers", OTHER_SITES, ids=str)
def test_every_endpoint_refuses_another_site(server, bystander, headers):
    ports = {"port": server.port, "other": server.port + 1}
    sent = [(name, value.format(**ports)) for name, value in headers]
    own = f"http://127.0.0.1:{server.port}"
    for method, path, body in everything(bystander[0]):
        reply = server.ask(method, path, body, sent)
        is_link = path == "/" and all(value == own for name, value in sent if name == "Origin")  # from elsewhere
        assert reply.status == (200 if is_link else 403) and is_in_order(reply), (path, reply)


def test_the_page_itself_is_allowed(server, page):
    for host in ("127.0.0.1", "localhost"):
        for site in ("same-origin", "none"):
            own = [("Host", f"{host}:{server.port}"), ("Origin", f"http://{host}:{server.port}")]
            own.append(("Sec-Fetch-Site", site))
            for path in (*GETS, f"{page}/repeat", f"{page}/events"):
                assert server.ask("GET", path, None, own).status == 200
            assert server.ask("POST", f"{page}/pause", "{}", own).status == 200


def test_there_are_no_web_sockets(server):
    asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    asked["Sec_WebSocket_Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    assert server.raw(server.head("GET", "/api/about", **asked)).status != 101
    assert server.raw(server.head("GET", "/api/about", Origin="http://evil.example", **asked)).status == 403


# --- headers and responses ---


STATUSES = {  # methods and paths, and after another space a body
    200: "GET /|HEAD /|GET /api/about|GET /static/index.html|GET /static/style.css|GET /api/examples/cat|"
    "GET {page}/events|HEAD {page}/events|GET {page}/picture|GET {page}/sites|GET {page}/outlines|"
    "GET {page}/export/report.html",
    201: "POST /api/pages?example=cat",
    307: "GET /api/about/",
    400: "POST {page}/settings no JSON",
    404: "GET /api/examples/nobody|GET /nowhere|GET /static/nothing.js|GET /static/|GET /api/pages/nobody/picture|"
    "GET /api/pages/nobody/events|POST /api/pages?example=dog|GET {page}/export/secrets.txt",
    405: "DELETE /api/about|POST /static/style.css {}|GET /api/pages",
    415: "POST /api/pages a letter",
    422: 'POST {page}/settings {"chains": 99}|GET {page}/together|GET {page}/export/cutout.png',
}


@pytest.mark.parametrize("status", STATUSES)
def test_every_kind_of_answer_has_the_headers(server, page, status):
    for request in STATUSES[status].split("|"):
        method, path, *body = request.split(" ", 2)
        reply = server.ask(method, path.replace("{page}", page), *body)
        assert reply.status == status and is_in_order(reply, method), request
        assert reply.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "wanted", ["bytes=99999999-", "bytes=9-1", "potato", "bytes=", "bytes=0-0,1-1,5-3", "bytes=-0"]
)
@pytest.mark.parametrize("path", ["/", "/static/style.css", "/api/examples/cat"])
def test_odd_ranges_of_files_get_one_sentence_or_the_file(server, path, wanted):
    assert is_in_order(server.ask("GET", path, None, [("Range", wanted)]))


def test_an_error_of_the_server_is_reported_without_details(spare):
    reply = spare.ask("GET", "/api/about")
    assert reply.status == 500 and list(reply.json) == ["error"]
    assert b"secret" not in reply.body and b"Traceback" not in reply.body
    assert is_guarded(reply)
    wait_until(lambda: "ValueError: a secret of the server" in spare.reported.read_text())
    assert "Traceback (most recent call last)" in spare.reported.read_text()


def test_an_export_is_a_download_and_its_report_runs_nothing(server):
    page = server.page(name="<img src=x onerror=alert(1)><script>alert(2)<&script>.png", chains=1)
    server.ask("POST", f"{page}/step", "{}")
    for name in ("labels.png", "labels.tif", "overlay.png", "boundary_probability.png", "report.html", "result.json"):
        reply = server.ask("GET", f"{page}/export/{name}")
        assert reply.status == 200 and reply.headers["content-disposition"] == f'attachment; filename="{name}"'
        if name == "report.html":
            assert b"<img src=x" not in reply.body and b"<script>alert" not in reply.body
            assert b"&lt;img src=x" in reply.body


def test_a_cut_out_is_the_region_at_a_pixel_of_the_image_and_no_other_place(server, page):
    labels = np.asarray(Image.open(io.BytesIO(server.ask("GET", f"{page}/export/labels.png").body)))
    original = np.asarray(Image.open(io.BytesIO(small("PNG"))).convert("RGB"))
    for row, column in ((0, 0), (15, 23)):
        reply = server.ask("GET", f"{page}/export/cutout.png?row={row}&column={column}")
        assert reply.status == 200 and reply.headers["content-type"] == "image/png"
        assert reply.headers["content-disposition"] == 'attachment; filename="cutout.png"'
        image = Image.open(io.BytesIO(reply.body))
        assert image.mode == "RGBA"
        inside = labels == labels[row, column]
        np.testing.assert_array_equal(np.asarray(image)[..., 3], np.where(inside, 255, 0))
        np.testing.assert_array_equal(np.asarray(image)[..., :3], original * inside[..., None])
    for query in ("row=16&column=0", "row=0&column=24", "row=999999999&column=0"):
        reply = server.ask("GET", f"{page}/export/cutout.png?{query}")
        assert reply.status == 422 and reply.json == {"error": "This place is outside the image."}
        assert is_in_order(reply)


# --- lengths of requests ---


def test_a_length_beyond_the_limit_is_refused_before_anything_is_sent(server, page):
    for path, most in (("/api/pages", handlers.UPLOAD_BYTES), (f"{page}/settings", handlers.JSON_BYTES)):
        for length in (most + 1, 10**12, 10**18):
            reply = server.raw(server.head("POST", path, Content_Length=length))
            assert reply.status == 413 and is_in_order(reply)
    assert server.ask("POST", f"{page}/settings", b" " * (handlers.JSON_BYTES + 1)).status == 413
    assert server.ask("POST", f"{page}/pause", b" " * handlers.JSON_BYTES + b"").status == 400  # at the limit: no JSON


@pytest.mark.parametrize("claimed", [{}, {"Content_Length": 5}], ids=["no length", "a wrong length"])
def test_a_body_in_chunks_is_refused_once_it_is_too_long(server, page, claimed):
    for path, most in (("/api/pages", handlers.UPLOAD_BYTES), (f"{page}/settings", handlers.JSON_BYTES)):
        size, sent = max(1024, most // 64), 0
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
            connection.sendall(server.head("POST", path, Transfer_Encoding="chunked", **claimed))
            while sent < 2 * most + 2**20 and not select.select([connection], [], [], 0)[0]:
                connection.sendall(b"%x\r\n%s\r\n" % (size, bytes(size)))
                sent += size
            with http.client.HTTPResponse(connection) as begun:
                begun.begin()
                reply = complete(begun)
        assert reply.status == 413 and is_in_order(reply) and sent > most - size


def test_wrong_lengths_are_harmless(server):
    body = small("PNG")
    reply = server.raw(server.head("POST", "/api/pages", Content_Length=len(body) - 20) + body)  # more comes
    assert reply.status in (201, 415)
    for claimed in (len(body) + 9, handlers.UPLOAD_BYTES):  # less comes, and then the end
        try:
            sent = server.head("POST", "/api/pages", Content_Length=claimed) + body
            assert server.raw(sent, end_of_sending=True).status == 400
        except (OSError, http.client.HTTPException):
            pass  # nobody is there to be answered
    for claimed in ("-1", "0x10", "1e3", "", "9" * 30, "5, 6"):
        reply = server.raw(server.head("POST", "/api/pages", Content_Length=claimed))
        assert 400 <= reply.status < 500
    assert server.raw(server.head("POST", "/api/pages", Transfer_Encoding="chunked") + b"zz\r\n").status == 400
    for nonsense in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"\0" * 99 + b"\r\n\r\n", b"GET\r\n\r\n"):
        assert server.raw(nonsense).status == 400
    with contextlib.suppress(ConnectionError):  # it hangs up while more is coming
        assert server.raw(server.head("GET", "/" + "a" * 200_000)).status in (400, 414)


# --- files ---


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, *more):
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    chunks = [header, *more, png_chunk(b"IDAT", zlib.compress(b"")), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def tiff(strip, width=10, height=10, compression=1, bits=8, samples=1):
    """A TIFF of one strip that says what it likes."""
    strip += b"\0" * (len(strip) % 2)
    entries = [(256, 4, width), (257, 4, height), (258, 3, bits), (259, 3, compression), (262, 3, 1), (273, 4, 8)]
    entries += [(277, 3, samples), (278, 4, height), (279, 4, len(strip))]
    table = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return b"II*\0" + struct.pack("<I", 8 + len(strip)) + strip + struct.pack("<H", len(entries)) + table + bytes(4)


def npy(shape, kind="<f8", data=bytes(64)):
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + data


def gif(screen, frame):
    head = b"GIF89a" + struct.pack("<HHBBB", *screen, 0x80, 0, 0) + bytes(6)
    return head + b"," + struct.pack("<HHHHB", 0, 0, *frame, 0) + b"\x02\x02\x4c\x01\x00;"


@functools.cache
def zeros(kind):
    """300 MB of zeros, compressed."""
    compressor = zlib.compressobj(1) if kind == "deflate" else lzma.LZMACompressor(preset=0)
    return b"".join(compressor.compress(bytes(2**20)) for _ in range(300)) + compressor.flush()


BOMBS = {  # tests/image has such headers of every kind of file
    "png": lambda: png(60_000, 60_000),
    "png text": lambda: png(9, 9, png_chunk(b"zTXt", b"a\0\0" + zeros("deflate"))),
    "png profile": lambda: png(9, 9, png_chunk(b"iCCP", b"a\0\0" + zeros("deflate"))),
    "gif frame": lambda: gif((1, 1), (65_535, 65_535)),
    "gif frame of a size that Pillow warns of": lambda: gif((1, 1), (10_000, 10_000)),
    "tiff": lambda: tiff(bytes(100), 60_000, 60_000),
    "tiff of many bits": lambda: tiff(zlib.compress(bytes(999)), 4_900, 4_900, 8, 64),
    "tiff of many samples": lambda: tiff(bytes(99), 4_000, 4_000, 1, 8, 60_000),
    "npy beyond 64 bits": lambda: npy((2**40, 2**40)),
    "npy negative": lambda: npy((-5, -5)),
    "npy of nothing": lambda: npy((2**40, 0)),
    "npy of items of no size": lambda: npy((5_000, 5_000), "|V0"),
    "npy of large items": lambda: npy((5, 5), "<U99999999"),
    "npy deep": lambda: npy("(" * 3000 + ")" * 3000),
}
UNPACKED = {  # to more than there are pixels for
    "deflate": lambda: tiff(zeros("deflate"), compression=8),
    "old deflate": lambda: tiff(zeros("deflate"), compression=32946),
    "lzma": lambda: tiff(zeros("lzma"), compression=34925),
    "packbits": lambda: tiff(b"\x81\0" * 400_000, compression=32773),
}


@pytest.mark.parametrize("bomb", [*BOMBS, *list(UNPACKED)[:: effort(4, 1)]])
def test_a_file_that_claims_much_is_refused_quickly_and_with_little_memory(server, bomb):
    content = (BOMBS | UNPACKED)[bomb]()
    assert len(content) < 2**21
    before, began = server.memory(), server.cpu_seconds()
    server.forget_peak()
    reply = server.upload(content)
    assert (reply.status in (201, 415, 422) if bomb in UNPACKED else 400 <= reply.status < 500) and is_in_order(reply)
    assert server.memory("VmHWM") - before < MAX_REFUSED_BYTES and server.cpu_seconds() - began < 10


def test_the_limit_of_pixels_is_that_of_the_page(server):
    most = server.ask("GET", "/api/about").json["limits"]["pixels"]
    for content in (png(most + 1, 1), npy((most + 1, 1), "|u1", bytes(most + 1))):
        reply = server.upload(content)
        assert reply.status == 415 and f"at most {most} pixels" in reply.json["error"]


def test_no_file_runs_code(server, tmp_path):
    pickled = f"cos\nmkdir\n(S'{tmp_path / 'made'}'\ntR.".encode()
    for content in (pickled, npy((1, 1), "|O", pickled)):
        reply = server.upload(content)
        assert reply.status == 415 and is_in_order(reply)
    assert not (tmp_path / "made").exists()
    pickle.loads(pickled)
    assert (tmp_path / "made").exists()  # so the pickle works


ARRAYS = [np.zeros((9, 9, 9), np.uint8), np.zeros((5, 9, 9, 3), np.uint8), np.zeros(9), np.zeros((2, 2, 2, 2, 2))]
ARRAYS += [np.full((9, 9), value) for value in (np.nan, np.inf, 1j, "a" * 99)] + [np.array([[-1.7e308, 1.7e308]] * 9)]
ARRAYS += [np.zeros((9, 9), "M8[s]"), np.zeros((9, 9), [("a", "f8")]), np.zeros((0, 9))]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.name}{array.shape}{array.flat[:1]}")
def test_arrays_that_are_no_picture_are_refused(server, array):
    file = io.BytesIO()
    np.save(file, array)
    reply = server.upload(file.getvalue())
    assert reply.status in (415, 422) and is_in_order(reply)


def test_nothing_at_all_and_files_without_a_reader_are_refused(server):
    missing_reader = server.upload(b"ZISRAWFILE" + bytes(90), "slide.czi")
    for reply in (server.upload(b""), server.ask("POST", "/api/pages"), missing_reader):
        assert reply.status in (415, 422) and is_in_order(reply)


def test_an_upload_says_how_it_was_read_and_takes_how_to_read_it(server):
    file = io.BytesIO()
    np.save(file, np.stack([np.arange(600, dtype=np.uint16).reshape(20, 30)] * 5))
    refused = server.ask("POST", "/api/pages?name=a.npy", file.getvalue())
    assert refused.status == 415 and is_in_order(refused)
    assert "a volume of 5 planes of 30 x 20 pixels" in refused.json["error"] and "axes" in refused.json["error"]
    reply = server.ask("POST", "/api/pages?name=a.npy&channel_axis=0&intensity_range=0,4095", file.getvalue())
    assert reply.status == 201 and reply.json["shape"] == [20, 30] and reply.json["read_otherwise"] is None
    assert reply.json["read_as"] == "5 channels of 30 x 20 pixels, 16 bits, intensities from 0 to 4095"


def test_a_damaged_file_and_one_of_another_kind_are_refused_in_plain_words(server):
    cut = server.upload(small("JPEG")[:-40], "broken.jpg")
    assert cut.status == 415 and cut.json == {"error": "broken.jpg is damaged or incomplete."}
    text = server.upload(b"some notes", "notes.txt")
    assert text.status == 415 and "Choose a PNG" in text.json["error"] and "NIfTI" not in text.json["error"]


@pytest.mark.parametrize(
    "query",
    ["channel_axis=x", "channel_axis=", "channel_axis=7", "channel_axis=1e9", f"channel_axis={'9' * 5000}"]
    + [f"intensity_range={text}" for text in ("", "1", "2,1", "1,2,3", "a,b", "nan,1", "0,inf", "0,1e999", ",")],
)
def test_odd_ways_to_read_an_upload_get_one_sentence(server, query):
    reply = server.ask("POST", f"/api/pages?name=a.png&{query}", small("PNG"))
    assert reply.status in (415, 422) and is_in_order(reply)


KINDS = {"PNG": 8, "JPEG": 3, "GIF": 6, "WEBP": 12, "BMP": 2, "TIFF": 4, "NPY": 6}


@fuzz(effort(30, 60))
@given(data=st.data(), kind=st.sampled_from(list(KINDS)))
def test_damaged_files_get_one_sentence(spare, data, kind):
    whole = small(kind)
    how = data.draw(st.sampled_from(["cut", "random", "changed", "doubled"]))
    if how == "cut":
        content = whole[: data.draw(st.integers(1, len(whole) - 1))]
    elif how == "random":
        content = whole[: KINDS[kind]] + data.draw(st.binary(max_size=300))
    elif how == "changed":
        content = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 9))):
            content[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    else:
        content = whole + data.draw(st.binary(max_size=99)) + whole
    reply = spare.upload(bytes(content), f"a.{kind}")
    assert reply.status in (201, 415, 422, 429) and is_in_order(reply)


# --- names of files ---

NAMES = ["../../etc/passwd", "/etc/passwd", "..\\..\\windows\\system32", "C:\\secret.png", "a\0b.png", "a\nb.png"]
NAMES += ["a'b.png", 'a"b.png', "'); import os; os.system('x') #", "$(touch x).png", "`touch x`.png", "a b;rm -rf *"]
NAMES += ["--out=x", "-rf", "--", "", ".", "..", "/", "a" * 5000, "\u202egnp.exe", "é漢.png", "{0}%s%n.png", "~", "#"]
NAMES += ["\r\nSet-Cookie: a=b", "\ud83d", "a\\'b", "\x1b[31mred.png", "'''", "-.-.png", "...", "a.png "]


@pytest.mark.parametrize("name", NAMES[:: effort(6, 1)])
def test_a_file_name_is_only_displayed(spare, name):
    path = f"/api/pages?name={quote(name, safe='', errors='surrogatepass')}"
    replies = []
    wait_until(lambda: replies.append(spare.ask("POST", path, small("PNG"))) or replies[-1].status != 429)
    assert replies[-1].status == 201
    called, page = replies[-1].json["name"], f"/api/pages/{replies[-1].json['id']}"
    assert called.isprintable() and 0 < len(called) <= 120 and called not in (".", "..")
    assert not set(called) & set("/\\") and not called.startswith("-")
    with Listener(spare, page):  # else it is soon forgotten
        assert spare.set(page, chains=1).status == 200
        assert spare.ask("POST", f"{page}/step", "{}").status == 200
        reported = spare.ask("GET", f"{page}/repeat").json
    nodes = list(ast.walk(ast.parse(reported["python"])))
    assert [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)][:1] == [
        called
    ]
    assert sum(isinstance(node, ast.Call) for node in nodes) == 1 and reported["python"].count("\n") == 1
    words = shlex.split(reported["command"])
    assert words[:3] == ["spinseg", "segment", called] and "\n" not in reported["command"]
    assert words[3:] == ["--sweeps", "1", "--chains", "1", "--seed", "0"]


PATHS = """
/static/../server.py /static/%2e%2e/server.py /static/..%2fserver.py /static/%2e%2e%2fserver.py /static/..%5cserver.py
/static//etc/passwd /static/%2fetc%2fpasswd /static/....//server.py /static/vendor/../../server.py //etc/passwd
/static/../server.py /static/server.py /static/__pycache__ /../../../etc/passwd
/static/%00 /static/index.html%00.png /static/%252e%252e/server.py
/static/..;/server.py /static/~root /static/file:///etc/passwd /static/vendor /static/. /static/.. /server.py
/api/examples/..%2f__init__.py /api/examples/../__init__.py /api/examples/coffee.jpg /static/%ff%fe /static/..%c0%af
{page}/export/..%2flabels.png {page}/export/../picture {page}/export/%2fetc%2fpasswd
"""
TRAVERSALS = [*PATHS.split(), "/static/" + "a" * 300, "/static/" + "../" * 999 + "etc/passwd"]


@pytest.mark.parametrize("path", TRAVERSALS, ids=[path[:40] for path in TRAVERSALS])
def test_no_path_leaves_the_static_folder(server, page, path):
    reply = server.raw(server.head("GET", path.format(page=page)))
    assert reply.status == 404 and is_in_order(reply)


# --- nonsense ---

ODD_JSON = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + "0" * 400, "-1" + "0" * 400, "9" * 5000, "1e-999"]
ODD_JSON += ["null", "true", "[]", "{}", '""', "-1", "0", "0.5", "-0.0", '"1"', "[1]", '{"a": 1}', '"\\ud800"']
ODD_JSON += ["[" * depth + "]" * depth for depth in (50, 900, 950, 960, 7000)] + ['{"a":' * 940 + "1" + "}" * 940]
ODD_JSON += ['"' + "a" * 9000 + '"', "1" * 4300, "0." + "1" * 9000, '"../../etc/passwd"', '"\\u0000"']
FIELDS = ["preset", "prior", "start", "seeds", *controls()]


def repeat_of(server, page):
    reply = server.ask("GET", f"{page}/repeat")
    assert reply.status == 200, reply
    return reply.json


@pytest.mark.parametrize("value", ODD_JSON[:: effort(6, 1)], ids=lambda value: value[:20])
def test_odd_values_of_any_setting_are_refused_or_valid(server, page, value):
    before = repeat_of(server, page)
    for field in (*FIELDS, "nobody", "__class__"):
        having = [name for name, (_, _, usual) in PRIOR_CHOICES.items() if field in usual]
        prior = f'"prior": "{having[0]}", ' if having else ""
        reply = server.ask("POST", f"{page}/settings", f'{{{prior}"chains": 1, "start": "greedy", "{field}": {value}}}')
        assert reply.status in (200, 400, 422) and is_in_order(reply), (field, reply)
        assert server.ask("POST", f"{page}/step", "{}").status == 200
    reply = server.ask("POST", f"{page}/run", f'{{"speed": {value}}}')
    assert reply.status in (200, 400, 422) and is_in_order(reply)
    for name in ("settings", "run", "pause", "step"):
        assert is_in_order(server.ask("POST", f"{page}/{name}", f"{value} "))
    assert is_in_order(server.ask("POST", f"{page}/conditioned", f'{{"seeds": {value}}}'))
    assert server.set(page, chains=1, start="greedy").status == 200
    for do in ("pause", "restart", "step"):
        assert server.ask("POST", f"{page}/{do}", "{}").status == 200
    assert repeat_of(server, page) == before


METHODS = ["GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "FOO"]
LAST = [*(name.split("?")[0] for name in GETS_OF_PAGE), *POSTS_OF_PAGE, "export", "export/", "nothing", ""]
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
BODIES = st.one_of(
    st.none(),
    st.binary(max_size=200),
    st.sampled_from(ODD_JSON),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | st.sampled_from([*FIELDS, "speed"]), inner),
        max_leaves=8,
    ).map(json.dumps),
)
ODD_QUERIES = ["?site=-1", "?site=99999999999", "?site=9999", "?site=1e3", "?site=%D9%A3", "?site=1&site=x", "?&&=="]
ODD_QUERIES += ["?example=", "?example=coffee%00", "?name", "?site=0x1", "?site=%201", "?%ff=%fe", "?" + "a" * 9000]
QUERIES = st.one_of(
    st.just(""),
    st.builds("?{}={}".format, st.sampled_from(["site", "name", "example", "x"]), TEXTS.map(quote)),
    st.sampled_from(ODD_QUERIES),
)


@pytest.fixture(scope="module")
def closed(spare):
    """A session that was closed."""
    page = spare.page()
    wait_until(lambda: spare.ask("GET", f"{page}/picture").status == 404)
    return page


@fuzz(effort(60, 150))
@given(
    method=st.sampled_from(METHODS),
    place=st.sampled_from(["", "{page}/", "{closed}/", "/api/pages/{random}/", "/api/{random}/", "/{random}"]),
    last=st.sampled_from(LAST),
    name=TEXTS,
    query=QUERIES,
    body=BODIES,
)
def test_nonsense_gets_one_sentence(server, page, closed, method, place, last, name, query, body):
    random = quote(name, safe="")
    path = place.format(page=page, closed=closed, random=random) + last if place else f"/api/pages{query and '/'}"
    if method == "POST" and path == f"{page}/run":
        body = b"no JSON"  # one that runs would be in the way of others
    reply = server.ask(method, path + query, body)
    assert is_in_order(reply, method)
    if place not in ("", "{page}/") and random:
        assert reply.status in (400, 404, 405), reply  # 400: the body is read first
    if method not in ("GET", "HEAD", "POST"):
        assert reply.status in (404, 405, 307)


def test_a_closed_page_and_one_that_never_existed_get_the_same_reply(spare, closed):
    for name in [*GETS_OF_PAGE, *POSTS_OF_PAGE]:
        method = "POST" if name in POSTS_OF_PAGE else "GET"
        replies = [spare.ask(method, f"{path}/{name}", "{}") for path in (closed, "/api/pages/nobody")]
        assert replies[0].status == replies[1].status == 404 and replies[0].json == replies[1].json


def test_requests_before_the_settings_or_the_first_sweep_get_409(server):
    page, of_draws = server.page(), ["boundaries", "together?site=0", "answers", "repeat", "export/labels.png"]
    asked = [("GET", name) for name in ("sites", "outlines", *of_draws)] + [("POST", "step"), ("POST", "restart")]
    for method, name in asked:
        reply = server.ask(method, f"{page}/{name}", "{}")
        assert reply.status == 409 and is_in_order(reply)
    assert server.ask("GET", f"{page}/picture").status == 200
    assert server.set(page, chains=1).status == 200
    assert server.ask("GET", f"{page}/sites").body == server.ask("GET", f"{page}/outlines").body
    for name in of_draws:
        assert server.ask("GET", f"{page}/{name}").status == 409
    for name in ("result", "result?detail=0.5"):  # which the page asks for again and again
        reply = server.ask("GET", f"{page}/{name}")
        assert reply.status == 200 and reply.json is None


ODD_NUMBERS = ["", "-1", "ten", "%D9%A3", "9" * 40, "0x5", "nan", "inf", "1e999", "5%00", "0," + "9" * 5000, "-0.1"]


@pytest.mark.parametrize("number", ODD_NUMBERS, ids=lambda number: number[:9])
def test_an_odd_site_or_detail_gets_one_sentence(server, page, number):
    rules = {
        "together?site=": "site must be the number of a site.",
        "result?detail=": "detail must be a number from 0 to 1.",
        "export/cutout.png?column=1&row=": "row must be that of a pixel of the image.",
        "export/cutout.png?row=1&column=": "column must be that of a pixel of the image.",
    }
    for path, sentence in rules.items():
        reply = server.ask("GET", f"{page}/{path}{number}")
        assert reply.status == 422 and is_in_order(reply) and reply.json == {"error": sentence}, path


CHOICES = {"preset": Preset.known, "prior": PRIOR_CHOICES, "start": STARTS}


def values_of(control):
    """Values of a control, each with whether it is within the limits."""
    least, most = control.least, control.most
    step = 1 if control.whole else 1e-9 + abs(most) * 1e-9
    within = [None, least, most, min(most, least + step), max(least, most - step)]
    beyond = [least - step, most + step, -(10**9), 10**400, "1", True, [1], *([least + 0.5] if control.whole else [])]
    return st.sampled_from(4 * [(value, True) for value in within] + [(value, False) for value in beyond])


@fuzz(effort(20, 75))
@given(data=st.data())
def test_settings_within_the_limits_work_and_others_change_nothing(server, page, data):
    sent = {name: data.draw(st.sampled_from(list(names))) for name, names in CHOICES.items()}
    fits = True
    for name in data.draw(st.lists(st.sampled_from(sorted(controls())), max_size=5, unique=True)):
        sent[name], within = data.draw(values_of(controls()[name]))
        fits &= within or not controls()[name].applies(sent["preset"], sent["prior"])
    before = repeat_of(server, page)
    reply = server.set(page, **sent)
    assert reply.status in ((200, 422) if fits else (422,)) and is_in_order(reply), reply
    if reply.status == 422:
        assert repeat_of(server, page) == before
        return
    assert server.ask("POST", f"{page}/step", "{}").status == 200
    assert ast.parse(repeat_of(server, page)["python"])
    for name in ("result", "boundaries", "together?site=0", "sites", "outlines"):
        assert server.ask("GET", f"{page}/{name}").status == 200


def test_refused_settings_leave_the_previous_ones_while_the_chains_run(server, page):
    assert server.set(page, chains=1, seed=3, prior="DirichletProcess", concentration=2.5).status == 200
    assert server.ask("POST", f"{page}/run", '{"speed": 50}').status == 200
    with Listener(server, page) as listener:
        before = listener.wait_for(lambda frame: frame["sweeps"] > 2)
        wrong = [{"concentration": 2000, "prior": "DirichletProcess"}, {"min_size": 500}, {"preset": "none"}]
        for each in (*wrong, {"seed": -1}, {"color": 1}):
            assert server.set(page, **{"chains": 1, "seed": 3, **each}).status == 422
        after = listener.wait_for(lambda frame: frame["sweeps"] > before["sweeps"] + 5)
    assert after["stage"] == before["stage"] and after["state"] == "running"
    assert server.ask("POST", f"{page}/pause", "{}").status == 200
    reported = repeat_of(server, page)
    assert "prior=ss.DirichletProcess(concentration=2.5)" in reported["python"]
    assert "--prior 'DirichletProcess(concentration=2.5)'" in reported["command"]


# --- limits and timeouts ---


def test_the_number_of_running_chains_is_limited(server, bystander):
    limits = server.ask("GET", "/api/about").json["limits"]
    room, refused, running = limits["running"] - 1, 0, []  # the bystander has one
    while not refused:
        chains = min(limits["chains"], room + 1)
        page = server.page(chains=chains, n_sites=10)
        listener = Listener(server, page).__enter__()
        running.append((page, listener))
        reply = server.ask("POST", f"{page}/run", '{"speed": 2}')
        assert reply.status == (200 if chains <= room else 429) and is_in_order(reply), reply
        refused, room = reply.status == 429, room - chains
    assert f"{limits['running']} may run" in reply.json["error"]
    assert listener.wait_for(lambda frame: frame["state"] != "building")["state"] == "paused"
    first = running[0][0]
    more = server.set(first, chains=limits["chains"], n_sites=10)  # one that runs may have no more, either
    assert more.status == (429 if len(running) > 1 else 200)
    for page, listener in running:
        server.ask("POST", f"{page}/pause", "{}")
        listener.__exit__()
    assert server.set(page, chains=1, n_sites=10).status == 200
    assert server.ask("POST", f"{page}/run", '{"speed": 2}').status == 200  # there is room again
    assert server.ask("POST", f"{page}/pause", "{}").status == 200


@exhaustive
def test_the_limit_holds_for_a_page_that_is_started_while_its_settings_are_applied(spare):
    full, late = spare.page(chains=4, n_sites=10), spare.page(name="slow.png")
    with Listener(spare, full), Listener(spare, late) as listener:
        assert spare.ask("POST", f"{full}/run", '{"speed": 2}').status == 200
        replies = []
        setting = threading.Thread(target=lambda: replies.append(spare.set(late, chains=4)))
        setting.start()
        time.sleep(0.4)
        started = spare.ask("POST", f"{late}/run", '{"speed": 5}')
        assert started.status in (200, 429) and is_in_order(started)
        setting.join()
        if replies[0].status == 429:  # it was started first, without chains
            return
        assert replies[0].status == 200
        listener.wait_for(lambda frame: frame["state"] != "building")
        time.sleep(1.5)  # for chains that should not run
        assert listener.latest["state"] == "paused" and listener.latest["sweeps"] == 0


def test_the_number_of_pages_is_limited_and_those_without_a_listener_are_closed(spare):
    kept = spare.page()
    with Listener(spare, kept):
        with contextlib.ExitStack() as others:  # who listen, so that none is forgotten meanwhile
            replies = [spare.upload(small("PNG"))]
            while replies[-1].status == 201 and len(replies) < 100:
                others.enter_context(Listener(spare, f"/api/pages/{replies[-1].json['id']}"))
                replies.append(spare.upload(small("PNG")))
        assert {reply.status for reply in replies} == {201, 429} and all(map(is_in_order, replies))
        assert "images are open already" in replies[-1].json["error"]
        spare.page()  # waits until there is room
        for reply in replies[:-1]:
            wait_until(lambda path=f"/api/pages/{reply.json['id']}/picture": spare.ask("GET", path).status == 404)
        assert spare.ask("GET", f"{kept}/picture").status == 200
    assert session.MAX_SESSIONS <= 100 and session.STOP_SECONDS <= 3 and session.CLOSE_SECONDS <= 60


def test_chains_stop_without_a_listener(spare):
    page = spare.page(chains=1)
    with Listener(spare, page) as listener:
        assert spare.ask("POST", f"{page}/run", '{"speed": 20}').status == 200
        left = listener.wait_for(lambda frame: frame["sweeps"] > 3)
    states = []

    def stopped():  # to look is to listen, and what is listened to goes on: between two looks it is left alone
        time.sleep(0.9)
        with Listener(spare, page) as listener:
            states.append(listener.wait_for(lambda frame: True))
        return states[-1]["state"] == "paused"

    wait_until(stopped)
    with Listener(spare, page) as listener:
        time.sleep(0.5)  # for chains that should not run
        assert listener.latest["sweeps"] == states[-1]["sweeps"] >= left["sweeps"]


@exhaustive
def test_two_listeners_count_as_two(spare):
    page = spare.page(chains=1)
    with Listener(spare, page) as listener:
        with Listener(spare, page):  # chains of other tests may still be running
            wait_until(lambda: spare.ask("POST", f"{page}/run", '{"speed": 20}').status == 200)
        assert listener.wait_for(lambda frame: frame["sweeps"] > 40)["state"] == "running"  # long after STOP_SECONDS


@exhaustive
def test_a_port_that_is_taken_gets_one_line(server):
    command = [sys.executable, "-m", "spinseg", "app", "--no-browser", "--port", str(server.port)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert run.returncode != 0 and "Traceback" not in run.stderr and "port must be free" in run.stderr
