"""The timeline as a page, in a browser: it loads, zooms, pans, searches, and tells what an op did."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import matplotlib.image
import numpy as np
import pytest
from records import Recording, random_run

from browser import Page
from weft._trace.page import write_page
from weft._trace.palette import COLOURS, FAILED
from weft._trace.record import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Show = Callable[..., Page]

READY = "document.documentElement.dataset.ready"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def show(tmp_path: Path) -> Iterator[Show]:
    """Open the page of a run; in the end it must not have complained."""
    opened: list[Page] = []

    def make(run: Recording, name: str = "run", **options: Any) -> Page:
        path = tmp_path / f"{name}.html"
        write_page(path, run.views())
        page = Page(tmp_path / f"profile{len(opened)}", **options)
        opened.append(page)
        page.open(path, READY)
        page.settle()
        return page

    yield make
    complaints = [page.complaints for page in opened]
    for page in opened:
        page.__exit__()
    assert complaints == [[]] * len(opened)


def three() -> Recording:
    """Three ops one after the other, on two workers, of which the first and the last depend on each other."""
    run = Recording()
    run.op("load", 10_000, 30_000, mutate="a", kind=Kind.COPY, place="train.py:3", bytes=4096, ready=4000, pushed=1000)
    run.op("fails", 12_000, 20_000, mutate="b", kind=Kind.COMPUTE, worker=2, error="ValueError: no good")
    run.op("fit", 40_000, 90_000, read="a", mutate="c", worker=2, place="train.py:4")
    run.op("wait", 5_000, 90_000, read="c", kind=Kind.WAIT, worker=None)
    return run


def seen(page: Page) -> tuple[float, float]:
    return page.run("[weft.viewport.start, weft.viewport.end]")


def place_of(page: Page, op: int) -> tuple[float, float]:
    """The middle of an op on the page."""
    return page.run(f"""(() => {{
        const {{trace, layout, viewport}} = weft, span = trace.spanOf[{op}], box = layout.canvas.getBoundingClientRect();
        const time = (trace.columns.spanStart[span] + trace.columns.spanEnd[span]) / 2;
        return [box.left + viewport.x(time), box.top + layout.y(layout.bandOf(span)) + layout.row / 2];
    }})()""")


def colours(page: Page) -> np.ndarray:
    """The pixels of the page."""
    pixels = matplotlib.image.imread(io.BytesIO(page.screenshot()), format="png")
    return np.round(pixels[..., :3] * 255).astype(int)


def count(pixels: np.ndarray, colour: str) -> int:
    """How many pixels have a colour."""
    return int((pixels == [int(colour[at : at + 2], 16) for at in (1, 3, 5)]).all(axis=-1).sum())


def test_the_page_shows_the_run(show: Show) -> None:
    page = show(three(), name="my <run>")
    assert page.run("document.title") == "my <run>"
    text = page.run("document.body.innerText")
    for expected in ("wall time", "parallelism", "critical path", "copies hidden", "compute", "copy", "wait"):
        assert expected in text
    pixels = colours(page)
    for kind in (Kind.COPY, Kind.COMPUTE, Kind.CALLABLE):
        assert count(pixels, COLOURS[kind]) > 200, kind
    assert count(pixels, FAILED) > 50
    marked = count(pixels, "#111111")
    page.click(
        *page.run(
            "(() => { const b = document.getElementById('critical').getBoundingClientRect(); return [b.x + 9, b.y + 9]; })()"
        )
    )
    page.settle()
    assert count(colours(page), "#111111") < marked - 200  # the outline of the critical path


def test_wheel_and_keys_zoom_and_fit_shows_all(show: Show) -> None:
    page = show(three())
    whole = seen(page)
    x, y = place_of(page, 2)
    time = page.run(f"weft.viewport.time({x})")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    page.settle()
    start, end = seen(page)
    assert end - start < (whole[1] - whole[0]) / 2
    assert page.run(f"weft.viewport.time({x})") == pytest.approx(time, abs=100)  # the mouse is told whole pixels
    page.press("w")
    assert seen(page)[1] - seen(page)[0] < end - start
    page.press("f")
    assert seen(page) == whole


def test_zoom_ends_at_the_whole_run_and_at_nanoseconds(show: Show) -> None:
    page = show(three())
    whole = seen(page)
    for _ in range(60):
        page.press("w")
    assert seen(page)[1] - seen(page)[0] == pytest.approx(20)
    for _ in range(80):
        page.press("s")
    assert seen(page) == pytest.approx(whole)


def test_drag_pans_and_does_not_choose(show: Show) -> None:
    page = show(three())
    page.run("weft.viewport.show(10000, 30000)")
    x, y = page.run(
        "(() => { const b = weft.layout.canvas.getBoundingClientRect(); return [b.x + 600, b.y + 120]; })()"
    )
    page.drag((x, y), (x - 200, y))
    page.settle()
    start, end = seen(page)
    assert end - start == pytest.approx(20_000)
    assert start == pytest.approx(10_000 + 200 * 20_000 / page.run("weft.viewport.width"))
    assert page.run("weft.state.selected") == -1
    page.press("ArrowLeft")
    assert seen(page)[0] < start


def test_shift_drag_measures_and_zooms(show: Show) -> None:
    page = show(three())
    (x0, y), (x1, _) = place_of(page, 0), place_of(page, 2)
    times = page.run(f"[weft.viewport.time({x0}), weft.viewport.time({x1})]")
    page.drag((x0, y), (x1, y), modifiers=8)
    page.settle()
    assert seen(page) == pytest.approx(times)


def test_hover_and_click_tell_what_an_op_did(show: Show) -> None:
    page = show(three())
    page.mouse("mouseMoved", *place_of(page, 0))
    page.settle()
    tip = page.run("document.getElementById('tooltip').innerText")
    for expected in (
        "load",
        "copy",
        "train.py:3",
        "20 us on weft-0.0",
        "10 us to 30 us",
        "6 us for a worker",
        "3 us for other ops",
    ):
        assert expected in tip, tip
    assert "mutates a v1" in tip
    assert "4.1 kB" in tip
    page.click(*place_of(page, 2))
    page.settle()
    details = page.run("document.getElementById('details').innerText")
    assert re.search(r"fit.*waited for\s+load 20 us.*waited for by\s+wait 85 us", details, re.DOTALL), details
    page.click(*place_of(page, 1))
    page.settle()
    assert "failed: ValueError: no good" in page.run("document.getElementById('details').innerText")
    page.press("Escape")
    assert page.run("document.getElementById('details').hidden")


def test_double_click_zooms_to_an_op(show: Show) -> None:
    page = show(three())
    page.click(*place_of(page, 0), count=2)
    page.settle()
    start, end = seen(page)
    assert end - start == pytest.approx(40_000)
    assert start < 10_000
    assert end > 30_000


def test_search_counts_marks_and_goes_along(show: Show) -> None:
    page = show(three())
    page.press("/")
    for letter in "train.py":
        page.press(letter)
    page.settle()
    assert page.run("document.querySelector('output').textContent") == "2 found"
    assert page.run("[0, 1, 2].map(op => weft.state.hits.has(op))") == [True, False, True]
    page.press("Enter")
    page.settle()
    assert page.run("[document.querySelector('output').textContent, weft.state.selected]") == ["1 of 2", 0]
    page.press("Enter")
    assert page.run("weft.state.selected") == 2
    page.press("Enter")
    assert page.run("weft.state.selected") == 0


@pytest.mark.parametrize(
    ("query", "found"),
    [("fit", [2]), ("copy", [0]), ("failed", [1]), ("weft-0.1 train", [2]), ("c", [0, 1, 2, 3]), ("nothing", [])],
)
def test_search_looks_into_names_kinds_outcomes_threads_and_variables(show: Show, query: str, found: list[int]) -> None:
    page = show(three())
    page.run(f"weft.state.hits.find('{query}')")
    assert sorted(page.run("[...weft.state.hits.found]")) == found


def test_keys_walk_along_the_critical_path(show: Show) -> None:
    page = show(three())
    page.press("]")
    page.press("]")
    assert page.run("weft.state.selected") == 2
    page.press("[")
    assert page.run("weft.state.selected") == 0


def test_dark_and_light(show: Show) -> None:
    dark, light = (show(three(), scheme=scheme) for scheme in ("dark", "light"))
    assert colours(dark).mean() < 70
    assert colours(light).mean() > 200
    light.press("t")
    light.settle()
    assert colours(light).mean() < 70


def test_a_kind_can_be_faded(show: Show) -> None:
    page = show(three())
    before = count(colours(page), COLOURS[Kind.COPY])
    page.run(
        "[...document.querySelectorAll('#legend button')].find(button => button.innerText.startsWith('copy')).click()"
    )
    page.settle()
    assert count(colours(page), COLOURS[Kind.COPY]) < before / 2


def test_names_are_text_and_not_markup(show: Show) -> None:
    run = Recording()
    run.op("</script><img src=x onerror=alert(1)>", 1000, 2000, mutate="<", place="<b>")
    page = show(run)
    page.click(*place_of(page, 0))
    page.settle()
    assert "</script><img src=x onerror=alert(1)>" in page.run("document.getElementById('details').innerText")
    assert page.run("document.querySelectorAll('img, b').length") == 0


def test_the_page_fetches_nothing(show: Show, tmp_path: Path) -> None:
    show(three())
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)|@import|url\(|https?://(?!www\.w3\.org)""", text)


