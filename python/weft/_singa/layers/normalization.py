"""Normalisation: of channels over a batch, of elements along axes, of groups of channels."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._registry.brief import brief
from weft._singa.layers.base import Lazy
from weft._singa.networks import BatchNormHandle, batchnorm_2d
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray


class BatchNorm2d(Lazy):
    """Each channel less its mean, divided by its standard deviation, scaled and shifted by numbers that are learned.

    While layers train, mean and variance are the batch's, and the running averages follow them in place; otherwise they are
    the running averages.

    Parameters
    ----------
    *args
        In the older form: the number of channels, and the momentum.
    momentum : float, default: 0.9
        The share of the batch in the running averages at each step; the rest of them is kept.
    eps : float, default: 1e-5
        A number added to the variance.

    Attributes
    ----------
    scale, bias : Tensor
        Parameters, a number for each channel.
    running_mean, running_var : Tensor
        States, a number for each channel.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> norm = layer.BatchNorm2d()
    >>> norm(weft.ones((2, 3, 4, 4), "float32")).shape
    (2, 3, 4, 4)
    >>> list(norm.get_states())
    ['scale', 'bias', 'running_mean', 'running_var']
    """

    _takes: ClassVar[str] = "(N, C, ...)"

    def __init__(self, *args: Any, momentum: float = 0.9, eps: float = 1e-5) -> None:
        super().__init__()
        name = type(self).__name__
        if len(args) > 2:  # channels, momentum
            raise ArgumentTypeError(f"{name} takes channels and momentum, and was given {len(args)} arguments")
        self.channels: int | None = args[0] if args else None
        self.momentum: float = args[1] if len(args) > 1 else momentum
        self.eps = eps
        if not 0 <= self.momentum <= 1:
            raise ArgumentValueError(f"{name}: momentum is between 0 and 1, not {self.momentum}")

    def initialize(self, x: NDArray) -> None:
        """Make the parameters for so many channels."""
        if not self._has_axes(x):
            raise ShapeError(f"{self._called()} takes {self._takes}, and was given the shape {x.shape}")
        if self.channels not in {None, x.shape[1]}:
            raise self._refuse(f"{self.channels} channels", x, "its scale", (self.channels or 0,))
        self.channels = x.shape[1]
        shape = (self.channels,)
        self.scale = self._parameter(shape, x, lambda scale: scale.set_value(1.0))
        self.bias = self._parameter(shape, x)
        self.running_mean = self._state(shape, x)
        self.running_var = self._state(shape, x, lambda variance: variance.set_value(1.0))

    def forward(self, x: NDArray) -> NDArray:
        """Return the normalised channels."""
        if not self._has_axes(x) or x.shape[1] != self.channels:
            raise self._refuse(f"{self._takes} of {self.channels} channels", x, "its scale", self.scale.shape)
        handle = BatchNormHandle(self.momentum, eps=self.eps)
        return batchnorm_2d(handle, x, self.scale, self.bias, self.running_mean, self.running_var)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...

    def _has_axes(self, x: NDArray) -> bool:
        """Return whether there are a batch and channels."""
        return x.ndim >= 2


class BatchNorm1d(BatchNorm2d):
    """`BatchNorm2d` for rows ``(N, C)``, or sequences ``(N, C, L)``.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.BatchNorm1d()(weft.ones((2, 3), "float32")).shape
    (2, 3)
    """

    _takes = "(N, C) or (N, C, L)"

    def _has_axes(self, x: NDArray) -> bool:
        return x.ndim in {2, 3}


class LayerNorm(Lazy):
    """Elements along the last axes less their mean, divided by their standard deviation, scaled and shifted.

    Parameters
    ----------
    shape : int or sequence of int, optional
        The lengths of the axes that are normalised together; by default the last axis alone, of any length.
    eps : float, default: 1e-5
        A number added to the variance.
    bias : bool, default: True
        Whether numbers are added that are learned.

    Attributes
    ----------
    scale : Tensor
        A parameter, a number for each of these elements, ones at first.
    bias : Tensor or None
        Likewise, zeros at first.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.LayerNorm(eps=0.0)(weft.asarray([[1.0, 3.0], [0.0, 8.0]])).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """

    def __init__(self, shape: int | Sequence[int] | None = None, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        one = (shape,) if isinstance(shape, int) else shape
        self.shape: tuple[int, ...] | None = None if one is None else tuple(_count("LayerNorm: shape", n) for n in one)
        if self.shape == ():
            raise ArgumentValueError("LayerNorm: shape has the lengths of one axis at least, and is empty")
        self.eps, self.has_bias = eps, bool(bias)

    def initialize(self, x: NDArray) -> None:
        """Make the parameters for rows of this length."""
        if not x.shape:
            raise ShapeError(f"{self._called()} takes rows, and was given a scalar")
        shape = x.shape[-1:] if self.shape is None else self.shape
        if x.shape[-len(shape) :] != shape:
            raise self._refuse(f"elements of the shape {shape} behind", x, "its scale", shape)
        self.shape = shape
        self.scale = self._parameter(shape, x, lambda scale: scale.set_value(1.0))
        self.bias = self._parameter(shape, x) if self.has_bias else None

    def forward(self, x: NDArray) -> NDArray:
        """Return the normalised elements."""
        shape = self.scale.shape
        if x.shape[-len(shape) :] != shape:
            raise self._refuse(f"elements of the shape {shape} behind", x, "its scale", shape)
        bias = namespace.zeros(shape, self.scale.dtype, device=x.device) if self.bias is None else self.bias
        return nn.layer_norm(x, self.scale, bias, axis=tuple(range(-len(shape), 0)), eps=self.eps)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class GroupNorm(Lazy):
    """Groups of channels less their mean, divided by their standard deviation; then each channel is scaled and shifted.

    Parameters
    ----------
    num_groups : int
        Into how many groups the channels fall.
    num_channels : int, optional
        How many channels there are; by default those of the first input.
    eps : float, default: 1e-5
        A number added to the variance.

    Attributes
    ----------
    scale, bias : Tensor
        Parameters, a number for each channel.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.GroupNorm(2)(weft.ones((1, 4, 3, 3), "float32")).shape
    (1, 4, 3, 3)
    """

    def __init__(self, num_groups: int, num_channels: int | None = None, eps: float = 1e-5) -> None:
        super().__init__()
        self.groups = _count("GroupNorm: num_groups", num_groups)
        self.channels = None if num_channels is None else _count("GroupNorm: num_channels", num_channels)
        self.eps = eps
        self._check_groups(self.channels)

    def _check_groups(self, channels: int | None) -> None:
        if channels is not None and channels % self.groups:
            raise ArgumentValueError(f"{self._called()}: {channels} channels do not fall into {self.groups} groups")

    def initialize(self, x: NDArray) -> None:
        """Make the parameters for so many channels."""
        if x.ndim < 2:  # a batch and channels
            raise ShapeError(f"{self._called()} takes (N, C, ...), and was given the shape {x.shape}")
        if self.channels not in {None, x.shape[1]}:
            raise self._refuse(f"{self.channels} channels", x, "its scale", (self.channels or 0,))
        self._check_groups(x.shape[1])
        self.channels = x.shape[1]
        self.scale = self._parameter((self.channels,), x, lambda scale: scale.set_value(1.0))
        self.bias = self._parameter((self.channels,), x)

    def forward(self, x: NDArray) -> NDArray:
        """Return the normalised channels."""
        if x.ndim < 2 or x.shape[1] != self.channels:
            raise self._refuse(f"{self.channels} channels", x, "its scale", self.scale.shape)
        count = math.prod(x.shape[1:]) // self.groups
        ones, zeros = (fill(count, x.dtype, device=x.device) for fill in (namespace.ones, namespace.zeros))
        rows = x.reshape((x.shape[0], self.groups, count))
        normal = nn.layer_norm(rows, ones, zeros, eps=self.eps).reshape(x.shape)
        along = (x.shape[1],) + (1,) * (x.ndim - 2)
        return normal * self.scale.reshape(along) + self.bias.reshape(along)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < 1:
        raise ArgumentValueError(f"{name} is a whole number of at least 1, not {brief(value)}")
    return operator.index(value)
