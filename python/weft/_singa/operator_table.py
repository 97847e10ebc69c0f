"""SINGA's operator classes: the function that each calls, and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._numpy import namespace
from weft._singa import elementwise, error_function, losses, names, networks, products, shaping, softmaxes
from weft._singa.classes import applying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray


def _cat_all(*xs: NDArray, axis: int = 0) -> NDArray:
    return shaping.cat(xs, axis)


def _onehot(indices: NDArray, axis: int, depth: int, values: Sequence[float]) -> NDArray:
    return shaping.onehot(axis, indices, depth, values)


Abs = applying("Abs", names.abs)
Acos = applying("Acos", namespace.acos)
Acosh = applying("Acosh", namespace.acosh)
Add = applying("Add", names.add)
AddBias = applying("AddBias", products.add_bias, "axis")
And = applying("And", elementwise.logical_and, example="_and")
Asin = applying("Asin", namespace.asin)
Asinh = applying("Asinh", namespace.asinh)
Atan = applying("Atan", namespace.atan)
Atanh = applying("Atanh", namespace.atanh)
BinaryCrossEntropy = applying("BinaryCrossEntropy", losses.binary_cross_entropy, "t")
Cast = applying("Cast", elementwise.cast, "to")
Ceil = applying("Ceil", namespace.ceil)
Clip = applying("Clip", elementwise.clip, "min max")
Concat = applying("Concat", _cat_all, "axis", example="cat")
ConstantOfShape = applying("ConstantOfShape", shaping.constant_of_shape, "value")
Cos = applying("Cos", namespace.cos)
CosSim = applying("CosSim", products.cossim)
Cosh = applying("Cosh", namespace.cosh)
CrossEntropy = applying("CrossEntropy", losses.cross_entropy, "t")
DepthToSpace = applying("DepthToSpace", shaping.depth_to_space, "blocksize mode")
Div = applying("Div", names.div)
Dropout = applying("Dropout", networks.dropout, "seed ratio")
Elu = applying("Elu", elementwise.elu, "alpha")
Embedding = applying("Embedding", networks.embedding)
Equal = applying("Equal", names.equal)
Erf = applying("Erf", error_function.erf)
Exp = applying("Exp", names.exp)
Expand = applying("Expand", shaping.expand, "shape")
Flatten = applying("Flatten", shaping.flatten, "axis")
Floor = applying("Floor", namespace.floor)
Gather = applying("Gather", shaping.gather, "axis indices")
Gemm = applying("Gemm", products.gemm, "alpha beta transA transB")
GlobalAveragePool = applying("GlobalAveragePool", shaping.globalaveragepool, "data_format")
Greater = applying("Greater", names.greater)
HardSigmoid = applying("HardSigmoid", elementwise.hardsigmoid, "alpha gamma")
Identity = applying("Identity", elementwise.identity)
LeakyRelu = applying("LeakyRelu", elementwise.leakyrelu, "a")
Less = applying("Less", names.less)
Log = applying("Log", namespace.log)
Matmul = applying("Matmul", names.matmul)
Max = applying("Max", elementwise.max_of, example="max")
Mean = applying("Mean", elementwise.mean_of, example="mean")
MeanSquareError = applying("MeanSquareError", losses.mse_loss, "t")
Min = applying("Min", elementwise.min_of, example="min")
Mul = applying("Mul", names.mul)
Negative = applying("Negative", namespace.negative)
NonZero = applying("NonZero", names.nonzero)
Not = applying("Not", elementwise.logical_not, example="_not")
OneHot = applying("OneHot", _onehot, "axis depth values", example="onehot")
Or = applying("Or", elementwise.logical_or, example="_or")
PRelu = applying("PRelu", elementwise.prelu)
Pad = applying("Pad", shaping.pad, "mode pads constant")
Pow = applying("Pow", names.pow)
RankingLoss = applying("RankingLoss", losses.ranking_loss, "M")
ReLU = applying("ReLU", elementwise.relu)
Reciprocal = applying("Reciprocal", namespace.reciprocal)
ReduceMean = applying("ReduceMean", shaping.reduce_mean, "axes keepdims")
ReduceSum = applying("ReduceSum", shaping.reduce_sum, "axes keepdims")
Reshape = applying("Reshape", shaping.reshape, "shape")
Round = applying("Round", elementwise.round_up, example="round")
Rounde = applying("Rounde", namespace.round, example="rounde")
ScatterElements = applying("ScatterElements", shaping.scatter_elements, "indices updates axis")
SeLU = applying("SeLU", elementwise.selu, "alpha gamma")
Shape = applying("Shape", shaping.shape_of, example="shape")
Sigmoid = applying("Sigmoid", elementwise.sigmoid)
Sign = applying("Sign", names.sign)
Sin = applying("Sin", namespace.sin)
Sinh = applying("Sinh", namespace.sinh)
Slice = applying("Slice", shaping.slice_of, "starts ends axes steps", example="slice")
SoftMax = applying("SoftMax", softmaxes.softmax, "axis")
SoftMaxCrossEntropy = applying("SoftMaxCrossEntropy", losses.softmax_cross_entropy, "t")
SoftPlus = applying("SoftPlus", elementwise.softplus)
SoftSign = applying("SoftSign", elementwise.softsign)
SpaceToDepth = applying("SpaceToDepth", shaping.space_to_depth, "blocksize mode")
Split = applying("Split", shaping.split, "axis parts num_output")
Sqrt = applying("Sqrt", namespace.sqrt)
Squeeze = applying("Squeeze", shaping.squeeze, "axis")
Sub = applying("Sub", names.sub)
Sum = applying("Sum", elementwise.sum_of, example="sum")
Tan = applying("Tan", namespace.tan)
Tanh = applying("Tanh", namespace.tanh)
Tile = applying("Tile", shaping.tile, "repeats")
Transpose = applying("Transpose", shaping.transpose, "shape")
Unsqueeze = applying("Unsqueeze", shaping.unsqueeze, "axis")
UpSample = applying("UpSample", shaping.upsample, "mode scales")
Where = applying("Where", elementwise.where, "condition")
Xor = applying("Xor", elementwise.logical_xor, example="_xor")

globals()["__all__"] = [
    name for name, each in globals().items() if isinstance(each, type)
]  # type checkers go by the rows
