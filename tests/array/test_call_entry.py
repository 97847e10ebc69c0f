"""The entry of calls: arguments as CPython hands them over, whatever they are."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import _core

if TYPE_CHECKING:
    from conftest import RunScript

X = weft.asarray(np.arange(12.0).reshape(3, 4))
SUM, ADD, EXP = (weft.ops.get_op(name) for name in ("sum", "add", "exp"))


def test_names_that_are_no_constants_of_the_code_are_the_same_names() -> None:
    given = {str(b"axis", "ascii"): 0, str(b"out", "ascii"): None, str(b"engine", "ascii"): None}
    for _ in range(2):
        assert _core.call(SUM, X, **given).shape == (4,)
    out = weft.zeros(4)
    assert _core.call(SUM, X, **{str(b"out", "ascii"): out}, axis=0) is out
    np.testing.assert_array_equal(out.numpy(), [12, 15, 18, 21])


def test_the_order_of_attributes_does_not_count() -> None:
    found = [_core.call(SUM, X, axis=1, keepdims=True), _core.call(SUM, X, keepdims=True, axis=1)]
    assert [x.shape for x in found] == [(3, 1), (3, 1)]


@pytest.mark.parametrize("given", [(), (1,), (X,), (None, X), ("sum", X)])
def test_the_first_argument_is_an_op(given: tuple[Any, ...]) -> None:
    call: Any = _core.call
    with pytest.raises(TypeError):
        call(*given)


@pytest.mark.parametrize("attributes", [{"axes": 0}, {"": 0}, {"axis": object()}, {"axis": [[0]]}, {"keepdims": X}])
def test_attributes_that_an_op_has_not_are_refused_each_time(attributes: dict[str, Any]) -> None:
    for _ in range(3):
        with pytest.raises((TypeError, ValueError)):
            _core.call(SUM, X, **attributes)
    assert _core.call(SUM, X).item() == 66


def test_an_attribute_that_contains_itself_is_refused() -> None:
    around: list[Any] = []
    around.append(around)
    with pytest.raises((TypeError, ValueError, RecursionError)):
        _core.call(SUM, X, axis=around)


def test_an_op_of_many_operands_gets_them_all() -> None:
    parts = [weft.full((1, 2), number) for number in range(300)]
    found = _core.call(weft.ops.get_op("concat"), *parts, axis=0)
    np.testing.assert_array_equal(found.numpy()[:, 0], np.arange(300))


def test_an_attribute_whose_comparison_raises_is_not_asked() -> None:
    class Hostile:
        def __eq__(self, _other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = object.__hash__

        def __index__(self) -> int:
            return 1

    for _ in range(3):
        assert _core.call(SUM, X, axis=Hostile()).shape == (3,)


def test_results_of_a_kernel_of_several_are_a_tuple() -> None:
    draw = np.random.default_rng(0)
    z, c = (weft.asarray(draw.standard_normal((2, wide)).astype("f4")) for wide in (20, 5))
    gates = weft.ops.get_op("nn.lstm_gates")
    found: Any = gates(z, c)
    assert type(found) is tuple
    assert [x.shape for x in found] == [(2, 5), (2, 5)]
    wide = gates(z.astype("f8"), c.astype("f8"))
    for got, wanted in zip(found, wide, strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "relu", "gelu"])
def test_kernels_take_arrays_in_any_order_of_memory(name: str) -> None:
    host = np.random.default_rng(1).standard_normal((6, 8)).astype("f4")
    function = getattr(weft.nn, name)
    x = weft.asarray(host)
    for turned in (x.T, x[::-1, ::2], weft.broadcast_to(x[0], (3, 8))):
        dense = weft.asarray(np.ascontiguousarray(turned.numpy()))
        np.testing.assert_array_equal(function(turned).numpy(), function(dense).numpy())


def test_a_push_that_a_user_sets_comes_before_the_kernel() -> None:
    op = weft.ops.register_op("test_entry.double", infer=lambda x: x)(lambda out, x: np.multiply(x, 2, out=out))
    seen: list[str] = []

    def push(outputs: Any, operands: Any) -> bool:
        seen.append("pushed")
        weft.add(operands[0], operands[0], out=outputs[0])
        return True

    op.set_attribute("push", push)
    np.testing.assert_array_equal(_core.call(op, X).numpy(), X.numpy() * 2)
    assert seen == ["pushed"]


def test_threads_ask_for_many_ways_at_once() -> None:
    """Ways are forgotten when there are too many of them: nobody gets another's."""
    wrong: list[Any] = []

    def ask(seed: int) -> None:
        draw = np.random.default_rng(seed)
        for _ in range(400):
            shape = tuple(int(n) for n in draw.integers(1, 9, 3))
            axis = int(draw.integers(3))
            found = _core.call(SUM, weft.ones(shape), axis=axis)
            if found.shape != (*shape[:axis], *shape[axis + 1 :]) or found.numpy().flat[0] != shape[axis]:
                wrong.append((shape, axis))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_a_name_whose_end_calls_the_op_does_not_wait_for_itself(script: RunScript) -> None:
    """An op remembers a few hundred ways, then forgets them: what goes with them may run Python, which calls the op."""
    done = script(
        """
        import faulthandler

        import weft

        faulthandler.dump_traceback_later(60, exit=True)
        op, ended = weft.ops.get_op("sum"), []

        class Name(str):
            def __del__(self):
                ended.append(weft.sum(weft.ones((2, 3)), axis=0))

        for length in range(600):
            weft._core.call(op, weft.ones((length + 1, 2)), **{Name("axis"): 0})
        assert len(ended) > 256
        assert {tuple(each.tolist()) for each in ended} == {(2.0, 2.0, 2.0)}
        """
    )
    assert done.returncode == 0, done.stderr
