"""Scripts that were written for MXNet: its names, arguments by position, automatic names, operators, executors."""

import json
import pickle
import re
from contextlib import nullcontext

import numpy as np
import pytest

import weft
import weft.mxnet
import weft.mxnet.ndarray as nd
import weft.mxnet.symbol as mx
from weft.errors import ArgumentTypeError, GraphError, ShapeError


def test_a_net_of_a_script_has_mxnets_names() -> None:
    with mx.NameManager():
        x = mx.Variable("data")
        net = mx.Activation(mx.FullyConnected(x, num_hidden=4), "relu")
        net = mx.SoftmaxOutput(mx.FullyConnected(net + net * 2, num_hidden=2))
    assert net.list_arguments() == [
        *("data", "fullyconnected0_weight", "fullyconnected0_bias"),
        *("fullyconnected1_weight", "fullyconnected1_bias", "softmaxoutput0_label"),
    ]
    names = net.get_internals().list_outputs()
    assert {"_mulscalar0_output", "_plus0_output", "activation0_output"} <= set(names)
    assert isinstance(net.get_internals()["_plus0_output"], mx.Symbol)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda x: mx.clip(x, 0, 6), (2, 3, 4)),
        (lambda x: mx.SwapAxis(x, 0, 2), (4, 3, 2)),
        (lambda x: mx.one_hot(x, 5), (2, 3, 4, 5)),
        (lambda x: mx.sum(x, 1), (2, 4)),
        (lambda x: mx.reshape(x, (0, -1)), (2, 12)),
        (lambda x: mx.slice_axis(x, 1, 0, 2), (2, 2, 4)),
        (lambda x: mx.Pooling(mx.expand_dims(x, 0), (2, 2), "avg"), (1, 2, 2, 3)),
        (lambda x: mx.transpose(x, (2, 0, 1)), (4, 2, 3)),
        (lambda x: mx.Concat(x, x, dim=1), (2, 6, 4)),
        (lambda x: mx.Concat(*[x, x]), (2, 6, 4)),
        (lambda x: x.reshape((0, -1)), (2, 12)),
        (lambda x: x.reshape(0, -1), (2, 12)),
        (lambda x: x.reshape(shape=(-3, 0)), (6, 4)),
        (lambda x: x.flatten(), (2, 12)),
        (lambda x: x.softmax(axis=1).max(axis=2).astype("float16"), (2, 3)),
        (lambda x: mx.FullyConnected(x, None, None, 7), (2, 7)),
        (lambda x: mx.contrib.AdaptiveAvgPooling2D(x.expand_dims(0), (1, 2)), (1, 2, 1, 2)),
        (lambda x: abs(-x) % 2 + 1 - (3 / (x**2)), (2, 3, 4)),
        (lambda x: mx.maximum(x, 1) + mx.zeros((2, 3, 4)) + mx.ones((2, 3, 4)), (2, 3, 4)),
    ],
)
def test_arguments_by_position_and_methods_are_mxnets(made: object, wanted: tuple[int, ...]) -> None:
    net = made(mx.Variable("x"))
    assert net.infer_shape(x=(2, 3, 4))[1] == [wanted]
    with np.errstate(all="ignore"):
        given = {
            name: np.ones(shape, "f")
            for name, shape in zip(net.list_arguments(), net.infer_shape(x=(2, 3, 4))[0], strict=True)
        }
        assert net.eval(**given)[0].shape == wanted


def test_names_that_numpy_has_mean_mxnets_ops() -> None:
    a, b = mx.Variable("a"), mx.Variable("b")
    assert mx.dot(a, b).infer_shape(a=(2, 3, 4), b=(4, 5, 6))[1] == [(2, 3, 5, 6)]
    assert mx.sum(a).infer_shape(a=(2, 3))[1] == [(1,)]
    assert mx.flip(a, axis=0).get_node().op.mxnet_name == "reverse"
    assert mx.identity(a).eval(a=[1.0])[0].tolist() == [1]


