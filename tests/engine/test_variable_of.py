"""``variable_of``: one variable for one object, weakly, and for all views of one array."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from conftest import SOON, MakeEngine, background
from weft import errors

if TYPE_CHECKING:
    import weft


class Box:
    """Something that can be referred to weakly."""


class Same:
    """Equal to every other, and not hashable: only identity tells them apart."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    __hash__ = None


@pytest.mark.parametrize("make", [Box, Same, lambda: np.zeros(3), lambda: lambda: None, set])
def test_the_same_variable_for_the_same_object(engine: weft.Engine, make: Any) -> None:
    one, other = make(), make()
    x = engine.variable_of(one)
    assert engine.variable_of(one) is x
    assert engine.variable_of(other) is not x
    assert x.engine is engine
    engine.push(lambda: None, (), (x,))
    engine.wait_for_var(engine.variable_of(one))
    assert (engine.variable_of(one).version, engine.variable_of(other).version) == (1, 0)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[1:],
        lambda a: a[::2, ::-1],
        lambda a: a.T,
        lambda a: a.reshape(-1),
        lambda a: a.view(np.uint8),
        lambda a: a[2][1:],
        lambda a: np.broadcast_to(a, (3, 4, 6)),
        lambda a: np.asarray(memoryview(a)),
        lambda a: a.view(np.recarray),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=0)[0],
    ],
)
def test_views_resolve_to_the_array_that_owns_the_memory(engine: weft.Engine, view: Any) -> None:
    owner = np.zeros((4, 6))
    x = engine.variable_of(owner)
    assert engine.variable_of(view(owner)) is x
    assert engine.variable_of(view(owner.copy())) is not x


def test_a_view_asked_for_first(engine: weft.Engine) -> None:
    owner = np.zeros(10)
    assert engine.variable_of(owner[3:]) is engine.variable_of(owner[:5])
    assert engine.variable_of(owner) is engine.variable_of(owner[1:][1:])


def test_arrays_over_a_foreign_buffer_are_kept_apart_from_others(engine: weft.Engine) -> None:
    one, other = bytearray(16), bytearray(16)
    a, b = np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)
    assert engine.variable_of(a) is engine.variable_of(a[4:])
    assert engine.variable_of(a) is not engine.variable_of(b)


def test_keeps_nothing_alive(engine: weft.Engine) -> None:
    box = Box()
    gone, x = weakref.ref(box), engine.variable_of(box)
    engine.push(lambda: None, (), (x,))
    engine.wait_for_all()
    del box
    gc.collect()
    assert gone() is None
    assert x.completed_version == 1, "the handle still tells what was"


def test_an_object_at_a_dead_ones_address_is_another(engine: weft.Engine) -> None:
    for _ in range(2000):
        box = Box()
        x = engine.variable_of(box)
        assert x.version == 0
        engine.push(lambda: None, (), (x,))
        del box, x
    engine.wait_for_all()
    gc.collect()
    assert engine.stats()["variables"] < 100


def test_objects_die_while_the_engine_is_called(engine: weft.Engine) -> None:
    """The collector runs inside pushes, and the death of an object pushes the deletion of its variable."""
    threshold, ran = gc.get_threshold(), list[None]()
    gc.set_threshold(1)
    try:
        for _ in range(2000):
            box: Any = Box()
            box.itself = box
            engine.push(lambda: ran.append(None), [engine.variable_of(box)], [engine.new_variable()])
    finally:
        gc.set_threshold(*threshold)
    del box
    gc.collect()
    engine.wait_for_all(timeout=SOON)
    assert len(ran) == 2000
    assert engine.stats()["variables"] < 100


def test_pending_ops_survive_the_object(parallel: weft.Engine) -> None:
    ran, box, entered, opened = list[int](), Box(), threading.Event(), threading.Event()
    parallel.push(lambda: (entered.set(), opened.wait(SOON)), (), (parallel.variable_of(box),))
    assert entered.wait(SOON)
    parallel.push(lambda: ran.append(1), (), (parallel.variable_of(box),))
    del box
    gc.collect()
    opened.set()
    parallel.wait_for_all(timeout=SOON)
    assert ran == [1]


def test_each_engine_has_its_own(engine: weft.Engine, make_engine: MakeEngine) -> None:
    box, other = Box(), make_engine(1)
    assert engine.variable_of(box) is not other.variable_of(box)
    assert other.variable_of(box).engine is other


@pytest.mark.usefixtures("often")
def test_from_many_threads_it_is_still_one(engine: weft.Engine) -> None:
    boxes = [Box() for _ in range(300)]
    meet = threading.Barrier(4)

    def ask() -> list[weft.Variable]:
        meet.wait(SOON)
        return [engine.variable_of(box) for box in boxes]

    first, *others = [thread.result(SOON) for thread in [background(ask) for _ in range(4)]]
    for other in others:
        assert all(a is b for a, b in zip(first, other, strict=True))


def test_after_a_deletion_it_is_a_new_one(engine: weft.Engine) -> None:
    box = Box()
    x = engine.variable_of(box)
    engine.delete_variable(x)
    engine.wait_for_all()
    again = engine.variable_of(box)
    assert again is not x
    engine.push(lambda: None, (), (again,))
    engine.wait_for_var(again)


@pytest.mark.parametrize("thing", [3, 2.5, "text", None, (1, 2), [1], {"a": 1}])
def test_what_cannot_be_referred_to_weakly_is_refused(engine: weft.Engine, thing: object) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=type(thing).__name__):
        engine.variable_of(thing)
