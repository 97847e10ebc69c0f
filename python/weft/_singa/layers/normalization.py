"""Batch normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._singa.layers.base import Lazy
from weft._singa.networks import BatchNormHandle, batchnorm_2d
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
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
        How much of the running averages is kept at each step.

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

    def __init__(self, *args: Any, momentum: float = 0.9) -> None:
        super().__init__()
        if len(args) > 2:  # channels, momentum
            raise ArgumentTypeError(f"BatchNorm2d takes channels and momentum, and was given {len(args)} arguments")
        self.channels: int | None = args[0] if args else None
        self.momentum: float = args[1] if len(args) > 1 else momentum
        if not 0 <= self.momentum <= 1:
            raise ArgumentValueError(f"BatchNorm2d: momentum is between 0 and 1, not {self.momentum}")

    def initialize(self, x: NDArray) -> None:
        """Make the parameters for so many channels."""
        if x.ndim < 2:  # a batch and channels
            raise ShapeError(f"{self._called()} takes (N, C, ...), and was given the shape {x.shape}")
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
        if x.ndim < 2 or x.shape[1] != self.channels:
            raise self._refuse(f"{self.channels} channels", x, "its scale", self.scale.shape)
        handle = BatchNormHandle(self.momentum)
        return batchnorm_2d(handle, x, self.scale, self.bias, self.running_mean, self.running_var)