def test_operators_do_not_broadcast() -> None:
    a, b = mx.Variable("a"), mx.Variable("b")
    with pytest.raises(ShapeError):
        (a + b).infer_shape(a=(2, 3), b=(1, 3))
    assert mx.broadcast_add(a, b).infer_shape(a=(2, 3), b=(1, 3))[1] == [(2, 3)]
    assert (a + b).infer_shape(a=(2, 3))[0] == [(2, 3), (2, 3)]  # and so shapes follow
    for made, wanted in ((a > b, [0, 0, 1]), (a == 2, [0, 1, 0]), (2 - a, [1, 0, -1]), (a <= b, [1, 1, 0])):
        arrays = {"a": np.array([1, 2, 3], "f"), "b": np.array([2, 2, 2], "f")}
        assert made.eval(**{name: arrays[name] for name in made.list_arguments()})[0].tolist() == wanted


def test_zeros_in_shapes_are_not_known() -> None:
    x = mx.Variable("x", shape=(0, 3))
    assert x.infer_shape_partial()[0] == [(0, 3)]
    assert mx.exp(x).infer_shape(x=(0, 3)) == (None, None, None)
    assert mx.exp(x).infer_shape_partial(x=(0, 3))[1] == [(0, 3)]
    assert mx.exp(mx.Variable("y")).infer_shape_partial() == ([()], [()], [])


def test_what_is_wrong_is_said_when_it_is_composed() -> None:
    x = mx.Variable("x")
    with pytest.raises(ArgumentTypeError, match="by position and by name"):
        mx.clip(x, 0, 6, a_min=1)
    with pytest.raises(ArgumentTypeError, match="takes data, a_min, a_max"):
        mx.clip(x, 0, 6, 7)
    with pytest.raises(AttributeError, match="list_ops"):
        _ = mx.Convolutional
    with pytest.raises(GraphError, match="colour"):
        mx.FullyConnected(x, num_hidden=2, colour="red")
    with pytest.raises(AttributeError, match="soft_max"):
        _ = x.soft_max


def test_weft_symbol_takes_mxnets_attributes_by_position() -> None:
    x = weft.symbol.Variable("x")
    assert weft.symbol.SwapAxis(x, 0, 1).infer_shape(x=(2, 3))[1] == [(3, 2)]
    assert weft.symbol.Cast(x, "float16").infer_type(x="float32")[1] == [np.float16]
    weights = weft.symbol.Convolution(x, weft.symbol.Variable("w"), None, (1, 1), num_filter=2, name="c")
    assert weights.list_arguments() == ["x", "w", "c_bias"]
    assert x.reshape(shape=(1, 2)).infer_shape(x=(2,))[1] == [(1, 2)]
    assert x.transpose(axes=(1, 0)).infer_shape(x=(2, 3))[1] == [(3, 2)]


def test_what_belongs_to_a_weight_is_noted_there() -> None:
    net = mx.FullyConnected(mx.Variable("x"), num_hidden=2, weight_lr_mult=0.5, name="fc")
    assert net.attr_dict()["fc_weight"]["lr_mult"] == "0.5"
    assert net.list_attr(recursive=True)["fc_weight___lr_mult__"] == "0.5"


def test_files_go_to_mxnet_and_back() -> None:
    x = mx.Variable("x", shape=(2, 3, 8, 8), dtype="float16")
    net = mx.sum(mx.exp(mx.Convolution(x, kernel=(3, 3), num_filter=2, workspace=256, cudnn_off="False", name="c")), 1)
    text = net.tojson()
    nodes = json.loads(text)["nodes"]
    assert [node["op"] for node in nodes if node["op"] != "null"] == ["Convolution", "exp", "sum"]
    assert nodes[0]["attrs"] == {"__dtype__": "2", "__shape__": "(2, 3, 8, 8)"}
    assert json.loads(text)["attrs"]["mxnet_version"] == ["int", 10901]
    assert nodes[3]["attrs"]["workspace"] == "256"
    for _ in range(3):
        net = mx.load_json(net.tojson())
        assert net.tojson() == text
    assert net.infer_type()[1] == [np.float16]
    assert pickle.loads(pickle.dumps(net)).tojson() == text
    mixed = weft.exp(net)  # with ops that MXNet has not
    again = weft.symbol.load_json(mixed.tojson())
    assert again.tojson() == mixed.tojson()
    assert "mxnet_version" not in mixed.tojson()


