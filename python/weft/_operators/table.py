"""SINGA's operator classes: which function each calls, and what it is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._operators import aliases, elementwise, error_function, losses, networks, products, shaping, softmaxes
from weft._operators.classes import applying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray

__all__ = [
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "AddBias",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BinaryCrossEntropy",
    "Cast",
    "Ceil",
    "Clip",
    "Concat",
    "ConstantOfShape",
    "Cos",
    "CosSim",
    "Cosh",
    "CrossEntropy",
    "DepthToSpace",
    "Div",
    "Dropout",
    "Elu",
    "Embedding",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "Flatten",
    "Floor",
    "Gather",
    "Gemm",
    "GlobalAveragePool",
    "Greater",
    "HardSigmoid",
    "Identity",
    "LeakyRelu",
    "Less",
    "Log",
    "Matmul",
    "Max",
    "Mean",
    "MeanSquareError",
    "Min",
    "Mul",
    "Negative",
    "NonZero",
    "Not",
    "OneHot",
    "Or",
    "PRelu",
    "Pad",
    "Pow",
    "RankingLoss",
    "ReLU",
    "Reciprocal",
    "ReduceMean",
    "ReduceSum",
    "Reshape",
    "Round",
    "Rounde",
    "ScatterElements",
    "SeLU",
    "Shape",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Slice",
    "SoftMax",
    "SoftMaxCrossEntropy",
    "SoftPlus",
    "SoftSign",
    "SpaceToDepth",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Tan",
    "Tanh",
    "Tile",
    "Transpose",
    "Unsqueeze",
    "UpSample",
    "Where",
    "Xor",
]


def _cat_all(*xs: NDArray, axis: int = 0) -> NDArray:
    return shaping.cat(xs, axis)


def _onehot(indices: NDArray, axis: int, depth: int, values: Sequence[float]) -> NDArray:
    return shaping.onehot(axis, indices, depth, values)


Abs = applying("Abs", aliases.abs_, example="abs")
Acos = applying("Acos", aliases.acos)
Acosh = applying("Acosh", aliases.acosh)
Add = applying("Add", aliases.add)
AddBias = applying("AddBias", products.add_bias, "axis")
And = applying("And", elementwise.logical_and, example="_and")
Asin = applying("Asin", aliases.asin)
Asinh = applying("Asinh", aliases.asinh)
Atan = applying("Atan", aliases.atan)
Atanh = applying("Atanh", aliases.atanh)
BinaryCrossEntropy = applying("BinaryCrossEntropy", losses.binary_cross_entropy, "t")
Cast = applying("Cast", elementwise.cast, "to")
Ceil = applying("Ceil", aliases.ceil)
Clip = applying("Clip", elementwise.clip, "min max")
Concat = applying("Concat", _cat_all, "axis", example="cat")
ConstantOfShape = applying("ConstantOfShape", shaping.constant_of_shape, "value")
Cos = applying("Cos", aliases.cos)
CosSim = applying("CosSim", products.cossim)
Cosh = applying("Cosh", aliases.cosh)
CrossEntropy = applying("CrossEntropy", losses.cross_entropy, "t")
DepthToSpace = applying("DepthToSpace", shaping.depth_to_space, "blocksize mode")
Div = applying("Div", aliases.div)
Dropout = applying("Dropout", networks.dropout, "seed ratio")
Elu = applying("Elu", elementwise.elu, "alpha")
Embedding = applying("Embedding", networks.embedding)
Equal = applying("Equal", aliases.equal)
Erf = applying("Erf", error_function.erf)
Exp = applying("Exp", aliases.exp)
Expand = applying("Expand", shaping.expand, "shape")
Flatten = applying("Flatten", shaping.flatten, "axis")
Floor = applying("Floor", aliases.floor)
Gather = applying("Gather", shaping.gather, "axis indices")
Gemm = applying("Gemm", products.gemm, "alpha beta transA transB")
GlobalAveragePool = applying("GlobalAveragePool", shaping.globalaveragepool, "data_format")
Greater = applying("Greater", aliases.greater)
HardSigmoid = applying("HardSigmoid", elementwise.hardsigmoid, "alpha gamma")
Identity = applying("Identity", elementwise.identity)
LeakyRelu = applying("LeakyRelu", elementwise.leakyrelu, "a")
Less = applying("Less", aliases.less)
Log = applying("Log", aliases.log)
Matmul = applying("Matmul", aliases.matmul)
Max = applying("Max", elementwise.max_of, example="max")
Mean = applying("Mean", elementwise.mean_of, example="mean")
MeanSquareError = applying("MeanSquareError", losses.mse_loss, "t")
Min = applying("Min", elementwise.min_of, example="min")
Mul = applying("Mul", aliases.mul)
Negative = applying("Negative", aliases.negative)
NonZero = applying("NonZero", aliases.nonzero)
Not = applying("Not", elementwise.logical_not, example="_not")
OneHot = applying("OneHot", _onehot, "axis depth values", example="onehot")
Or = applying("Or", elementwise.logical_or, example="_or")
PRelu = applying("PRelu", elementwise.prelu)
Pad = applying("Pad", shaping.pad, "mode pads constant")
Pow = applying("Pow", aliases.pow_, example="pow")
RankingLoss = applying("RankingLoss", losses.ranking_loss, "M")
ReLU = applying("ReLU", elementwise.relu)
Reciprocal = applying("Reciprocal", aliases.reciprocal)
ReduceMean = applying("ReduceMean", shaping.reduce_mean, "axes keepdims")
ReduceSum = applying("ReduceSum", shaping.reduce_sum, "axes keepdims")
Reshape = applying("Reshape", shaping.reshape, "shape")
Round = applying("Round", elementwise.round_up, example="round")
Rounde = applying("Rounde", aliases.rounde)
ScatterElements = applying("ScatterElements", shaping.scatter_elements, "indices updates axis")
SeLU = applying("SeLU", elementwise.selu, "alpha gamma")
Shape = applying("Shape", shaping.shape_of, example="shape")
Sigmoid = applying("Sigmoid", elementwise.sigmoid)
Sign = applying("Sign", aliases.sign)
Sin = applying("Sin", aliases.sin)
Sinh = applying("Sinh", aliases.sinh)
Slice = applying("Slice", shaping.slice_of, "starts ends axes steps", example="slice")
SoftMax = applying("SoftMax", softmaxes.softmax, "axis")
SoftMaxCrossEntropy = applying("SoftMaxCrossEntropy", losses.softmax_cross_entropy, "t")
SoftPlus = applying("SoftPlus", elementwise.softplus)
SoftSign = applying("SoftSign", elementwise.softsign)
SpaceToDepth = applying("SpaceToDepth", shaping.space_to_depth, "blocksize mode")
Split = applying("Split", shaping.split, "axis parts num_output")
Sqrt = applying("Sqrt", aliases.sqrt)
Squeeze = applying("Squeeze", shaping.squeeze, "axis")
Sub = applying("Sub", aliases.sub)
Sum = applying("Sum", elementwise.sum_of, example="sum")
Tan = applying("Tan", aliases.tan)
Tanh = applying("Tanh", aliases.tanh)
Tile = applying("Tile", shaping.tile, "repeats")
Transpose = applying("Transpose", shaping.transpose, "shape")
Unsqueeze = applying("Unsqueeze", shaping.unsqueeze, "axis")
UpSample = applying("UpSample", shaping.upsample, "mode scales")
Where = applying("Where", elementwise.where, "condition")
Xor = applying("Xor", elementwise.logical_xor, example="_xor")
