"""Temporaries that are written over those they are made of: less memory, the same bits, the same failures."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine

Array = weft.NDArray
MEMORY: tuple[Literal["min", "balanced", "speed"], ...] = ("min", "balanced", "speed")

#: Too few elements to be fused, then several blocks of fused loops, then several parts of a loop.
SHAPES = [(4, 16), (96, 100), (300, 256)]


def figures(function: Callable[..., Any], x: Array, **options: Any) -> float:
    """Return the arena of a function's program, in arrays like its argument."""
    return weft.program(function, **options).lower(x).nbytes / x.nbytes


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_chain_takes_one_place(shape: tuple[int, int], memory: str) -> None:
    x, bias = weft.ones(shape), weft.ones(shape[1])

    def plain(x: Array) -> Array:
        for _ in range(9):
            x = weft.tanh(x)
        return x

    def biased(x: Array) -> Array:
        for _ in range(9):
            x = weft.tanh(x + bias)  # broadcast, so no loop in rows
        return x

    def products(x: Array) -> Array:
        for _ in range(9):
            x = weft.tanh(x @ x.mT @ x)
        return x

    def tree(x: Array) -> Array:
        kept = [weft.tanh(x + each) for each in range(4)]
        return weft.tanh(kept[0] * kept[1]) - weft.tanh(kept[2] * kept[3])

    options = {"memory": memory, "passes": ()}
    assert figures(plain, x, **options) == 1
    assert figures(biased, x, **options) == 1
    assert figures(products, x, **options) <= 2.1 + shape[0] / shape[1]
    assert figures(tree, x, **options | {"memory": "min"}) <= 4


def test_what_is_looked_at_in_another_way_keeps_its_place() -> None:
    x = weft.ones((64, 64))
    apart: list[Callable[[Array], Array]] = [
        lambda y: y + y[::-1],
        lambda y: y + y.T,
        lambda y: weft.flip(y) * 2.0,
        lambda y: y @ y,
        lambda y: weft.tanh(y) + y,
    ]

    def between(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        return lambda x: weft.tanh(function(weft.tanh(x)))

    for function in apart:
        assert figures(between(function), x, passes=()) >= 2
    assert figures(between(lambda y: y - y.sum(axis=0)), x, passes=()) < 1.1
    # Elements of another size lie elsewhere.
    assert figures(between(lambda y: y.astype("float32")), x, passes=()) == 1.5
    assert figures(between(lambda y: y.astype("int64").astype("float64")), x, passes=()) == 1


def ops(chance: random.Random, bias: Array) -> list[Callable[[list[Array]], Array]]:
    """Return random ops on the last arrays of a list."""

    def pick(arrays: list[Array], at: int) -> Array:
        return arrays[-1 - at % min(len(arrays), 4)]

    matrix = weft.asarray(np.eye(bias.size, dtype="float32"), engine=bias.engine)
    kinds: list[Callable[[list[Array], int, int], Array]] = [
        lambda arrays, one, _: weft.tanh(pick(arrays, one)),
        lambda arrays, one, _: pick(arrays, one) * 0.5,
        lambda arrays, one, other: pick(arrays, one) + pick(arrays, other),
        lambda arrays, one, other: weft.maximum(pick(arrays, one), pick(arrays, other)),
        lambda arrays, one, _: pick(arrays, one) + bias,
        lambda arrays, one, _: pick(arrays, one)[::-1] - pick(arrays, one),
        lambda arrays, one, _: pick(arrays, one)[::-1] * 2.0,
        lambda arrays, one, other: weft.where(pick(arrays, one) > 0, pick(arrays, other), pick(arrays, one)),
        lambda arrays, one, _: pick(arrays, one).astype("int32").astype("float32"),
        lambda arrays, one, _: pick(arrays, one) - pick(arrays, one).mean(axis=0),
        lambda arrays, one, _: pick(arrays, one) @ matrix,
        lambda arrays, one, _: halves(pick(arrays, one)),
        lambda arrays, one, _: weft.exp(-weft.abs(pick(arrays, one).T)).T,
    ]

    def one() -> Callable[[list[Array]], Array]:
        kind, first, second = chance.choice(kinds), chance.randrange(4), chance.randrange(4)
        return lambda arrays: kind(arrays, first, second)

    return [one() for _ in range(24)]


def halves(x: Array) -> Array:
    """Return what is written to in two pieces."""
    y = weft.empty_like(x)
    middle = x.shape[0] // 2
    y[:middle] = x[:middle] * 2.0
    y[middle:] = weft.tanh(x[middle:])
    return y


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("workers", [1, 4])
def test_random_programs_give_the_same_bits(make_engine: MakeEngine, workers: int, shape: tuple[int, int]) -> None:
    engine = make_engine(workers)
    rng = np.random.default_rng(shape[0])
    bias = weft.asarray(rng.normal(size=shape[1]).astype("float32"), engine=engine)
    given = [weft.asarray(rng.normal(size=shape).astype("float32"), engine=engine) for _ in range(2)]
    for seed in range(20):
        chance = random.Random(1000 * shape[0] + seed)
        steps, shown = ops(chance, bias), sorted(chance.sample(range(24), 2))

        options: dict[str, Any] = {"memory": MEMORY[seed % 3]} | ({"passes": ()} if seed % 2 else {})
        body = shows(steps, shown)
        program, here = weft.program(body, **options), weft.program(shows(steps, shown, pushed=False))
        for x in (*given, given[0]):
            expected = [each.numpy().tobytes() for each in body(x)]
            found = [program(x), program(x)]  # side by side
            for results in found:
                assert [each.numpy().tobytes() for each in results] == expected, seed
            assert [each.numpy().tobytes() for each in here(x)] == expected, seed


def shows(
    steps: list[Callable[[list[Array]], Array]], shown: list[int], *, pushed: bool = True
) -> Callable[[Array], tuple[Array, ...]]:
    """Return a function of these steps that returns some of what they make."""

    def body(x: Array) -> tuple[Array, ...]:
        if pushed:  # however small it is
            x.engine.push(lambda: None)
        arrays = [x]
        for step in steps:
            arrays.append(step(arrays))
        return (arrays[-1], *(arrays[at] for at in shown))

    return body


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"passes": ()}])
def test_failures_are_those_of_eager_calls(make_engine: MakeEngine, options: dict[str, Any], shape: Any) -> None:
    engine = make_engine(2)
    x = weft.ones(shape, engine=engine)
    fails = [False]

    def now_and_then() -> None:
        if fails[0]:
            message = "now"
            raise RuntimeError(message)

    def body(x: Array, state: Array) -> tuple[Array, ...]:
        one, other = weft.tanh(x), weft.tanh(x * 0.5)
        engine.push(now_and_then, (), [state])
        failing = weft.tanh(one * state)  # in the place of `one`, if it runs
        fine = weft.tanh(other * 2.0)
        mixed = weft.tanh(fine + 1.0)
        return failing * 2.0, mixed, fine * failing

    program = weft.program(body, **options)
    for fails[0] in (False, True, False, True, True, False):
        found = []
        for call in (body, program):
            state = weft.full(shape, 3.0, engine=engine)
            found.append([outcome(each) for each in call(x, state)])
        assert found[0] == found[1]
        assert [each == "RuntimeError" for each in found[0]] == [fails[0], False, fails[0]]


def outcome(x: Array) -> bytes | str:
    """Return the bits of an array, or what it has failed with."""
    try:
        return x.numpy().tobytes()
    except RuntimeError as error:
        return type(error).__name__
