"""Calls on small arrays that are there are answered by NumPy's own results: they are what the pushed op gives, and its rule says."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft._call import blocking

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Gate

DTYPES = ["?", "i1", "u1", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
SOON = 30


def bits(x: weft.NDArray) -> Any:
    host = x.numpy()
    return host.dtype, host.shape, host.tobytes()


def outcome(call: Callable[[], Any]) -> Any:
    """Return what a call gives, bit for bit, or the classes of what it raises, at the call or at each wait."""
    try:
        found = call()
        if isinstance(found, tuple | list):
            return [outcome(lambda each=each: each) for each in found]
        return bits(found)
    except Exception as error:  # noqa: BLE001 - to be compared
        causes: list[BaseException] = [error]
        while causes[-1].__cause__ is not None:
            causes.append(causes[-1].__cause__)
        return {type(each).__name__ for each in causes}


def arrays(dtype: str, seed: int, engine: weft.Engine | None = None) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    vector, matrix = draw.integers(0, 9, 12), draw.integers(0, 9, (4, 5))
    if np.dtype(dtype).kind in "fc":
        vector, matrix = vector / 4 - 1, matrix / 8 - 0.5
        vector[draw.integers(0, 12, 2)] = np.nan, -0.0
    made = partial(weft.asarray, engine=engine)
    found = {"v": made(vector.astype(dtype)), "m": made(matrix.astype(dtype))}
    found["s"] = weft.sort(found["v"])
    found["t"], found["h"] = found["m"].T, found["v"][::-2]
    found["i"] = made(draw.integers(-3, 3, 7))
    found["one"], found["none"] = made(np.array(1).astype(dtype)), found["v"][:0]
    for each in found.values():
        each.wait_to_read()
    return found


CALLS: dict[str, Callable[..., Any]] = {
    "sort": lambda v, m, t, **_: (weft.sort(v), weft.sort(m, axis=0, stable=False), weft.sort(t, descending=True)),
    "argsort": lambda v, m, h, **_: (weft.argsort(v), weft.argsort(m, axis=0), weft.argsort(h, descending=True)),
    "sort no axis": lambda one, **_: weft.sort(one),
    "partition": lambda v, **_: (weft.partition(v, 3), weft.partition(v, (1, -2))),
    "partition no place": lambda v, **_: weft.partition(v, 99),
    "argpartition": lambda m, **_: weft.argpartition(m, 1, axis=0),
    "lexsort": lambda v, **_: weft.lexsort((v, v[::-1])),
    "lexsort of shapes": lambda v, h, **_: weft.lexsort((v, h)),
    "searchsorted": lambda s, v, m, **_: (weft.searchsorted(s, v), weft.searchsorted(s, m, side="right")),
    "searchsorted no side": lambda s, v, **_: weft.searchsorted(s, v, side="middle"),
    "searchsorted in a matrix": lambda m, v, **_: weft.searchsorted(m, v),
    "searchsorted in a value": lambda one, v, **_: weft.searchsorted(one, v),
    "searchsorted by a sorter": lambda v, **_: weft.searchsorted(v, v, sorter=weft.argsort(v)),
    "count_nonzero": lambda v, m, **_: (
        weft.count_nonzero(v),
        weft.count_nonzero(m, axis=0),
        weft.count_nonzero(m, axis=(0, 1), keepdims=True),
    ),
    "count_nonzero no axis": lambda v, **_: weft.count_nonzero(v, axis=1),
    "digitize": lambda v, s, **_: (weft.digitize(v, s), weft.digitize(v, s, right=True)),
    "digitize by a matrix": lambda v, m, **_: weft.digitize(v, m),
    "tile": lambda v, m, **_: (weft.tile(v, 2), weft.tile(m, (2, 1, 3)), weft.tile(v, ())),
    "tile less than never": lambda v, **_: weft.tile(v, -1),
    "repeat": lambda v, m, **_: (weft.repeat(v, 2), weft.repeat(m, [1, 0, 2, 3], axis=0), weft.repeat(m, 0)),
    "repeat too often": lambda m, **_: weft.repeat(m, [1, 2], axis=0),
    "pad": lambda v, m, **_: (
        weft.pad(v, 2),
        weft.pad(m, ((1, 0), (2, 3)), mode="edge"),
        weft.pad(v, 3, mode="reflect"),
    ),
    "pad a little less": lambda v, **_: weft.pad(v, -1),
    "pad somehow": lambda v, **_: weft.pad(v, 1, mode="somehow"),
    "pad nothing": lambda none, **_: weft.pad(none, 1, mode="edge"),
    "trace": lambda m, t, **_: (weft.trace(m), weft.trace(t, 1), weft.trace(m, dtype="c16")),
    "trace of a vector": lambda v, **_: weft.trace(v),
    "diag": lambda v, h, **_: (weft.diag(v), weft.diag(h, -2)),
    "triangles": lambda m, t, **_: (weft.tril(m), weft.triu(t, 1), weft.tril(m, -9)),
    "triangles of a vector": lambda v, **_: weft.tril(v),
    "cumulative": lambda v, m, **_: (
        weft.cumsum(v),
        weft.cumprod(m, axis=1),
        weft.cumsum(m, axis=0, dtype="f4"),
        weft.cumulative_sum(v, include_initial=True),
    ),
    "diff": lambda v, m, none, **_: (weft.diff(v), weft.diff(m, axis=0, n=2), weft.diff(none), weft.diff(v, n=99)),
    "diff of no order": lambda v, **_: weft.diff(v, n=-1),
    "isin": lambda v, m, h, **_: (weft.isin(m, v), weft.isin(v, h, invert=True), weft.isin(v, 2)),
    "interp": lambda v, s, **_: (
        weft.interp(v, weft.arange(12.0, engine=v.engine), s),
        weft.interp(v, weft.arange(12.0, engine=v.engine), s, left=7.0),
    ),
    "interp of lengths": lambda v, h, **_: weft.interp(v, v, h),
    "interp of nothing": lambda v, none, **_: weft.interp(v, none, none),
    "take": lambda v, m, i, **_: (weft.take(v, i), weft.take(m, i, axis=0), weft.take(m, i), weft.take(v, i[0])),
    "take what is not there": lambda v, i, **_: weft.take(v, i + 99),
    "take_along_axis": lambda m, **_: weft.take_along_axis(m, weft.argsort(m, axis=0), axis=0),
    "take along what is not there": lambda v, i, **_: weft.take_along_axis(v, i + 99, axis=0),
    "unravel_index": lambda i, **_: weft.unravel_index(abs(i), (2, 3)),
    "unravel what is not there": lambda i, **_: weft.unravel_index(i, (1, 1)),
    "linalg": lambda m, **_: (weft.linalg.inv(m[:, :4]), weft.linalg.det(m[:, 1:]), weft.linalg.solve(m[:, :4], m)),
    "inv of no square": lambda m, **_: weft.linalg.inv(m),
    "inv of nothing": lambda m, **_: weft.linalg.inv(m[:, :4] * 0),
    "einsum": lambda m, v, t, **_: (
        weft.einsum("ij,jk->ik", m, t),
        weft.einsum("ij->", m),
        weft.einsum("i,i", v, v),
        weft.einsum("...j->j...", m),
    ),
    "einsum of lengths": lambda m, v, **_: weft.einsum("ij,j", m, v),
    "einsum twice": lambda m, **_: weft.einsum("ij->ii", m),
    "angle": lambda v, m, **_: (weft.angle(v), weft.angle(m, deg=True)),
    "round": lambda v, m, **_: (weft.round(v, 1), weft.round(m, -1)),
    "isclose": lambda v, m, **_: (weft.isclose(v, v[::-1]), weft.isclose(m, 1), weft.isclose(v, v, equal_nan=True)),
    "isclose of shapes": lambda v, m, **_: weft.isclose(v, m),
    "nonzero": lambda v, m, **_: (weft.nonzero(v), weft.nonzero(m), weft.argwhere(m), weft.flatnonzero(m)),
    "nonzero of a value": lambda one, **_: weft.nonzero(one),
    "bincount": lambda v, **_: (weft.bincount(v), weft.bincount(v, minlength=20)),
    "bincount of a matrix": lambda m, **_: weft.bincount(m),
    "bincount by weights": lambda v, i, **_: weft.bincount(abs(i), weights=v[:7]),
    "unique": lambda v, m, **_: (
        weft.unique(v),
        weft.unique(v, return_index=True, return_inverse=True, return_counts=True),
        weft.unique(m, axis=0),
        weft.unique_all(v),
        weft.unique_values(m),
    ),
    "sets": lambda v, h, i, **_: (weft.union1d(v, i), weft.intersect1d(v, h), weft.setxor1d(i, i[:2])),
    "histogram": lambda v, **_: (weft.histogram(abs(v)[:2], 3), weft.histogram(v, bins=[0, 1, 2])),
    "clip": lambda v, m, **_: (weft.clip(v, 0.5, 2), weft.clip(m, 1, 3.5), weft.clip(v, -1e300, 1e300)),
    "copy": lambda v, t, one, **_: (v.copy(), t.copy(), one.copy(), weft.copy(v[::-1])),
    "joins": lambda v, m, h, i, **_: (
        weft.hstack([v, h]),
        weft.vstack([v, v]),
        weft.vstack((m, m[:1])),
        weft.column_stack([v, v[::-1]]),
        weft.append(v, i),
        weft.hstack([m, m]),
    ),
    "joins of lengths": lambda v, h, **_: weft.vstack([v, h]),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_is_what_the_op_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit, dtype and shape, for every dtype; and what the one refuses the other does, by the same classes."""
    # Ops of an engine with a number of threads of its own for BLAS are never answered.
    pushing = weft.Engine(workers=1, blas_threads=1)
    for seed, dtype in enumerate(DTYPES):
        given = arrays(dtype, seed)
        found = outcome(lambda given=given: CALLS[name](**given))
        given = arrays(dtype, seed, pushing)
        with monkeypatch.context() as patch:
            patch.setattr(blocking, "values_here", lambda *_: None)
            patch.setattr("weft._call.inline.compute_here", lambda *_: False)
            expected = outcome(lambda given=given: CALLS[name](**given))
        assert found == expected, (dtype, seed)
    pushing.close()