@pytest.mark.parametrize("attribute", ["1024", "'a'", "None", "(1, 2)", "1e-05"])
def test_texts_without_effect_stay(attribute: str) -> None:
    text = mx.Convolution(mx.Variable("x"), kernel=(1, 1), num_filter=1, workspace=attribute).tojson()
    assert mx.load_json(text).tojson() == text


def test_attributes_of_graphs_are_loaded() -> None:
    graph = weft.graph.Graph(mx.exp(mx.Variable("x")))
    graph.attrs["version"] = "0.1"
    assert weft.graph.load_json(weft.graph.save_json(graph)).attrs["version"] == "0.1"


def test_functions_of_arrays() -> None:
    x = nd.array([[1, 2, 3]])
    assert nd.FullyConnected(x, nd.ones((2, 3)), nd.zeros(2), num_hidden=2).tolist() == [[6, 6]]
    assert nd.clip(x, 0, 2).tolist() == [[1, 2, 2]]
    assert [each.shape for each in nd.split(x, 3, 1)] == [(1, 1)] * 3
    assert nd.concat(x, x, dim=0).shape == (2, 3)
    assert nd.dot(x, x, transpose_b=True).tolist() == [[14]]
    out = nd.zeros((1, 3))
    assert nd.exp(nd.zeros((1, 3)), out=out) is out
    assert out.tolist() == [[1, 1, 1]]
    assert nd.arange(3, repeat=2).tolist() == [0, 0, 1, 1, 2, 2]
    assert (nd.full((2,), 3).dtype, nd.array(np.ones(2)).dtype) == (np.float32, np.float32)
    assert nd.contrib.box_iou(nd.array([[0, 0, 2, 2]]), nd.array([[1, 0, 3, 2]])).tolist() == [[pytest.approx(1 / 3)]]
    with pytest.raises(ArgumentTypeError, match="takes the arrays data, weight, bias, and 2 were given"):
        nd.FullyConnected(x, nd.ones((2, 3)), num_hidden=2)
    with pytest.raises(AttributeError, match="list_ops"):
        _ = nd.Convolutional


def test_executors_as_scripts_use_them() -> None:
    x = mx.Variable("x")
    executor = mx.tanh(x, name="t").simple_bind(weft.mxnet.cpu(), x=(2,), axis=(3,))
    assert executor.outputs[0].shape == (2,)
    assert executor.outputs[0].dtype == np.float32
    executor.forward(x=np.array([0.5, 1], "f"))
    executor.backward(nd.ones(2))
    np.testing.assert_allclose(executor.grad_dict["x"].numpy(), 1 - np.tanh([0.5, 1]) ** 2, rtol=1e-6)
    executor.forward(is_train=True, x=np.array([0, 1], "f"))
    executor.backward([nd.ones(2)], is_train=True)
    np.testing.assert_allclose(executor.grad_dict["x"].numpy(), 1 - np.tanh([0, 1]) ** 2, rtol=1e-6)
    assert re.search(r"Op:(mxnet.)?tanh, Name=t\n(.|\n)*Total [0-9.e-]+ MB allocated", executor.debug_str())
    bound = (x * 2).bind(weft.mxnet.cpu(), {"x": nd.ones(2)})
    assert bound.forward()[0].tolist() == [2, 2]


def test_backward_after_forward_that_does_not_train() -> None:
    x = mx.Variable("x")
    net = mx.BatchNorm(mx.Dropout(x, p=0.9), fix_gamma=False, name="n")
    executor = net.simple_bind(x=(4, 2))
    executor.arg_dict["n_gamma"][...] = 1
    executor.aux_dict["n_moving_var"][...] = 3
    draw = np.random.default_rng(0).normal(size=(4, 2)).astype("f")
    first = executor.forward(x=draw)[0].numpy()
    executor.backward(nd.ones((4, 2)), is_train=False)
    np.testing.assert_allclose(executor.grad_dict["x"].numpy(), np.full((4, 2), 1 / np.sqrt(3 + 1e-3)), rtol=1e-5)
    np.testing.assert_allclose(first, draw / np.sqrt(3 + 1e-3), rtol=1e-5)
    assert executor.aux_dict["n_moving_var"].tolist() == [3, 3]


