"""Attention of several heads."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._registry.brief import brief
from weft._singa.layers.base import Lazy
from weft._singa.layers.linear import Linear
from weft._singa.models.generators import generator_of
from weft._tape.modes import TRAINING
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from weft._core import NDArray


class MultiHeadAttention(Lazy):
    """Attention of several heads between sequences ``(N, T, F)``.

    Queries, keys and values are projections of the inputs, cut into heads; each head attends by itself
    (`weft.nn.scaled_dot_product_attention`), and their results are joined and projected again.

    Called as ``attention(x)`` the sequences attend to themselves, as ``attention(query, key, value)`` to others; `value` is `key`
    by default. ``mask=`` and ``is_causal=`` are those of `weft.nn.scaled_dot_product_attention`, with a mask for ``(N, heads, T, S)``.

    Parameters
    ----------
    num_heads : int
        How many heads there are; or, in front of it, the number of features: ``MultiHeadAttention(64, 8)``.
    *args
        In that form: the number of heads.
    dropout : float, default: 0
        The probability of a weight of a head to become 0 while layers train.
    bias : bool, default: True
        Whether projections add a vector.

    Attributes
    ----------
    q, k, v, out : Linear
        The projections.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> attention = layer.MultiHeadAttention(2)
    >>> attention(weft.ones((1, 5, 8)), is_causal=True).shape
    (1, 5, 8)
    >>> list(attention.get_params())
    ['q.W', 'q.b', 'k.W', 'k.b', 'v.W', 'v.b', 'out.W', 'out.b']
    """

    def __init__(self, num_heads: int, *args: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        if len(args) > 1:
            raise ArgumentTypeError(
                f"MultiHeadAttention takes features and heads, and was given {1 + len(args)} numbers"
            )
        self.features: int | None = num_heads if args else None
        self.heads: int = args[0] if args else num_heads
        for name, count in (("num_heads", self.heads), ("features", 1 if self.features is None else self.features)):
            given: object = count
            if not isinstance(given, SupportsIndex) or operator.index(given) < 1:
                raise ArgumentValueError(
                    f"MultiHeadAttention: {name} is a whole number of at least 1, not {brief(count)}"
                )
        if not 0 <= dropout < 1:
            raise ArgumentValueError(
                f"MultiHeadAttention: dropout is a probability from 0 to less than 1, not {dropout}"
            )
        self.dropout, self.bias = dropout, bool(bias)
        self._check_heads(self.features)

    def _check_heads(self, features: int | None) -> None:
        if features is not None and features % self.heads:
            raise ArgumentValueError(f"{self._called()}: {features} features do not fall into {self.heads} heads")

    def initialize(self, query: NDArray, *others: Any, **named: Any) -> None:
        """Make the projections for so many features."""
        del others, named
        self._check_sequences("query", query)
        if self.features not in {None, query.shape[-1]}:
            raise ShapeError(
                f"{self._called()} takes sequences of {self.features} features, and was given the shape {query.shape}"
            )
        self._check_heads(query.shape[-1])
        self.features = query.shape[-1]
        self.q, self.k, self.v, self.out = (Linear(self.features, bias=self.bias) for _ in range(4))

    def forward(
        self,
        query: NDArray,
        key: NDArray | None = None,
        value: NDArray | None = None,
        mask: NDArray | None = None,
        *,
        is_causal: bool = False,
    ) -> NDArray:
        """Return the result of each query, ``(N, T, F)``."""
        key = query if key is None else key
        value = key if value is None else value
        for name, x in (("query", query), ("key", key), ("value", value)):
            self._check_sequences(name, x)
        q, k, v = self._split(self.q(query)), self._split(self.k(key)), self._split(self.v(value))
        drops = self.dropout if TRAINING.get() else 0.0
        found = nn.scaled_dot_product_attention(
            q,
            k,
            v,
            mask,
            is_causal=is_causal,
            dropout=drops,
            generator=generator_of(query.device) if drops else None,
        )
        batch, _, length, _ = found.shape
        joined = namespace.transpose(found, (0, 2, 1, 3)).reshape((batch, length, -1))
        return self.out(joined)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(
            self,
            query: NDArray,
            key: NDArray | None = None,
            value: NDArray | None = None,
            mask: NDArray | None = None,
            *,
            is_causal: bool = False,
        ) -> NDArray: ...

    def _check_sequences(self, name: str, x: NDArray) -> None:
        if x.ndim != 3:  # a batch, steps, features
            raise ShapeError(f"{self._called()} takes sequences (N, T, F), and {name} has the shape {x.shape}")

    def _split(self, x: NDArray) -> NDArray:
        """Return ``(N, heads, T, F / heads)`` of sequences."""
        batch, length, features = x.shape
        apart = x.reshape((batch, length, self.heads, features // self.heads))
        return namespace.transpose(apart, (0, 2, 1, 3))
