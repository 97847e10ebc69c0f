"""How many functions of Python a call runs: the way from a user's line to the push is in the core."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable


def frames(call: Callable[[], Any]) -> list[str]:
    """Return the names of weft's functions that a call runs."""
    seen: list[str] = []

    def hook(frame: Any, event: str, _argument: object) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").partition(".")[0] == "weft":
            seen.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen


X = weft.asarray(np.linspace(-1, 1, 1024, dtype=np.float32).reshape(32, 32))
Y = weft.asarray(np.ones((32, 32), np.float32))
MASK = weft.asarray(np.tri(32, dtype=bool))
PLACES = weft.asarray(np.arange(5))
VARIABLE = weft.symbol.Variable("x")
NET = weft.tanh(VARIABLE + weft.symbol.Variable("y"))
BOUND = {"x": X, "y": Y}

CALLS: dict[str, tuple[int, Callable[[], Any]]] = {
    "x + y": (0, lambda: X + Y),
    "x @ y": (0, lambda: X @ Y),
    "exp": (1, lambda: weft.exp(X)),
    "maximum of a number": (1, lambda: weft.maximum(X, 0.5)),
    "clip": (1, lambda: weft.clip(X, 0, 1)),
    "sum": (1, lambda: weft.sum(X, axis=0)),
    "sum over two axes": (1, lambda: weft.sum(X, axis=(0, 1), keepdims=True)),
    "method sum": (1, X.sum),
    "mean": (1, lambda: weft.mean(X, axis=-1)),
    "std": (1, lambda: weft.std(X, axis=0)),
    "where": (1, lambda: weft.where(MASK, X, Y)),
    "where of a number": (1, lambda: weft.where(MASK, X, 0.0)),
    "concat": (1, lambda: weft.concat([X, Y])),
    "stack": (1, lambda: weft.stack([X, Y])),
    "roll": (1, lambda: weft.roll(X, 3, axis=0)),
    "element": (0, lambda: X[3, 4]),
    "part": (0, lambda: X[2:9]),
    "rows by positions": (0, lambda: X[PLACES]),
    "assignment of a number": (0, lambda: X.__setitem__(slice(1, None), 0)),
    "assignment of an array": (0, lambda: X.__setitem__(slice(1, None), ROWS)),
    "assignment of an element": (0, lambda: X.__setitem__((3, 4), X[2, 4] + X[4, 4])),
    "copy": (2, X.copy),
    "astype": (1, lambda: weft.astype(X, np.float64)),
    "relu": (1, lambda: weft.nn.relu(X)),
    "leaky relu": (2, lambda: weft.nn.leaky_relu(X, 0.1)),
    "softmax": (1, lambda: weft.nn.softmax(X)),
    "softmax along the other axis": (1, lambda: weft.nn.softmax(X, axis=0)),
    "take": (2, lambda: weft.take(X, PLACES, axis=0)),
    "bind of two nodes": (10, lambda: NET.bind(BOUND)),
    "exp of a symbol": (4, lambda: weft.exp(VARIABLE)),
}
ROWS = Y[1:]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_runs_few_functions_of_python(name: str) -> None:
    most, call = CALLS[name]
    for _ in range(2):  # what is asked once is remembered
        call()
    weft.wait_all()
    seen = frames(call)
    assert len(seen) <= most, seen


FIRST = """
import sys
import numpy as np, weft
{setup}
seen = []
sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name)
               if event == "call" and frame.f_globals.get("__name__", "").startswith("weft") else None)
{call}
sys.setprofile(None)
assert len(seen) <= {most}, seen
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair",
    [("f4", "f8"), ("i1", "f4"), ("u1", "u1"), ("i2", "i8"), ("c8", "f8"), ("f2", "f8"), ("i1", "f2"), ("f2", "c8")],
)
def test_the_first_product_of_two_dtypes_asks_little_of_python(pair: tuple[str, str], script: Any) -> None:
    setup = "\n".join(
        f"{name} = weft.asarray(np.ones((4, 4), {dtype!r}))" for name, dtype in zip("ab", pair, strict=True)
    )
    done = script(FIRST.format(setup=setup, call="a * b", most=6))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("seed", range(4))
def test_what_is_remembered_is_what_the_rule_says(seed: int) -> None:
    """Ways are found by operands and attributes: calls in turn get the results of their own."""
    draw = np.random.default_rng(seed)
    hosts = [draw.integers(0, 9, (3, 4)).astype(dtype) for dtype in ("f4", "f8", "i8", "u1", "?")]
    hosts += [draw.standard_normal(shape) for shape in ((4,), (2, 3, 4), (1, 4))]
    arrays = [weft.asarray(host) for host in hosts]
    for _ in range(200):
        at = draw.integers(len(hosts))
        host, array = hosts[at], arrays[at]
        axis = draw.choice(np.arange(-host.ndim, host.ndim))
        given: Any = [None, int(axis), (int(axis),), [int(axis)], np.int64(axis)][draw.integers(5)]
        keepdims = bool(draw.integers(2))
        name = draw.choice(["sum", "prod", "max", "mean", "var", "any"])
        with np.errstate(all="ignore"):
            usual = tuple(given) if isinstance(given, list) else given
            wanted = getattr(np, name)(host, axis=usual, keepdims=keepdims)
        found = getattr(weft, name)(array, axis=given, keepdims=keepdims)
        assert found.shape == np.shape(wanted)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
        assert found.dtype == wanted.dtype