def test_what_is_given_wins() -> None:
    x = weft.symbol.Variable("x", shape=(1, 3), dtype="float64")
    net = weft.symbol.FullyConnected(x, num_hidden=2, name="fc")
    assert net.infer_shape(x=(8, 3))[1] == [(8, 2)]
    assert net.infer_shape()[1] == [(1, 2)]
    assert net.infer_shape(x=(None, 3))[1] == [(1, 2)]  # what is noted counts where nothing else is known
    assert net.infer_type(x="float16")[1] == [np.float16]
    executor = net.simple_bind(x=(8, 3), type_dict={"x": "float32"})
    assert (executor.arg_dict["x"].shape, executor.arg_dict["x"].dtype) == ((8, 3), np.float32)
    arrays = {name: weft.ones(shape) for name, shape in zip(net.list_arguments(), [(8, 3), (2, 3), (2,)], strict=True)}
    assert net.bind(arrays).forward()[0].shape == (8, 2)


def test_heads_as_a_group() -> None:
    x, h, k = (weft.symbol.Variable(name) for name in "xhk")
    ys = weft.symbol.Group([x * x, x * 3])
    found = weft.graph.gradient(None, ys, x, weft.symbol.Group([h, k])).symbol
    assert found.eval(x=[2.0], h=[1.0], k=[10.0])[0].tolist() == [34]


@weft.mxnet.operator.register("test_sigmoid")
class SigmoidProp(weft.mxnet.operator.CustomOpProp):
    def __init__(self, scale: str = "1") -> None:
        super().__init__()
        self.scale = float(scale)

    def list_arguments(self) -> list[str]:
        return ["data", "shift"]

    def infer_shape(self, in_shape: list) -> tuple:
        return [in_shape[0], in_shape[0][1:]], [in_shape[0]], []

    def create_operator(self, _ctx: object, in_shapes: list, in_dtypes: list) -> "Sigmoid":
        assert in_shapes[0][1:] == in_shapes[1]
        assert in_dtypes == [np.float32, np.float32]
        return Sigmoid(self.scale)


class Sigmoid(weft.mxnet.operator.CustomOp):
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def forward(self, is_train: bool, req: list, in_data: list, out_data: list, _aux: list) -> None:
        del is_train
        x, shift = (each.numpy() for each in in_data)  # values, which no program has
        self.assign(out_data[0], req[0], self.scale / (1 + np.exp(-(x + shift))))

    def backward(self, req: list, out_grad: list, in_data: list, out_data: list, in_grad: list, _aux: list) -> None:
        del in_data
        y = out_data[0] / self.scale
        grad = out_grad[0] * y * (1 - y) * self.scale
        self.assign(in_grad[0], req[0], grad)
        self.assign(in_grad[1], req[1], grad.sum(axis=0))


def test_operators_that_a_script_defines() -> None:
    net = mx.Custom(mx.Variable("x"), op_type="test_sigmoid", scale=2, name="s")
    assert net.list_arguments() == ["x", "s_shift"]
    assert net.infer_shape(x=(4, 3)) == ([(4, 3), (3,)], [(4, 3)], [])
    executor = net.simple_bind(x=(4, 3))
    x = np.random.default_rng(0).normal(size=(4, 3)).astype("f")
    y = 1 / (1 + np.exp(-x))
    for factor in (1, 2):
        found = executor.forward(is_train=True, x=x * factor)[0]
        y = 1 / (1 + np.exp(-x * factor))
        np.testing.assert_allclose(found.numpy(), 2 * y, rtol=1e-5)
        executor.backward(nd.ones((4, 3)))
        np.testing.assert_allclose(executor.grad_dict["x"].numpy(), 2 * y * (1 - y), rtol=1e-4)
        np.testing.assert_allclose(executor.grad_dict["s_shift"].numpy(), (2 * y * (1 - y)).sum(0), rtol=1e-4)
    assert mx.load_json(net.tojson()).tojson() == net.tojson()
    assert nd.Custom(nd.array(x), nd.zeros(3), op_type="test_sigmoid").shape == (4, 3)
    assert nd.Custom(nd.array(x), nd.zeros(3), name="s", ctx=None, op_type="test_sigmoid").shape == (4, 3)
    with pytest.raises(GraphError, match="no custom operator is registered as 'test_nothing'"):
        mx.Custom(mx.Variable("x"), op_type="test_nothing")


