"""Programs as graphs: ops of the registry, on which passes run; and programs in programs, whose order is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft


def step(x: Any, w: Any) -> Any:
    h = weft.tanh(x @ w)
    w -= 0.1 * (x.T @ h)
    y = weft.sort(h, axis=0)[1:].sum(axis=1, keepdims=True)
    x[1:, :2] = 2.0
    return h.sum(), y.sum() * 0.25, weft.where(h > 0, h, 0.0), weft.tanh(x[::2]) + weft.tanh(x[::2])


def given() -> tuple[Any, Any]:
    rng = weft.random.default_rng(5)
    return rng.random((4, 3)), rng.random((3, 3))


def test_a_program_graph_has_ops_of_the_registry() -> None:
    graph = weft.program(step).lower(*given()).graph
    nodes = {node.name: node for node in graph.indexed_graph().nodes if not node.is_variable}
    ops = [node.op.name for node in nodes.values()]
    assert "recorded" not in ops
    assert {"matmul", "tanh", "multiply", "subtract", "sort", "sum", "where", "recorded_view", "recorded_write"} <= set(
        ops
    )
    sort = next(node for node in nodes.values() if node.op.name == "sort")
    assert sort.attributes["axis"] == 0
    product = next(node for node in nodes.values() if node.op.name == "multiply" and "0.1" in repr(node.attributes))
    assert product.inputs[0].node.op.name == "matmul"


def test_passes_run_on_a_program_graph(tmp_path: Any) -> None:
    program = weft.program(step, passes=()).lower(*given())
    graph = weft.graph.infer_type(weft.graph.infer_shape(program.graph))
    assert graph.attrs["shape_num_unknown_nodes"] == 0
    assert "sort" in weft.graph.print_ir(graph, entry_attrs=("shape", "dtype"))
    assert weft.graph.plan_memory(graph).attrs["storage_allocated_bytes"] > 0
    merged = weft.graph.eliminate_common(graph)
    assert len(merged.indexed_graph()) < len(graph.indexed_graph()), "tanh of the same slice"
    weft.graph.draw(graph, tmp_path / "graph.svg")
    assert "<svg" in (tmp_path / "graph.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("simplify", [False, True])
def test_a_program_graph_computes_what_the_program_does(simplify: bool) -> None:
    function = weft.program(step, passes=())
    graph = function.lower(*given()).graph
    symbol = (weft.graph.eliminate_common(graph) if simplify else graph).symbol
    x, w = given()
    found = {array.numpy().tobytes() for array in symbol.eval(x_0=x, w_1=w)}
    results = function(x, w)
    assert {array.numpy().tobytes() for array in (*results, x, w)} == found


def test_opaque_calls_are_known_by_what_they_access() -> None:
    @weft.task
    def double(x: weft.Mutate[Any]) -> None:
        x *= 2

    def function(x: Any) -> Any:
        y = x + 1
        double(y)
        return y

    graph = weft.program(function).lower(weft.ones(3)).graph
    nodes = [node for node in graph.indexed_graph().nodes if not node.is_variable]
    assert [node.op.name for node in nodes] == ["add", "recorded"]
    assert nodes[1].attributes["name"] == "double"
    assert graph.outputs[0].version == 2
    typed = weft.graph.infer_type(weft.graph.infer_shape(graph))
    assert typed.attrs["shape_num_unknown_nodes"] == 0


def test_a_sequential_program_in_a_program_keeps_its_order() -> None:
    def inner(x: Any) -> Any:
        return weft.tanh(x) + weft.sin(x)

    def outer(of: Any) -> Any:
        return lambda x: of(x) * weft.cos(x)

    free, kept = (
        weft.program(outer(weft.program(inner, sequential=sequential))).lower(weft.ones(3))
        for sequential in (False, True)
    )
    rows = [{row[1]: row[4] for row in program.summary().rows} for program in (free, kept)]
    assert rows[0]["sin"] == ""
    assert rows[1]["sin"] == "0", "after tanh"
    assert rows[1]["cos"] == "", "what is around it runs beside it"
    x = weft.ones(3)
    wanted = np.asarray(inner(x) * weft.cos(x))
    assert all((program.replay(arguments=[x])[0].numpy() == wanted).all() for program in (free, kept))


def test_memory_is_shared_where_that_makes_no_way_longer() -> None:
    """A network's training: gradients of weights, which nothing waits for, could all lie apart."""

    def trained(x: Any, *weights: Any) -> Any:
        def loss(*given: Any) -> Any:
            h = x
            for w in given:
                h = weft.tanh(h @ w)
            return (h * h).mean()

        value, gradients = weft.value_and_grad(loss, argnums=tuple(range(len(weights))))(*weights)
        for w, gradient in zip(weights, gradients, strict=True):
            w[...] = w - 0.1 * gradient
        return value

    float32 = np.dtype(np.float32)
    given = [weft.Aval((256, 512), float32), *[weft.Aval((512, 512), float32)] * 8]
    least, balanced, speed = (
        weft.program(trained, memory=memory).lower(*given) for memory in ("min", "balanced", "speed")
    )
    assert least.nbytes <= balanced.nbytes <= speed.nbytes
    assert speed.nbytes <= 1.25 * least.nbytes, "kept apart, they take three times as much"

    def run(memory: str) -> list[bytes]:
        rng = np.random.default_rng(3)
        arrays = [weft.asarray(rng.normal(size=each.shape).astype(np.float32)) for each in given]
        step = weft.program(trained, memory=memory)
        losses = [step(*arrays) for _ in range(2)]
        return [array.numpy().tobytes() for array in (*losses, *arrays)]

    assert run("speed") == run("min")
