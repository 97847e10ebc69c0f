"""References that lead in a circle through objects of the core: the collector finds them, whichever class they pass."""

from __future__ import annotations

import gc
import re
import weakref
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import _core

if TYPE_CHECKING:
    from collections.abc import Callable

BINDINGS = Path(__file__).parent.parent / "crates" / "bindings" / "src"


class Owner:
    """What a circle begins with and ends at."""

    held: object

    def step(self, x: weft.NDArray) -> weft.NDArray:
        return x + 1


def engine_of_an_error(owner: Owner) -> tuple[weft.Engine, weft.Variable]:
    engine = weft.Engine(1)

    def explode() -> None:
        raise ValueError(owner)

    variable = engine.new_variable()
    engine.push(explode, (), (variable,))
    engine._drain()
    return engine, variable


def array_of_an_error(owner: Owner) -> object:
    engine = weft.Engine(1)
    x = weft.zeros(2, engine=engine)

    def explode(*_: object) -> None:
        raise ValueError(owner)

    _core.push_compute(explode, (x,), ())
    engine._drain()
    return x


def operator(owner: Owner) -> object:
    engine = weft.Engine(1)
    return engine.new_operator(lambda: owner, (), (engine.new_variable(),))


def answering(owner: Owner) -> object:
    return _core._Answering(lambda: owner, lambda: owner)


def capture(push: Callable[[weft.Engine, Owner], None], replays: int = 1) -> Callable[[Owner], object]:
    def make(owner: Owner) -> object:
        engine = weft.Engine(1)
        with weft.capture("circle", engine=engine) as program:
            push(engine, owner)
        for _ in range(replays):
            program.replay()
        engine.wait_for_all()
        return program

    return make


def run(*_: object) -> None:
    """Stand for what an op does."""


def complete(_: Owner, done: weft.Completion) -> None:
    done()


def pushed(engine: weft.Engine, owner: Owner) -> None:
    engine.push(partial(run, owner), (), (engine.new_variable(),))


def started(engine: weft.Engine, owner: Owner) -> None:
    engine.push_async(partial(complete, owner), (), (engine.new_variable(),))


def computed(engine: weft.Engine, owner: Owner) -> None:
    _core.push_compute(partial(run, owner), (weft.zeros(2, engine=engine),), ())


def with_attributes(engine: weft.Engine, owner: Owner) -> None:
    before = _core.recorded_calls()
    assert before is not None
    weft.zeros(2, engine=engine) + 1
    _core.note_call(owner, {"owner": owner}, before)


def program(owner: Owner) -> object:
    function = weft.program(owner.step)
    function(weft.ones(2))
    return function


def ended_recording(owner: Owner) -> object:
    engine = weft.Engine(1)
    recording = _core.Recording(engine, "circle")
    recording.begin()
    with_attributes(engine, owner)
    recording.end()
    return recording


def nested(owner: Owner) -> object:
    return _core.Nested(nullcontext(owner))


def scope(owner: Owner) -> object:
    return _core.Scope((ContextVar("circle"), owner))


def tape(owner: Owner) -> object:
    x = weft.ones(2)
    x.requires_grad = True

    class Doubled(weft.autograd.Operator):
        kept = owner

        def forward(self, x: weft.NDArray) -> weft.NDArray:
            return x * 2

        def backward(self, dy: weft.NDArray) -> weft.NDArray:
            return dy * 2

    return Doubled()(x)


def declared(owner: Owner) -> object:
    return _core._read(weft.ones(2)), owner


def callee(owner: Owner) -> object:
    op = _core.Callee()
    op._prepare_by(owner)
    return op


def array_function(owner: Owner) -> object:
    return _core.ArrayFunction("f", owner, owner)


def cuda_loop(owner: Owner) -> object:
    kinds = (np.dtype(np.float32),)
    return _core.CudaLoop("circle", kinds, kinds, partial(run, owner))


def raw_kernel(owner: Owner) -> object:
    class Module(weft.cuda.RawModule):
        kept = owner

    return weft.cuda.RawKernel(Module('extern "C" __global__ void circle(float *x) {}'), "circle")


def calls_of_a_graph(owner: Owner) -> object:
    x = weft.symbol.Variable("x")
    return _core.graph_calls((x * 2).graph, lambda *_: owner)


def part(owner: Owner) -> object:
    engine, _ = engine_of_an_error(owner)
    return _core.Part(engine, "circle")


def task_graph(owner: Owner) -> object:
    dask = pytest.importorskip("weft.distributed.dask")
    return dask._graph({"a": (partial(run, owner), 1)}, ["a"], {})


#: By class: what makes an object of it, or one that holds it, that refers to an owner.
CIRCLES: dict[str, tuple[Callable[[Owner], object], ...]] = {
    "Engine": (engine_of_an_error,),
    "Variable": (engine_of_an_error,),
    "NDArray": (array_of_an_error,),
    "Operator": (operator,),
    "Answering": (answering,),
    "Compiled": (capture(pushed), capture(pushed, 0), capture(started), capture(computed), capture(with_attributes)),
    "Signatures": (program,),
    "Recording": (ended_recording,),
    "Nested": (nested,),
    "Scope": (scope,),
    "CudaLoop": (cuda_loop,),
    "RawKernel": (raw_kernel,),
    "GraphCall": (calls_of_a_graph,),
    "Part": (part,),
    "TaskGraph": (task_graph,),
    "TapeNode": (tape,),
    "Outline": (tape,),
    "Family": (tape,),
    "Declared": (declared,),
    "Callee": (callee,),
    "ArrayFunction": (array_function,),
}

#: They show what they hold, as the sources say. One is made with a device and one with MPI; of the others the ufuncs are NumPy's
#: own, and the attributes plain values.
NOT_MADE = {"BareLaunch", "MpiCommunicator", "Loop", "Native", "Plan", "Way"}

MAKERS = [pytest.param(make, id=f"{name}{at}") for name, makers in CIRCLES.items() for at, make in enumerate(makers)]


@pytest.fixture(scope="module")
def _of_this_module_alone() -> None:
    """Spare collections what other tests have imported."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("_of_this_module_alone")
@pytest.mark.parametrize("make", MAKERS)
def test_a_circle_is_collected(make: Callable[[Owner], Any]) -> None:
    def turn() -> weakref.ref[Owner]:
        owner = Owner()
        owner.held = make(owner)
        return weakref.ref(owner)

    gone = turn()
    for _ in range(3):  # what dies with the first ones may lead to others
        gc.collect()
    assert gone() is None


def classes() -> dict[str, tuple[bool, bool]]:
    """Return of each class of the core whether a field is a reference to Python's, and whether the collector is shown any."""
    found = {}
    shown = set()
    for path in BINDINGS.rglob("*.rs"):
        text = path.read_text()
        for block in re.findall(r"^impl (\w+) \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            if "fn __traverse__" in block[1]:
                shown.add(block[0])
        for name, fields in re.findall(
            r"#\[pyclass[^{;]*?\bstruct (\w+)( \{.*?^\}|\([^\n]*\);|;)", text, re.DOTALL | re.MULTILINE
        ):
            kinds = set(re.findall(r"Py<(\w+)>", fields))
            found[name] = bool(kinds - {"PyString"})
    return {name: (holds, name in shown) for name, holds in found.items()}


def test_each_class_that_holds_objects_shows_them() -> None:
    found = classes()
    assert len(found) > 25
    assert [name for name, (holds, shows) in found.items() if holds and not shows] == []
    shown = {name for name, (_, shows) in found.items() if shows}
    assert shown == CIRCLES.keys() | NOT_MADE
