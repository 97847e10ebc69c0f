"""Symbol files of MXNet's versions: what is in them, what follows, what they compute."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mxnet_files import DATA, STATES, computed, node_file, parameters, symbol_file

import weft
import weft.mxnet

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunScript

VERSIONS = ("0.8", "0.9", "0.11", "1.2", "2.0")


@pytest.mark.parametrize("version", VERSIONS)
def test_files_of_each_version_are_the_same_network(version: str) -> None:
    net = weft.symbol.load_json(symbol_file(version))
    names = ["conv_weight", "conv_bias", "bn_gamma", "bn_beta", "fc_weight", "fc_bias"]
    assert net.list_arguments() == ["data", *names, "softmax_label"]
    assert net.list_auxiliary_states() == [f"bn_{state}" for state in STATES]
    assert net.list_outputs() == ["softmax_output"]
    arguments, outputs, states = net.infer_shape(data=DATA)
    known, kept = parameters()
    assert arguments == [DATA, *(known[name].shape for name in names), (2,)]
    assert outputs == [(2, 3)]
    assert states == [(4,), (4,)]
    data = np.random.default_rng(1).normal(size=DATA).astype(np.float32)
    executor = net.bind(
        {"data": weft.asarray(data), "softmax_label": weft.zeros(2, dtype="float32")}
        | {name: weft.asarray(array) for name, array in known.items()},
        aux_states={name: weft.asarray(array) for name, array in kept.items()},
        grad_req="null",
    )
    (result,) = executor.forward()
    np.testing.assert_allclose(result.numpy(), computed(data, known, kept), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("version", VERSIONS)
def test_files_survive_a_round_trip(version: str) -> None:
    net = weft.symbol.load_json(symbol_file(version))
    again = weft.symbol.load_json(net.tojson())
    assert again.list_inputs() == net.list_inputs()
    assert again.infer_shape(data=DATA) == net.infer_shape(data=DATA)


def test_a_training_step_of_a_file() -> None:
    net = weft.symbol.load_json(symbol_file("1.2"))
    known, kept = parameters()
    data = np.random.default_rng(1).normal(size=DATA).astype(np.float32)
    arguments = {"data": data, **known, "softmax_label": np.array([2, 0], np.float32)}
    executor = net.bind(
        {name: weft.asarray(array) for name, array in arguments.items()},
        args_grad={name: weft.zeros(array.shape, dtype="float32") for name, array in known.items()},
        aux_states={name: weft.asarray(array) for name, array in kept.items()},
    )
    (result,) = executor.forward(is_train=True)
    executor.backward()
    found = result.numpy()
    np.testing.assert_allclose(executor.grad_dict["fc_bias"].numpy(), (found - np.eye(3)[[2, 0]]).sum(0), atol=1e-6)
    moved = executor.aux_dict["bn_moving_mean"].numpy()
    assert not np.allclose(moved, kept["bn_moving_mean"])  # training has moved it
    # The gradient of a weight is the change of the loss.
    name, at, step = "conv_weight", (1, 2, 0, 1), 1e-2
    losses = []
    for sign in (1, -1):
        array = known[name].copy()
        array[at] += sign * step
        executor.arg_dict[name][...] = array
        (result,) = executor.forward(is_train=True)
        losses.append(-np.log(result.numpy()[[0, 1], [2, 0]]).sum())
    found = executor.grad_dict[name].numpy()[at]
    assert found == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=2e-2)


def test_a_plan_needs_no_more_than_what_is_live() -> None:
    graph = weft.graph.Graph(weft.symbol.load_json(symbol_file("0.11")))
    graph = weft.graph.infer_type(weft.graph.infer_shape(graph, {"data": DATA}))
    plan = weft.graph.plan_memory(graph).attrs
    assert plan["storage_allocated_bytes"] <= 1.12 * plan["storage_peak_live_bytes"]


def test_what_files_say_of_variables() -> None:
    file = json.loads(symbol_file("0.9"))
    by_name = {node["name"]: node for node in file["nodes"]}
    by_name["data"]["attr"] = {"__shape__": "(2L, 0L, 6L, 6L)", "__dtype__": "0"}
    by_name["conv"]["attr"] |= {"weight_lr_mult": "2.0", "ctx_group": "first", "cudnn_tune": "off", "workspace": "512"}
    net = weft.symbol.load_json(json.dumps(file))
    assert net.get_internals()["conv_output"].attr("ctx_group") == "first"
    assert net.attr_dict()["conv_weight"]["__lr_mult__"] == "2.0"
    assert net.infer_shape_partial()[0][0] == (2, None, 6, 6)
    assert net.infer_type()[0][0] == np.float32


def test_notes_of_the_first_files_are_no_attributes() -> None:
    file = json.loads(symbol_file("0.8"))
    next(node for node in file["nodes"] if node["name"] == "act")["attr"] = {"mood": "good", "lr_mult": "3"}
    net = weft.symbol.load_json(json.dumps(file))
    assert net.get_internals()["act_output"].attr("__mood__") == "good"
    assert net.get_internals()["act_output"].attr("lr_mult") == "3"
    assert net.infer_shape(data=DATA)[1] == [(2, 3)]


def test_names_that_weft_has_with_another_meaning_are_those_of_mxnet() -> None:
    (found,) = weft.symbol.load_json(node_file("sum", ["data"], {"axis": "1", "exclude": "True"})).eval(data=np.eye(3))
    assert found.numpy().tolist() == [1, 1, 1]
    assert weft.symbol.sum(weft.symbol.Variable("x"), axis=0).eval(x=np.ones((2, 3)))[0].shape == (3,)
    again = weft.symbol.load_json(weft.symbol.load_json(node_file("sum", ["data"], {"axis": "1"})).tojson())
    assert again.eval(data=np.eye(3))[0].numpy().tolist() == [1, 1, 1]


def test_ops_can_be_composed_by_their_names() -> None:
    x = weft.symbol.Variable("data")
    net = weft.symbol.Convolution(x, kernel=(3, 3), num_filter=2, name="first")
    net = weft.symbol.Activation(net, act_type="relu", name="second")
    assert net.list_arguments() == ["data", "first_weight", "first_bias"]
    assert net.infer_shape(data=(1, 3, 5, 5))[1] == [(1, 2, 3, 3)]
    with pytest.raises(weft.errors.GraphError, match=r"'Activation' has no attribute 'act'"):
        weft.symbol.Activation(x, act="relu")


def test_all_ops_that_are_missing_are_named(tmp_path: Path) -> None:
    file = json.loads(symbol_file("1.2"))
    by_name = {node["name"]: node for node in file["nodes"]}
    by_name["conv"]["op"], by_name["pool"]["op"] = "_sg_mkldnn_conv", "_foreach"
    by_name["conv"]["subgraphs"] = [{"nodes": []}]
    path = tmp_path / "net-symbol.json"
    path.write_text(json.dumps(file))
    net = weft.symbol.load(path)  # to look at
    assert "_foreach" in weft.graph.print_ir(weft.graph.Graph(net))
    assert '"subgraphs"' in net.tojson()
    with pytest.raises(weft.errors.GraphError, match=r"_foreach \(1\), _sg_mkldnn_conv \(1\)"):
        weft.mxnet.load(path)
    with pytest.raises(weft.errors.GraphError, match=r"_foreach.*_sg_mkldnn_conv"):
        net.eval(data=np.zeros(DATA))


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("Activation", {}, "'Activation' needs the attribute act_type"),
        ("Activation", {"act_type": "cube"}, "one of relu, sigmoid, tanh, softrelu, softsign, and 'cube'"),
        ("Pooling", {"kernel": "(2, x)", "pool_type": "max"}, "'kernel' of op 'Pooling' is a tuple of integers"),
        ("Flatten", {"deep": "1"}, "'Flatten' has no attribute 'deep'"),
        (
            "FullyConnected",
            {},
            "node 'op' (op 'FullyConnected', num_inputs): op 'FullyConnected' needs the attribute num_hidden",
        ),
    ],
)
def test_attributes_that_are_wrong(op: str, attributes: dict[str, str], message: str) -> None:
    with pytest.raises(weft.errors.GraphError, match=message.replace("(", r"\(").replace(")", r"\)")):
        weft.symbol.load_json(node_file(op, ["data"], attributes)).infer_shape(data=(1, 2, 4, 4))


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shapes", "message"),
    [
        ("Convolution", 3, {"kernel": "(5, 5)", "num_filter": "2"}, [(1, 2, 4, 4)], "5 elements does not fit into 4"),
        ("Convolution", 3, {"kernel": "(1,)", "num_filter": "2", "stride": "(0,)"}, [(1, 2, 4)], "stride 0"),
        ("Convolution", 3, {"kernel": "(1,)", "num_filter": "3", "num_group": "3"}, [(1, 4, 4)], "4 channels do not"),
        ("Concat", 2, {"num_args": "2", "dim": "1"}, [(2, 3), (3, 3)], "follows"),
        ("Reshape", 1, {"shape": "(4, -1)"}, [(3, 5)], "15 is no multiple of 4"),
        ("SliceChannel", 1, {"num_outputs": "2"}, [(2, 5)], "does not divide into 2"),
        ("broadcast_add", 2, {}, [(2, 3), (2, 4)], "do not broadcast"),
    ],
)
def test_shapes_that_are_wrong(op: str, inputs: int, attributes: dict[str, Any], shapes: Any, message: str) -> None:
    names = [f"x{at}" for at in range(inputs)]
    net = weft.symbol.load_json(node_file(op, names, attributes, 2 if op == "SliceChannel" else 1))
    with pytest.raises(weft.errors.ShapeError, match=message):
        net.infer_shape(**dict(zip(names, shapes, strict=False)))


def test_shapes_follow_backwards() -> None:
    def partial(op: str, names: list[str], attributes: dict[str, str], **known: tuple[int | None, ...]) -> Any:
        return weft.symbol.load_json(node_file(op, names, attributes)).infer_shape_partial(**known)

    layer = {"kernel": "(3, 3)", "num_filter": "8", "num_group": "2"}
    found = partial("Convolution", ["x", "w", "b"], layer, w=(8, 3, 3, 3), x=(4, None, 5, None))
    assert found == ([(4, 6, 5, None), (8, 3, 3, 3), (8,)], [(4, 8, 3, None)], [])
    found = partial("FullyConnected", ["x", "w", "b"], {"num_hidden": "5"}, x=(None, None), w=(5, 7))
    assert found[0] == [(None, 7), (5, 7), (5,)]
    assert partial("Flatten", ["x"], {}, x=(2, 3, None))[1] == [(2, None)]
    assert partial("Concat", ["x", "y"], {"num_args": "2"}, x=(2, 3, None), y=(None, 4, 5))[0] == [(2, 3, 5), (2, 4, 5)]
    assert partial("elemwise_add", ["x", "y"], {}, x=(2, None), y=(None, 3)) == ([(2, 3)] * 2, [(2, 3)], [])
    assert partial("transpose", ["x"], {"axes": "(1, 0)"}, x=(2, None))[1] == [(None, 2)]
    split = {"num_outputs": "4", "axis": "1", "squeeze_axis": "True"}
    assert partial("SliceChannel", ["x"], split, x=(None, None, 3))[0] == [(None, 4, 3)]
    found = partial("RNN", ["x", "p", "h"], {"state_size": "3", "num_layers": "1", "mode": "gru"}, x=(5, 2, 4))
    assert found == ([(5, 2, 4), (81,), (1, 2, 3)], [(5, 2, 3)], [])


def test_the_command_prints_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from argparse import ArgumentParser

    from weft._command import graph
    from weft._command.running import CommandError

    parser = ArgumentParser()
    graph.add_to(parser.add_subparsers())
    path = tmp_path / "net-symbol.json"
    path.write_text(symbol_file("0.8"))
    options = parser.parse_args(["graph", str(path), "--shape", "data=2,3,6,6"])
    assert options.command(options) == 0
    printed = capsys.readouterr().out
    assert "Convolution" in printed
    assert "memory plan:" in printed
    options = parser.parse_args(["graph", str(tmp_path / "nobody.json")])
    with pytest.raises(CommandError, match=r"nobody\.json: No such file"):
        options.command(options)


def test_ops_are_registered_when_a_file_asks_for_them(script: RunScript) -> None:
    done = script(
        f"""
        import sys
        import weft
        assert not any(name.startswith("weft._mxnet") for name in sys.modules)
        net = weft.symbol.load_json({symbol_file("1.2")!r})
        assert net.infer_shape(data={DATA})[1] == [(2, 3)]
        assert "Convolution" in weft.mxnet.list_ops()
        """
    )
    assert done.returncode == 0, done.stderr


def test_ops_that_weft_lacks_are_named_at_once(tmp_path: Path) -> None:
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "x", "inputs": []}]
    for at, op in enumerate(("First", "Flatten", "Second", "First")):
        nodes.append({"op": op, "name": f"node{at}", "inputs": [[at, 0, 0]]})
    graph = {"nodes": nodes, "arg_nodes": [0], "heads": [[4, 0, 0]], "attrs": {"mxnet_version": ["int", 10200]}}
    (tmp_path / "net-symbol.json").write_text(json.dumps(graph))
    with pytest.raises(weft.errors.GraphError, match=r"nobody has registered: First \(2\), Second \(1\)"):
        weft.mxnet.load_checkpoint(tmp_path / "net", 0)


def test_mxnet_stops_gradients_by_both_of_its_names() -> None:
    for name in ("BlockGrad", "stop_gradient"):
        nodes = [
            {"op": "null", "name": "x", "inputs": []},
            {"op": name, "name": "stopped", "inputs": [[0, 0, 0]]},
            {"op": "elemwise_mul", "name": "product", "inputs": [[0, 0, 0], [1, 0, 0]]},
        ]
        graph = {"nodes": nodes, "arg_nodes": [0], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}}
        net = weft.symbol.load_json(json.dumps(graph))
        assert net.gradient("x").eval(x=weft.asarray([3.0]))[0].tolist() == [3.0]
    x = weft.symbol.Variable("x")
    assert (weft.symbol.BlockGrad(x) * x).gradient("x").eval(x=weft.asarray([3.0]))[0].tolist() == [3.0]


def test_an_unknown_length_of_a_file() -> None:
    for version, text in ((10901, "(0, 3)"), (20000, "(-1, 3)"), (10901, "(2L, -1L)")):
        nodes = [
            {"op": "null", "name": "x", "attrs": {"__shape__": text}, "inputs": []},
            {"op": "exp", "name": "e", "inputs": [[0, 0, 0]]},
        ]
        graph = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": {"mxnet_version": ["int", version]}}
        net = weft.symbol.load_json(json.dumps(graph))
        for each in (net, weft.symbol.load_json(net.tojson())):
            assert each.infer_shape(x=(2, 3))[1] == [(2, 3)]
            assert each.infer_shape_partial()[0] == [(None, 3) if "3" in text else (2, None)]


def test_a_file_says_that_its_shapes_are_those_of_numpy() -> None:
    nodes = [
        {"op": "null", "name": "x", "attrs": {"__shape__": "(0, -1, 3)"}, "inputs": []},
        {"op": "exp", "name": "e", "inputs": [[0, 0, 0]]},
    ]
    graph: dict[str, Any] = {"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]]}
    for said, wanted in ((None, (None, None, 3)), (0, (None, None, 3)), (1, (0, None, 3)), (2, (0, None, 3))):
        more = {} if said is None else {"is_np_shape": ["int", said]}
        net = weft.symbol.load_json(json.dumps(graph | {"attrs": {"mxnet_version": ["int", 10600], **more}}))
        for each in (net, weft.symbol.load_json(net.tojson())):
            assert each.infer_shape_partial()[1] == [wanted]
