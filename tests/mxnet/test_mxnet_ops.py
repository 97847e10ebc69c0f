"""Single ops of MXNet's against their definitions, and their gradients against differences."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mxnet_files import convolved, node_file

import weft
import weft.mxnet
from weft._mxnet.reshaping import reshaped

draw = np.random.default_rng(3)


def numbers(*shape: int) -> np.ndarray:
    return draw.normal(size=shape).astype(np.float32)


def run(op: str, arrays: dict[str, np.ndarray], outputs: int = 1, **attributes: object) -> list[np.ndarray]:
    net = weft.symbol.load_json(node_file(op, list(arrays), attributes, outputs))
    shapes = net.infer_shape_partial(**{name: array.shape for name, array in arrays.items()})[1]
    found = [each.numpy() for each in net.eval(**arrays)]
    assert [each.shape for each in found] == shapes  # what follows is what comes
    return found


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "codes", "reverse", "wanted"),
    [
        ((2, 3, 4), (4, 0, 2), False, (4, 3, 2)),
        ((2, 3, 4), (6, 1, -1), False, (6, 1, 4)),
        ((2, 3, 4), (-2,), False, (2, 3, 4)),
        ((2, 3, 4), (2, -2), False, (2, 3, 4)),
        ((2, 3, 4), (-3, 4), False, (6, 4)),
        ((2, 3, 4, 5), (-3, -3), False, (6, 20)),
        ((2, 3, 4), (-4, 1, 2, -2), False, (1, 2, 3, 4)),
        ((2, 3, 4), (2, -4, -1, 3, -2), False, (2, 1, 3, 4)),
        ((10, 5, 4), (-1, 0), False, (40, 5)),
        ((10, 5, 4), (-1, 0), True, (50, 4)),
        ((8, 3, 4, 2), (0, -3, 0), True, (8, 12, 2)),
    ],
)
def test_codes_of_reshape(
    shape: tuple[int, ...], codes: tuple[int, ...], reverse: bool, wanted: tuple[int, ...]
) -> None:
    assert reshaped(shape, codes, reverse=reverse) == wanted
    x = numbers(*shape)
    (found,) = run("Reshape", {"x": x}, shape=codes, reverse=reverse)
    np.testing.assert_array_equal(found, x.reshape(wanted))


@pytest.mark.parametrize("codes", [(-1, -1), (-4, -1, -1), (-4, 2, 3), (0, 0, 0, 0), (-9,), (5,)])
def test_codes_that_are_wrong(codes: tuple[int, ...]) -> None:
    with pytest.raises(weft.errors.ShapeError):
        reshaped((2, 3, 4), codes)


def test_codes_of_mxnet_2() -> None:
    x = numbers(2, 1, 6, 4)
    assert run("_npx_reshape", {"x": x}, newshape=(-2, -3, -6, 2, -1, -4))[0].shape == (2, 2, 3, 4)
    assert run("_npx_reshape", {"x": x}, newshape=(-5, -1))[0].shape == (2, 24)
    assert run("_np_reshape", {"x": x}, newshape=(4, -1))[0].shape == (4, 12)


def pooled(
    x: np.ndarray, kind: str, kernel: int, stride: int, pad: int, convention: str, *, counted: bool
) -> np.ndarray:
    rounded = math.ceil if convention == "full" else math.floor
    count = rounded((x.shape[2] + 2 * pad - kernel) / stride) + 1
    found = np.zeros((*x.shape[:2], count), x.dtype)
    for at in range(count):
        first = at * stride - pad
        last = min(first + kernel, x.shape[2] + pad)
        part = x[:, :, max(first, 0) : min(last, x.shape[2])]
        size = last - first if counted else part.shape[2]
        found[:, :, at] = part.max(2) if kind == "max" else part.sum(2) / (size if kind == "avg" else 1)
    return found


@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 3, 0), (2, 1, 1), (3, 2, 0)])
def test_both_conventions_of_pooling(convention: str, kernel: int, stride: int, pad: int) -> None:
    x = numbers(2, 3, 8)
    for kind, counted in (("max", True), ("avg", True), ("avg", False), ("sum", True)):
        settings = {"kernel": (kernel,), "stride": (stride,), "pad": (pad,), "pool_type": kind}
        (found,) = run("Pooling", {"x": x}, **settings, pooling_convention=convention, count_include_pad=counted)
        close(found, pooled(x, kind, kernel, stride, pad, convention, counted=counted))


def test_pooling_of_all() -> None:
    x = numbers(2, 3, 4, 5)
    for kind, reduce in (("max", np.max), ("avg", np.mean), ("sum", np.sum)):
        close(run("Pooling", {"x": x}, global_pool=True, pool_type=kind)[0], reduce(x, axis=(2, 3), keepdims=True))


def test_convolution_and_its_opposite() -> None:
    x, weight, bias = numbers(2, 4, 5, 5), numbers(6, 2, 3, 3), numbers(6)
    given = {"x": x, "w": weight, "b": bias}
    (found,) = run("Convolution", given, kernel=(3, 3), num_filter=6, num_group=2, stride=(2, 2), pad=(1, 1))
    parts = [convolved(x[:, 2 * g : 2 * g + 2], weight[3 * g : 3 * g + 3], bias[3 * g : 3 * g + 3], 1) for g in (0, 1)]
    close(found, np.concatenate(parts, 1)[:, :, ::2, ::2])
    weight = numbers(4, 3, 3, 2)
    (found,) = run("Deconvolution", {"x": x, "w": weight}, kernel=(3, 2), num_filter=3, stride=(2, 3), pad=(1, 0))
    wanted = np.zeros((2, 3, 2 * 4 + 3, 3 * 4 + 2), np.float32)
    for top, left in itertools.product(range(5), range(5)):
        part = np.einsum("nc,cokl->nokl", x[:, :, top, left], weight)
        wanted[:, :, 2 * top : 2 * top + 3, 3 * left : 3 * left + 2] += part
    close(found, wanted[:, :, 1:-1])


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("leaky", lambda x: np.where(x > 0, x, 0.3 * x)),
        ("elu", lambda x: np.where(x > 0, x, 0.3 * np.expm1(x))),
        ("selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
        ("gelu", lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
    ],
)
def test_leaky_activations(kind: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    x = numbers(3, 4)
    close(run("LeakyReLU", {"x": x}, act_type=kind, slope=0.3)[0], function(x))


def test_leaky_activations_with_weights_and_draws() -> None:
    x, gamma = numbers(2, 3, 4), numbers(3)
    close(run("LeakyReLU", {"x": x, "g": gamma}, act_type="prelu")[0], np.where(x > 0, x, gamma[:, None] * x))
    close(run("LeakyReLU", {"x": x}, act_type="rrelu")[0], np.where(x > 0, x, (0.125 + 0.334) / 2 * x))


def test_normalisations() -> None:
    x = numbers(2, 5, 3, 4)
    squares = np.pad(x**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    close(run("LRN", {"x": x}, nsize=3, alpha=0.3, beta=0.6, knorm=2)[0], x / (2 + 0.1 * sums) ** 0.6)
    for mode, axes in (("instance", (1, 2, 3)), ("channel", 1), ("spatial", (2, 3))):
        close(run("L2Normalization", {"x": x}, mode=mode)[0], x / np.sqrt((x**2).sum(axes, keepdims=True) + 1e-10))
    gamma, beta = numbers(5), numbers(5)
    mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    wanted = (x - mean) / np.sqrt(variance + 1e-3) * gamma[:, None, None] + beta[:, None, None]
    close(run("InstanceNorm", {"x": x, "g": gamma, "b": beta}, eps=1e-3)[0], wanted)


@pytest.mark.parametrize("settings", [{}, {"use_global_stats": True}, {"fix_gamma": True}, {"axis": 2}])
def test_batch_norm_in_training(settings: dict[str, Any]) -> None:
    axis = settings.get("axis", 1)
    x, rest = numbers(4, 3, 3), [numbers(3) for _ in range(3)] + [np.abs(numbers(3)) + 0.5]
    names = ["x", "gamma", "beta", "mean", "var"]
    attributes = {"fix_gamma": False, "eps": 0.01, "momentum": 0.8} | settings
    net = weft.symbol.load_json(node_file("BatchNorm", names, attributes))
    assert net.list_auxiliary_states() == ["mean", "var"]
    executor = net.bind(
        {name: weft.asarray(array) for name, array in zip(names[:3], [x, *rest[:2]], strict=True)},
        args_grad={name: weft.zeros(3, dtype="float32") for name in ("gamma", "beta")},
        aux_states={name: weft.asarray(array) for name, array in zip(names[3:], rest[2:], strict=True)},
    )
    others = tuple(at for at in range(3) if at != axis)
    spread = tuple(-1 if at == axis else 1 for at in range(3))
    own = not settings.get("use_global_stats", False)
    mean, variance = (x.mean(others), x.var(others)) if own else rest[2:]
    normal = (x - mean.reshape(spread)) / np.sqrt(variance.reshape(spread) + 0.01)
    gamma = np.ones(3, np.float32) if settings.get("fix_gamma") else rest[0]
    (found,) = executor.forward(is_train=True)
    close(found.numpy(), normal * gamma.reshape(spread) + rest[1].reshape(spread))
    executor.backward()
    close(executor.grad_dict["beta"].numpy(), np.full(3, 12))
    close(executor.grad_dict["gamma"].numpy(), np.zeros(3) if settings.get("fix_gamma") else normal.sum(others))
    moved = 0.8 * rest[2] + 0.2 * mean if own else rest[2]
    close(executor.aux_dict["mean"].numpy(), moved)
    (found,) = executor.forward()  # by the states as they are now
    held = executor.aux_dict["mean"].numpy(), executor.aux_dict["var"].numpy()
    normal = (x - held[0].reshape(spread)) / np.sqrt(held[1].reshape(spread) + 0.01)
    close(found.numpy(), normal * gamma.reshape(spread) + rest[1].reshape(spread))


def test_probabilities_have_the_gradient_of_their_loss() -> None:
    x, label = numbers(4, 3), np.array([0, 2, 1, 2], np.float32)
    powers = np.exp(x)
    found = powers / powers.sum(1, keepdims=True)
    hot = np.eye(3)[label.astype(int)]
    for settings, wanted in (
        ({}, found - hot),
        ({"grad_scale": 2, "normalization": "batch"}, (found - hot) / 2),
        ({"use_ignore": True, "ignore_label": 2, "normalization": "valid"}, (found - hot) * (label != 2)[:, None] / 2),
    ):
        net = weft.symbol.load_json(node_file("SoftmaxOutput", ["x", "label"], settings))
        executor = net.bind(
            {"x": weft.asarray(x), "label": weft.asarray(label)}, args_grad={"x": weft.zeros((4, 3), dtype="float32")}
        )
        close(executor.forward(is_train=True)[0].numpy(), found)
        executor.backward(weft.full((4, 3), 7.0, dtype="float32"))  # what comes from behind does not count
        close(executor.grad_dict["x"].numpy(), wanted)
    x, label = numbers(2, 3, 4), np.zeros((2, 4), np.float32)
    assert run("SoftmaxOutput", {"x": x, "label": label}, multi_output=True)[0].sum(1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("op", "slope"),
    [
        ("LinearRegressionOutput", lambda out, label: out - label),
        ("LogisticRegressionOutput", lambda out, label: out - label),
        ("MAERegressionOutput", lambda out, label: np.sign(out - label)),
    ],
)
def test_regressions(op: str, slope: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    x, label = numbers(3, 4), numbers(3, 4)
    net = weft.symbol.load_json(node_file(op, ["x", "label"], {"grad_scale": 2}))
    out = net.eval(x=x, label=label)[0].numpy()
    grads = net.gradient("x").eval(x=x, label=label)[0].numpy()
    close(grads, slope(out, label) * 2 / 4)


def test_ends_stop_or_start_gradients() -> None:
    x = weft.symbol.Variable("x")
    values = numbers(2, 3)
    loss = weft.symbol.MakeLoss(weft.square(x), grad_scale=3)
    close(loss.gradient("x").eval(x=values)[0].numpy(), 6 * values)
    stopped = weft.symbol.BlockGrad(weft.square(x)) * x
    close(stopped.gradient("x").eval(x=values)[0].numpy(), values**2)


def test_recurrent_layers() -> None:
    steps, batch, width, units = 3, 2, 4, 3
    x = numbers(steps, batch, width)

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-value))

    for mode, gates in (("rnn_tanh", 1), ("gru", 3), ("lstm", 4)):
        rows = gates * units
        parts = [numbers(rows, width), numbers(rows, units), numbers(rows), numbers(rows)]
        vector = np.concatenate([part.ravel() for part in parts])
        state = numbers(1, batch, units)
        given = {"x": x, "p": vector, "h": state}
        cell = state[0] * 0
        if mode == "lstm":
            given["c"] = cell[None]
        count = 3 if mode == "lstm" else 2
        found = run("RNN", given, count, state_size=units, num_layers=1, mode=mode, state_outputs=True)
        h, seen = state[0], []
        for row in x:
            a, b = row @ parts[0].T + parts[2], h @ parts[1].T + parts[3]
            if mode == "rnn_tanh":
                h = np.tanh(a + b)
            elif mode == "gru":
                reset, update = (sigmoid(a[:, at : at + units] + b[:, at : at + units]) for at in (0, units))
                new = np.tanh(a[:, 2 * units :] + reset * b[:, 2 * units :])
                h = (1 - update) * new + update * h
            else:
                i, f, g, o = np.split(a + b, 4, axis=1)
                cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(cell)
            seen.append(h)
        close(found[0], np.array(seen))
        close(found[1], h[None])
        if mode == "lstm":
            close(found[2], cell[None])


def test_pieces() -> None:
    x = numbers(4, 6, 2)
    for at, part in enumerate(run("SliceChannel", {"x": x}, 3, num_outputs=3)):
        np.testing.assert_array_equal(part, x[:, 2 * at : 2 * at + 2])
    parts = run("SliceChannel", {"x": x}, 2, num_outputs=2, axis=2, squeeze_axis=True)
    np.testing.assert_array_equal(parts[1], x[..., 1])
    np.testing.assert_array_equal(run("slice_axis", {"x": x}, axis=-2, begin=1, end=-1)[0], x[:, 1:-1])
    found = run("slice", {"x": x}, begin="(None, 4)", end="(None, 0)", step="(2, -2)")[0]
    np.testing.assert_array_equal(found, x[::2, 4:0:-2])
    np.testing.assert_array_equal(run("SwapAxis", {"x": x}, dim1=0, dim2=2)[0], x.swapaxes(0, 2))
    np.testing.assert_array_equal(run("transpose", {"x": x})[0], x.T)
    np.testing.assert_array_equal(run("Concat", {"x": x, "y": x}, num_args=2, dim=-1)[0], np.concatenate([x, x], -1))
    maps = numbers(1, 2, 2, 3)
    found = run("UpSampling", {"x": maps}, scale=2, sample_type="nearest")[0]
    np.testing.assert_array_equal(found, maps.repeat(2, 2).repeat(2, 3))
    table, rows = numbers(5, 3), np.array([[0, 4], [9, 2]], np.float32)
    found = run("Embedding", {"x": rows, "w": table}, input_dim=5, output_dim=3)[0]
    np.testing.assert_array_equal(found, table[[[0, 4], [4, 2]]])


def test_priors() -> None:
    (found,) = run("MultiBoxPrior", {"x": numbers(1, 2, 1, 2)}, sizes="(0.4, 0.2)", ratios="(1, 4)")
    halves = [(0.1, 0.2), (0.05, 0.1), (0.2, 0.1)]  # width by height of the map: a quarter in place of a half
    wanted = [(x - w, 0.5 - h, x + w, 0.5 + h) for x in (0.25, 0.75) for w, h in halves]
    close(found[0], np.array(wanted, np.float32))


def test_targets_of_boxes() -> None:
    anchors = np.array([[[0.1, 0.1, 0.5, 0.5], [0.5, 0.5, 0.9, 0.9], [0.0, 0.0, 0.1, 0.1]]], np.float32)
    labels = np.array([[[1, 0.1, 0.1, 0.5, 0.5], [-1, 0, 0, 0, 0]], [[-1, 0, 0, 0, 0]] * 2], np.float32)
    given = {"anchor": anchors, "label": labels, "scores": numbers(2, 3, 3)}
    offsets, mask, classes = run("MultiBoxTarget", given, 3)
    assert classes.tolist() == [[2, 0, 0], [-1, -1, -1]]
    assert mask[0].tolist() == [1] * 4 + [0] * 8
    assert np.abs(offsets).max() < 1e-6


#: Three boxes, of which the second covers half of the first and the last is apart.
BOXES = np.array([[0.0, 0.0, 0.4, 0.4], [0.0, 0.1, 0.4, 0.5], [0.6, 0.6, 0.9, 0.9]], np.float32)


def test_boxes_that_were_found() -> None:
    chances = np.array([[[0.3, 0.1, 0.9], [0.6, 0.7, 0.05], [0.1, 0.2, 0.05]]], np.float32)
    given = {"chances": chances, "offsets": np.zeros((1, 12), np.float32), "anchors": BOXES[None]}
    (found,) = run("MultiBoxDetection", given, threshold=0.1)
    close(found[0], np.array([[0, 0.7, *BOXES[1]], [-1, 0.6, *BOXES[0]], [-1] * 6], np.float32))
    (found,) = run("_contrib_MultiBoxDetection", given, nms_threshold=0.8)
    close(found[0, :, 0], np.array([0, 0, 0], np.float32))
    (found,) = run("MultiBoxDetection", given, nms_threshold=0.8, nms_topk=1)
    close(found[0, :, :2], np.array([[0, 0.7], [-1, 0.7], [-1, 0.05]], np.float32))
    moved = {**given, "offsets": np.tile(np.array([1, 0, 0, 5 * np.log(2)], np.float32), (1, 3))}
    (found,) = run("MultiBoxDetection", moved, threshold=0.65, clip=False)
    close(found[0, 0], np.array([0, 0.7, 0.04, -0.1, 0.44, 0.7], np.float32))
    (found,) = run("MultiBoxDetection", moved, threshold=0.65)
    close(found[0, 0, 3:4], np.array([0], np.float32))


def test_boxes_that_others_cover_go() -> None:
    kinds, scores = np.array([[0], [1], [0]], np.float32), np.array([[0.6], [0.7], [0.2]], np.float32)
    rows = np.concatenate([kinds, scores, BOXES], axis=1)[None]
    nothing = [-1] * 6
    for settings, kept in (
        ({}, [1, 0, 2]),
        ({"overlap_thresh": 0.7}, [1, 0, 2]),
        ({"force_suppress": True}, [1, 2]),
        ({"id_index": -1}, [1, 2]),
        ({"topk": 1}, [1]),
        ({"valid_thresh": 0.5}, [1, 0]),
        ({"background_id": 0}, [1]),
        ({"topk": 0}, [0, 1, 2]),
    ):
        (found,) = run("_contrib_box_nms", {"rows": rows}, **{"id_index": 0, **settings})
        wanted = [rows[0, at] for at in kept] + [nothing] * (3 - len(kept))
        close(found[0], np.array(wanted, np.float32))
    middles = np.concatenate([kinds, scores, (BOXES[:, :2] + BOXES[:, 2:]) / 2, BOXES[:, 2:] - BOXES[:, :2]], axis=1)
    (found,) = run("_contrib_box_nms", {"rows": rows}, id_index=-1, out_format="center")
    close(found[0], np.array([middles[1], middles[2], nothing], np.float32))
    (found,) = run("_contrib_box_nms", {"rows": middles[None]}, id_index=-1, in_format="center")
    close(found[0], np.array([rows[0, 1], rows[0, 2], nothing], np.float32))
    with pytest.raises(weft.errors.ShapeError, match="rows of 6 numbers have none at 7"):
        run("_contrib_box_nms", {"rows": rows}, coord_start=4)


def test_dropout_draws_anew_and_hands_on_its_mask() -> None:
    net = weft.symbol.load_json(node_file("Dropout", ["x"], {"p": 0.5}))
    x = np.ones((40, 50), np.float32)
    executor = net.bind({"x": weft.asarray(x)}, args_grad={"x": weft.zeros(x.shape, dtype="float32")})
    seen = []
    for _ in range(2):
        found = executor.forward(is_train=True)[0].numpy()
        executor.backward()
        np.testing.assert_array_equal(executor.grad_dict["x"].numpy(), found)
        assert set(np.unique(found)) == {0, 2}
        seen.append(found)
    assert 0.4 < seen[0].mean() / 2 < 0.6
    assert not np.array_equal(*seen)
    np.testing.assert_array_equal(executor.forward()[0].numpy(), x)
    drawn = []
    for _ in range(2):
        weft.mxnet.seed(5)
        drawn.append(executor.forward(is_train=True)[0].numpy())
    np.testing.assert_array_equal(*drawn)


GRADIENTS = [
    ("Deconvolution", {"x": (1, 2, 3, 3), "w": (2, 2, 2, 2)}, {"kernel": (2, 2), "num_filter": 2, "stride": (2, 2)}),
    ("FullyConnected", {"x": (2, 2, 3), "w": (4, 6), "b": (4,)}, {"num_hidden": 4}),
    ("FullyConnected", {"x": (2, 2, 3), "w": (4, 3)}, {"num_hidden": 4, "flatten": False, "no_bias": True}),
    ("Activation", {"x": (2, 3)}, {"act_type": "softsign"}),
    ("LeakyReLU", {"x": (2, 3, 2), "g": (3,)}, {"act_type": "prelu"}),
    ("Pooling", {"x": (1, 2, 7)}, {"kernel": (3,), "stride": (2,), "pool_type": "avg", "pooling_convention": "full"}),
    ("LRN", {"x": (1, 4, 2)}, {"nsize": 3, "alpha": 0.5}),
    ("L2Normalization", {"x": (2, 3, 2)}, {"mode": "channel"}),
    ("Concat", {"x": (2, 3), "y": (2, 1)}, {"num_args": 2}),
    ("SliceChannel", {"x": (2, 4)}, {"num_outputs": 2}),
    ("Reshape", {"x": (2, 6)}, {"shape": (0, 2, 3)}),
    ("mean", {"x": (2, 3)}, {"axis": 1}),
    ("broadcast_mul", {"x": (2, 3), "y": (1, 3)}, {}),
    ("_rdiv_scalar", {"x": (2, 3)}, {"scalar": 2}),
    ("RNN", {"x": (2, 1, 2), "p": (24,), "h": (2, 1, 2)}, {"mode": "rnn_tanh", "state_size": 2, "num_layers": 2}),
]


@pytest.mark.parametrize(("op", "shapes", "attributes"), GRADIENTS)
def test_gradients_are_changes(op: str, shapes: Any, attributes: dict[str, Any]) -> None:
    count = 2 if op == "SliceChannel" else 1
    net = weft.symbol.load_json(node_file(op, list(shapes), attributes, count))
    shapes = dict(zip(net.list_arguments(), net.infer_shape_partial(**shapes)[0], strict=True))
    arrays = {name: draw.normal(size=shape) + 0.1 for name, shape in shapes.items()}
    heads = [weft.asarray(draw.normal(size=shape)) for shape in net.infer_shape(**shapes)[1]]

    def loss(values: dict[str, np.ndarray]) -> float:
        found = net.eval(**values)
        return sum(float((each.numpy() * head.numpy()).sum()) for each, head in zip(found, heads, strict=True))

    executor = net.bind(
        {name: weft.asarray(array) for name, array in arrays.items()},
        args_grad={name: weft.zeros(array.shape) for name, array in arrays.items()},
    )
    executor.forward(is_train=True)
    executor.backward(heads)
    for name, array in arrays.items():
        direction = draw.normal(size=array.shape)
        step = 1e-6
        up, down = (loss(arrays | {name: array + sign * step * direction}) for sign in (1, -1))
        assert (executor.grad_dict[name].numpy() * direction).sum() == pytest.approx((up - down) / (2 * step), rel=1e-4)


def test_gradients_of_gradients_of_ops() -> None:
    x = weft.symbol.Variable("x")
    cube = weft.symbol.elemwise_mul(weft.symbol.elemwise_mul(x, x), x)
    twice = cube.gradient("x").gradient("x")
    close(twice.eval(x=np.array([1.0, 2.0]))[0].numpy(), np.array([6.0, 12.0]))


def test_arrays_are_taken_as_well() -> None:
    op = weft.ops.get_op("Activation")
    assert op(weft.asarray([-1.0, 2.0]), act_type="relu").numpy().tolist() == [0, 2]
    grads = weft.grad(lambda x: weft.sum(op(x, act_type="tanh")))(weft.zeros(2))
    assert grads.numpy().tolist() == [1, 1]
    label = weft.asarray(np.zeros(1))
    end = weft.ops.get_op("SoftmaxOutput")
    found = weft.grad(lambda x: weft.sum(end(x, label)))(weft.asarray(np.zeros((1, 2))))
    assert found.numpy().tolist() == [[-0.5, 0.5]]


def test_products_leave_out_what_is_no_number() -> None:
    x = np.array([[2.0, np.nan, 3.0], [np.nan, 4.0, 5.0]], np.float32)
    close(run("nanprod", {"x": x}, axis=1)[0], np.array([6, 20], np.float32))
    close(run("nanprod", {"x": x})[0], np.array([120], np.float32))
    op = weft.ops.get_op("mxnet.nanprod")
    found = weft.grad(lambda data: weft.sum(op(data, axis=1)))(weft.asarray(x))
    close(found.numpy(), np.array([[3, 0, 2], [0, 5, 4]], np.float32))
