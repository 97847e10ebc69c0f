"""Symbols: composition, lists, names, notes, files, copies."""

# ruff: noqa: RUF043 - patterns are short

# ruff: noqa: F811 - a fixture's name is a parameter
from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from graph_ops import mlp  # noqa: F401 - a fixture

import weft
from weft.errors import GraphError, ShapeError
from weft.symbol import AttrScope, Group, NameManager, Prefix, Variable

if TYPE_CHECKING:
    from pathlib import Path

    from weft.symbol import Symbol


def test_unnamed_inputs_become_variables(mlp: Symbol) -> None:
    assert mlp.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    assert mlp.list_outputs() == ["fc2_output"]
    assert mlp.name == "fc2"


def test_inputs_by_name_and_by_place() -> None:
    x, w = Variable("x"), Variable("w")
    composed = weft.symbol.test_dense(data=x, weight=w, units=3, name="fc")
    assert composed.list_arguments() == ["x", "w", "fc_bias"]
    assert weft.symbol.test_dense(x, bias=w, units=3, name="fc").list_arguments() == ["x", "fc_weight", "w"]


def test_a_symbol_takes_the_place_of_a_variable(mlp: Symbol) -> None:
    below = weft.symbol.test_dense(Variable("image"), name="fc0", units=20)
    whole = mlp(data=below, name="net")
    assert whole.list_arguments()[:3] == ["image", "fc0_weight", "fc0_bias"]
    assert mlp.list_arguments()[0] == "data"
    assert mlp(below).list_arguments() == whole.list_arguments()


def test_an_atom_gets_its_inputs_later() -> None:
    atom = weft.symbol.create("test_dense", name="fc", units=4)
    assert atom(Variable("x")).list_arguments() == ["x", "fc_weight", "fc_bias"]
    named = atom(data=Variable("x"), name="other")
    assert named.list_arguments() == ["x", "other_weight", "other_bias"]
    assert named.list_outputs() == ["other_output"]
    assert atom(Variable("y")).list_arguments()[0] == "y"


def test_compositions_that_are_wrong(mlp: Symbol) -> None:
    x = Variable("x")
    with pytest.raises(GraphError, match="takes 3 inputs, and 4"):
        weft.symbol.test_dense(x, x, x, x, units=3)
    with pytest.raises(GraphError, match="'data'.*twice"):
        weft.symbol.test_dense(x, data=x, units=3)
    with pytest.raises(GraphError, match="no attribute 'unit'"):
        weft.symbol.test_dense(x, unit=3)
    with pytest.raises(GraphError, match=r"weight=weft.symbol.Variable\('fc_weight', lr_mult=2\)"):
        weft.symbol.test_dense(x, units=3, weight_lr_mult=2, name="fc")
    with pytest.raises(GraphError, match="no input .*'weigth'"):
        weft.symbol.test_dense(x, weigth=x, units=3)
    with pytest.raises(GraphError, match="no variable is named 'image'.*data"):
        mlp(image=x)
    with pytest.raises(GraphError, match="twice"):
        mlp(x, data=x)
    with pytest.raises(GraphError, match="2 outputs"):
        weft.symbol.exp(Group([x, x]))
    with pytest.raises(TypeError, match="NDArray"):
        mlp(data=weft.ones(3))  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="let a variable stand"):
        weft.add(x, weft.ones(3))
    for known in ("matmul", "exp"):  # those that weft has functions of, too
        with pytest.raises(GraphError, match=f"op '{known}' has no attribute 'foo'"):
            getattr(weft.symbol, known)(x, foo=1)
    with pytest.raises(GraphError, match=r"x2=weft.symbol.Variable\('p_x2', lr_mult=2\)"):
        weft.symbol.matmul(x, x, x2_lr_mult=2, name="p")
    with pytest.raises(GraphError, match="takes 1 inputs, and 2"):
        weft.symbol.exp(x, x)
    with pytest.raises(GraphError, match="no op is named 'expp'"):
        weft.symbol.create("expp")