def test_an_empty_run_is_a_page(show: Show) -> None:
    page = show(Recording())
    assert page.run("weft.trace.count") == 0


def test_more_lanes_than_fit_can_be_scrolled(show: Show) -> None:
    run = Recording(workers=80)
    for worker in range(1, 81):
        run.op("op", 1000, 2000, worker=worker)
    page = show(run)
    page.run("weft.choose(79, true)")
    page.settle()
    assert page.run("weft.viewport.scroll") > 100
    _, y = place_of(page, 79)
    assert 0 < y < 720
    page.mouse("mouseWheel", 20, y, deltaX=0, deltaY=-5000)
    page.settle()
    assert page.run("weft.viewport.scroll") == 0


@pytest.mark.slow
def test_fifty_thousand_ops_stay_quick(show: Show) -> None:
    page = show(random_run(50_000, 3, workers=4))
    times = page.run("""(async () => {
        const times = [];
        for (const zoom of [1, 0.5, 0.1, 0.02, 0.5, 3, 200]) {
            weft.viewport.zoom(zoom);
            let best = Infinity;  // of a few, as a busy machine takes its time from some
            for (let turn = 0; turn < 3; ++turn) {
                weft.redraw();
                const begin = performance.now();
                await new Promise(requestAnimationFrame);
                best = Math.min(best, performance.now() - begin);
            }
            times.push(best);
        }
        return times;
    })()""")
    assert max(times) < 1000, times  # some 20 on an idle machine
    page.press("f")
    page.run("weft.state.hits.find('matmul')")
    found = page.run("weft.state.hits.found.length")
    assert found == sum(
        name == "matmul" for name in page.run("[...weft.trace.columns.name].map(at => weft.trace.names[at])")
    )
    for _ in range(3):
        page.press("n")
    page.settle()
    assert page.run("weft.state.hits.current") == 2
