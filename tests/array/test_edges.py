"""Edges of functions: nothing of nothing, numbers at the ends, dtypes that are NumPy's, and errors that are weft's."""

from __future__ import annotations

import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from against import agree, sample

import weft
import weft.mxnet
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Calls of which NumPy's result is the right one.
LIKE_NUMPY: dict[str, Callable[[Any], Any]] = {
    "nanpercentile of integers": lambda xp: xp.nanpercentile(xp.asarray([3, 1, 2]), 50, method="lower"),
    "nanquantile of integers": lambda xp: xp.nanquantile(xp.asarray([[3, 1], [2, 5]]), 0.5, axis=0, method="higher"),
    "insert at places of the last axis": lambda xp: xp.insert(xp.zeros((2, 3)), [0, 1], [1, 2], axis=-1),
    "insert nothing": lambda xp: xp.insert(xp.zeros(3), [], 1.0),
    "delete nothing": lambda xp: xp.delete(xp.zeros((2, 3)), []),
    "repeat a number along an axis": lambda xp: xp.repeat(xp.asarray(5), 2, axis=0),
    "partition nothing": lambda xp: xp.partition(xp.zeros(0), 0),
    "argpartition nothing": lambda xp: xp.argpartition(xp.zeros((0, 3)), 5, axis=0),
    "lexsort numbers": lambda xp: xp.lexsort((xp.asarray(5), xp.asarray(3))),
    "complex geomspace": lambda xp: xp.geomspace(2, -8, 4, dtype=complex),
    "condition of nothing but zeros": lambda xp: xp.linalg.cond(xp.zeros((2, 1, 1))),
    "select of float16 and bool": lambda xp: xp.select(
        [xp.asarray([True])] * 2, [xp.ones(1, dtype="float16"), True], 3
    ),
    "select of numbers": lambda xp: xp.select([xp.asarray([True, False])], [1], 2.5),
    "mask of length 0": lambda xp: xp.ones((3, 4))[np.zeros(0, dtype=bool)],
    "mask of length 0 beside an integer": lambda xp: xp.ones((3, 4))[:, np.zeros(0, dtype=bool)],
    "differences of more than there are": lambda xp: xp.diff(xp.arange(4), n=70),
}


@pytest.mark.parametrize("name", LIKE_NUMPY)
def test_edges_are_numpys(name: str) -> None:
    call = LIKE_NUMPY[name]
    agree(call(weft), call(np))
    step = weft.program(lambda: call(weft))
    for _ in range(3):
        agree(step(), call(np))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("deg", [False, True])
def test_angles_have_numpys_dtype(dtype: str, deg: bool) -> None:
    x = sample(dtype, (5,))
    agree(weft.angle(weft.asarray(x), deg=deg), np.angle(x, deg=deg))


@pytest.mark.parametrize("transform", ["irfft", "hfft", "fft", "rfft", "ifft", "ihfft"])
def test_transforms_of_nothing_are_zeros(transform: str) -> None:
    found = getattr(weft.fft, transform)(weft.zeros((2, 0)), 7).numpy()
    assert found.size
    assert not found.any()


def test_odd_objects_are_in_no_array() -> None:
    x = weft.ones(3)
    assert 1.0 in x
    assert 2 not in x
    for odd in (object(), NotImplemented, "1", None):
        assert odd not in x


def test_an_index_without_axes() -> None:
    assert weft.unravel_index(0, ()) == ()
    with pytest.raises(errors.ArgumentValueError, match="out of bounds"):
        weft.unravel_index(5, ())


KEYS: list[tuple[tuple[int, ...], tuple[Any, ...]]] = [
    ((2, 3, 4, 5), (slice(None), [0, 1, 2], ..., [0, 1, 2], slice(None))),
    ((2, 1, 3), (slice(None), -1, ..., [-1, -2])),
    ((2, 3), ([0, 1], ..., 1)),
    ((2, 3), (..., [0, 1], [1, 2])),
    ((2, 3), ([0, 1], [1, 2], ...)),
    ((2, 3, 2), (slice(None), np.array([True, False, True]), ..., 0)),
]


