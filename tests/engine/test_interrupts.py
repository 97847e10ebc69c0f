"""Interrupts at any point at which the interpreter looks for them: switches of threads and of the process are as they were before.

CPython looks for signals behind calls, at the beginnings of functions and where loops go back. The tests raise there, in
frames of weft's and of these tests, one point after the other: each point of short blocks, and points drawn by chance of
what takes long: `WEFT_TEST_INTERRUPTS` says how many of each, 60 by default; with 8,000 they are 100,000.
"""

from __future__ import annotations

import dis
import os
import random
import sys
import threading
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd
from weft._call import blas
from weft._core import Nested, is_eager, recording, tape_paused
from weft._graph import naming
from weft._program.unrecorded import outside
from weft._singa.models import running
from weft._singa.models.moves import move
from weft._singa.models.timing import Times
from weft._tape import backward, modes
from weft._trace.ranges import _Ranged

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

ROOT = weft.__file__.removesuffix("__init__.py")

#: Behind these the interpreter looks for interrupts.
LOOKS = ("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "SEND")


#: The entries of a code's exception table.
table_of: Callable[[CodeType], list[Any]] = dis._parse_exception_table  # type: ignore[attr-defined] # the only reader of it


@cache
def instructions_of(code: CodeType) -> tuple[dict[int, str], dict[int, int]]:
    """Return the names of a code's instructions, and their handlers, by their offsets."""
    names = {each.offset: each.opname for each in dis.get_instructions(code)}
    return names, {offset: entry.target for entry in table_of(code) for offset in range(entry.start, entry.end, 2)}


class _Points:
    """Raises at one of the points of what it traces, and counts them."""

    def __init__(self, at: int) -> None:
        self.at, self.met = at, 0

    def begin(self, frame: FrameType, event: str, _: object) -> Any:
        if event != "call" or not frame.f_code.co_filename.startswith((ROOT, __file__)):
            return None
        names, handlers = instructions_of(frame.f_code)
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        before, handler = "RESUME", handlers.get(frame.f_lasti)

        def step(frame: FrameType, event: str, _: object) -> Any:
            nonlocal before, handler
            if event == "opcode":
                present = handlers.get(frame.f_lasti)
                # The interpreter raises at the instruction before: where another handler is in charge of that one, a
                # trace cannot stand for it.
                if before.startswith(LOOKS) and handler == present:
                    self.met += 1
                    if self.met == self.at:
                        raise KeyboardInterrupt
                before, handler = names.get(frame.f_lasti, ""), present
            return step

        return step


def interrupted(run: Callable[[], object], at: int) -> bool:
    """Interrupt a run at its point of this number, and return whether there was one."""
    points = _Points(at)
    before = sys.gettrace()
    sys.settrace(points.begin)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return points.met >= at


def switches() -> tuple[object, ...]:
    return (
        is_eager(),
        tape_paused(),
        modes.LISTENING.get(),
        modes.TRAINING.get(),
        backward.BEYOND.get(),
        naming._manager.get(),
        naming._texts.get(),
        naming._given.get(),
        running._running.get(),
        recording(),
        not blas._shared.running,
    )


def inside() -> None:
    """Stand for the body of a block."""


@autograd.no_grad()
def decorated() -> None:
    inside()


def block(manager: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        with manager():
            inside()

    return run


BLOCKS: dict[str, Callable[[], Any]] = {
    "eager": weft.eager,
    "no_grad": autograd.no_grad,
    "listening": lambda: modes.listening(mode=True),
    "paused": modes.paused,
    "in_mode": lambda: running.in_mode(inside, training=True),
    "NameManager": weft.symbol.NameManager,
    "Prefix": lambda: weft.symbol.Prefix("net_"),
    "AttrScope": lambda: weft.symbol.AttrScope(ctx_group="first"),
    "chosen": lambda: naming.chosen("total", {}),
    "blas": lambda: blas.limited(1),
}


def test_a_trace_that_is_interrupted_at_any_point_records_no_more() -> None:
    engine, at = weft.get_engine(), 1
    while interrupted(block(lambda: weft.trace(engine=engine)), at):
        with weft.trace(engine=engine):  # refused while another one records
            pass
        at += 1
    assert at > 2


def test_times_that_are_interrupted_at_any_point_record_no_more() -> None:
    engine, at = weft.get_engine(), 1
    while interrupted(lambda: Times(0).measure(inside, engine), at):
        with weft.trace(engine=engine):
            pass
        at += 7  # what is counted behind the run is long
    assert at > 8


def test_blocks_in_blocks_of_one_call_begin_and_end_together() -> None:
    outer, inner, at = threading.RLock(), threading.RLock(), 1
    while interrupted(block(lambda: Nested(outer, inner)), at):
        assert not outer._is_owned()  # type: ignore[attr-defined] # nobody else has it
        assert not inner._is_owned()  # type: ignore[attr-defined] # as above
        at += 1
    assert at > 2
    with pytest.raises(AttributeError), Nested(outer, object()):  # type: ignore[arg-type] # no manager
        pass
    assert not outer._is_owned()  # type: ignore[attr-defined] # as above


def test_a_range_of_a_profiler_ends_with_its_callable() -> None:
    ranges: list[object] = []
    domain = SimpleNamespace(push_range=ranges.append, pop_range=ranges.pop)
    at = 1
    while interrupted(_Ranged(inside, "inside", domain, None), at):
        assert not ranges, at
        at += 1
    assert at > 2


def test_a_tensor_that_is_moved_wants_its_gradient_again() -> None:
    at, met = 1, True
    while met:
        x = weft.tensor.ones((2,))
        x.requires_grad = True
        met = interrupted(lambda x=x: move(x, weft.cpu(1), np.dtype(np.float16)), at)
        assert x.requires_grad, at
        at += 1
    assert at > 2


def leaf() -> weft.NDArray:
    w = weft.asarray([1.0, 2.0])
    w.requires_grad = True
    return w


def step(w: weft.NDArray) -> weft.NDArray:
    return (w * w).sum()


def recorded() -> None:
    weft.program(step)(weft.ones(2))


def captured() -> None:
    x = weft.zeros(2)
    with weft.capture("move"):
        x += 1.0


def sequential() -> None:
    inner = weft.program(step, sequential=True)
    weft.program(lambda w: inner(w) + 1)(weft.ones(2))


def of_a_program() -> None:
    autograd.gradients(weft.program(step)(leaf()))


def twice() -> None:
    weft.grad(lambda w: weft.grad(step)(w).sum())(weft.ones(2))


def checkpointed() -> None:
    autograd.gradients(autograd.checkpoint(step)(leaf()))


def scanned() -> None:
    w = leaf()
    carry, _ = weft.scan(lambda c, x: (c * x, c), w, weft.ones((3, 2)))
    autograd.gradients(carry.sum())


def chosen() -> None:
    w = leaf()
    autograd.gradients(weft.cond(weft.asarray(True), step, lambda w: w.sum(), w))


def by_numpy() -> None:
    np.put(weft.ones(3), [0], [2.0])  # type: ignore[arg-type] # by `__array_function__`


def composed() -> None:
    x = weft.symbol.Variable("x")
    (weft.symbol.exp(x, name="e") + 1).eval(x=weft.ones(2))


def trained() -> None:
    x = weft.symbol.Variable("x")
    executor = (x * x).bind(args={"x": weft.ones(2)}, args_grad={"x": weft.zeros(2)})
    executor.forward(is_train=True)
    executor.backward(weft.ones(2))


def apart() -> None:
    with weft.capture("apart"):
        outside(lambda: weft.ones(2))


LONG = (
    lambda: autograd.gradients(step(leaf())),
    recorded,
    captured,
    sequential,
    of_a_program,
    twice,
    checkpointed,
    scanned,
    chosen,
    by_numpy,
    composed,
    trained,
    apart,
)


@pytest.fixture(autouse=True)
def _as_before() -> Any:
    before = switches()
    yield
    assert switches() == before


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_that_is_interrupted_at_any_point_leaves_no_switch_on(name: str) -> None:
    run, before, at = block(BLOCKS[name]), switches(), 1
    while interrupted(run, at):
        assert switches() == before, at
        at += 1
    assert at > 2


def test_a_decorated_function_that_is_interrupted_leaves_no_switch_on() -> None:
    before, at = switches(), 1
    while interrupted(decorated, at):
        assert switches() == before, at
        at += 1
    assert at > 2


def test_both_switches_of_training_are_set_or_neither() -> None:
    def train() -> None:
        autograd.training = True

    at = 1
    try:
        autograd.training = False
        while interrupted(train, at):
            assert (modes.TRAINING.get(), modes.LISTENING.get()) in {(False, False), (True, True)}
            autograd.training = False
            at += 1
    finally:
        modes.TRAINING.set(False)
        modes.LISTENING.set(None)


def nested(draw: random.Random) -> Callable[[], None]:
    """Return blocks in blocks, of kinds that are drawn."""
    managers = [BLOCKS[name] for name in draw.choices(sorted(BLOCKS), k=draw.randint(1, 4))]
    managers = [manager for at, manager in enumerate(managers) if manager not in managers[:at]]

    def enter(left: list[Callable[[], Any]]) -> None:
        if not left:
            return inside()
        with left[0]():
            enter(left[1:])
            inside()
        return None

    return lambda: enter(managers)


# 100,000 together, in parts that several processes share.
@pytest.mark.parametrize(
    "seed", [20261123, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20261124, 20261148))]
)
def test_blocks_in_blocks_are_interrupted_by_chance(seed: int) -> None:
    draw, before, done = random.Random(seed), switches(), 0
    while done < 4_000:
        run = nested(draw)
        at = 1
        while interrupted(run, at):
            assert switches() == before, (done, at)
            at += draw.randint(1, 2)
            done += 1


@pytest.mark.parametrize("count", [int(os.environ.get("WEFT_TEST_INTERRUPTS", "60"))])
@pytest.mark.parametrize("run", LONG, ids=lambda run: run.__name__)
def test_what_uses_switches_inside_is_interrupted_by_chance(run: Callable[[], object], count: int) -> None:
    draw, before = random.Random(20261123), switches()
    run()
    points = _Points(-1)
    sys.settrace(points.begin)
    try:
        run()
    finally:
        sys.settrace(None)
    for _ in range(count):
        at = draw.randint(1, points.met)
        interrupted(run, at)
        assert switches() == before, at
