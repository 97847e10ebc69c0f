"""Wrong shapes, dtypes, axes, devices and indices are refused at the call, in NumPy's classes; ops fail at the wait."""

from __future__ import annotations

import inspect
import operator
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, Gate
from weft import errors
from weft._core import push_compute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Case = tuple[str, type[Exception], "Callable[[Any], object]", tuple[str, ...]]
AxisError = np.exceptions.AxisError


def a() -> weft.NDArray:
    """Three rows of four."""
    return weft.ones((3, 4))


def i() -> weft.NDArray:
    """Three integers."""
    return weft.asarray([1, 2, 3])


#: What is wrong, the class, the call given shape (3, 4), and what the message must name.
SHAPES: list[Case] = [
    ("add", ValueError, lambda x: x + weft.ones((4, 3)), ("(3,4)", "(4,3)")),
    ("compare", ValueError, lambda x: x < weft.ones(3), ("(3,4)", "(3,)")),
    ("where", ValueError, lambda x: weft.where(x > 0, weft.ones((4, 3)), 0.0), ("(3,4)", "(4,3)")),
    ("clip", ValueError, lambda x: weft.clip(x, weft.ones(5), None), ("(3,4)", "(5,)")),
    ("in place", ValueError, lambda x: operator.iadd(x, weft.ones((2, 3, 4))), ("(3,4)", "(2,3,4)")),
    ("out", ValueError, lambda x: weft.add(x, x, out=weft.ones((4, 3))), ("(3,4)", "(4,3)")),
    ("matmul", ValueError, lambda x: x @ x, ("(3,4)",)),
    ("matmul with a scalar", ValueError, lambda x: weft.matmul(x, 1.0), ("(3,4)", "()")),
    ("vecdot", ValueError, lambda x: weft.vecdot(x, weft.ones((3, 5))), ("(3,4)", "(3,5)")),
    ("tensordot", ValueError, lambda x: weft.tensordot(x, x, axes=1), ("(3,4)",)),
    ("einsum", ValueError, lambda x: weft.einsum("ij,jk", x, x), ("(3,4)",)),
    ("reshape", ValueError, lambda x: weft.reshape(x, (5, 2)), ("(3,4)", "(5,2)")),
    ("reshape with an unknown", ValueError, lambda x: weft.reshape(x, (5, -1)), ("(3,4)", "(5,-1)")),
    ("reshape with two unknowns", ValueError, lambda x: weft.reshape(x, (-1, -1)), ()),
    ("broadcast_to", ValueError, lambda x: weft.broadcast_to(x, (3, 5)), ("(3,4)", "(3,5)")),
    ("concat", ValueError, lambda x: weft.concat([x, weft.ones((4, 3))]), ("(3,4)", "(4,3)")),
    ("concat of other dimensions", ValueError, lambda x: weft.concat([x, weft.ones(3)]), ("(3,4)", "(3,)")),
    ("concat of nothing", ValueError, lambda _: weft.concat([]), ()),
    ("stack", ValueError, lambda x: weft.stack([x, weft.ones((4, 3))]), ("(3,4)", "(4,3)")),
    ("squeeze", ValueError, lambda x: weft.squeeze(x, axis=0), ("(3,4)",)),
    ("permute_dims", ValueError, lambda x: weft.permute_dims(x, (0, 0)), ()),
    ("repeat", ValueError, lambda x: weft.repeat(x, weft.asarray([1, 2]), axis=0), ("(3,4)",)),
    ("split", ValueError, lambda x: weft.split(x, 5), ("(3,4)",)),
    ("assign", ValueError, lambda x: operator.setitem(x, 0, weft.ones(3)), ("(3,)", "(4,)")),
    ("assign NumPy's", ValueError, lambda x: operator.setitem(x, 0, np.ones(3)), ("(3,)", "(4,)")),
    ("copyto", ValueError, lambda x: x.copyto(weft.ones((4, 3))), ("(3,4)", "(4,3)")),
    ("copyfrom", ValueError, lambda x: x.copyfrom(np.ones((4, 3))), ("(4,3)", "(3,4)")),
    ("take_along_axis", ValueError, lambda x: weft.take_along_axis(x, i(), axis=0), ("(3,4)", "(3,)")),
    ("cumulative_sum", ValueError, weft.cumulative_sum, ("(3,4)",)),
    ("matrix_transpose", ValueError, lambda x: weft.matrix_transpose(x[0]), ("(4,)",)),
    ("meshgrid", ValueError, lambda x: weft.meshgrid(x, x), ("(3,4)",)),
    ("searchsorted", ValueError, lambda x: weft.searchsorted(x, x), ("(3,4)",)),
    ("maximum of nothing", ValueError, lambda x: weft.max(x[:0], axis=0), ("(0,4)",)),
    ("argmin of nothing", ValueError, lambda x: weft.argmin(x[:0]), ("(0,4)",)),
    ("bool", ValueError, bool, ("(3,4)",)),
    ("item", ValueError, lambda x: x.item(), ("(3,4)",)),
    ("int", TypeError, int, ("(3,4)",)),
    ("len", TypeError, lambda _: len(weft.ones(())), ()),
    ("iter", TypeError, lambda _: iter(weft.ones(())), ()),
    ("zeros", ValueError, lambda _: weft.zeros((2, -3)), ("(2,-3)",)),
    ("eye", ValueError, lambda _: weft.eye(-1), ("-1",)),
    ("linspace", ValueError, lambda _: weft.linspace(0, 1, -3), ("-3",)),
    ("ragged", ValueError, lambda _: weft.asarray([[1], [1, 2]]), ("inhomogeneous",)),
    ("inv", ValueError, weft.linalg.inv, ("(3,4)",)),
    ("solve", ValueError, lambda _: weft.linalg.solve(weft.eye(3), weft.ones(4)), ("(3,3)", "(4,)")),
    ("fft", ValueError, lambda x: weft.fft.fft(x, n=0), ("(3,4)",)),
    ("draws", ValueError, lambda _: weft.random.default_rng(1).normal(size=(2, -1)), ("-1",)),
]
DTYPES: list[Case] = [
    ("strings", TypeError, lambda _: weft.asarray(["x"]), ("<U1",)),
    ("objects", TypeError, lambda _: weft.asarray([object()]), ("object",)),
    ("another byte order", TypeError, lambda _: weft.zeros(3, dtype=">f8"), (">f8",)),
    ("dates", TypeError, lambda _: weft.asarray(np.zeros(2, "M8[s]")), ("datetime64[s]",)),
    ("records", TypeError, lambda _: weft.asarray(np.zeros(2, [("x", "f8")])), ("x",)),
    ("longdouble", TypeError, lambda x: weft.astype(x, np.longdouble), ("float128",)),
    ("not a dtype", TypeError, lambda x: weft.astype(x, "nonsense"), ("nonsense",)),
    ("in place", TypeError, lambda _: operator.iadd(i(), 0.5), ("float64", "int64")),
    ("out", TypeError, lambda x: weft.add(x, x, out=weft.ones((3, 4), dtype=weft.int32)), ("float64", "int32")),
    ("out of another class", TypeError, lambda x: weft.add(x, x, out=np.ones((3, 4))), ("ndarray",)),
    ("and of floats", TypeError, lambda x: x & x, ("float64",)),
    ("not of floats", TypeError, operator.invert, ("float64",)),
    ("minus of booleans", TypeError, lambda x: -(x > 0), ("bool",)),
    ("difference of booleans", TypeError, lambda x: (x > 0) - (x > 0), ("bool",)),
    ("a string", TypeError, lambda x: x + "x", ("str",)),
    ("order of a string", TypeError, lambda x: x < "x", ("str",)),
    ("too large a scalar", OverflowError, lambda _: weft.zeros(2, dtype=weft.uint8) + 300, ("300", "uint8")),
    ("too small a scalar", OverflowError, lambda _: weft.zeros(2, dtype=weft.uint8) - -1, ("-1", "uint8")),
    ("float", TypeError, lambda _: float(weft.asarray(1j)), ("complex",)),
    ("index", TypeError, lambda _: operator.index(weft.asarray(1.0)), ()),
    ("finfo", ValueError, lambda _: weft.finfo(weft.int8), ("int8",)),
    ("iinfo", ValueError, lambda _: weft.iinfo(weft.float32), ("float32",)),
    ("isdtype", ValueError, lambda _: weft.isdtype(weft.int8, "x"), ("x",)),
    ("no copy", ValueError, lambda x: weft.asarray(x, dtype=weft.int32, copy=False), ("float64", "int32")),
    ("a constructor", TypeError, lambda _: weft.NDArray(), ("NDArray",)),
]
AXES: list[Case] = [
    (name, AxisError, lambda x, name=name: getattr(weft, name)(x, axis=2), ("2", "dimension 2"))
    for name in ("sum", "mean", "max", "argmax", "any", "sort", "flip", "unstack", "diff", "count_nonzero", "std")
] + [
    ("negative", AxisError, lambda x: weft.sum(x, axis=-3), ("-3", "dimension 2")),
    ("one of some", AxisError, lambda x: weft.sum(x, axis=(0, 5)), ("5", "dimension 2")),
    ("twice", ValueError, lambda x: weft.sum(x, axis=(0, 0)), ()),
    ("twice, one negative", ValueError, lambda x: weft.sum(x, axis=(0, -2)), ()),
    ("a float", TypeError, lambda x: weft.sum(x, axis=1.5), ("float",)),
    ("roll", AxisError, lambda x: weft.roll(x, 1, axis=4), ("4", "dimension 2")),
    ("take", AxisError, lambda x: weft.take(x, i(), axis=4), ("4", "dimension 2")),
    ("expand_dims", AxisError, lambda x: weft.expand_dims(x, axis=5), ("5",)),
    ("moveaxis", AxisError, lambda x: weft.moveaxis(x, 5, 0), ("5",)),
    ("permute_dims", AxisError, lambda x: weft.permute_dims(x, (0, 2)), ("2",)),
    ("concat", AxisError, lambda x: weft.concat([x, x], axis=2), ("2", "dimension 2")),
    ("stack", AxisError, lambda x: weft.stack([x, x], axis=4), ("4",)),
    ("fft", AxisError, lambda x: weft.fft.fft(x, axis=3), ("3", "dimension 2")),
]
INDICES: list[Case] = [
    ("beyond the end", IndexError, lambda x: x[3], ("3", "axis 0", "size 3")),
    ("before the start", IndexError, lambda x: x[0, -5], ("-5", "axis 1", "size 4")),
    ("to assign beyond the end", IndexError, lambda x: operator.setitem(x, 3, 1.0), ("3", "axis 0", "size 3")),
    ("too many", IndexError, lambda x: x[0, 0, 0], ("3", "2-dimensional")),
    ("too many to assign", IndexError, lambda x: operator.setitem(x, (0, 0, 0), 1.0), ("3", "2-dimensional")),
    ("a float", IndexError, lambda x: x[1.0], ()),
    ("a string", IndexError, lambda x: x["x"], ("str",)),
    ("floats", IndexError, lambda x: x[weft.asarray([1.0])], ("float64",)),
    ("two ellipses", IndexError, lambda x: x[..., ...], ("ellipsis",)),
    ("a slice of floats", TypeError, lambda x: x[1.0:], ()),
    ("a step of zero", ValueError, lambda x: x[::0], ("zero",)),
    ("a mask of another shape", IndexError, lambda x: x[weft.asarray([True, False])], ("3", "2")),
    ("a mask to assign", IndexError, lambda x: operator.setitem(x, weft.asarray([True] * 4), 1.0), ("3", "4")),
    ("indices that do not broadcast", IndexError, lambda x: x[weft.asarray([0, 1]), i()], ("(2,)", "(3,)")),
    ("to delete", ValueError, lambda x: operator.delitem(x, 0), ()),
]
DEVICES: list[Case] = [
    ("creation", ValueError, lambda _: weft.zeros(3, device="gpu"), ("gpu", "cpu")),
    ("to_device", ValueError, lambda x: x.to_device("tpu:0"), ("tpu", "cuda")),
    ("asarray", ValueError, lambda _: weft.asarray([1], device="tpu"), ("tpu", "cpu")),
    ("not a device", TypeError, lambda x: x.to_device(3), ("int",)),
]
CASES = [
    pytest.param(*case[1:], id=f"{kind}: {case[0]}")
    for kind, cases in (("shape", SHAPES), ("dtype", DTYPES), ("axis", AXES), ("index", INDICES), ("device", DEVICES))
    for case in cases
]


