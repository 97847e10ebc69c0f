"""Counting and comparing samples: `bincount`, `histogram`, `digitize`, `average`, `cov`, `corrcoef`.

The number of bins of `bincount` and `histogram` may depend on values: these functions wait for their operands.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.blocking import EXACT, eager
from weft._call.calls import one
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._core import NDArray
from weft._ops.elementwise import sqrt
from weft._ops.manipulation_gradients import adjoint, transposed
from weft._ops.matrices import diag
from weft._ops.moments import mean, mean_dtype
from weft._ops.parts import real
from weft._ops.unbroadcast import apply, cast_like, conjugate, fit, reshape_like, shape_of
from weft._registry.avals import Aval, result_dtype
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs, no_gradient
from weft._registry.op import get_op, register_op
from weft._registry.shape_rules import reduced_shape
from weft._registry.shapes import Axis, Shape, axis_tuple
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike

__all__ = ["average", "bincount", "corrcoef", "cov", "digitize", "histogram"]


def _infer_digitize(x: Aval, bins: Aval, *, right: bool) -> Aval:
    del right  # without influence on the shape
    if len(bins.shape) != 1:
        raise ArgumentValueError(f"bins have 1 axis, got shape {bins.shape}")
    return Aval(x.shape, np.dtype(np.int64))


@register_op("digitize", infer=_infer_digitize)
def _digitize(out: Elements, x: Elements, bins: Elements, *, right: bool) -> None:
    np.copyto(out, np.digitize(x, bins, right))


no_gradient("digitize")


def _answer_digitize(x: Elements, bins: Elements, *, right: bool) -> Elements:
    if bins.ndim != 1:
        raise ArgumentValueError("bins have 1 axis")
    return np.digitize(x, bins, right)


answers(_digitize, _answer_digitize)


def _infer_average(x: Aval, weights: Aval, *, axis: Shape, keepdims: bool) -> Aval:
    lengths = tuple(x.shape[i] for i in axis)
    if weights.shape not in (x.shape, lengths):
        raise ArgumentValueError(
            f"weights of shape {weights.shape} fit neither the shape {x.shape} nor its axes {axis}"
        )
    return Aval(reduced_shape(x.shape, axis, keepdims=keepdims), mean_dtype(result_dtype(x, weights), None))


@register_op("average", infer=_infer_average)
def _average(out: Elements, x: Elements, weights: Elements, *, axis: Shape, keepdims: bool) -> None:
    if weights.shape != x.shape:
        weights = weights.reshape([n if i in axis else 1 for i, n in enumerate(x.shape)])
    mean_of: Any = np.average  # its overloads know no options
    np.copyto(out, mean_of(x, axis, np.broadcast_to(weights, x.shape), keepdims=keepdims))


def _infer_cov(x: Aval, *others: Aval, rowvar: bool, ddof: float = 0, scaled: bool = False) -> Aval:
    del ddof, scaled  # without influence on the shape
    count = 0
    seen: set[int] = set()
    for each in (x, *others):
        if len(each.shape) > 2:  # variables and observations
            raise ArgumentValueError(f"variables and observations are at most 2 axes, got shape {each.shape}")
        rows, columns = (*(1,) * (2 - len(each.shape)), *each.shape)
        flipped = not rowvar and len(each.shape) == 2
        count += columns if flipped else rows
        seen.add(rows if flipped else columns)
    if len(seen) > 1:
        raise ArgumentValueError(
            f"as many observations of each: shapes {', '.join(str(e.shape) for e in (x, *others))}"
        )
    shape = () if count == 1 else (count, count)
    return Aval(shape, np.result_type(result_dtype(x, *others), np.float64))


@register_op("cov", infer=_infer_cov)
def _cov(out: Elements, x: Elements, *others: Elements, rowvar: bool, ddof: float = 0, scaled: bool = False) -> None:
    # Like np.cov, which warns of too few observations through the warnings module; all threads share its state.
    rows = [np.array(each, out.dtype, ndmin=2) for each in (x, *others)]
    rows = [row if rowvar or each.ndim < 2 else row.T for row, each in zip(rows, (x, *others), strict=True)]
    samples = np.concatenate(rows)
    count = samples.shape[1]
    samples -= np.add.reduce(samples, axis=1, keepdims=True) / np.float64(count)
    found: Elements = np.dot(samples, samples.T.conj()) / np.float64(max(count - ddof, 0))
    if scaled:
        deviations = np.sqrt(np.real(np.diagonal(found)))
        found = found / deviations[:, None] / deviations
        found.real = np.clip(found.real, -1, 1)
        if found.dtype.kind == "c":
            found.imag = np.clip(found.imag, -1, 1)
    np.copyto(out, found.reshape(out.shape))


def _cov_by_cupy(out: Any, x: Any, *others: Any, rowvar: bool, ddof: float = 0, scaled: bool = False) -> None:
    rows = [each.reshape((1, -1)) if each.ndim <= 1 else each if rowvar else each.T for each in (x, *others)]
    samples = np.concatenate([row.astype(out.dtype, copy=False) for row in rows])
    count = samples.shape[1]
    samples = samples - np.sum(samples, axis=1, keepdims=True) / count
    found = np.dot(samples, np.conj(samples.T)) / float(max(count - ddof, 0))
    if scaled:
        deviations = np.sqrt(np.real(np.diagonal(found)))
        found = found / deviations[:, None] / deviations
        parts = [np.clip(part, -1, 1) for part in ((found.real, found.imag) if found.dtype.kind == "c" else (found,))]
        found = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    np.copyto(out, found.reshape(out.shape))


state(_cov, cupy=_cov_by_cupy)


state(_cov, superlinear=True)


def _counted(x: Elements, *weights: Elements, minlength: int) -> Elements:
    if x.size and x.dtype.kind in "iu" and int(x.max()) == sys.maxsize:  # the next number is -1 to np.bincount
        raise ArgumentValueError(f"bincount() has no place for {sys.maxsize}: results have at most so many elements")
    return np.bincount(x, weights[0] if weights else None, minlength)


EXACT.add(_counted)


def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0) -> NDArray:
    """Return the count of each integer from 0 to the largest in an array of one axis, or the sum of its weights.

    Waits for the arrays.

    Examples
    --------
    >>> import weft
    >>> weft.bincount([0, 2, 2])
    NDArray([1, 0, 2])
    """
    operands = (x,) if weights is None else (x, weights)
    found: NDArray = eager("bincount", _counted, *operands, minlength=minlength)
    return found


def histogram(
    x: ArrayLike,
    /,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[NDArray, NDArray]:
    """Return the counts in each bin and the bins' edges, as `numpy.histogram` does. Waits for the arrays.

    Examples
    --------
    >>> import weft
    >>> counts, edges = weft.histogram([1.0, 2.0, 1.0], bins=[0, 1.5, 3])
    >>> counts
    NDArray([2, 1])
    """
    if isinstance(bins, NDArray):
        bins.wait_to_read()
        bins = bins._storage().copy()

    def count(values: Elements, *weighted: Elements) -> tuple[Elements, Elements]:
        found = np.histogram(values, bins, range, density or None, weighted[0] if weighted else None)
        return found[0], np.array(found[1])

    result: tuple[NDArray, NDArray] = eager("histogram", count, x, *(() if weights is None else (weights,)))
    return result


def digitize(x: ArrayLike, bins: ArrayLike, /, *, right: bool = False) -> NDArray:
    """Return the index of the bin, of sorted edges `bins`, in which each element lies.

    Examples
    --------
    >>> import weft
    >>> weft.digitize([0.5, 1.5], [0.0, 1.0, 2.0])
    NDArray([1, 2])
    """
    x = as_array(x, bins if isinstance(bins, NDArray) else None)
    return one(_digitize, x, as_array(bins, x), right=right)


def average(x: ArrayLike, /, axis: Axis = None, weights: ArrayLike | None = None, *, keepdims: bool = False) -> NDArray:
    """Return the mean along `axis` with `weights`, of the shape of `x` or of the axes'.

    Weights with the sum zero are a ZeroDivisionError, raised by the wait.

    Examples
    --------
    >>> import weft
    >>> weft.average([1.0, 3.0], weights=[3, 1]).item()
    1.5
    """
    x = as_array(x, weights if isinstance(weights, NDArray) else None)
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    return one(_average, x, as_array(weights, x), axis=axis_tuple(axis, x.ndim), keepdims=keepdims)


def cov(
    x: ArrayLike,
    y: ArrayLike | None = None,
    /,
    *,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
) -> NDArray:
    """Return the covariances of variables, each a row of `x` (a column without `rowvar`); rows of `y` are further ones.

    Sums are divided by the number of observations less `ddof`, which is 1, or 0 for `bias`.

    Examples
    --------
    >>> import weft
    >>> print(weft.cov([[0.0, 2.0], [2.0, 0.0]]))
    [[ 2. -2.]
     [-2.  2.]]
    """
    correction = ddof if ddof is not None else 0 if bias else 1
    return one(_cov, *_samples(x, y), rowvar=rowvar, ddof=correction)


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, /, *, rowvar: bool = True) -> NDArray:
    """Return the correlation coefficients of variables, laid out as for `cov`.

    Examples
    --------
    >>> import weft
    >>> print(weft.corrcoef([[0.0, 2.0], [2.0, 0.0]]).round(6))
    [[ 1. -1.]
     [-1.  1.]]
    """
    return one(_cov, *_samples(x, y), rowvar=rowvar, ddof=1, scaled=True)


def _samples(x: ArrayLike, y: ArrayLike | None) -> tuple[NDArray, ...]:
    x = as_array(x, y if isinstance(y, NDArray) else None)
    return (x,) if y is None else (x, as_array(y, x))


@gradient_of("average", inputs=[0, 1], outputs=[0])
def _of_average(node: Any, grads: Any) -> Any:
    x, weights = node.inputs
    axis = node.attributes["axis"]
    shape = shape_of(x)
    y, g = node.outputs[0], grads[0]
    if not node.attributes.get("keepdims"):
        y, g = apply("expand_dims", y, axes=axis), apply("expand_dims", g, axes=axis)
    w = weights
    if shape_of(weights) != shape:
        w = apply("reshape", weights, shape=tuple(n if i in axis else 1 for i, n in enumerate(shape)))
    spread = apply("broadcast_to", w, shape=shape)
    total = apply("sum", spread, axis=axis, keepdims=True)
    first = fit(g * conjugate(spread / total), x) if needs(node, 0) else None
    if not needs(node, 1):
        return first, None
    return first, reshape_like(fit(g * conjugate((x - y) / total), w), weights)


@gradient_of("cov", inputs=None, outputs=[0])
def _of_cov(node: Any, grads: Any) -> Any:
    """Compute the gradient of the centred rows times their adjoint; if scaled, that of the quotients first."""
    rowvar = node.attributes["rowvar"]
    parts = [_as_rows(x, rowvar=rowvar) for x in node.inputs]
    counts = [shape_of(part)[0] for part in parts]
    samples = parts[0] if len(parts) == 1 else get_op("concat")(*parts, axis=0)
    number = shape_of(samples)[1]
    centred = samples - apply("mean", samples, axis=(1,), keepdims=True)
    divisor = max(number - node.attributes.get("ddof", 0), 0)
    size = sum(counts)
    g = apply("reshape", grads[0], shape=(size, size))
    if node.attributes.get("scaled"):
        g = _unscaled(g, centred, divisor)
    turned: Any = get_op("matmul")(g + adjoint(g), centred)
    by_centred = turned / divisor
    by_samples = by_centred - apply("mean", by_centred, axis=(1,), keepdims=True)
    found: list[Any] = []
    start = 0
    for x, count in zip(node.inputs, counts, strict=True):
        part = apply("narrow", by_samples, axis=0, start=start, length=count)
        start += count
        if not rowvar and len(shape_of(x)) == 2:  # variables in columns
            part = transposed(part)
        found.append(cast_like(reshape_like(part, x), x))
    return tuple(found)


def _as_rows(x: Any, *, rowvar: bool) -> Any:
    shape = shape_of(x)
    if len(shape) == 2:  # variables and observations
        return x if rowvar else transposed(x)
    return apply("reshape", x, shape=(1, shape[0] if shape else 1))


def _unscaled(g: Any, centred: Any, divisor: float) -> Any:
    """Return the gradient of covariances, given that of c[i, j] / (d[i] d[j]) with d the roots of their diagonal."""
    product: Any = get_op("matmul")(centred, adjoint(centred))
    covariance = product / divisor
    variances = real(apply("diagonal", covariance, offset=0, axis1=0, axis2=1))
    deviations = sqrt(variances)
    rows = apply("expand_dims", deviations, axes=(1,))
    columns = apply("expand_dims", deviations, axes=(0,))
    scaled = g / (rows * columns)
    shares = real(conjugate(g) * covariance) / (rows * columns)
    by_variance = -(apply("sum", shares, axis=(1,)) + apply("sum", shares, axis=(0,))) / (2 * variances)
    return scaled + cast_like(diag(by_variance), scaled)
