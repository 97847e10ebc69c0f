"""Every function of weft that takes arrays takes symbols of which nothing is known, and gives what it gives of arrays."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft._core import ArrayFunction
from weft._tape.pytree import flatten
from weft.errors import GraphError, ShapeError
from weft.ops import get_op, list_ops
from weft.symbol import Group, Variable

if TYPE_CHECKING:
    from collections.abc import Callable

_rng = np.random.default_rng(11)
_A = _rng.uniform(0.1, 0.9, (2, 3, 4))
_M = _rng.uniform(-1, 1, (3, 3)) + 3 * np.eye(3)
_N = _rng.uniform(-1, 1, (3, 2))
_V = _rng.permutation(6) + 0.5
_I = np.array([[3, -1, 4], [1, 5, -9]])
_K = np.array([2, 0, 1])
_B = np.array([[True, False, True], [False, False, True]])
_C = _A + 1j * _A[::-1]
_P = _M @ _M.T
_X4 = _rng.uniform(-1, 1, (2, 3, 6, 6)).astype(np.float32)
_W4 = _rng.uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32)
_F = _rng.uniform(-1, 1, (4, 5)).astype(np.float32)
_G = _rng.uniform(0.5, 1, 5).astype(np.float32)
_STATE = _rng.uniform(-1, 1, (4, 6)).astype(np.float32)


def _gates(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return _rng.uniform(-1, 1, (6 * count, 5)).astype(np.float32), _rng.uniform(-1, 1, (6 * count, 6)).astype(
        np.float32
    )


def _with(*operands: Any, **options: Any) -> Callable[[str], tuple[Any, tuple[Any, ...]]]:
    """Return the case of a function by its name: called with these operands, and these options."""

    def case(name: str) -> tuple[Any, tuple[Any, ...]]:
        module, _, own = name.rpartition(".")
        function = getattr(getattr(weft, module) if module else weft, own)
        return (lambda *xs: function(*xs, **options)), operands

    return case


def _by(function: Callable[..., Any], *operands: Any) -> Callable[[str], tuple[Any, tuple[Any, ...]]]:
    return lambda _: (function, operands)


def _ufuncs(operands: int, dtype: str) -> list[str]:
    """Return the names of the registry's ufuncs of so many operands, and of this dtype's kind or of no other that comes first."""
    found: list[str] = []
    for op in map(get_op, list_ops()):
        if op.ufunc is not None and op.ufunc.nin == operands:
            first = next(
                (code for code in "dq?" if any(each.startswith(code * operands) for each in op.ufunc.types)), ""
            )
            found += [name for name in (op.name, *op.aliases) if first == dtype and hasattr(weft, name)]
    return found


#: Element-wise functions that are no ufuncs.
_UNARY = ["angle", "imag", "iscomplex", "nan_to_num", "real", "around", "isneginf", "isposinf", "isreal", "round"]
_REDUCED = [
    "all",
    "amax",
    "amin",
    "any",
    "count_nonzero",
    "max",
    "mean",
    "median",
    "min",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]
_POSITIONAL = ["argmax", "argmin", "nanargmax", "nanargmin"]

_CASES: dict[str, list[Callable[[str], tuple[Any, tuple[Any, ...]]]]] = {
    **{name: [_with(_A)] for name in (*_ufuncs(1, "d"), *_UNARY)},
    **{name: [_with(np.abs(_I))] for name in _ufuncs(1, "q")},
    **{name: [_with(_A, _A[0]), _with(_V, _V[::-1].copy())] for name in (*_ufuncs(2, "d"), "isclose")},
    **{name: [_with(np.abs(_I), np.abs(_I[::-1]))] for name in _ufuncs(2, "q")},
    **{
        name: [_with(_A), _with(_A, axis=-1), _with(_A, axis=(0, -1), keepdims=True), _with(_A, axis=-2, keepdims=True)]
        for name in _REDUCED
    },
    **{name: [_with(_A), _with(_A, axis=-1), _with(_A, axis=1)] for name in _POSITIONAL},
    "acosh": [_with(_A + 1)],
    "arccosh": [_with(_A + 1)],
    "allclose": [_with(_A, _A)],
    "append": [_with(_A, _A), _with(_A, _A, axis=-1)],
    "argpartition": [_with(_V, kth=2)],
    "argsort": [_with(_A), _with(_A, axis=0, descending=True), _with(_A, axis=None)],
    "array_equal": [_with(_A, _A)],
    "array_equiv": [_with(_A, _A)],
    "array_split": [_by(lambda x: weft.array_split(x, 4, axis=-1), _A)],
    "astype": [_by(lambda x: weft.astype(x, weft.float32), _A), _by(lambda x: x.astype(np.int32), _A * 9)],
    "atleast_1d": [_with(np.float64(2)), _with(_A, _V)],
    "atleast_2d": [_with(_V)],
    "atleast_3d": [_with(_V), _with(_M)],
    "average": [_with(_A), _with(_M, axis=-1), _by(lambda x, w: weft.average(x, axis=0, weights=w), _M, _K + 1.0)],
    "bitwise_count": [_with(np.abs(_I))],
    "bitwise_invert": [_with(_I)],
    "bitwise_not": [_with(_I)],
    "invert": [_with(_I)],
    "broadcast_arrays": [_with(_A, _A[0, 0])],
    "broadcast_to": [_by(lambda x: weft.broadcast_to(x, (2, 6)), _V)],
    "clip": [_by(lambda x: weft.clip(x, 0.2, 0.6), _A), _with(_A, _A[0], _A[1])],
    "column_stack": [_by(lambda x, y: weft.column_stack([x, y]), _V, _V)],
    "concat": [_by(lambda x, y: weft.concat([x, y], axis=-1), _A, _A), _by(lambda x, y: weft.concat([x, y], axis=None), _A, _V)],
    "concatenate": [_by(lambda x, y: weft.concatenate([x, y]), _A, _A)],
    "convolve": [_with(_V, _V[:2], mode="same")],
    "copy": [_with(_A)],
    "corrcoef": [_with(_M)],
    "cov": [_with(_M), _with(_M, rowvar=False, bias=True)],
    "cross": [_with(_M, _M[::-1].copy()), _with(_M[0], _M)],
    **{key: [_with(_A), _with(_A, axis=-1)] for key in ("cumprod", "cumsum")},
    **{key: [_with(_V), _with(_A, axis=-1), _with(_A, axis=1, include_initial=True)] for key in ("cumulative_prod", "cumulative_sum")},
    "delete": [_by(lambda x: weft.delete(x, 1), _A), _by(lambda x: weft.delete(x, [0, 2], axis=-1), _A)],
    "diag": [_with(_V), _with(_M, k=1), _with(_N)],
    "diagonal": [_with(_A), _with(_A, offset=-1, axis1=-1, axis2=0)],
    "diff": [_with(_A), _with(_A, n=2, axis=0), _by(lambda x, y: weft.diff(x, prepend=y, axis=-1), _M, _N)],
    "digitize": [_with(_V, np.array([1.0, 3.0, 5.0]))],
    "dot": [_with(_A, _A[0].T.copy()), _with(_V, _V), _with(_V, np.float64(2)), _with(_M, _N)],
    "dsplit": [_by(lambda x: weft.dsplit(x, 2), _A)],
    "dstack": [_by(lambda x, y: weft.dstack([x, y]), _V, _V), _by(lambda x, y: weft.dstack([x, y]), _A, _A)],
    "einsum": [_by(lambda x, y: weft.einsum("ij,jk->ki", x, y), _M, _N), _by(lambda x: weft.einsum("...i->...", x), _A)],
    "empty_like": [_by(lambda x: weft.zeros_like(weft.empty_like(x)), _A)],
    "expand_dims": [_with(_A), _with(_A, axis=-1), _with(_A, axis=(0, -1))],
    "flip": [_with(_A), _with(_A, axis=-1), _with(_A, axis=(0, 2))],
    "fliplr": [_with(_A)],
    "flipud": [_with(_A)],
    "full_like": [_by(lambda x: weft.full_like(x, 3), _A)],
    "gradient": [_with(_V, axis=0), _by(lambda x: weft.gradient(x, 2.0, axis=-1), _A), _with(_A, axis=(0, 1))],
    "hsplit": [_by(lambda x: weft.hsplit(x, [1]), _A), _by(lambda x: weft.hsplit(x, 2), _V)],
    "hstack": [_by(lambda x, y: weft.hstack([x, y]), _V, _V), _by(lambda x, y: weft.hstack([x, y]), _A, _A)],
    "inner": [_with(_A, _A[0]), _with(_V, _V), _with(_V, np.float64(2))],
    "insert": [_by(lambda x: weft.insert(x, 1, 7.0), _A), _by(lambda x, y: weft.insert(x, 1, y, axis=-1), _M, _M[0])],
    "interp": [_with(_A, np.array([0.0, 0.5, 1.0]), np.array([1.0, 4.0, 2.0])), _by(lambda x: weft.interp(x, [0, 1], [3.0, 4.0]), _A)],
    "isin": [_with(_V, _V[:3])],
    "kron": [_with(_M, _N), _with(_V, _M)],
    "ldexp": [_with(_V, np.arange(6))],
    "lexsort": [_by(lambda x, y: weft.lexsort((x, y)), _V, _V)],
    "logical_not": [_with(_B)],
    "matmul": [_with(_A, _A[0].T.copy()), _with(_V, _V), _by(lambda x, y: x @ y, _M, _N)],
    "matrix_transpose": [_with(_A), _by(lambda x: x.mT, _A)],
    "meshgrid": [_with(_V, _K), _with(_V, _K, indexing="ij")],
    "moveaxis": [_by(lambda x: weft.moveaxis(x, 0, -1), _A), _by(lambda x: weft.moveaxis(x, (0, 1), (-1, 0)), _A)],
    **{
        name: [_by(lambda x, f=name, q=q: getattr(weft, f)(x, q), _A) for q in (0.3, 0.5)]
        + [_by(lambda x, f=name: getattr(weft, f)(x, [0.25, 0.5], axis=-1, keepdims=True), _A)]
        for name in ("quantile", "nanquantile", "percentile", "nanpercentile")
    },
    "ones_like": [_with(_A)],
    "outer": [_with(_V, _K)],
    "pad": [
        _by(lambda x: weft.pad(x, 1), _A),
        _by(lambda x: weft.pad(x, ((1, 0), (0, 2), (0, 0)), constant_values=3), _A),
        _by(lambda x: weft.pad(x, (1, 2), mode="reflect"), _V),
        _by(lambda x: weft.pad(x, 1, mode="edge"), _M),
    ],
    "partition": [_with(_V, kth=2), _by(lambda x: weft.sort(weft.partition(x, 1, axis=0), axis=0), _M)],
    "permute_dims": [_by(lambda x: weft.permute_dims(x, (2, 0, 1)), _A)],
    "ravel": [_with(_A)],
    "repeat": [_by(lambda x: weft.repeat(x, 2), _A), _by(lambda x: weft.repeat(x, 3, axis=-1), _A), _by(lambda x: weft.repeat(x, [1, 0, 2], axis=1), _A)],
    "reshape": [_by(lambda x: weft.reshape(x, (4, -1)), _A), _by(lambda x: x.reshape(2, -1), _A)],
    "roll": [_by(lambda x: weft.roll(x, 2), _A), _by(lambda x: weft.roll(x, (1, -1), axis=(0, -1)), _A)],
    "rot90": [_with(_A), _with(_A, k=3, axes=(0, -1)), _with(_A, k=2)],
    "searchsorted": [_with(np.sort(_V), _V)],
    "select": [_by(lambda c, x, y: weft.select([c], [x], y), _B, _I, -_I)],
    "sort": [_with(_A), _with(_A, axis=0), _with(_A, axis=None), _with(_A, axis=-1, descending=True)],
    "split": [_by(lambda x: weft.split(x, 2), _A), _by(lambda x: weft.split(x, [1, 3], axis=-1), _A)],
    "squeeze": [_with(_A[:1, :, :1]), _with(_A[:1, :, :1], axis=-1), _with(_A[:1], axis=0)],
    "stack": [_by(lambda x, y: weft.stack([x, y], axis=-1), _A, _A)],
    "swapaxes": [_by(lambda x: weft.swapaxes(x, 0, -1), _A), _by(lambda x: x.swapaxes(0, 1), _A)],
    "take": [_by(lambda x, i: weft.take(x, i, axis=-1), _A, _K), _by(lambda x: weft.take(x, [0, -1]), _A), _with(_V, _K)],
    "take_along_axis": [_with(_A, np.argsort(_A, axis=-1)), _with(_A, np.argsort(_A, axis=0), axis=0)],
    "tensordot": [_with(_A, _A[0], axes=2), _with(_M, _N, axes=((-2,), (0,))), _with(_V, _K, axes=0), _with(_M, _N, axes=1)],
    "tile": [_by(lambda x: weft.tile(x, 2), _A), _by(lambda x: weft.tile(x, (2, 1, 2, 1)), _A)],
    "trace": [_with(_A), _with(_A, offset=1, axis1=-2, axis2=-1)],
    "transpose": [_with(_A), _by(lambda x: x.T, _A), _by(lambda x: weft.transpose(x, (-1, 0, 1)), _A)],
    "trapezoid": [_with(_A), _with(_V, np.arange(6.0))],
    "tril": [_with(_A), _with(_M, k=-1)],
    "triu": [_with(_A), _with(_M, k=1)],
    "vdot": [_with(_A, _A), _with(_C, _C)],
    "vecdot": [_with(_A, _A), _with(_A, _A[0], axis=-1)],
    "vsplit": [_by(lambda x: weft.vsplit(x, 3), _M)],
    "vstack": [_by(lambda x, y: weft.vstack([x, y]), _V, _V), _by(lambda x, y: weft.vstack([x, y]), _M, _M)],
    "where": [_with(_B, _I, -_I), _by(lambda x: weft.where(x > 0, x, 0), _I)],
    "zeros_like": [_with(_A)],
    **{f"linalg.{name}": [_with(_M)] for name in ("cond", "det", "inv", "matrix_rank", "pinv", "slogdet", "svdvals")},
    **{f"linalg.{name}": [_with(_P)] for name in ("cholesky", "eigh", "eigvalsh", "eigvals", "eig")},
    "linalg.cross": [_with(_M, _M[::-1].copy())],
    "linalg.diagonal": [_with(_A)],
    "linalg.matmul": [_with(_M, _N)],
    "linalg.matrix_norm": [_with(_A), _with(_A, ord="nuc"), _with(_A, ord=1, keepdims=True)],
    "linalg.matrix_power": [_by(lambda x: weft.linalg.matrix_power(x, 3), _M), _by(lambda x: weft.linalg.matrix_power(x, -1), _M)],
    "linalg.matrix_transpose": [_with(_A)],
    "linalg.multi_dot": [_by(lambda x, y, z: weft.linalg.multi_dot([x, y, z]), _M, _M, _N)],
    "linalg.norm": [_with(_A), _with(_M), _with(_V, ord=3), _with(_A, axis=-1), _with(_A, axis=(0, 2), ord="fro", keepdims=True)],
    "linalg.outer": [_with(_V, _V)],
    "linalg.qr": [_with(_M), _with(_N, mode="complete")],
    "linalg.solve": [_with(_M, _N), _with(_M, _M[0])],
    "linalg.svd": [_with(_N), _with(_N, full_matrices=False)],
    "linalg.tensordot": [_with(_A, _A[0], axes=2)],
    "linalg.trace": [_with(_A)],
    "linalg.vecdot": [_with(_A, _A)],
    "linalg.vector_norm": [_with(_A), _with(_A, axis=-1, ord=1), _with(_A, axis=(0, -1), keepdims=True)],
    **{
        f"fft.{name}": [_with(_A), _with(_A, axis=1, norm="ortho"), _by(lambda x, f=name: getattr(weft.fft, f)(x, n=5, axis=0), _A)]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    **{
        f"fft.{name}": [_with(_A), _with(_A, axes=(0, -1), norm="forward")]
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
    },
    "fft.fftshift": [_with(_A), _with(_A, axes=-1)],
    "fft.ifftshift": [_with(_A), _with(_A, axes=(0, 1))],
    **{f"nn.{name}": [_with(_X4)] for name in ("elu", "gelu", "leaky_relu", "relu", "sigmoid", "softplus")},
    "nn.softmax": [_with(_F), _with(_X4, axis=1)],
    "nn.log_softmax": [_with(_F), _with(_X4, axis=-2)],
    "nn.avg_pool": [_by(lambda x: weft.nn.avg_pool(x, 2), _X4)],
    "nn.max_pool": [_by(lambda x: weft.nn.max_pool(x, 3, stride=2, padding=1), _X4)],
    "nn.conv": [_with(_X4, _W4, padding=1), _with(_X4, _W4, _G[:4], stride=2)],
    "nn.conv_transpose": [_with(_X4, _W4.swapaxes(0, 1).copy())],
    "nn.batch_norm": [_with(_X4, _G[:3], _G[1:4], _G[:3], _G[2:])],
    "nn.batch_norm_train": [_with(_X4, _G[:3], _G[1:4])],
    "nn.layer_norm": [_with(_F, _G, _G)],
    "nn.lrn": [_by(lambda x: weft.nn.lrn(x, 3, alpha=1e-4, beta=0.75, k=2.0), _X4)],
    "nn.dense": [_with(_F, _F), _with(_F, _F, _G[:4])],
    "nn.cross_entropy": [_with(_F, np.array([0, 4, 2, 1])), _with(_F, np.eye(5, dtype=np.float32)[:4])],
    "nn.embedding": [_with(_K, _F), _by(lambda w: weft.nn.embedding([[0, 2], [1, 1]], w), _F)],
    "nn.lstm_cell": [_with(_F, _STATE, _STATE, *_gates(4))],
    "nn.gru_cell": [_with(_F, _STATE, *_gates(3), np.zeros(18, np.float32), np.ones(18, np.float32))],
    "nn.rnn_cell": [_with(_F, _STATE, *_gates(1)), _with(_F, _STATE, *_gates(1), activation="relu")],
    "nn.scaled_dot_product_attention": [_with(_A, _A, _A)],
    "nn.rnn": [
        _by(
            lambda x, h, c, w, r: weft.nn.rnn(x, h, [(w, r, None, None)], mode="lstm", c0=c),
            _F[None].repeat(3, 0),
            _STATE[None],
            _STATE[None],
            *_gates(4),
        ),
    ],
}  # fmt: skip

#: Functions whose results, or how many there are, rest on values; and such as take no arrays, or no symbols for another reason.
_OTHERS = {
    "argwhere", "bincount", "flatnonzero", "histogram", "linalg.lstsq", "intersect1d", "nonzero", "setdiff1d", "setxor1d", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "ix_", "tril_indices", "triu_indices", "unravel_index",
    "compress", "extract", "indices", "diag_indices", "tri", "shape", "ndim", "size", "iscomplexobj", "isrealobj",
    "arange", "array", "asarray", "broadcast_shapes", "can_cast", "empty", "eye", "finfo", "from_dlpack", "full", "geomspace",
    "identity", "iinfo", "isdtype", "linspace", "load", "logspace", "ones", "promote_types", "result_type", "save", "zeros",
    "apply_along_axis", "unstack", "fft.fftfreq", "fft.rfftfreq", "nn.dropout",
}  # fmt: skip
_NAMES = sorted(_CASES)


def test_every_function_is_in_the_table() -> None:
    found: set[str] = set()
    for module in ("", "linalg", "fft", "nn"):
        namespace = getattr(weft, module) if module else weft
        for name in namespace.__all__:
            each = getattr(namespace, name)
            ours = getattr(each, "__module__", "").startswith(
                (
                    "weft._ops.",
                    "weft._call.",
                    "weft._engine.array_waits",
                    "weft._numpy.",
                    "weft.linalg",
                    "weft.fft",
                    "weft._nn.",
                )
            )
            if (
                ours
                and name not in {"wait_all", "__array_namespace_info__"}
                and callable(each)
                and not isinstance(each, type)
            ):
                assert isinstance(each, FunctionType | ArrayFunction) or not module
                found.add(f"{module}.{name}" if module else name)
    missing = found - _CASES.keys() - _OTHERS
    assert not missing, f"these take arrays, and no case says what they do with symbols: {sorted(missing)}"


def _same(found: Any, expected: Any) -> None:
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()


@pytest.mark.parametrize("name", _NAMES)
def test_functions_compose_without_shapes(name: str) -> None:
    for case in _CASES[name]:
        function, operands = case(name)
        arrays = {f"x{at}": weft.asarray(x) for at, x in enumerate(operands)}
        expected = [weft.asarray(x) for x in flatten(function(*arrays.values()))[0]]
        symbol = Group(flatten(function(*map(Variable, arrays)))[0])
        assert sorted(symbol.list_inputs()) == list(arrays)
        _same(symbol.eval(**arrays), expected)
        shapes = {key: each.shape for key, each in arrays.items()}
        dtypes = {key: each.dtype for key, each in arrays.items()}
        assert symbol.infer_shape(**shapes)[1] == [x.shape for x in expected]
        graph = weft.graph.infer_type(weft.graph.infer_shape(weft.graph.Graph(symbol), shapes), dtypes)
        indexed = graph.indexed_graph()
        assert [graph.attrs["dtype"][indexed.entry_id(*at[:2])] for at in indexed.outputs] == [
            x.dtype for x in expected
        ]
        alone = symbol.infer_type(**dtypes)[1]
        assert all(each in {None, x.dtype} for each, x in zip(alone, expected, strict=True))
        _same(weft.symbol.load_json(symbol.tojson()).eval(**arrays), expected)


@pytest.mark.filterwarnings("ignore:eval")  # of several symbols, each has some of the variables
def test_methods_and_keys_compose_without_shapes() -> None:
    x, at = Variable("x"), Variable("at")
    data, where = weft.asarray(_A), weft.asarray(_K)
    cases: list[tuple[Any, Any]] = [
        (x[1:], data[1:]),
        (x[:, None, ..., 0], data[:, None, ..., 0]),
        (x[:, [2, 0]], data[:, [2, 0]]),
        (x[0, at], data[0, where]),
        (x[..., ::-2], data[..., ::-2]),
        (x[:, np.array([True, False, True])], data[:, [0, 2]]),
        (x + np.arange(4), data + np.arange(4)),
        (np.arange(4) * x, np.arange(4) * data),
        (x.moveaxis(0, 2).ptp(axis=-1), weft.ptp(weft.moveaxis(data, 0, 2), axis=-1)),
        (x.transpose(2, 0, 1).mT.reshape(4, -1), weft.reshape(weft.permute_dims(data, (2, 0, 1)).mT, (4, -1))),
        (weft.symbol.swapaxes(x, 0, 1, name="swapped", ctx_group="first"), weft.swapaxes(data, 0, 1)),
    ]
    for symbol, expected in cases:
        _same(symbol.eval(x=data, at=where), [expected])
        again = weft.symbol.load_json(symbol.tojson())
        assert again.infer_shape_partial(x=data.shape, **({"at": (3,)} if "at" in symbol.list_inputs() else {}))[1] == [
            expected.shape
        ]
    assert cases[-1][0].name == "swapped"
    assert cases[-1][0].attr("ctx_group") == "first"
    with pytest.raises(IndexError, match="as many elements as are true"):
        x[x > 0].eval(x=data)


def test_nodes_of_functions_say_what_is_wrong() -> None:
    x = Variable("x")
    with pytest.raises(GraphError, match=r"how many results unstack\(\) has is not known.*give shapes"):
        weft.unstack(x)
    with pytest.raises(GraphError, match=r"take\(\) has a symbol and NDArray.*let a variable stand"):
        weft.take(x, weft.asarray([1]))
    with pytest.raises(ShapeError, match=r"node 'moved' .*inputs of shapes \(2, 3\).*axis 5"):
        weft.symbol.moveaxis(x, 0, 5, name="moved").infer_shape(x=(2, 3))
    text = weft.moveaxis(x, 0, 1).tojson().replace('"moveaxis"', '"wait_all_day"')
    with pytest.raises(GraphError, match="weft has no function 'wait_all_day'"):
        weft.symbol.load_json(text).eval(x=weft.ones((2, 2)))
    for attribute in ("shape", "size", "dtype"):
        with pytest.raises(GraphError, match=f"(shape|{attribute}) of 'x' is not known"):
            getattr(x, attribute)
    known = Variable("x", shape=(2, None), dtype="float16")
    assert known.ndim == 2
    assert known.dtype == np.float16
    with pytest.raises(GraphError, match=r"is not known, but for \(2, None\)"):
        _ = known.shape


def test_nodes_of_functions_are_bound_and_differentiated_twice() -> None:
    """As the tape has it: also where an executor writes into the memory that a function would show."""
    x = Variable("x")
    y = weft.sum(weft.linalg.norm(weft.swapaxes(x, 0, 1), axis=0) ** 3)
    first = y.gradient("x")
    second = weft.sum(first * first).gradient("x")

    def function(a: Any) -> Any:
        return weft.sum(weft.linalg.norm(weft.swapaxes(a, 0, 1), axis=0) ** 3)

    def squares(a: Any) -> Any:
        found = weft.grad(function)(a)
        return weft.sum(found * found)

    data = weft.asarray(_M)
    np.testing.assert_allclose(first.eval(x=data)[0].numpy(), weft.grad(function)(data).numpy(), rtol=1e-12)
    np.testing.assert_allclose(second.eval(x=data)[0].numpy(), weft.grad(squares)(data).numpy(), rtol=1e-12)
    assert second.infer_shape(x=(3, 3))[1] == [(3, 3)]
    executor = y.simple_bind(x=(3, 3), type_dict={"x": np.float64})
    executor.arg_dict["x"][...] = data
    executor.forward(is_train=True)
    executor.backward()
    np.testing.assert_allclose(executor.grad_dict["x"].numpy(), weft.grad(function)(data).numpy(), rtol=1e-12)


def test_what_arrays_can_do_symbols_can() -> None:
    given = np.array([1, 2, 4])
    x = Variable("x")
    cases: list[Callable[[Any], Any]] = [
        lambda x: 1 << x,
        lambda x: 64 >> x,
        lambda x: divmod(x, 3),
        lambda x: divmod(9, x),
        lambda x: [3, 2, 1] - x,
        lambda x: x * (1, 2, 3),
        lambda x: round(x / 3, 1),
        lambda x: x.reshape(3, 1).flatten(),
        lambda x: (x * 1j).imag + x.real,
        lambda x: weft.imag(weft.astype(x, "c16") * 1j) + weft.real(x),
        lambda x: weft.take(x, weft.argmax(x), axis=0) + weft.take(x, [2, 0, 1], axis=0) + weft.take(x, 1, axis=0),
        lambda x: weft.pad(x, 1) + weft.pad(x, (1, 1), mode="linear_ramp", end_values=np.array([2, 4])),
        lambda x: weft.trapezoid(x * 1.0),
    ]
    for case in cases:
        found, expected = (
            each if isinstance(each, tuple) else (each,) for each in (case(x), case(weft.asarray(given)))
        )
        assert [symbol.eval(x=given)[0].tolist() for symbol in found] == [array.tolist() for array in expected]


def test_what_symbols_cannot_do() -> None:
    x = Variable("x")
    for use in (float, int, complex, np.asarray):
        with pytest.raises(TypeError, match="a symbol has no values yet: compute it by eval"):
            use(x)
    with pytest.raises(TypeError, match="no element of it is written to"):
        x[0] = 1
    y = x
    y += 1
    assert (x.name, y.list_arguments()) == ("x", ["x"])  # another symbol has the name


def test_dtypes_as_far_as_they_follow() -> None:
    y = Variable("x") @ Variable("w")
    assert y.infer_type_partial() == ([None, None], [None], [])
    assert y.infer_type_partial(x="float64")[0][0] == np.dtype("float64")
