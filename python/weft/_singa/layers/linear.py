"""Layers that multiply matrices, and that look rows up."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from weft._numpy import namespace
from weft._registry.brief import brief
from weft._singa.layers.base import Lazy
from weft._singa.networks import embedding
from weft._singa.products import gemm
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray
    from weft._singa.models.tensors import Tensor


class Linear(Lazy):
    """Rows times a matrix, plus a vector: ``x @ W + b``.

    Parameters
    ----------
    out_features : int
        The length of result rows; or, followed by another number, that of input rows: ``Linear(784, 10)``.
    *args
        In that older form: the length of result rows, and whether there is a bias.
    bias : bool, default: True
        Whether there is a vector to add.

    Attributes
    ----------
    W : Tensor
        ``(in_features, out_features)``, drawn with Glorot's variance.
    b : Tensor or None
        ``(out_features,)``, zeros at first.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.Linear(10)(weft.ones((4, 784))).shape
    (4, 10)
    """

    def __init__(self, out_features: int, *args: Any, bias: bool = True, **kwargs: Any) -> None:
        super().__init__()
        _refuse_unknown("Linear", kwargs)
        self.in_features: int | None = None
        if args:
            self.in_features, out_features = out_features, args[0]
        self.out_features = out_features
        lengths: tuple[tuple[str, object], ...] = (("in_features", self.in_features), ("out_features", out_features))
        for name, length in lengths:
            if length is not None and (not isinstance(length, SupportsIndex) or operator.index(length) < 1):
                raise ArgumentValueError(f"Linear: {name} is a whole number of at least 1, not {brief(length)}")
        self.bias: bool = bool(args[1]) if len(args) > 1 else bias

    def initialize(self, x: NDArray) -> None:
        """Make the parameters for rows of this length."""
        if not x.shape:
            raise ShapeError(f"{self._called()} takes rows, and was given a scalar")
        if self.in_features not in {None, x.shape[-1]}:
            raise self._refuse(f"rows of {self.in_features}", x, "its W", (self.in_features or 0, self.out_features))
        self.in_features = x.shape[-1]
        spread = math.sqrt(2.0 / (self.in_features + self.out_features))
        self.W = self._parameter((self.in_features, self.out_features), x, lambda w: w.gaussian(0.0, spread))
        self.b = self._parameter((self.out_features,), x) if self.bias else None

    def forward(self, x: NDArray) -> NDArray:
        """Return ``x @ W + b``."""
        if x.ndim == 0 or x.shape[-1] != self.W.shape[0]:
            raise self._refuse(f"rows of {self.W.shape[0]}", x, "its W", self.W.shape)
        y = namespace.matmul(x, self.W)
        return y if self.b is None else y + self.b

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class Gemm(Lazy):
    """A matrix product with factors: ``alpha * A @ B + beta * C``, where `B` is the weight and `C` the bias.

    Parameters
    ----------
    nb_kernels : int
        The length of result rows.
    alpha, beta : float, default: 1
        The factors.
    transA : bool, default: False
        Whether the input is transposed.
    transB : bool, default: True
        Whether the weight is: then it has a row for each result.
    bias : bool, default: True
        Whether there is a bias.
    bias_shape : sequence of int, optional
        Its shape, ``(1, nb_kernels)`` by default.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.Gemm(5)(weft.ones((2, 3))).shape
    (2, 5)
    """

    def __init__(
        self,
        nb_kernels: int,
        alpha: float = 1.0,
        beta: float = 1.0,
        transA: bool = False,
        transB: bool = True,
        bias: bool = True,
        bias_shape: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.nb_kernels, self.alpha, self.beta = nb_kernels, alpha, beta
        self.transA, self.transB = int(transA), int(transB)
        self.bias = bias
        self.bias_shape = tuple(bias_shape) if bias_shape else (1, nb_kernels)

    def initialize(self, x: NDArray) -> None:
        """Make the parameters for inputs of this shape."""
        if x.ndim != 2:  # a matrix
            raise ShapeError(f"{self._called()} takes a matrix, and was given the shape {x.shape}")
        self.in_features = x.shape[0] if self.transA else x.shape[1]
        shape = (self.in_features, self.nb_kernels)
        spread = math.sqrt(2.0 / sum(shape))
        self.W = self._parameter(shape[::-1] if self.transB else shape, x, lambda w: w.gaussian(0.0, spread))
        self.b = self._parameter(self.bias_shape, x) if self.bias else None

    def forward(self, x: NDArray) -> NDArray:
        """Return ``alpha * A @ B + beta * C``."""
        if x.ndim != 2 or x.shape[0 if self.transA else 1] != self.in_features:  # a matrix
            raise self._refuse(f"{self.in_features} features", x, "its W", self.W.shape)
        return gemm(x, self.W, self.b, self.alpha, self.beta, self.transA, self.transB)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class Embedding(Lazy):
    """Rows of a matrix that indices name.

    Parameters
    ----------
    input_dim : int
        How many rows there are.
    output_dim : int
        How long each is.
    initializer : {"gaussian", "uniform"}, default: "gaussian"
        How they are drawn: standard normal, or between -1 and 1.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.Embedding(100, 8)(weft.asarray([[1, 5, 7]])).shape
    (1, 3, 8)
    """

    W: Tensor

    def __init__(self, input_dim: int, output_dim: int, initializer: str = "gaussian") -> None:
        super().__init__()
        if initializer not in {"gaussian", "uniform"}:
            raise ArgumentValueError(f"Embedding: initializer is 'gaussian' or 'uniform', not {initializer!r}")
        self.input_dim, self.output_dim, self.initializer = input_dim, output_dim, initializer

    def initialize(self, x: NDArray) -> None:
        """Make the matrix beside the indices."""
        self.W = self._parameter(  # pyright: ignore[reportConstantRedefinition] # SINGA's name, of no constant
            (self.input_dim, self.output_dim),
            x.astype("float32") if x.dtype.kind != "f" else x,
            lambda w: w.uniform(-1.0, 1.0) if self.initializer == "uniform" else w.gaussian(0.0, 1.0),
        )

    def from_pretrained(self, W: Any, freeze: bool = True) -> None:
        """Overwrite the matrix, and train it no further if `freeze`."""
        if not self._initialized:
            self._prepare((namespace.zeros(1, "int32"),), {})
        self.set_states({"W": W})
        self.W.requires_grad = not freeze

    def forward(self, x: NDArray) -> NDArray:
        """Return the rows."""
        return embedding(x, self.W)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


def _refuse_unknown(name: str, options: dict[str, Any]) -> None:
    if options:
        raise ArgumentTypeError(f"{name} has no option {', '.join(map(repr, options))}")
