"""A server in a process of its own, and a real browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

# Where screenshots are written; the pictures of docs/play.md if this is docs/_static.
SHOTS = os.environ.get("KARNET_SHOTS")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


# The command line of the tests, which checks every connection, and that of users.
OFFLINE = (sys.executable, "-m", "tests.offline")
AS_USERS_DO = (str(Path(sys.executable).with_name("karnet")),)


class Running:
    """A `karnet play` that has printed its address."""

    def __init__(self, *arguments, command=OFFLINE):
        # The setting of all tests would take time.
        kept = {name: value for name, value in os.environ.items() if name != "SCIPY_ARRAY_API"}
        self.process = subprocess.Popen(
            [*command, "play", "--no-browser", "--quiet", *arguments],
            env=kept,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.stderr.read()

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.process.stdout.close()
        errors = self.process.stderr.read()
        self.process.stderr.close()
        assert "Traceback" not in errors, errors


@pytest.fixture(scope="module")
def running():
    """Return a function that starts a server for the arguments of `karnet play`."""
    started = []

    def start(*arguments, **options):
        started.append(Running(*arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture(scope="module")
def chromium():
    """Return a browser, or skip the test."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with warnings.catch_warnings(), playwright.sync_playwright() as driver:
        warnings.simplefilter("ignore")
        # Containers do not allow the sandbox.
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def tabs(chromium):
    """Return a function that opens an address, and fail if a page asks another host or fails."""
    contexts, asked, errors = [], [], []

    def open_tab(address, **options):
        options = {"viewport": {"width": 1280, "height": 860}} | options
        context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"], **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        return page

    yield open_tab
    for context in contexts:
        context.close()
    assert errors == []
    assert [url for url in asked if not url.startswith(("http://127.", "ws://127.", "data:"))] == []


@pytest.fixture
def shot():
    """Return a function that keeps a picture of a page for the documentation."""

    def keep(page, name):
        if SHOTS:
            picture = Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
            # With a palette of its own, a file takes a fifth.
            picture.quantize(256).save(Path(SHOTS) / f"play-{name}.png", optimize=True)

    return keep
