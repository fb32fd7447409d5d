"""A server of the web app in a process of its own, its clients, and what every reply must have."""

import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from PIL import Image

from processes import PATIENCE, wait_until
from spinseg.app import session

HARMLESS = {  # what uvicorn prints about requests that are not HTTP, or not supported
    "WARNING:  Invalid HTTP request received.",
    "WARNING:  Unsupported upgrade request.",
    "WARNING:  No supported WebSocket library detected. Please use \"pip install 'uvicorn[standard]'\", or install "
    "'websockets' or 'wsproto' manually.",
}


def small(kind):
    """A picture of 16 x 24 pixels as the content of a file."""
    file, pixels = io.BytesIO(), np.kron(np.arange(6).reshape(2, 3) * 40, np.ones((8, 8))).astype(np.uint8)
    if kind == "NPY":
        np.save(file, pixels)
    else:
        Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def complete(connection_reply):
    """A complete reply; only the head of an endless stream."""
    with connection_reply:
        headers = {name.lower(): value for name, value in connection_reply.getheaders()}
        endless = headers.get("content-type", "").startswith("text/event-stream")
        return Reply(connection_reply.status, headers, b"" if endless else connection_reply.read())


class Server(NamedTuple):
    process: subprocess.Popen
    port: int
    reported: Path

    @classmethod
    def started(cls, folder, *arguments):
        for name in ("here", "tmp"):
            (folder / name).mkdir()
        environment = os.environ | {"TMPDIR": str(folder / "tmp")}
        with (folder / "reported").open("w") as reported:
            pipes = {"stdout": subprocess.PIPE, "stderr": reported, "text": True}
            process = subprocess.Popen([sys.executable, *arguments], env=environment, cwd=folder / "here", **pipes)
        line = process.stdout.readline()
        address = line.split()[3]
        assert address.startswith("http://127.0.0.1:") and line.endswith("- stop it with Ctrl-C\n"), line
        server = cls(process, int(address.split(":")[2].strip("/")), folder / "reported")
        return server

    def end(self):
        """Stop it with Ctrl-C, check that it left no file, and return what it printed on standard error."""
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.stdout.close()
        assert code == 0, self.reported.read_text()
        left = [path for name in ("here", "tmp") for path in (self.reported.parent / name).iterdir()]
        assert left == []
        return [line for line in self.reported.read_text().splitlines() if line not in HARMLESS]

    def connection(self, seconds=PATIENCE):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    def ask(self, method, path, body=None, headers=(), seconds=PATIENCE):
        connection = self.connection(seconds)
        try:
            connection.putrequest(method, path, skip_host=any(name == "Host" for name, _ in headers))
            for name, value in headers:
                connection.putheader(name, value)
            body = body.encode() if isinstance(body, str) else body
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            return complete(connection.getresponse())
        finally:
            connection.close()

    def raw(self, sent, end_of_sending=False):
        """The reply to bytes that need not be HTTP."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(sent)
            if end_of_sending:
                connection.shutdown(socket.SHUT_WR)
            with http.client.HTTPResponse(connection) as reply:  # which may not even begin
                reply.begin()
                return complete(reply)

    def head(self, method, path, **headers):
        """The beginning of a request, as bytes."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    def upload(self, body, name="picture.png"):
        return self.ask("POST", f"/api/pages?name={quote(name)}", body)

    def page(self, name="picture.png", **chosen):
        """The path of a new page, with settings where some are given."""
        replies = []

        def sent():  # unless there are too many pages of earlier tests, which are soon forgotten
            replies.append(self.upload(small("PNG"), name))
            return replies[-1].status != 429

        wait_until(sent)
        assert replies[-1].status == 201, replies[-1]
        path = f"/api/pages/{replies[-1].json['id']}"
        if chosen:
            assert self.set(path, **chosen).status == 200
        return path

    def set(self, page, **chosen):
        return self.ask("POST", f"{page}/settings", json.dumps(chosen))

    def memory(self, kind="VmRSS"):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(kind):
                return int(line.split()[1]) * 1024

    def cpu_seconds(self):
        """Processor time that it has used, which does not depend on the load of the machine."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


class Listener:
    """A listener, as a browser is: checks that frames are valid JSON and that traces are sent once."""

    def __init__(self, server, page):
        self.latest: dict[str, Any] = {}
        self.problem, self.moved = None, time.monotonic()
        self.ended = False
        self._connection = server.connection()
        self._connection.request("GET", f"{page}/events")
        self._reply = self._connection.getresponse()
        self._socket = self._reply.fp.raw._sock
        assert self._reply.status == 200, self._reply.read()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self):
        def invalid(constant):
            raise ValueError(f"{constant} is no JSON")

        stage, sweeps = -1, 0
        try:
            for line in self._reply:
                if not line.startswith(b"data: "):
                    continue
                frame = json.loads(line[6:], parse_constant=invalid)
                for name in ("log_posterior", "n_clusters") if frame["chains"] else ():
                    first, traces = frame["traces"]["from"], frame["traces"][name]
                    ends = {first + len(trace) for trace in traces}
                    if first != (sweeps if frame["stage"] == stage else 0) or ends != {frame["sweeps"]}:
                        raise ValueError(f"{name} from {first} to {ends} after {sweeps} of stage {stage}: {frame}")
                if (stage, sweeps) != (frame["stage"], frame["sweeps"]):
                    self.moved = time.monotonic()
                stage, sweeps, self.latest = frame["stage"], frame["sweeps"], frame
        except ValueError as error:
            self.problem = error
        except (OSError, http.client.HTTPException):
            pass
        self.ended = True

    def wait_for(self, condition):
        """Wait for a frame that fulfils a condition."""
        found = []

        def come():
            frame = self.latest
            if frame and condition(frame):
                found.append(frame)
            assert found or not self.ended, (self.problem, frame)
            return found

        wait_until(come)
        return found[0]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._socket.shutdown(socket.SHUT_RDWR)
        self.close()
        assert self.problem is None

    def close(self):
        """Wait for the end of the stream and close it."""
        self._thread.join(PATIENCE)
        self._reply.close()
        self._connection.close()


LEFT: list[Listener] = []  # listeners that stay until the server has ended


def is_in_order(reply, method="GET"):
    """Check that a reply is no server error, and that a refusal is one sentence."""
    assert reply.status < 500, reply
    if reply.status >= 400 and method != "HEAD":
        assert reply.headers["content-type"] == "application/json", reply
        assert list(reply.json) == ["error"]
        sentence = reply.json["error"]
        assert sentence.endswith(".") and 10 <= len(sentence) < 600 and sentence.isprintable(), sentence
        for secret in ("Traceback", 'File "', "spinseg-", "site-packages", str(Path(session.__file__).parents[2])):
            assert secret not in sentence
    is_guarded(reply)
    return True


def is_guarded(reply):
    """Check the headers that keep the browser from running or loading anything from elsewhere."""
    policy = [part.split() for part in reply.headers["content-security-policy"].split(";")]
    allowed = {name: set(sources) for name, *sources in policy}
    assert len(allowed) == len(policy)
    assert allowed.pop("default-src") == {"'self'"} and allowed.pop("frame-ancestors") == {"'none'"}
    assert allowed.pop("img-src", set()) <= {"'self'", "blob:"}
    assert all(sources <= {"'self'", "'none'"} for sources in allowed.values()), allowed
    assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in reply.headers and "server" not in reply.headers
    return True
