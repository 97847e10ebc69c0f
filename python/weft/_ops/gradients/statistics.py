"""Rules of weighted means and of covariances."""

from __future__ import annotations

from typing import Any

import weft._ops.elementwise as e
from weft._ops.gradients.products import adjoint, transposed
from weft._ops.parts import real
from weft._ops.unbroadcast import apply, cast_like, conjugate, fit, reshape_like, shape_of
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op


@gradient_of("average", inputs=[0, 1], outputs=[0])
def _average(node: Any, grads: Any) -> Any:
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
def _cov(node: Any, grads: Any) -> Any:
    """Of the centred rows times their adjoint; scaled, first of the quotients by deviations."""
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
    deviations = e.sqrt(variances)
    rows = apply("expand_dims", deviations, axes=(1,))
    columns = apply("expand_dims", deviations, axes=(0,))
    scaled = g / (rows * columns)
    shares = real(conjugate(g) * covariance) / (rows * columns)
    by_variance = -(apply("sum", shares, axis=(1,)) + apply("sum", shares, axis=(0,))) / (2 * variances)
    from weft._ops.matrices import diag  # noqa: PLC0415 - the other way round at import

    return scaled + cast_like(diag(by_variance), scaled)