def test_weft_functions_take_symbols() -> None:
    x = Variable("x")
    y = weft.sum(weft.exp(x).reshape((2, -1)).T, axis=0, keepdims=True) * 2 - 1
    data = np.arange(6.0).reshape(3, 2)
    expected = np.sum(np.exp(data).reshape(2, -1).T, axis=0, keepdims=True) * 2 - 1
    assert np.allclose(y.eval(x=data)[0].numpy(), expected)
    assert y.infer_shape(x=(3, 2))[1] == [(1, 2)]
    assert np.allclose(weft.concat([x, x], axis=1).eval(x=data)[0].numpy(), np.concatenate([data, data], 1))


@pytest.mark.parametrize(
    "expression", ["x + 2", "2 - x", "x * y", "2 / x", "x ** 2", "2 ** x", "-x", "abs(x)", "x > y", "x @ y", "x == y"]
)
def test_operators(expression: str) -> None:
    values = {"x": np.array([[1.0, 2], [3, 4]]), "y": np.array([[4.0, 3], [3, 1]])}
    symbol = eval(expression, {name: Variable(name) for name in values})
    expected = eval(expression, dict(values))
    given = {name: values[name] for name in symbol.list_inputs()}
    assert np.array_equal(symbol.eval(**given)[0].numpy(), expected)


def test_a_symbol_is_no_truth_value() -> None:
    with pytest.raises(TypeError, match="eval"):
        bool(Variable("x") > 0)


def test_internals_and_children(mlp: Symbol) -> None:
    internals = mlp.get_internals()
    assert internals.list_outputs() == [
        "data",
        "fc1_weight",
        "fc1_bias",
        "fc1_output",
        internals.list_outputs()[4],
        "fc2_weight",
        "fc2_bias",
        "fc2_output",
    ]
    assert internals["fc1_output"].list_arguments() == ["data", "fc1_weight", "fc1_bias"]
    children = mlp.get_children()
    assert children is not None
    assert children.list_outputs()[1:] == ["fc2_weight", "fc2_bias"]
    assert children[0].get_children() is not None
    assert Variable("x").get_children() is None


def test_outputs_by_index_and_name() -> None:
    x = Variable("x")
    group = Group([weft.symbol.exp(x, name="a"), weft.symbol.log(x, name="b")])
    assert len(group) == 2
    assert [each.name for each in group] == ["a", "b"]
    assert group["b_output"].name == group["b"].name == group[-1].name == "b"
    assert group.name is None
    assert "a_output" in group
    with pytest.raises(IndexError, match="2 outputs"):
        group[2]
    with pytest.raises(GraphError, match="no output is named 'c'"):
        group["c"]
    with pytest.raises(GraphError, match="2 outputs are named"):
        Group([x, Variable("x")])["x"]


def test_names() -> None:
    x = Variable("x")
    with NameManager():
        assert [(x + 1).name, (x + 1).name, weft.exp(x).name] == ["add0", "add1", "exp0"]
        with Prefix("layer_"):
            assert (x * 2).name == "layer_multiply0"
            assert weft.symbol.exp(x, name="e").name == "layer_e"
        assert (x + 1).name == "add2"


