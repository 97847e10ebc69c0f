"""Convolutions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft._nn import namespace as nn
from weft._singa.layers.base import Lazy
from weft._singa.layers.windows import check_mode, padding_of, pair, same_padding
from weft._singa.networks import sides
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from weft._core import NDArray
    from weft._singa.layers.windows import Pair

_IMAGES = 4  # axes: images, channels, rows, columns
#: Keywords of SINGA's for cuDNN, which choose nothing here.
_CUDNN = {"cudnn_prefer", "workspace_MB_limit"}


class Conv2d(Lazy):
    """A convolution of images ``(N, C, H, W)`` with kernels that are learned.

    Parameters
    ----------
    nb_kernels : int
        How many channels the results have.
    kernel_size : int or pair of int
        Rows and columns of a kernel.
    *args
        In the older form ``Conv2d(in_channels, nb_kernels, kernel_size, stride, padding)``: the rest of these.
    stride : int or pair of int, default: 1
        How far kernels move.
    padding : int, pair, or (above, below, left, right), default: 0
        Zeros around the images.
    dilation : int or pair of int, default: 1
        How far apart the pixels are that a kernel looks at.
    group : int, default: 1
        Into how many groups the channels fall, each with kernels of its own.
    bias : bool, default: True
        Whether a number is added to each channel.
    pad_mode : {"NOTSET", "SAME_UPPER", "SAME_LOWER"}, default: "NOTSET"
        Whether results have the size of the images, divided by the stride: an odd zero comes behind, or before.
    activation : {"NOTSET", "RELU"}, default: "NOTSET"
        Whether negative results become 0.

    Attributes
    ----------
    W : Tensor
        ``(nb_kernels, in_channels / group, rows, columns)``.
    b : Tensor or None
        ``(nb_kernels,)``, zeros at first.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.Conv2d(20, 5, activation="RELU")(weft.ones((2, 1, 28, 28), "float32")).shape
    (2, 20, 24, 24)
    >>> layer.Conv2d(3, 8, 3, pad_mode="SAME_UPPER")(weft.ones((1, 3, 9, 9), "float32")).shape
    (1, 8, 9, 9)
    """

    def __init__(
        self,
        nb_kernels: int,
        kernel_size: Pair,
        *args: Any,
        stride: Pair = 1,
        padding: Pair = 0,
        dilation: Pair = 1,
        group: int = 1,
        bias: bool = True,
        pad_mode: str = "NOTSET",
        activation: str = "NOTSET",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        unknown = sorted(set(kwargs) - _CUDNN)
        if unknown or len(args) > 3:  # kernel size, stride, padding
            extra = ", ".join(map(repr, unknown or args[3:]))
            raise ArgumentTypeError(f"Conv2d has no option {extra}")
        self.in_channels: int | None = None
        if args:
            self.in_channels, nb_kernels, kernel_size = nb_kernels, kernel_size, args[0]  # type: ignore[assignment] # an int there
        if len(args) > 1:
            stride = args[1]
        if len(args) > 2:
            padding = args[2]
        self.nb_kernels, self.group, self.bias = nb_kernels, group, bias
        self.kernel_size, self.stride = pair("kernel_size", kernel_size), pair("stride", stride)
        self.dilation, self.padding = pair("dilation", dilation), padding_of(padding)
        self.pad_mode, self.activation = check_mode(pad_mode), activation
        if activation not in {"NOTSET", "RELU"}:
            raise ArgumentValueError(f"Conv2d: activation is 'NOTSET' or 'RELU', not {activation!r}")
        if group < 1 or nb_kernels % group:
            raise ArgumentValueError(f"Conv2d: {nb_kernels} kernels do not fall into {group} groups")

    def initialize(self, x: NDArray) -> None:
        """Make the kernels for images of so many channels."""
        if x.ndim != _IMAGES:
            raise ShapeError(
                f"{self._called()} takes images (N, C, H, W), and was given the shape {x.shape}: its kernels are of "
                f"{self.kernel_size}"
            )
        if self.in_channels not in {None, x.shape[1]} or x.shape[1] % self.group:
            raise self._refuse(
                f"images of {self.in_channels or f'a multiple of {self.group}'} channels",
                x,
                "its W",
                (self.nb_kernels, (self.in_channels or self.group) // self.group, *self.kernel_size),
            )
        self.in_channels = x.shape[1]
        shape = (self.nb_kernels, self.in_channels // self.group, *self.kernel_size)
        spread = math.sqrt(2.0 / (math.prod(shape[1:]) + self.nb_kernels))
        self.W = self._parameter(shape, x, lambda w: w.gaussian(0.0, spread))
        self.b = self._parameter((self.nb_kernels,), x) if self.bias else None

    def forward(self, x: NDArray) -> NDArray:
        """Return the convolution."""
        if x.ndim != _IMAGES or x.shape[1] != self.in_channels:
            raise self._refuse(f"images of {self.in_channels} channels", x, "its W", self.W.shape)
        padding = self.padding
        if self.pad_mode != "NOTSET":
            padding = same_padding(self.pad_mode, x.shape[2:], self.kernel_size, self.stride, self.dilation)
        for size, kernel, (before, behind), apart in zip(
            x.shape[2:], self.kernel_size, padding, self.dilation, strict=True
        ):
            if size + before + behind < (kernel - 1) * apart + 1:
                raise self._refuse(
                    f"images of at least {self.kernel_size} with their padding", x, "its W", self.W.shape
                )
        y = nn.conv(
            x, self.W, self.b, stride=self.stride, padding=sides(padding), dilation=self.dilation, groups=self.group
        )
        return nn.relu(y) if self.activation == "RELU" else y

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class SeparableConv2d(Lazy):
    """A convolution of each channel by itself, and then one of 1 x 1 over all channels.

    Parameters
    ----------
    nb_kernels : int
        How many channels the results have.
    kernel_size : int or pair of int
        Rows and columns of the kernels of channels.
    *args
        In the older form ``SeparableConv2d(in_channels, nb_kernels, kernel_size, stride, padding)``: the rest of these.
    stride, padding
        As for `Conv2d`.
    bias : bool, default: False
        Whether a number is added to each channel.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.SeparableConv2d(8, 3, padding=1)(weft.ones((1, 4, 6, 6), "float32")).shape
    (1, 8, 6, 6)
    """

    def __init__(
        self,
        nb_kernels: int,
        kernel_size: Pair,
        *args: Any,
        stride: Pair = 1,
        padding: Pair = 0,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if args:
            nb_kernels, kernel_size = kernel_size, args[0]  # type: ignore[assignment] # an int there
        self.nb_kernels, self.kernel_size = nb_kernels, kernel_size
        self.stride: Any = args[1] if len(args) > 1 else stride
        self.padding: Any = args[2] if len(args) > 2 else padding  # the third
        self.bias = bias

    def initialize(self, x: NDArray) -> None:
        """Make both convolutions for images of so many channels."""
        if x.ndim != _IMAGES:
            raise ShapeError(f"{self._called()} takes images (N, C, H, W), and was given the shape {x.shape}")
        channels = x.shape[1]
        self.depthwise_conv = Conv2d(
            channels, self.kernel_size, stride=self.stride, padding=self.padding, group=channels, bias=self.bias
        )
        self.point_conv = Conv2d(self.nb_kernels, 1, bias=self.bias)
        prefix = f"{self.name}." if self.name else ""
        self.depthwise_conv.name, self.point_conv.name = f"{prefix}depthwise_conv", f"{prefix}point_conv"

    def forward(self, x: NDArray) -> NDArray:
        """Return one convolution after the other."""
        return self.point_conv(self.depthwise_conv(x))

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...
