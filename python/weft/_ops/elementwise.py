"""Element-wise functions: those of the array API standard and NumPy's, by their names in either.

All broadcast, take Python scalars beside arrays, and push without waiting.
"""

from __future__ import annotations

import numpy as np

from weft._ops.parts import angle, divmod, frexp, imag, modf, real  # noqa: A004 - the standard's names
from weft._ops.rounding import around, clip, isclose, nan_to_num, round  # noqa: A004 - the standard's names
from weft._ops.ufuncs import binary, unary

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "imag",
    "invert",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "lcm",
    "ldexp",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "modf",
    "multiply",
    "nan_to_num",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "remainder",
    "right_shift",
    "rint",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "spacing",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
]

abs = unary(  # noqa: A001 - the standard's name
    "abs", np.absolute, "the absolute value of each element", "[-1, 2]", "[1, 2]", aliases=("absolute",)
)
absolute = abs
acos = unary(
    "acos",
    np.arccos,
    "the inverse cosine of each element, in radians",
    "[1.0, 0.0]",
    "[0.        , 1.57079633]",
    aliases=("arccos",),
)
arccos = acos
acosh = unary(
    "acosh",
    np.arccosh,
    "the inverse hyperbolic cosine of each element",
    "[1.0, 2.0]",
    "[0.       , 1.3169579]",
    aliases=("arccosh",),
)
arccosh = acosh
asin = unary(
    "asin",
    np.arcsin,
    "the inverse sine of each element, in radians",
    "[0.0, 1.0]",
    "[0.        , 1.57079633]",
    aliases=("arcsin",),
)
arcsin = asin
asinh = unary(
    "asinh",
    np.arcsinh,
    "the inverse hyperbolic sine of each element",
    "[0.0, 1.0]",
    "[0.        , 0.88137359]",
    aliases=("arcsinh",),
)
arcsinh = asinh
atan = unary(
    "atan",
    np.arctan,
    "the inverse tangent of each element, in radians",
    "[0.0, 1.0]",
    "[0.        , 0.78539816]",
    aliases=("arctan",),
)
arctan = atan
atanh = unary(
    "atanh",
    np.arctanh,
    "the inverse hyperbolic tangent of each element",
    "[0.0, 0.5]",
    "[0.        , 0.54930614]",
    aliases=("arctanh",),
)
arctanh = atanh
bitwise_count = unary(
    "bitwise_count",
    np.bitwise_count,
    "the number of 1 bits in the absolute value of each element",
    "[1, 7]",
    "[1, 3], dtype=uint8",
)
bitwise_invert = unary(
    "bitwise_invert",
    np.invert,
    "each element with all its bits flipped; booleans are negated",
    "[0, 5]",
    "[-1, -6]",
    aliases=("invert", "bitwise_not"),
)
invert = bitwise_invert
bitwise_not = bitwise_invert
cbrt = unary("cbrt", np.cbrt, "the cube root of each element", "[8.0, 27.0]", "[2., 3.]")
ceil = unary(
    "ceil", np.ceil, "the smallest integer not less than each element, in the same dtype", "[0.2, 1.0]", "[1., 1.]"
)
conj = unary(
    "conj", np.conjugate, "the complex conjugate of each element", "[1 + 2j]", "[1.-2.j]", aliases=("conjugate",)
)
conjugate = conj
cos = unary("cos", np.cos, "the cosine of each element, taken in radians", "[0.0]", "[1.]")
cosh = unary("cosh", np.cosh, "the hyperbolic cosine of each element", "[0.0]", "[1.]")
degrees = unary(
    "degrees", np.degrees, "each angle in radians converted to degrees", "[0.0]", "[0.]", aliases=("rad2deg",)
)
rad2deg = degrees
exp = unary("exp", np.exp, "e to the power of each element", "[0.0, 1.0]", "[1.        , 2.71828183]")
exp2 = unary("exp2", np.exp2, "2 to the power of each element", "[0.0, 3.0]", "[1., 8.]")
expm1 = unary("expm1", np.expm1, "exp(x) - 1 for each element, precise for small ones", "[0.0]", "[0.]")
fabs = unary(
    "fabs", np.fabs, "the absolute value of each real element, as a floating-point number", "[-1, 2]", "[1., 2.]"
)
floor = unary(
    "floor",
    np.floor,
    "the greatest integer not greater than each element, in the same dtype",
    "[0.8, -0.2]",
    "[ 0., -1.]",
)
isfinite = unary(
    "isfinite", np.isfinite, "whether each element is neither infinite nor NaN", "[1.0, float('inf')]", "[ True, False]"
)
isinf = unary("isinf", np.isinf, "whether each element is infinite", "[1.0, float('inf')]", "[False,  True]")
isnan = unary("isnan", np.isnan, "whether each element is NaN", "[1.0, float('nan')]", "[False,  True]")
log = unary("log", np.log, "the natural logarithm of each element", "[1.0]", "[0.]")
log10 = unary("log10", np.log10, "the logarithm to base 10 of each element", "[1.0, 100.0]", "[0., 2.]")
log1p = unary("log1p", np.log1p, "log(1 + x) for each element, precise for small ones", "[0.0]", "[0.]")
log2 = unary("log2", np.log2, "the logarithm to base 2 of each element", "[1.0, 8.0]", "[0., 3.]")
logical_not = unary("logical_not", np.logical_not, "whether each element is zero", "[0, 2]", "[ True, False]")
negative = unary("negative", np.negative, "each element with its sign changed", "[1, -2]", "[-1,  2]")
positive = unary("positive", np.positive, "a copy of the elements", "[1, -2]", "[ 1, -2]")
radians = unary(
    "radians", np.radians, "each angle in degrees converted to radians", "[0.0]", "[0.]", aliases=("deg2rad",)
)
deg2rad = radians
reciprocal = unary(
    "reciprocal", np.reciprocal, "1 divided by each element, in the same dtype", "[2.0, 4.0]", "[0.5 , 0.25]"
)
rint = unary(
    "rint",
    np.rint,
    "the integer nearest to each element, as a floating-point number; the even one of two",
    "[0.5, 1.7]",
    "[0., 2.]",
)
sign = unary(
    "sign",
    np.sign,
    "-1, 0 or 1 as each element is negative, zero or positive; x / abs(x) for complex ones",
    "[-3, 0, 2]",
    "[-1,  0,  1]",
)
signbit = unary("signbit", np.signbit, "whether each element has its sign bit set", "[-1.0, 0.0]", "[ True, False]")
sin = unary("sin", np.sin, "the sine of each element, taken in radians", "[0.0]", "[0.]")
sinh = unary("sinh", np.sinh, "the hyperbolic sine of each element", "[0.0]", "[0.]")
spacing = unary(
    "spacing", np.spacing, "the distance from each element to its nearest neighbour", "[1.0]", "[2.22044605e-16]"
)
sqrt = unary("sqrt", np.sqrt, "the non-negative square root of each element", "[4.0, 9.0]", "[2., 3.]")
square = unary("square", np.square, "the square of each element", "[2, 3]", "[4, 9]")
tan = unary("tan", np.tan, "the tangent of each element, taken in radians", "[0.0]", "[0.]")
tanh = unary("tanh", np.tanh, "the hyperbolic tangent of each element", "[0.0]", "[0.]")
trunc = unary(
    "trunc",
    np.trunc,
    "the integer nearest to each element towards zero, in the same dtype",
    "[1.7, -1.7]",
    "[ 1., -1.]",
)