@weft.mxnet.operator.register("test_counted")
class CountedProp(weft.mxnet.operator.CustomOpProp):
    def list_auxiliary_states(self) -> list[str]:
        return ["calls", "last"]

    def infer_shape(self, in_shape: list) -> tuple:
        return in_shape, [in_shape[0]], [(1,), in_shape[0]]

    def infer_type(self, in_type: list) -> tuple:
        return in_type, in_type, [np.int32, in_type[0]]

    def create_operator(self, _ctx: object, in_shapes: list, in_dtypes: list) -> "Counted":
        assert len(in_shapes) == len(in_dtypes) == 1
        return Counted()


class Counted(weft.mxnet.operator.CustomOp):
    def forward(self, is_train: bool, req: list, in_data: list, out_data: list, aux: list) -> None:
        if is_train:
            aux[0][:] += 1
        aux[1][:] = in_data[0]
        self.assign(out_data[0], req[0], in_data[0] * aux[0])

    def backward(self, req: list, out_grad: list, in_data: list, _out: list, in_grad: list, aux: list) -> None:
        assert aux[1].tolist() == in_data[0].tolist()
        self.assign(in_grad[0], req[0], out_grad[0] * aux[0])


def test_states_of_operators_that_a_script_defines() -> None:
    net = mx.Custom(mx.Variable("x"), op_type="test_counted", name="s")
    assert (net.list_arguments(), net.list_auxiliary_states()) == (["x"], ["s_calls", "s_last"])
    assert net.infer_shape(x=(2,)) == ([(2,)], [(2,)], [(1,), (2,)])
    assert net.infer_type(x="float32")[2] == [np.int32, np.float32]
    executor = net.simple_bind(x=(2,))
    for call in (1, 2, 3):
        assert executor.forward(is_train=True, x=[1.0, call])[0].tolist() == [call, call**2]
        executor.backward(nd.ones(2))
        assert executor.grad_dict["x"].tolist() == [call] * 2
        assert executor.aux_dict["s_calls"].tolist() == [call]
        assert executor.aux_dict["s_last"].tolist() == [1, call]
    assert executor.forward(x=[2.0, 2.0])[0].tolist() == [6, 6]
    assert executor.aux_dict["s_last"].tolist() == [2, 2]
    calls, last = nd.zeros(1, dtype="int32"), nd.zeros(2)
    assert nd.Custom(nd.array([4.0, 5.0]), calls, last, op_type="test_counted").tolist() == [0, 0]
    assert last.tolist() == [4, 5]
    assert mx.load_json(net.tojson()).list_auxiliary_states() == ["s_calls", "s_last"]


@weft.mxnet.operator.register("test_steps")
class StepsProp(weft.mxnet.operator.CustomOpProp):
    def __init__(self, length: str) -> None:
        super().__init__()
        self.length = int(length)

    def list_arguments(self) -> list[str]:
        return []

    def infer_shape(self, in_shape: list) -> tuple:
        return in_shape, [(self.length,)], []

    def infer_type(self, in_type: list) -> tuple:
        return in_type, [np.int32], []

    def create_operator(self, _ctx: object, in_shapes: list, in_dtypes: list) -> "Steps":
        assert in_shapes == in_dtypes == []
        return Steps()


class Steps(weft.mxnet.operator.CustomOp):
    def forward(self, is_train: bool, req: list, in_data: list, out_data: list, aux: list) -> None:
        del is_train
        assert in_data == aux == []
        self.assign(out_data[0], req[0], np.arange(out_data[0].size))


def test_an_operator_that_a_script_defines_may_have_no_inputs() -> None:
    found = nd.Custom(length=4, op_type="test_steps")
    assert (found.tolist(), found.dtype) == ([0, 1, 2, 3], np.int32)
    net = mx.Custom(length=3, op_type="test_steps", name="s")
    assert net.list_arguments() == []
    assert (net.infer_shape(), net.infer_type()[1]) == (([], [(3,)], []), [np.int32])
    assert net.eval()[0].tolist() == [0, 1, 2]
    sums = mx.cast(net, "float32") + mx.Variable("x")
    executor = sums.simple_bind(x=(3,))
    assert executor.forward(is_train=True, x=[1.0, 1.0, 1.0])[0].tolist() == [1, 2, 3]
    executor.backward(nd.ones(3))
    assert executor.grad_dict["x"].tolist() == [1, 1, 1]


