"""Every public function, given arrays that require a gradient, gives a right one, or says that there is none.

A result of floating-point numbers that the tape does not know would be a gradient of zero that nobody has asked for. The same
calls show that a tensor which has moved is seen where it is.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import tensor
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Array = weft.NDArray

_rng = np.random.default_rng(31)
X = _rng.uniform(0.3, 0.9, (3, 3)) + 2 * np.eye(3)
V = np.array([0.85, 0.35, 0.6])
ROWS = _rng.uniform(0.2, 0.8, (2, 3, 3))
IMAGES = _rng.uniform(0.2, 0.8, (1, 1, 4, 4))
#: What is no function of arrays.
OTHER = {
    "Aval", "Device", "Engine", "arange_like", "broadcast_shapes", "can_cast", "capture", "checkpoint", "cpu", "doctor", "dtype", "eager", "finfo", "from_dlpack",
    "get_engine", "gpu", "grad", "iinfo", "isdtype", "jvp", "load", "load_ipython_extension", "memory_stats", "memory_trim", "program",
    "progress", "promote_types", "register_op", "result_type", "save", "savez", "savez_compressed", "set_engine", "task", "trace", "value_and_grad", "vjp", "wait",
    "wait_all", "wait_async", "digitize", "searchsorted", "variable_of", "fromfile", "frombuffer", "fromstring", "set_printoptions", "get_printoptions", "eye", "identity", "empty", "ones", "zeros",
    "tri", "indices", "tril_indices", "triu_indices", "diag_indices", "fft.fftfreq", "fft.rfftfreq", "iterable", "shape", "ndim", "size", "isscalar",
    "random", "scan", "vmap", "cond", "unravel_index", "array_repr", "array_str", "array2string", "may_share_memory", "shares_memory",
}  # fmt: skip
#: Results that are the same whatever the numbers are.
CONSTANT = {"empty_like", "ones_like", "zeros_like", "imag", "angle"}
#: Of integers alone.
INTEGERS = {
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift",
}  # fmt: skip


def _dropout(x: Array) -> Array:
    return weft.nn.dropout(x, 0.5, weft.random.default_rng(3))


def _gates(count: int) -> tuple[np.ndarray[Any, Any], ...]:
    shapes = (2, 3), (2, 2), (2 * count, 3), (2 * count, 2)
    return tuple(_rng.uniform(-0.5, 0.5, shape) for shape in shapes)


#: Calls of functions that take more than arrays.
CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray[Any, Any], ...]]] = {
    "apply_along_axis": (lambda x: weft.apply_along_axis(np.sum, 0, x), (X,)),
    "arange": (lambda v: weft.arange(0.0, v[0], 0.25), (V,)),
    "array": (lambda v: weft.array([v[0], v[1] * 2]), (V,)),
    "asarray": (lambda v: weft.asarray([[v[0], 1.0], [v[1], 2.0]]), (V,)),
    "bincount": (lambda v: weft.bincount(weft.asarray([0, 1, 1]), v), (V,)),
    "broadcast_to": (lambda v: weft.broadcast_to(v, (2, 3)), (V,)),
    "choose": (lambda v: weft.choose(weft.asarray([0, 1, 0]), [v, v * 2]), (V,)),
    "dsplit": (lambda x: weft.dsplit(x, 3), (ROWS,)),
    "einsum": (lambda x, v: weft.einsum("ij,j->i", x, v), (X, V)),
    "full": (lambda v: weft.full((2, 3), v), (V,)),
    "geomspace": (lambda v: weft.geomspace(v[0], v[1], 4), (V,)),
    "histogram": (lambda v: weft.histogram(v, 3)[1], (V,)),
    "histogram_bin_edges": (lambda v: weft.histogram_bin_edges(v, 3), (V,)),
    "interp": (lambda v: weft.interp(v, weft.asarray([0.0, 1.0]), weft.asarray([0.0, 2.0])), (V,)),
    "linspace": (lambda v: weft.linspace(v[0], v[1], 4), (V,)),
    "logspace": (lambda v: weft.logspace(v[0], v[1], 4), (V,)),
    "moveaxis": (lambda x: weft.moveaxis(x, 0, 1), (X,)),
    "percentile": (lambda x: weft.percentile(x, 30.0), (X,)),
    "nanpercentile": (lambda x: weft.nanpercentile(x, 30.0), (X,)),
    "quantile": (lambda x: weft.quantile(x, 0.3), (X,)),
    "nanquantile": (lambda x: weft.nanquantile(x, 0.3), (X,)),
    "permute_dims": (lambda x: weft.permute_dims(x, (1, 0)), (X,)),
    "reshape": (lambda x: weft.reshape(x, (9,)), (X,)),
    **{name: (getattr(weft, name), (V,)) for name in ("acos", "arccos", "asin", "arcsin", "atanh", "arctanh")},
    **{name: (getattr(weft, name), (V + 1,)) for name in ("acosh", "arccosh")},
    "select": (lambda v: weft.select([v > 0.5, v > 0.1], [v, v * v]), (V,)),
    "swapaxes": (lambda x: weft.swapaxes(x, 0, 1), (X,)),
    "take_along_axis": (lambda x: weft.take_along_axis(x, weft.asarray([[0], [1], [2]]), axis=1), (X,)),
    "linalg.cholesky": (lambda x: weft.linalg.cholesky(x @ x.T + weft.eye(3)), (X,)),
    "linalg.eigh": (lambda x: weft.linalg.eigh(x + x.T)[0], (X,)),
    "linalg.eigvalsh": (lambda x: weft.linalg.eigvalsh(x + x.T), (X,)),
    "linalg.lstsq": (lambda x, v: weft.linalg.lstsq(x, v)[0], (X, V)),
    "linalg.svd": (lambda x: weft.linalg.svd(x)[1], (X,)),
    "linalg.eig": (lambda x: weft.linalg.eig(x)[0], (X,)),
    "linalg.cond": (weft.linalg.cond, (X,)),
    "nn.avg_pool": (lambda x: weft.nn.avg_pool(x, 2), (IMAGES,)),
    "nn.max_pool": (lambda x: weft.nn.max_pool(x, 2), (IMAGES,)),
    "nn.batch_norm": (lambda x, v: weft.nn.batch_norm(x, v, v, v, v), (X, V)),
    "nn.batch_norm_train": (lambda x, v: weft.nn.batch_norm_train(x, v, v), (X, V)),
    "nn.layer_norm": (lambda x, v: weft.nn.layer_norm(x, v, v), (X, V)),
    "nn.conv": (weft.nn.conv, (IMAGES, _rng.uniform(-1, 1, (2, 1, 3, 3)))),
    "nn.conv_transpose": (weft.nn.conv_transpose, (IMAGES, _rng.uniform(-1, 1, (1, 2, 3, 3)))),
    "nn.cross_entropy": (lambda x: weft.nn.cross_entropy(x, weft.asarray([0, 1, 2])), (X,)),
    "nn.dropout": (_dropout, (X,)),
    "nn.scaled_dot_product_attention": (
        lambda q, k, v: weft.nn.scaled_dot_product_attention(q, k, v, is_causal=True),
        (X, X * 0.7, X - 0.2),
    ),
    "nn.embedding": (lambda x: weft.nn.embedding(weft.asarray([0, 2]), x), (X,)),
    "nn.lrn": (lambda x: weft.nn.lrn(x, 3, alpha=0.1, beta=0.75, k=1.0), (IMAGES,)),
    "nn.lstm_cell": (lambda x, h, w, u: weft.nn.lstm_cell(x, h, h * 0.5, w, u), _gates(4)),
    "nn.gru_cell": (lambda x, h, w, u: weft.nn.gru_cell(x, h, w, u, weft.zeros(6), weft.zeros(6)), _gates(3)),
    "nn.rnn_cell": (weft.nn.rnn_cell, _gates(1)),
    "nn.rnn": (
        lambda x, h, w, u: weft.nn.rnn(x[None], h[None], [[(w, u, weft.zeros(2), weft.zeros(2))]], mode="tanh"),
        _gates(1),
    ),
}  # fmt: skip
#: What to try otherwise, one after the other.
TRIED = ((X,), (X, X * 0.7), (V,), (V, V * 0.7), (X, V), (X, 1), (X, V, V * 0.5), ([X, X],))


def _names() -> Iterator[str]:
    for module, prefix in ((weft, ""), (weft.linalg, "linalg."), (weft.fft, "fft."), (weft.nn, "nn.")):
        for name in sorted(getattr(module, "__all__", dir(module))):
            found = getattr(module, name, None) if not name.startswith("_") else None
            if callable(found) and not inspect.isclass(found) and prefix + name not in OTHER:
                yield prefix + name


def _function(name: str) -> Callable[..., Any]:
    module, _, own = name.rpartition(".")
    found: Callable[..., Any] = getattr(getattr(weft, module) if module else weft, own)
    return found


def _arrays(value: Any) -> list[Array]:
    if isinstance(value, Array):
        return [value] if value.dtype.kind in "fc" else []
    if isinstance(value, tuple | list):
        return [x for part in value for x in _arrays(part)]
    return []


def _leaves(operands: Any, shift: float, moves: list[Any], *, graded: bool) -> Any:
    """Return the operands moved a little, as arrays."""

    def made(x: Any) -> Any:
        if isinstance(x, list):
            return [made(each) for each in x]
        if not isinstance(x, np.ndarray):
            return x
        move = _rng.standard_normal(x.shape) if shift == 0 else moves[len(used)]
        if shift == 0:
            moves.append(move)
        used.append(1)
        found = weft.asarray(x + shift * move)
        found.requires_grad = graded
        given.append(found)
        return found

    used: list[int] = []
    given: list[Array] = []
    return [made(x) for x in operands], given


def _called(name: str) -> tuple[Callable[..., Any], Any] | None:
    """Return a call that works, or None if all results are other than of floating-point numbers."""
    if name in CALLS:
        return CALLS[name]
    function = _function(name)
    works = False
    for operands in TRIED:
        try:
            made = function(*_leaves(operands, 0, [], graded=False)[0])
            found = _arrays(made)
            for x in found:
                x.numpy()
        except Exception:  # noqa: BLE001 - it takes others
            continue
        works = True
        if found:
            return function, operands
    assert works, f"{name}: say in CALLS how it is called, or in OTHER that it takes no arrays"
    return None


@pytest.mark.parametrize("name", list(_names()))
def test_a_gradient_or_an_error(name: str) -> None:
    if name in INTEGERS:
        return
    call = _called(name)
    if call is None:
        return
    function, operands = call
    moves: list[Any] = []
    arguments, given = _leaves(operands, 0, moves, graded=True)
    results = _arrays(function(*arguments))
    if name in CONSTANT:
        return
    assert results
    if not all(y.requires_grad for y in results):
        untracked = [y.shape for y in results if not y.requires_grad]
        # What is computed beside, of constants, is none of the tape's business.
        raise AssertionError(f"{name} returned floating-point numbers that the tape knows nothing of: {untracked}")
    weights = [
        _rng.standard_normal(y.shape) + (1j * _rng.standard_normal(y.shape) if y.dtype.kind == "c" else 0)
        for y in results
    ]
    try:
        found = weft.autograd.gradients(results, [weft.asarray(w) for w in weights])
    except GradientError as error:
        assert "has no gradient" in str(error)  # noqa: PT017 - or there is none, and the values are right
        return
    slope = sum(float(np.vdot(found[x].numpy(), move)) for x, move in zip(given, moves, strict=True) if x in found)

    def loss(shift: float) -> float:
        made = _arrays(function(*_leaves(operands, shift, moves, graded=False)[0]))
        return sum(float(np.real(np.vdot(w, y.numpy()))) for w, y in zip(weights, made, strict=True))

    step = 1e-6
    assert slope == pytest.approx((loss(step) - loss(-step)) / (2 * step), rel=5e-5, abs=5e-7)


def _moved(x: np.ndarray[Any, Any]) -> Array:
    """Return a tensor that was made elsewhere, of another shape and dtype: whoever looks there sees other values."""
    found = tensor.zeros((1, 1))
    found.to_device("cpu:1").to_type("half")
    found.reset_like(weft.empty_like(x))
    found[...] = x
    return found


def _each(value: Any, make: Callable[[Any], Any], kind: type = object) -> Any:
    if isinstance(value, tuple | list):
        return [_each(part, make, kind) for part in value]
    return make(value) if isinstance(value, kind) else value


def _seen(value: Any) -> Any:
    if isinstance(value, Array):
        return (
            value.tolist() if value.dtype.kind in "?biu" else value.numpy().tobytes(),
            value.shape,
            value.dtype,
            value.device,
        )
    return repr(value)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_tensors_are_seen_where_they_are(dtype: Any) -> None:
    calls = 0
    for name in _names():
        if name == "empty_like":
            continue
        own = [CALLS[name]] if name in CALLS else []
        for function, given in [*own, *((_function(name), operands) for operands in TRIED)]:
            operands = _each(given, lambda x: (10 * x).astype(dtype), np.ndarray)
            plain, moved = (_each(operands, make, np.ndarray) for make in (weft.asarray, _moved))
            try:
                due = _each(function(*plain), _seen)
            except Exception:  # noqa: BLE001 - it takes others
                continue
            assert _each(function(*moved), _seen) == due, (name, given)
            calls += 1
    assert calls > 500


#: Of NumPy's, over arrays of ours, and functions that change what they are given.
FURTHER: dict[str, Callable[[Array], Any]] = {
    "add.reduce": np.add.reduce,
    "maximum.reduce": np.maximum.reduce,
    "add.accumulate": np.add.accumulate,
    "maximum.accumulate": np.maximum.accumulate,
    "add.reduceat": lambda v: np.add.reduceat(v, [0, 1]),
    "add.outer": lambda v: np.add.outer(v, v),
    "meshgrid": lambda v: np.meshgrid(v, v * 2, indexing="ij"),
    "unique": np.unique,
    "normal": lambda v: weft.random.default_rng(1).normal(v, 1.0),
    "permutation": lambda v: weft.random.default_rng(1).permutation(v),
}


@pytest.mark.parametrize("name", FURTHER)
def test_functions_of_numpy_and_draws(name: str) -> None:
    v = weft.asarray(V)
    v.requires_grad = True
    results = _arrays(FURTHER[name](v))
    assert results
    assert all(y.requires_grad for y in results)
    weights = [weft.asarray(_rng.standard_normal(y.shape)) for y in results]
    try:
        found = weft.autograd.gradients(results, weights)[v].numpy()
    except GradientError as error:
        assert f"{name}" in str(error)  # noqa: PT017 - as above
        return
    moved = [_arrays(FURTHER[name](weft.asarray(V + 1e-6 * sign * np.eye(3)[1]))) for sign in (1, -1)]
    change = sum(float((w * (a - b)).sum().item()) for w, a, b in zip(weights, *moved, strict=True)) / 2e-6
    assert found[1] == pytest.approx(change, rel=1e-5, abs=1e-7)


CHANGING: dict[str, Callable[[Array], Any]] = {
    "shuffle": lambda y: weft.random.default_rng(1).shuffle(y),
    "at": lambda y: np.add.at(y, [0], y[1:2]),
    "fill": lambda y: y.fill(0.5),
    "sort": lambda y: y.sort(),
}


@pytest.mark.parametrize("name", CHANGING)
def test_what_is_changed_in_place_is_heard(name: str) -> None:
    v = weft.asarray(V)
    v.requires_grad = True
    with pytest.raises(GradientError, match="no_grad"):
        CHANGING[name](v)
    assert v.numpy().tolist() == V.tolist()
    y = v * 1.0
    CHANGING[name](y)
    try:
        found = weft.autograd.gradients((y * weft.asarray([1.0, 2.0, 3.0])).sum()).get(v)
    except GradientError as error:
        assert "has no gradient" in str(error)  # noqa: PT017 - as above
        return
    wanted = {"fill": [0.0, 0.0, 0.0], "sort": [3.0, 1.0, 2.0]}[name]
    assert found is None or found.tolist() == wanted
