"""The registry: what ops say of themselves, groups, NNVM's names."""

# ruff: noqa: ARG001, ARG005 - rules have the parameters that they are called with

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.ops import get_op, like_first, register_op


def op(name: str, **options: Any) -> weft.ops.Op:
    return register_op(name, infer=like_first, **options)(lambda out, x: None)


def test_every_op_says_what_applies() -> None:
    for name in weft.ops.list_ops():
        each = get_op(name)
        if name in {"fused", "functional"}:
            assert {"num_inputs", "num_outputs", "infer_shape", "infer_type"} <= set(each.attributes)
            continue  # what they were made of says the rest, to passes
        for key in ("num_inputs", "num_outputs", "parse", "infer", "infer_shape", "infer_type", "pure", "cost"):
            assert each.attribute(key, "missing") != "missing", (name, key)
    assert get_op("matmul").attribute("FListInputNames") == ("x1", "x2")
    assert get_op("add").attribute("inplace") == ((0, 0), (1, 0))
    assert get_op("random.normal").attribute("pure") is False


def test_nnvms_names_mean_the_same() -> None:
    own = op("test_synonyms")
    own.set_attribute("FGradient", like_first)
    assert own.attribute("gradient") is like_first
    assert "test_synonyms" in weft.ops.attribute_map("gradient")
    with pytest.raises(ValueError, match="level 10"):
        own.set_attribute("gradient", like_first)


def test_nnvms_names_reach_who_computes() -> None:
    @register_op("test_counting", infer=like_first)
    def count(out: Any, x: Any, state: Any) -> None:
        state += 1
        out[...] = x

    count.set_attribute("FMutateInputs", [1])
    count.set_attribute("FInplaceOption", [(0, 0)])
    assert (count.mutates, count.inplace) == ((1,), ((0, 0),))
    state = weft.zeros(1)
    before = state.version
    count(weft.ones(2), state)
    assert state.version == before + 1
    assert state.tolist() == [1.0]


@pytest.mark.parametrize("workspace", [4096, lambda attributes, shapes, dtypes: shapes[0][0] * 1024])
def test_workspaces_are_planned(workspace: Any) -> None:
    name = f"test_workspace{callable(workspace)}"
    op(name).set_attribute("workspace", workspace)
    x = weft.symbol.Variable("x", shape=(4,))
    graph = weft.graph.apply_passes(
        weft.graph.Graph(getattr(weft.symbol, name)(x)), ["InferShape", "InferType", "PlanMemory"]
    )
    assert graph.attrs["storage_allocated_bytes"] >= 4096 + 16


@pytest.mark.parametrize("cost", [10.0, (1e11, 1e11)])
def test_a_cost_may_be_a_number(cost: Any) -> None:
    own = op(f"test_cost{isinstance(cost, tuple)}")
    own.set_attribute("cost", cost)
    assert own.attribute("cost") == cost


def test_values_are_checked() -> None:
    own = op("test_checked")
    for key, value in (
        ("infer_shape", "no_such_rule"),
        ("num_outputs", "two"),
        ("inplace", 3),
        ("infer", "no function"),
        ("cost", "much"),
        ("workspace", -1),
        ("gradient", None),
    ):
        if key == "gradient":
            own.set_attribute(key, value)  # says that there is none
            continue
        with pytest.raises(TypeError, match=f"'{key}' of op 'test_checked'"):
            own.set_attribute(key, value)


def test_attributes_of_any_type_by_level() -> None:
    own = op("test_levels")
    own.set_attribute("colour", {"red": 1}, level=5)
    own.set_attribute("colour", "blue", level=7)
    own.set_attribute("colour", "green", level=6)
    assert own.attribute("colour") == "blue"
    assert "colour" in own.attributes
    assert weft.ops.attribute_map("colour")["test_levels"] == "blue"


def test_groups_reach_later_members() -> None:
    group = weft.ops.group("test_group")
    first, second = op("test_member1"), op("test_member2")
    first.include(group)
    group.set_attribute("season", "winter")
    seen: list[str] = []
    group.add_trigger(lambda each: seen.append(each.name))
    second.include("test_group").include("test_group")
    assert [each.attribute("season") for each in (first, second)] == ["winter", "winter"]
    assert seen == ["test_member1", "test_member2"]
    assert [each.name for each in group.members] == ["test_member1", "test_member2"]
    assert group.members[0] is first


def test_a_trigger_that_raises_is_heard() -> None:
    group = weft.ops.group("test_loud")
    group.add_trigger(lambda each: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        op("test_member3").include(group)
    assert group.members == ()


def test_what_a_group_refuses_has_changed_nothing() -> None:
    group = weft.ops.group("test_refusing")
    for name in ("test_refused1", "test_refused2"):
        op(name).include(group)
    get_op("test_refused2").set_attribute("season", "summer")
    with pytest.raises(ValueError, match="op 'test_refused2' has an attribute 'season' at level 10"):
        group.set_attribute("season", "winter")
    assert get_op("test_refused1").attribute("season", None) is None
    with pytest.raises(ZeroDivisionError):
        group.add_trigger(lambda each: 1 / 0)
    op("test_refused3").include(group)  # nothing is left of what failed
    assert get_op("test_refused3").attribute("season", None) is None


def test_descriptions() -> None:
    own = op("test_described").describe("Does nothing.").add_argument("x", "array", "What is left alone.")
    assert own.docstring == "Does nothing.\n\nParameters\n----------\nx : array\n    What is left alone.\n"
    assert weft.symbol.test_described.__doc__ == own.docstring


def test_counts_and_names_that_depend_on_attributes() -> None:
    @register_op("test_split_like", infer=lambda x, *, parts: (x,) * parts, nout=2)
    def split(*views: Any, parts: int) -> None:
        del views, parts

    split.set_attribute("num_inputs", 1)
    split.set_attribute("num_outputs", lambda attributes: attributes["parts"])
    split.set_attribute("output_names", lambda attributes: [f"part{at}" for at in range(attributes["parts"])])
    symbol = weft.symbol.create("test_split_like", name="s", parts=3)(weft.symbol.Variable("x"))
    assert symbol.list_outputs() == ["s_part0", "s_part1", "s_part2"]
    assert symbol.infer_shape(x=(2,))[1] == [(2,)] * 3


def test_variables_are_noted_when_they_are_made() -> None:
    own = op("test_noting")
    own.set_attribute(
        "FSetInputVarAttrOnCompose", lambda attributes, variable, index: variable.set_attr(__init__=f"{index}")
    )
    assert weft.symbol.test_noting(name="n").get_internals()["n_x"].attr("__init__") == "0"


def test_rules_of_ones_own_go_both_ways() -> None:
    own = op("test_both_ways")
    calls: list[Any] = []

    def rule(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        calls.append((ins, outs))
        known = ins[0] or outs[0]
        return [known], [known]

    own.set_attribute("infer_shape", rule)
    x = weft.symbol.Variable("x")
    symbol = weft.exp(weft.symbol.test_both_ways(weft.symbol.test_both_ways(x)))
    assert symbol.infer_shape(x=(2, 3))[1] == [(2, 3)]
    count = len(calls)
    assert symbol.infer_shape(x=(2, 3))[1] == [(2, 3)]
    assert len(calls) == count  # remembered
