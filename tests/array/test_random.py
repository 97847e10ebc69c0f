"""Draws come in push order and are NumPy's, whatever runs beside them."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import weft
from weft.random import Generator, default_rng

SEED = 20_240_229

#: Arguments for each distribution.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "random": (),
    "integers": (3, 90),
    "standard_normal": (),
    "standard_exponential": (),
    "standard_gamma": (2.5,),
    "standard_cauchy": (),
    "standard_t": (4.0,),
    "uniform": (-1.0, 2.0),
    "normal": (1.0, 2.0),
    "exponential": (2.0,),
    "gamma": (2.0, 3.0),
    "beta": (2.0, 3.0),
    "chisquare": (4.0,),
    "noncentral_chisquare": (4.0, 1.0),
    "f": (4.0, 5.0),
    "noncentral_f": (4.0, 5.0, 1.0),
    "lognormal": (0.0, 1.0),
    "gumbel": (1.0, 2.0),
    "laplace": (1.0, 2.0),
    "logistic": (1.0, 2.0),
    "rayleigh": (2.0,),
    "pareto": (3.0,),
    "power": (3.0,),
    "weibull": (3.0,),
    "wald": (1.0, 2.0),
    "vonmises": (0.0, 4.0),
    "triangular": (0.0, 1.0, 4.0),
    "binomial": (10, 0.3),
    "negative_binomial": (10, 0.3),
    "geometric": (0.3,),
    "hypergeometric": (4, 5, 3),
    "logseries": (0.6,),
    "poisson": (4.0,),
    "zipf": (2.0,),
    "dirichlet": ([1.0, 2.0, 3.0],),
    "multinomial": (10, [0.2, 0.3, 0.5]),
    "multivariate_hypergeometric": ([4, 5, 6], 7),
    "multivariate_normal": ([0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]]),
}
#: Parameters that may be arrays, as arrays.
BROADCAST: dict[str, tuple[Any, ...]] = {
    "integers": (np.array([0, 5, 9]), np.array([[10], [20]])),
    "normal": (np.array([0.0, 1.0, 2.0]), np.array([[0.5], [2.0]])),
    "uniform": (np.array([0.0, 1.0, 2.0]), np.array([[3.0], [4.0]])),
    "gamma": (np.array([0.5, 1.0, 2.0]), np.array([[0.5], [2.0]])),
    "beta": (np.array([0.5, 1.0, 2.0]), np.array([[0.5], [2.0]])),
    "binomial": (np.array([3, 4, 5]), np.array([[0.5], [0.25]])),
    "poisson": (np.array([[3.0, 4.0, 5.0], [1.0, 2.0, 3.0]]),),
    "hypergeometric": (np.array([3, 4, 5]), np.array([[5], [6]]), 2),
    "multinomial": (np.array([[3, 4, 5], [1, 2, 3]]), [0.5, 0.25, 0.25]),
}


def numpy_rng(seed: int = SEED) -> np.random.Generator:
    return np.random.default_rng(seed)


def philox(seed: Any) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def same(ours: weft.NDArray, theirs: Any) -> None:
    theirs = np.asarray(theirs)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_array_equal(np.asarray(ours), theirs, strict=True)


@pytest.mark.parametrize("size", [None, 3, (2, 3), (), 0, (2, 0)])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_draw_is_numpys(name: str, size: Any) -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    for _ in range(2):
        same(getattr(ours, name)(*ARGUMENTS[name], size=size), getattr(theirs, name)(*ARGUMENTS[name], size=size))
    same(ours.random(), theirs.random())


@pytest.mark.parametrize("kind", ["host", "weft"])
@pytest.mark.parametrize("name", BROADCAST)
def test_parameters_broadcast(name: str, kind: str) -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    given = [weft.asarray(x) if kind == "weft" and isinstance(x, np.ndarray) else x for x in BROADCAST[name]]
    same(getattr(ours, name)(*given), getattr(theirs, name)(*BROADCAST[name]))
    same(getattr(ours, name)(*given, size=(4, 2, 3)), getattr(theirs, name)(*BROADCAST[name], size=(4, 2, 3)))
    same(ours.random(), theirs.random())


def test_vector_parameters_may_be_ndarrays() -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    mean, cov = np.array([0.0, 1.0]), np.array([[1.0, 0.5], [0.5, 1.0]])
    same(
        ours.multivariate_normal(weft.asarray(mean), weft.asarray(cov), size=3, method="cholesky"),
        theirs.multivariate_normal(mean, cov, size=3, method="cholesky"),
    )
    same(ours.dirichlet(weft.asarray([1.0, 2.0]), 4), theirs.dirichlet([1.0, 2.0], 4))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("size", [None, 7])
def test_integers_of_each_dtype(dtype: str, size: int | None) -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    for _ in range(3):  # odd numbers of small integers leave part of a word for the next draw
        same(
            ours.integers(0, 1, size, dtype, endpoint=True),
            theirs.integers(0, 1, size, dtype, endpoint=True),
        )
    same(ours.random(1, np.float32), theirs.random(1, np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["random", "standard_normal", "standard_exponential", "standard_gamma"])
def test_out(name: str, dtype: str) -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    args = ARGUMENTS[name]
    out, expected = weft.zeros((3, 4), dtype=dtype), np.zeros((3, 4), dtype)
    assert getattr(ours, name)(*args, dtype=dtype, out=out) is out
    getattr(theirs, name)(*args, dtype=dtype, out=expected)
    same(out, expected)
    columns = weft.zeros((4, 6), dtype=dtype)
    getattr(ours, name)(*args, dtype=dtype, out=columns[:, ::2])
    same(columns[:, ::2], getattr(theirs, name)(*args, size=(4, 3), dtype=dtype))
    assert not np.asarray(columns[:, 1::2]).any()


@pytest.mark.parametrize("kind", ["host", "weft"])
def test_draws_from_arrays(kind: str) -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    host, weights = np.arange(12.0).reshape(4, 3), np.array([0.1, 0.2, 0.3, 0.4])
    x, p = (weft.asarray(host), weft.asarray(weights)) if kind == "weft" else (host, weights)
    same(ours.choice(x), theirs.choice(host))
    same(ours.choice(x, (2, 5)), theirs.choice(host, (2, 5)))
    same(ours.choice(x, 2, replace=False, axis=1), theirs.choice(host, 2, replace=False, axis=1))
    same(ours.choice(x, 3, p=p, shuffle=False), theirs.choice(host, 3, p=weights, shuffle=False))
    same(ours.choice(4, 3, False, p), theirs.choice(4, 3, False, weights))
    same(ours.choice(9), theirs.choice(9))
    same(ours.permutation(x, axis=1), theirs.permutation(host, axis=1))
    same(ours.permutation(9), theirs.permutation(9))
    same(ours.permuted(x, axis=-1), theirs.permuted(host, axis=-1))
    same(ours.permuted(x), theirs.permuted(host))
    same(ours.random(), theirs.random())


def test_in_place() -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    x, host = weft.asarray(np.arange(24).reshape(4, 6)), np.arange(24).reshape(4, 6)
    ours.shuffle(x)
    theirs.shuffle(host)
    same(x, host)
    ours.shuffle(x[:, ::2], axis=1)
    theirs.shuffle(host[:, ::2], axis=1)
    same(x, host)
    assert ours.permuted(x, axis=1, out=x) is x
    theirs.permuted(host, axis=1, out=host)
    same(x, host)


def test_bytes() -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    assert [ours.bytes(n) for n in (5, 0, 8)] == [theirs.bytes(n) for n in (5, 0, 8)]


@pytest.mark.parametrize("policy", ["work_stealing", "per_device", "serial"])
@pytest.mark.parametrize("workers", [1, 2, 8])
def test_the_sequence_is_that_of_the_pushes(policy: Any, workers: int) -> None:
    with weft.Engine(workers=workers, policy=policy) as engine:
        first, second = default_rng(SEED, engine=engine), default_rng(SEED + 1, engine=engine)
        draws = []
        for step in range(60):
            draws += [first.normal(size=step), second.integers(100, size=step), first.gamma(2.0, size=3)]
        one, two = numpy_rng(), numpy_rng(SEED + 1)
        for step in range(60):
            same(draws[3 * step], one.normal(size=step))
            same(draws[3 * step + 1], two.integers(100, size=step))
            same(draws[3 * step + 2], one.gamma(2.0, size=3))


def test_a_parameter_is_taken_as_it_is_at_the_call() -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    loc = np.zeros(3)
    x = ours.normal(loc)
    loc[:] = 100.0
    same(x, theirs.normal(np.zeros(3)))


def test_seeds() -> None:
    sequence = np.random.SeedSequence(5)
    same(default_rng(sequence).random(3), np.random.default_rng(np.random.SeedSequence(5)).random(3))
    same(default_rng([1, 2]).random(3), np.random.default_rng([1, 2]).random(3))
    same(Generator([1, 2]).random(3), philox([1, 2]).random(3))
    rng = default_rng()
    assert default_rng(rng) is rng
    assert not np.array_equal(rng.random(4), default_rng().random(4))
    for wrong in (np.random.Philox(1), np.random.default_rng(1), "seed", 1.5):
        with pytest.raises(TypeError):
            default_rng(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="non-negative"):
        default_rng(-1)


@pytest.mark.parametrize("make", [default_rng, Generator])
def test_spawn(make: Any) -> None:
    """Children are streams of Philox, whatever their parent is."""
    ours, seeds = make(SEED), np.random.SeedSequence(SEED)
    for _ in range(2):
        for child, seed in zip(ours.spawn(3), seeds.spawn(3), strict=True):
            same(child.random(3), philox(seed).random(3))
    assert ours.spawn(0) == []
    with pytest.raises(ValueError, match="-1"):
        ours.spawn(-1)


@pytest.mark.parametrize("duplicate", [lambda rng: pickle.loads(pickle.dumps(rng)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize(("make", "numpys"), [(default_rng, numpy_rng), (Generator, philox)])
def test_a_copy_goes_on_alone(duplicate: Any, make: Any, numpys: Any) -> None:
    ours, theirs = make(SEED), numpys(SEED)
    ours.integers(5, size=3, dtype=np.uint8)
    theirs.integers(5, size=3, dtype=np.uint8)
    twin = duplicate(ours)
    expected = theirs.random(5)
    same(twin.random(5), expected)
    same(ours.random(5), expected)
    child = philox(np.random.SeedSequence(SEED).spawn(1)[0]).random(2)
    same(twin.spawn(1)[0].random(2), child)
    same(ours.spawn(1)[0].random(2), child)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda rng: rng.normal(0.0, -1.0)),
        (ValueError, lambda rng: rng.normal(0.0, [1.0, -1.0])),
        (ValueError, lambda rng: rng.normal(np.zeros(3), np.ones(2))),
        (ValueError, lambda rng: rng.normal(np.zeros(3), size=4)),
        (ValueError, lambda rng: rng.normal(np.zeros(3), size=())),
        (ValueError, lambda rng: rng.normal(weft.zeros(3), size=4)),
        (ValueError, lambda rng: rng.normal(weft.zeros(3), weft.ones(2))),
        (TypeError, lambda rng: rng.normal(weft.zeros(3, dtype="complex64"))),
        (TypeError, lambda rng: rng.normal("a")),
        (TypeError, lambda rng: rng.normal(nothing=3)),
        (TypeError, lambda rng: rng.normal(0.0, 1.0, 2, 3)),
        (ValueError, lambda rng: rng.normal(size=-1)),
        (TypeError, lambda rng: rng.normal(size=1.5)),
        (TypeError, lambda rng: rng.normal(size=(2, "a"))),
        (ValueError, lambda rng: rng.integers(5, 2)),
        (ValueError, lambda rng: rng.integers(0, 300, dtype="uint8")),
        (TypeError, lambda rng: rng.integers(0, 3, dtype="float64")),
        (TypeError, lambda rng: rng.integers()),
        (TypeError, lambda rng: rng.standard_normal(dtype="int32")),
        (ValueError, lambda rng: rng.binomial(3, 1.5)),
        (ValueError, lambda rng: rng.multinomial(3, [0.7, 0.7, 0.1])),
        (ValueError, lambda rng: rng.multivariate_normal([0, 0], [[1, 2]])),
        (ValueError, lambda rng: rng.multivariate_normal(weft.zeros(2), weft.zeros((3, 3)))),
        (ValueError, lambda rng: rng.multivariate_normal([0, 0], [[1, 2], [2, 1]], check_valid="raise")),
        (ValueError, lambda rng: rng.dirichlet([[1.0, 2.0]])),
        (ValueError, lambda rng: rng.dirichlet([-1.0, 2.0])),
        (ValueError, lambda rng: rng.hypergeometric(1, 2, 5)),
        (TypeError, lambda rng: rng.random(out=np.zeros(3))),
        (TypeError, lambda rng: rng.random(out=weft.zeros(3, dtype="float32"))),
        (ValueError, lambda rng: rng.random(4, out=weft.zeros(3))),
        (ValueError, lambda rng: rng.choice(3, 4, replace=False)),
        (ValueError, lambda rng: rng.choice(0, 4)),
        (ValueError, lambda rng: rng.choice(-3)),
        (ValueError, lambda rng: rng.choice(3, p=[0.5, 0.5])),
        (ValueError, lambda rng: rng.choice(3, p=weft.asarray([0.5, 0.5]))),
        (ValueError, lambda rng: rng.choice(2, p=[0.5, 0.6])),
        (ValueError, lambda rng: rng.choice(3, 2, replace=False, p=[1.0, 0.0, 0.0])),
        (np.exceptions.AxisError, lambda rng: rng.choice(weft.zeros(3), axis=1)),
        (np.exceptions.AxisError, lambda rng: rng.permutation(weft.zeros(3), axis=1)),
        (np.exceptions.AxisError, lambda rng: rng.permuted(weft.zeros(3), axis=1)),
        (np.exceptions.AxisError, lambda rng: rng.shuffle(weft.zeros(3), axis=1)),
        (TypeError, lambda rng: rng.permuted(weft.zeros(3), out=np.zeros(3))),
        (ValueError, lambda rng: rng.permuted(weft.zeros(3), out=weft.zeros(4))),
        (TypeError, lambda rng: rng.shuffle([1, 2])),
        (ValueError, lambda rng: rng.bytes(-1)),
    ],
)
def test_a_wrong_call_raises_at_once_and_draws_nothing(error: type[Exception], call: Any) -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    with pytest.raises(error):
        call(ours)
    same(ours.random(2), theirs.random(2))


def test_values_that_are_refused_fail_the_result_alone() -> None:
    ours, theirs = default_rng(SEED), numpy_rng()
    x = ours.normal(0.0, weft.asarray([1.0, -1.0]))
    y = x + 1.0
    with pytest.raises(ValueError, match="scale < 0") as failure:
        y.wait_to_read()
    assert any("random.normal" in note for note in failure.value.__notes__)
    same(ours.random(2), theirs.random(2))


def test_another_engines_parameter_is_refused() -> None:
    with weft.Engine(workers=1) as engine:
        rng = default_rng(SEED, engine=engine)
        with pytest.raises(weft.errors.WrongEngineError):
            rng.normal(weft.zeros(3))
        same(rng.random(2), numpy_rng().random(2))


def test_methods_have_signatures_of_numpy_and_docstrings() -> None:
    theirs = numpy_rng()
    for name, method in inspect.getmembers(Generator, inspect.isfunction):
        if name.startswith("_"):
            continue
        assert method.__doc__, name
        ours = list(inspect.signature(method).parameters.values())[1:]
        numpys = list(inspect.signature(getattr(theirs, name)).parameters.values())
        assert [(each.name, each.kind) for each in ours] == [(each.name, each.kind) for each in numpys], name
        assert [each.default for each in ours] == [each.default for each in numpys], name
    public = {name for name in dir(theirs) if not name.startswith("_")} - {"bit_generator"}
    assert public == {name for name in dir(Generator) if not name.startswith("_")}


def test_draws_are_ops() -> None:
    assert set(ARGUMENTS) <= {name.removeprefix("random.") for name in weft.ops.list_ops()}
    assert weft.ops.get_op("random.normal").mutates == (0,)
