"""The page in a real browser: how soon it shows, how often it is told, what it costs, and twenty pages at once."""

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

SIZE = (481, 321)
SECONDS = 5.0  # that a page is watched
N_PAGES = 20
TICK = os.sysconf("SC_CLK_TCK")
WATCH = """() => {
  window.frames_seen = 0;
  new MutationObserver(() => window.frames_seen++).observe(document.body, {attributeFilter: ["data-sweeps"]});
}"""


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """Port and process of a server whose code is loaded."""
    command = [sys.executable, "-m", "spinseg", "app", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
        page = Client(port)
        while page.frame()["state"] == "compiling":
            time.sleep(0.2)
        page.leave()
        try:
            yield port, process.pid
        finally:
            process.send_signal(signal.SIGINT)


class Client:
    """A page without a browser, at its first frame."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.at = f"/api/pages/{self.ask('POST', '/api/pages?example=cat')[1]['id']}"
        self.ask("POST", f"{self.at}/settings", {"chains": 1})
        self.listen()

    def listen(self) -> None:
        """Open the stream of events."""
        self.stream = HTTPConnection("127.0.0.1", self.port)
        self.stream.request("GET", f"{self.at}/events")
        self.events = self.stream.getresponse()

    def ask(self, method: str, path: str, sent: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Status and JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(sent) if sent is not None else None)
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    def frame(self) -> dict[str, Any]:
        """The next frame."""
        while not (line := self.events.fp.readline()).startswith(b"data:"):
            pass
        return json.loads(line[5:])

    def leave(self) -> None:
        """Close the tab."""
        self.events.close()
        self.stream.close()


def processor_seconds(pid: int) -> float:
    """That a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident(pid: int) -> float:
    """Megabytes that a process holds."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def seconds_to_rest(pid: int, began: float) -> float:
    """From `began` until a process does next to nothing for half a second."""
    while True:
        at, used = time.monotonic(), processor_seconds(pid)
        time.sleep(0.5)
        if processor_seconds(pid) - used < 0.05:
            return at - began


def in_browser(port: int, pid: int) -> dict[str, object]:
    """One page with two chains."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "photograph.png")
        Image.open(PICTURES["coffee"].path).resize(SIZE).save(file)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shown = []
        for _ in range(3):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector("#file", state="attached")
            began = time.monotonic()
            page.set_input_files("#file", file)
            page.wait_for_selector('body[data-stage="1"]')
            page.evaluate("() => new Promise(requestAnimationFrame)")
            shown.append(time.monotonic() - began)
            if len(shown) < 3:
                page.close()
        page.evaluate(WATCH)
        used, began = processor_seconds(pid), time.monotonic()
        page.wait_for_timeout(1000 * SECONDS)
        seconds = time.monotonic() - began
        cores = (processor_seconds(pid) - used) / seconds
        updates = page.evaluate("window.frames_seen") / seconds
        running = page.get_attribute("body", "data-state") == "running"
        closed = time.monotonic()
        page.close()
        still = seconds_to_rest(pid, closed)
        browser.close()
    return {
        "seconds from a file to its segmentation on screen, three times": ", ".join(f"{s:.2f}" for s in shown),
        "updates a second of a page with two chains": updates,
        "processors that the server uses meanwhile": cores,
        "seconds from closing the tab to a server at rest": still if running else "it was at rest before",
    }


def many_pages(port: int, pid: int) -> dict[str, object]:
    """Twenty pages at once, each of which wants to run a chain."""
    before = resident(pid)
    lost = Client(port)
    lost.ask("POST", f"{lost.at}/run", {})
    time.sleep(1)
    lost.leave()
    still = seconds_to_rest(pid, time.monotonic())
    clients = [Client(port) for _ in range(N_PAGES)]
    answers = [client.ask("POST", f"{client.at}/run", {}) for client in clients]
    waits = []
    for _ in range(40):
        began = time.monotonic()
        clients[-1].ask("GET", "/api/about")
        waits.append(time.monotonic() - began)
        time.sleep(0.05)
    most = resident(pid)
    for client in clients[:4]:
        client.leave()
        client.listen()  # what was sent meanwhile waits in the old stream
    sweeps = [client.frame()["sweeps"] for client in clients[:4]]
    for client in clients:
        client.leave()
    time.sleep(35)  # a page that is left is forgotten after 30
    refused = [answer["error"] for status, answer in answers if status == 429]
    return {
        "the same where the connection is cut without a word": still,
        f"of {N_PAGES} pages, running": sum(status == 200 for status, _ in answers),
        "others are told": refused[0],
        "milliseconds that the server takes to answer, median and most": f"{1000 * np.median(waits):.0f}, "
        f"{1000 * max(waits):.0f}",
        "sweeps of four of them by then": ", ".join(map(str, sweeps)),
        "megabytes before, with all, and after they are closed": f"{before:.0f}, {most:.0f}, {resident(pid):.0f}",
    }


def study() -> dict[str, object]:
    """Of one server; the browser runs on the same machine."""
    with server() as (port, pid):
        return in_browser(port, pid) | many_pages(port, pid)
