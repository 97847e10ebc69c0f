"""NumPy's functions and ufuncs on NDArrays do what they do on NumPy's arrays, and give NDArrays."""

from __future__ import annotations

import copy
import inspect
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON
from weft._numpy.arguments import adapt
from weft._numpy.names import signature_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


X = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]])
Y = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
I = np.array([[3, 1, 2], [0, 4, 1]])  # noqa: E741 - an array of integers
B = np.array([True, False, True])
SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.fixture
def held() -> Iterator[tuple[weft.NDArray, threading.Event]]:
    """Give an array whose op stands until the event is set."""
    event = threading.Event()
    with weft.Engine(workers=2) as engine:
        x = weft.random.default_rng(1, engine=engine).random(3)
        x.wait_to_read()

        def hold(_: Any) -> None:
            assert event.wait(SOON)

        weft._core.push_compute(hold, (), (), (x,), name="hold")
        yield x, event
        event.set()


def flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [each for part in value for each in flat(part)]
    return [value]


def same(ours: Any, theirs: Any) -> None:
    """The same values, as NDArrays."""
    assert isinstance(ours, tuple | list) == isinstance(theirs, tuple | list)
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, np.ndarray | np.generic):
            assert type(one) is weft.NDArray
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12, atol=1e-12)
        elif isinstance(one, weft.NDArray):
            assert one.shape == ()
            assert np.asarray(one) == other
        else:
            assert type(one) is type(other)
            assert one == other


def wrapped(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return weft.asarray(value)
    if type(value) in {list, tuple}:
        return type(value)(map(wrapped, value))
    return {key: wrapped(each) for key, each in value.items()} if isinstance(value, dict) else value


# ufuncs


@pytest.mark.parametrize("name", sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)))
def test_each_ufunc(name: str) -> None:
    ufunc = getattr(np, name)
    for pair in ((X, Y), (I, I + 1), (B, B), (SQUARE, SQUARE), (X + 0j, Y + 1j)):
        args = pair[: ufunc.nin]
        with np.errstate(all="ignore"):
            try:
                expected = ufunc(*args)
            except (TypeError, ValueError) as error:
                with pytest.raises(TypeError if isinstance(error, TypeError) else ValueError):
                    ufunc(*map(weft.asarray, args))
                continue
        if any(part.dtype not in weft_dtypes() for part in flat(expected)):
            continue
        same(ufunc(*map(weft.asarray, args)), expected)


def weft_dtypes() -> set[np.dtype[Any]]:
    return {np.dtype(code) for code in "?bhilBHILfdFD"}


def test_mixed_operands() -> None:
    x = weft.asarray(X)
    same(np.add(x, Y), X + Y)
    same(np.add(Y, x), X + Y)
    same(Y - x, Y - X)
    same(np.multiply(x, 2), X * 2)
    same(np.multiply(x, [1, 2, 3]), X * [1, 2, 3])
    same(np.float32(2) * x, np.float32(2) * X)
    same(np.divmod(x, 2.0), np.divmod(X, 2.0))
    host = Y.copy()
    host += x
    assert type(host) is np.ndarray
    np.testing.assert_array_equal(host, X + Y)


def test_ufuncs_do_not_wait(held: tuple[weft.NDArray, threading.Event]) -> None:
    x, event = held
    made = [
        np.add(x, 1.0),
        np.add.reduce(x),
        np.multiply.accumulate(x),
        np.subtract.outer(x, x),
        np.sum(x, 0),
        np.flip(x),
        np.concatenate([x, x]),
        np.cbrt(x),
        copy.copy(x),
        copy.deepcopy(x),
    ]
    target = weft.random.default_rng(2, engine=x.engine).random(3)
    np.copyto(target, x)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 0)) == ((3,), 1, 3, 3)
    assert not any(each.is_ready() for each in made)
    event.set()
    same(target, np.asarray(x))


