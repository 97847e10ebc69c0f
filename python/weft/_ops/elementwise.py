"""NumPy's element-wise functions, a row each: names, ufunc, docstring and example, operator, gradient, CUDA C++.

All broadcast, take Python scalars beside arrays, and push without waiting.

CUDA C++ is given by kinds of dtype. ``a`` and ``b`` are the operands, of the types ``A`` and ``B`` of NumPy's
computation, ``R`` is the type of the result, and ``U`` is an unsigned type at least as wide as ``A``, which lets
integers wrap. Functions that CUDA lacks are in the headers of `weft._cuda`. Semantics are NumPy's: quotients round
down, remainders have the divisor's sign, division of an integer by zero gives zero, ``maximum`` passes NaN on, shifts
by more bits than there are give the result of shifting bit by bit.
"""

# mypy: disable-error-code="has-type"
# A derivative may call the function of a later row.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._ops.derivatives import CONSTANT, linear, of_operand, of_pair, of_result
from weft._ops.ufuncs import MADE, binary, unary
from weft._ops.unbroadcast import apply, cast_like, choose, conjugate as conjugated, fit
from weft._registry.defaults import state
from weft._registry.gradients import needs, reading
from weft._registry.op import get_op
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._ops.derivatives import Gradient
    from weft._registry.avals import DType

_LN2, _LN10 = math.log(2), math.log(10)
#: In CUDA C++, the absolute value of an integer, without a sign.
_SIZE_A, _SIZE_B = "(a < 0 ? 0 - (U)a : (U)a)", "(b < 0 ? 0 - (U)b : (U)b)"


def _of_conj(node: Any, grads: Any) -> Any:
    return (fit(conjugated(grads[0]), node.inputs[0]),)


def _of_abs(node: Any, grads: Any) -> Any:
    x = node.inputs[0]
    return (fit(grads[0] * sign(x), x),)


def _of_sign(node: Any, grads: Any) -> Any:
    """For a complex number: x / abs(x) turns, and does not grow. For a real one, zero."""
    x, y, g = node.inputs[0], node.outputs[0], grads[0]
    if isinstance(x, NDArray) and x.dtype.kind != "c":
        return (None,)
    size = cast_like(abs(x), x)
    turned = (g - y * cast_like(apply("real", conjugated(y) * g), y)) / choose(equal(size, 0), 1.0, size)
    return (fit(turned, x),)


def _of_nextafter(node: Any, grads: Any) -> Any:
    """Return the gradient of the number itself: its neighbour moves with it."""
    return fit(grads[0], node.inputs[0]), None


def _of_add(node: Any, grads: Any) -> Any:
    return tuple(fit(grads[0], x) if needs(node, at) else None for at, x in enumerate(node.inputs))


def _of_subtract(node: Any, grads: Any) -> Any:
    x1, x2 = node.inputs
    return fit(grads[0], x1) if needs(node, 0) else None, fit(-grads[0], x2) if needs(node, 1) else None


def _sign_of(x: Any) -> Any:
    """Return 1 with the signs of `x`, zeros' too; for a number as a number, which symbols take."""
    return math.copysign(1.0, x) if isinstance(x, bool | int | float) else copysign(1.0, x)


def _two_to(x1: Any, x2: Any, y: Any) -> Any:
    del x1, y
    return ldexp(1.0, x2)


def _share(x: Any, y: Any) -> Any:
    return x / choose(equal(y, 0), 1.0, y)


def _power_base(x1: Any, x2: Any, y: Any) -> Any:
    del y
    if isinstance(x2, bool | int | float | complex):
        return x1 * 0.0 if x2 == 0 else x2 * pow(x1, x2 - 1)
    return x2 * pow(x1, choose(equal(x2, 0), 1.0, x2 - 1))


def _power_exponent(x1: Any, x2: Any, y: Any) -> Any:
    if isinstance(x1, bool | int | float | complex):
        if x1 == 0:
            return choose(equal(x2, 0), -math.inf, y * 0.0)
        return y * log(cast_like(x2 * 0 + x1, y))
    base = cast_like(x1, y)
    return choose(equal(base, 0), 0.0, y * log(choose(equal(base, 0), 1.0, base)))