@pytest.fixture(autouse=True, params=["work_stealing", "serial"])
def policy(request: pytest.FixtureRequest, make_engine: Callable[..., weft.Engine]) -> Iterator[str]:
    """The default engine's."""
    previous = weft.get_engine()
    weft.set_engine(make_engine(1, request.param))
    yield request.param
    weft.set_engine(previous)


#: What Python's own protocols say, and of its integers NumPy: an OverflowError.
_PYTHONS = (
    "unsupported operand",
    "not supported between",
    "unsized object",
    "0-d array",
    "scalar index",
    "real number,not",
    "out of bounds for uint8",
)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: x + weft.ones(5), "^add: operands could not be broadcast"),
        (lambda x: weft.where(x > 0, x, weft.ones(5)), "^where: operands could not be broadcast"),
        (lambda x: weft.matmul(x, x), "^matmul of shapes"),
    ],
)
def test_a_refusal_names_its_op(call: Callable[[Any], object], said: str) -> None:
    with pytest.raises(weft.errors.ArgumentValueError, match=said):
        call(a())


def test_an_axis_that_is_not_there_is_numpys_error_too() -> None:
    with pytest.raises(weft.errors.AxisError, match="axis 5 is out of bounds for array of dimension 2") as caught:
        weft.moveaxis(a(), 5, 0)
    assert isinstance(caught.value, np.exceptions.AxisError)
    assert isinstance(caught.value, IndexError)
    assert (caught.value.axis, caught.value.ndim) == (5, 2)


