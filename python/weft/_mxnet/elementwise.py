"""Functions of each element by itself: of one array, of two of one shape, of two that broadcast, of one and a number."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import NONE, Backward, handed_on
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, dtype, integer, number
from weft._numpy import namespace
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._mxnet.partial_shapes import Dtypes, Shapes


def _nearest(x: Any) -> Any:
    """Return the nearest integers; halves go down."""
    low = namespace.floor(x)
    return namespace.where(x - low <= 0.5, low, namespace.ceil(x))


_UNARY: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(namespace, name)
        for name in [
            "abs",
            "arccos",
            "arccosh",
            "arcsin",
            "arcsinh",
            "arctan",
            "arctanh",
            "cbrt",
            "ceil",
            "cos",
            "cosh",
            "degrees",
            "exp",
            "expm1",
            "floor",
            "log",
            "log10",
            "log1p",
            "log2",
            "negative",
            "radians",
            "sign",
            "sin",
            "sinh",
            "sqrt",
            "square",
            "tan",
            "tanh",
            "trunc",
        ]
    },
    "fix": namespace.trunc,
    "rint": lambda x: _nearest(x),
    "round": lambda x: namespace.sign(x) * namespace.floor(abs(x) + 0.5),
    "reciprocal": lambda x: 1.0 / x,
    "rsqrt": lambda x: 1.0 / namespace.sqrt(x),
    "rcbrt": lambda x: 1.0 / namespace.cbrt(x),
}
_UNARY_ALIASES = {"abs": ("_npi_absolute",), "negative": ("_np_negative",)}


def _unary() -> None:
    for name, function in _UNARY.items():
        operator(name, f"_npi_{name}", f"_sparse_{name}", *_UNARY_ALIASES.get(name, ()), inplace=((0, 0),))(
            lambda s, data, function=function: function(data)
        )
    operator("logical_not", "_npi_logical_not", gradient=NONE)(lambda s, data: namespace.astype(data == 0, data.dtype))


_unary()


@operator(
    "_copy",
    "identity",
    "_np_copy",
    "_copyto",
    "_CrossDeviceCopy",
    gradient=handed_on,
    inplace=((0, 0),),
    identity=True,
)
def _copy(s: Any, data: Any) -> Any:
    del s
    return data


@operator("_identity_with_attr_like_rhs", inputs=("lhs", "rhs"), inplace=((0, 0),), identity=True)
def _like_right(s: Any, left: Any, right: Any) -> Any:
    del s, right
    return left


def _number_like(value: int) -> Callable[[Any, Any], Any]:
    return lambda s, data: namespace.full_like(data, value)


operator("zeros_like", "_sparse_zeros_like", "_npi_zeros_like", gradient=NONE)(_number_like(0))
operator("ones_like", "_npi_ones_like", gradient=NONE)(_number_like(1))


def _cast_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del ins
    outs.learn(0, s.dtype)


def _cast_back(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Hand the gradient on through integers, too: roundings are trained so."""
    del s, outputs
    return [namespace.astype(grads[0], inputs[0].dtype)]


@operator(
    "Cast",
    "cast",
    "_npi_cast",
    "_npx_cast",
    "amp_cast",
    settings=Settings(dtype=(dtype, REQUIRED)),
    dtypes=_cast_dtypes,
    gradient=Backward(_cast_back),
)
def _cast(s: Any, data: Any) -> Any:
    return namespace.astype(data, s.dtype)


@operator(
    "clip",
    "_npi_clip",
    "_sparse_clip",
    settings=Settings(a_min=(number, -math.inf), a_max=(number, math.inf)),
    inplace=((0, 0),),
)
def _clip(s: Any, data: Any) -> Any:
    return namespace.clip(data, s.a_min, s.a_max)


