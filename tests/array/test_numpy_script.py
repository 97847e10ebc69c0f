"""Lines of scripts for NumPy do the same with weft in NumPy's place: names, places of arguments, methods."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import weft

LINES = [
    # names
    "np.allclose(x, x + 1e-12)",
    "np.allclose(x, y, 1e-3, 1e-3)",
    "np.array_equal(x, y)",
    "np.array_equal(x, x[:1])",
    "np.array_equal(np.asarray([1.0, np.nan]), np.asarray([1.0, np.nan]), equal_nan=True)",
    "np.copy(x)",
    "x[np.ix_([0, 2], [1, 0])]",
    "x[np.ix_([True, False, True], [1])]",
    "np.select([x > 2, x < 1], [x, y], -1.0)",
    "np.interp([0.5, 1.5, 9.0], [0, 1, 2], [10.0, 20.0, 40.0])",
    "np.interp([0.5, -1.0, 9.0], [0, 1, 2], [10.0, 20.0, 40.0], -7, 7)",
    "np.interp([365.5], [0, 90, 180], [1.0, 2.0, 3.0], period=360)",
    "np.gradient(x)[0]",
    "np.gradient(x)[1]",
    "np.gradient(x, axis=1)",
    "np.gradient(v, 0.5)",
    "np.gradient(v, np.asarray([0.0, 1.0, 3.0, 4.0, 5.5]), edge_order=2)",
    "np.convolve(v, [1.0, 2.0])",
    "np.convolve(v, [1.0, 2.0], 'same')",
    "np.convolve([1, 2], [1, 2, 3], 'valid')",
    "np.trapezoid(v)",
    "np.trapezoid(x, dx=0.5, axis=0)",
    "np.trapezoid(x, np.asarray([0.0, 1.0, 4.0]), axis=0)",
    "np.trapezoid(x, x * 2)",
    "np.insert(v, 1, 9.0)",
    "np.insert(v, [1, 1, 4], [7.0, 8.0, 9.0])",
    "np.insert(v, -1, [7.0, 8.0])",
    "np.insert(x, 1, x[:, 0], axis=-1)",
    "np.insert(x, 1, 5.0, axis=0)",
    "np.insert(x, 1, [[5.0], [6.0], [7.0]], axis=1)",
    "np.insert(x, [0, 2], [[5.0], [6.0], [7.0]], 1)",
    "np.insert(x, slice(0, 2), 5.0, 1)",
    "np.delete(v, 1)",
    "np.delete(v, [0, -1])",
    "np.delete(x, slice(0, 2), 0)",
    "np.delete(x, [True, False], axis=1)",
    "np.logspace(0, 3, 7)",
    "np.logspace(0, 3, 7, False, 2.0, 'float32')",
    "np.geomspace(1, 256, 9)",
    "np.tril_indices(3)[1]",
    "np.triu_indices(3, 1, 4)[0]",
    "np.unravel_index(np.asarray([1, 5, 2]), (2, 3))[1]",
    "np.apply_along_axis(sorted, 0, x)",
    "np.apply_along_axis(lambda a, by: a.sum() * by, 1, x, 2)",
    # methods
    "round(x.mean(), 2)",
    "x.astype('float32').view('int32')",
    "x.view('uint8')",
    "i.view('int16')",
    "x.flat[3]",
    "x.T.flat[1:4]",
    "x.flat[np.asarray([0, 5])]",
    # places and names of arguments
    "np.concatenate([x, x], 1)",
    "np.concatenate((x, y), axis=0)",
    "np.stack([x, y], 1)",
    "np.take(x, [0, 2], 0)",
    "np.repeat(x, 2, 1)",
    "np.take_along_axis(i, i % 2, 1)",
    "np.diff(v, 2)",
    "np.diff(x, 1, 0)",
    "np.eye(3, 4, 1)",
    "np.eye(3, 4, 1, 'int8')",
    "np.asarray([1, 2], 'float32')",
    "np.array([1, 2], ndmin=2)",
    "np.array([[1, 2]], order='C')",
    "np.zeros((2, 3), 'int8', 'C')",
    "np.zeros_like(x, 'int8')",
    "np.tril(x, 1)",
    "np.triu(x, -1)",
    "np.tensordot(x, y, ([0], [0]))",
    "np.tensordot(x, y.T, 1)",
    "np.tensordot(x, y, (np.asarray([0]), np.asarray([0])))",
    "np.split(v, np.cumsum(np.asarray([1, 2])))[1]",
    "np.array_split(v, np.asarray([2]))[1]",
    "np.flip(x, np.asarray([0, 1]))",
    "x.transpose(np.asarray([1, 0]))",
    "np.searchsorted(v, [2.0], 'right')",
    "np.round(x, 1)",
    "np.clip(x, a_min=1.0, a_max=3.0)",
    "np.clip(x, 1.0, 3.0)",
    "np.sort(x, 0, 'stable')",
    "np.sort(x, kind='quicksort')",
    "np.argsort(v, kind='mergesort')",
    "np.argsort(x, 0, 'stable')",
    "np.sum(x, 0, None, None, True)",
    "np.max(x, 1, None, True)",
    "np.mean(x, 0, 'float32')",
    "np.linspace(0.0, 1.0, 5, False)",
    "np.isclose(x, y, 1e-3, 1e-3, True)",
    "np.nan_to_num(x, True, 0.0)",
    "np.digitize(v, [1.0, 2.0], True)",
    "np.percentile(x, 50, 0, None, False, 'linear', True)",
    "np.quantile(v, 0.5, None, None, False, 'nearest')",
    "np.reshape(x, (2, 3), 'C')",
    "np.median(x, 0, None, False, True)",
    "np.average(x, 0, None)",
]


def script(namespace: Any) -> dict[str, Any]:
    return {
        "np": namespace,
        "x": namespace.asarray([[3.0, 1.0], [2.25, 0.5], [4.0, -1.0]]),
        "y": namespace.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        "v": namespace.asarray([3.0, 1.0, 2.0, 5.0, 4.0]),
        "i": namespace.asarray([[3, 1], [2, 0], [4, 1]]),
    }


@pytest.mark.parametrize("line", LINES)
def test_the_line_means_the_same(line: str) -> None:
    expected = np.asarray(eval(line, script(np)))
    found = eval(line, script(weft))
    assert isinstance(found, weft.NDArray)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)


STATEMENTS = [
    "x.flat[1:4] = 9.0",
    "x.T.flat[0] = 7.0",
    "x.flat[[0, -1]] = [1.5, 2.5]",
    "x.flat[x.ravel() > 2] = 0.0",
    "v.partition(2); v.sort(kind='stable')",
    "part = x.flat[1:4]; part += 100.0",
    "part = x.T.flat[1:4]; part += 100.0",
    "one = x.flat[1]; one += 100.0",
    "x.view('int64')[0, 0] = 0",
    "x.sort(0, 'stable')",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_statement_does_the_same(statement: str) -> None:
    ours, theirs = script(weft), script(np)
    exec(statement, ours)
    exec(statement, theirs)
    for name in "xv":
        np.testing.assert_array_equal(ours[name].numpy(), theirs[name])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("np.sum(x, axis=0.5)", "axes are an integer or several of them, not the float 0.5"),
        ("np.sort(x, axis=0.5)", "an axis is an integer, not the float 0.5"),
        ("np.zeros(3.0)", "a shape is an integer or a sequence of integers, not the float 3.0"),
        ("np.zeros((2, 'a'))", "integer"),
        ("np.sum(x, 0, nonsense=1)", "nonsense"),
        ("np.reshape(x, (2, 3), 'F', 0, 0)", "argument"),
    ],
)
def test_what_it_cannot_mean_is_a_type_error(line: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        eval(line, script(weft))


def test_a_place_that_does_not_exist() -> None:
    x = weft.arange(6).reshape(2, 3)
    for wrong in (lambda: weft.delete(x, 5, 0), lambda: weft.insert(x, 7, 0)):
        with pytest.raises(IndexError):
            wrong()
    for each in weft.unravel_index(weft.asarray([9]), (2, 3)):
        with pytest.raises(ValueError, match="out of bounds"):
            each.wait_to_read()
    with pytest.raises(ValueError, match="whole number"):
        weft.zeros(3, dtype="int8").view("int16")
    with pytest.raises(ValueError, match="one element after the other"):
        x[:, ::2].view("int8")
    with pytest.raises(ValueError, match="kth"):
        weft.zeros(3).partition(3)


def test_copies_to_several_targets() -> None:
    x = weft.asarray([1.0, 2.0])
    a, b, c = weft.zeros(2), weft.zeros((2, 2), dtype="float32"), np.zeros(2)
    assert x.copyto(a) is a
    found = x.copyto(a, b, c)
    assert all(one is other for one, other in zip(found, (a, b, c), strict=True))
    assert a.tolist() == c.tolist() == [1, 2]
    assert b.tolist() == [[1, 2], [1, 2]]


def test_nothing_is_copied_if_one_target_does_not_fit() -> None:
    x, a = weft.asarray([1.0, 2.0]), weft.zeros(2)
    for wrong, error in ((weft.zeros(3), ValueError), (weft.zeros(2, dtype="int8"), TypeError), ([0, 0], TypeError)):
        with pytest.raises(error):
            x.copyto(a, wrong)
    with pytest.raises(TypeError, match="at least one"):
        x.copyto()
    assert a.tolist() == [0, 0]


def test_a_path_names_a_file_and_is_none() -> None:
    with pytest.raises(weft.errors.ArgumentTypeError, match="stands for the file"):
        weft.get_engine().variable_of(pathlib.Path("a"))