def _over_square(x: Any, x1: Any, x2: Any) -> Any:
    """Return x / (x1**2 + x2**2), without the squares: they may be too large, for integers above all."""
    distance = hypot(x1, x2)
    return x / distance / distance


def _extreme(better: Callable[[Any, Any], Any], *, past_nan: bool) -> Gradient:
    """Return the rule of a maximum or a minimum: equal operands share the gradient in halves."""

    def weight(x: Any, other: Any, like: Any) -> Any:
        chosen = cast_like(better(x, other), like) + 0.5 * cast_like(equal(x, other), like)
        unordered = not_equal(x, x)
        if not past_nan:
            return choose(unordered, 1.0, chosen)
        if not isinstance(other, bool | int | float):  # a number is never taken for NaN
            chosen = choose(not_equal(other, other), 1.0, chosen)
        elif math.isnan(other):
            chosen = cast_like(equal(x, x), like)
        return choose(unordered, 0.0, chosen)

    return of_pair(weight, lambda x1, x2, y: weight(x2, x1, y), outputs=[0])


def _wide(body: str) -> Callable[[tuple[DType, ...]], str | None]:
    """Return the CUDA C++ of a function of the distance of numbers: half precision is computed in single."""
    return lambda dtypes: body if dtypes[0].kind == "f" and dtypes[0].itemsize > 2 and len(set(dtypes)) == 1 else None


def _spacing_by_cupy(out: Any, x: Any) -> None:
    np.subtract(np.nextafter(x, np.copysign(np.inf, x)), x, out=out)


def _check_power_on_cuda(computed: tuple[DType, ...], operands: tuple[Any, ...]) -> None:
    """Refuse integers to negative powers, which no kernel can compute."""
    exponent = operands[1]
    if computed[0].kind not in "iu":
        return
    if isinstance(exponent, NDArray):
        if exponent.dtype.kind == "i":
            raise ArgumentTypeError(
                "pow() of integers takes exponents of an unsigned dtype on a CUDA device, as a kernel could not refuse a "
                "negative one: cast them"
            )
    elif exponent < 0:
        raise ArgumentValueError("Integers to negative integer powers are not allowed.")


def _cuda_ldexp(dtypes: tuple[DType, ...]) -> str | None:
    number, power = dtypes
    clipped = "ldexp(a, (int)(b > 9999 ? 9999 : b < -9999 ? -9999 : b))"
    return clipped if number.kind == "f" and number.itemsize > 2 and power.kind == "i" else None


# The rows: one form for all, so they are laid out by hand.
# fmt: off
abs = absolute = unary(
    "abs absolute", np.absolute, "the absolute value of each element", "[-1, 2]", "[1, 2]", dunder="abs",
    gradient=(_of_abs, reading([0])),
    cuda={"b": "a", "iu": "a < 0 ? (R)(0 - (U)a) : a", "f": "fabs(a)", "c": "hypot(a.re, a.im)"})
acos = arccos = unary(
    "acos arccos", np.arccos, "the inverse cosine of each element, in radians", "[1.0, 0.0]",
    "[0.        , 1.57079633]", gradient=of_operand(lambda x: -1 / sqrt(1 - x * x)), cuda={"f": "acos(a)"})
acosh = arccosh = unary(
    "acosh arccosh", np.arccosh, "the inverse hyperbolic cosine of each element", "[1.0, 2.0]",
    "[0.       , 1.3169579]", gradient=of_operand(lambda x: 1 / (sqrt(x - 1) * sqrt(x + 1))), cuda={"f": "acosh(a)"})
asin = arcsin = unary(
    "asin arcsin", np.arcsin, "the inverse sine of each element, in radians", "[0.0, 1.0]", "[0.        , 1.57079633]",
    gradient=of_operand(lambda x: 1 / sqrt(1 - x * x)), cuda={"f": "asin(a)"})
