"""Attention: queries that weigh values by how well their keys fit. Composed of other functions, with their gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import as_array
from weft._nn.dropout import dropout as _dropped
from weft._nn.softmax import softmax
from weft._ops.elementwise import greater_equal
from weft._ops.manipulation import matrix_transpose
from weft._ops.products import matmul
from weft._ops.searching import where
from weft._ops.spacing import arange
from weft._registry.shapes import as_number
from weft.errors import ArgumentTypeError, ShapeError

if TYPE_CHECKING:
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._ops.random import Generator


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    dropout: float = 0.0,
    generator: Generator | None = None,
) -> NDArray:
    """Return, for each query, the mean of the values, weighted by the softmax of its products with the keys.

    ``softmax(scale * query @ key.T + mask) @ value``, where axes before the last two are batches and heads, and broadcast.

    Parameters
    ----------
    query : array_like
        ``(..., L, E)``: L queries of length E.
    key, value : array_like
        ``(..., S, E)`` and ``(..., S, V)``: S keys and their values.
    mask : array_like, optional
        Broadcast to ``(..., L, S)``: booleans, True where a query looks at a key; or numbers, which are added to the products.
        A query that looks at no key gets the plain mean of the values.
    is_causal : bool, default: False
        Whether query i looks at the keys up to i alone.
    scale : float, optional
        The factor of the products, by default ``1 / sqrt(E)``.
    dropout : float, default: 0
        The probability of a weight to become 0, the others being scaled.
    generator : weft.random.Generator, optional
        The source of these draws; needed with `dropout`.

    Returns
    -------
    NDArray
        ``(..., L, V)``.

    Raises
    ------
    ShapeError
        If queries and keys are of different lengths, or the numbers of keys and of values differ.

    Examples
    --------
    >>> import weft
    >>> x = weft.asarray([[1.0, 0.0], [0.0, 1.0]])
    >>> weft.nn.scaled_dot_product_attention(x, x, x, is_causal=True).round(2)
    NDArray([[1.  , 0.  ],
             [0.33, 0.67]])
    """
    q, k, v = (as_array(each) for each in (query, key, value))
    if q.shape[-1:] != k.shape[-1:] or k.shape[-2:-1] != v.shape[-2:-1] or min(q.ndim, k.ndim, v.ndim) < 2:  # a matrix
        raise ShapeError(
            "scaled_dot_product_attention takes query (..., L, E), key (..., S, E) and value (..., S, V), and was given "
            f"the shapes {q.shape}, {k.shape} and {v.shape}"
        )
    length, keys, size = q.shape[-2], k.shape[-2], q.shape[-1]
    factor = 1 / math.sqrt(max(size, 1)) if scale is None else as_number(scale, "scale")
    products = matmul(q * factor, matrix_transpose(k))
    if is_causal:
        products = _masked(products, greater_equal(arange(length)[:, None], arange(keys)))
    if mask is not None:
        given = as_array(mask)
        products = _masked(products, given) if given.dtype.kind == "b" else products + given.astype(products.dtype)
    weights: Any = softmax(products, axis=-1)
    if dropout:
        if generator is None:
            raise ArgumentTypeError(
                "scaled_dot_product_attention: dropout needs a generator, weft.random.default_rng()"
            )
        weights = _dropped(weights, dropout, generator)
    return matmul(weights, v)


def _masked(products: Any, mask: Any) -> Any:
    """Return products, those that do not count being so small that their weights are 0 beside any other."""
    return where(mask, products, np.asarray(-0.7 * np.finfo(products.dtype).max, products.dtype))
