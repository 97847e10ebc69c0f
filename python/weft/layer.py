"""Layers: the parts of models. Those that SINGA has bear its names and arguments.

A layer with parameters makes them at its first call, for the shapes of that call's arguments.

>>> import weft
>>> from weft import layer
>>> dense, relu = layer.Linear(3), layer.ReLU()
>>> relu(dense(weft.ones((2, 4)))).shape
(2, 3)
>>> {name: parameter.shape for name, parameter in dense.get_params().items()}
{'W': (4, 3), 'b': (3,)}
"""

from typing import TYPE_CHECKING

from weft._singa.hints import absent_from
from weft._singa.layers.attention import MultiHeadAttention
from weft._singa.layers.base import Layer
from weft._singa.layers.convolution import Conv2d, SeparableConv2d
from weft._singa.layers.linear import Embedding, Gemm, Linear
from weft._singa.layers.normalization import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm
from weft._singa.layers.plain import (
    GELU,
    Add,
    BinaryCrossEntropy,
    Cat,
    CrossEntropy,
    Dropout,
    Flatten,
    MeanSquareError,
    ReLU,
    Reshape,
    Sigmoid,
    SoftMax,
    SoftMaxCrossEntropy,
    Tanh,
)
from weft._singa.layers.pooling import AdaptiveAvgPool2d, AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d, Pooling2d
from weft._singa.layers.recurrent import LSTM, RNN, CudnnRNN, RNN_Base
from weft._singa.layers.sequential import Sequential

__all__ = [
    "GELU", "LSTM", "RNN", "AdaptiveAvgPool2d", "Add", "AvgPool1d", "AvgPool2d", "BatchNorm1d", "BatchNorm2d",
    "BinaryCrossEntropy", "Cat", "Conv2d", "CrossEntropy", "CudnnRNN", "Dropout", "Embedding", "Flatten", "Gemm",
    "GroupNorm", "Layer", "LayerNorm", "Linear", "MaxPool1d", "MaxPool2d", "MeanSquareError", "MultiHeadAttention",
    "Pooling2d", "RNN_Base", "ReLU", "Reshape", "SeparableConv2d", "Sequential", "Sigmoid", "SoftMax",
    "SoftMaxCrossEntropy", "Tanh",
]  # fmt: skip

if not TYPE_CHECKING:  # a checker would take any name for one of the module's
    __getattr__ = absent_from(__name__)