asinh = arcsinh = unary(
    "asinh arcsinh", np.arcsinh, "the inverse hyperbolic sine of each element", "[0.0, 1.0]",
    "[0.        , 0.88137359]", gradient=of_operand(lambda x: 1 / sqrt(x * x + 1)), cuda={"f": "asinh(a)"})
atan = arctan = unary(
    "atan arctan", np.arctan, "the inverse tangent of each element, in radians", "[0.0, 1.0]",
    "[0.        , 0.78539816]", gradient=of_operand(lambda x: 1 / (1 + x * x)), cuda={"f": "atan(a)"})
atanh = arctanh = unary(
    "atanh arctanh", np.arctanh, "the inverse hyperbolic tangent of each element", "[0.0, 0.5]",
    "[0.        , 0.54930614]", gradient=of_operand(lambda x: 1 / (1 - x * x)), cuda={"f": "atanh(a)"})
bitwise_count = unary(
    "bitwise_count", np.bitwise_count, "the number of 1 bits in the absolute value of each element", "[1, 7]",
    "[1, 3], dtype=uint8", gradient=None, cuda={"iu": f"(R)bits({_SIZE_A})"})
bitwise_invert = invert = bitwise_not = unary(
    "bitwise_invert invert bitwise_not", np.invert, "each element with all its bits flipped; booleans are negated",
    "[0, 5]", "[-1, -6]", dunder="invert", gradient=None, cuda={"b": "!a", "iu": "(R)~a"})
cbrt = unary(
    "cbrt", np.cbrt, "the cube root of each element", "[8.0, 27.0]", "[2., 3.]",
    gradient=of_result(lambda y: 1 / (3 * y * y)), cuda={"f": "cbrt(a)"})
ceil = unary(
    "ceil", np.ceil, "the smallest integer not less than each element, in the same dtype", "[0.2, 1.0]", "[1., 1.]",
    gradient=CONSTANT, cuda={"biu": "a", "f": "ceil(a)"})
conj = conjugate = unary(
    "conj conjugate", np.conjugate, "the complex conjugate of each element", "[1 + 2j]", "[1.-2.j]",
    gradient=(_of_conj, reading()), identity="real", cuda={"iuf": "a", "c": "made(a.re, -a.im)"})
cos = unary(
    "cos", np.cos, "the cosine of each element, taken in radians", "[0.0]", "[1.]",
    gradient=of_operand(lambda x: -sin(x)), cuda={"f": "cos(a)", "c": "complex_cosh(turned(a))"})
cosh = unary(
    "cosh", np.cosh, "the hyperbolic cosine of each element", "[0.0]", "[1.]", gradient=of_operand(lambda x: sinh(x)),
    cuda={"f": "cosh(a)", "c": "complex_cosh(a)"})
degrees = rad2deg = unary(
    "degrees rad2deg", np.degrees, "each angle in radians converted to degrees", "[0.0]", "[0.]",
    gradient=linear(180 / math.pi), cuda={"f": "a * ((R)180 / (R)3.14159265358979323846264338327950288)"})
exp = unary(
    "exp", np.exp, "e to the power of each element", "[0.0, 1.0]", "[1.        , 2.71828183]",
    gradient=of_result(lambda y: y), cuda={"f": "exp(a)", "c": "complex_exp(a)"})
exp2 = unary(
    "exp2", np.exp2, "2 to the power of each element", "[0.0, 3.0]", "[1., 8.]", gradient=of_result(lambda y: y * _LN2),
    cuda={"f": "exp2(a)", "c": "complex_exp(times(a, (decltype(a.re))0.693147180559945309417232121458176568))"})
expm1 = unary(
    "expm1", np.expm1, "exp(x) - 1 for each element, precise for small ones", "[0.0]", "[0.]",
    gradient=of_result(lambda y: y + 1), cuda={"f": "expm1(a)", "c": "complex_expm1(a)"})
