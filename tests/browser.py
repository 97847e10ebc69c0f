"""A browser without a window, for tests of pages: Chromium, driven over a pipe by its DevTools protocol."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # which root may not have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
)
SOON = 40.0  # seconds for an answer; only a broken page uses them up


def executable() -> str:
    """Return the browser of this machine, or skip the test; on GitHub, whose machines have one, fail it."""
    found = next((path for name in NAMES if (path := shutil.which(name))), str(MAC) if MAC.exists() else None)
    if found and sys.platform != "win32":
        return found
    if sys.platform == "win32":
        pytest.skip("the browser is driven over inherited pipes, which Windows has not")
    message = f"no browser: none of {', '.join(NAMES)} is on PATH (Debian: apt-get install chromium)"
    if os.environ.get("GITHUB_ACTIONS"):
        pytest.fail(message)
    pytest.skip(message)


class Page:
    """A page in a browser of its own. What it complains of is in `complaints`."""

    def __init__(self, profile: Path, *, width: int = 1280, height: int = 720, scheme: str = "light") -> None:
        browser = executable()
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        command = [browser, *FLAGS, f"--user-data-dir={profile}", "about:blank"]

        def wire() -> None:
            # The browser reads 3 and writes 4; first out of the way, lest one overwrites the other.
            ends = [os.dup(to_browser), os.dup(to_us)]
            for end, number in zip(ends, (3, 4), strict=True):
                os.dup2(end, number)

        self._process = subprocess.Popen(
            command,
            pass_fds=(3, 4, to_browser, to_us),
            preexec_fn=wire,  # noqa: PLW1509 - it makes system calls and nothing else
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(to_us)
        self._out, self._in = from_us, from_browser
        self._numbers = itertools.count(1)
        self._read = b""
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _messages(self) -> Iterator[dict[str, Any]]:
        """Yield what the browser says."""
        deadline = time.monotonic() + SOON
        while True:
            while b"\0" in self._read:
                message, _, self._read = self._read.partition(b"\0")
                yield json.loads(message)
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._in, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("the browser does not answer" if not ready else "the browser has ended")
            self._read += piece

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol and return its result; collect what the page complains of meanwhile."""
        number = next(self._numbers)
        session = {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps({"id": number, "method": method, "params": params, **session}).encode() + b"\0")
        for message in self._messages():
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._hear(message)
        raise AssertionError

    def _hear(self, message: dict[str, Any]) -> None:
        """Collect errors and whatever is written to the console."""
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            thrown = params["exceptionDetails"]
            self.complaints.append(thrown.get("exception", {}).get("description", thrown["text"]))
        elif message.get("method") == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(argument.get("value")) for argument in params["args"]))
        elif message.get("method") == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])

    def open(self, path: Path, ready: str) -> None:
        """Open a file, and wait until an expression is true in it."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        for message in self._messages():
            self._hear(message)
            if message.get("method") == "Page.loadEventFired":
                break
        deadline = time.monotonic() + SOON
        while not self.run(f"Boolean({ready})"):
            assert time.monotonic() < deadline, f"{ready} does not become true; {self.complaints}"
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """Return the value of an expression of JavaScript, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => 0)")

    def mouse(self, kind: str, x: float, y: float, **options: Any) -> None:
        """Send an event of the mouse: ``mousePressed``, ``mouseMoved``, ``mouseReleased``, ``mouseWheel``."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **options)

    def click(self, x: float, y: float, count: int = 1) -> None:
        """Click with the left button; twice for a double click."""
        self.mouse("mouseMoved", x, y)
        for number in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=number)

    def drag(self, start: tuple[float, float], end: tuple[float, float], modifiers: int = 0) -> None:
        """Drag with the left button; modifier 8 is Shift."""
        self.mouse("mousePressed", *start, button="left", clickCount=1, modifiers=modifiers)
        for part in (0.5, 1.0):
            x, y = (a + (b - a) * part for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, button="left", buttons=1, modifiers=modifiers)
        self.mouse("mouseReleased", *end, button="left", clickCount=1, modifiers=modifiers)

    def press(self, key: str, text: str | None = None) -> None:
        """Press a key; letters type themselves."""
        text = key if text is None and len(key) == 1 else text
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
        about = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), **({"text": text} if text else {})}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self) -> bytes:
        """Return a picture of the page, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