def test_out_and_where() -> None:
    x, out = weft.asarray(X), weft.zeros((2, 3))
    assert np.add(x, Y, out=out) is out
    same(out, X + Y)
    assert np.add(X, Y, out=out, where=weft.asarray(B)) is out
    same(out, X + Y)
    out = weft.zeros((2, 3))
    np.multiply(x, 2.0, out=out, where=B)
    same(out, np.where(B, X * 2.0, 0.0))
    host = np.zeros((2, 3))
    assert np.add(x, Y, out=host) is host
    np.testing.assert_array_equal(host, X + Y)
    whole, part = weft.zeros((2, 3)), weft.zeros((2, 3))
    made = np.modf(x, out=(part, whole))
    assert made[0] is part
    assert made[1] is whole
    same((part, whole), np.modf(X))
    with pytest.raises(ValueError, match="broadcast"):
        np.add(x, Y, out=weft.zeros(3))
    with pytest.raises(TypeError, match="cast"):
        np.add(x, Y, out=weft.zeros((2, 3), dtype="int64"))
    same(np.add(x, Y, dtype=np.float32), np.add(X, Y, dtype=np.float32))
    same(np.add(x, Y, casting="unsafe", dtype=np.int64), np.add(X, Y, casting="unsafe", dtype=np.int64))
    same(np.sqrt(x * x, order="F"), np.sqrt(X * X))


@pytest.mark.parametrize(
    "ufunc", [np.add, np.multiply, np.maximum, np.logical_and, np.logaddexp, np.bitwise_or, np.hypot]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"axis": 1},
        {"axis": -1},
        {"axis": None},
        {"axis": (0, 1)},
        {"keepdims": True},
        {"axis": 1, "keepdims": True},
    ],
)
def test_reduce(ufunc: np.ufunc, options: dict[str, Any]) -> None:
    host = I if ufunc is np.bitwise_or else np.abs(X)
    same_or_refused(ufunc.reduce, host, options)
    same_or_refused(ufunc.reduce, host[:, :0], options)
    same_or_refused(ufunc.reduce, host.astype(np.int8), options)


def same_or_refused(function: Callable[..., Any], host: np.ndarray[Any, Any], options: dict[str, Any]) -> None:
    try:
        expected = function(host, **options)
    except (ValueError, TypeError) as error:
        with pytest.raises(type(error)):
            function(weft.asarray(host), **options)
    else:
        if np.asarray(expected).dtype in weft_dtypes():
            same(function(weft.asarray(host), **options), expected)


def test_other_methods_of_ufuncs() -> None:
    x = weft.asarray(X)
    same(np.add.accumulate(x), np.add.accumulate(X))
    same(np.maximum.accumulate(x, axis=1), np.maximum.accumulate(X, axis=1))
    same(np.add.accumulate(weft.asarray(B)), np.add.accumulate(B))
    same(np.subtract.outer(x, weft.asarray(Y[0])), np.subtract.outer(X, Y[0]))
    same(np.subtract.outer(Y[0], x), np.subtract.outer(Y[0], X))
    same(np.add.reduceat(x, [0, 2], axis=1), np.add.reduceat(X, [0, 2], axis=1))
    same(np.add.reduce(x, initial=5.0), np.add.reduce(X, initial=5.0))
    same(np.add.reduce(x, axis=1, where=B), np.add.reduce(X, axis=1, where=B))
    same(np.add.reduce(x, 0, np.float32), np.add.reduce(X, 0, np.float32))
    out = weft.zeros(3)
    assert np.add.reduce(x, axis=0, out=out) is out
    same(out, X.sum(0))
    host = np.zeros(3)
    assert np.add.reduce(x, axis=0, out=host) is host
    y, expected = weft.asarray(X), X.copy()
    assert np.add.at(y, (weft.asarray([0, 0]), [1, 1]), 1.0) is None
    np.add.at(expected, ([0, 0], [1, 1]), 1.0)
    same(y, expected)
    with pytest.raises(np.exceptions.AxisError):
        np.add.reduce(x, axis=2)
    with pytest.raises(IndexError):
        np.add.at(y, 7, 1.0)
    same(y, expected)


def test_a_ufunc_that_is_no_op_is_pushed_and_one_of_objects_is_not(held: tuple[weft.NDArray, threading.Event]) -> None:
    x, event = held
    event.set()
    assert isinstance(np.spacing(x), weft.NDArray)
    assert np.frompyfunc(str, 1, 1)(weft.asarray([1, 2])).tolist() == ["1", "2"]


def test_others_may_take_over() -> None:
    class Other:
        def __array_ufunc__(self, *_: Any, **__: Any) -> str:
            return "other"

    assert np.add(weft.zeros(3), Other()) == "other"


# functions

