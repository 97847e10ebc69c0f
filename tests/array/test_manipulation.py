"""Reshaping, permuting, joining and splitting, against NumPy; views are views."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from against import DTYPES, agree, sample

import weft

SHAPES = [(), (1,), (4,), (0,), (2, 3), (3, 0, 2), (2, 3, 4), (1, 3, 1)]


def made(x: np.ndarray) -> weft.NDArray:
    return weft.asarray(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_through(dtype: str) -> None:
    x = sample(dtype, (2, 3))
    a = made(x)
    agree(weft.reshape(a, (3, 2)), x.reshape(3, 2))
    agree(weft.concat([a, a], axis=1), np.concatenate([x, x], axis=1))
    agree(weft.stack([a, a], axis=-1), np.stack([x, x], axis=-1))
    agree(weft.roll(a, 1), np.roll(x, 1))
    agree(weft.flip(a), np.flip(x))
    agree(weft.tile(a, (2, 2)), np.tile(x, (2, 2)))
    agree(weft.repeat(a, 2), np.repeat(x, 2))


@pytest.mark.parametrize(
    ("shape", "new"),
    [
        ((), (1, 1)),
        ((6,), (2, -1)),
        ((2, 3), (-1,)),
        ((2, 3, 4), (4, 6)),
        ((0, 3), (3, 0)),
        ((2, 3), (6, 1)),
        ((6,), 6),
    ],
)
def test_reshape(shape: tuple[int, ...], new: Any) -> None:
    x = sample("float64", shape)
    a = made(x)
    for copy in (None, False, True):
        agree(weft.reshape(a, new, copy=copy), x.reshape(new))
    assert weft.reshape(a, new)._shares_buffer(a)
    assert not weft.reshape(a, new, copy=True)._shares_buffer(a)


def test_reshape_that_must_copy() -> None:
    x = sample("float32", (4, 6)).T
    a = weft.permute_dims(made(x.T), (1, 0))
    agree(weft.reshape(a, (24,)), x.reshape(24))
    assert not weft.reshape(a, (24,))._shares_buffer(a)
    with pytest.raises(ValueError, match=r"shape \(6, 4\).*no view of shape \(24,\)"):
        weft.reshape(a, (24,), copy=False)


@pytest.mark.parametrize("new", [(5,), (-1, -1), (-2,), (4, -1), (0, -1)])
def test_reshape_refuses(new: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        weft.reshape(weft.zeros((2, 3)), new)


@pytest.mark.parametrize("shape", SHAPES)
def test_axes_in_every_order(shape: tuple[int, ...]) -> None:
    x = sample("int32", shape)
    a = made(x)
    for axes in itertools.permutations(range(len(shape))):
        agree(weft.permute_dims(a, axes), np.transpose(x, axes))
    agree(weft.transpose(a), x.T)
    agree(weft.squeeze(a), np.squeeze(x))
    agree(weft.ravel(a), np.ravel(x))
    for axis in range(-len(shape), len(shape)):
        agree(weft.flip(a, axis=axis), np.flip(x, axis))
        agree(weft.roll(a, 2, axis=axis), np.roll(x, 2, axis))
        agree(weft.moveaxis(a, axis, 0), np.moveaxis(x, axis, 0))
        agree(weft.swapaxes(a, axis, -1), np.swapaxes(x, axis, -1))
        agree(weft.unstack(a, axis=axis), np.unstack(x, axis=axis))
    for axis in range(-len(shape) - 1, len(shape) + 1):
        agree(weft.expand_dims(a, axis=axis), np.expand_dims(x, axis))


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (2, 3, 4)])
def test_at_least(shape: tuple[int, ...]) -> None:
    x = sample("int8", shape)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        agree(getattr(weft, name)(made(x)), getattr(np, name)(x))
    one, two = weft.atleast_2d(made(x), 1.0)
    agree(one, np.atleast_2d(x))
    assert two.shape == (1, 1)


def test_several_axes() -> None:
    x = sample("float64", (1, 3, 1, 4))
    a = made(x)
    agree(weft.expand_dims(a, (0, -1)), np.expand_dims(x, (0, -1)))
    agree(weft.squeeze(a, (0, -2)), np.squeeze(x, (0, -2)))
    agree(weft.flip(a, axis=(1, -1)), np.flip(x, (1, -1)))
    agree(weft.roll(a, (1, -2), axis=(1, 3)), np.roll(x, (1, -2), (1, 3)))
    agree(weft.roll(a, 1, axis=(1, 3)), np.roll(x, 1, (1, 3)))
    agree(weft.moveaxis(a, (0, 1), (-1, 0)), np.moveaxis(x, (0, 1), (-1, 0)))
    agree(weft.matrix_transpose(a), np.matrix_transpose(x))


@pytest.mark.parametrize("k", range(-1, 6))
def test_rot90(k: int) -> None:
    x = sample("int64", (2, 3, 4))
    agree(weft.rot90(made(x), k, (0, 2)), np.rot90(x, k, (0, 2)))


def test_views_write_through() -> None:
    a = weft.zeros((2, 3))
    weft.flip(weft.reshape(weft.permute_dims(a, (1, 0)), (3, 2, 1)), axis=0)[0, 0] = 7.0
    want = np.zeros((2, 3))
    want[0, 2] = 7
    agree(a, want)
    for view in (weft.expand_dims(a), weft.squeeze(a), weft.split(a, 3, axis=1)[1], weft.unstack(a)[0], weft.ravel(a)):
        assert view._shares_buffer(a)


def test_broadcast() -> None:
    x, y = sample("int16", (3, 1)), sample("int16", (4,))
    agree(weft.broadcast_to(made(x), (2, 3, 4)), np.broadcast_to(x, (2, 3, 4)))
    agree(weft.broadcast_arrays(made(x), made(y)), np.broadcast_arrays(x, y))
    assert weft.broadcast_shapes((3, 1), 4) == (3, 4)
    assert weft.broadcast_shapes((2, 0), (), (1, 1)) == (2, 0)
    for shapes in [((2**70,), (1, 2)), ((-1,), (1, 2)), ((2,), (3,))]:
        with pytest.raises(ValueError, match="could not be broadcast together with shapes"):
            weft.broadcast_shapes(*shapes)
    with pytest.raises(ValueError, match=r"\(3, 1\).*\(2, 4\)"):
        weft.broadcast_to(made(x), (2, 4))
    with pytest.raises(ValueError):
        weft.broadcast_arrays(made(x), weft.zeros((2, 2)))


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 0), (2, 3, 4)])
def test_concat_and_stack(shape: tuple[int, ...]) -> None:
    xs = [sample("float32", shape, seed) for seed in range(3)]
    arrays = [made(x) for x in xs]
    agree(weft.concat(arrays, axis=None), np.concatenate(xs, axis=None))
    for axis in range(-len(shape), len(shape)):
        agree(weft.concat(arrays, axis=axis), np.concatenate(xs, axis=axis))
    for axis in range(-len(shape) - 1, len(shape) + 1):
        agree(weft.stack(arrays, axis=axis), np.stack(xs, axis=axis))
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        if name != "column_stack" or len(shape) < 3:
            agree(getattr(weft, name)(arrays), getattr(np, name)(xs))
    agree(weft.append(arrays[0], arrays[1]), np.append(xs[0], xs[1]))


def test_concat_of_views_and_dtypes() -> None:
    x, y = sample("int8", (3, 4)), sample("float32", (4, 3))
    agree(weft.concat([made(x), made(y).T, made(x)[::-1]]), np.concatenate([x, y.T, x[::-1]]))
    agree(weft.concat([made(x), made(x)], dtype="int64"), np.concatenate([x, x], dtype="int64"))
    agree(weft.stack([made(x), made(y).T]), np.stack([x, y.T]))
    agree(weft.concat([made(x)]), x)
    agree(weft.concatenate(made(x)), np.concatenate(x))
    agree(weft.stack([weft.asarray(1.5), weft.asarray(2)]), np.array([1.5, 2.0]))


def test_concat_refuses() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\), \(3, 2\)"):
        weft.concat([weft.zeros((2, 3)), weft.zeros((3, 2))])
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\)"):
        weft.stack([weft.zeros(2), weft.zeros(3)])
    with pytest.raises(ValueError):
        weft.concat([])
    with pytest.raises(ValueError):
        weft.concat([weft.asarray(1)])
    with pytest.raises(np.exceptions.AxisError):
        weft.concat([weft.zeros(2)], axis=1)
    with pytest.raises(np.exceptions.AxisError):
        weft.stack([weft.zeros(2)], axis=2)


def test_a_join_fails_as_its_part_does() -> None:
    broken = weft.linalg.inv(weft.zeros((2, 2)))
    joined = weft.concat([weft.ones((2, 2)), broken])
    with pytest.raises(np.linalg.LinAlgError):
        joined.wait_to_read()


@pytest.mark.parametrize("cuts", [1, 2, 3, 7, [1, 3], [0, 2, 2], [3, 1], [9], [-2]])
def test_array_split(cuts: Any) -> None:
    x = sample("int32", (2, 6))
    agree(weft.array_split(made(x), cuts, axis=1), np.array_split(x, cuts, axis=1))


def test_split() -> None:
    x = sample("int32", (4, 6, 2))
    for name in ("hsplit", "vsplit", "dsplit"):
        agree(getattr(weft, name)(made(x), 2), getattr(np, name)(x, 2))
    agree(weft.hsplit(weft.arange(4), 2), np.hsplit(np.arange(4), 2))
    agree(weft.split(made(x), np.cumsum([1, 2])), np.split(x, np.cumsum([1, 2])))
    with pytest.raises(ValueError, match=r"\(4, 6, 2\) has no 5 equal"):
        weft.split(made(x), 5)
    with pytest.raises(ValueError):
        weft.array_split(made(x), 0)


def test_repeat_and_tile() -> None:
    x = sample("int32", (2, 3))
    a = made(x)
    for repeats, axis in [(3, None), ([1, 0, 2], 1), ([2], 0), (0, 0), ([1, 2, 3, 4, 5, 6], None)]:
        agree(weft.repeat(a, repeats, axis=axis), np.repeat(x, repeats, axis=axis))
    agree(weft.repeat(a, weft.asarray([1, 0, 2]), axis=1), np.repeat(x, [1, 0, 2], axis=1))
    with pytest.raises(ValueError, match=rf"^repeat: repeats of {2**62} make axis 0"):
        weft.repeat([1, 2], 2**62)
    for repetitions in [(2,), (2, 1, 3), (), (0, 2), 3]:
        agree(weft.tile(a, repetitions), np.tile(x, repetitions))
    with pytest.raises(ValueError):
        weft.repeat(a, [1, 2], axis=1)
    with pytest.raises(ValueError):
        weft.repeat(a, -1)
    with pytest.raises(TypeError):
        weft.repeat(a, 1.5)
    with pytest.raises(ValueError):
        weft.tile(a, (-1,))


@pytest.mark.parametrize(
    ("width", "mode", "options"),
    [
        (1, "constant", {}),
        ((1, 2), "constant", {"constant_values": 5}),
        (((1, 0), (2, 3)), "edge", {}),
        (2, "reflect", {}),
        (2, "symmetric", {}),
        (((2, 2), (0, 1)), "wrap", {}),
        (1, "mean", {}),
        (2, "linear_ramp", {"end_values": -4}),
        ({-1: (1, 2)}, "constant", {}),
    ],
)
def test_pad(width: Any, mode: Any, options: dict[str, Any]) -> None:
    x = sample("float64", (3, 4))
    agree(weft.pad(made(x), width, mode, **options), np.pad(x, width, mode, **options))


def test_pad_refuses() -> None:
    with pytest.raises(ValueError):
        weft.pad(weft.zeros(3), 1, "sideways")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        weft.pad(weft.zeros(3), -1)
    with pytest.raises(TypeError):
        weft.pad(weft.zeros(3), 1.5)
    with pytest.raises(ValueError):
        weft.pad(weft.zeros(0), 1, "edge")


def test_axes_out_of_bounds() -> None:
    a = weft.zeros((2, 3))
    for call in (
        lambda: weft.permute_dims(a, (0, 2)),
        lambda: weft.expand_dims(a, axis=3),
        lambda: weft.squeeze(a, axis=2),
        lambda: weft.flip(a, axis=-3),
        lambda: weft.moveaxis(a, 0, 2),
        lambda: weft.roll(a, 1, axis=2),
        lambda: weft.unstack(a, axis=2),
        lambda: weft.repeat(a, 1, axis=2),
        lambda: weft.split(a, 1, axis=2),
        lambda: weft.unstack(weft.asarray(1)),
    ):
        with pytest.raises(np.exceptions.AxisError):
            call()
    for call in (
        lambda: weft.permute_dims(a, (0, 0)),
        lambda: weft.permute_dims(a, (0,)),
        lambda: weft.squeeze(a, axis=0),
        lambda: weft.moveaxis(a, (0, 1), 0),
        lambda: weft.matrix_transpose(weft.zeros(2)),
        lambda: weft.roll(a, (1, 2, 3), axis=(0, 1)),
    ):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("shape", [(2**32, 2**32), (2**62, 4), (2**61,), (0, 2**62, 4), (2**31, 1, 2**31)])
def test_views_of_more_elements_than_can_be_counted(shape: tuple[int, ...]) -> None:
    x = weft.arange(10.0)[5:6]
    with pytest.raises(ValueError, match="too"):
        np.broadcast_to(np.ones(1), shape)
    with pytest.raises(ValueError, match="too large"):
        weft.broadcast_to(x, shape)
    with pytest.raises(ValueError, match="too large"):
        weft.program(lambda x: weft.broadcast_to(x, shape)[..., :1])(x)


def test_views_of_many_elements_are_views() -> None:
    x = weft.broadcast_to(weft.arange(10.0)[5:6], (2**30, 2**29))
    assert x.size == 2**59
    assert x[2**30 - 1, 7].item() == 5.0
