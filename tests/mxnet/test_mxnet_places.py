"""Special functions, checks of numbers, places of elements, columns of windows, pictures: MXNet's ops against NumPy."""

import math
from typing import Any

import numpy as np
import pytest
from composed import follows_differences, numbers, run

import weft
import weft.mxnet.ndarray as nd
import weft.mxnet.symbol as mx
from weft.errors import ArgumentTypeError, GraphError, ShapeError


def test_special_functions() -> None:
    x = np.array([0.3, 1, 2.5, 7, 30, -0.5, -3.2], "d")
    np.testing.assert_allclose(run("gamma", x)[0], [math.gamma(each) for each in x], rtol=1e-12)
    np.testing.assert_allclose(run("gammaln", x)[0], [math.lgamma(each) for each in x], rtol=1e-12)
    step = 1e-6
    slopes = [(math.lgamma(each + step) - math.lgamma(each - step)) / (2 * step) for each in x]
    np.testing.assert_allclose(run("digamma", x)[0], slopes, rtol=1e-7)
    assert run("digamma", np.array([1.0]))[0][0] == pytest.approx(-0.5772156649015329, rel=1e-13)
    inside = np.array([-0.999999, -0.3, 0, 1e-9, 0.7, 0.9999999999])
    back = run("erfinv", inside)[0]
    np.testing.assert_allclose(np.vectorize(math.erf)(back), inside, rtol=1e-13)
    np.testing.assert_array_equal(run("erfinv", np.array([-1.0, 1.0, 2.0]))[0], [-math.inf, math.inf, math.nan])
    np.testing.assert_array_equal(run("gamma", np.array([0.0, -2.0, 500.0]))[0], [math.inf, math.nan, math.inf])
    assert run("gammaln", np.array([-1.0, 0.0]))[0].tolist() == [math.inf, math.inf]
    for op in ("gamma", "gammaln", "digamma"):
        follows_differences(op, x[x != 30])
    follows_differences("erfinv", inside[1:-1])
    assert nd.gamma(nd.array([4.0])).dtype == np.float32
    with pytest.raises(ArgumentTypeError, match="floating-point"):
        nd.gammaln(weft.asarray([1, 2]))


def test_checks_of_numbers() -> None:
    good, bad = np.ones((2, 3), "f"), np.array([1, math.inf], "f")
    assert run("all_finite", good)[0].tolist() == [1]
    assert run("all_finite", bad)[0].tolist() == [0]
    assert run("multi_all_finite", good, bad, num_arrays=2)[0].tolist() == [0]
    assert nd.multi_all_finite(good, good).tolist() == [1]
    assert run("allclose", good, good + 1e-7, room="contrib", rtol=1e-5)[0].tolist() == [1]
    assert run("allclose", good, good + 1e-3, room="contrib")[0].tolist() == [0]
    found = run("amp_multicast", good.astype("e"), good, num_outputs=2)
    assert [each.dtype for each in found] == [np.float32, np.float32]
    x = numbers(4)
    np.testing.assert_allclose(run("quadratic", x, room="contrib", a=2, b=-1, c=3)[0], 2 * x * x - x + 3, rtol=1e-5)


def test_flat_places() -> None:
    places = np.array([[1, 2, 0], [3, 0, 4]], "f")
    flat = run("ravel_multi_index", places, shape=(3, 5))[0]
    assert flat.tolist() == [8, 10, 4]
    assert run("unravel_index", flat, shape=(-1, 5))[0].tolist() == places.tolist()
    found = run("index_array", np.ones((2, 3), "f"), room="contrib")[0]
    np.testing.assert_array_equal(found, np.stack(np.mgrid[:2, :3], -1))
    assert run("index_array", np.ones((2, 3), "f"), room="contrib", axes=(-1,))[0].shape == (2, 3, 1)


