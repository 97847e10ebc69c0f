"""The kernels of networks: convolutions, pooling, normalisation, activations, losses, recurrent cells.

Each takes arrays, in programs too, and symbols; each has gradients. Operands are real floating-point numbers, float32 or
float64. Data lie as ``(N, C, *spatial)``: a batch, its channels, and 1 to 3 spatial axes.
"""

from typing import TYPE_CHECKING

from weft._nn.namespace import *  # noqa: F403 - a list, that stands there
from weft._nn.namespace import __all__ as __all__
from weft._singa.hints import absent_from

if not TYPE_CHECKING:  # for them any name would be there
    __getattr__ = absent_from(__name__)
