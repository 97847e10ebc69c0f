"""Shapes in scripts of MXNet's: unknown lengths are 0, and -1 in blocks of `np_shape`; files say which they mean."""

import json
import pickle
from copy import deepcopy

import pytest

import weft
import weft.mxnet as mx
from weft.errors import ArgumentTypeError, GraphError, ShapeError


def _net() -> "mx.sym.Symbol":
    weight = mx.sym.Variable("weight", shape=(3, -1))
    return mx.sym.FullyConnected(mx.sym.Variable("x"), weight, num_hidden=3, name="fc")


def test_a_block_says_what_is_not_known() -> None:
    x = mx.sym.Variable("x")
    y = mx.sym.exp(x)
    assert not mx.is_np_shape()
    assert y.infer_shape_partial() == ([()], [()], [])
    assert y.infer_shape(x=(0, 3)) == (None, None, None)
    with mx.np_shape():
        assert mx.is_np_shape()
        assert y.infer_shape_partial() == ([None], [None], [])
        assert y.infer_shape_partial(x=(-1, 3))[1] == [(-1, 3)]
        assert y.infer_shape(x=(-1, 3)) == (None, None, None)
        assert y.infer_shape(x=(0, 3)) == ([(0, 3)], [(0, 3)], [])
        assert y.infer_shape(x=()) == ([()], [()], [])
        assert mx.sym.exp(mx.sym.Variable("x", shape=(0, -1))).infer_shape_partial()[1] == [(0, -1)]
        with mx.np_shape(active=False):
            assert y.infer_shape_partial() == ([()], [()], [])
    assert mx.np_shape()(mx.is_np_shape)()
    assert not mx.is_np_shape()
    with pytest.raises(ArgumentTypeError):
        mx.np_shape("yes")


def test_an_executor_of_no_rows() -> None:
    with mx.np_shape():
        executor = _net().simple_bind(x=(0, 4))
    assert executor.arg_dict["weight"].shape == (3, 4)
    assert executor.outputs[0].shape == (0, 3)  # before forward, and outside of the block
    assert executor.forward()[0].shape == (0, 3)
    assert executor.reshape(x=(2, 4), partial_shaping=True, allow_up_sizing=True).outputs[0].shape == (2, 3)
    with pytest.raises(ShapeError):
        _net().simple_bind(x=(0, 4))


def test_a_file_says_which_shapes_it_has() -> None:
    old = _net()
    with mx.np_shape():
        new = _net()
        text = new.tojson()
    for net, spelled, said in ((old.tojson(), "(3, 0)", None), (text, "(3, -1)", ["int", 1])):
        data = json.loads(net)
        assert data["nodes"][1]["attrs"]["__shape__"] == spelled
        assert data["attrs"].get("is_np_shape") == said
        assert data["attrs"]["mxnet_version"] == ["int", 10901]
        for active in (False, True):
            with mx.np_shape(active):
                again = mx.sym.load_json(net)
                assert again.infer_shape(x=(2, 5))[0] == [(2, 5), (3, 5), (3,)]
                assert (
                    deepcopy(again).infer_shape(x=(2, 5))[0]
                    == pickle.loads(pickle.dumps(again)).infer_shape(x=(2, 5))[0]
                )
        assert weft.symbol.load_json(net).infer_shape_partial()[0] == [None, (3, None), (3,)]
        assert weft.graph.save_json(weft.graph.load_json(net)) == net


@pytest.mark.parametrize("shape", [(0, 3), ()])
def test_a_length_of_0_is_no_unknown_one_in_a_file(shape: tuple[int, ...]) -> None:
    net = mx.sym.exp(mx.sym.Symbol(weft.symbol.Variable("x", shape=shape)._core))
    assert json.loads(net.tojson())["attrs"]["is_np_shape"] == ["int", 1]
    assert weft.symbol.load_json(net.tojson()).infer_shape()[1] == [shape]


def test_the_shape_of_a_symbol_is_known_or_not() -> None:
    x = mx.sym.Variable("x", shape=(0, 3))
    with pytest.raises(GraphError, match="not known"):
        _ = x.shape
    assert x.ndim == 2
    assert mx.sym.Variable("y", shape=(2, 3)).shape == (2, 3)
    last, rows = weft.scan(lambda state, row: (state + row, row), mx.sym.Variable("s"), mx.sym.Variable("r"))
    assert weft.symbol.Group([last, rows]).infer_shape(s=(3,), r=(2, 3))[1] == [(3,), (2, 3)]


@pytest.mark.parametrize("shape", [None, (), (0,), (None,), (2, None), (None, 0), (0, 3), (1, None, 0)])
@pytest.mark.parametrize("active", [True, False])
def test_a_shape_comes_back_from_a_file(shape: tuple[int | None, ...] | None, active: bool) -> None:
    x = mx.sym.Symbol(weft.symbol.Variable("x", shape=shape)._core)
    net = mx.sym.exp(x)
    with mx.np_shape(active):
        text = net.tojson()
    assert "mxnet_version" in json.loads(text)["attrs"]
    for again in (weft.symbol.load_json(text), weft.symbol.load_json(mx.sym.load_json(text).tojson())):
        assert again.infer_shape_partial()[0] == [shape]