fabs = unary(
    "fabs", np.fabs, "the absolute value of each real element, as a floating-point number", "[-1, 2]", "[1., 2.]",
    gradient=(_of_abs, reading([0])), cuda={"f": "fabs(a)"})
floor = unary(
    "floor", np.floor, "the greatest integer not greater than each element, in the same dtype", "[0.8, -0.2]",
    "[ 0., -1.]", gradient=CONSTANT, cuda={"biu": "a", "f": "floor(a)"})
isfinite = unary(
    "isfinite", np.isfinite, "whether each element is neither infinite nor NaN", "[1.0, float('inf')]",
    "[ True, False]", gradient=None, cuda={"biu": "true", "f": "a - a == a - a", "c": "finite_(a.re) && finite_(a.im)"})
isinf = unary(
    "isinf", np.isinf, "whether each element is infinite", "[1.0, float('inf')]", "[False,  True]", gradient=None,
    cuda={"biu": "false", "f": "a == a && a - a != a - a", "c": "infinite_(a.re) || infinite_(a.im)"})
isnan = unary(
    "isnan", np.isnan, "whether each element is NaN", "[1.0, float('nan')]", "[False,  True]", gradient=None,
    cuda={"biu": "false", "f": "a != a", "c": "nan_(a)"})
log = unary(
    "log", np.log, "the natural logarithm of each element", "[1.0]", "[0.]", gradient=of_operand(lambda x: 1 / x),
    cuda={"f": "log(a)", "c": "complex_log(a)"})
log10 = unary(
    "log10", np.log10, "the logarithm to base 10 of each element", "[1.0, 100.0]", "[0., 2.]",
    gradient=of_operand(lambda x: 1 / (x * _LN10)),
    cuda={"f": "log10(a)", "c": "times(complex_log(a), (decltype(a.re))0.434294481903251827651128918916605082)"})
log1p = unary(
    "log1p", np.log1p, "log(1 + x) for each element, precise for small ones", "[0.0]", "[0.]",
    gradient=of_operand(lambda x: 1 / (x + 1)), cuda={"f": "log1p(a)", "c": "complex_log1p(a)"})
log2 = unary(
    "log2", np.log2, "the logarithm to base 2 of each element", "[1.0, 8.0]", "[0., 3.]",
    gradient=of_operand(lambda x: 1 / (x * _LN2)),
    cuda={"f": "log2(a)", "c": "times(complex_log(a), (decltype(a.re))1.442695040888963407359924681001892137)"})
logical_not = unary(
    "logical_not", np.logical_not, "whether each element is zero", "[0, 2]", "[ True, False]", gradient=None,
    cuda={"biuf": "!a", "c": "!truth(a)"})
negative = unary(
    "negative", np.negative, "each element with its sign changed", "[1, -2]", "[-1,  2]", dunder="neg",
    gradient=linear(-1), cuda={"iu": "(R)(0 - (U)a)", "f": "-a", "c": "made(-a.re, -a.im)"})
positive = unary(
    "positive", np.positive, "a copy of the elements", "[1, -2]", "[ 1, -2]", dunder="pos", gradient=linear(1),
    cuda={"biufc": "a"})
radians = deg2rad = unary(
    "radians deg2rad", np.radians, "each angle in degrees converted to radians", "[0.0]", "[0.]",
    gradient=linear(math.pi / 180), cuda={"f": "a * ((R)3.14159265358979323846264338327950288 / (R)180)"})
reciprocal = unary(
    "reciprocal", np.reciprocal, "1 divided by each element, in the same dtype", "[2.0, 4.0]", "[0.5 , 0.25]",
    gradient=of_result(lambda y: -y * y), cuda={"iu": "(R)(1.0 / a)", "f": "(R)1 / a", "c": "complex_reciprocal(a)"})
rint = unary(
    "rint", np.rint, "the integer nearest to each element, as a floating-point number; the even one of two",
    "[0.5, 1.7]", "[0., 2.]", gradient=CONSTANT, cuda={"f": "rint(a)", "c": "made(rint(a.re), rint(a.im))"})