def test_notes() -> None:
    with AttrScope(group="4", data="great"):
        x = Variable("x", attr={"dtype": "data", "group": "1"}, lr_mult=1)
        y = Variable("y")
    assert y.attr("group") == "4"
    assert x.attr("group") == "1"
    assert x.attr("lr_mult") == x.attr("__lr_mult__") == "1"
    assert x.attr("missing") is None
    with AttrScope(__group__="4", __data__="great"):
        first = weft.symbol.exp(x)
        with AttrScope(__init_bias__="0.0"):
            second = weft.symbol.test_dense(first, units=10, name="fc")
    assert first.attr("__data__") == second.attr("__data__") == "great"
    assert second.attr("__init_bias__") == "0.0"
    again = pickle.loads(pickle.dumps(second))
    assert again.tojson() == second.tojson()
    assert second.get_internals()["fc_weight"].attr("__init_bias__") == "0.0"
    with pytest.raises(TypeError, match="text"):
        AttrScope(count=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mood"):
        Variable("z", mood="calm")


def test_lists_of_notes() -> None:
    data = Variable("data", attr={"mood": "angry"})
    op = weft.symbol.test_dense(data, units=1, name="fc", attr={"__mood__": "so so", "wd_mult": "x"})
    assert op.list_attr() == {"units": "1", "__mood__": "so so", "__wd_mult__": "x", "wd_mult": "x"}
    known = op.attr_dict()
    assert known["data"] == {"mood": "angry"}
    assert known["fc_weight"]["__mood__"] == "so so"
    op.set_attr(__mood__="better")
    assert op.attr("mood") == "better"


def test_copies(mlp: Symbol) -> None:
    again = copy.deepcopy(mlp)
    assert again.tojson() == mlp.tojson()
    again.set_attr(mood="calm")
    assert mlp.attr("mood") is None
    assert copy.copy(mlp).tojson() == mlp.tojson()


def test_files(mlp: Symbol, tmp_path: Path) -> None:
    mlp.save(tmp_path / "net.json")
    again = weft.symbol.load(tmp_path / "net.json")
    assert again.tojson() == mlp.tojson()
    assert again.list_arguments() == mlp.list_arguments()
    assert again.infer_shape(data=(100, 100)) == mlp.infer_shape(data=(100, 100))


def test_shapes_forwards_and_backwards(mlp: Symbol) -> None:
    arguments, outputs, states = mlp.infer_shape(data=(100, 100))
    assert dict(zip(mlp.list_arguments(), arguments, strict=True)) == {
        "data": (100, 100),
        "fc1_weight": (1000, 100),
        "fc1_bias": (1000,),
        "fc2_weight": (10, 1000),
        "fc2_bias": (10,),
    }
    assert (outputs, states) == ([(100, 10)], [])
    assert mlp.infer_shape() == (None, None, None)
    partial = mlp.infer_shape_partial()
    assert partial[0][3] == (10, 1000)
    assert partial[1] == [(None, 10)]
    assert mlp.infer_shape((100, 100)) == mlp.infer_shape(data=(100, 100))


def test_backwards_through_elementwise_chains() -> None:
    a, b = Variable("a"), Variable("b", shape=(2, None))
    total = weft.symbol.test_product(a, b)
    known = weft.symbol.test_product(weft.exp(total), Variable("c"))
    shapes = dict(zip(known.list_arguments(), known.infer_shape(c=(None, 7))[0], strict=True))
    assert shapes == {"a": (2, 7), "b": (2, 7), "c": (2, 7)}


def test_matrix_products_and_concatenation_find_inputs() -> None:
    x, w = Variable("x", shape=(None, 3)), Variable("w")
    assert (x @ w).infer_shape(x=(2, 3), w=(None, 5))[0] == [(2, 3), (3, 5)]
    parts = weft.symbol.test_product(weft.concat([x, w], axis=0), Variable("y"))
    assert parts.infer_shape(x=(2, 3), y=(9, 3))[0] == [(2, 3), (7, 3), (9, 3)]
    reshaped = weft.symbol.test_product(weft.reshape(x, (2, -1)), Variable("y"))
    assert reshaped.infer_shape(y=(2, 6))[0] == [(4, 3), (2, 6)]


def test_zero_is_a_size_and_no_axes_a_scalar() -> None:
    x = Variable("x")
    assert weft.exp(x).infer_shape(x=(0, 2))[1] == [(0, 2)]
    assert weft.exp(x).infer_shape(x=())[1] == [()]
    assert weft.sum(x).infer_shape(x=(2, 3))[1] == [()]


def test_contradictions_name_node_input_and_both_shapes() -> None:
    w = Variable("w", shape=(3, 4))
    layer = weft.symbol.test_dense(Variable("x"), weight=w, units=3, name="fc")
    with pytest.raises(ShapeError, match=r"'fc'.*test_dense(.|\n)*\(3, 4\).*\(3, 5\)"):
        layer.infer_shape(x=(2, 5))
    with pytest.raises(ShapeError, match=r"\(2, 4\).*\(3, 5\)|\(3, 5\).*\(2, 4\)|\(2, 4\), \(3, 5\)"):
        layer.infer_shape(x=(2, 4), w=(3, 5))  # what is given counts, not what is noted
    with pytest.raises(GraphError, match="no variable is named 'y'"):
        layer.infer_shape(y=(2, 2))


def test_an_error_names_the_line() -> None:
    x = Variable("x") + Variable("y")
    with pytest.raises(ShapeError, match=r"test_symbol.py:\d+"):
        x.infer_shape(x=(2,), y=(3,))


def test_dtypes() -> None:
    x, y = Variable("x"), Variable("y", dtype="float64")
    arguments, outputs, _ = (x + y).infer_type()
    assert [each.name for each in (*arguments, *outputs)] == ["float64"] * 3
    assert (x @ x).infer_type()[1][0] == np.float32
    assert (x > 1).infer_type()[1][0] == np.bool_
    layer = weft.symbol.test_dense(x, units=2)
    assert {each.name for each in layer.infer_type(x="float64")[0]} == {"float64"}
    with pytest.raises(ShapeError, match=r"dtypes (float64|float32) and (float32|float64)"):
        weft.symbol.test_dense(x, weight=Variable("w", dtype="float32"), units=2).infer_type(x="float64")


@pytest.mark.parametrize(
    "made",
    [
        lambda x, at: weft.take(x, at, axis=0),
        lambda x, at: weft.take_along_axis(x, at, axis=0),
        lambda x, at: x[at],
        lambda x, at: x[:, at, None],
        lambda x, at: weft.nn.embedding(at, x),
        lambda x, at: weft.where(at, x, x),
    ],
)
def test_no_dtype_follows_from_that_of_places(made: Any) -> None:
    y = made(Variable("x"), Variable("at"))
    names = y.list_arguments()

    def known(**given: str) -> dict[str, Any]:
        return dict(zip(names, y.infer_type(**given)[0], strict=True))

    assert known(at="int32") == {"x": np.float32, "at": np.int32}
    assert known(x="float64") == {"x": np.float64, "at": np.int64}
    assert known() == {"x": np.float32, "at": np.int64}


def test_an_op_says_which_inputs_are_places() -> None:
    @weft.register_op("test_chosen_rows", infer=lambda x, at: x)  # noqa: ARG005 - a rule has all operands
    def chosen(out: Any, x: Any, at: Any) -> None:
        out[...] = x[at]

    y = weft.symbol.test_chosen_rows(Variable("x"), Variable("at"))
    assert y.infer_type(at="int32")[0] == [np.int32, np.int32]
    chosen.set_attribute("places", (1, 7))
    assert y.infer_type(at="int32")[0] == [np.float32, np.int32]
    assert y.infer_type()[0] == [np.float32, np.int64]
    with pytest.raises(weft.errors.WeftError, match="places"):
        chosen.set_attribute("places", "second", level=2)


def test_auxiliary_states() -> None:
    layer = weft.symbol.test_norm(Variable("x"), name="norm")
    assert layer.list_arguments() == ["x", "norm_gamma"]
    assert layer.list_auxiliary_states() == ["norm_moving"]
    assert layer.infer_shape(x=(2, 3))[2] == [(3,)]


def test_a_long_chain_does_not_recurse() -> None:
    x = y = Variable("x")
    for _ in range(20_000):
        y = y + 1
    again = weft.symbol.load_json(y.tojson())
    assert again.infer_shape(x=(2,))[1] == [(2,)]
    assert len(again.get_internals()) == 20_001
    assert again(x=x * 2).list_arguments() == ["x"]
    del y, again


def test_summary_counts_parameters(mlp: Symbol) -> None:
    text = mlp.summary(data=(100, 100))
    assert text.splitlines()[-1].startswith(f"parameters: {1000 * 100 + 1000 + 10 * 1000 + 10} ")
    assert "fc1" in text


def test_symbols_are_cast() -> None:
    x = Variable("x")
    (found,) = x.astype("float32").eval(x=np.array([1.5, 2.5]))
    assert found.dtype == np.float32
    assert weft.astype(x, weft.int8).infer_type(x="float64")[1] == [np.dtype("int8")]
    there = weft.astype(x, "float32", device="cpu:1")
    assert str(there.eval(x=[1.0])[0].device) == "cpu:1"
    assert (x.astype("float64") * 2).gradient("x").eval(x=np.ones(2, np.float32))[0].dtype == np.float32
