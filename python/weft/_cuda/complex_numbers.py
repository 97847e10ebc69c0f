"""Functions of complex numbers in CUDA C++: NumPy's, down to infinities, NaN and the signs of zeros.

Those of C are written as C99 asks for (Annex G), after the ways that W. Kahan ("Branch Cuts for Complex Elementary
Functions", 1987) and FreeBSD's msun describe; quotients by R. L. Smith's algorithm, as in NumPy.
"""

from __future__ import annotations

#: Functions that the expressions use.
HEADER = r"""
template <class T> __device__ bool nan_(T x) { return x != x; }
template <class T> __device__ bool nan_(Complex<T> z) { return z.re != z.re || z.im != z.im; }
template <class T> __device__ bool finite_(T x) { return x - x == x - x; }
template <class T> __device__ bool infinite_(T x) { return x == x && !finite_(x); }
template <class T> __device__ bool truth(Complex<T> z) { return z.re != 0 || z.im != 0; }
template <class T> __device__ bool greater(Complex<T> a, Complex<T> b) {
    return (a.re > b.re && !nan_(a.im) && !nan_(b.im)) || (a.re == b.re && a.im > b.im);
}
template <class T> __device__ bool at_least(Complex<T> a, Complex<T> b) {
    return (a.re > b.re && !nan_(a.im) && !nan_(b.im)) || (a.re == b.re && a.im >= b.im);
}
template <class T> __device__ Complex<T> swapped(Complex<T> z) { return made(z.im, z.re); }
template <class T> __device__ Complex<T> times(Complex<T> z, T by) { return made(z.re * by, z.im * by); }

template <class T> __device__ Complex<T> complex_quotient(Complex<T> a, Complex<T> b) {
    T re = fabs(b.re), im = fabs(b.im);
    if (re >= im) {
        if (re == 0 && im == 0) return made(a.re / re, a.im / re);
        T ratio = b.im / b.re, scale = (T)1 / (b.re + b.im * ratio);
        return made((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale);
    }
    T ratio = b.re / b.im, scale = (T)1 / (b.im + b.re * ratio);
    return made((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale);
}
template <class T> __device__ Complex<T> complex_reciprocal(Complex<T> a) {
    if (fabs(a.im) <= fabs(a.re)) {
        T ratio = a.im / a.re, scale = a.re + a.im * ratio;
        return made((T)1 / scale, -ratio / scale);
    }
    T ratio = a.re / a.im, scale = a.re * ratio + a.im;
    return made(ratio / scale, (T)-1 / scale);
}
template <class T> __device__ Complex<T> complex_sign(Complex<T> a) {
    T size = hypot(a.re, a.im);
    if (nan_(size)) return made(size, size);
    if (infinite_(size)) {
        if (infinite_(a.re) && infinite_(a.im)) return made(size - size, size - size);
        return infinite_(a.re) ? made(copysign((T)1, a.re), (T)0) : made((T)0, copysign((T)1, a.im));
    }
    return size == 0 ? made((T)0, (T)0) : made(a.re / size, a.im / size);
}

/* e to the x times (a + bi), where the product may be in range though the power is not. */
template <class T> __device__ Complex<T> scaled(T x, T a, T b) {
    if (x > (sizeof(T) == 8 ? (T)700 : (T)80)) {
        T half = exp(x / 2);
        return made(a * half * half, b * half * half);
    }
    T power = exp(x);
    return made(a * power, b * power);
}
template <class T> __device__ Complex<T> complex_exp(Complex<T> z) {
    T x = z.re, y = z.im;
    if (y == 0) return made(exp(x), y);
    if (!finite_(y)) {
        if (infinite_(x)) return x < 0 ? made((T)0, copysign((T)0, y)) : made(x, y - y);
        return made(y - y, y - y);
    }
    if (nan_(x)) return made(x, x);
    return scaled(x, cos(y), sin(y));
}
template <class T> __device__ Complex<T> complex_expm1(Complex<T> z) {
    T half = sin(z.im / 2);
    return made(expm1(z.re) * cos(z.im) - 2 * half * half, exp(z.re) * sin(z.im));
}
template <class T> __device__ Complex<T> complex_log(Complex<T> z) {
    T large = fabs(z.re), small = fabs(z.im), angle = atan2(z.im, z.re);
    if (large < small) { T other = large; large = small; small = other; }
    if (large > (T)0.5 && large < (T)2) return made(log1p((large - 1) * (large + 1) + small * small) / 2, angle);
    if (large > (sizeof(T) == 8 ? (T)1e300 : (T)1e37) && finite_(large))
        return made(log(hypot(z.re / 2, z.im / 2)) + (T)0.693147180559945309417232121458176568, angle);
    return made(log(hypot(z.re, z.im)), angle);
}
template <class T> __device__ Complex<T> complex_log1p(Complex<T> z) {
    T size = hypot(z.re + 1, z.im);
    return made(log(size), atan2(z.im, z.re + 1));
}
template <class T> __device__ Complex<T> complex_sqrt(Complex<T> z) {
    T x = z.re, y = z.im, scale = 1;
    if (x == 0 && y == 0) return made((T)0, y);
    if (infinite_(y)) return made(fabs(y), y);
    if (nan_(x)) return made(x, x);
    if (infinite_(x)) return x < 0 ? made(fabs(y - y), copysign(x, y)) : made(x, copysign(y - y, y));
    if (nan_(y)) return made(y, y);
    T size = fabs(x) > fabs(y) ? fabs(x) : fabs(y);
    if (size > (sizeof(T) == 8 ? (T)4e307 : (T)8e37)) { x /= 4; y /= 4; scale = 2; }
    if (size < (sizeof(T) == 8 ? (T)1e-300 : (T)1e-34)) {
        x *= (T)18014398509481984.0; y *= (T)18014398509481984.0; scale = (T)7.450580596923828125e-9; /* 2 to the 54, to the -27 */
    }
    T root = sqrt((fabs(x) + hypot(x, y)) / 2);
    return times(x >= 0 ? made(root, y / (2 * root)) : made(fabs(y) / (2 * root), copysign(root, y)), scale);
}
template <class T> __device__ Complex<T> complex_sinh(Complex<T> z) {
    T x = z.re, y = z.im;
    if (finite_(x) && finite_(y)) {
        if (y == 0) return made(sinh(x), y);
        if (fabs(x) < (sizeof(T) == 8 ? (T)22 : (T)9)) return made(sinh(x) * cos(y), cosh(x) * sin(y));
        return scaled(fabs(x), copysign((T)0.5, x) * cos(y), (T)0.5 * sin(y));
    }
    if (x == 0) return made(x, y - y);
    if (y == 0) return made(x, y);
    if (finite_(x)) return made(y - y, y - y);
    if (nan_(x)) return made(x, x);
    return finite_(y) ? made(x * cos(y), fabs(x) * sin(y)) : made(fabs(x), y - y);
}
template <class T> __device__ Complex<T> complex_cosh(Complex<T> z) {
    T x = z.re, y = z.im;
    if (finite_(x) && finite_(y)) {
        if (y == 0) return made(cosh(x), x * y);
        if (fabs(x) < (sizeof(T) == 8 ? (T)22 : (T)9)) return made(cosh(x) * cos(y), sinh(x) * sin(y));
        return scaled(fabs(x), (T)0.5 * cos(y), copysign((T)0.5, x) * sin(y));
    }
    if (x == 0) return made(y - y, (T)0);
    if (y == 0) return nan_(x) ? made(x, y) : made(fabs(x), copysign((T)1, x) * y);
    if (finite_(x)) return made(y - y, y - y);
    if (nan_(x)) return made(x, x);
    return finite_(y) ? made(fabs(x) * cos(y), x * sin(y)) : made(fabs(x), y - y);
}
template <class T> __device__ Complex<T> complex_tanh(Complex<T> z) {
    T x = z.re, y = z.im;
    if (nan_(x)) return made(x, y == 0 ? y : x);
    if (infinite_(x)) return made(copysign((T)1, x), copysign((T)0, finite_(y) ? sin(y) * cos(y) : y));
    if (!finite_(y)) return made(x == 0 ? x : y - y, y - y);
    if (fabs(x) >= (sizeof(T) == 8 ? (T)22 : (T)11)) {
        T power = exp(-fabs(x));
        return made(copysign((T)1, x), 4 * sin(y) * cos(y) * power * power);
    }
    T t = tan(y), beta = 1 + t * t, s = sinh(x), rho = sqrt(1 + s * s);
    if (infinite_(t)) return made(rho / s, 1 / t);
    T divisor = 1 + beta * s * s;
    return made(beta * rho * s / divisor, t / divisor);
}
template <class T> __device__ Complex<T> turned(Complex<T> z) { return made(-z.im, z.re); }
"""