@pytest.mark.parametrize(("shape", "key"), KEYS)
def test_an_ellipsis_that_covers_no_axes_separates(shape: tuple[int, ...], key: tuple[Any, ...]) -> None:
    host = np.arange(np.prod(shape)).reshape(shape)
    for native in (False, True):
        ours = tuple(weft.asarray(each) if native and isinstance(each, list) else each for each in key)
        x = weft.asarray(host)
        agree(x[ours], host[key])
        x[ours] = 100 + np.arange(host[key].size).reshape(host[key].shape)
        want = host.copy()
        want[key] = 100 + np.arange(host[key].size).reshape(host[key].shape)
        agree(x, want)
    rows = weft.program(lambda x: x[key])
    agree(rows(weft.asarray(host)), host[key])
    if not any(isinstance(each, np.ndarray) for each in key):
        agree(weft.symbol.Variable("x")[key].eval(x=weft.asarray(host))[0], host[key])


def test_gradients_of_keys_with_an_empty_ellipsis() -> None:
    x, key = weft.asarray(np.arange(6.0).reshape(2, 1, 3)), (slice(None), -1, ..., [-1, -2])
    found = weft.autograd.grad(lambda x: (x[key] * weft.asarray([[1.0, 2.0], [3.0, 4.0]])).sum())(x)
    assert found.tolist() == [[[0.0, 3.0, 1.0]], [[0.0, 4.0, 2.0]]]


@pytest.mark.parametrize(("dtype", "to"), [("float64", "uint64"), ("complex128", "float64"), ("int64", "uint8")])
def test_joins_cast_by_same_kind(dtype: str, to: str) -> None:
    x = weft.asarray(sample(dtype, (3,)))
    for join in (weft.concat, weft.stack, weft.hstack, weft.vstack):
        with pytest.raises(errors.ArgumentTypeError, match="same_kind"):
            join([x], dtype=to)
    agree(weft.concat([weft.ones(2)], dtype="float32"), np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("x", "other"),
    [
        ("int32", np.int64(3)),
        ("uint8", np.float32(1)),
        ("float16", np.uint16(1)),
        ("float32", np.float64(2)),
        ("int8", 2),
    ],
)
def test_numpys_scalars_keep_their_dtype_beside_symbols(x: str, other: Any) -> None:
    array, name = weft.asarray(sample(x, (3,))), weft.symbol.Variable("x")
    for symbol in (weft.add(name, other), name * other, weft.fmin(name, other)):
        read = weft.symbol.load_json(symbol.tojson())
        wanted = array.dtype if type(other) is int else np.result_type(array.dtype, other.dtype)
        assert symbol.eval(x=array)[0].dtype == read.eval(x=array)[0].dtype == wanted


def test_symbols_like_others() -> None:
    name = weft.symbol.Variable("x")
    for dtype in ("bool", "int32", "float32"):
        array = weft.zeros(3, dtype=dtype)
        for value in (1, 0, True, np.float64(1)):
            agree(weft.full_like(name, value).eval(x=array)[0], np.full_like(array.numpy(), value))
        agree(weft.full_like(name, 1.5, dtype="float64").eval(x=array)[0], np.full(3, 1.5))
    with pytest.raises(errors.GraphError, match="number of axes"):
        weft.ndim(name)


@pytest.mark.parametrize("seed", range(3))
def test_outer_of_one_element_has_the_same_bits_in_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    step, product = weft.program(weft.outer), weft.program(lambda a, b: a.reshape(1, 1) * b)
    for _ in range(50):
        a, b = (rng.standard_normal(1) + 1j * rng.standard_normal(1) for _ in range(2))
        x, y = weft.asarray(a), weft.asarray(b)
        assert weft.outer(x, y).tobytes() == step(x, y).tobytes() == np.outer(a, b).tobytes()
        assert (x.reshape(1, 1) * y).tobytes() == product(x, y).tobytes() == (a.reshape(1, 1) * b).tobytes()