sign = unary(
    "sign", np.sign, "-1, 0 or 1 as each element is negative, zero or positive; x / abs(x) for complex ones",
    "[-3, 0, 2]", "[-1,  0,  1]", gradient=(_of_sign, reading([0], [0])),
    cuda={
        "iu": "(R)((a > 0) - (a < 0))", "f": "a > 0 ? (R)1 : a < 0 ? (R)-1 : a == 0 ? (R)0 : a",
        "c": "complex_sign(a)"})
signbit = unary(
    "signbit", np.signbit, "whether each element has its sign bit set", "[-1.0, 0.0]", "[ True, False]", gradient=None,
    cuda={"f": "copysign((A)1, a) < 0"})
sin = unary(
    "sin", np.sin, "the sine of each element, taken in radians", "[0.0]", "[0.]", gradient=of_operand(lambda x: cos(x)),
    cuda={"f": "sin(a)", "c": "swapped(complex_sinh(swapped(a)))"})
sinh = unary(
    "sinh", np.sinh, "the hyperbolic sine of each element", "[0.0]", "[0.]", gradient=of_operand(lambda x: cosh(x)),
    cuda={"f": "sinh(a)", "c": "complex_sinh(a)"})
spacing = unary(
    "spacing", np.spacing, "the distance from each element to its nearest neighbour", "[1.0]", "[2.22044605e-16]",
    gradient=CONSTANT, cuda=_wide("nextafter(a, a == 0 ? (A)1 : a + a) - a"))
sqrt = unary(
    "sqrt", np.sqrt, "the non-negative square root of each element", "[4.0, 9.0]", "[2., 3.]",
    gradient=of_result(lambda y: 0.5 / y), cuda={"f": "sqrt(a)", "c": "complex_sqrt(a)"})
square = unary(
    "square", np.square, "the square of each element", "[2, 3]", "[4, 9]", gradient=of_operand(lambda x: x * 2),
    cuda={"iu": "(R)((U)a * (U)a)", "f": "a * a", "c": "made(a.re * a.re - a.im * a.im, a.re * a.im + a.im * a.re)"})
tan = unary(
    "tan", np.tan, "the tangent of each element, taken in radians", "[0.0]", "[0.]",
    gradient=of_result(lambda y: y * y + 1), cuda={"f": "tan(a)", "c": "swapped(complex_tanh(swapped(a)))"})
tanh = unary(
    "tanh", np.tanh, "the hyperbolic tangent of each element", "[0.0]", "[0.]", gradient=of_result(lambda y: 1 - y * y),
    cuda={"f": "tanh(a)", "c": "complex_tanh(a)"})
trunc = unary(
    "trunc", np.trunc, "the integer nearest to each element towards zero, in the same dtype", "[1.7, -1.7]",
    "[ 1., -1.]", gradient=CONSTANT, cuda={"biu": "a", "f": "trunc(a)"})
add = binary(
    "add", np.add, "the sums of the elements", "[1, 2]", "[10, 20]", "[11, 22]", dunder="add",
    gradient=(_of_add, reading()),
    cuda={"b": "a || b", "iu": "(R)((U)a + (U)b)", "f": "a + b", "c": "made(a.re + b.re, a.im + b.im)"})
atan2 = arctan2 = binary(
    "atan2 arctan2", np.arctan2, "the angle of each point (x2, x1), in radians", "[0.0, 1.0]", "[1.0, 0.0]",
    "[0.        , 1.57079633]",
    gradient=of_pair(lambda x1, x2, y: _over_square(x2, x1, x2), lambda x1, x2, y: -_over_square(x1, x1, x2)),
    cuda={"f": "atan2(a, b)"})
bitwise_and = binary(
    "bitwise_and", np.bitwise_and, "the bitwise and of the elements", "[1, 6]", "[3, 3]", "[1, 2]", dunder="and",
    gradient=None, cuda={"b": "a && b", "iu": "(R)(a & b)"})
