"""The built pages: what they link to and show is there, and they load in a browser without a complaint.

`make docs` builds them and runs this.
"""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser import Page

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


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_pages_load_without_a_complaint(tmp_path: Path, scheme: str, width: int) -> None:
    wrong = []
    with Page(tmp_path, width=width, scheme=scheme) as tab:
        for page in WRITTEN:
            tab.open(page, "document.readyState == 'complete'")
            missing = tab.run("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)")
            wide = tab.run("document.documentElement.scrollWidth > innerWidth")
            wrong += [f"{page.relative_to(SITE)}: {what}" for what in [*missing, *(["too wide"] if wide else [])]]
        assert not wrong + tab.complaints