def _truth(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison with numbers of the first operand's dtype as its result, as MXNet has it."""
    return lambda a, b: namespace.astype(function(a, b), a.dtype if hasattr(a, "dtype") else b.dtype)


def _logical(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return _truth(lambda a, b: function(a != 0, b != 0))


#: Name, function, whether it has a gradient.
_BINARY: dict[str, tuple[Callable[[Any, Any], Any], bool]] = {
    "add": (lambda a, b: a + b, True),
    "sub": (lambda a, b: a - b, True),
    "mul": (lambda a, b: a * b, True),
    "div": (lambda a, b: a / b, True),
    "mod": (lambda a, b: a % b, True),
    "power": (lambda a, b: a**b, True),
    "maximum": (namespace.maximum, True),
    "minimum": (namespace.minimum, True),
    "hypot": (namespace.hypot, True),
    "equal": (_truth(lambda a, b: a == b), False),
    "not_equal": (_truth(lambda a, b: a != b), False),
    "greater": (_truth(lambda a, b: a > b), False),
    "greater_equal": (_truth(lambda a, b: a >= b), False),
    "lesser": (_truth(lambda a, b: a < b), False),
    "lesser_equal": (_truth(lambda a, b: a <= b), False),
    "logical_and": (_logical(namespace.logical_and), False),
    "logical_or": (_logical(namespace.logical_or), False),
    "logical_xor": (_logical(namespace.logical_xor), False),
}

#: The names of functions of two arrays of one shape.
_OF_TWO: dict[str, tuple[str, ...]] = {
    "add": ("elemwise_add", "_add", "_plus", "_Plus", "_sparse_elemwise_add", "_grad_add"),
    "sub": ("elemwise_sub", "_sub", "_minus", "_Minus", "_sparse_elemwise_sub"),
    "mul": ("elemwise_mul", "_mul", "_Mul", "_sparse_elemwise_mul"),
    "div": ("elemwise_div", "_div", "_Div", "_sparse_elemwise_div"),
    "mod": ("_mod", "_Mod"),
    "power": ("_power", "_Power"),
    "maximum": ("_maximum", "_Maximum"),
    "minimum": ("_minimum", "_Minimum"),
    "hypot": ("_hypot", "_Hypot"),
    "equal": ("_equal", "_Equal"),
    "not_equal": ("_not_equal", "_Not_Equal"),
    "greater": ("_greater", "_Greater"),
    "greater_equal": ("_greater_equal", "_Greater_Equal"),
    "lesser": ("_lesser", "_Lesser"),
    "lesser_equal": ("_lesser_equal", "_Lesser_Equal"),
    "logical_and": ("_logical_and", "_Logical_And"),
    "logical_or": ("_logical_or", "_Logical_Or"),
    "logical_xor": ("_logical_xor", "_Logical_Xor"),
}
#: Further names of functions that broadcast: ``broadcast_<name>`` is the first.
_SPREAD: dict[str, tuple[str, ...]] = {
    "add": ("broadcast_plus", "_npi_add"),
    "sub": ("broadcast_minus", "_npi_subtract"),
    "mul": ("_npi_multiply",),
    "div": ("_npi_true_divide",),
    "mod": ("_npi_mod",),
    "power": ("_npi_power",),
    "maximum": ("_npi_maximum",),
    "minimum": ("_npi_minimum",),
    "hypot": ("_npi_hypot",),
}
#: Names of functions of an array and a number, and of a number and an array.
_SCALAR: dict[str, tuple[str, ...]] = {
    "add": ("_plus_scalar", "_PlusScalar", "_npi_add_scalar"),
    "sub": ("_minus_scalar", "_MinusScalar", "_npi_subtract_scalar"),
    "mul": ("_mul_scalar", "_MulScalar", "_npi_multiply_scalar"),
    "div": ("_div_scalar", "_DivScalar", "_npi_true_divide_scalar"),
    "mod": ("_mod_scalar", "_ModScalar", "_npi_mod_scalar"),
    "power": ("_power_scalar", "_PowerScalar", "_npi_power_scalar"),
    "maximum": ("_maximum_scalar", "_MaximumScalar", "_npi_maximum_scalar"),
    "minimum": ("_minimum_scalar", "_MinimumScalar", "_npi_minimum_scalar"),
    "hypot": ("_hypot_scalar", "_HypotScalar", "_npi_hypot_scalar"),
    "equal": ("_equal_scalar", "_EqualScalar"),
    "not_equal": ("_not_equal_scalar", "_NotEqualScalar"),
    "greater": ("_greater_scalar", "_GreaterScalar"),
    "greater_equal": ("_greater_equal_scalar", "_GreaterEqualScalar"),
    "lesser": ("_lesser_scalar", "_LesserScalar"),
    "lesser_equal": ("_lesser_equal_scalar", "_LesserEqualScalar"),
    "logical_and": ("_logical_and_scalar", "_LogicalAndScalar"),
    "logical_or": ("_logical_or_scalar", "_LogicalOrScalar"),
    "logical_xor": ("_logical_xor_scalar", "_LogicalXorScalar"),
}
_REVERSED: dict[str, tuple[str, ...]] = {
    "sub": ("_rminus_scalar", "_RMinusScalar", "_npi_rsubtract_scalar"),
    "div": ("_rdiv_scalar", "_RDivScalar", "_npi_rtrue_divide_scalar"),
    "mod": ("_rmod_scalar", "_RModScalar", "_npi_rmod_scalar"),
    "power": ("_rpower_scalar", "_RPowerScalar", "_npi_rpower_scalar"),
}

_NUMBER = Settings(("is_int",), scalar=(number, 1.0))


def _broadcast(s: Any, ins: Shapes, outs: Shapes) -> None:
    """Lengths that are equal, or 1, from the last axis on."""
    del s
    one, other = ins[0], ins[1]
    if one is None or other is None:
        return
    rank = max(len(one), len(other))
    found: list[int | None] = []
    for at in range(-rank, 0):
        a = one[at] if -at <= len(one) else 1
        b = other[at] if -at <= len(other) else 1
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise ShapeError(f"shapes {one} and {other} do not broadcast: {a} and {b} are neither equal nor 1")
        if a is None or b is None:
            known = b if a is None else a
            found.append(None if known == 1 else known)
        else:
            found.append(b if a == 1 else a)
    outs.learn(0, found)


def _binary() -> None:
    for name, (function, moves) in _BINARY.items():
        gradient = None if moves else NONE
        first, *others = _OF_TWO[name]
        operator(
            first,
            *others,
            inputs=("lhs", "rhs"),
            gradient=handed_on if name == "add" else gradient,
            inplace=((0, 0), (1, 0)),
        )(lambda s, a, b, function=function: function(a, b))
        operator(
            f"broadcast_{name}",
            f"_sparse_broadcast_{name}",
            *_SPREAD.get(name, ()),
            inputs=("lhs", "rhs"),
            shapes=_broadcast,
            layout="elementwise",
            gradient=gradient,
            inplace=((0, 0), (1, 0)),
        )(lambda s, a, b, function=function: function(a, b))
        first, *others = _SCALAR[name]
        operator(first, *others, settings=_NUMBER, gradient=gradient, inplace=((0, 0),))(
            lambda s, a, function=function: function(a, _of(s, a))
        )
        if name in _REVERSED:
            first, *others = _REVERSED[name]
            operator(first, *others, settings=_NUMBER, gradient=gradient, inplace=((0, 0),))(
                lambda s, a, function=function: function(_of(s, a), a)
            )


def _of(s: Any, a: Any) -> Any:
    """Return the number as one of the array's kind: integers stay integers."""
    return int(s.scalar) if a.dtype.kind in "iu" and s.scalar == int(s.scalar) else s.scalar


_binary()


def _several(s: Any) -> tuple[str, ...] | None:
    return None if s.num_args is None else tuple(f"arg{at}" for at in range(s.num_args))


@operator(
    "add_n",
    "ElementWiseSum",
    "_sparse_add_n",
    "_sparse_ElementWiseSum",
    settings=Settings(num_args=(integer, None)),
    inputs=_several,
    gradient=handed_on,
    inplace=((0, 0),),
)
def _add_n(s: Any, *arrays: Any) -> Any:
    del s
    total = arrays[0]
    for each in arrays[1:]:
        total = total + each
    return total


def _where_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.alike(outs, [1, 2], [0])
    shape, choice = outs[0], ins[0]
    if (choice is None and shape is not None) or (
        choice is not None and shape is not None and len(choice) == len(shape)
    ):
        ins.learn(0, shape)


def _where_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s
    ins.alike(outs, [1, 2], [0])
    ins.learn(0, ins[1])


@operator(
    "where",
    "_npi_where",
    "_sparse_where",
    inputs=("condition", "x", "y"),
    shapes=_where_shapes,
    dtypes=_where_dtypes,
    places=(0,),
)
def _where(s: Any, condition: Any, x: Any, y: Any) -> Any:
    del s
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape((-1, *(1,) * (x.ndim - 1)))
    return namespace.where(condition != 0, x, y)


@operator("_scatter_elemwise_div", inputs=("lhs", "rhs"))
def _scatter_div(s: Any, a: Any, b: Any) -> Any:
    del s
    return a / b
