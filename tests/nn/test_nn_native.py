"""Steps that the core computes: without Python, as their definitions in NumPy say, and with the same bits for any number of workers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from nn.steps import CASES, numbers
from weft import nn
from weft.ops import get_op

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Gate, MakeEngine


def _by_definition(name: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> list[Any]:
    """Return what the op gives by NumPy, computed on numbers of twice the length."""
    op = get_op(name)
    wide = [x.astype("float64") if x.dtype.kind == "f" else x for x in operands]
    found = op.infer(*(weft.Aval(x.shape, x.dtype) for x in wide), **attributes)
    outs = [np.empty(aval.shape, aval.dtype) for aval in (found if isinstance(found, tuple) else (found,))]
    op.compute["cpu"](*outs, *wide, **attributes)
    return outs


def _found(name: str, operands: tuple[Any, ...], attributes: dict[str, Any], engine: Any = None) -> list[Any]:
    given: Any = get_op(name)(*(weft.asarray(x, engine=engine) for x in operands), **attributes)
    return [each.numpy() for each in (given if isinstance(given, tuple) else (given,))]


@pytest.mark.parametrize("case", CASES)
def test_the_core_computes_it_as_numpy_does(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, operands, attributes = CASES[case]
    wanted = _by_definition(name, operands, attributes)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError(f"{name} was computed by Python")

    monkeypatch.setattr(get_op(name), "compute", MappingProxyType({"cpu": refuse}))
    for ours, theirs in zip(_found(name, operands, attributes), wanted, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5 * max(1, np.abs(theirs).max(initial=0)))


def test_bits_are_the_same_for_any_number_of_workers() -> None:
    found: list[list[bytes]] = []
    for workers in (1, 3):
        with weft.Engine(workers=workers) as engine:
            found.append([each.tobytes() for case in CASES.values() for each in _found(*case, engine=engine)])
    assert found[0] == found[1]


_X = numbers(8, 10)
_SHORT: dict[str, Any] = {
    "softmax": nn.softmax,
    "batch norm": lambda x: nn.batch_norm_train(x, x[0], x[1]),
    "layer norm": lambda x: nn.layer_norm(x, x[0], x[1]),
    "cross entropy": lambda x: nn.cross_entropy(x, np.arange(8)),
    "embedding": lambda x: nn.embedding(np.array([7, 0]), x),
    "pooling": lambda x: nn.max_pool(x.reshape(1, 1, 8, 10), 2),
    "convolution": lambda x: nn.conv(x.reshape(1, 1, 8, 10), x[:6, :6].reshape(4, 1, 3, 3)),
}


@pytest.mark.parametrize("name", _SHORT)
def test_short_kernels_need_no_worker(name: str, make_engine: MakeEngine, gate: Gate) -> None:
    engine, call = make_engine(1), _SHORT[name]
    wanted = call(weft.asarray(_X))
    x = weft.asarray(_X, engine=engine)
    before = weft.get_engine()
    weft.set_engine(engine)
    try:
        gate.hold(engine)  # the one worker
        found = call(x)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for ours, theirs in pairs:
            assert ours.is_ready()
            assert np.array_equal(ours.numpy(), theirs.numpy())
    finally:
        weft.set_engine(before)
        gate.open()


def test_results_that_nobody_looks_at_add_nothing_to_a_gradient() -> None:
    x, gamma, beta = (weft.asarray(each) for each in (numbers(4, 3, 5), numbers(3), numbers(3)))

    def loss(x: Any, gamma: Any, beta: Any) -> Any:
        return weft.sum(nn.batch_norm_train(x, gamma, beta)[0] * x)

    with weft.trace() as trace:
        for each in weft.grad(loss, argnums=(0, 1, 2))(x, gamma, beta):
            each.wait_to_read()
    names = [trace.names[op["name"]] for op in trace.ops]
    assert names.count("nn.batch_norm_data") == 1
    assert not {"nn.channel_sum", "subtract", "divide"} & set(names)  # what gradients of statistics take


def test_a_short_kernel_that_fails_fails_as_an_op(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    x = weft.asarray(_X, engine=engine)
    labels = weft.asarray(np.array([0, 1, 2, 10, 0, 1, 2, 3]), engine=engine)
    gate.hold(engine)
    loss = nn.cross_entropy(x, labels)
    assert not loss.is_ready()
    gate.open()
    with pytest.raises(IndexError, match="no class 10 among 10"):
        loss.numpy()
    assert x.numpy().tobytes() == _X.tobytes()


@pytest.mark.parametrize(("call", "message"), [
    (lambda numbers: nn.embedding(numbers, weft.ones((4, 2))), "nn.embedding.*no row 4 among 4"),
    (lambda numbers: nn.cross_entropy(weft.ones((3, 4)), numbers), "nn.cross_entropy.*no class 4 among 4"),
])  # fmt: skip
def test_the_first_number_that_names_nothing_is_named(call: Any, message: str) -> None:
    for dtype in ("int8", "int32", "int64"):
        assert np.isfinite(call(np.array([1, 3, 0], dtype)).numpy()).all()
        with pytest.raises(IndexError, match=message):
            call(np.array([1, 4, -1], dtype)).numpy()


def _windows(shape: tuple[int, ...]) -> Any:
    """Return numbers of which many are equal, with some that are none."""
    x = np.random.default_rng(8).integers(-2, 3, shape).astype("float32")
    x[..., 1, 2] = np.nan
    x[0, 0] = -np.inf
    return x


@pytest.mark.parametrize("kernel", [2, 3, (1, 3), (4, 2)])
@pytest.mark.parametrize("given", [{}, {"stride": 1, "padding": 1}, {"stride": 2, "ceil_mode": True}])
def test_pooling_of_numbers_that_are_equal_or_none(kernel: Any, given: dict[str, Any]) -> None:
    if kernel == (1, 3) and "padding" in given:
        given = {**given, "padding": (0, 1)}
    x = _windows((2, 3, 9, 8))
    op, back, take = (get_op(f"nn.max_pool{end}") for end in ("", "_data", "_take"))
    given = {"kernel": kernel, **given}
    wanted: Any = np.empty(op(weft.asarray(x), **given).shape, "float32")  # type: ignore[union-attr] # one result
    op.compute["cpu"](wanted, x, **given)
    assert np.array_equal(op(weft.asarray(x), **given).numpy(), wanted, equal_nan=True)  # type: ignore[union-attr] # as above
    g, dx = numbers(*wanted.shape), np.empty_like(x)
    back.compute["cpu"](dx, g, x, **given)
    np.testing.assert_allclose(back(weft.asarray(g), weft.asarray(x), **given).numpy(), dx, atol=1e-6)  # type: ignore[union-attr] # as above
    other = numbers(*x.shape, seed=3)
    take.compute["cpu"](wanted, other, x, **given)
    assert np.array_equal(take(weft.asarray(other), weft.asarray(x), **given).numpy(), wanted)  # type: ignore[union-attr] # as above


def test_one_image_falls_into_blocks_as_well() -> None:
    x, w, b = numbers(1, 32, 40, 40), numbers(72, 32, 3, 3), numbers(72)
    found: list[bytes] = []
    for workers in (1, 3):
        with weft.Engine(workers=workers) as engine:
            y = nn.conv(
                weft.asarray(x, engine=engine),
                weft.asarray(w, engine=engine),
                weft.asarray(b, engine=engine),
                padding=1,
            )
            found.append(y.numpy().tobytes())
    assert found[0] == found[1]
    both = nn.conv(np.concatenate([x, x]), w, b, padding=1)
    np.testing.assert_allclose(np.frombuffer(found[0], "float32"), both[1].numpy().ravel(), rtol=1e-4, atol=1e-4)


def test_a_program_computes_rectifiers_where_it_convolves() -> None:
    x, w, b = numbers(8, 3, 12, 12), numbers(16, 3, 3, 3), numbers(16)
    x[0, 0, 0, 0] = np.nan

    def one(x: Any) -> Any:
        return nn.relu(nn.conv(x, w, b, padding=1))

    def shown(x: Any) -> Any:
        y = nn.conv(x, w, b, padding=1)
        return y, nn.relu(y)

    def other(x: Any) -> Any:
        return nn.elu(nn.conv(x, w, b, padding=1))

    for function, joined in ((one, True), (shown, False), (other, False)):
        step = weft.program(function)
        for _ in range(2):
            results, wanted = step(x), function(x)
            for ours, theirs in zip(
                *(each if isinstance(each, tuple) else (each,) for each in (results, wanted)), strict=True
            ):
                assert ours.numpy().tobytes() == theirs.numpy().tobytes()
        with weft.trace() as trace:
            step(x)[0].wait_to_read()
        names = {trace.names[op["name"]] for op in trace.ops}
        assert ("nn.conv+nn.relu" in names) == joined, names


@pytest.mark.parametrize("shape", [(2, 3, 4, 6), (1, 2, 5, 7), (2, 1, 6, 150), (1, 1, 130, 3)])
def test_windows_side_by_side_are_those_of_any_other_size(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(8).integers(-2, 3, shape).astype("float64")
    x[0, 0, :2, 1] = np.nan
    pool, back = get_op("nn.max_pool"), get_op("nn.max_pool_data")
    for dtype in ("float32", "float64"):
        given = x.astype(dtype)
        wanted: Any = np.empty((*shape[:2], shape[2] // 2, shape[3] // 2), dtype)
        pool.compute["cpu"](wanted, given, kernel=2)
        g, dx = numbers(*wanted.shape).astype(dtype), np.empty_like(given)
        back.compute["cpu"](dx, g, given, kernel=2)
        assert np.array_equal(nn.max_pool(given, 2).numpy(), wanted, equal_nan=True)
        assert np.array_equal(back(weft.asarray(g), weft.asarray(given), kernel=2).numpy(), dx)  # type: ignore[union-attr] # one result


@pytest.mark.parametrize("make", [weft.random.default_rng, weft.random.Generator])
@pytest.mark.parametrize("before", [0, 1, 2, 7])
def test_masks_are_drawn_by_the_core_as_numpy_draws_them(
    before: int, make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    op = get_op("random.dropout_mask")
    assert nn.dropout(weft.ones((0, 3)), 0.3, weft.random.default_rng(5)).numpy().shape == (0, 3)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the mask was drawn by Python")

    monkeypatch.setattr(op, "compute", MappingProxyType({"cpu": refuse}))
    for count in (1, 2, 3, 8, 9, 300_001):
        for dtype in ("float32", "float64"):
            ours, theirs = (make(5) for _ in range(2))
            for rng in (ours, theirs):
                rng.random(before, dtype="float32").wait_to_read()
            found = nn.dropout(weft.ones(count, dtype=dtype), 0.3, ours)
            drawn = theirs.random(count, dtype="float32").numpy()
            assert np.array_equal(found.numpy(), np.multiply(drawn >= np.float32(0.3), 1 / (1 - 0.3)).astype(dtype))
            assert np.array_equal(ours.random(5).numpy(), theirs.random(5).numpy())


def test_results_lie_where_they_were_asked_for_between_two_elements_too() -> None:
    x, memory = numbers(6, 5), np.zeros(6 * 5 * 4 + 1, np.uint8)
    out = weft.asarray(memory[1:].view("float32").reshape(6, 5), copy=False)
    get_op("nn.softmax")(weft.asarray(x), out=out)
    assert np.array_equal(out.numpy(), nn.softmax(x).numpy())