add = binary("add", np.add, "the sums of the elements", "[1, 2]", "[10, 20]", "[11, 22]")
atan2 = binary(
    "atan2",
    np.arctan2,
    "the angle of each point (x2, x1), in radians",
    "[0.0, 1.0]",
    "[1.0, 0.0]",
    "[0.        , 1.57079633]",
    aliases=("arctan2",),
)
arctan2 = atan2
bitwise_and = binary("bitwise_and", np.bitwise_and, "the bitwise and of the elements", "[1, 6]", "[3, 3]", "[1, 2]")
bitwise_left_shift = binary(
    "bitwise_left_shift",
    np.left_shift,
    "the bits of x1 moved left by x2",
    "[1, 2]",
    "[3, 3]",
    "[ 8, 16]",
    aliases=("left_shift",),
)
left_shift = bitwise_left_shift
bitwise_or = binary("bitwise_or", np.bitwise_or, "the bitwise or of the elements", "[1, 6]", "[3, 3]", "[3, 7]")
bitwise_right_shift = binary(
    "bitwise_right_shift",
    np.right_shift,
    "the bits of x1 moved right by x2",
    "[8, 9]",
    "[1, 1]",
    "[4, 4]",
    aliases=("right_shift",),
)
right_shift = bitwise_right_shift
bitwise_xor = binary(
    "bitwise_xor", np.bitwise_xor, "the bitwise exclusive or of the elements", "[1, 6]", "[3, 3]", "[2, 5]"
)
copysign = binary(
    "copysign", np.copysign, "the magnitudes of x1 with the signs of x2", "[1.0, 2.0]", "[-1.0, 1.0]", "[-1.,  2.]"
)
divide = binary(
    "divide",
    np.divide,
    "the quotients of the elements, as floating-point numbers",
    "[1, 3]",
    "[2, 2]",
    "[0.5, 1.5]",
    aliases=("true_divide",),
)
true_divide = divide
equal = binary("equal", np.equal, "whether the elements are equal", "[1, 2]", "[1, 3]", "[ True, False]")
float_power = binary(
    "float_power",
    np.float_power,
    "x1 to the power of x2, at least in double precision",
    "[2, 3]",
    "[2, -1]",
    "[4.        , 0.33333333]",
)
floor_divide = binary(
    "floor_divide",
    np.floor_divide,
    "the greatest integers not greater than the quotients",
    "[7, -7]",
    "[2, 2]",
    "[ 3, -4]",
)
fmax = binary(
    "fmax",
    np.fmax,
    "the greater of the elements, a number rather than NaN",
    "[1.0, float('nan')]",
    "[0.0, 2.0]",
    "[1., 2.]",
)
fmin = binary(
    "fmin",
    np.fmin,
    "the lesser of the elements, a number rather than NaN",
    "[1.0, float('nan')]",
    "[0.0, 2.0]",
    "[0., 2.]",
)
fmod = binary(
    "fmod", np.fmod, "the remainders of division towards zero, with the sign of x1", "[7, -7]", "[3, 3]", "[ 1, -1]"
)
gcd = binary("gcd", np.gcd, "the greatest common divisors of integers", "[12, 9]", "[8, 6]", "[4, 3]")
greater = binary("greater", np.greater, "whether x1 is greater than x2", "[1, 3]", "[2, 2]", "[False,  True]")
greater_equal = binary(
    "greater_equal",
    np.greater_equal,
    "whether x1 is greater than x2 or equal to it",
    "[1, 2]",
    "[2, 2]",
    "[False,  True]",
)
heaviside = binary(
    "heaviside",
    np.heaviside,
    "the step function of x1: 0 below zero, x2 at it, 1 above",
    "[-1.0, 0.0, 1.0]",
    "[0.5, 0.5, 0.5]",
    "[0. , 0.5, 1. ]",
)
hypot = binary("hypot", np.hypot, "the hypotenuse of each right triangle of legs x1 and x2", "[3.0]", "[4.0]", "[5.]")
lcm = binary("lcm", np.lcm, "the least common multiples of integers", "[4, 6]", "[6, 9]", "[12, 18]")
ldexp = binary("ldexp", np.ldexp, "x1 times 2 to the power of the integers x2", "[1.0, 3.0]", "[2, 3]", "[ 4., 24.]")
less = binary("less", np.less, "whether x1 is less than x2", "[1, 3]", "[2, 2]", "[ True, False]")
less_equal = binary(
    "less_equal", np.less_equal, "whether x1 is less than x2 or equal to it", "[1, 3]", "[2, 2]", "[ True, False]"
)
logaddexp = binary(
    "logaddexp", np.logaddexp, "log(exp(x1) + exp(x2)), without overflow", "[0.0]", "[0.0]", "[0.69314718]"
)
logaddexp2 = binary("logaddexp2", np.logaddexp2, "log2(2 ** x1 + 2 ** x2), without overflow", "[1.0]", "[1.0]", "[2.]")
logical_and = binary(
    "logical_and", np.logical_and, "whether both elements are non-zero", "[0, 1]", "[1, 2]", "[False,  True]"
)
logical_or = binary(
    "logical_or",
    np.logical_or,
    "whether one of the elements is non-zero, or both",
    "[0, 0]",
    "[1, 0]",
    "[ True, False]",
)
logical_xor = binary(
    "logical_xor",
    np.logical_xor,
    "whether exactly one of the elements is non-zero",
    "[0, 1]",
    "[1, 2]",
    "[ True, False]",
)
maximum = binary("maximum", np.maximum, "the greater of the elements, NaN if one is NaN", "[1, 4]", "[2, 3]", "[2, 4]")
minimum = binary("minimum", np.minimum, "the lesser of the elements, NaN if one is NaN", "[1, 4]", "[2, 3]", "[1, 3]")
multiply = binary("multiply", np.multiply, "the products of the elements", "[2, 3]", "[4, 5]", "[ 8, 15]")
nextafter = binary("nextafter", np.nextafter, "the representable number after x1 towards x2", "[0.0]", "[0.0]", "[0.]")
not_equal = binary("not_equal", np.not_equal, "whether the elements differ", "[1, 2]", "[1, 3]", "[False,  True]")
pow = binary(  # noqa: A001 - the standard's name
    "pow", np.power, "x1 to the power of x2", "[2, 3]", "[3, 2]", "[8, 9]", aliases=("power",)
)
power = pow
remainder = binary(
    "remainder",
    np.remainder,
    "the remainders of floor division, with the sign of x2",
    "[7, -7]",
    "[3, 3]",
    "[1, 2]",
    aliases=("mod",),
)
mod = remainder
subtract = binary("subtract", np.subtract, "the differences of the elements", "[3, 2]", "[1, 5]", "[ 2, -3]")

__test__ = {name: globals()[name].__doc__ for name in __all__}  # doctest finds functions made elsewhere by this alone
