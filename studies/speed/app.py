"""The page in a real browser: time to a segmentation, frame rate, load of the server, and many pages at once."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from spinseg.pictures import PICTURES

SIZE = (1224, 816)  # one megapixel
STROKE = [(0.35, 0.3), (0.45, 0.4), (0.55, 0.45)]  # in shares of the canvas
WATCHED_SECONDS = 5.0
N_PAGES = 20
N_TURNS = 5
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
HAS_OUTLINES = "() => /^(First outlines|Result)/.test(document.querySelector('#caption').textContent)"
COUNT_FRAMES = """() => {
  window.frame_count = 0;
  new MutationObserver(() => window.frame_count++).observe(document.body, {attributeFilter: ["data-sweeps"]});
}"""


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """Start a server, wait until its code is compiled, and give its port and process id."""
    command = [sys.executable, "-m", "spinseg", "app", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
        client = Client(port)
        while client.frame()["state"] == "building":
            time.sleep(0.2)
        client.leave()
        try:
            yield port, process.pid
        finally:
            process.send_signal(signal.SIGINT)


class Client:
    """A session without a browser, with one chain."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.path = f"/api/pages/{self.request('POST', '/api/pages?example=cat')[1]['id']}"
        self.request("POST", f"{self.path}/settings", {"chains": 1})
        self.listen()

    def listen(self) -> None:
        """Open the stream of events."""
        self.stream = HTTPConnection("127.0.0.1", self.port)
        self.stream.request("GET", f"{self.path}/events")
        self.events = self.stream.getresponse()

    def request(self, method: str, path: str, sent: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Send a request and return the status and the JSON of its response."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(sent) if sent is not None else None)
        response = connection.getresponse()
        result = response.status, json.loads(response.read())
        connection.close()
        return result

    def frame(self) -> dict[str, Any]:
        """The next frame."""
        while not (line := self.events.fp.readline()).startswith(b"data:"):
            pass
        return json.loads(line[5:])

    def leave(self) -> None:
        """Close the stream, as a browser does with a tab."""
        self.events.close()
        self.stream.close()


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_megabytes(pid: int) -> float:
    """The resident memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def seconds_to_idle(pid: int, began: float) -> float:
    """The time from `began` until a process is idle for half a second."""
    while True:
        at, used = time.monotonic(), cpu_seconds(pid)
        time.sleep(0.5)
        if cpu_seconds(pid) - used < 0.05:
            return at - began


def one_page(port: int, pid: int) -> dict[str, object]:
    """Measure one page with two chains in a browser."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "photograph.png")
        Image.open(PICTURES["coffee"].path).resize(SIZE).save(file)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        to_display, to_answer = [], []
        for turn in range(N_TURNS):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector("#file", state="attached")
            page.wait_for_timeout(1000)  # of the page before, nothing runs any more
            began = time.monotonic()
            page.set_input_files("#file", file)
            page.wait_for_function(HAS_OUTLINES, polling=20)  # asking from here takes time of the page's
            page.evaluate("() => new Promise(requestAnimationFrame)")
            to_display.append(time.monotonic() - began)
            page.wait_for_timeout(2000)
            with page.expect_response(lambda response: response.url.endswith("/conditioned")):
                to_answer.append(drawn_at(page))
            page.evaluate("() => new Promise(requestAnimationFrame)")
            to_answer[-1] = time.monotonic() - to_answer[-1]
            if turn < N_TURNS - 1:
                page.close()
        page.evaluate(COUNT_FRAMES)
        used, began = cpu_seconds(pid), time.monotonic()
        page.wait_for_timeout(1000 * WATCHED_SECONDS)
        seconds = time.monotonic() - began
        cores = (cpu_seconds(pid) - used) / seconds
        rate = page.evaluate("window.frame_count") / seconds
        running = page.get_attribute("body", "data-state") == "running"
        closed = time.monotonic()
        page.close()
        idle = seconds_to_idle(pid, closed)
        browser.close()
    return {
        "seconds from a file of one megapixel to its first outlines": ", ".join(f"{s:.2f}" for s in to_display),
        "seconds from a scribble to its first answer": ", ".join(f"{s:.2f}" for s in to_answer),
        "frames a second of a page with two chains": rate,
        "processors that the server uses meanwhile": cores,
        "seconds from closing the tab to an idle server": idle if running else "it was idle before",
    }


def drawn_at(page: Any) -> float:
    """Draw a stroke, and return when it ended."""
    page.check('input[name="scribble"][value="1"]', force=True)
    box = page.locator("#canvas").bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in STROKE]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=5)
    page.mouse.up()
    return time.monotonic()


def many_pages(port: int, pid: int) -> dict[str, object]:
    """Measure N_PAGES sessions at once, each of which wants to run a chain."""
    before = resident_megabytes(pid)
    lost = Client(port)
    lost.request("POST", f"{lost.path}/run", {})
    time.sleep(1)
    lost.leave()
    idle = seconds_to_idle(pid, time.monotonic())
    clients = [Client(port) for _ in range(N_PAGES)]
    responses = [client.request("POST", f"{client.path}/run", {}) for client in clients]
    waits = []
    for _ in range(40):
        began = time.monotonic()
        clients[-1].request("GET", "/api/about")
        waits.append(time.monotonic() - began)
        time.sleep(0.05)
    largest = resident_megabytes(pid)
    for client in clients[:4]:
        client.leave()
        client.listen()  # the old stream still has frames that were sent meanwhile
    sweeps = [client.frame()["sweeps"] for client in clients[:4]]
    for client in clients:
        client.leave()
    time.sleep(35)  # a session without a listener is closed after 30 s
    refused = [response["error"] for status, response in responses if status == 429]
    return {
        "the same after a lost connection": idle,
        f"of {N_PAGES} pages, running": sum(status == 200 for status, _ in responses),
        "sentence that the others get": refused[0],
        "milliseconds until the server responds, median and maximum": f"{1000 * np.median(waits):.0f}, "
        f"{1000 * max(waits):.0f}",
        "sweeps of four of them": ", ".join(map(str, sweeps)),
        "megabytes before, with all, and when closed": f"{before:.0f}, {largest:.0f}, {resident_megabytes(pid):.0f}",
    }


def study() -> dict[str, object]:
    """Measure one server, with the browser on the same machine."""
    with server() as (port, pid):
        return one_page(port, pid) | many_pages(port, pid)
