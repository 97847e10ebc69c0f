"""What the tests' stand-in says of CuPy, against CuPy itself, which needs no GPU to be looked at."""

from __future__ import annotations

import inspect
from functools import reduce
from typing import Any

import cupy_on_host
import pytest

from weft._cuda.streams import _Handle

cupy: Any = pytest.importorskip("cupy")


@pytest.mark.parametrize("name", sorted(cupy_on_host.FUNCTIONS))
def test_functions_have_the_parameters_that_are_used(name: str) -> None:
    function = reduce(getattr, name.split("."), cupy)
    assert " ".join(inspect.signature(function).parameters) == cupy_on_host.FUNCTIONS[name]


def test_every_ufunc_of_the_registry_is_there() -> None:
    import weft

    special = pytest.importorskip("cupyx.scipy.special")
    ufuncs = {op.ufunc.__name__ for op in map(weft.ops.get_op, weft.ops.list_ops()) if op.ufunc is not None}
    missing = {name for name in {*ufuncs, "vecdot"} if not hasattr(cupy, name) and not hasattr(special, name)}
    assert missing == cupy_on_host.MISSING


def test_streams_of_ours_are_taken() -> None:
    stream = cupy.cuda.Stream.from_external(_Handle(64))
    assert stream.ptr == 64
