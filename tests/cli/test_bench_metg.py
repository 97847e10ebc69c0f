"""``weft bench metg``: its grids, where a curve crosses a half, and the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from calling import call, mistake

from weft.bench import native_ops
from weft.bench.metg.curve import Point, metg, points_of
from weft.bench.metg.figure import draw
from weft.bench.metg.measuring import Curves, Grid, Settings
from weft.bench.metg.patterns import PATTERNS, make_program, needs, serial_digest, width_at, write
from weft.bench.metg.report import Report
from weft.bench.patterns import Op, State, splitmix64

if TYPE_CHECKING:
    from pathlib import Path

needs_native = pytest.mark.skipif(native_ops.load() is None, reason="the C library has no functions to call")


def row(pattern: str, width: int, step: int) -> list[tuple[int, ...]]:
    return [needs(pattern, width, step, column, splitmix64(1)) for column in range(width_at(pattern, width, step))]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_first_row_needs_nothing(pattern: str) -> None:
    assert set(row(pattern, 4, 0)) == {()}


def test_rows_need_what_the_paper_says() -> None:
    assert row("trivial", 4, 3) == [()] * 4
    assert row("stencil_1d", 4, 1) == [(0, 1), (0, 1, 2), (1, 2, 3), (2, 3)]
    assert row("fft", 4, 1) == [(0, 1), (0, 1, 2), (1, 2, 3), (2, 3)]
    assert row("fft", 4, 2) == [(0, 2), (1, 3), (0, 2), (1, 3)]
    assert row("fft", 4, 3) == row("fft", 4, 1)
    assert [row("fft", 2, step) for step in (1, 2)] == [[(0, 1), (0, 1)]] * 2
    assert [len(row("tree", 4, step)) for step in range(4)] == [1, 2, 4, 4]
    assert row("tree", 4, 1) == [(0,), (0,)]
    assert row("tree", 4, 5) == [(0,), (0,), (1,), (1,)]
    assert row("all_to_all", 3, 1) == [(0, 1, 2)] * 3
    with pytest.raises(ValueError, match=r"unknown pattern 'ring': one of trivial, "):
        row("ring", 4, 1)


def test_random_neighbours_are_near_and_a_task_needs_itself() -> None:
    draws = splitmix64(7)
    found = [needs("random_nearest", 16, 1, column, draws) for _ in range(50) for column in range(16)]
    for number, others in enumerate(found):
        column = number % 16
        assert column in others
        assert all(abs(other - column) <= 2 and 0 <= other < 16 for other in others)
    inner = [len(others) - 1 for number, others in enumerate(found) if 2 <= number % 16 < 14]
    assert sum(inner) / len(inner) == pytest.approx(2.0, abs=0.2)  # four neighbours, each with a chance of a half
    assert make_program("random_nearest", 16, 8).ops == make_program.__wrapped__("random_nearest", 16, 8).ops


def test_rows_of_variables_take_turns(tmp_path: Path) -> None:
    program = make_program("stencil_1d", 2, 3)
    first, second = (Op((), (0,)), Op((), (1,))), (Op((0, 1), (2,)), Op((0, 1), (3,)))
    assert program.ops == (*first, *second, Op((2, 3), (0,)), Op((2, 3), (1,)))
    assert program.variables == 4
    assert set(make_program("trivial", 2, 3).ops) == {Op((), ())}
    write(program, tmp_path / "grid.txt")
    assert (tmp_path / "grid.txt").read_text().splitlines() == [
        "4 6",
        "0 0",
        "1 0",
        "2 2 0 1",
        "3 2 0 1",
        "0 2 2 3",
        "1 2 2 3",
    ]


def test_a_task_out_of_turn_changes_the_digest() -> None:
    state = State(make_program("fft", 4, 4))
    for op_id in (*range(8), 12, *range(8, 12), 13, 14, 15):
        state.step(op_id)
    assert state.digest() != serial_digest("fft", 4, 4)


def test_metg_is_where_the_curve_crosses() -> None:
    overhead, rate = 300.0, 2.0  # each task costs so many nanoseconds beside its work, of so many digits in one
    elapsed = {length: (overhead + length / rate) / 4 for length in (8 << k for k in range(14))}
    points = points_of(elapsed, rate, 4)
    assert [point.granularity for point in points] == [4 * each for each in elapsed.values()]
    assert points[0].efficiency == pytest.approx(4 / 304)
    found = metg(points)
    assert found == pytest.approx(2 * overhead, rel=0.05)  # half of it is work
    assert metg(points, 0.9) == pytest.approx(10 * overhead, rel=0.1)


def test_metg_of_curves_that_do_not_cross() -> None:
    assert metg([]) is None
    assert metg([Point(10.0, 0.1), Point(20.0, 0.4)]) is None
    assert metg([Point(10.0, 0.7), Point(20.0, 0.9)]) == 10.0
    # A long run that was disturbed does not count.
    assert metg([Point(10.0, 0.25), Point(20.0, 0.5), Point(40.0, 0.3), Point(80.0, 0.9)]) == 20.0


@needs_native
def test_a_kernel_reads_as_many_digits_as_are_wanted() -> None:
    native = native_ops.load()
    assert native is not None
    kernel = native_ops.Kernel(native, 100)
    assert kernel.data(0) - kernel.data(100) == 100
    assert native.read_digits(kernel.data(100)) == 0


@pytest.mark.slow
@needs_native
def test_the_command_measures_and_tells_who_is_missing(tmp_path: Path) -> None:
    done = call("bench", "metg", "--smoke", "--workers", "2", "--curves", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Efficiency, stencil_1d, 16, 2 workers (by medians)" in done.stdout
    for width in (2, 16):
        assert f"METG(50 %), width {width}, 2 workers (us, by minima / by medians)" in done.stdout
    assert "weft, pushed from Python" in done.stdout
    assert "benches/metg.py in a checkout" in done.stdout
    done = call("bench", "metg", "--smoke", "--patterns", "tree,fft", "--widths", "4", "--json", folder=tmp_path)
    told = json.loads(done.stdout)
    assert [(each["pattern"], each["width"], each["steps"]) for each in told["curves"]] == [
        ("tree", 4, 32),
        ("fft", 4, 32),
    ]
    assert {each["implementation"] for each in told["missing"]} >= {"OpenMP", "oneTBB", "Taskflow"}
    for curve in told["curves"]:
        points = curve["minimum"]["points"]
        assert len(points) == 2
        assert all(point["granularity"] > 0 and point["efficiency"] > 0 for point in points)
    assert told["peak_digits_per_ns"] > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--patterns", "ring"), "'ring': the patterns are trivial, stencil_1d, "),
        (("--widths", "2,17"), "'2,17': at most 16 columns"),
        (("--tasks", "0"), "'0': a number of at least 1"),
        (("--plot", "curve.txt"), "curve.txt: the suffix says the format, and is one of .svg"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in mistake(call("bench", "metg", *arguments, folder=tmp_path))


def test_curves_are_tables_too() -> None:
    grid = Grid("tree", 2, 8)
    curves = Curves(Settings(patterns=("tree",), widths=(2,), lengths=(8, 64)), peak=0.8)
    for name, overhead in (("weft, pushed", 10.0), ("OpenMP", 70.0)):
        for length in (8, 64):
            curves.elapsed[grid, name, length] = [(length / 0.8 + overhead) / 2]
    curves.elapsed[grid, "oneTBB", 8] = [10.0]  # it took too long for the others
    ((title, rows),) = Report(curves, {}).efficiencies()
    assert title == "Efficiency, tree, 2, 2 workers (by medians)"
    assert rows == [
        ["work of a task (us)", "weft, pushed", "OpenMP"],
        ["0.010", "50%", "12%"],
        ["0.080", "89%", "53%"],
    ]


def test_curves_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    curves = Curves(Settings(patterns=("tree", "fft"), lengths=(8, 64)), peak=0.7)
    for grid in (Grid("tree", 2, 8), Grid("fft", 2, 8), Grid("tree", 16, 8)):
        for name in ("OpenMP", "weft, pushed"):
            for length in (8, 64):
                curves.elapsed[grid, name, length] = [10.0 + length]
    assert curves.names() == ["weft, pushed", "OpenMP"]
    draw(tmp_path / "metg.png", curves)
    assert (tmp_path / "metg.png").read_bytes().startswith(b"\x89PNG")