def test_rows_that_are_copied_and_chosen() -> None:
    old, rows, new = np.zeros((5, 3), "f"), np.array([0, 4, 2], "i8"), numbers(3, 3)
    wanted = old.copy()
    wanted[rows] = new
    np.testing.assert_array_equal(run("index_copy", old, rows, new, room="contrib")[0], wanted)
    assert not old.any()
    x, fresh = nd.ones((5, 3)), nd.ones((3, 3))
    x.requires_grad = fresh.requires_grad = True
    slopes = weft.autograd.gradients(weft.sum(nd.contrib.index_copy(x, weft.asarray(rows), fresh)))
    assert slopes[x].numpy()[:, 0].tolist() == [0, 1, 0, 1, 0]
    assert slopes[fresh].numpy().all()
    chosen = nd.contrib.boolean_mask(x, nd.array([0, 1, 0, 1, 1]))
    assert chosen.shape == (3, 3)
    assert weft.autograd.gradients(weft.sum(chosen))[x].numpy()[:, 0].tolist() == [0, 1, 0, 1, 1]
    with pytest.raises(GraphError, match="axis=1"):
        nd.contrib.boolean_mask(x, nd.ones(5), axis=1)


def test_counts() -> None:
    x = numbers(100)
    counts, edges = nd.histogram(nd.array(x), bins=7, range=(-1, 2))
    wanted = np.histogram(x, 7, (-1, 2))
    assert counts.tolist() == wanted[0].tolist()
    np.testing.assert_allclose(edges, wanted[1], rtol=1e-6)
    counts, edges = nd.histogram(nd.array(x), nd.array([-1, 0, 0.5, 3]))
    assert counts.tolist() == np.histogram(x, [-1, 0, 0.5, 3])[0].tolist()
    net = mx.histogram(mx.Variable("a"), bins=7, range=(-1, 2))
    assert net.eval(a=x)[0].tolist() == wanted[0].tolist()
    assert net.infer_shape(a=(100,))[1] == [(7,), (8,)]


def test_columns_of_windows() -> None:
    x, weight = numbers(2, 3, 7, 6), numbers(4, 3, 3, 2)
    options: dict[str, Any] = {"kernel": (3, 2), "stride": (2, 1), "dilate": (1, 2), "pad": (1, 0)}
    (columns,) = run("im2col", x, **options)
    made = (weight.reshape((4, -1)) @ columns).reshape((2, 4, 4, 4))
    wanted = nd.Convolution(nd.array(x), nd.array(weight), num_filter=4, no_bias=True, **options)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)
    back = run("col2im", columns, output_size=(7, 6), **options)[0]
    np.testing.assert_allclose(back, gradients_by(columns, x, options), rtol=1e-5, atol=1e-6)
    follows_differences("im2col", x, **options)
    follows_differences("col2im", columns, output_size=(7, 6), **options)
    with pytest.raises(ShapeError, match="does not fit"):
        mx.im2col(mx.Variable("x"), kernel=(9, 9)).infer_shape(x=(1, 1, 4, 4))