@pytest.mark.parametrize(("error", "call", "words"), CASES)
def test_what_is_wrong_is_refused_at_the_call(
    error: type[Exception], call: Callable[[Any], object], words: tuple[str, ...]
) -> None:
    x = a()
    version = x.version
    with pytest.raises(error) as caught:
        call(x)
    message = str(caught.value).replace(", ", ",")
    assert all(word in message for word in words), message
    own = isinstance(caught.value, weft.errors.WeftError)
    assert own or any(word in message for word in _PYTHONS), f"{type(caught.value)} is no class of weft.errors"
    assert x.version == version, "a refused call pushes nothing"
    assert np.array_equal(x.numpy(), np.ones((3, 4)))
    weft.wait_all(timeout=SOON)


@pytest.mark.parametrize("policy", ["work_stealing"], indirect=True)
def test_it_is_refused_though_no_worker_is_free(policy: str, gate: Gate) -> None:  # noqa: ARG001 - the default engine's
    gate.hold(weft.get_engine())
    x = a()
    for call in (lambda: x + weft.ones((4, 3)), lambda: weft.sum(x, axis=2), lambda: x[3], lambda: x @ x):
        with pytest.raises((ValueError, IndexError)):
            call()


def test_arrays_of_two_engines_do_not_mix(make_engine: Callable[..., weft.Engine]) -> None:
    x, mine = a(), weft.get_engine()
    weft.set_engine(make_engine(1))
    y = a()
    for call in (
        lambda: x + y,
        lambda: operator.iadd(x, y),
        lambda: weft.concat([x, y]),
        lambda: weft.add(x, x, out=y),
        lambda: operator.setitem(y, 0, x[0]),
    ):
        with pytest.raises(errors.WrongEngineError):
            call()
    weft.set_engine(mine)
    assert (x.version, y.version) == (a().version, 1)


