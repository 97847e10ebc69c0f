"""``push_native``: functions of C's world, run without the GIL."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from typing import TYPE_CHECKING

import numpy as np
import pytest

from conftest import SOON, Gate, MakeEngine, address_of, flag
from weft import errors

if TYPE_CHECKING:
    from pathlib import Path

    import weft


def test_runs_with_its_data(engine: weft.Engine, native: ctypes.CDLL) -> None:
    x, cell = engine.new_variable(), np.zeros(1, np.int64)
    for _ in range(10_000):
        engine.push_native(address_of(native.add_one), cell.ctypes.data, (), (x,))
    engine.wait_for_var(x)
    assert cell[0] == 10_000
    assert x.completed_version == 10_000


def test_data_is_null_by_default(engine: weft.Engine, native: ctypes.CDLL) -> None:
    cell = np.zeros(1, np.int64)
    engine.push_native(address_of(native.fail_with_data))
    engine.wait_for_all()
    engine.push_native(address_of(native.fail_with_data), cell.ctypes.data)
    with pytest.raises(errors.NativeOpError):
        engine.wait_for_all()


def test_beside_callables_on_the_same_variable(engine: weft.Engine, native: ctypes.CDLL) -> None:
    x, cell, seen = engine.new_variable(), np.zeros(1, np.int64), list[int]()
    for _ in range(500):
        engine.push_native(address_of(native.add_one), cell.ctypes.data, (), (x,))
        engine.push(lambda: seen.append(int(cell[0])), (x,))
    engine.wait_to_write(x)
    assert sorted(seen) == list(range(1, 501))


@pytest.mark.parametrize("code", [1, -1, 7, 2**31 - 1, -(2**31)])
def test_a_code_other_than_zero_is_a_failure(engine: weft.Engine, native: ctypes.CDLL, code: int) -> None:
    x, y, ran, data = engine.new_variable(), engine.new_variable(), list[str](), ctypes.c_int32(code)
    engine.push_native(address_of(native.fail_with), ctypes.addressof(data), (), (x,), keep_alive=data, name="solve")
    engine.push(lambda: ran.append("ran"), (x,), (y,))
    with pytest.raises(errors.NativeOpError) as caught:
        engine.wait_for_var(x)
    assert caught.value.code == code
    assert "solve" in "\n".join([str(caught.value), *caught.value.__notes__])
    with pytest.raises(errors.NativeOpError) as again:
        engine.wait_for_var(y)
    assert again.value is caught.value
    assert ran == []


def test_skipped_after_a_failure(engine: weft.Engine, native: ctypes.CDLL) -> None:
    x, cell = engine.new_variable(), np.zeros(1, np.int64)
    engine.push(lambda: 1 / 0, (), (x,))
    engine.push_native(address_of(native.add_one), cell.ctypes.data, (), (x,))
    engine.push_native(address_of(native.add_one), cell.ctypes.data, (x,), always_run=True)
    engine.push_native(address_of(native.add_one), cell.ctypes.data, overwrite_vars=(x,))
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_all()
    engine.wait_for_var(x)
    assert cell[0] == 2


@pytest.mark.parametrize("keep", [lambda data: data, lambda data: [data], lambda data: lambda: data])
def test_keep_alive_lives_until_it_ran(parallel: weft.Engine, native: ctypes.CDLL, gate: Gate, keep: object) -> None:
    x, gone, result = parallel.new_variable(), threading.Event(), flag()
    gate.hold(parallel, mutate=(x,))
    data = np.full(4, 41, np.int64)
    address = data.ctypes.data
    weakref.finalize(data, gone.set)
    parallel.push_native(address_of(native.add_one), address, (), (x,), keep_alive=keep(data))
    parallel.push_native(address_of(native.raise_flag), result.ctypes.data, (), (x,))
    del data
    gc.collect()
    assert not gone.is_set()
    gate.open()
    parallel.wait_for_var(x)
    assert result[0] == 1
    parallel.push(lambda: None)  # whoever next has the GIL lets go of it
    parallel.wait_for_all()
    gc.collect()
    assert gone.wait(SOON)


@pytest.mark.parametrize("policy", ["work_stealing", "per_device"])
def test_needs_no_gil(make_engine: MakeEngine, native: ctypes.CDLL, native_path: Path, policy: str) -> None:
    """This thread keeps the GIL, inside C, until the native op has run on a worker."""
    engine, raised = make_engine(1, policy), flag()
    engine.push_native(address_of(native.succeed))
    engine.wait_for_all()
    holding = ctypes.PyDLL(str(native_path))
    holding.spin_until.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    x = engine.new_variable()
    for _ in range(20):
        raised[0] = 0
        engine.push_native(address_of(native.succeed), 0, (), (x,))
        engine.push_native(address_of(native.raise_flag), raised.ctypes.data, (x,), ())
        assert holding.spin_until(raised.ctypes.data, 10) == 1


def test_a_python_callback_address_works(engine: weft.Engine) -> None:
    """A ctypes callback takes the GIL by itself: slower, but allowed."""
    ran: list[object] = []

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    def body(data: object) -> int:
        ran.append(data)
        return 0

    x = engine.new_variable()
    engine.push_native(address_of(body), 0, (), (x,), keep_alive=body)
    engine.wait_for_var(x, timeout=SOON)
    assert ran == [None]


def test_null_address(engine: weft.Engine, native: ctypes.CDLL) -> None:
    x = engine.new_variable()
    with pytest.raises(errors.ArgumentValueError, match="address"):
        engine.push_native(0, 0, (), (x,))
    assert (x.version, engine.pending) == (0, 0)
    engine.push_native(address_of(native.succeed), 0, (), (x,))
    engine.wait_for_var(x)
    assert x.completed_version == 1


@pytest.mark.parametrize("address", [-1, 2**64, "main", None, 1.5])
def test_an_address_must_be_one(engine: weft.Engine, address: object) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        engine.push_native(address)
    assert engine.stats()["pushed"] == 0