def gradients_by(columns: np.ndarray, x: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    net = mx.im2col(mx.Variable("x"), **options)
    given = {"x": weft.asarray(x)}
    executor = net.bind(args=given, args_grad={"x": weft.zeros_like(given["x"])})
    executor.forward(is_train=True)
    executor.backward(weft.asarray(columns))
    return executor.grad_dict["x"].numpy()


def test_pictures() -> None:
    bytes_ = np.arange(24, dtype="u1").reshape((2, 4, 3))
    (found,) = run("to_tensor", bytes_, room="image")
    np.testing.assert_allclose(found, np.moveaxis(bytes_ / 255, -1, 0), rtol=1e-6)
    scaled = run("normalize", found, room="image", mean=(0, 1, 2), std=(3, 2, 1))[0]
    wanted = (found - np.arange(3).reshape((3, 1, 1))) / np.array([3, 2, 1]).reshape((3, 1, 1))
    np.testing.assert_allclose(scaled, wanted, rtol=1e-5)
    assert run("crop", bytes_, room="image", x=1, y=0, width=2, height=1)[0].tolist() == bytes_[:1, 1:3].tolist()
    assert run("flip_left_right", bytes_, room="image")[0].tolist() == bytes_[:, ::-1].tolist()
    assert run("flip_top_bottom", bytes_, room="image")[0].tolist() == bytes_[::-1].tolist()
    follows_differences("normalize", found, room="image", mean=(0.5,), std=(2.0,))
    with pytest.raises(ShapeError, match="not among"):
        mx.image.crop(mx.Variable("x"), x=3, y=0, width=2, height=1).infer_shape(x=(2, 4, 3))


def test_shapes_are_looked_at_before_arrays_broadcast() -> None:
    with pytest.raises(ShapeError, match="follows from the others"):
        nd.elemwise_add(nd.ones((2, 1)), nd.ones((1, 2)))
    assert nd.elemwise_add(nd.ones((2, 1)), nd.ones((2, 1))).tolist() == [[2], [2]]
    assert nd.broadcast_add(nd.ones((2, 1)), nd.ones((1, 2))).shape == (2, 2)
    with pytest.raises(ShapeError, match="no diagonal 4"):
        nd.diag(nd.ones((2, 3)), k=4)
    assert nd.diag(nd.ones((2, 3)), k=2).tolist() == [1]
    assert nd.slice(nd.ones((4, 4)), begin=[0, 1], end=[2, None]).shape == (2, 3)  # lists are as good as tuples


def test_numbers_in_order_are_computed_in_their_dtype() -> None:
    wanted = np.float32(0.1) + np.arange(1000, dtype="f") * np.float32(0.3)
    np.testing.assert_array_equal(nd.arange(0.1, 300.1, 0.3)[:1000], wanted)
    np.testing.assert_array_equal(mx.arange(0.1, 300.1, 0.3).eval()[0].numpy()[:1000], wanted)
    assert nd.arange(2, 8, 3, repeat=2, dtype="int32").tolist() == [2, 2, 5, 5]
    assert nd.arange(1.3, 5, 1.3, dtype="int32").tolist() == [1, 2, 3]  # start and step are whole first


def test_zeros_as_padding_of_windows_that_have_none() -> None:
    x = numbers(1, 1, 5)
    found = nd.Pooling(nd.array(x), kernel=(2,), stride=(2,), pad=(0, 0, 0), pool_type="max", pooling_convention="same")
    assert found.shape == (1, 1, 3)
    with pytest.raises(ShapeError, match="contradicts"):
        nd.Pooling(nd.array(x), kernel=(2,), pad=(1,), pool_type="max", pooling_convention="same")


def test_statistics_of_one_device() -> None:
    x = [numbers(4, 3, 2), *(numbers(3) for _ in range(2)), np.zeros(3, "f"), np.ones(3, "f")]
    found = run("SyncBatchNorm", *x, room="contrib", ndev=4, key="bn0")[0]
    np.testing.assert_array_equal(found, run("BatchNorm", *x)[0])
    shown = {"output_mean_var": True, "eps": 0.1, "fix_gamma": False}
    variance = np.full(3, 4, "f")
    assert run("BatchNorm", *x[:4], variance, **shown)[2].tolist() == pytest.approx([4.1**-0.5] * 3)
    assert run("SyncBatchNorm", *x[:4], variance, room="contrib", **shown)[2].tolist() == [4] * 3
    net = mx.contrib.SyncBatchNorm(mx.Variable("x"), name="bn", ndev=4, fix_gamma=False)
    executor = net.simple_bind(x=(4, 3, 2))
    with pytest.raises(GraphError, match="ndev=4"):
        executor.forward(is_train=True)


def test_what_lies_behind_the_end_of_a_sequence() -> None:
    data = numbers(5, 1, 4)
    data[3:] = np.nan
    x = nd.array(data)
    x.requires_grad = True
    given = nd.array([[1, 2]]), nd.array([3])
    loss = nd.CTCLoss(x, *given, use_data_lengths=True)
    slopes = weft.autograd.gradients(weft.sum(loss))[x].numpy()
    short = nd.CTCLoss(nd.array(data[:3]), given[0])
    np.testing.assert_allclose(loss, short, rtol=1e-5)
    assert not slopes[3:].any()
    assert np.isfinite(slopes).all()
