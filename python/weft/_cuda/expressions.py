"""Element-wise functions in CUDA C++: one table, by NumPy's name of the function and the kind of its dtypes.

In an expression ``a`` and ``b`` are the operands, of the types ``A`` and ``B`` in which NumPy computes, ``R`` is the type
of the result, and ``U`` is an unsigned type at least as wide as ``A``, in which integers wrap. Semantics are NumPy's:
quotients round down, remainders have the divisor's sign, division of an integer by zero gives zero, ``maximum`` passes
NaN on, shifts by more bits than there are give what shifting bit by bit would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._cuda.complex_numbers import EXPRESSIONS as COMPLEX

if TYPE_CHECKING:
    from weft._registry.avals import DType

__all__ = ["HEADER", "expression"]

#: Functions that the expressions use.
HEADER = r"""
typedef unsigned char u8;
typedef unsigned long long u64;
template <class T> struct __align__(2 * sizeof(T)) Complex { T re, im; };

template <class To, class From> struct Cast { static __device__ To of(From x) { return (To)x; } };
template <class From> struct Cast<bool, From> { static __device__ bool of(From x) { return x != (From)0; } };
template <class T> struct Cast<bool, Complex<T> > {
    static __device__ bool of(Complex<T> x) { return x.re != 0 || x.im != 0; }
};
template <class T, class From> struct Cast<Complex<T>, From> {
    static __device__ Complex<T> of(From x) { Complex<T> made = {(T)x, 0}; return made; }
};
template <class T, class From> struct Cast<Complex<T>, Complex<From> > {
    static __device__ Complex<T> of(Complex<From> x) { Complex<T> made = {(T)x.re, (T)x.im}; return made; }
};

