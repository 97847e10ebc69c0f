"""The registry: names, aliases, levels, attributes, a user's op."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from computes import REPLACED
from weft.ops import Aval, Op, get_op, like_first, list_ops, register_op

if TYPE_CHECKING:
    from conftest import RunScript

F4, F8, I8, B1 = (np.dtype(code) for code in ("f4", "f8", "i8", "?"))


def test_a_users_op_takes_five_lines() -> None:
    @weft.ops.register_op("test_clip01", infer=like_first)
    def clip01(out: np.ndarray, x: np.ndarray) -> None:
        np.clip(x, 0, 1, out=out)

    assert isinstance(clip01, Op)
    assert clip01(weft.asarray([-1.0, 0.5, 2.0])).tolist() == [0, 0.5, 1]
    out = weft.zeros(2)
    assert clip01(weft.asarray([-1.0, 3.0]), out=out) is out
    assert out.tolist() == [0, 1]
    assert "test_clip01" in list_ops()


def test_attributes_reach_rule_and_computation() -> None:
    def rule(x: Aval, *, times: int) -> Aval:
        if times < 0:
            raise ValueError(f"times is negative: {times}")
        return Aval((x.shape[0] * times,), x.dtype)

    @register_op("test_times", infer=rule)
    def times(out: np.ndarray, x: np.ndarray, *, times: int) -> None:
        out[...] = np.tile(x, times)

    assert times(weft.asarray([1, 2]), times=2).tolist() == [1, 2, 1, 2]
    with pytest.raises(ValueError, match="negative"):
        times(weft.asarray([1]), times=-1)


def test_several_results_and_none() -> None:
    @register_op("test_both", infer=lambda x: (Aval(x.shape, x.dtype), Aval((), x.dtype)), nout=2)
    def both(doubled: np.ndarray, total: np.ndarray, x: np.ndarray) -> None:
        np.multiply(x, 2, out=doubled)
        total[...] = x.sum()

    doubled, total = both(weft.asarray([1, 2]))
    assert (doubled.tolist(), total.item()) == ([2, 4], 3)
    given = weft.zeros(2, dtype=int)
    first, _ = both(weft.asarray([1, 2]), out=(given, None))
    assert first is given
    assert given.tolist() == [2, 4]

    @register_op("test_shift", infer=lambda _step, _x: (), nout=0, mutates=[1])
    def shift(step: int, x: np.ndarray) -> None:
        x += step

    x = weft.asarray([1, 2])
    assert shift(5, x) == ()
    assert x.tolist() == [6, 7]


@pytest.mark.parametrize("operands", [(3.0,), ([1.0, 2.0], 3.0)], ids=["plain", "with a number"])
def test_a_computation_that_returns_its_result_is_refused(operands: tuple[object, ...]) -> None:
    @register_op(f"test_returns_{len(operands)}", infer=like_first)
    def twice(_out: np.ndarray, x: np.ndarray, *_: object) -> np.ndarray:
        return np.atleast_1d(x) * 2

    with pytest.raises(TypeError, match=r"writes to the arrays that it is given first, as in out\[\.\.\.\] = x \* 2"):
        twice(*operands).wait_to_read()


def test_a_computation_may_return_the_arrays_that_it_was_given() -> None:
    @register_op("test_returns_its_own", infer=lambda x: (x, x), nout=2)
    def both(one: np.ndarray, other: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return np.negative(x, out=one), np.copyto(other, x) or other[:1]

    assert [each.tolist() for each in both([1, 2])] == [[-1, -2], [1, 2]]


def test_an_operand_that_is_changed_is_an_ndarray() -> None:
    @register_op("test_changes", infer=lambda x: Aval((), x.dtype), mutates=[0])
    def changes(total: np.ndarray, x: np.ndarray) -> None:
        x += 1
        total[...] = x.sum()

    x = weft.asarray([1.0, 2.0])
    assert (changes(x).item(), x.tolist()) == (5.0, [2.0, 3.0])
    for other in (np.ones(2), [1.0, 2.0], 1.0):
        with pytest.raises(TypeError, match=r"changes its operand 0, .* would change a copy"):
            changes(other)


def test_an_op_with_a_ufunc_uses_its_loops_and_its_own_computation_elsewhere() -> None:
    called = []

    @register_op("test_add", ufunc=np.add)
    def add(out: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
        called.append((x.dtype, y.dtype))
        np.add(x, y, out=out)

    assert add(weft.asarray([1.0]), weft.asarray([2.0])).tolist() == [3]
    assert called == []
    assert add(weft.asarray([1.0]), weft.asarray([2])).tolist() == [3]
    assert called == [(F8, I8)]


def test_names_are_unique_at_a_level_and_the_highest_counts() -> None:
    def register(level: int) -> Op:
        return register_op("test_level", infer=like_first, aliases=["test_level_alias"], level=level)(np.positive)

    low = register(1)
    assert get_op("test_level") is get_op("test_level_alias") is low
    high = register(20)
    assert get_op("test_level_alias") is high
    assert register(5) is not get_op("test_level")
    with pytest.raises(ValueError, match="test_level"):
        register(20)
    with pytest.raises(ValueError, match="add"):
        register_op("add", infer=like_first)(np.add)


def test_attributes_have_levels() -> None:
    op = register_op("test_attribute", infer=like_first)(np.positive)
    with pytest.raises(KeyError, match="gradient"):
        op.attribute("gradient")
    assert op.attribute("gradient", None) is None
    op.set_attribute("gradient", "low", level=1)
    op.set_attribute("gradient", "high", level=3)
    op.set_attribute("gradient", "middle", level=2)
    assert op.attribute("gradient") == "high"
    with pytest.raises(ValueError, match="level 3"):
        op.set_attribute("gradient", "again", level=3)


def test_a_device_kind_gets_its_computation() -> None:
    op = register_op("test_kind", infer=like_first)(np.positive)
    op.set_attribute("compute:cuda", abs)
    assert op.compute["cuda"] is abs
    assert op.compute["cpu"] is np.positive


def test_a_rule_is_needed() -> None:
    with pytest.raises(TypeError, match="infer="):
        register_op("test_no_rule")  # type: ignore[call-overload]


def test_unknown_names_are_named() -> None:
    with pytest.raises(KeyError, match="no_such_op"):
        get_op("no_such_op")


def test_both_names_of_a_renamed_function_are_one_op() -> None:
    for alias, name in {
        "arctan2": "atan2",
        "power": "pow",
        "mod": "remainder",
        "left_shift": "bitwise_left_shift",
    }.items():
        assert get_op(alias) is get_op(name)
        assert getattr(weft, alias) is getattr(weft, name)
        assert alias not in list_ops()


def test_failure_of_an_op_names_it() -> None:
    @register_op("test_fails", infer=like_first)
    def fails(_out: np.ndarray, _x: np.ndarray) -> None:
        raise ArithmeticError("on purpose")

    result = fails(weft.asarray([1])) + 1
    with pytest.raises(ArithmeticError, match="on purpose") as caught:
        result.wait_to_read()
    assert "test_fails" in "".join(caught.value.__notes__)


def test_rules() -> None:
    assert weft.ops.broadcast_shapes((3, 1), (1, 4), ()) == (3, 4)
    with pytest.raises(ValueError, match=r"\(2,\) \(3,\)"):
        weft.ops.broadcast_shapes((2,), (3,))
    assert weft.ops.broadcast_shapes() == ()
    assert weft.ops.broadcast_shapes((1,), (0,)) == (0,)
    assert weft.ops.broadcast_same_dtype(Aval((2, 1), F4), Aval((3,), I8)) == Aval((2, 3), F8)
    assert weft.ops.result_dtype(Aval((), F4), Aval((), F8, weak=True)) == F4
    assert weft.ops.broadcast_of_ufunc(np.less)(Aval((2,), I8), Aval((), F8)) == Aval((2,), B1)
    with pytest.raises(TypeError, match=r"longdouble|float128"):
        weft.ops.as_dtype("longdouble")


def test_operators_run_what_was_registered_after_their_loops(script: RunScript) -> None:
    done = script(REPLACED.format(device="cpu", kind="cpu"))
    assert done.returncode == 0, done.stderr


def test_a_compute_for_one_kind_of_device_leaves_the_others_alone(script: RunScript) -> None:
    done = script(
        """
        import weft

        x = weft.asarray([1.0, 2.0])
        called = []
        for kind in ("cuda", "other"):
            weft.ops.get_op("add").set_attribute(f"compute:{kind}", lambda *_: called.append(1))
            assert (x + x).tolist() == weft.add(x, x).tolist() == [2.0, 4.0]
        assert not called
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_registered_compute_comes_before_the_faster_way_known_then(script: RunScript) -> None:
    done = script(
        """
        import numpy as np, weft

        x = weft.asarray([[1.0, 2.0], [3.0, 4.0]])
        matmul = weft.ops.get_op("matmul")
        assert (x @ x).tolist() == [[7.0, 10.0], [15.0, 22.0]]
        matmul.set_attribute("compute:cpu", lambda out, a, b: np.copyto(out, 0.5))
        assert (x @ x).tolist() == [[0.5, 0.5], [0.5, 0.5]]
        pushed = []
        matmul.set_attribute("push", lambda *_: pushed.append(1))  # answers that it has not
        assert (x @ x).tolist() == [[0.5, 0.5], [0.5, 0.5]]
        assert pushed
        """
    )
    assert done.returncode == 0, done.stderr


def test_another_op_of_an_operators_name_is_not_the_operators(script: RunScript) -> None:
    done = script(
        """
        import numpy as np, weft

        @weft.register_op("add", ufunc=np.subtract, level=20)
        def other(out, a, b):
            np.subtract(a, b, out=out)

        x = weft.asarray([1.0, 2.0])
        assert weft.ops.get_op("add") is other
        assert other(x, x).tolist() == [0.0, 0.0]
        assert (x + x).tolist() == [2.0, 4.0]
        other.set_attribute("compute:cpu", lambda out, *_: np.copyto(out, 9))
        assert other(x, x).tolist() == [9.0, 9.0]
        assert (x + x).tolist() == [2.0, 4.0]
        """
    )
    assert done.returncode == 0, done.stderr