def test_arrays_of_a_closed_engine(make_engine: Callable[..., weft.Engine]) -> None:
    engine, previous = make_engine(1), weft.get_engine()
    weft.set_engine(engine)
    x = a()
    x.wait_to_read(SOON)
    weft.set_engine(previous)
    engine.close()
    with pytest.raises(errors.EngineClosedError):
        x + x
    assert x.numpy().sum() == 12


@pytest.mark.parametrize("view", ["whole", "slice", "reshaped"])
def test_memory_that_is_read_only_is_not_written(view: str) -> None:
    memory = np.arange(6.0)
    memory.flags.writeable = False
    x = weft.asarray(memory, copy=False)
    assert x.readonly
    target = {"whole": x, "slice": x[1:3], "reshaped": weft.reshape(x, (2, 3))}[view]
    for call in (
        lambda: operator.iadd(target, 1.0),
        lambda: operator.setitem(target, ..., 1.0),
        lambda: weft.add(target, target, out=target),
        lambda: target.copyfrom(np.zeros(target.shape)),
    ):
        with pytest.raises(ValueError, match="read-only"):
            call()
    assert x.numpy().tolist() == list(range(6))


def test_a_broadcast_view_is_not_written() -> None:
    """One element stands in several places: what would a write mean."""
    x = weft.zeros(4)
    view = weft.broadcast_to(x, (3, 4))
    for call in (lambda: operator.iadd(view, 1.0), lambda: operator.setitem(view, 0, 1.0)):
        with pytest.raises(ValueError, match=r"broadcast view"):
            call()
    assert x.numpy().tolist() == [0.0] * 4


