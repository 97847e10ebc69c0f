"""Layers without parameters: each is an operator of `weft.autograd`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._singa import elementwise, losses, names, networks, shaping, softmaxes
from weft._singa.layers.base import Own
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray


class ReLU(Own):
    """The positive elements, and 0 for the others."""

    def forward(self, x: NDArray) -> NDArray:
        """Return the positive elements, and 0 for the others."""
        return elementwise.relu(x)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class Sigmoid(Own):
    """``1 / (1 + exp(-x))``."""

    def forward(self, x: NDArray) -> NDArray:
        """Return ``1 / (1 + exp(-x))``."""
        return elementwise.sigmoid(x)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class Tanh(Own):
    """The hyperbolic tangent."""

    def forward(self, x: NDArray) -> NDArray:
        """Return the hyperbolic tangent."""
        return namespace.tanh(x)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class GELU(Own):
    """Each element times the probability that a standard normal variable is smaller.

    Parameters
    ----------
    approximate : {"none", "tanh"}, default: "none"
        Whether that probability is exact, or ``(1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``, as in GPT-2.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> x = weft.asarray([-1.0, 2.0])
    >>> layer.GELU()(x).round(4), layer.GELU("tanh")(x).round(4)
    (NDArray([-0.1587,  1.9545]), NDArray([-0.1588,  1.9546]))
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        if approximate not in {"none", "tanh"}:
            raise ArgumentValueError(f"GELU: approximate is 'none' or 'tanh', not {approximate!r}")
        self.approximate = approximate

    def forward(self, x: NDArray) -> NDArray:
        """Return the elements, weighted."""
        if self.approximate == "none":
            return nn.gelu(x)
        return 0.5 * x * (1 + namespace.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))))

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class Add(Own):
    """The sum of two arrays."""

    _arrays_first = 2

    def forward(self, a: NDArray, b: NDArray) -> NDArray:
        """Return the sum."""
        return names.add(a, b)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, a: NDArray, b: NDArray) -> NDArray: ...


class Flatten(Own):
    """A matrix: the axes before `axis` as rows, the others as columns."""

    def __init__(self, axis: int = 1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: NDArray) -> NDArray:
        """Return the matrix."""
        return shaping.flatten(x, self.axis)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class SoftMax(Own):
    """Exponentials of rows, divided by their sums."""

    def forward(self, x: NDArray) -> NDArray:
        """Return probabilities."""
        return softmaxes.softmax(x)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class SoftMaxCrossEntropy(Own):
    """The mean cross entropy of logits with labels: classes, or rows of probabilities.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.SoftMaxCrossEntropy()(weft.zeros((2, 4)), weft.asarray([0, 3])).round(4)
    NDArray([1.3863])
    """

    _arrays_first = 2

    def forward(self, x: NDArray, t: NDArray) -> NDArray:
        """Return the loss, of shape ``(1,)``."""
        return losses.softmax_cross_entropy(x, t)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray, t: NDArray) -> NDArray: ...


class MeanSquareError(Own):
    """The mean of the squares of differences."""

    _arrays_first = 2

    def forward(self, x: NDArray, t: NDArray) -> NDArray:
        """Return the loss, of shape ``(1,)``."""
        return losses.mse_loss(x, t)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray, t: NDArray) -> NDArray: ...


class CrossEntropy(Own):
    """The mean cross entropy of probabilities with rows of labels."""

    _arrays_first = 2

    def forward(self, x: NDArray, t: NDArray) -> NDArray:
        """Return the loss, of shape ``(1,)``."""
        return losses.cross_entropy(x, t)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray, t: NDArray) -> NDArray: ...


class BinaryCrossEntropy(Own):
    """The cross entropy of probabilities with labels between 0 and 1."""

    _arrays_first = 2

    def forward(self, x: NDArray, t: NDArray) -> NDArray:
        """Return the loss, of shape ``(1,)``."""
        return losses.binary_cross_entropy(x, t)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray, t: NDArray) -> NDArray: ...


class Dropout(Own):
    """Elements that become 0 by chance while layers train, the others being scaled by ``1 / (1 - ratio)``.

    Parameters
    ----------
    ratio : float, default: 0.5
        The probability of each to become 0.
    """

    def __init__(self, ratio: float = 0.5) -> None:
        super().__init__()
        if not 0 <= ratio < 1:
            raise ArgumentValueError(f"Dropout: ratio is a probability from 0 to less than 1, not {ratio}")
        self.ratio = ratio

    def forward(self, x: NDArray) -> NDArray:
        """Return the elements, some of them 0; each call, and each replay, draws anew."""
        return networks.dropout(x, ratio=self.ratio)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class Cat(Own):
    """Arrays one behind the other along an axis."""

    _arrays_first = 0

    def __init__(self, axis: int = 0) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, xs: Sequence[NDArray]) -> NDArray:
        """Return the arrays as one."""
        return shaping.cat(xs, self.axis)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, xs: Sequence[NDArray]) -> NDArray: ...


class Reshape(Own):
    """The elements in another shape."""

    def forward(self, x: NDArray, shape: Sequence[int]) -> NDArray:
        """Return the elements in that shape."""
        return shaping.reshape(x, shape)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray, shape: Sequence[int]) -> NDArray: ...