def test_backward_without_forward_runs_it() -> None:
    executor = mx.tile(mx.Variable("x"), reps=(2, 1)).simple_bind(x=(1, 2))
    executor.backward(nd.array([[1, 2], [3, 4]]))
    assert executor.grad_dict["x"].tolist() == [[4, 6]]
    assert executor.outputs[0].tolist() == [[0, 0]] * 2


@pytest.mark.parametrize("dtype", ["int32", "float64", "float16"])
def test_gradients_of_outputs_take_the_outputs_dtype(dtype: str) -> None:
    executor = mx.where(*map(mx.Variable, "cxy")).simple_bind(c=(3,), x=(3,), y=(3,))
    executor.forward(is_train=True, c=[1, 0, 1])
    executor.backward(nd.array([1, 2, 3], dtype=dtype))
    assert executor.grad_dict["x"].tolist() == [1, 0, 3]
    assert executor.grad_dict["y"].dtype == np.float32
    executor.backward(weft.asarray([1.0, 2.0, 3.0], dtype=dtype))
    assert executor.grad_dict["y"].tolist() == [0, 2, 0]


@pytest.mark.parametrize(
    "made",
    [
        lambda x: mx.Dropout(x, p=0.5, mode="always"),
        lambda x: x * mx.random.uniform(shape=(64,)),
    ],
    ids=["dropout", "uniform"],
)
@pytest.mark.parametrize("is_train", [True, False])
def test_backward_has_the_numbers_that_forward_drew(made: object, is_train: bool) -> None:
    executor = made(mx.Variable("x")).simple_bind(x=(64,))
    executor.arg_dict["x"][:] = 1
    for _ in range(3):
        drawn = executor.forward(is_train=is_train)[0].tolist()
        executor.backward(weft.ones(64, dtype="float32"), is_train=is_train)
        assert executor.grad_dict["x"].tolist() == drawn
    assert len(set(drawn)) > 1


@pytest.mark.parametrize("is_recorded", [True, False])
def test_slopes_that_are_drawn_are_those_of_the_gradient(is_recorded: bool) -> None:
    executor = mx.LeakyReLU(mx.Variable("x"), act_type="rrelu").simple_bind(x=(64,))
    executor.arg_dict["x"][:] = -1
    with nullcontext() if is_recorded else weft.eager():
        for _ in range(3):
            slopes = (-executor.forward(is_train=True)[0]).tolist()
            executor.backward()
            assert executor.grad_dict["x"].tolist() == slopes
    assert len(set(slopes)) > 1
    executor.forward()
    executor.backward(is_train=False)
    assert executor.grad_dict["x"].tolist() == [pytest.approx((0.125 + 0.334) / 2)] * 64


@pytest.mark.parametrize("state_outputs", [True, False])
@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_recurrent_network_drops_the_same_forwards_and_backwards(state_outputs: bool, is_recorded: bool) -> None:
    given = [mx.Variable(name) for name in ("data", "weights", "state")]
    net = mx.RNN(
        *given,
        state_size=4,
        num_layers=3,
        bidirectional=True,
        mode="rnn_relu",
        p=0.5,
        state_outputs=state_outputs,
        name="r",
    )
    assert net.list_outputs() == (["r_output0", "r_output1"] if state_outputs else ["r_output"])
    executor = net.simple_bind(data=(5, 2, 3))
    weights = executor.arg_dict["weights"]
    weights[: -3 * 2 * 2 * 4] = 0.2  # and no biases: so the network is linear where all is positive
    data = executor.arg_dict["data"]
    data[...] = np.random.default_rng(3).uniform(0.5, 1, data.shape)
    sums = []
    with nullcontext() if is_recorded else weft.eager():
        for _ in range(4):
            found = executor.forward(is_train=True)
            executor.backward()
            sums.append(sum(float(each.sum()) for each in found))
            assert float((executor.grad_dict["data"] * data).sum()) == pytest.approx(sums[-1], rel=1e-4)
    assert len(set(sums)) > 1
    before = executor.forward()[0].tolist()
    executor.backward(is_train=False)
    assert executor.forward()[0].tolist() == before
    assert len(net.get_internals().list_outputs()) == 3 + len(net)