bitwise_left_shift = left_shift = binary(
    "bitwise_left_shift left_shift", np.left_shift, "the bits of x1 moved left by x2", "[1, 2]", "[3, 3]", "[ 8, 16]",
    dunder="lshift", gradient=None, cuda={"iu": "(u64)b < 8 * sizeof(A) ? (R)((U)a << b) : (R)0"})
bitwise_or = binary(
    "bitwise_or", np.bitwise_or, "the bitwise or of the elements", "[1, 6]", "[3, 3]", "[3, 7]", dunder="or",
    gradient=None, cuda={"b": "a || b", "iu": "(R)(a | b)"})
bitwise_right_shift = right_shift = binary(
    "bitwise_right_shift right_shift", np.right_shift, "the bits of x1 moved right by x2", "[8, 9]", "[1, 1]", "[4, 4]",
    dunder="rshift", gradient=None, cuda={"iu": "(u64)b < 8 * sizeof(A) ? (R)(a >> b) : (R)(a < 0 ? -1 : 0)"})
bitwise_xor = binary(
    "bitwise_xor", np.bitwise_xor, "the bitwise exclusive or of the elements", "[1, 6]", "[3, 3]", "[2, 5]",
    dunder="xor", gradient=None, cuda={"b": "a != b", "iu": "(R)(a ^ b)"})
copysign = binary(
    "copysign", np.copysign, "the magnitudes of x1 with the signs of x2", "[1.0, 2.0]", "[-1.0, 1.0]", "[-1.,  2.]",
    gradient=of_pair(lambda x1, x2, y: _sign_of(x2) * sign(x1), None), cuda={"f": "copysign(a, b)"})
divide = true_divide = binary(
    "divide true_divide", np.divide, "the quotients of the elements, as floating-point numbers", "[1, 3]", "[2, 2]",
    "[0.5, 1.5]", dunder="truediv",
    gradient=of_pair(
        lambda x1, x2, y: 1 / x2, lambda x1, x2, y: -y / x2, outputs=[0], each=(reading([1]), reading([1], [0]))),
    cuda={"iu": "(R)a / (R)b", "f": "a / b", "c": "complex_quotient(a, b)"})
equal = binary(
    "equal", np.equal, "whether the elements are equal", "[1, 2]", "[1, 3]", "[ True, False]", dunder="eq",
    gradient=None, cuda={"biuf": "a == b", "c": "a.re == b.re && a.im == b.im"})
float_power = binary(
    "float_power", np.float_power, "x1 to the power of x2, at least in double precision", "[2, 3]", "[2, -1]",
    "[4.        , 0.33333333]", gradient=of_pair(_power_base, _power_exponent, outputs=[0]), cuda={"f": "pow(a, b)"})
floor_divide = binary(
    "floor_divide", np.floor_divide, "the greatest integers not greater than the quotients", "[7, -7]", "[2, 2]",
    "[ 3, -4]", dunder="floordiv", gradient=CONSTANT, cuda={"iu": "quotient(a, b)", "f": "real_quotient(a, b)"})
fmax = binary(
    "fmax", np.fmax, "the greater of the elements, a number rather than NaN", "[1.0, float('nan')]", "[0.0, 2.0]",
    "[1., 2.]", gradient=_extreme(lambda x1, x2: greater(x1, x2), past_nan=True),
    cuda={"b": "a || b", "iu": "a > b ? a : b", "f": "a >= b || b != b ? a : b",
        "c": "nan_(b) || at_least(a, b) ? a : b"})
fmin = binary(
    "fmin", np.fmin, "the lesser of the elements, a number rather than NaN", "[1.0, float('nan')]", "[0.0, 2.0]",
    "[0., 2.]", gradient=_extreme(lambda x1, x2: less(x1, x2), past_nan=True),
    cuda={"b": "a && b", "iu": "a < b ? a : b", "f": "a <= b || b != b ? a : b",
        "c": "nan_(b) || at_least(b, a) ? a : b"})