GRADIENTS: dict[str, Callable[[Any], Any]] = {
    "sort": weft.sort,
    "take": lambda x: weft.take(x, weft.asarray([3, 0, 3], engine=x.engine)),
    "cumsum": weft.cumsum,
    "einsum": lambda x: weft.einsum("i,j->ij", x, x),
    "diff": weft.diff,
    "trace": lambda x: weft.trace(x.reshape(3, 2)),
    "tril": lambda x: weft.tril(x.reshape(2, 3)),
    "pad": lambda x: weft.pad(x, 2),
    "tile": lambda x: weft.tile(x, 2),
    "repeat": lambda x: weft.repeat(x, 2),
    "copy": lambda x: x.copy() * 2,
    "clip": lambda x: weft.clip(x, 0.2, 0.7),
    "vstack": lambda x: weft.vstack([x, 2 * x]),
    "solve": lambda x: weft.linalg.solve(weft.asarray(np.eye(6) * 3 + 1, engine=x.engine), x),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_the_tape_hears_answers(name: str) -> None:
    def gradient(engine: weft.Engine | None = None) -> Any:
        x = weft.asarray(np.random.default_rng(5).random(6), engine=engine)

        def loss(y: Any) -> Any:
            found = GRADIENTS[name](y)
            return (found * found).sum()

        return weft.autograd.grad(loss)(x).numpy()

    found = gradient()
    with weft.Engine(workers=1, blas_threads=1) as pushing:
        np.testing.assert_array_equal(found, gradient(pushing))
    assert np.any(found)


def test_programs_record_what_is_answered() -> None:
    def step(x: Any) -> Any:
        grid = weft.linspace(0, 1, 6) + weft.arange(6) + weft.eye(6)[0]
        return weft.cumsum(weft.sort(x + grid)) + weft.full(6, 2.5) + weft.searchsorted(weft.arange(3.0), x)

    program, draw = weft.program(step), np.random.default_rng(3)
    for _ in range(4):
        x = weft.asarray(draw.random(6))
        np.testing.assert_array_equal(program(x).numpy(), step(x).numpy())


def test_nothing_that_is_pending_is_waited_for(gate: Gate) -> None:
    x = weft.asarray([3.0, 1.0, 2.0])
    gate.hold(x.engine, mutate=(x,))
    try:
        found = weft.sort(x), weft.cumsum(x), weft.take(x, [0]), weft.einsum("i->", x)
        assert not any(each.is_ready() for each in found)
    finally:
        gate.open()
    np.testing.assert_array_equal(found[0].numpy(), [1, 2, 3])
    assert found[3].item() == 6


def test_what_has_failed_fails_who_asks() -> None:
    x = weft.asarray([1, 2]).take(weft.asarray([9]))
    for call in (weft.sort, weft.nonzero, weft.unique, weft.cumsum):
        with pytest.raises(IndexError):
            weft.asarray(call(x)[0] if call is weft.nonzero else call(x)).numpy()


def test_results_have_memory_of_their_own() -> None:
    x = weft.asarray([2, 1, 1])
    found = weft.take(x, weft.asarray([0, 1])), weft.unique(x), weft.sort(x), x.copy()
    before = [each.tolist() for each in found]
    x[:] = 7
    assert [each.tolist() for each in found] == before
    found[1][0] = 9
    assert found[1].tolist() == [9, 2]


def test_a_users_function_is_called_once_for_each_slice() -> None:
    seen: list[float] = []

    def fails(row: Any) -> Any:
        seen.append(row[0])
        raise RuntimeError("of its own")

    with pytest.raises(RuntimeError, match="of its own"):
        weft.apply_along_axis(fails, 0, weft.asarray([[1.0, 2.0], [3.0, 4.0]]))
    assert seen == [1.0]


@pytest.mark.parametrize(
    ("key", "function"),
    [("push", lambda *_, **__: False), ("infer", weft.ops.like_first), ("compute:cpu", np.copyto)],
)
def test_what_is_set_on_an_op_replaces_its_answer(key: str, function: Any) -> None:
    op = weft.ops.register_op(f"test_answered_{key.partition(':')[0]}", infer=weft.ops.like_first)(np.copyto)
    op._answer_by(np.negative, 1 << 10)
    x = weft.asarray([1.0, 2.0])
    assert op(x).tolist() == [-1, -2]
    op.set_attribute(key, function, 11)  # above the default level of 10
    assert op(x).tolist() == [1, 2]


def test_values_from_numpy_are_copied() -> None:
    base = np.arange(24.0).reshape(4, 6)
    for given in (base, base[::2, 1:], base.T, base[1], base[:0], base[2, 3], base.astype(">f8"), base[0, ::-1]):
        x = weft.asarray(given)
        expected = np.array(given, "f8")
        assert (x.dtype, x.shape) == (np.dtype("f8"), expected.shape)
        np.testing.assert_array_equal(x.numpy(), expected)
        x += 1
        np.testing.assert_array_equal(x.numpy(), expected + 1)
    frozen = np.arange(3)
    frozen.flags.writeable = False
    x = weft.asarray(frozen)
    x[0] = 5
    assert (frozen[0], x[0].item()) == (0, 5)
    with pytest.raises(TypeError):
        weft.asarray(np.array(["text"]))
    shared = weft.asarray(base, copy=False)
    base[0, 0] = 77
    assert shared[0, 0].item() == 77


def test_views_for_numpy_show_what_there_is() -> None:
    x = weft.asarray(np.arange(24).reshape(4, 6))
    for view in (x, x[1:, ::-2], x.T, x[:0], x[2, 3], weft.broadcast_to(x[0], (3, 6))):
        host = view.numpy()
        assert (host.shape, host.dtype) == (view.shape, view.dtype)
        assert not view.size or host.tolist() == view.tolist()
    assert isinstance(x.numpy(), np.ndarray)
