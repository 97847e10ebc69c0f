"""Timelines and graphs as pictures and text."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import matplotlib.colors
import matplotlib.image
import numpy as np
import pytest
from records import Recording, random_run

from weft._trace import graph
from weft._trace.graph import write_dot, write_svg
from weft._trace.palette import COLOURS, FAILED, shades
from weft._trace.picture import draw_timeline
from weft._trace.record import Kind, Outcome

if TYPE_CHECKING:
    from pathlib import Path

DOT = shutil.which("dot")


def text_of(path: Path) -> str:
    """All text in an SVG, which is parsed for that."""
    return "\n".join(node.text or "" for node in ET.parse(path).iter() if node.tag.endswith(("text", "tspan", "title")))


def test_a_picture_shows_lanes_names_and_colours(tmp_path: Path) -> None:
    run = random_run(60, 2)
    views = run.views()
    draw_timeline(tmp_path / "run.svg", views)
    text = text_of(tmp_path / "run.svg")
    for expected in (
        "MainThread",
        "weft-0.0",
        "weft-0.1",
        "matmul",
        "wait for a",
        "critical path",
        "copy",
        "pending ops",
        "us",
    ):
        assert expected in text
    draw_timeline(tmp_path / "run.png", views)
    pixels = np.round(matplotlib.image.imread(tmp_path / "run.png")[..., :3] * 255).astype(int)
    for colour in (COLOURS[Kind.COPY], COLOURS[Kind.COMPUTE], COLOURS[Kind.CALLABLE], "#111111"):
        wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        assert (pixels == wanted).all(axis=-1).sum() > 500, colour


@pytest.mark.parametrize("run", [Recording(), random_run(1, 1)], ids=["nothing", "one op"])
def test_short_runs_have_pictures(tmp_path: Path, run: Recording) -> None:
    draw_timeline(tmp_path / "run.png", run.views())
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_does_not_depend_on_the_users_style(tmp_path: Path) -> None:
    views = random_run(20, 2).views()
    draw_timeline(tmp_path / "one.png", views)
    with matplotlib.rc_context({"axes.facecolor": "black", "xtick.labelsize": 30, "hatch.color": "red"}):
        draw_timeline(tmp_path / "other.png", views)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "other.png").read_bytes()


def test_names_are_no_formulas(tmp_path: Path) -> None:
    run = Recording()
    run.op("$x_1$", 1000, 2000)
    draw_timeline(tmp_path / "run.svg", run.views())
    assert "$x_1$" in text_of(tmp_path / "run.svg")


@pytest.mark.slow
def test_a_picture_of_many_ops_stays_small(tmp_path: Path) -> None:
    views = random_run(50_000, 3, workers=4).views()
    draw_timeline(tmp_path / "run.svg", views)
    assert (tmp_path / "run.svg").stat().st_size < 4_000_000
    draw_timeline(tmp_path / "run.png", views)


def luminance(colour: str) -> float:
    """Relative luminance, by WCAG."""
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in matplotlib.colors.to_rgb(colour)
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


#: What people without one kind of cones see (Machado, Oliveira and Fernandes, 2009).
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("matrix", DEFICIENCIES.values(), ids=DEFICIENCIES)
def test_kinds_can_be_told_apart_whatever_colours_one_sees(matrix: Any) -> None:
    kinds = (Kind.CALLABLE, Kind.COMPUTE, Kind.COPY, Kind.ASYNC, Kind.LAUNCH)
    appear = {kind: np.clip(np.array(matrix) @ matplotlib.colors.to_rgb(COLOURS[kind]), 0, 1) for kind in kinds}
    for at, one in enumerate(kinds):
        for other in kinds[at + 1 :]:
            assert np.abs(appear[one] - appear[other]).max() > 0.12, (one, other)


def test_shades_are_darker_and_lighter() -> None:
    for kind in Kind:
        plain, lighter, darker = map(luminance, shades(kind))
        assert darker < plain < lighter


def small() -> Recording:
    """A chain, a failure, and a reader that a writer waits for."""
    run = Recording()
    run.op("make", 1000, 2000, overwrite="x")
    run.op("look", 2000, 2500, read="x", mutate="y", kind=Kind.COPY)
    run.op('qu"ote\\', 2500, 3000, mutate="x", error="ValueError: no")
    run.op("skipped", 0, 0, read="x", settled=3000, outcome=Outcome.SKIPPED)
    run.op("wait", 1000, 3000, read="x", kind=Kind.WAIT, worker=None)
    run.op("apart", 1000, 1100)
    return run


def test_the_graph_says_which_op_makes_and_sees_which_version(tmp_path: Path) -> None:
    path = tmp_path / "run.dot"
    write_dot(path, small().views())
    text = path.read_text(encoding="utf-8")
    arrows = set(re.findall(r"^  (\w+) -> (\w+)(?: \[(\w+)=)?", text, re.MULTILINE))
    assert arrows == {
        ("o0", "v0_1", ""),
        ("v0_1", "o1", ""),
        ("v1_0", "o1", ""),
        ("o1", "v1_1", ""),
        ("v0_1", "o2", ""),
        ("o2", "v0_2", ""),
        ("v0_2", "o3", ""),
        ("o1", "o2", "style"),  # the reader, before the value changes
    }
    assert FAILED in text
    assert "skipped" in text
    assert "apart" not in text  # it has nothing to do with any variable
    assert "wait" not in text


@pytest.mark.skipif(DOT is None, reason="Graphviz's dot is not installed (Debian: apt-get install graphviz)")
@pytest.mark.parametrize("run", [Recording(), small(), random_run(100, 4)], ids=["nothing", "small", "random"])
def test_graphviz_reads_the_graph(tmp_path: Path, run: Recording) -> None:
    path = tmp_path / "run.dot"
    write_dot(path, run.views())
    subprocess.run(["dot", "-Tplain", path], check=True, capture_output=True)
    write_svg(tmp_path / "run.svg", run.views())
    text = text_of(tmp_path / "run.svg")
    for name in run.names:
        shown = any(run.names[op["name"]] == name and not name.startswith(("wait", "apart")) for op in run.ops)
        assert not shown or name in text


@pytest.mark.parametrize("count", [0, 40, 3000])
def test_without_graphviz_the_graph_is_drawn_in_layers(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph.shutil, "which", lambda _: None)
    write_svg(tmp_path / "run.svg", random_run(count, 4).views())
    assert ("matmul" in text_of(tmp_path / "run.svg")) == (count == 40)


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=re.escape("this needs matplotlib: pip install matplotlib")):
        draw_timeline(tmp_path / "run.png", random_run(3, 1).views())


def test_a_deletion_sees_a_version_and_makes_none(tmp_path: Path) -> None:
    run = Recording()
    run.op("make", 1000, 2000, overwrite="x")
    run.op("delete", 2000, 2100, mutate="x", kind=Kind.DELETE)
    run.accesses[-1]["version"] = 1  # as the core has it
    write_dot(tmp_path / "run.dot", run.views())
    text = (tmp_path / "run.dot").read_text(encoding="utf-8")
    assert re.findall(r"^  (\w+) -> (\w+)", text, re.MULTILINE) == [("o0", "v0_1"), ("v0_1", "o1")]