#: Calls that are refused, at once or at the wait, with the built-in class that NumPy raises.
REFUSED: dict[str, tuple[type[errors.WeftError], type[Exception], Callable[[], Any]]] = {
    "axis": (errors.ArgumentOverflowError, OverflowError, lambda: weft.sum(weft.ones(3), axis=2**40)),
    "integer": (errors.ArgumentOverflowError, OverflowError, lambda: weft.ones(3, dtype="uint8") + 300),
    "choice": (
        *(errors.ArgumentOverflowError, OverflowError),
        lambda: weft.where([True, False], weft.ones(2, dtype="int8"), 2**64),
    ),
    "step": (errors.ArgumentDivisionError, ZeroDivisionError, lambda: weft.arange(1, 0, 0)),
    "memory": (errors.OutOfMemoryError, MemoryError, lambda: weft.arange(2**59).wait_to_read()),
    "bins": (errors.ArgumentValueError, ValueError, lambda: weft.histogram([1], bins=-1)),
    "zero": (errors.ArgumentValueError, ValueError, lambda: weft.geomspace(0, 1)),
    "order": (errors.ArgumentValueError, ValueError, lambda: weft.digitize([1], [1, 3, 2]).numpy()),
    "singular": (errors.LinAlgError, np.linalg.LinAlgError, lambda: weft.linalg.inv(weft.zeros((2, 2))).numpy()),
    "half": (errors.ArgumentTypeError, TypeError, lambda: weft.linalg.inv(weft.ones((2, 2), dtype="float16")).numpy()),
    "position": (errors.ArgumentIndexError, IndexError, lambda: weft.ones(3)[weft.asarray([5])].wait_to_read(9)),
    "text": (
        *(errors.ArgumentTypeError, TypeError),
        lambda: weft.asarray(np.array(["a"], dtype=np.dtypes.StringDType())),
    ),
    "dlpack": (errors.ArgumentTypeError, TypeError, lambda: weft.from_dlpack(3)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_an_error_of_weft(name: str) -> None:
    ours, theirs, call = REFUSED[name]
    with pytest.raises(ours) as caught:
        call()
    assert isinstance(caught.value, theirs)


def test_the_original_error_is_the_cause() -> None:
    with pytest.raises(errors.LinAlgError, match="Singular") as caught:
        weft.linalg.inv(weft.zeros((2, 2))).numpy()
    assert type(caught.value.__cause__) is np.linalg.LinAlgError
    assert any("linalg.inv" in note for note in caught.value.__notes__)


def test_what_a_users_code_raises_is_its_own() -> None:
    class Odd:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise ValueError("mine")

    def fail(_: np.ndarray) -> float:
        raise IndexError("mine")

    for call in (lambda: weft.asarray(Odd()), lambda: weft.apply_along_axis(fail, 0, weft.ones(3))):
        with pytest.raises((ValueError, IndexError), match="mine") as caught:
            call()
        assert not isinstance(caught.value, errors.WeftError)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["repeat(weft.arange(12), 2**62)", "tile(weft.ones((12, 1)), 2**62)", "bincount([2**63 - 1])"]
)
def test_what_numpy_would_not_survive_is_refused(call: str) -> None:
    script = f"import weft\ntry:\n    weft.{call}.numpy()\nexcept weft.errors.WeftError:\n    print('refused')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("refused\n", 0), done.stderr


def test_parameters_of_shapes_that_no_array_has(tmp_path: Path) -> None:
    path = tmp_path / "x.params"
    lengths = struct.pack("<3q", 0, 2**62, 2**62)
    array = struct.pack("<Iii", 0xF993FAC9, 0, 3) + lengths + struct.pack("<iii", 1, 0, 0)
    path.write_bytes(struct.pack("<QQQ", 0x112, 0, 1) + array + struct.pack("<Q", 0))
    with pytest.raises(errors.CheckpointError, match="shape"):
        weft.mxnet.load_params(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    empty = tmp_path / "x.safetensors"
    empty.touch()
    for path in (empty, tmp_path):
        with pytest.raises(errors.WeftError):
            weft.load(path)
