"""Small calls go short ways to the engine, which tell the tape what they did: as the long way would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd
from weft._call import dispatch
from weft._core import tape_entry, tape_opens
from weft.errors import GradientError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.linspace(0.5, 2.0, 12).reshape(3, 4)
Y = weft.asarray(np.linspace(1.0, 3.0, 12).reshape(3, 4))
MASK = weft.asarray(X > 1)
ROWS = weft.asarray([2, 0, 2])

#: By the name of the op: the call, and what its rule finds in the attributes.
CALLS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "tanh": (weft.tanh, {}),
    "maximum": (lambda x: weft.maximum(x, Y), {}),
    "multiply": (lambda x: weft.multiply(x, Y), {}),
    "sum": (lambda x: x.sum(), {"axis": (0, 1), "keepdims": False}),
    "prod": (lambda x: weft.prod(x, axis=-1), {"axis": (1,), "keepdims": False}),
    "max": (lambda x: weft.max(x, axis=0, keepdims=True), {"axis": (0,), "keepdims": True}),
    "min": (lambda x: x.min(axis=1), {"axis": (1,), "keepdims": False}),
    "mean": (lambda x: x.mean(axis=1), {"axis": (1,), "keepdims": False}),
    "matmul": (lambda x: x @ Y.T, {}),
    "where": (lambda x: weft.where(MASK, x, Y), {}),
    "concat": (lambda x: weft.concat([Y, x], axis=1), {"axis": 1}),
    "stack": (lambda x: weft.stack([x, Y], axis=-1), {"axis": -1}),
    "reshape": (lambda x: x.reshape(-1, 2), {"shape": (6, 2)}),
    "permute_dims": (lambda x: x.T, {"axes": None}),
    "getitem": (lambda x: x[1:, None, ::2], {"key": ((1, None, None), None, (None, None, 2))}),
    "expand_dims": (lambda x: weft.expand_dims(x, 0), {}),
    "astype": (lambda x: x.astype("float32"), {"dtype": np.dtype("float32")}),
    "take": (lambda x: weft.take(x, weft.asarray([2, 0]), axis=1), {"axis": 1}),
    "square": (lambda x: x**2, {}),
    "pow": (lambda x: x**1.5, {}),
    "minimum": (lambda x: weft.minimum(x, 1), {}),
    "clip": (lambda x: weft.clip(x, 0.75, 1.5), {}),
    "nn.relu": (lambda x: weft.nn.relu(x), {}),
    "roll": (lambda x: weft.roll(x, -1, axis=1), {"shift": (-1,), "axes": (1,)}),
}

#: Further calls of ops above.
FURTHER: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: x[ROWS],
    "mask": lambda x: x[MASK],
    "mean of all": lambda x: weft.mean(x),
    "mean with its axis": lambda x: x.mean(axis=0, keepdims=True),
    "roll of all": lambda x: weft.roll(x, 5),
    "flat take": lambda x: weft.take(x, weft.asarray([7, 0, 7])),
    "views within a call": lambda x: weft.tensordot(x, Y, axes=((0,), (0,))),
    "cast to where there is no gradient": lambda x: x * x.astype(bool).astype(np.float64),
}

#: The tape knows them by the memory that they share with the leaf.
VIEWS = ("reshape", "permute_dims", "getitem", "expand_dims")


def _leaf() -> weft.NDArray:
    x = weft.asarray(X)
    x.requires_grad = True
    return x


@pytest.mark.parametrize("name", CALLS)
def test_the_tape_is_told_of_op_attributes_and_line(name: str) -> None:
    function, attributes = CALLS[name]
    found = tape_entry(function(_leaf()))
    assert found is not None
    node = found[0]
    assert node.op.name == name
    assert {key: node.attributes.get(key) for key in attributes} == attributes
    assert (node.place or "").split(":")[0].endswith("test_short_ways.py")
    assert [entry is not None for entry in node.entries].count(True) == 1


@pytest.mark.parametrize("name", [*CALLS, *FURTHER])
def test_gradients_are_those_of_the_long_way(name: str) -> None:
    function = CALLS[name][0] if name in CALLS else FURTHER[name]
    x = _leaf()
    y = function(x)
    weights = weft.asarray(np.random.default_rng(7).standard_normal(y.shape)).astype(y.dtype)

    def loss(x: weft.NDArray) -> weft.NDArray:
        return weft.sum(function(x) * weights)

    short = autograd.gradients(loss(x))[x]
    if name != "mask":  # whose shape a recording cannot know
        recorded = weft.program(weft.grad(loss))(weft.asarray(X))  # which goes the long way
        assert short.numpy().tobytes() == recorded.numpy().tobytes()
    with autograd.no_grad():
        assert name in VIEWS or tape_entry(function(x)) is None


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("prod", weft.prod),
        ("max", lambda x: weft.max(x, axis=0)),
        ("matmul", lambda x: x @ x.T),
        ("maximum", lambda x: weft.maximum(x, Y)),
        ("square", lambda x: x**2),
    ],
)
def test_what_a_short_way_has_saved_is_watched(name: str, function: Any) -> None:
    x = _leaf() * 1.0
    y = weft.sum(function(x))
    x[0] = 0.25
    with pytest.raises(
        GradientError, match=rf"{name}\(\) needs its operand 0 .* saved at .*:\d+ and overwritten at .*:\d+"
    ):
        autograd.gradients(y)


@pytest.mark.parametrize(
    "call", [weft.add, weft.matmul, lambda x, y: weft.nn.conv(x, y), lambda x, _: weft.sum(x, axis=5)]
)
def test_the_tape_goes_on_listening_after_a_call_that_failed(call: Any) -> None:
    x = _leaf()
    with pytest.raises((ValueError, TypeError, IndexError)):
        call(x, weft.ones((5, 7)))
    assert tape_entry(weft.nn.relu(x)) is not None


def test_an_interrupt_leaves_the_tape_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(operands: tuple[object, ...]) -> bool:
        assert tape_opens(operands)  # an interrupt that comes meanwhile is raised when it returns
        raise KeyboardInterrupt

    x = _leaf()
    with monkeypatch.context() as patched:
        patched.setattr(dispatch, "tape_opens", interrupted)
        with pytest.raises(KeyboardInterrupt):
            weft.exp(x, where=weft.isfinite(x))  # which Python carries
    assert tape_entry(weft.nn.relu(x)) is not None


def test_a_symbol_beside_a_leaf_leaves_the_tape_listening() -> None:
    x = _leaf()
    with pytest.raises(GraphError, match="a symbol and NDArray among its operands"):
        weft.maximum(x, weft.symbol.Variable("y"))
    assert tape_entry(weft.nn.relu(x)) is not None


def test_an_element_and_a_part_of_a_leaf_are_its_own() -> None:
    x = _leaf()
    first, rows = x[0, 1], x[1:]
    grads = autograd.gradients(first * 2 + weft.sum(rows.reshape(-1) * 3))
    expected = np.zeros_like(X)
    expected[0, 1], expected[1:] = 2, 3
    assert grads[x].tolist() == expected.tolist()
    for write in (lambda: rows.fill(0.0), lambda: x.reshape(4, 3).__setitem__(0, 1.0), lambda: x.T.__imul__(2)):
        with pytest.raises(GradientError, match="whose gradient is wanted"):
            write()


def test_a_rule_of_a_user_counts_for_short_ways_too() -> None:
    op = weft.ops.register_op("test_short_reads", ufunc=np.hypot, level=20)(np.hypot)
    op.set_attribute("gradient", lambda node, grads: (grads[0] * node.inputs[0] / node.outputs[0], None))
    op.set_attribute("gradient_reads", 1 | 1 << 32)
    x = _leaf()
    y = op(x, Y)
    np.testing.assert_allclose(autograd.gradients(y.sum())[x].numpy(), X / np.hypot(X, Y.numpy()))
    for wrong in ("x", 1.5, (1, None), -1):
        with pytest.raises(TypeError, match="gradient_reads of the op 'test_short_reads'"):
            op.set_attribute("gradient_reads", wrong, level=11)