def test_outside_of_training_what_draws_nothing_keeps_nothing() -> None:
    executor = mx.Dropout(mx.Variable("x"), p=0.5).simple_bind(x=(64,))
    executor.arg_dict["x"][:] = 3
    assert executor.forward()[0].tolist() == [3] * 64
    executor.backward(weft.ones(64, dtype="float32"), is_train=False)
    assert executor.grad_dict["x"].tolist() == [1] * 64


@pytest.mark.parametrize("name", ["depth_to_space", "space_to_depth"])
@pytest.mark.parametrize(
    ("shape", "block"), [((1, 4, 4, 4), 0), ((1, 4, 4, 4), -2), ((1, 0, 4, 4), 2), ((1, 4, 0, 4), 2)]
)
def test_blocks_of_nothing_are_refused(name: str, shape: tuple[int, ...], block: int) -> None:
    with pytest.raises(ValueError, match=r"block_size is 1 or more|none of them empty"):
        getattr(nd, name)(weft.zeros(shape), block)


@pytest.mark.parametrize("made", [mx.zeros, mx.ones], ids=["zeros", "ones"])
@pytest.mark.parametrize("unknown", [0, -1])
def test_a_state_at_the_beginning_has_the_batch_of_the_data(made: object, unknown: int) -> None:
    first = made((unknown, 4))
    net = mx.Group([mx.elemwise_add(first, mx.Variable("x")), first * 2])
    one = float(made is mx.ones)
    for batch in (3, 2):
        found = net.eval(x=nd.ones((batch, 4)))
        assert [each.tolist() for each in found] == [[[1 + one] * 4] * batch, [[2 * one] * 4] * batch]
        executor = net.simple_bind(x=(batch, 4))
        for is_train in (False, True):
            assert executor.forward(is_train=is_train)[1].shape == (batch, 4)
        executor.backward()
        assert executor.grad_dict["x"].tolist() == [[1] * 4] * batch
    twice = mx.elemwise_add(made((unknown, 4)), mx.Variable("x"))
    net = mx.Group([twice, mx.elemwise_add(made((unknown, 4)), mx.Variable("y"))])
    assert [each.shape for each in net.eval(x=nd.ones((3, 4)), y=nd.ones((5, 4)))] == [(3, 4), (5, 4)]
    assert made((0, 4)).eval()[0].shape == (0, 4)


@pytest.mark.parametrize("module", [nd, mx], ids=["ndarray", "symbol"])
def test_a_function_is_the_same_each_time(module: object) -> None:
    assert module.exp is module.exp
    assert module.contrib.SyncBatchNorm is module.contrib.SyncBatchNorm
    assert module.random.uniform is module.random.uniform
    assert module.contrib is module.contrib


def test_a_symbol_knows_its_names() -> None:
    x = mx.Variable("x", lr_mult=2)
    net = mx.exp(x, name="e", attr={"kind": "a"})
    assert [net.attr(key) for key in ("name", "op_name", "kind", "other")] == ["e", "exp", "a", None]
    assert [x.attr(key) for key in ("name", "op_name", "lr_mult")] == ["x", "null", "2"]
    assert getattr(mx, net.attr("op_name"))(x).infer_shape(x=(2,))[1] == [(2,)]


def test_a_plan_has_room_for_what_backwards_needs() -> None:
    def planned(net: object, **options: object) -> float:
        text = net.simple_bind(x=(1024,), **options).debug_str()
        return float(re.search(r"Total (\S+) MB allocated", text).group(1))

    x = mx.Variable("x")
    net = x
    for _ in range(6):
        net = net * net
    small = planned(net, grad_req="null")
    assert planned(net) > small
    assert planned(mx.BlockGrad(net)) == small