CALLS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: np.sum(a["x"], 0),
    "sum axis dtype": lambda a: np.sum(a["x"], axis=1, dtype=np.float32, keepdims=True),
    "sum initial": lambda a: np.sum(a["x"], initial=2.0, where=a["b"]),
    "sum out": lambda a: np.sum(a["x"], 0, None, a["out"]),
    "mean": lambda a: np.mean(a["x"], 1),
    "std": lambda a: np.std(a["x"], 0),
    "std ddof": lambda a: np.std(a["x"], 0, ddof=1),
    "var": lambda a: np.var(a["x"], axis=1, ddof=1, keepdims=True),
    "max": lambda a: np.max(a["x"], 0),
    "amin": lambda a: np.amin(a["x"]),
    "prod": lambda a: np.prod(a["i"], 1),
    "any": lambda a: np.any(a["b"]),
    "all": lambda a: np.all(a["x"], axis=0),
    "ptp": lambda a: np.ptp(a["x"], 1),
    "median": lambda a: np.median(a["x"], axis=0),
    "percentile": lambda a: np.percentile(a["x"], 30),
    "average": lambda a: np.average(a["x"], 0, a["weights"]),
    "cumsum": lambda a: np.cumsum(a["x"], 1),
    "cumsum flat": lambda a: np.cumsum(a["x"]),
    "cumprod": lambda a: np.cumprod(a["x"], axis=0),
    "diff": lambda a: np.diff(a["x"]),
    "argmax": lambda a: np.argmax(a["x"], 1),
    "argmin flat": lambda a: np.argmin(a["x"]),
    "argsort": lambda a: np.argsort(a["x"], 0),
    "argsort flat": lambda a: np.argsort(a["x"], None),
    "sort": lambda a: np.sort(a["x"], axis=0),
    "sort flat": lambda a: np.sort(a["x"], axis=None),
    "partition": lambda a: np.partition(a["x"], 1),
    "searchsorted": lambda a: np.searchsorted(np.sort(a["x"][0]), a["y"][0], "right"),
    "nonzero": lambda a: np.nonzero(a["i"]),
    "flatnonzero": lambda a: np.flatnonzero(a["i"]),
    "count_nonzero": lambda a: np.count_nonzero(a["i"]),
    "where": lambda a: np.where(a["b"], a["x"], 0.0),
    "where alone": lambda a: np.where(a["b"]),
    "unique": lambda a: np.unique(a["i"]),
    "unique counts": lambda a: np.unique(a["i"], return_counts=True),
    "unique_all": lambda a: np.unique_all(a["i"]),
    "isin": lambda a: np.isin(a["i"], [1, 2]),
    "reshape": lambda a: np.reshape(a["x"], (3, 2)),
    "reshape F": lambda a: np.reshape(a["x"], (3, 2), "F"),
    "ravel": lambda a: np.ravel(a["x"]),
    "transpose": lambda a: np.transpose(a["x"]),
    "transpose axes": lambda a: np.transpose(a["x"], (1, 0)),
    "moveaxis": lambda a: np.moveaxis(a["x"], 0, -1),
    "swapaxes": lambda a: np.swapaxes(a["x"], 0, 1),
    "squeeze": lambda a: np.squeeze(a["x"][:1]),
    "expand_dims": lambda a: np.expand_dims(a["x"], 1),
    "flip": lambda a: np.flip(a["x"], 1),
    "fliplr": lambda a: np.fliplr(a["x"]),
    "roll": lambda a: np.roll(a["x"], 1),
    "roll axis": lambda a: np.roll(a["x"], (1, 2), (0, 1)),
    "rot90": lambda a: np.rot90(a["x"]),
    "repeat": lambda a: np.repeat(a["x"], 2, 1),
    "repeat flat": lambda a: np.repeat(a["x"], 2),
    "tile": lambda a: np.tile(a["x"], (2, 1)),
    "take": lambda a: np.take(a["x"], [0, 2], 1),
    "take flat": lambda a: np.take(a["x"], [0, 4]),
    "take_along_axis": lambda a: np.take_along_axis(a["x"], np.argsort(a["x"], 1), 1),
    "compress": lambda a: np.compress(a["b"], a["x"], 1),
    "delete": lambda a: np.delete(a["x"], 1, 1),
    "insert": lambda a: np.insert(a["x"], 1, 7.0, axis=1),
    "append": lambda a: np.append(a["x"], a["y"], 0),
    "concatenate": lambda a: np.concatenate([a["x"], a["y"]], 1),
    "concatenate flat": lambda a: np.concatenate((a["x"], a["y"]), axis=None),
    "concatenate host": lambda a: np.concatenate([a["x"], Y]),
    "stack": lambda a: np.stack([a["x"], a["y"]], 1),
    "vstack": lambda a: np.vstack([a["x"], a["y"]]),
    "hstack": lambda a: np.hstack([a["x"], a["y"]]),
    "column_stack": lambda a: np.column_stack([a["x"], a["y"]]),
    "block": lambda a: np.block([[a["x"]], [a["y"]]]),
    "split": lambda a: np.split(a["x"], 3, 1),
    "array_split": lambda a: np.array_split(a["x"], 2, 1),
    "broadcast_to": lambda a: np.broadcast_to(a["x"], (2, 2, 3)),
    "broadcast_arrays": lambda a: np.broadcast_arrays(a["x"], a["b"]),
    "pad": lambda a: np.pad(a["x"], 1),
    "pad mode": lambda a: np.pad(a["x"], ((0, 1), (2, 0)), "edge"),
    "tril": lambda a: np.tril(a["x"], -1),
    "diag": lambda a: np.diag(a["square"]),
    "diagonal": lambda a: np.diagonal(a["x"], 1),
    "trace": lambda a: np.trace(a["square"]),
    "clip": lambda a: np.clip(a["x"], 0.0, 2.0),
    "clip names": lambda a: np.clip(a["x"], a_min=None, a_max=2.0),
    "clip out": lambda a: np.clip(a["x"], 0.0, 2.0, out=a["full"]),
    "round": lambda a: np.round(a["x"], 1),
    "nan_to_num": lambda a: np.nan_to_num(a["x"]),
    "real": lambda a: np.real(a["x"] + 1j),
    "angle": lambda a: np.angle(a["x"]),
    "sinc": lambda a: np.sinc(a["x"]),
    "isclose": lambda a: np.isclose(a["x"], a["y"]),
    "allclose": lambda a: np.allclose(a["x"], a["x"]),
    "array_equal": lambda a: np.array_equal(a["x"], a["y"]),
    "dot": lambda a: np.dot(a["x"], a["y"].T),
    "vdot": lambda a: np.vdot(a["x"], a["y"]),
    "inner": lambda a: np.inner(a["x"], a["y"]),
    "outer": lambda a: np.outer(a["x"], a["y"]),
    "kron": lambda a: np.kron(a["x"], a["square"]),
    "tensordot": lambda a: np.tensordot(a["x"], a["y"], ([0], [0])),
    "einsum": lambda a: np.einsum("ij,kj->ik", a["x"], a["y"]),
    "cross": lambda a: np.cross(a["x"], a["y"]),
    "cov": lambda a: np.cov(a["x"]),
    "corrcoef": lambda a: np.corrcoef(a["x"]),
    "histogram": lambda a: np.histogram(a["x"], 3),
    "bincount": lambda a: np.bincount(a["i"][0]),
    "digitize": lambda a: np.digitize(a["x"], [0.0, 1.0, 2.0]),
    "interp": lambda a: np.interp(a["x"][0], [0.0, 5.0], [1.0, 2.0]),
    "convolve": lambda a: np.convolve(a["x"][0], a["y"][0]),
    "trapezoid": lambda a: np.trapezoid(a["x"], dx=0.5),
    "gradient": lambda a: np.gradient(a["x"][0]),
    "meshgrid": lambda a: np.meshgrid(a["x"][0], a["y"][1], indexing="ij"),
    "indices": lambda a: np.unravel_index(a["i"][0], (2, 3)),
    "select": lambda a: np.select([a["x"] > 1.0, a["x"] > 0.0], [a["x"], a["y"]], -1.0),
    "apply_along_axis": lambda a: np.apply_along_axis(np.cumsum, 1, a["x"]),
    "vander": lambda a: np.vander(a["x"][0]),
    "polyval": lambda a: np.polyval([1.0, 2.0], a["x"]),
    "zeros_like": lambda a: np.zeros_like(a["x"], dtype=np.int32),
    "full_like": lambda a: np.full_like(a["x"], 3.0),
    "copy": lambda a: np.copy(a["x"]),
    "astype": lambda a: np.astype(a["x"], np.float32),
    "shape": lambda a: np.shape(a["x"]),
    "size": lambda a: np.size(a["x"], 1),
    "result_type": lambda a: np.result_type(a["x"], np.float32),
    "iscomplexobj": lambda a: np.iscomplexobj(a["x"]),
    "array2string": lambda a: np.array2string(a["x"]),
    "linalg.norm": lambda a: np.linalg.norm(a["x"]),
    "linalg.norm axis": lambda a: np.linalg.norm(a["x"], 1, axis=0),
    "linalg.solve": lambda a: np.linalg.solve(a["square"], a["x"]),
    "linalg.inv": lambda a: np.linalg.inv(a["square"]),
    "linalg.det": lambda a: np.linalg.det(a["square"]),
    "linalg.eigh": lambda a: np.linalg.eigh(a["square"]).eigenvalues,
    "linalg.svd": lambda a: np.linalg.svd(a["x"], full_matrices=False).S,
    "linalg.svd values": lambda a: np.linalg.svd(a["x"], compute_uv=False),
    "linalg.qr": lambda a: np.abs(np.linalg.qr(a["square"]).R),
    "linalg.cholesky": lambda a: np.linalg.cholesky(a["square"]),
    "linalg.matrix_power": lambda a: np.linalg.matrix_power(a["square"], 3),
    "linalg.multi_dot": lambda a: np.linalg.multi_dot([a["square"], a["x"], a["y"].T]),
    "linalg.lstsq": lambda a: np.linalg.lstsq(a["y"].T, a["x"][0])[0],
    "fft.fft": lambda a: np.fft.fft(a["x"], 4, 0),
    "fft.rfft": lambda a: np.fft.rfft(a["x"], norm="ortho"),
    "fft.ifft2": lambda a: np.fft.ifft2(a["x"]),
    "fft.fftshift": lambda a: np.fft.fftshift(a["x"], 1),
}


