"""Layouts: what ops take and make, and values, shapes and gradients where data lie in any of them."""

import re
from typing import Any

import numpy as np
import pytest
from composed import gradients, numbers, run

import weft
import weft.mxnet.ndarray as nd
import weft.mxnet.symbol as mx
from weft.errors import GraphError, ShapeError


def laid(x: np.ndarray, plain: str, layout: str) -> np.ndarray:
    """Return plain data in another layout."""
    axes = re.findall(r"(\d*)([A-Za-z])", layout)
    blocks = {name.upper(): int(block) for block, name in axes if block}
    names, shape = "", []
    for name, length in zip(plain, x.shape, strict=True):
        block = blocks.get(name, 1)
        names, shape = names + name + name.lower(), [*shape, length // block, block]
    split = x.reshape(shape)
    kept = [names.index(name) for _, name in axes]
    rest = [at for at in range(len(names)) if at not in kept]
    return np.ascontiguousarray(split.transpose(*kept, *rest)).reshape([split.shape[at] for at in kept])


def layouts(symbol: Any, given: dict[str, str], shapes: dict[str, Any] | None = None) -> tuple[list[str], list[str]]:
    graph = weft.graph.Graph(symbol)
    graph = graph if shapes is None else weft.graph.infer_shape(graph, shapes)
    found = weft.graph.correct_layout(graph, given)
    nodes = found.indexed_graph().nodes
    return [node.op.name for node in nodes if not node.is_variable], found.attrs["layout"]


def test_layouts_by_default() -> None:
    x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
    ops, found = layouts(weft.exp(x) + y, {"x": "HW", "y": "WH"})
    assert ops == ["exp", "permute_dims", "add"]
    assert found == ["HW", "HW", "WH", "HW", "HW"]
    assert layouts(weft.sum(x, axis=0), {"x": "HW"})[1] == ["HW", "W"]
    assert layouts(weft.sum(x, axis=0, keepdims=True), {"x": "HW"})[1] == ["HW", "HW"]
    assert layouts(weft.concat([x, y], axis=1), {"x": "HW", "y": "HW"})[1][-1] == "HW"
    assert layouts(x + y, {"x": "NCHW"}, {"x": (1, 2, 3, 3), "y": (3,)})[1][-1] == "NCHW"
    assert layouts(x + y, {"x": "NCHW"})[1][-1] is None  # which of both has more axes is not known
    a, b = mx.Variable("a"), mx.Variable("b")
    net = mx.mean(mx.Activation(mx.Convolution(a, kernel=(3, 3), num_filter=2, name="c"), "relu") + b, axis=(2, 3))
    ops, found = layouts(net, {"a": "NHWC", "b": "NCHW"})
    assert ops[:2] == ["permute_dims", "Convolution"]
    assert found[-1] == "NC"
    assert layouts(mx.transpose(a, (0, 2, 3, 1)), {"a": "NCHW"})[1][-1] == "NHWC"


def test_values_stay_where_layouts_change() -> None:
    a = mx.Variable("a")
    net = mx.mean(mx.Concat(a.exp(), mx.Pooling(a, (1, 1)), dim=1) * 2, axis=1)
    first = weft.graph.correct_layout(weft.graph.Graph(net), {"a": "NCHW"})
    second = weft.graph.correct_layout(first, {"a": "NHWC"})
    x = numbers(1, 2, 3, 4)
    wanted = net.eval(a=x)[0].numpy()
    np.testing.assert_allclose(second.symbol.eval(a=x.transpose(0, 2, 3, 1).copy())[0].numpy(), wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("net", "wanted"),
    [
        (mx.Convolution(mx.Variable("a"), kernel=(3, 3), num_filter=2, name="c"), ["NCHW", "OIHW", "C", "NCHW"]),
        (mx.Convolution(mx.Variable("a"), kernel=(3,), num_filter=2, no_bias=True, name="c"), ["NCW", "OIW", "NCW"]),
        (
            mx.Convolution(mx.Variable("a"), kernel=(3, 3), num_filter=2, layout="NHWC", name="c"),
            ["NHWC", "OHWI", "C", "NHWC"],
        ),
        (mx.Deconvolution(mx.Variable("a"), kernel=(2, 2), num_filter=2, name="c"), ["NCHW", "OIHW", "NCHW"]),
        (mx.Pooling(mx.Variable("a"), kernel=(2, 2), pool_type="max"), ["NCHW", "NCHW"]),
        (mx.Pooling(mx.Variable("a", shape=(1, 2, 3)), kernel=(2, 2), layout="NCHW"), [None, "NCHW"]),
    ],
)
def test_layouts_come_back_to_variables(net: Any, wanted: list[str]) -> None:
    assert layouts(net, {})[1] == wanted


def test_layouts_of_channels_rows_and_columns() -> None:
    a, b = mx.Variable("a"), mx.Variable("b")
    found = layouts(mx.BatchNorm(a, name="n"), {"a": "NCHW"})[1]
    assert found == ["NCHW", *["C"] * 4, "NCHW", "C", "C"]
    assert layouts(mx.InstanceNorm(a, name="n"), {"a": "NCW"})[1] == ["NCW", "C", "C", "NCW"]
    assert layouts(mx.FullyConnected(a, num_hidden=2, name="f"), {"a": "HW"})[1][-1] == "HW"
    assert layouts(mx.FullyConnected(a, num_hidden=2, name="f"), {"a": "NCHW"})[1][-1] is None
    assert layouts(mx.FullyConnected(a, num_hidden=2, flatten=False, name="f"), {"a": "NTC"})[1][-1] == "NTC"
    for transposed, left, right, out in (("", "HW", "WC", "HC"), ("a", "HW", "HC", "WC"), ("b", "HW", "CW", "HC")):
        options = {f"transpose_{which}": True for which in transposed}
        assert layouts(mx.dot(a, b, **options), {"a": left, "b": right})[1][-1] == out
        given = {"a": f"N{left}", "b": f"N{right}"}
        assert layouts(mx.batch_dot(a, b, **options), given)[1][-1] == f"N{out}"
    x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
    assert layouts(weft.matmul(x, y), {"x": "NHW", "y": "WC"})[1][-1] == "NHC"
    assert layouts(weft.matmul(x, y), {"x": "HW", "y": "NWC"})[1][-1] == "NHC"
    assert layouts(weft.matmul(x, y), {"x": "W", "y": "WC"})[1][-1] is None
    assert layouts(weft.matmul(x, y), {"x": "HW", "y": "WH"})[1][-1] is None  # no two axes have one name


@pytest.mark.parametrize(
    ("given", "ops", "wanted"),
    [
        ({"x": "NCHW", "y": "CHW"}, ["broadcast_add"], "NCHW"),
        ({"x": "NCHW16c", "y": "CHW"}, ["layout_transform", "broadcast_add"], "NCHW16c"),
        ({"x": "HCW16c", "y": "N16nCH16cW"}, ["layout_transform", "broadcast_add"], "N16nCH16cW"),
        ({"x": "NCHW", "y": "NH"}, ["broadcast_add"], None),  # the axes of y are not the last ones of x
        ({"x": "NCHW", "y": "ZW"}, ["broadcast_add"], None),
    ],
)
def test_what_spreads_takes_the_layout_of_what_it_spreads_over(
    given: dict[str, str], ops: list[str], wanted: str | None
) -> None:
    found = layouts(mx.broadcast_add(mx.Variable("x"), mx.Variable("y")), given)
    assert found[0] == ops
    assert found[1][-1] == wanted


def test_values_stay_where_what_spreads_is_laid_out_anew() -> None:
    net = mx.broadcast_mul(mx.Variable("x"), mx.Variable("y"))
    first = weft.graph.correct_layout(weft.graph.Graph(net), {"x": "NCHW", "y": "CHW"})
    second = weft.graph.correct_layout(first, {"x": "NCHW2c"})
    x, y = numbers(2, 4, 3, 5), numbers(4, 3, 5)
    wanted = net.eval(x=x, y=y)[0].numpy()
    blocked = np.ascontiguousarray(x.reshape(2, 2, 2, 3, 5).transpose(0, 1, 3, 4, 2))
    np.testing.assert_allclose(second.symbol.eval(x=blocked, y=y)[0].numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("group", [1, 2])
def test_channels_on_the_last_axis(group: int) -> None:
    x, weight, bias = numbers(2, 5, 6, 4), numbers(6, 3, 2, 4 // group), numbers(6)
    options = {"kernel": (3, 2), "num_filter": 6, "num_group": group, "stride": (2, 1), "layout": "NHWC"}
    plain = options | {"layout": "NCHW"}
    turned = [each.transpose(0, 3, 1, 2).copy() for each in (x, weight)]
    found, wanted = run("Convolution", x, weight, bias, **options), run("Convolution", *turned, bias, **plain)
    np.testing.assert_allclose(found[0], wanted[0].transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-6)
    by, by_plain = (
        gradients("Convolution", x, weight, bias, **options),
        gradients("Convolution", *turned, bias, **plain),
    )
    for one, other in zip(by, by_plain, strict=True):
        np.testing.assert_allclose(one, other if other.ndim == 1 else other.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)
    net = mx.Convolution(mx.Variable("x"), **options, name="c")
    assert net.infer_shape(x=(2, 5, 6, 4))[0][1:] == [weight.shape, (6,)]
    kernel = {"kernel": (2, 2), "pool_type": "avg", "layout": "NHWC"}
    pooled = run("Pooling", turned[0], **(kernel | {"layout": None}))[0].transpose(0, 2, 3, 1)
    np.testing.assert_allclose(run("Pooling", x, **kernel)[0], pooled, rtol=1e-6)
    weight = numbers(4, 2, 2, 3)
    again = run("Deconvolution", x, weight, kernel=(2, 2), num_filter=3, layout="NHWC", no_bias=True)[0]
    wanted = run(
        "Deconvolution", turned[0], weight.transpose(0, 3, 1, 2).copy(), kernel=(2, 2), num_filter=3, no_bias=True
    )
    np.testing.assert_allclose(again, wanted[0].transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-6)


DATA = ["NCHW4c", "NHWC4c", "N4cHWC", "NHWC", "CNHW", "N2nCHW", "NC3hHW", "HW2nCN8c"]


@pytest.mark.parametrize("layout", DATA)
@pytest.mark.parametrize(
    ("kernel_layout", "out_layout"), [(None, None), ("OIHW4i2o", "NCHW2c"), ("HWIO", None), (None, "NHWC3c")]
)
def test_convolutions_in_any_layout(layout: str, kernel_layout: str | None, out_layout: str | None) -> None:
    x, weight, bias = numbers(2, 8, 6, 5), numbers(12, 8, 3, 2), numbers(12)
    options = {"kernel": (3, 2), "num_filter": 12, "stride": (1, 2), "pad": (1, 0)}
    said: dict[str, Any] = options | {"layout": layout}
    said |= {} if kernel_layout is None else {"kernel_layout": kernel_layout}
    said |= {} if out_layout is None else {"out_layout": out_layout}
    result = out_layout or layout
    weights = kernel_layout or re.sub(r"\d+[a-z]", "", layout).translate(str.maketrans("NC", "OI"))
    along = "".join(re.findall(r"\d+c|C", result))
    if "8c" in along:
        with pytest.raises(ShapeError, match=r"'C8c': 12 along C do not divide into blocks of 8"):
            mx.Convolution(mx.Variable("x"), **said).infer_shape(x=laid(x, "NCHW", layout).shape)
        return
    given = laid(x, "NCHW", layout), laid(weight, "OIHW", weights), laid(bias, "C", along)
    wanted = run("Convolution", x, weight, bias, **options)[0]
    found = run("Convolution", *given, **said)[0]
    np.testing.assert_allclose(found, laid(wanted, "NCHW", result), rtol=1e-4, atol=1e-5)
    by = gradients("Convolution", *given, **said)
    plain = gradients("Convolution", x, weight, bias, **options)
    ways = (("NCHW", layout), ("OIHW", weights), ("C", along))
    for one, other, way in zip(by, plain, ways, strict=True):
        np.testing.assert_allclose(one, laid(other, *way), rtol=1e-4, atol=1e-4)
    net = mx.Convolution(mx.Variable("x"), **said, name="c")
    assert net.infer_shape(x=given[0].shape)[0] == [each.shape for each in given]


@pytest.mark.parametrize("layout", DATA)
@pytest.mark.parametrize("kind", ["max", "avg", "sum", "lp", "all"])
def test_pooling_in_any_layout(layout: str, kind: str) -> None:
    x = numbers(2, 8, 6, 6)
    options: dict[str, Any] = {"kernel": (2, 2), "stride": (2, 2), "pool_type": kind}
    if kind == "all":
        options = {"global_pool": True, "pool_type": "avg"}
        if "h" in layout:
            with pytest.raises(ShapeError, match=r"1 along H do not divide into blocks of 3"):
                run("Pooling", laid(x, "NCHW", layout), layout=layout, **options)
            return
    elif kind == "lp":
        options["p_value"] = 2
    given = laid(x, "NCHW", layout)
    found = run("Pooling", given, layout=layout, **options)[0]
    np.testing.assert_allclose(found, laid(run("Pooling", x, **options)[0], "NCHW", layout), rtol=1e-4, atol=1e-6)
    by = gradients("Pooling", given, layout=layout, **options)[0]
    np.testing.assert_allclose(by, laid(gradients("Pooling", x, **options)[0], "NCHW", layout), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("layout", DATA[:4])
def test_convolutions_back_in_any_layout(layout: str) -> None:
    x, weight, bias = numbers(2, 8, 4, 3), numbers(8, 4, 2, 3), numbers(4)
    options = {"kernel": (2, 3), "num_filter": 4, "stride": (2, 1), "no_bias": False}
    weights = re.sub(r"\d+[a-z]", "", layout).translate(str.maketrans("NC", "OI"))
    along = "4cC" if layout.startswith("N4c") else "C4c" if "4c" in layout else "C"
    given = laid(x, "NCHW", layout), laid(weight, "OIHW", weights), laid(bias, "C", along)
    wanted = run("Deconvolution", x, weight, bias, **options)[0]
    found = run("Deconvolution", *given, layout=layout, **options)[0]
    np.testing.assert_allclose(found, laid(wanted, "NCHW", layout), rtol=1e-4, atol=1e-5)
    by = gradients("Deconvolution", *given, layout=layout, **options)
    plain = gradients("Deconvolution", x, weight, bias, **options)
    ways = (("NCHW", layout), ("OIHW", weights), ("C", along))
    for one, other, way in zip(by, plain, ways, strict=True):
        np.testing.assert_allclose(one, laid(other, *way), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("layout", "axis"), [("NCHW4c", 1), ("N4cHWC", 3), ("HWNC2c", -1), ("NHWC", 3)])
@pytest.mark.parametrize("is_train", [False, True])
def test_norms_with_blocked_channels(layout: str, axis: int, is_train: bool) -> None:
    x, others = numbers(2, 8, 3, 3), [numbers(8), numbers(8), numbers(8), numbers(8) ** 2 + 1]
    names = ["data", "gamma", "beta", "mean", "variance"]

    def trained(data: np.ndarray, **said: Any) -> tuple[np.ndarray, ...]:
        net = mx.BatchNorm(*map(mx.Variable, names), fix_gamma=False, **said)
        given = {name: weft.asarray(each) for name, each in zip(names, (data, *others), strict=True)}
        executor = net.bind(
            args={name: given[name] for name in names[:3]},
            args_grad={name: weft.zeros_like(given[name]) for name in names[:3]},
            aux_states={name: given[name] for name in names[3:]},
        )
        executor.forward(is_train=is_train)
        head = np.cos(np.arange(x.size, dtype="f")).reshape(x.shape)
        executor.backward(weft.asarray(laid(head, "NCHW", layout) if said else head), is_train=is_train)
        states = [executor.aux_dict[name].numpy() for name in names[3:]]
        return executor.outputs[0].numpy(), *(executor.grad_dict[name].numpy() for name in names[:3]), *states

    found, wanted = trained(laid(x, "NCHW", layout), layout=layout, axis=axis), trained(x)
    for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_allclose(one, laid(other, "NCHW", layout) if at < 2 else other, rtol=1e-3, atol=1e-5)
    assert is_train == (np.abs(found[-1] - others[-1]).max() > 1e-3)


def test_blocked_data_eagerly_and_in_programs() -> None:
    x, weight = numbers(2, 4, 5, 5), numbers(4, 4, 2, 2)
    blocked = weft.asarray(laid(x, "NCHW", "NCHW2c"))
    weights = weft.asarray(laid(weight, "OIHW", "OIHW2i2o"))

    def net(x: Any, weight: Any, **said: str) -> Any:
        first = {} if not said else said | {"kernel_layout": "OIHW2i2o"}
        y = nd.Convolution(x, weight, kernel=(2, 2), num_filter=4, no_bias=True, **first)
        ones = [weft.ones(4, dtype="float32") for _ in range(4)]
        y = nd.BatchNorm(nd.relu(y), *ones, fix_gamma=False, use_global_stats=True, **said)
        return nd.Pooling(y, kernel=(2, 2), pool_type="avg", **said)

    def block(x: Any, weight: Any) -> Any:
        return net(x, weight, layout="NCHW2c")

    wanted = laid(net(weft.asarray(x), weft.asarray(weight)).numpy(), "NCHW", "NCHW2c")
    np.testing.assert_allclose(block(blocked, weights).numpy(), wanted, rtol=1e-5, atol=1e-6)
    compiled = weft.program(block)
    for _ in range(3):
        np.testing.assert_allclose(compiled(blocked, weights).numpy(), wanted, rtol=1e-5, atol=1e-6)
    by = weft.grad(lambda *given: weft.sum(block(*given) ** 2), (0, 1))(blocked, weights)
    plain = weft.grad(lambda *given: weft.sum(net(*given) ** 2), (0, 1))(weft.asarray(x), weft.asarray(weight))
    np.testing.assert_allclose(by[0].numpy(), laid(plain[0].numpy(), "NCHW", "NCHW2c"), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(by[1].numpy(), laid(plain[1].numpy(), "OIHW", "OIHW2i2o"), rtol=1e-4, atol=1e-5)


def test_a_network_takes_blocks_as_far_as_it_can() -> None:
    a = mx.Variable("a")
    net = mx.Pooling(mx.relu(mx.BatchNorm(a, name="n", fix_gamma=False)), kernel=(2, 2), pool_type="max", name="p")
    net = mx.Convolution(net, kernel=(2, 2), num_filter=3, name="c")
    first = weft.graph.correct_layout(weft.graph.Graph(net), {"a": "NCHW"})
    second = weft.graph.correct_layout(first, {"a": "NCHW4c"})
    ops = [node.op.name for node in second.indexed_graph().nodes if not node.is_variable]
    assert ops == ["BatchNorm", "relu", "Pooling", "layout_transform", "Convolution"]
    x = numbers(2, 8, 5, 5)
    given = {
        name: numbers(*shape) for name, shape in zip(net.list_arguments(), net.infer_shape(a=x.shape)[0], strict=True)
    }
    results = []
    for symbol, data in ((net, x), (second.symbol, laid(x, "NCHW", "NCHW4c"))):
        executor = symbol.simple_bind(a=data.shape)
        assert symbol.list_auxiliary_states() == net.list_auxiliary_states()
        executor.copy_params_from({name: weft.asarray(each) for name, each in given.items() if name != "a"})
        executor.forward(is_train=True, a=data)
        executor.backward()
        results.append([executor.outputs[0], *executor.aux_arrays, *executor.grad_arrays])
    for at, (one, other) in enumerate(zip(*results, strict=True)):
        plain = one.numpy()
        wanted = laid(plain, "NCHW", "NCHW4c") if at == 3 else plain  # the data's gradient
        np.testing.assert_allclose(other.numpy(), wanted, rtol=1e-3, atol=1e-4)


def test_pooling_takes_blocks_that_leave_windows_in_place() -> None:
    a = mx.Variable("a")
    net = weft.graph.Graph(mx.Pooling(a, kernel=(2, 2), layout="NCHW", name="p"))
    first = weft.graph.correct_layout(net, {"a": "NCHW"})
    blocked = weft.graph.correct_layout(first, {"a": "NCHW2c"})
    assert blocked.attrs["layout"] == ["NCHW2c", "NCHW2c", "NCHW"]  # the result comes back
    assert blocked.symbol.get_internals()["p_output"].attr("layout") == "NCHW2c"
    x = numbers(1, 4, 3, 3)
    wanted = run("Pooling", x, kernel=(2, 2))[0]
    for graph, layout in (
        (blocked, "NCHW2c"),
        (first, "NHWC"),
        (blocked, "NHWC"),
        (first, "NCH2cW"),
        (blocked, "NCHW4c"),
    ):
        other = weft.graph.correct_layout(graph, {"a": layout})
        np.testing.assert_array_equal(other.symbol.eval(a=laid(x, "NCHW", layout))[0].numpy(), wanted)
    moved = weft.graph.correct_layout(blocked, {"a": "NHWC"})
    assert moved.attrs["layout"][:3] == ["NHWC", "NCHW", "NCHW"]


def test_transforms_tell_shapes_both_ways() -> None:
    there = weft.symbol.layout_transform(weft.symbol.Variable("x"), src_layout="NCHW", dst_layout="NCHW4c")
    assert there.infer_shape_partial(x=(None, 8, 3, None))[1] == [(None, 2, 3, None, 4)]
    net = weft.symbol.elemwise_add(there, weft.symbol.Variable("y", shape=(1, 2, 3, 3, 4)))
    assert net.infer_shape()[0] == [(1, 8, 3, 3), (1, 2, 3, 3, 4)]
    back = weft.symbol.layout_transform(there, src_layout="NCHW4c", dst_layout="NCHW")
    assert back.infer_shape(x=(1, 8, 3, 3))[1] == [(1, 8, 3, 3)]
    with pytest.raises(ShapeError, match=r"6 along C do not divide into blocks of 4"):
        there.infer_shape(x=(1, 6, 3, 3))


@pytest.mark.parametrize(
    ("op", "said", "error"),
    [
        ("Convolution", {"layout": "NCHX"}, "'layout'.* a layout of N, C and W, HW or DHW, such as NCHW.*'NCHX'"),
        ("Convolution", {"layout": "CHW"}, "'layout'.* a layout of N, C and W, HW or DHW.*'CHW'"),
        ("Convolution", {"layout": "NCHW16"}, "'layout'.* a layout of N, C.*'NCHW16'"),
        ("Convolution", {"layout": "NCHW", "kernel_layout": "NCHW"}, "'kernel_layout'.* a layout of O, I.*'NCHW'"),
        ("Convolution", {"layout": "NCW"}, "layout='NCW' is of 1 axes of windows, and the others are of 2"),
        ("Convolution", {"layout": "NCHW", "out_layout": "NCDHW4c"}, "out_layout='NCDHW4c' is of 3 axes of windows"),
        ("Pooling", {"layout": "NCHW3w"}, "5 along W do not divide into blocks of 3"),
        ("BatchNorm", {"layout": "N2nCHW4c"}, "blocks along one axis at most, such as NCHW or NCHW16c.*'N2nCHW4c'"),
        ("BatchNorm", {"layout": "NCHW4c", "axis": 4}, "there is no axis 4 in data of 4 axes"),
        ("Convolution", {"layout": "NCHW4c"}, r"of shape \(1, 4, 6, 6\) has not the axes of layout 'NCHW4c'"),
    ],
)
def test_layouts_that_cannot_be(op: str, said: dict[str, Any], error: str) -> None:
    shape = (1, 4, 6, 2, 3) if op == "Pooling" else (1, 1, 6, 6, 4) if "BatchNorm" in op else (1, 4, 6, 6)
    options = (
        {"kernel": (2, 2), "num_filter": 4} if op == "Convolution" else {"kernel": (2, 2)} if op == "Pooling" else {}
    )
    with pytest.raises((GraphError, ShapeError), match=error):
        getattr(mx, op)(mx.Variable("x"), **options, **said).infer_shape(x=shape)
    assert getattr(mx, op)(mx.Variable("x"), **options).infer_shape(x=(1, 4, 6, 6))[1][0][:2] == (1, 4)
