"""Layers, with SINGA's names and arguments: the parts of models.

A layer with parameters makes them at its first call, for the shapes of that call's arguments.

>>> import weft
>>> from weft import layer
>>> dense, relu = layer.Linear(3), layer.ReLU()
>>> relu(dense(weft.ones((2, 4)))).shape
(2, 3)
>>> {name: parameter.shape for name, parameter in dense.get_params().items()}
{'W': (4, 3), 'b': (3,)}
"""

from weft._singa.layers.base import Layer
from weft._singa.layers.convolution import Conv2d, SeparableConv2d
from weft._singa.layers.linear import Embedding, Gemm, Linear
from weft._singa.layers.normalization import BatchNorm2d
from weft._singa.layers.plain import (
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
)
from weft._singa.layers.pooling import AvgPool1d, AvgPool2d, MaxPool1d, MaxPool2d, Pooling2d
from weft._singa.layers.recurrent import LSTM, RNN, CudnnRNN, RNN_Base

__all__ = [
    "LSTM", "RNN", "Add", "AvgPool1d", "AvgPool2d", "BatchNorm2d", "BinaryCrossEntropy", "Cat", "Conv2d",
    "CrossEntropy", "CudnnRNN", "Dropout", "Embedding", "Flatten", "Gemm", "Layer", "Linear", "MaxPool1d",
    "MaxPool2d", "MeanSquareError", "Pooling2d", "RNN_Base", "ReLU", "Reshape", "SeparableConv2d", "Sigmoid",
    "SoftMax", "SoftMaxCrossEntropy",
]  # fmt: skip