def operands() -> dict[str, Any]:
    out = {"out": np.zeros(3), "full": np.zeros((2, 3)), "weights": np.array([1.0, 3.0])}
    return {"x": X, "y": Y, "i": I, "b": B, "square": SQUARE} | out


@pytest.mark.parametrize("name", CALLS)
def test_numpys_functions_give_ndarrays(name: str) -> None:
    same(CALLS[name](wrapped(operands())), CALLS[name](operands()))


def test_functions_that_write() -> None:
    x, host = weft.asarray(X), X.copy()
    for array in (x, host):
        np.copyto(array, np.ones(3), where=B)
        np.put(array, [0, 5], [8.0, 9.0])
        np.putmask(array, Y > 4.5, 0.5)
        np.fill_diagonal(array, -1.0)
        np.put_along_axis(array, np.array([[0], [1]]), 3.0, 1)
        np.place(array, Y < 2.5, [6.0])
    same(x, host)
    np.copyto(host, x * 2.0)
    same(x * 2.0, host)
    with pytest.warns(np.exceptions.ComplexWarning):
        np.copyto(x, X * 2j, casting="unsafe")
    same(x, np.zeros_like(X))
    np.copyto(x, 7)
    same(x, np.full_like(X, 7.0))
    with pytest.raises(ValueError, match="broadcast"):
        np.copyto(x, np.zeros(4))
    with pytest.raises(TypeError, match="Cannot cast"):
        np.copyto(weft.zeros(3, dtype="int64"), np.zeros(3))
    with pytest.raises(IndexError):
        np.put(x, 100, 1.0)
    same(x, np.full_like(X, 7.0))