fmod = binary(
    "fmod", np.fmod, "the remainders of division towards zero, with the sign of x1", "[7, -7]", "[3, 3]", "[ 1, -1]",
    gradient=of_pair(lambda x1, x2, y: 1.0, lambda x1, x2, y: -trunc(x1 / x2)),
    cuda={"iu": "fraction(a, b)", "f": "fmod(a, b)"})
gcd = binary(
    "gcd", np.gcd, "the greatest common divisors of integers", "[12, 9]", "[8, 6]", "[4, 3]", gradient=None,
    cuda={"iu": f"(R)gcd<U>({_SIZE_A}, {_SIZE_B})"})
greater = binary(
    "greater", np.greater, "whether x1 is greater than x2", "[1, 3]", "[2, 2]", "[False,  True]", dunder="gt",
    gradient=None, cuda={"biuf": "a > b", "c": "greater(a, b)"})
greater_equal = binary(
    "greater_equal", np.greater_equal, "whether x1 is greater than x2 or equal to it", "[1, 2]", "[2, 2]",
    "[False,  True]", dunder="ge", gradient=None, cuda={"biuf": "a >= b", "c": "at_least(a, b)"})
heaviside = binary(
    "heaviside", np.heaviside, "the step function of x1: 0 below zero, x2 at it, 1 above", "[-1.0, 0.0, 1.0]",
    "[0.5, 0.5, 0.5]", "[0. , 0.5, 1. ]",
    gradient=of_pair(None, lambda x1, x2, y: cast_like(equal(x1, 0), y), inputs=[0], outputs=[0]),
    cuda={"f": "a > 0 ? (R)1 : a < 0 ? (R)0 : a == 0 ? b : a"})
hypot = binary(
    "hypot", np.hypot, "the hypotenuse of each right triangle of legs x1 and x2", "[3.0]", "[4.0]", "[5.]",
    gradient=of_pair(lambda x1, x2, y: _share(x1, y), lambda x1, x2, y: _share(x2, y), outputs=[0]),
    cuda={"f": "hypot(a, b)"})
lcm = binary(
    "lcm", np.lcm, "the least common multiples of integers", "[4, 6]", "[6, 9]", "[12, 18]", gradient=None,
    cuda={"iu": f"a && b ? (R)({_SIZE_A} / gcd<U>({_SIZE_A}, {_SIZE_B}) * {_SIZE_B}) : (R)0"})
ldexp = binary(
    "ldexp", np.ldexp, "x1 times 2 to the power of the integers x2", "[1.0, 3.0]", "[2, 3]", "[ 4., 24.]",
    gradient=of_pair(_two_to, None, inputs=[1]), cuda=_cuda_ldexp)
less = binary(
    "less", np.less, "whether x1 is less than x2", "[1, 3]", "[2, 2]", "[ True, False]", dunder="lt", gradient=None,
    cuda={"biuf": "a < b", "c": "greater(b, a)"})
less_equal = binary(
    "less_equal", np.less_equal, "whether x1 is less than x2 or equal to it", "[1, 3]", "[2, 2]", "[ True, False]",
    dunder="le", gradient=None, cuda={"biuf": "a <= b", "c": "at_least(b, a)"})
logaddexp = binary(
    "logaddexp", np.logaddexp, "log(exp(x1) + exp(x2)), without overflow", "[0.0]", "[0.0]", "[0.69314718]",
    gradient=of_pair(lambda x1, x2, y: exp(x1 - y), lambda x1, x2, y: exp(x2 - y), outputs=[0]),
    cuda={"f": "log_add(a, b)"})
logaddexp2 = binary(
    "logaddexp2", np.logaddexp2, "log2(2 ** x1 + 2 ** x2), without overflow", "[1.0]", "[1.0]", "[2.]",
    gradient=of_pair(lambda x1, x2, y: exp2(x1 - y), lambda x1, x2, y: exp2(x2 - y), outputs=[0]),
    cuda={"f": "log_add_2(a, b)"})
