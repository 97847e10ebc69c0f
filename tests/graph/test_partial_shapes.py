"""Shapes of which a part is known: what follows, in which direction, and what does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

import weft
import weft.mxnet
from weft import nn
from weft.errors import ShapeError
from weft.symbol import Variable

BATCH = [
    (lambda x, y: x @ y, [(None, 3, 4), (4, 5)], (None, 3, 5)),
    (lambda x, y: x @ y, [(None, 3, 4), (None, 4, 5)], (None, 3, 5)),
    (lambda x: weft.permute_dims(x, (0, 3, 2, 1)), [(None, 3, 8, 9)], (None, 9, 8, 3)),
    (lambda x, y: weft.where(x > 0, x, y), [(None, 2), (None, 2)], (None, 2)),
    (weft.sin, [None], None),
]


@pytest.mark.parametrize(("function", "known", "result"), BATCH)
def test_a_batch_of_any_size_goes_through(function: Any, known: list[Any], result: Any) -> None:
    names = ["x", "y"][: len(known)]
    net = function(*(Variable(name) for name in names))
    given = {name: shape for name, shape in zip(names, known, strict=True) if shape is not None}
    assert net.infer_shape_partial(**given)[1] == [result]


@pytest.mark.parametrize(
    ("one", "other", "result", "same"),
    [
        ((2, 3), (2, None), (2, 3), (2, 3)),  # it is 3, or 1: the result has 3 of them
        ((None, 3), (2, 3), (2, 3), (2, 3)),
        ((2, None), (2, None), (2, None), (2, None)),
        ((2, 1), (2, None), (2, None), (2, 1)),
        ((0,), (None,), (0,), (0,)),
        ((3,), (4, None), (4, 3), None),
        ((2, 3), None, None, (2, 3)),
    ],
)
def test_a_length_that_may_be_broadcast_does_not_follow(one: Any, other: Any, result: Any, same: Any) -> None:
    a, b = Variable("a"), Variable("b")
    known = {name: shape for name, shape in (("a", one), ("b", other)) if shape is not None}
    assert (a + b).infer_shape_partial(**known) == ([one, other], [result], [])
    joined = weft.symbol.elemwise_add(a, b)
    if same is None:
        with pytest.raises(ShapeError, match=r"\(3,\).*\(4, None\)"):
            joined.infer_shape_partial(**known)
    else:
        assert joined.infer_shape_partial(**known) == ([same, same], [same], [])


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ({"i": (None, 5), "w": (100, 10)}, ((None, 5), (100, 10), (None, 5, 10))),
        ({"i": (2, 5), "w": (100, None), "y": (2, 5, 10)}, ((2, 5), (100, 10), (2, 5, 10))),
        ({"i": (2, 5), "y": (2, 5, 10)}, ((2, 5), (None, 10), (2, 5, 10))),
        ({"w": (100, 10), "y": (2, 5, 10)}, ((2, 5), (100, 10), (2, 5, 10))),
        ({"y": (2, 5, 10)}, (None, None, (2, 5, 10))),
    ],
)
def test_an_embedding_is_known_by_two_of_its_three(known: dict[str, Any], found: tuple[Any, ...]) -> None:
    rows = nn.embedding(Variable("i", dtype="int32"), Variable("w"))
    net = weft.symbol.load_json(same_shape(rows.tojson()))
    arguments, results, _ = net.infer_shape_partial(**known)
    assert (*arguments[:2], results[0]) == found


def same_shape(text: str) -> str:
    """Let the result meet a variable 'y' of its own shape, as an op of MXNet's has it."""
    file = json.loads(text)
    file["nodes"] += [
        {"op": "null", "name": "y", "inputs": []},
        {"op": "elemwise_add", "name": "sum", "inputs": [[2, 0, 0], [3, 0, 0]]},
    ]
    file.update(arg_nodes=[0, 1, 3], heads=[[4, 0, 0]], attrs={"mxnet_version": ["int", 20000]})
    del file["node_row_ptr"]
    return json.dumps(file)


def test_what_no_pass_from_one_end_finds_is_found() -> None:
    weight = Variable("weight", shape=(1, None))
    net = weft.sum(weft.abs(weight)) + weft.sum(nn.dense(Variable("data"), weight))
    assert net.simple_bind(data=(5, 13)).arg_dict["weight"].shape == (1, 13)


def test_a_weight_that_does_not_fit_is_named() -> None:
    net = nn.dense(Variable("x"), Variable("w"), Variable("b"))
    with pytest.raises(ShapeError, match=r"\(100, 10\).*\(21, 11\)"):
        net.infer_shape(x=(100, 10), w=(21, 11))


def test_one_value_many_times_has_one_gradient() -> None:
    data = Variable("data")
    net = data
    for _ in range(7):
        net = net + data
    executor = net.simple_bind(data=(1,))
    executor.forward(is_train=True, data=weft.ones((1,)))
    executor.backward()
    assert executor.grad_dict["data"].numpy().tolist() == [8.0]