def test_what_numpy_returns_is_no_view_of_the_argument() -> None:
    x = weft.asarray(X)
    made = [np.real_if_close(x), np.fliplr(x), np.diagonal(x), *np.split(x, 3, 1)]
    expected = [np.asarray(each).copy() for each in made]
    for each, values in zip(made, expected, strict=True):
        if not each._shares_buffer(x):  # weft's own functions return views that are ordered
            assert not np.may_share_memory(np.asarray(each), np.asarray(x))
            x += 1.0
            same(each, values)


def test_errors_are_numpys() -> None:
    x = weft.asarray(X)
    with pytest.raises(ValueError, match="shapes"):
        np.concatenate([x, weft.zeros(3)])
    with pytest.raises(np.exceptions.AxisError):
        np.sum(x, 5)
    with pytest.raises(TypeError):
        np.sum(x, nothing=1)
    with pytest.raises(TypeError):
        np.median(x, 0, None, False, False, 7, 8, 9)


def test_another_type_may_take_over() -> None:
    class Other:
        def __array_function__(self, *_: Any) -> str:
            return "other"

    assert np.concatenate([weft.zeros(3), Other()]) == "other"


def test_creation_like_an_ndarray() -> None:
    assert isinstance(np.zeros(3, like=weft.zeros(1)), weft.NDArray)
    same(np.asarray([1.0, 2.0], like=weft.zeros(1)), np.asarray([1.0, 2.0]))


