"""What kernels are by definition: loops over elements, in NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

__all__ = ["avg_pool", "conv", "conv_transpose", "gru_step", "lstm_step", "max_pool", "pairs", "spread"]

Elements = Any


def spread(value: Any, count: int) -> tuple[Any, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def pairs(value: Any, count: int) -> list[tuple[int, int]]:
    return [(each, each) if isinstance(each, int) else tuple(each) for each in spread(value, count)]


def _padded(x: Elements, padding: Any, value: float, more: int = 0) -> Elements:
    count = x.ndim - 2
    around = [(before, after + more) for before, after in pairs(padding, count)]
    return np.pad(x, [(0, 0), (0, 0), *around], constant_values=value)


def conv(
    x: Elements,
    w: Elements,
    b: Elements = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Elements:
    count = x.ndim - 2
    stride, dilation = spread(stride, count), spread(dilation, count)
    padded = _padded(x, padding, 0)
    kernel = w.shape[2:]
    lengths = [
        (n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], kernel, stride, dilation, strict=True)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *lengths), x.dtype)
    each, filters = x.shape[1] // groups, w.shape[0] // groups
    for n, o in np.ndindex(*out.shape[:2]):
        channels = slice(o // filters * each, (o // filters + 1) * each)
        for place in itertools.product(*map(range, lengths)):
            where = tuple(
                slice(p * s, p * s + (k - 1) * d + 1, d)
                for p, s, k, d in zip(place, stride, kernel, dilation, strict=True)
            )
            out[(n, o, *place)] = (padded[(n, channels, *where)] * w[o]).sum() + (0 if b is None else b[o])
    return out


def conv_transpose(
    x: Elements,
    w: Elements,
    b: Elements = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Elements:
    count = x.ndim - 2
    stride, dilation, extra = spread(stride, count), spread(dilation, count), spread(output_padding, count)
    around = pairs(padding, count)
    kernel = w.shape[2:]
    full = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(x.shape[2:], stride, kernel, dilation, extra, strict=True)
    ]
    filters = w.shape[1]
    out = np.zeros((x.shape[0], filters * groups, *full), x.dtype)
    for n, c in np.ndindex(*x.shape[:2]):
        group = c // (x.shape[1] // groups)
        for place in itertools.product(*map(range, x.shape[2:])):
            where = tuple(
                slice(p * s, p * s + (k - 1) * d + 1, d)
                for p, s, k, d in zip(place, stride, kernel, dilation, strict=True)
            )
            out[(n, slice(group * filters, (group + 1) * filters), *where)] += x[(n, c, *place)] * w[c]
    cut = tuple(slice(before, length - after) for length, (before, after) in zip(full, around, strict=True))
    out = out[(slice(None), slice(None), *cut)]
    return out if b is None else out + b.reshape(-1, *(1,) * count)


def _pooled(x: Elements, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> Any:
    """Yield the place of each window, its elements among the data, and its size with the padding."""
    count = x.ndim - 2
    kernel = spread(kernel, count)
    stride = kernel if stride is None else spread(stride, count)
    around = pairs(padding, count)
    lengths = []
    for n, k, s, (before, after) in zip(x.shape[2:], kernel, stride, around, strict=True):
        room = n + before + after - k
        windows = room // s + 1
        if ceil_mode and room % s and windows * s < n + before:
            windows += 1
        lengths.append(windows)
    for place in itertools.product(*map(range, lengths)):
        where, size = [], 1
        for p, s, k, n, (before, after) in zip(place, stride, kernel, x.shape[2:], around, strict=True):
            first = p * s - before
            where.append(slice(max(first, 0), max(min(first + k, n), 0)))
            size *= min(first + k, n + after) - first
        yield lengths, place, tuple(where), size


def max_pool(x: Elements, kernel: Any, *, stride: Any = None, padding: Any = 0, ceil_mode: bool = False) -> Elements:
    found: Any = None
    for lengths, place, where, _ in _pooled(x, kernel, stride, padding, ceil_mode):
        if found is None:
            found = np.zeros((*x.shape[:2], *lengths), x.dtype)
        found[(..., *place)] = x[(..., *where)].reshape(*x.shape[:2], -1).max(-1)
    return found


def avg_pool(
    x: Elements,
    kernel: Any,
    *,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Elements:
    found: Any = None
    for lengths, place, where, size in _pooled(x, kernel, stride, padding, ceil_mode):
        if found is None:
            found = np.zeros((*x.shape[:2], *lengths), x.dtype)
        window = x[(..., *where)].reshape(*x.shape[:2], -1)
        found[(..., *place)] = window.sum(-1) / (size if count_include_pad else window.shape[-1])
    return found


def _logistic(x: Elements) -> Elements:
    return 1 / (1 + np.exp(-x))


def lstm_step(x: Elements, h: Elements, c: Elements, w_x: Elements, w_h: Elements, b_x: Elements, b_h: Elements) -> Any:
    i, f, g, o = np.split(x @ w_x.T + b_x + h @ w_h.T + b_h, 4, axis=1)
    c = _logistic(f) * c + _logistic(i) * np.tanh(g)
    return _logistic(o) * np.tanh(c), c


def gru_step(x: Elements, h: Elements, w_x: Elements, w_h: Elements, b_x: Elements, b_h: Elements) -> Any:
    xr, xz, xn = np.split(x @ w_x.T + b_x, 3, axis=1)
    hr, hz, hn = np.split(h @ w_h.T + b_h, 3, axis=1)
    r, z = _logistic(xr + hr), _logistic(xz + hz)
    return (1 - z) * np.tanh(xn + r * hn) + z * h