template <class T> __device__ Complex<T> made(T re, T im) { Complex<T> z = {re, im}; return z; }
template <class T> __device__ T quotient(T a, T b) {
    if (b == 0) return 0;
    if (b == (T)-1 && (T)-1 < (T)0) return (T)(0 - (u64)a);
    T q = a / b;
    return q * b != a && ((a < 0) != (b < 0)) ? (T)(q - 1) : q;
}
template <class T> __device__ T modulus(T a, T b) {
    if (b == 0 || (b == (T)-1 && (T)-1 < (T)0)) return 0;
    T r = a % b;
    return r != 0 && ((r < 0) != (b < 0)) ? (T)(r + b) : r;
}
template <class T> __device__ T real_modulus(T a, T b) {
    T r = fmod(a, b);
    if (b == 0) return r;
    if (r == 0) return copysign((T)0, b);
    return (b < 0) != (r < 0) ? r + b : r;
}
template <class T> __device__ T real_quotient(T a, T b) {
    if (b == 0) return a / b;
    T r = fmod(a, b), q = (a - r) / b;
    if (r != 0 && (b < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign((T)0, a / b);
    T f = floor(q);
    return q - f > (T)0.5 ? f + 1 : f;
}
template <class T> __device__ T power(T a, T b) {
    u64 result = 1, base = (u64)a;
    for (u64 left = (u64)b; left; left >>= 1) {
        if (left & 1) result *= base;
        base *= base;
    }
    return (T)result;
}
template <class T> __device__ T fraction(T a, T b) { return b == 0 || (b == (T)-1 && (T)-1 < (T)0) ? (T)0 : (T)(a % b); }
template <class T> __device__ T gcd(T a, T b) {
    while (b) { T rest = a % b; a = b; b = rest; }
    return a;
}
template <class T> __device__ int bits(T a) {
    int count = 0;
    for (; a; a &= a - 1) ++count;
    return count;
}
template <class T> __device__ T larger(T a, T b) { return a >= b || a != a ? a : b; }
template <class T> __device__ T lesser(T a, T b) { return a <= b || a != a ? a : b; }
template <class T> __device__ T mantissa(T a) { int power; return frexp(a, &power); }
template <class T> __device__ int exponent(T a) {
    int power = 0;
    frexp(a, &power);
    return a - a == a - a ? power : 0;
}
template <class T> __device__ T log_add_2(T a, T b) {
    if (a == b) return a + 1;
    T d = a - b, scale = (T)1.442695040888963407359924681001892137;
    if (d > 0) return a + scale * log1p(exp2(-d));
    return d <= 0 ? b + scale * log1p(exp2(d)) : d;
}
template <class T> __device__ T log_add(T a, T b) {
    if (a == b) return a + (T)0.693147180559945309417232121458176568;
    T d = a - b;
    if (d > 0) return a + log1p(exp(-d));
    return d <= 0 ? b + log1p(exp(d)) : d;
}
"""

_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
_LOGICAL = {"logical_and": "a && b", "logical_or": "a || b", "logical_xor": "(!a) != (!b)", "logical_not": "!a"}
_COMPARISONS = {
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
#: Functions of floating-point numbers that CUDA has under some name.
_FUNCTIONS = {
    **{
        name: name for name in ("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rint", "fabs")
    },
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
_BOOLEAN = {
    **_LOGICAL,
    "add": "a || b",
    "multiply": "a && b",
    "maximum": "a || b",
    "minimum": "a && b",
    "fmax": "a || b",
    "fmin": "a && b",
    "bitwise_and": "a && b",
    "bitwise_or": "a || b",
    "bitwise_xor": "a != b",
    "invert": "!a",
    "absolute": "a",
    "floor": "a",
    "ceil": "a",
    "trunc": "a",
    "isnan": "false",
    "isinf": "false",
    "isfinite": "true",
}
#: An integer without its sign.
_SIZE = "({0} < 0 ? 0 - (U){0} : (U){0})"
_INTEGER = {
    **{name: f"(R)((U)a {sign} (U)b)" for name, sign in _ARITHMETIC.items()},
    **{name: f"(R)(a {sign} b)" for name, sign in _BITWISE.items()},
    **_LOGICAL,
    "divide": "(R)a / (R)b",
    "floor_divide": "quotient(a, b)",
    "remainder": "modulus(a, b)",
    "fmod": "fraction(a, b)",
    "gcd": f"(R)gcd<U>({_SIZE.format('a')}, {_SIZE.format('b')})",
    "lcm": f"a && b ? (R)({_SIZE.format('a')} / gcd<U>({_SIZE.format('a')}, {_SIZE.format('b')}) * {_SIZE.format('b')}) : (R)0",
    "bitwise_count": f"(R)bits({_SIZE.format('a')})",
    "reciprocal": "(R)(1.0 / a)",
    "power": "power(a, b)",
    "square": "(R)((U)a * (U)a)",
    "negative": "(R)(0 - (U)a)",
    "absolute": "a < 0 ? (R)(0 - (U)a) : a",
    "sign": "(R)((a > 0) - (a < 0))",
    "invert": "(R)~a",
    "maximum": "a > b ? a : b",
    "minimum": "a < b ? a : b",
    "fmax": "a > b ? a : b",
    "fmin": "a < b ? a : b",
    "left_shift": "(u64)b < 8 * sizeof(A) ? (R)((U)a << b) : (R)0",
    "right_shift": "(u64)b < 8 * sizeof(A) ? (R)(a >> b) : (R)(a < 0 ? -1 : 0)",
    "floor": "a",
    "ceil": "a",
    "trunc": "a",
    "isnan": "false",
    "isinf": "false",
    "isfinite": "true",
    "conjugate": "a",
}
_REAL = {
    **{name: f"a {sign} b" for name, sign in _ARITHMETIC.items()},
    **{name: f"{function}(a)" for name, function in _FUNCTIONS.items()},
    **_LOGICAL,
    "divide": "a / b",
    "floor_divide": "real_quotient(a, b)",
    "remainder": "real_modulus(a, b)",
    "fmod": "fmod(a, b)",
    "power": "pow(a, b)",
    "square": "a * a",
    "reciprocal": "(R)1 / a",
    "negative": "-a",
    "absolute": "fabs(a)",
    "sign": "a > 0 ? (R)1 : a < 0 ? (R)-1 : a == 0 ? (R)0 : a",
    "maximum": "a >= b || a != a ? a : b",
    "minimum": "a <= b || a != a ? a : b",
    "fmax": "a >= b || b != b ? a : b",
    "fmin": "a <= b || b != b ? a : b",
    "arctan2": "atan2(a, b)",
    "hypot": "hypot(a, b)",
    "copysign": "copysign(a, b)",
    "nextafter": "nextafter(a, b)",
    "logaddexp": "log_add(a, b)",
    "logaddexp2": "log_add_2(a, b)",
    "float_power": "pow(a, b)",
    "heaviside": "a > 0 ? (R)1 : a < 0 ? (R)0 : a == 0 ? b : a",
    "spacing": "nextafter(a, a == 0 ? (A)1 : a + a) - a",
    "modf_fraction": "a - a == a - a ? copysign(a - trunc(a), a) : a != a ? a : copysign((R)0, a)",
    "frexp_mantissa": "mantissa(a)",
    "frexp_exponent": "(R)exponent(a)",
    "isnan": "a != a",
    "isinf": "a == a && a - a != a - a",
    "isfinite": "a - a == a - a",
    "signbit": "copysign((A)1, a) < 0",
    "conjugate": "a",
    **dict.fromkeys(("deg2rad", "radians"), "a * ((R)3.14159265358979323846264338327950288 / (R)180)"),
    **dict.fromkeys(("rad2deg", "degrees"), "a * ((R)180 / (R)3.14159265358979323846264338327950288)"),
}
#: What depends on how far apart numbers lie: half precision is computed in single, where they lie closer.
_BY_SPACING = ("frexp", "ldexp", "nextafter", "spacing")
_TABLES = {"b": _BOOLEAN, "i": _INTEGER, "u": _INTEGER, "f": _REAL, "c": COMPLEX}


def expression(name: str, inputs: tuple[DType, ...]) -> str | None:
    """Return what a function computes, for operands of these dtypes; None if there is no kernel of it.

    Parameters
    ----------
    name : str
        NumPy's name of the function.
    inputs : tuple of numpy.dtype
        The dtypes that it computes in.

    Examples
    --------
    >>> import numpy
    >>> from weft._cuda.expressions import expression
    >>> expression("maximum", (numpy.dtype("float32"),) * 2)
    'a >= b || a != a ? a : b'
    >>> expression("arcsin", (numpy.dtype("complex64"),)) is None
    True
    """
    first = inputs[0]
    if first.name == "float16" and name in _BY_SPACING:
        return None
    if name == "ldexp" and first.kind == "f" and inputs[1].kind == "i":
        return "ldexp(a, (int)(b > 9999 ? 9999 : b < -9999 ? -9999 : b))"
    if any(each != first for each in inputs):
        return None
    if name == "positive":
        return "a"
    if name in _COMPARISONS and first.kind != "c":
        return f"a {_COMPARISONS[name]} b"
    return _TABLES[first.kind].get(name)
