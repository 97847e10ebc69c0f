"""The CUDA C++ of element-wise functions: the attribute ``"cuda"`` of their ops, and functions that CUDA lacks for it.

The attribute is a mapping from kinds of dtype to an expression, or a function of the dtypes; see `weft._ops.elementwise`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._core import find_op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft._registry.avals import DType
    from weft._registry.op import Op

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


def expression(name: str, inputs: tuple[DType, ...]) -> str | None:
    """Return a function's expression for operands of these dtypes; None if there is no kernel of it.

    Parameters
    ----------
    name : str
        The function's name: its op has an attribute ``"cuda"``.
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
    op: Op | None = find_op(name)
    return None if op is None else chosen(op.attribute("cuda", None), inputs)


def chosen(
    stated: Mapping[str, str] | Callable[[tuple[DType, ...]], str | None] | None, inputs: tuple[DType, ...]
) -> str | None:
    """Return which of the expressions that an op states is for operands of these dtypes; None if none is."""
    if callable(stated):
        return stated(inputs)
    if stated is None or any(each != inputs[0] for each in inputs):
        return None
    return next((body for kinds, body in stated.items() if inputs[0].kind in kinds), None)