def test_a_type_error_of_ours_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(x: Any, /, *, axis: int | None = None) -> weft.NDArray:
        raise TypeError(f"broken for {x.dtype}, {axis}")

    monkeypatch.setattr(weft, "flip", broken)
    from weft._numpy.names import namesake

    namesake.cache_clear()
    try:
        with pytest.raises(TypeError, match="broken for float64, None"):
            np.flip(weft.asarray(X))
    finally:
        namesake.cache_clear()


def pairs() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """Give each function of weft's that has a namesake of NumPy's with a signature, and that."""
    for room, ours, theirs in [("", weft, np), ("linalg.", weft.linalg, np.linalg), ("fft.", weft.fft, np.fft)]:
        for name in ours.__all__:
            own, func = getattr(ours, name), getattr(theirs, name, None)
            if not callable(own) or isinstance(own, type) or func is None or name in {"load", "save"}:
                continue
            if signature_of(own) is not None and signature_of(func) is not None:
                yield room + name, own, func


@pytest.mark.parametrize("places", range(4))
def test_an_argument_that_only_numpy_has_is_no_other_one_of_ours(places: int) -> None:
    """``average(x, returned=True)`` averaged along axis 1, and ``linspace(0, 1, retstep=True)`` gave one element."""
    kinds = inspect.Parameter
    checked = 0
    for name, own, func in pairs():
        ours, theirs = inspect.signature(own), inspect.signature(func)
        needed = [
            object()
            for each in theirs.parameters.values()
            if each.default is kinds.empty and each.kind in {kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD}
        ]
        for given, parameter in theirs.parameters.items():
            if parameter.default is kinds.empty or parameter.kind is kinds.POSITIONAL_ONLY or given in ours.parameters:
                continue
            value = object()
            adapted = adapt(func, own, (*needed, *(object() for _ in range(places))), {given: value})
            if adapted is None:
                continue
            bound = ours.bind(*adapted[0], **adapted[1]).arguments
            taken = {"ddof": "correction", "a_min": "min", "a_max": "max", "rcond": "rtol"}.get(given)
            assert {
                each for each, found in bound.items() if found is value and each in theirs.parameters and each != taken
            } == set(), f"{name}({given}=)"
            checked += 1
    assert places or checked


def test_arguments_of_ours_have_the_places_of_numpys() -> None:
    """``concatenate(arrays, 0, out)`` took `out` for a dtype."""
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    for name, own, func in pairs():
        ours, theirs = (
            [key for key, each in inspect.signature(of).parameters.items() if each.kind in kinds] for of in (own, func)
        )
        for one, other in zip(ours, theirs, strict=False):
            both = {one, other} <= {"min", "max", "a_min", "a_max"}  # NumPy has these by either name
            assert both or one == other or (one not in theirs and other not in ours), f"{name}: {one} where {other} is"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, o: weft.concatenate([x[0], x[1]], out=o),
        lambda x, o: weft.concatenate([x[0], x[1]], 0, o),
        lambda x, o: weft.stack([x[0], x[1]], out=o),
        lambda x, _: weft.average(x, returned=True),
        lambda x, _: weft.nanmax(x, initial=0),
        lambda x, _: weft.cov(x, aweights=[1, 2, 3]),
        lambda _x, _o: weft.linspace(0, 1, retstep=True),
        lambda _x, _o: weft.geomspace(1, 8, axis=1),
        lambda x, _: weft.full_like(x, 3, shape=(2, 2)),
    ],
)
def test_what_weft_does_not_take_is_refused(call: Callable[..., Any]) -> None:
    with pytest.raises(weft.errors.ArgumentTypeError, match=r"unexpected keyword|positional argument"):
        call(weft.asarray(X), weft.zeros(6))
