"""``weft bench scale``: what it says of more ranks than there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from calling import call

from weft.bench.scale.model import Link, Network, fit, seconds_of, step

if TYPE_CHECKING:
    from pathlib import Path


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
    done = call("bench", "scale", *options, folder=tmp_path)
    assert "ring: efficiency" in done.stdout


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