def test_equal_calls_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = mx.Variable("a"), mx.Variable("b")
    d = a + 1
    for net, saved in (
        ((a + 1) + (a + 2), 0),
        ((a * b) + (a * b), 1),
        (((a + b) * d) - ((a + b) * d), 2),
        (mx.Group([a * d, a * d]), 0),
        (mx.Group([a * d + b, a * d + b]), 1),
        (mx.Group([mx.exp(a) + 1, mx.exp(a)]), 0),
        (mx.Dropout(a) + mx.Dropout(a), 0),
    ):
        shapes = dict.fromkeys(net.list_inputs(), (3,))
        monkeypatch.setenv("MXNET_ELIMINATE_COMMON_EXPR", "0")
        plain = net.simple_bind(**shapes)
        monkeypatch.delenv("MXNET_ELIMINATE_COMMON_EXPR")
        once = net.simple_bind(**shapes)
        before, after = plain.get_optimized_symbol(), once.get_optimized_symbol()
        assert len(before.get_internals()) == len(net.get_internals())
        assert len(after.get_internals()) == len(before.get_internals()) - saved
        assert after.list_outputs() == net.list_outputs()
        assert after.list_arguments() == net.list_arguments()
        if any("dropout" in name for name in net.get_internals().list_outputs()):
            continue
        given = {name: np.arange(3.0) + at for at, name in enumerate(shapes)}
        results = []
        for executor in (plain, once):
            found = executor.forward(is_train=True, **given)
            executor.backward([weft.full(3, 2.0, dtype="float32")] * len(found))
            results.append([each.numpy() for each in (*found, *executor.grad_arrays)])
        np.testing.assert_allclose(*results)


def test_outputs_that_are_equal_are_apart() -> None:
    x = mx.Variable("x")
    with mx.AttrScope(ctx_group="first"):
        net = mx.Group([mx.exp(x), mx.exp(x), mx.exp(x) * 2])
    executor = net.bind(weft.cpu(), {"x": weft.zeros(2)})
    one, two, _ = executor.forward()
    one[...] = 5
    assert two.tolist() == [1.0, 1.0]
    assert [each.attr("ctx_group") for each in executor.get_optimized_symbol()] == ["first"] * 3


def test_a_call_without_its_inputs() -> None:
    net = mx.FullyConnected(mx.Variable("x"), num_hidden=2, name="fc", attr={"ctx_group": "first"})
    half = net.atom()(*(each.astype("float16") for each in net.get_children()))
    assert half.list_arguments() == net.list_arguments()
    assert half.infer_type(x="float32")[1] == [np.float16]
    assert (half.name, half.attr("ctx_group"), half.attr("num_hidden")) == ("fc", "first", "2")
    data, weights, state, cell = (mx.Variable(name) for name in "dwsc")
    lstm = mx.RNN(data, weights, state, cell, state_size=4, num_layers=1, mode="lstm", state_outputs=True)
    assert len(lstm.atom("again")(data, weights, state, cell)) == 3
    for wrong in (mx.Variable("x"), mx.Group([net, half])):
        with pytest.raises(GraphError):
            wrong.atom()


@pytest.mark.parametrize(
    "made",
    [
        mx.batch_take,
        mx.pick,
        mx.take,
        mx.gather_nd,
        lambda a, i: mx.where(i, a, a),
        lambda a, i: mx.SequenceMask(a, i, use_sequence_length=True),
        lambda a, i: mx.SequenceLast(a, i, use_sequence_length=True),
        lambda a, i: mx.SequenceReverse(a, i, use_sequence_length=True),
        mx.contrib.boolean_mask,
        lambda a, i: mx.contrib.index_copy(a, i, a),
        mx.SoftmaxOutput,
        mx.CTCLoss,
        lambda a, i: mx.softmax(a, i, use_length=True),
    ],
)
def test_no_dtype_follows_from_that_of_indices(made: object) -> None:
    net = made(mx.Variable("a"), mx.Variable("i"))
    known = dict(zip(net.list_arguments(), net.infer_type(i="int32")[0], strict=True))
    assert known == {"a": np.dtype("float32"), "i": np.dtype("int32")}
    assert net.infer_type(i="int32")[1][0] == np.float32
    assert dict(zip(net.list_arguments(), net.infer_type_partial(i="int32")[0], strict=True))["a"] is None
    assert dict(zip(net.list_arguments(), net.infer_type(a="float16", i="int32")[0], strict=True))["a"] == np.float16


def test_a_batch_of_places_has_a_gradient() -> None:
    net = mx.batch_take(mx.Variable("a"), mx.Variable("i"))
    executor = net.simple_bind(a=(2, 3), i=(2,), type_dict={"i": "int32"})
    executor.forward(is_train=True, a=np.arange(6.0).reshape(2, 3), i=[2, 0])
    executor.backward()
    assert executor.outputs[0].tolist() == [2.0, 3.0]
    assert executor.grad_dict["a"].tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
