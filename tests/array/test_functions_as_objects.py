"""Functions of arrays are objects of the core: they look, are named, are copied and fail as functions of Python do."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import sys
import traceback

import numpy as np
import pytest

import weft
from weft._core import ArrayFunction

NAMES = ["sum", "clip", "concat", "where", "linalg.norm", "fft.fft", "take"]


def function_of(name: str) -> ArrayFunction:
    found = weft
    for part in name.split("."):
        found = getattr(found, part)
    assert isinstance(found, ArrayFunction)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_they_say_what_they_are(name: str) -> None:
    function = function_of(name)
    own = name.rpartition(".")[2]
    assert (function.__name__, function.__qualname__) == (own, own)
    assert function.__doc__ is not None
    assert "Examples" in function.__doc__
    assert inspect.isroutine(function)
    assert list(inspect.signature(function).parameters) == list(inspect.signature(function.__wrapped__).parameters)
    assert repr(function).startswith(f"<function {own} at 0x")
    assert f"{own}(" in pydoc.render_doc(function)


@pytest.mark.parametrize("name", NAMES)
def test_they_are_pickled_and_copied_by_name(name: str) -> None:
    function = function_of(name)
    assert copy.copy(function) is function
    assert copy.deepcopy([function])[0] is function
    wrapped = sys.modules[function.__module__].__dict__.get(function.__name__)
    if wrapped is function:  # else it is another module's, as Python's functions are that were wrapped
        assert pickle.loads(pickle.dumps(function)) is function


def test_in_a_class_they_are_methods() -> None:
    class Column(list):
        total = weft.sum

    assert Column([1, 2, 3]).total().item() == 6
    assert Column.total is weft.sum


def test_a_refusal_names_the_error_and_no_detour() -> None:
    x = weft.asarray([[1.0, 2.0]])
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        weft.sum(x, axes=0)
    with pytest.raises(np.exceptions.AxisError) as caught:
        weft.sum(x, axis=5)
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames.count("sum") == 1
    assert caught.value.__cause__ is None or "axis" in str(caught.value.__cause__)


def test_what_a_users_object_raises_is_its_own() -> None:
    class Odd:
        def __array__(self, *_args: object, **_kwargs: object) -> np.ndarray:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weft.sum(Odd())


def test_an_interrupt_passes() -> None:
    class Stop:
        def __array__(self, *_args: object, **_kwargs: object) -> np.ndarray:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weft.sum(Stop())
