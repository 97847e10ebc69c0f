"""The built pages: what they link to and show is there, and they load in a browser without a complaint.

`make docs` builds them and runs this.
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
PAGES = sorted(SITE.rglob("*.html"))
WRITTEN = [page for page in PAGES if not {"_static", "_timelines"} & set(page.parts)]

pytestmark = pytest.mark.skipif(not PAGES, reason="the pages are not built: make docs")


class Links(HTMLParser):
    """What a page links to and shows, and what it may be linked at."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors = {""}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if target := found.get("src" if tag in {"img", "script"} else "href"):
            self.targets.append(target)


@cache
def links(page: Path) -> Links:
    found = Links()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def test_every_link_within_leads_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in links(page).targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.is_file() or (path.suffix == ".html" and unquote(parts.fragment) not in links(path).anchors):
                broken.append(f"{page.relative_to(SITE)} -> {target}")
    assert not broken


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_load_without_a_complaint(browser: Browser, scheme: str) -> None:
    tab = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 844})
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("requestfailed", lambda request: complaints.append(request.url))
    for page in WRITTEN:
        tab.goto(page.as_uri())
        empty = tab.evaluate("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)")
        wide = tab.evaluate("document.documentElement.scrollWidth > innerWidth")
        complaints += [f"{page.name}: {what}" for what in [*empty, *(["wider than a telephone"] if wide else [])]]
    assert not complaints
