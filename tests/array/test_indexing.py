"""Indexing: views, gathers, masks, assignment, `take`, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft._call.keys import parse

A = weft.asarray

I = np.array  # noqa: E741 - as short as an index is
BASIC: list[Any] = [
    0,
    -1,
    np.s_[1:],
    np.s_[::-1],
    np.s_[3:1],
    np.s_[5:100],
    np.s_[-2:-9:-1],
    ...,
    None,
    (),
    (1, 2),
    (1, 2, 3),
    (slice(None), 0),
    (..., 0),
    (0, ..., 0),
    (None, 1, None, ..., None),
    (np.s_[::2], np.s_[::-2], np.s_[1:3]),
    (np.int64(1), I(2)),
    (np.s_[2:2], 1),
    (0, 1, 2, ...),
]
ADVANCED: list[Any] = [
    [0, 2],
    [],
    I([[0, 1], [2, -1]]),
    ([0, 1], [1, 2]),
    ([0, 1], 1),
    (slice(None), [3, 1]),
    ([0, 1], slice(None), [1, 2]),
    (0, slice(None), [1, 2]),
    (slice(None), 0, [1, 2]),
    (slice(None), [1, 2], 0),
    ([[0], [1]], [0, 1, 2]),
    (..., [0, -1]),
    (None, [0, 1], None),
    (slice(None), None, [0, 1]),
    ([0, 1], None, [1, 2]),
    I([0, 1], "u1"),
    True,
    False,
    (True, 0),
    (slice(None), I([True, False, True, True])),
    (I([True, False, True]), [0, 1], 2),
    (I(np.arange(12).reshape(3, 4) % 3 == 0), 1),
    (slice(None), I(np.arange(20).reshape(4, 5) % 3 == 0)),
    I([False, False, False]),
]
BAD: list[tuple[Any, type[Exception]]] = [
    (3, IndexError),
    (-4, IndexError),
    ((0, 0, 0, 0), IndexError),
    ((..., ...), IndexError),
    (1.5, IndexError),
    ("a", IndexError),
    ([1.5], IndexError),
    ([3], IndexError),
    ([[-4, 0]], IndexError),
    (([0, 1], [0, 1, 2]), IndexError),
    ([True, False], IndexError),
    (np.ones((3, 5), bool), IndexError),
    (np.s_[::0], ValueError),
    (np.s_["a":], TypeError),
]


def cube() -> np.ndarray:
    return np.arange(60).reshape(3, 4, 5)


def on_weft(key: Any) -> Any:
    """The same key with NDArrays for its arrays and lists."""
    if isinstance(key, tuple):
        return tuple(map(on_weft, key))
    if isinstance(key, list) and not key:
        return weft.zeros(0, dtype=int)
    return A(key) if isinstance(key, list | np.ndarray) else key


@pytest.mark.parametrize("key", [key for key in BASIC if isinstance(cube()[key], np.ndarray)], ids=repr)
def test_basic_keys_name_views(key: Any) -> None:
    expected, x = cube(), A(cube())
    version = x.version
    shown = x[key]
    np.testing.assert_array_equal(shown.numpy(), expected[key])
    assert shown.shape == expected[key].shape
    assert shown._shares_buffer(x)
    assert x.version == version
    x += 100
    np.testing.assert_array_equal(shown.numpy(), expected[key] + 100)


@pytest.mark.parametrize("where", ["host", "weft"])
@pytest.mark.parametrize("key", ADVANCED, ids=repr)
def test_arrays_of_indices_gather(key: Any, where: str) -> None:
    expected, x = cube()[key], A(cube())
    result = x[on_weft(key) if where == "weft" else key]
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.numpy(), expected)
    assert result.shape == expected.shape
    result += 1
    np.testing.assert_array_equal(x.numpy(), cube())


@pytest.mark.parametrize("where", ["host", "weft"])
@pytest.mark.parametrize("kind", ["scalar", "row", "full", "float"])
@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
def test_assignment(key: Any, kind: str, where: str) -> None:
    expected = cube()
    shape = expected[key].shape
    value: Any = {
        "scalar": -7,
        "row": -np.arange(shape[-1] if shape else 1) if shape else np.array(-1),
        "full": -1 - np.arange(int(np.prod(shape))).reshape(shape),
        "float": np.full(shape, -2.7),
    }[kind]
    x = A(expected)
    x[on_weft(key) if where == "weft" else key] = A(value) if kind == "full" else value
    expected[key] = value
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize(("key", "error"), BAD, ids=repr)
def test_bad_keys_raise_at_the_call(key: Any, error: type[Exception]) -> None:
    x = A(cube())
    with pytest.raises(error):
        x[key]
    with pytest.raises(error):
        x[key] = 1
    assert x.version == 0


def test_bad_indices_in_arrays_fail_the_result() -> None:
    x = A(cube())
    bad = x[A([0, 3])]
    assert bad.shape == (2, 4, 5)
    with pytest.raises(IndexError, match="out of bounds"):
        bad.wait_to_read()
    assert x[0, 0, 1].item() == 1
    x[A([7])] = 1
    with pytest.raises(IndexError, match="out of bounds"):
        x.wait_to_read()


def test_keys_of_zero_dimensional_arrays() -> None:
    x = A(cube())
    index = A(1)
    np.testing.assert_array_equal(x[index].numpy(), cube()[1])
    np.testing.assert_array_equal(x[index, :, index].numpy(), cube()[1, :, 1])
    assert cube()[index].shape == (4, 5)
    with pytest.raises(IndexError):
        A(3)[0]
    assert A(3)[()].item() == 3
    assert A(3)[...].item() == 3


def test_a_key_is_read_at_the_call() -> None:
    x, key, value = A(cube()), np.array([0, 1]), np.array(5)
    result = x[key]
    x[key] = value
    key[:] = 2
    value[...] = 9
    np.testing.assert_array_equal(result.numpy(), cube()[[0, 1]])
    assert x[0, 0, 0].item() == 5
    np.testing.assert_array_equal(x[2].numpy(), cube()[2])


def test_masks_that_ops_compute() -> None:
    values = np.array([3.0, -1, 4, -1, 5])
    x = A(values)
    assert x[x > 0].tolist() == [3, 4, 5]
    x[x < 0] = 0
    assert x.tolist() == [3, 0, 4, 0, 5]
    x[x > 3] += 10
    assert x.tolist() == [3, 0, 14, 0, 15]
    x[x == 0] = A([7.0, 8.0])
    assert x.tolist() == [3, 7, 14, 8, 15]
    x[x > 100] = A([1.0, 2.0])
    with pytest.raises(ValueError):
        x.wait_to_read()


def test_augmented_assignment_to_items() -> None:
    expected, x = cube(), A(cube())
    x[1:] += 5
    expected[1:] += 5
    x[0, 0, 0] *= 2
    x[[0, 2]] -= 1
    expected[[0, 2]] -= 1
    np.testing.assert_array_equal(x.numpy(), expected)


def test_assignment_casts_as_numpy_and_checks_first() -> None:
    x = weft.zeros(3, dtype="u1")
    x[0] = 2.9
    x[1] = True
    x[2] = np.int64(7)
    assert x.tolist() == [2, 1, 7]
    version = x.version
    for value, error in [
        (300, OverflowError),
        (-1, OverflowError),
        (1j, TypeError),
        (A([1j]), TypeError),
        (float("nan"), ValueError),
        (float("inf"), OverflowError),
        ("a", TypeError),
        (None, TypeError),
        ([1, 2], ValueError),
        (A([[1, 2, 3], [1, 2, 3]]), ValueError),
    ]:
        for key in (slice(None), [0, 1, 2]):
            with pytest.raises(error):
                x[key] = value
    assert x.version == version
    x[:] = [[1, 2, 3]]
    assert x.tolist() == [1, 2, 3]
    flags = weft.zeros(2, dtype=bool)
    flags[:] = 5
    assert flags.tolist() == [True, True]


def test_overlapping_assignment() -> None:
    for shift in (np.s_[1:], np.s_[:-1]):
        other = np.s_[:-1] if shift == np.s_[1:] else np.s_[1:]
        x, expected = weft.arange(3000), np.arange(3000)
        x[shift] = x[other]
        expected[shift] = expected[other].copy()
        x[::-1] = x
        expected = expected[::-1]
        np.testing.assert_array_equal(x.numpy(), expected)


def test_elements_cannot_be_deleted() -> None:
    x = A([1, 2])
    with pytest.raises(ValueError, match="cannot delete"):
        del x[0]


def test_parse_knows_shapes() -> None:
    assert parse((slice(None), [1]), (2, 3), (24, 8)).shape == (2, 1)
    assert parse(A([True, False]), (2, 3), (24, 8)).shape is None
    with pytest.raises(IndexError, match="axis 1 with size 3"):
        parse((0, 3), (2, 3), (24, 8))


def test_other_engines_are_refused() -> None:
    with weft.Engine(workers=1) as engine:
        x = weft.zeros(3, engine=engine)
        with pytest.raises(weft.errors.WrongEngineError):
            x[A([0])]
        with pytest.raises(weft.errors.WrongEngineError):
            x[:] = A([1.0])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("indices", [[0, 2], [[1], [-1]], [], 1], ids=str)
def test_take(indices: Any, axis: int | None) -> None:
    given = A(np.asarray(indices, int))
    result = weft.take(A(cube()), given, axis=axis)
    expected = np.take(cube(), np.asarray(indices, int), axis=axis)
    np.testing.assert_array_equal(result.numpy(), expected)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(A(cube()).take(indices, axis).numpy(), expected)


def test_take_checks() -> None:
    x = A(cube())
    with pytest.raises(np.exceptions.AxisError):
        weft.take(x, [0], axis=3)
    with pytest.raises(TypeError, match="float64"):
        weft.take(x, A([0.0]), axis=0)
    with pytest.raises(IndexError):
        weft.take(x, [3], axis=0)
    with pytest.raises(IndexError):
        weft.take(x, A([3]), axis=0).wait_to_read()
    with pytest.raises(ValueError, match=r"\(2, 4, 5\)"):
        weft.take(x, [0, 1], axis=0, out=weft.zeros(3, dtype=int))
    out = weft.zeros((2, 4, 5), dtype=int)
    assert weft.take(x, [0, 1], axis=0, out=out) is out
    np.testing.assert_array_equal(out.numpy(), cube()[:2])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis(axis: int) -> None:
    order = np.argsort(-cube() % 7, axis=axis)
    result = weft.take_along_axis(A(cube()), A(order), axis=axis)
    np.testing.assert_array_equal(result.numpy(), np.take_along_axis(cube(), order, axis))
    one = np.take(order, [0], axis)[:1]
    expected = np.take_along_axis(cube(), one, axis)
    np.testing.assert_array_equal(weft.take_along_axis(A(cube()), A(one), axis=axis).numpy(), expected)


def test_take_along_axis_checks() -> None:
    x = A(cube())
    with pytest.raises(ValueError, match="dimensions"):
        weft.take_along_axis(x, A([0]))
    with pytest.raises(ValueError, match="broadcast"):
        weft.take_along_axis(x, weft.zeros((3, 2, 1), dtype=int))
    with pytest.raises(np.exceptions.AxisError):
        weft.take_along_axis(x, x, axis=5)
    with pytest.raises(IndexError):
        weft.take_along_axis(x, x).wait_to_read()


@pytest.mark.parametrize(
    "positions", [([0, 2], [1, 3]), ([True, False, True], [3]), ([], [1]), ([1], [0, 1], [2])], ids=str
)
def test_ix(positions: tuple[list[Any], ...]) -> None:
    expected = np.ix_(*positions)
    given = [A(each) if each else each for each in positions]
    for made in (weft.ix_(*positions), weft.ix_(*given)):
        assert [(each.tolist(), each.dtype, each.shape) for each in made] == [
            (each.tolist(), each.dtype, each.shape) for each in expected
        ]


def test_ix_does_not_look_at_integers() -> None:
    found = weft.program(lambda x, rows: x[weft.ix_(rows, rows)])(A(cube()[0]), A([0, 1]))  # raises at values
    np.testing.assert_array_equal(found.numpy(), cube()[0][:2, :2])


def test_ix_checks() -> None:
    with pytest.raises(ValueError, match="1 dimensional"):
        weft.ix_([[1]])
    with pytest.raises(TypeError, match="of symbols"):
        weft.ix_(weft.symbol.Variable("x"), [1])