logical_and = binary(
    "logical_and", np.logical_and, "whether both elements are non-zero", "[0, 1]", "[1, 2]", "[False,  True]",
    gradient=None, cuda={"biuf": "a && b", "c": "truth(a) && truth(b)"})
logical_or = binary(
    "logical_or", np.logical_or, "whether one of the elements is non-zero, or both", "[0, 0]", "[1, 0]",
    "[ True, False]", gradient=None, cuda={"biuf": "a || b", "c": "truth(a) || truth(b)"})
logical_xor = binary(
    "logical_xor", np.logical_xor, "whether exactly one of the elements is non-zero", "[0, 1]", "[1, 2]",
    "[ True, False]", gradient=None, cuda={"biuf": "(!a) != (!b)", "c": "truth(a) != truth(b)"})
maximum = binary(
    "maximum", np.maximum, "the greater of the elements, NaN if one is NaN", "[1, 4]", "[2, 3]", "[2, 4]",
    gradient=_extreme(lambda x1, x2: greater(x1, x2), past_nan=False),
    cuda={"b": "a || b", "iu": "a > b ? a : b", "f": "a >= b || a != a ? a : b",
        "c": "nan_(a) || at_least(a, b) ? a : b"})
minimum = binary(
    "minimum", np.minimum, "the lesser of the elements, NaN if one is NaN", "[1, 4]", "[2, 3]", "[1, 3]",
    gradient=_extreme(lambda x1, x2: less(x1, x2), past_nan=False),
    cuda={"b": "a && b", "iu": "a < b ? a : b", "f": "a <= b || a != a ? a : b",
        "c": "nan_(a) || at_least(b, a) ? a : b"})
multiply = binary(
    "multiply", np.multiply, "the products of the elements", "[2, 3]", "[4, 5]", "[ 8, 15]", dunder="mul",
    gradient=of_pair(lambda x1, x2, y: x2, lambda x1, x2, y: x1, each=(reading([1]), reading([0]))),
    cuda={"b": "a && b", "iu": "(R)((U)a * (U)b)", "f": "a * b",
        "c": "made(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)"})
nextafter = binary(
    "nextafter", np.nextafter, "the representable number after x1 towards x2", "[0.0]", "[0.0]", "[0.]",
    gradient=(_of_nextafter, reading()), cuda=_wide("nextafter(a, b)"))
not_equal = binary(
    "not_equal", np.not_equal, "whether the elements differ", "[1, 2]", "[1, 3]", "[False,  True]", dunder="ne",
    gradient=None, cuda={"biuf": "a != b", "c": "a.re != b.re || a.im != b.im"})
pow = power = binary(
    "pow power", np.power, "x1 to the power of x2", "[2, 3]", "[3, 2]", "[8, 9]", dunder="pow",
    gradient=of_pair(_power_base, _power_exponent, outputs=[0]), cuda={"iu": "power(a, b)", "f": "pow(a, b)"})
remainder = mod = binary(
    "remainder mod", np.remainder, "the remainders of floor division, with the sign of x2", "[7, -7]", "[3, 3]",
    "[1, 2]", dunder="mod", gradient=of_pair(lambda x1, x2, y: 1.0, lambda x1, x2, y: -floor_divide(x1, x2)),
    cuda={"iu": "modulus(a, b)", "f": "real_modulus(a, b)"})
subtract = binary(
    "subtract", np.subtract, "the differences of the elements", "[3, 2]", "[1, 5]", "[ 2, -3]", dunder="sub",
    gradient=(_of_subtract, reading()),
    cuda={"iu": "(R)((U)a - (U)b)", "f": "a - b", "c": "made(a.re - b.re, a.im - b.im)"})

# fmt: on

state(get_op("spacing"), cupy=_spacing_by_cupy)
state(get_op("pow"), cuda_check=_check_power_on_cuda)
globals()["__all__"] = MADE  # type checkers read the rows
__test__ = {name: globals()[name].__doc__ for name in MADE}  # doctest finds functions made elsewhere only by this
