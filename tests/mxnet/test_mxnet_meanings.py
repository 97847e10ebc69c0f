"""Meanings of MXNet 1.9.1 that NumPy's are not, and ops that networks of its users have."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from composed import draw, follows_differences, gradients, numbers, run
from mxnet_files import convolved

import weft
import weft.mxnet
import weft.mxnet.ndarray as nd
import weft.mxnet.symbol as mx
from weft.errors import ArgumentIndexError, ArgumentValueError, GraphError, ShapeError


def test_indices_outside() -> None:
    x = np.arange(6, dtype="f").reshape(2, 3)
    assert run("pick", x, np.array([-1, 4], "f"), mode="wrap")[0].tolist() == [2, 4]
    assert run("pick", x, np.array([-1, 4], "f"))[0].tolist() == [0, 5]
    assert run("take", x, np.array([-1, 5], "f"), mode="wrap")[0].tolist() == [x[1].tolist(), x[1].tolist()]
    assert run("take", x, np.array([1], "f"), mode="raise")[0].tolist() == [x[1].tolist()]
    for at in (-1, 2):
        with pytest.raises((ArgumentIndexError, IndexError)):
            mx.take(mx.Variable("x"), mx.Variable("i"), mode="raise").eval(x=x, i=np.array([at]))[0].numpy()


def test_halves_go_down() -> None:
    found = run("rint", np.array([-2.5, -0.5, 0.5, 1.5, 1.6, -1.6], "f"))[0]
    assert found.tolist() == [-3, -1, 0, 1, 2, -2]


def test_no_gradient_goes_to_nan() -> None:
    x = np.array([[1, np.nan], [np.nan, 2]], "f")
    assert gradients("nansum", x)[0].tolist() == [[1, 0], [0, 1]]
    assert weft.autograd.grad(lambda x: weft.nansum(x, axis=0).sum())(weft.asarray(x)).tolist() == [[1, 0], [0, 1]]
    assert weft.nansum(weft.symbol.Variable("x")).gradient("x").eval(x=x)[0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(("source", "target"), list(itertools.product(["int32", "float32", "float16"], repeat=2)))
def test_gradients_go_through_casts_to_integers(source: str, target: str) -> None:
    net = mx.Cast(mx.Variable("x", dtype=source), target)
    executor = net.bind(args={"x": weft.ones(2, dtype=source)}, args_grad={"x": weft.zeros(2, dtype=source)})
    executor.forward(is_train=True)
    executor.backward(weft.asarray([2, 3], dtype=target))
    assert executor.grad_dict["x"].tolist() == [2, 3]


def test_what_follows_from_the_right() -> None:
    net = mx._internal._identity_with_attr_like_rhs(mx.Variable("l"), mx.Variable("r"))
    assert net.infer_shape_partial(r=(3, 4)) == ([(3, 4), (3, 4)], [(3, 4)], [])
    with pytest.raises(ShapeError, match=r"cannot reshape an array of shape \(2, 3, 4\)"):
        weft.reshape(weft.symbol.Variable("x"), (0, -1)).infer_shape(x=(2, 3, 4))


def test_a_slope_for_each_element() -> None:
    x, gamma = -(numbers(3, 4) ** 2), numbers(3, 4)
    np.testing.assert_allclose(run("LeakyReLU", x, gamma, act_type="prelu")[0], x * gamma, rtol=1e-6)
    assert run("LeakyReLU", x, gamma[0], act_type="prelu")[0].tolist() == (x * gamma[0]).tolist()


@pytest.mark.parametrize(
    ("shape", "gamma", "beside"),
    [
        ((3, 4, 2, 5), (3, 4), (3, 4, 1, 1)),
        ((3, 4, 2, 5), (1, 4), (1, 4, 1, 1)),
        ((3, 4, 2, 5), (3, 1), (3, 1, 1, 1)),
        ((3, 4, 2, 5), (4,), (1, 4, 1, 1)),
        ((3, 4, 2, 5), (3,), (3, 1, 1, 1)),
        ((3, 4, 2, 5), (1,), (1, 1, 1, 1)),
        ((4, 4, 4), (4, 4), (4, 4, 1)),
        ((3, 4), (3,), (3, 1)),
        ((4,), (4,), (4,)),
        ((2, 3, 2), (2, 3, 2), (2, 3, 2)),
    ],
)
def test_slopes_of_prelu_are_of_examples_and_channels(
    shape: tuple[int, ...], gamma: tuple[int, ...], beside: tuple[int, ...]
) -> None:
    x, slopes = numbers(*shape), numbers(*gamma)
    np.testing.assert_allclose(
        run("LeakyReLU", x, slopes, act_type="prelu")[0], np.where(x > 0, x, x * slopes.reshape(beside)), rtol=1e-6
    )
    of_x, of_slopes = gradients("LeakyReLU", x, slopes, act_type="prelu")
    np.testing.assert_allclose(of_x, np.where(x > 0, 1, np.broadcast_to(slopes.reshape(beside), shape)), rtol=1e-6)
    axes = tuple(at for at, length in enumerate(beside) if length == 1)
    np.testing.assert_allclose(of_slopes, np.minimum(x, 0).sum(axes).reshape(gamma), rtol=1e-5)


@pytest.mark.parametrize(("shape", "gamma"), [((2, 3, 5), (5,)), ((2, 3, 5), (3, 5)), ((2,), (3,))])
def test_slopes_of_prelu_that_do_not_go_with_the_data(shape: tuple[int, ...], gamma: tuple[int, ...]) -> None:
    with pytest.raises((ShapeError, ArgumentValueError), match=r"LeakyReLU|broadcast"):
        nd.LeakyReLU(nd.zeros(shape), nd.zeros(gamma), act_type="prelu").numpy()


def test_calls_that_are_wrong_are_named() -> None:
    x = mx.Variable("x")
    with pytest.raises(ShapeError, match=r"'bd'.*batches of matrices"):
        mx.batch_dot(x, x, name="bd").infer_shape(x=(2,))
    with pytest.raises(GraphError, match=r"reps=\(-1,\)"):
        mx.tile(x, reps=(-1,)).infer_shape(x=(2,))
    with pytest.raises(GraphError, match=r"pad_width=\(0, -1\)"):
        mx.Pad(x, mode="edge", pad_width=(0, -1)).infer_shape(x=(2,))
    with pytest.raises(ShapeError, match="'same'"):
        mx.Pooling(x, (3, 3), pad=(1, 1), pooling_convention="same").infer_shape(x=(1, 1, 5, 5))
    assert weft.zeros(np.array([2, 3])).shape == (2, 3)


def test_elements_in_order() -> None:
    x = np.array([[3, 1, 3], [2, 5, 4]], "f")
    assert run("sort", x, is_ascend=False)[0].tolist() == [[3, 3, 1], [5, 4, 2]]
    assert run("sort", x, axis=None)[0].tolist() == [1, 2, 3, 3, 4, 5]
    assert run("argsort", x, is_ascend=False)[0].tolist() == [[0, 2, 1], [1, 2, 0]]
    assert run("topk", x, k=2)[0].tolist() == [[0, 2], [1, 2]]
    assert [each.tolist() for each in run("topk", x, k=1, ret_typ="both", is_ascend=True)] == [[[1], [2]], [[1], [0]]]
    assert run("topk", x, k=2, ret_typ="mask")[0].tolist() == [[1, 0, 1], [0, 1, 1]]
    assert run("topk", x, axis=None, ret_typ="value")[0].tolist() == [5]
    assert gradients("topk", x, k=2, ret_typ="value")[0].tolist() == [[1, 0, 1], [0, 1, 1]]
    assert run("shape_array", x)[0].tolist() == [2, 3]
    assert run("size_array", x)[0].tolist() == [6]


def test_elements_by_places() -> None:
    x, at = numbers(2, 3, 4), np.array([[0, 1, 1], [2, 0, 2]], "f")
    rows = at.astype(int)
    assert run("gather_nd", x, at)[0].tolist() == x[rows[0], rows[1]].tolist()
    counted = np.zeros((2, 3, 4), "f")
    np.add.at(counted, (rows[0], rows[1]), 1)
    assert gradients("gather_nd", x, at)[0].tolist() == counted.tolist()
    made = np.zeros((2, 3), "f")
    made[rows[0], rows[1]] = [1, 2, 3]
    assert run("scatter_nd", np.array([1, 2, 3], "f"), at, shape=(2, 3))[0].tolist() == made.tolist()
    assert run("batch_take", x[0], np.array([0, 3, 1], "f"))[0].tolist() == x[0][[0, 1, 2], [0, 3, 1]].tolist()
    assert run("arange_like", x, room="contrib", axis=1, start=2)[0].tolist() == [2, 3, 4]
    assert run("arange_like", x[0, :2], room="contrib", repeat=3)[0].tolist() == [[0, 0, 0, 1], [1, 1, 2, 2]]
    blocks = np.arange(8, dtype="f").reshape(1, 8, 1, 1)
    wide = run("depth_to_space", blocks, block_size=2)[0]
    assert wide.tolist() == [[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]
    assert run("space_to_depth", wide, block_size=2)[0].tolist() == blocks.tolist()
    assert run("diag", x[0], k=1)[0].tolist() == np.diagonal(x[0], 1).tolist()
    assert run("diag", x[0, 0], k=-1)[0].tolist() == np.diag(x[0, 0], -1).tolist()
    parts = run("_split_v2", x, indices=(0, 1), axis=1)
    assert [each.shape for each in parts] == [(2, 1, 4), (2, 2, 4)]
    assert run("reshape_like", x, numbers(6, 4), lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=1)[0].shape == (6, 4)


def test_pictures_in_other_sizes() -> None:
    x = np.array([[[[0, 1], [2, 3]]]], "f")
    assert run("BilinearResize2D", x, room="contrib", height=3, width=3)[0][0, 0].tolist() == [
        [0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3],
    ]  # fmt: skip
    halves = run("BilinearResize2D", x, room="contrib", scale_height=1, scale_width=2, align_corners=False)[0]
    assert halves[0, 0].tolist() == [[0, 0.25, 0.75, 1], [2, 2.25, 2.75, 3]]
    big = numbers(1, 2, 5, 7)
    assert run("BilinearResize2D", big, big[:, :, :2, :3].copy(), room="contrib", mode="like")[0].shape == (1, 2, 2, 3)
    assert run("BilinearResize2D", big, room="contrib", mode="to_even_up")[0].shape == (1, 2, 6, 8)
    found = run("AdaptiveAvgPooling2D", big, room="contrib", output_size=(2, 3))[0]
    assert found[0, 1, 1, 2] == pytest.approx(big[0, 1, 2:5, 4:7].mean(), rel=1e-5)
    follows_differences("AdaptiveAvgPooling2D", big, room="contrib", output_size=2)


def test_regions() -> None:
    x = np.arange(36, dtype="f").reshape(1, 1, 6, 6)
    rois = np.array([[0, 0, 0, 3, 3], [0, 2, 2, 5, 4], [-1, 0, 0, 1, 1]], "f")
    found = run("ROIPooling", x, rois, pooled_size=(2, 2), spatial_scale=1)[0]
    # Rows 2 to 4 in two parts that share the third: floors and ceilings of halves.
    assert found[:, 0].tolist() == [[[7, 9], [19, 21]], [[21, 23], [27, 29]], [[0, 0], [0, 0]]]
    follows_differences("ROIPooling", numbers(1, 2, 6, 6), rois[:2], pooled_size=(2, 2), spatial_scale=1.0)
    for ratio in (2, -1):
        options = {"pooled_size": (2, 2), "spatial_scale": 0.5, "sample_ratio": ratio, "room": "contrib"}
        one = run("ROIAlign", x, np.array([[0, 2, 2, 10, 10]], "f"), **options)[0]
        assert one[0, 0].tolist() == [[14, 16], [26, 28]]  # linear data: the value in the middle of each part
        follows_differences("ROIAlign", numbers(1, 2, 6, 6), rois[:2], **options)
    assert not run("ROIAlign", x, rois, **options)[0][2].any()
    aligned = run(
        "ROIAlign", x, np.array([[0, 1, 1, 3, 3]], "f"), **(options | {"aligned": True, "spatial_scale": 1.0})
    )[0]
    assert aligned[0, 0].tolist() == [[7, 8], [13, 14]]


def test_boxes() -> None:
    anchors = np.array([[[0, 0, 2, 2], [1, 1, 4, 3]]], "f")
    truth = np.array([[[0, 0, 2, 4], [1, 1, 3, 3]]], "f")
    samples, matches = np.array([[1, -1]], "f"), np.array([[0, 1]], "f")
    means, stds = np.zeros(4, "f"), np.full(4, 0.5, "f")
    targets, counts = run("box_encode", samples, matches, anchors, truth, means, stds, room="contrib")
    np.testing.assert_allclose(targets[0, 0], [0, 1, 0, 2 * math.log(2)], rtol=1e-5)
    assert counts.tolist() == [[[1] * 4, [0] * 4]]
    again = run(
        "box_decode",
        targets[:, :1],
        anchors[:, :1],
        room="contrib",
        format="corner",
        std0=0.5,
        std1=0.5,
        std2=0.5,
        std3=0.5,
    )
    np.testing.assert_allclose(again[0], truth[:, :1], rtol=1e-5, atol=1e-6)
    overlap = run("box_iou", anchors[0], truth[0], room="contrib")[0]
    np.testing.assert_allclose(overlap, [[0.5, 1 / 7], [1 / 6, 4 / 6]], rtol=1e-5)


def test_rows_and_columns_that_belong_together() -> None:
    scores = np.array([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]], "f")
    rows, columns = run("bipartite_matching", scores, room="contrib", threshold=1e-12)
    assert rows.tolist() == [1, -1, 0]
    assert columns.tolist() == [2, 0]
    stacked = run("bipartite_matching", np.stack([scores, -scores]), room="contrib", threshold=0.25, is_ascend=True)
    assert stacked[0].tolist() == [[-1, 0, -1], [1, -1, 0]]
    assert stacked[1].tolist() == [[1, -1], [2, 0]]
    few = run("bipartite_matching", np.eye(4, dtype="f"), room="contrib", threshold=0.5, topk=1)
    assert few[0].tolist() == [0, 1, -1, -1]  # MXNet makes one more pair than topk
    with pytest.raises(ShapeError, match="rows, columns"):
        run("bipartite_matching", scores[0], room="contrib", threshold=0.0)


def test_products_of_columns() -> None:
    matrices = numbers(2, 3), numbers(4, 3), numbers(5, 3)
    found = run("khatri_rao", *matrices)[0]
    wanted = np.einsum("ac,bc,dc->abdc", *matrices).reshape(-1, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert np.array_equal(run("khatri_rao", matrices[0])[0], matrices[0])
    follows_differences("khatri_rao", *matrices, wrt=(0, 1, 2))
    a, b = mx.Variable("a"), mx.Variable("b")
    assert mx.khatri_rao(a, b).infer_shape_partial(a=(2, 3), b=(4, 0))[0] == [(2, 3), (4, 3)]
    with pytest.raises(ShapeError):
        mx.khatri_rao(a, b).infer_shape(a=(2, 3), b=(4, 5))


def test_attention_of_interleaved_heads() -> None:
    heads, width, length, batch = 2, 3, 4, 2
    x = numbers(length, batch, heads * 3 * width)
    parts = x.reshape(length, batch, heads, 3, width)
    q, k, v = (parts[:, :, :, at] for at in range(3))
    scores = np.einsum("ibhd,jbhd->bhij", q, k) / math.sqrt(width)
    found = run("interleaved_matmul_selfatt_qk", x, room="contrib", heads=heads)[0]
    np.testing.assert_allclose(found, scores.reshape(-1, length, length), rtol=1e-4, atol=1e-5)
    values = run("interleaved_matmul_selfatt_valatt", x, found, room="contrib", heads=heads)[0]
    wanted = np.einsum("bhij,jbhd->ibhd", scores, v).reshape(length, batch, -1)
    np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)
    queries = q.reshape(length, batch, -1).copy()
    pairs = parts[:3, :, :, 1:].reshape(3, batch, -1).copy()
    found = run("interleaved_matmul_encdec_qk", queries, pairs, room="contrib", heads=heads)[0]
    np.testing.assert_allclose(found, scores[..., :3].reshape(-1, length, 3), rtol=1e-4, atol=1e-5)
    values = run("interleaved_matmul_encdec_valatt", pairs, found, room="contrib", heads=heads)[0]
    wanted = np.einsum("bhij,jbhd->ibhd", scores[..., :3], v[:3]).reshape(length, batch, -1)
    np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)


def test_groups_of_channels() -> None:
    x, gamma, beta = numbers(2, 4, 3, 2), numbers(2), numbers(2)
    groups = x.reshape(2, 2, -1)
    centred = groups - groups.mean(2, keepdims=True)
    plain = centred / np.sqrt((centred**2).mean(2, keepdims=True) + 1e-5)
    wanted = (plain * gamma[:, None] + beta[:, None]).reshape(x.shape)
    np.testing.assert_allclose(run("GroupNorm", x, gamma, beta, num_groups=2)[0], wanted, rtol=1e-4, atol=1e-5)
    each = numbers(4)
    wanted = plain.reshape(x.shape) * each[:, None, None]
    np.testing.assert_allclose(run("GroupNorm", x, each, 0 * each, num_groups=2)[0], wanted, rtol=1e-4, atol=1e-5)


def sequence_loss(scores: np.ndarray, labels: list[int], blank: int) -> float:
    """Sum the probabilities of all paths that come to these labels."""
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        merged = [at for at, _ in itertools.groupby(path) if at != blank]
        if merged == labels:
            total += math.prod(chances[step, at] for step, at in enumerate(path))
    return -math.log(total)


def test_the_loss_of_sequences_is_that_of_all_paths() -> None:
    x = numbers(4, 3, 3)
    wanted = [sequence_loss(x[:, at], labels, 0) for at, labels in enumerate([[1, 2], [1, 1], []])]
    found = run("CTCLoss", x, np.array([[1, 2], [1, 1], [0, 0]], "f"))[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    last = run("CTCLoss", x, np.array([[0, 1], [1, -1], [0, 0]], "f"), blank_label="last")[0]
    wanted = [sequence_loss(x[:, at], labels, 2) for at, labels in enumerate([[0, 1], [1], [0, 0]])]
    np.testing.assert_allclose(last, wanted, rtol=1e-4)
    lengths = {"use_data_lengths": True, "use_label_lengths": True}
    given = np.array([3, 4, 2], "f"), np.array([1, 2, 1], "f")
    found = run("CTCLoss", x, np.array([[1, 2], [1, 2], [2, 0]], "f"), *given, **lengths)[0]
    wanted = [sequence_loss(x[:3, 0], [1], 0), sequence_loss(x[:, 1], [1, 2], 0), sequence_loss(x[:2, 2], [2], 0)]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    follows_differences("CTCLoss", x, np.array([[1, 2], [1, 1], [0, 0]], "f"))


def test_windows_that_look_where_offsets_say() -> None:
    x, weight = numbers(1, 4, 5, 5), numbers(2, 2, 3, 3)
    options = {"kernel": (3, 3), "pad": (1, 1), "num_filter": 2, "num_group": 2, "no_bias": True}
    still = np.zeros((1, 18, 5, 5), "f")
    wanted = run("Convolution", x, weight, **options)[0]
    np.testing.assert_allclose(
        run("DeformableConvolution", x, still, weight, room="contrib", **options)[0], wanted, rtol=1e-4, atol=1e-5
    )
    right = still.reshape(1, 9, 2, 5, 5).copy()
    right[:, :, 1] = 1  # one element to the right
    moved = np.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))[..., 1:]
    wide = np.pad(moved, ((0, 0), (0, 0), (1, 1), (0, 1)))
    wide = np.concatenate([np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))[..., :1], wide], axis=3)
    parts = [convolved(wide[:, 2 * g : 2 * g + 2], weight[g : g + 1], np.zeros(1, "f"), 0) for g in (0, 1)]
    found = run("DeformableConvolution", x, right.reshape(still.shape), weight, room="contrib", **options)[0]
    np.testing.assert_allclose(found, np.concatenate(parts, 1), rtol=1e-4, atol=1e-5)
    offset = draw.uniform(0.1, 0.4, still.shape).astype("f")
    follows_differences("DeformableConvolution", x, offset, weight, wrt=(0, 1, 2), room="contrib", **options)


def test_random_numbers() -> None:
    weft.mxnet.seed(3)
    first = nd.random.uniform(2, 3, shape=(1000,)).numpy()
    weft.mxnet.seed(3)
    assert nd.random.uniform(2, 3, shape=(1000,)).tolist() == first.tolist()
    assert first.dtype == np.float32
    assert 2 <= first.min() < 2.1
    assert 2.9 < first.max() < 3
    normal = run("normal", room="random", loc=5, scale=2, shape=(4000,))[0]
    assert (normal.mean(), normal.std()) == (pytest.approx(5, abs=0.2), pytest.approx(2, abs=0.2))
    assert run("uniform_like", np.ones((2, 3), "f"), room="random", low=1, high=2)[0].min() >= 1


def test_other_functions() -> None:
    x = numbers(2, 3)
    np.testing.assert_allclose(run("erf", x)[0], np.vectorize(math.erf)(x), rtol=1e-5)
    mean, variance = run("moments", x, axes=(1,))
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-5)
    np.testing.assert_allclose(variance, x.var(1), rtol=1e-4)
    grown = run("UpSampling", numbers(1, 2, 2, 2), numbers(1, 1, 4, 4), scale=2, sample_type="nearest")[0]
    assert grown.shape == (1, 3, 4, 4)


@pytest.mark.parametrize(
    ("shape", "like", "axes", "wanted"),
    [
        ((1, 9), (1, 5), ((0,), (1,)), (5, 9)),
        ((2, 1, 1), (7, 3, 4), ((-1, 1), (0, -2)), (2, 3, 7)),
        ((1, 3), (2, 3), None, (2, 3)),
    ],
)
def test_an_array_is_broadcast_along_the_axes_that_are_named(
    shape: tuple[int, ...], like: tuple[int, ...], axes: Any, wanted: tuple[int, ...]
) -> None:
    options = {} if axes is None else {"lhs_axes": axes[0], "rhs_axes": axes[1]}
    x = numbers(*shape)
    found = run("broadcast_like", x, numbers(*like), **options)[0]
    assert np.array_equal(found, np.broadcast_to(x, wanted))
    assert gradients("broadcast_like", x, numbers(*like), **options)[0].sum() == math.prod(wanted)


@pytest.mark.parametrize(
    ("shape", "like", "axes"),
    [
        ((3,), (2, 3), {}),
        ((2, 9), (1, 5), {"lhs_axes": (0,), "rhs_axes": (1,)}),
        ((1, 9), (1, 5), {"lhs_axes": (0,), "rhs_axes": (0, 1)}),
        ((1, 9), (1, 5), {"lhs_axes": (0,), "rhs_axes": (2,)}),
    ],
)
def test_axes_that_do_not_broadcast_are_refused(shape: tuple[int, ...], like: tuple[int, ...], axes: Any) -> None:
    net = mx.broadcast_like(mx.Variable("x"), mx.Variable("y"), **axes)
    with pytest.raises((ShapeError, IndexError)):
        net.infer_shape(x=shape, y=like)
    with pytest.raises((ShapeError, IndexError)):
        net.eval(x=nd.ones(shape), y=nd.ones(like))


@pytest.mark.parametrize("order", [1, 2])
def test_a_norm_is_of_the_dtype_that_is_asked_for(order: int) -> None:
    x = np.full((4, 3), 200, np.float16)
    found = run("norm", x, ord=order, axis=0, out_dtype="float32")[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.linalg.norm(x.astype("f"), order, axis=0), rtol=1e-6)
    assert run("norm", x, ord=order, axis=0)[0].dtype == np.float16


def test_states_are_not_clipped_without_a_word() -> None:
    net = mx.RNN(
        *map(mx.Variable, ("x", "w", "h", "c")), state_size=2, num_layers=1, mode="lstm", lstm_state_clip_min=-1,
        lstm_state_clip_max=1,
    )  # fmt: skip
    with pytest.raises(GraphError, match="lstm_state_clip_min"):
        net.infer_shape(x=(3, 1, 2))


def test_numbers_in_order_are_as_many_as_their_readers_take() -> None:
    x = mx.Variable("x")
    net = x + mx.arange(2, step=0.1, repeat=2, infer_range=True)
    for count in (1, 2, 6):
        assert net.infer_shape(x=(count,)) == ([(count,)], [(count,)], [])
    found = net.simple_bind(x=(6,)).forward()[0].numpy()
    np.testing.assert_allclose(found, np.repeat([2, 2.1, 2.2], 2), rtol=1e-6)
    assert net.eval(x=nd.ones(2))[0].tolist() == [3, 3]
    with pytest.raises(GraphError, match="give stop="):
        mx.arange(2, infer_range=True).eval()


def test_numbers_in_eight_bits() -> None:
    x = np.array([[0.1392, 0.5928], [-0.6027, 0.8579]], "f")
    ends = np.zeros(1, "f"), np.ones(1, "f")
    found, low, high = run("quantize", x, *ends, room="contrib", out_type="int8")
    assert found.tolist() == [[18, 75], [-77, 109]]
    assert (found.dtype, low.tolist(), high.tolist()) == (np.int8, [-1], [1])
    np.testing.assert_allclose(run("dequantize", found, low, high, room="contrib")[0], found / 127, rtol=1e-6)
    found, low, high = run("quantize", x, *ends, room="contrib")
    assert found.tolist() == [[35, 151], [0, 219]]  # what lies below the range is its end
    assert (found.dtype, low.tolist(), high.tolist()) == (np.uint8, [0], [1])
    np.testing.assert_allclose(run("dequantize", found, low, high, room="contrib")[0], found / 255, rtol=1e-6)
    own = run("quantize_v2", x, room="contrib")
    assert own[0].tolist() == [[21, 88], [-89, 127]]
    assert own[2].tolist() == [x.max()]
    calibrated = {"min_calib_range": 0.5, "max_calib_range": 1.0}
    assert run("quantize_v2", x, room="contrib", out_type="auto", **calibrated)[0].tolist() == [[0, 47], [0, 183]]
    assert run("quantize_v2", x, room="contrib", **calibrated)[0].tolist() == [[18, 75], [-77, 109]]
    with pytest.raises(GraphError, match="min_calib_range"):
        run("quantize_v2", x, room="contrib", out_type="auto")
    with pytest.raises(GraphError, match="int8 and uint8, not int32"):
        run("dequantize", x.astype("i"), *ends, room="contrib")
