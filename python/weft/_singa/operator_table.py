"""SINGA's operator classes: the function that each calls, and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._singa import elementwise, error_function, losses, networks, operator_names, products, shaping, softmaxes
from weft._singa.classes import applying

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


Abs = applying("Abs", operator_names.abs_, example="abs")
Acos = applying("Acos", operator_names.acos)
Acosh = applying("Acosh", operator_names.acosh)
Add = applying("Add", operator_names.add)
AddBias = applying("AddBias", products.add_bias, "axis")
And = applying("And", elementwise.logical_and, example="_and")
Asin = applying("Asin", operator_names.asin)
Asinh = applying("Asinh", operator_names.asinh)
Atan = applying("Atan", operator_names.atan)
Atanh = applying("Atanh", operator_names.atanh)
BinaryCrossEntropy = applying("BinaryCrossEntropy", losses.binary_cross_entropy, "t")
Cast = applying("Cast", elementwise.cast, "to")
Ceil = applying("Ceil", operator_names.ceil)
Clip = applying("Clip", elementwise.clip, "min max")
Concat = applying("Concat", _cat_all, "axis", example="cat")
ConstantOfShape = applying("ConstantOfShape", shaping.constant_of_shape, "value")
Cos = applying("Cos", operator_names.cos)
CosSim = applying("CosSim", products.cossim)
Cosh = applying("Cosh", operator_names.cosh)
CrossEntropy = applying("CrossEntropy", losses.cross_entropy, "t")
DepthToSpace = applying("DepthToSpace", shaping.depth_to_space, "blocksize mode")
Div = applying("Div", operator_names.div)
Dropout = applying("Dropout", networks.dropout, "seed ratio")
Elu = applying("Elu", elementwise.elu, "alpha")
Embedding = applying("Embedding", networks.embedding)
Equal = applying("Equal", operator_names.equal)
Erf = applying("Erf", error_function.erf)
Exp = applying("Exp", operator_names.exp)
Expand = applying("Expand", shaping.expand, "shape")
Flatten = applying("Flatten", shaping.flatten, "axis")
Floor = applying("Floor", operator_names.floor)
Gather = applying("Gather", shaping.gather, "axis indices")
Gemm = applying("Gemm", products.gemm, "alpha beta transA transB")
GlobalAveragePool = applying("GlobalAveragePool", shaping.globalaveragepool, "data_format")
Greater = applying("Greater", operator_names.greater)
HardSigmoid = applying("HardSigmoid", elementwise.hardsigmoid, "alpha gamma")
Identity = applying("Identity", elementwise.identity)
LeakyRelu = applying("LeakyRelu", elementwise.leakyrelu, "a")
Less = applying("Less", operator_names.less)
Log = applying("Log", operator_names.log)
Matmul = applying("Matmul", operator_names.matmul)
Max = applying("Max", elementwise.max_of, example="max")
Mean = applying("Mean", elementwise.mean_of, example="mean")
MeanSquareError = applying("MeanSquareError", losses.mse_loss, "t")
Min = applying("Min", elementwise.min_of, example="min")
Mul = applying("Mul", operator_names.mul)
Negative = applying("Negative", operator_names.negative)
NonZero = applying("NonZero", operator_names.nonzero)
Not = applying("Not", elementwise.logical_not, example="_not")
OneHot = applying("OneHot", _onehot, "axis depth values", example="onehot")
Or = applying("Or", elementwise.logical_or, example="_or")
PRelu = applying("PRelu", elementwise.prelu)
Pad = applying("Pad", shaping.pad, "mode pads constant")
Pow = applying("Pow", operator_names.pow_, example="pow")
RankingLoss = applying("RankingLoss", losses.ranking_loss, "M")
ReLU = applying("ReLU", elementwise.relu)
Reciprocal = applying("Reciprocal", operator_names.reciprocal)
ReduceMean = applying("ReduceMean", shaping.reduce_mean, "axes keepdims")
ReduceSum = applying("ReduceSum", shaping.reduce_sum, "axes keepdims")
Reshape = applying("Reshape", shaping.reshape, "shape")
Round = applying("Round", elementwise.round_up, example="round")
Rounde = applying("Rounde", operator_names.rounde)
ScatterElements = applying("ScatterElements", shaping.scatter_elements, "indices updates axis")
SeLU = applying("SeLU", elementwise.selu, "alpha gamma")
Shape = applying("Shape", shaping.shape_of, example="shape")
Sigmoid = applying("Sigmoid", elementwise.sigmoid)
Sign = applying("Sign", operator_names.sign)
Sin = applying("Sin", operator_names.sin)
Sinh = applying("Sinh", operator_names.sinh)
Slice = applying("Slice", shaping.slice_of, "starts ends axes steps", example="slice")
SoftMax = applying("SoftMax", softmaxes.softmax, "axis")
SoftMaxCrossEntropy = applying("SoftMaxCrossEntropy", losses.softmax_cross_entropy, "t")
SoftPlus = applying("SoftPlus", elementwise.softplus)
SoftSign = applying("SoftSign", elementwise.softsign)
SpaceToDepth = applying("SpaceToDepth", shaping.space_to_depth, "blocksize mode")
Split = applying("Split", shaping.split, "axis parts num_output")
Sqrt = applying("Sqrt", operator_names.sqrt)
Squeeze = applying("Squeeze", shaping.squeeze, "axis")
Sub = applying("Sub", operator_names.sub)
Sum = applying("Sum", elementwise.sum_of, example="sum")
Tan = applying("Tan", operator_names.tan)
Tanh = applying("Tanh", operator_names.tanh)
Tile = applying("Tile", shaping.tile, "repeats")
Transpose = applying("Transpose", shaping.transpose, "shape")
Unsqueeze = applying("Unsqueeze", shaping.unsqueeze, "axis")
UpSample = applying("UpSample", shaping.upsample, "mode scales")
Where = applying("Where", elementwise.where, "condition")
Xor = applying("Xor", elementwise.logical_xor, example="_xor")
