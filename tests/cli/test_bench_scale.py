"""``weft bench scale``: what it says of more ranks than there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from calling import call

from weft.bench.scale.figure import draw
from weft.bench.scale.model import Link, Network, error_of, fit, seconds_of, step

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_links_that_are_said_are_not_measured(tmp_path: Path) -> None:
    options = ["--alpha", "2e-6", "--beta", "1e-10", "--ranks", "1000", "--spread", "0"]
    done = call("bench", "scale", *options, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["measured"] == []
    assert [row["ranks"] for row in told["steps"]] == [1, 2, 4, 8, 16, 64, 256, 1000]
    efficiency = [row["ring"]["efficiency"] for row in told["steps"]]
    assert efficiency[0] == pytest.approx(1.0)
    assert efficiency == sorted(efficiency, reverse=True)
    for row in told["steps"]:
        for name in ("ring", "tree"):
            lost = row[name]["lost"]
            assert sum(lost.values()) == pytest.approx(row[name]["seconds"] - 0.3)
            assert min(lost.values()) >= 0.0
    done = call("bench", "scale", *options, "--figure", "scale.svg", folder=tmp_path)
    assert "ring: efficiency" in done.stdout
    assert "What a step waits for" in done.stdout
    assert "\nOn 1,000 ranks a step takes " in done.stdout
    assert "ms of computing, and the rest is waiting for " in done.stdout
    assert "<svg" in (tmp_path / "scale.svg").read_text(encoding="utf-8")


def test_a_figure_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    for name, message in (("scale.txt", "the suffix says the format"), ("none/scale.svg", "there is no folder")):
        done = call("bench", "scale", "--figure", name, folder=tmp_path)
        assert done.returncode != 0
        assert message in done.stderr


def test_what_was_measured_is_drawn_beside_its_fit(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    link = Link(3e-6, 2e-10)
    rows = [(n, m, seconds_of("ring", link, n, m)) for n in (2, 3, 4) for m in (4, 4096, 1 << 22)]
    parts = {"efficiency": 0.9, "without_stragglers": 0.95, "seconds": 1.0}
    lost = {"bandwidth": 0.05, "latency": 0.01, "stragglers": 0.04}
    steps = [{"ranks": n, "ring": {**parts, "lost": lost}, "tree": {**parts, "lost": lost}} for n in (1, 2, 4)]
    draw(tmp_path / "scale.png", rows, {"ring": link, "tree": link}, steps)
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")
    assert error_of("ring", link, rows) == pytest.approx(1.0)


def test_a_link_is_found_from_what_it_does() -> None:
    link = Link(3e-6, 2e-10)
    for algorithm in ("ring", "tree"):
        rows = [(n, m, seconds_of(algorithm, link, n, m)) for n in (2, 3, 4) for m in (4, 4096, 1 << 22)]
        found, off = fit(algorithm, rows)
        assert (found.alpha, found.beta) == (pytest.approx(link.alpha), pytest.approx(link.beta))
        assert off == pytest.approx(1.0)


def test_virtual_time_by_hand() -> None:
    # Two layers of one second of backward each; each all-reduce takes half a second (a tree of two ranks, 2 * beta * m).
    network = Network((100, 100), forward=1.0, backward=2.0)
    found = step(network, Link(0.0, 0.0025), "tree", 2, bucket=100)
    assert found.seconds == pytest.approx(3.5)
    assert found.hidden == pytest.approx(0.5)
    assert step(network, Link(0.0, 0.0025), "tree", 2, bucket=200).hidden == pytest.approx(0.0)
    late = step(network, Link(0.0, 0.0), "tree", 1000, bucket=100, spread=0.1)
    assert 3.0 * 1.25 < late.seconds < 3.0 * 1.4  # the slowest of 1,000 is 3.2 standard deviations late