def test_exports_are_not_written() -> None:
    x = a()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 5.0
    assert x.numpy().flags.writeable


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_a_wrong_timeout_is_refused(timeout: Any, gate: Gate) -> None:
    x = a()
    if weft.get_engine().policy != "serial":
        gate.hold(weft.get_engine())
    x = x + 1.0
    for wait in (x.wait_to_read, x.wait_to_write, weft.wait_all):
        with pytest.raises((ValueError, TypeError)):
            wait(timeout=timeout)


HERE = __file__


def line_of(function: Callable[..., object], text: str) -> int:
    """The line of `function` that has `text` at its end."""
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if line.rstrip().endswith(text))


def test_a_failed_op_says_where_it_was_pushed() -> None:
    def fail(_: Any, x: Any) -> None:
        message = f"bad values of shape {x.shape}"
        raise ArithmeticError(message)

    x, y = a(), weft.empty((3, 4))
    push_compute(fail, (y,), (x,), name="fail")  # pushed
    z = weft.sum(y * 2.0)
    for wait in (lambda: z.wait_to_read(SOON), y.numpy, z.item, lambda: float(z), lambda: np.asarray(y)):
        with pytest.raises(ArithmeticError, match=r"bad values of shape \(3, 4\)") as caught:
            wait()
    line = line_of(test_a_failed_op_says_where_it_was_pushed, "# pushed")
    notes = [note for note in caught.value.__notes__ if "fail" in note]
    assert len(notes) == 1, "one note, however often it is raised"
    assert f"{HERE}:{line}" in notes[0]
    assert "fail" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (IndexError, lambda: weft.take(a(), weft.asarray([9]), axis=0)),  # take
        (np.linalg.LinAlgError, lambda: weft.linalg.inv(weft.zeros((2, 2)))),  # inv
        (np.linalg.LinAlgError, lambda: weft.linalg.cholesky(-weft.eye(2))),  # cholesky
        (ValueError, lambda: i() ** weft.asarray([-1, -2, -3])),  # pow
    ],
    ids=["take", "inv", "cholesky", "pow"],
)
def test_what_only_the_values_tell_comes_out_at_the_wait(error: type[Exception], make: Callable[[], Any]) -> None:
    result = make()
    with pytest.raises(error) as caught:
        result.wait_to_read(SOON)
    assert any(f"{HERE}:" in note for note in caught.value.__notes__), "the user's line, not one inside weft"


def test_other_arrays_are_not_touched_by_a_failure() -> None:
    x, y = a(), weft.zeros((2, 2))
    inverse = weft.linalg.inv(y)
    total = weft.sum(x)
    assert float(total) == 12.0
    with pytest.raises(np.linalg.LinAlgError):
        inverse.numpy()
    assert y.numpy().tolist() == [[0, 0], [0, 0]]
    weft.wait_all(timeout=SOON)  # it was reported


def test_wait_all_raises_what_nobody_asked_for() -> None:
    first, second = weft.linalg.inv(weft.zeros((2, 2))), weft.take(a(), weft.asarray([9]), axis=0)
    with pytest.raises(ExceptionGroup) as caught:
        weft.wait_all(timeout=SOON)
    assert {type(error) for error in caught.value.exceptions} == {
        weft.errors.LinAlgError,
        weft.errors.ArgumentIndexError,
    }
    assert first.exception() is not None
    assert second.exception() is not None


def test_memory_that_cannot_be_had_is_an_error_of_the_op() -> None:
    huge = weft.empty((1 << 40, 1 << 10), dtype=weft.float64)  # 8 PiB, not touched
    filled = huge + 1.0
    with pytest.raises(MemoryError):
        filled.wait_to_read(SOON)


def test_more_bytes_than_an_address_can_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r"too (big|large)"):
        weft.empty((1 << 40, 1 << 40))


@pytest.mark.parametrize("text", ["a", b"a", bytearray(b"a")])
def test_text_times_an_array_is_no_repetition(text: Any) -> None:
    x: Any = weft.ones(3)
    for multiply in (lambda: x * text, lambda: text * x, lambda: weft.ones(()) * text):
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*: .*'NDArray'"):
            multiply()
    assert weft.asarray(2) * text == text * 2  # it is an index
