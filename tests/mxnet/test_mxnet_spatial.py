"""Grids, samples between elements, pictures compared, regions with channels of their own or turned, proposals."""

import itertools
from typing import Any

import numpy as np
import pytest
from composed import draw, follows_differences, gradients, numbers, run

import weft
import weft.mxnet.ndarray as nd
import weft.mxnet.symbol as mx
from weft.errors import GraphError, ShapeError

IDENTITY = np.array([[1, 0, 0, 0, 1, 0]], "f")


def test_grids() -> None:
    (plain,) = run("GridGenerator", IDENTITY, transform_type="affine", target_shape=(3, 4))
    np.testing.assert_allclose(plain[0, 0], np.broadcast_to(np.linspace(-1, 1, 4), (3, 4)), atol=1e-6)
    np.testing.assert_allclose(plain[0, 1], np.broadcast_to(np.linspace(-1, 1, 3)[:, None], (3, 4)), atol=1e-6)
    moved = run("GridGenerator", np.ones((1, 2, 3, 5), "f"), transform_type="warp")[0]
    np.testing.assert_allclose(moved[0, 0, 0], (np.arange(5) + 1) / 2 - 1, atol=1e-6)
    np.testing.assert_allclose(moved[0, 1, :, 0], np.arange(3) + 1 - 1, atol=1e-6)
    follows_differences("GridGenerator", numbers(2, 6), transform_type="affine", target_shape=(3, 4))
    follows_differences("GridGenerator", numbers(2, 2, 3, 4), transform_type="warp")
    with pytest.raises(ShapeError, match="target_shape"):
        mx.GridGenerator(mx.Variable("x"), transform_type="affine").infer_shape(x=(1, 6))


def sampled(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    height, width = x.shape[2:]
    found = np.zeros((x.shape[0], x.shape[1], *grid.shape[2:]))
    for n, i, j in itertools.product(range(x.shape[0]), *map(range, grid.shape[2:])):
        column, row = (grid[n, 0, i, j] + 1) * (width - 1) / 2, (grid[n, 1, i, j] + 1) * (height - 1) / 2
        left, top = int(np.floor(column)), int(np.floor(row))
        for y, by in ((top, top + 1 - row), (top + 1, row - top)):
            for z, weight in ((left, left + 1 - column), (left + 1, column - left)):
                if 0 <= y < height and 0 <= z < width:
                    found[n, :, i, j] += x[n, :, y, z] * by * weight
    return found


def test_samples_between_elements() -> None:
    x, grid = numbers(2, 3, 5, 4), draw.uniform(-1.3, 1.3, (2, 2, 3, 6)).astype("f")
    np.testing.assert_allclose(run("BilinearSampler", x, grid)[0], sampled(x, grid), rtol=1e-4, atol=1e-5)
    follows_differences("BilinearSampler", x, grid, wrt=(0, 1))
    options: dict[str, Any] = {"target_shape": (5, 4), "transform_type": "affine", "sampler_type": "bilinear"}
    same = run("SpatialTransformer", x, np.repeat(IDENTITY, 2, 0), **options)[0]
    np.testing.assert_allclose(same, x, rtol=1e-4, atol=1e-5)
    follows_differences("SpatialTransformer", x, IDENTITY + 0.1 * numbers(2, 6), wrt=(0, 1), **options)


@pytest.mark.parametrize("multiplies", [True, False])
def test_two_pictures_compared(multiplies: bool) -> None:
    a, b = numbers(2, 3, 8, 9), numbers(2, 3, 8, 9)
    options: dict[str, Any] = {
        "kernel_size": 3, "max_displacement": 2, "stride1": 2, "stride2": 1, "pad_size": 2, "is_multiply": multiplies
    }  # fmt: skip
    (found,) = run("Correlation", a, b, **options)
    padded = [np.pad(each, ((0, 0), (0, 0), (2, 2), (2, 2))) for each in (a, b)]
    assert found.shape == (2, 25, 3, 4)
    for i, j, (down, right) in itertools.product(range(3), range(4), itertools.product(range(-2, 3), repeat=2)):
        y, x = 2 * i + 2, 2 * j + 2
        one = padded[0][:, :, y : y + 3, x : x + 3]
        other = padded[1][:, :, y + down : y + down + 3, x + right : x + right + 3]
        wanted = (one * other if multiplies else abs(one - other)).sum((1, 2, 3)) / 27
        np.testing.assert_allclose(found[:, (down + 2) * 5 + right + 2, i, j], wanted, rtol=1e-4, atol=1e-5)
    follows_differences("Correlation", a, b, wrt=(0, 1), **options)
    with pytest.raises(GraphError, match="odd"):
        mx.Correlation(mx.Variable("a"), mx.Variable("b"), kernel_size=2).infer_shape(a=(1, 1, 8, 8))


def test_of_equal_elements_the_first_grows() -> None:
    same = np.ones((1, 1, 3, 3), "f")
    first, second = gradients("Correlation", same, same, kernel_size=1, max_displacement=0, is_multiply=False)
    assert first.tolist() == same.tolist()
    assert second.tolist() == (-same).tolist()


def test_parts_with_channels_of_their_own() -> None:
    x = numbers(2, 2 * 9, 7, 7)
    rois = np.array([[0, 5, 20, 60, 90], [1, 0, 0, 8, 8]], "f")
    options: dict[str, Any] = {"spatial_scale": 0.0625, "output_dim": 2, "pooled_size": 3}
    (found,) = run("PSROIPooling", x, rois, room="contrib", **options)
    for r, roi in enumerate(rois):
        left, top, right, bottom = roi[1] / 16, roi[2] / 16, (roi[3] + 1) / 16, (roi[4] + 1) / 16
        high, wide = max(bottom - top, 0.1) / 3, max(right - left, 0.1) / 3
        for c, i, j in itertools.product(range(2), range(3), range(3)):
            rows = slice(*np.clip([np.floor(i * high + top), np.ceil((i + 1) * high + top)], 0, 7).astype(int))
            columns = slice(*np.clip([np.floor(j * wide + left), np.ceil((j + 1) * wide + left)], 0, 7).astype(int))
            part = x[int(roi[0]), c * 9 + i * 3 + j, rows, columns]
            assert found[r, c, i, j] == pytest.approx(part.mean() if part.size else 0, rel=1e-4, abs=1e-6)
    follows_differences("PSROIPooling", x, rois, room="contrib", **options)


def test_regions_that_are_turned() -> None:
    x = numbers(1, 2, 9, 9)
    plain = np.array([[0, 4, 4, 4, 4, 0]], "f")
    options: dict[str, Any] = {"pooled_size": (2, 2), "spatial_scale": 1.0, "sampling_ratio": 2}
    (found,) = run("RROIAlign", x, plain, room="contrib", **options)
    at = np.array([2.5, 3.5, 4.5, 5.5])
    low = at.astype(int)
    part = x[0][:, [*low], :] * 0.5 + x[0][:, [*(low + 1)], :] * 0.5
    part = part[:, :, [*low]] * 0.5 + part[:, :, [*(low + 1)]] * 0.5
    np.testing.assert_allclose(found[0], part.reshape((2, 2, 2, 2, 2)).mean((2, 4)), rtol=1e-4, atol=1e-5)
    quarter = run("RROIAlign", x, plain + np.array([0, 0, 0, 0, 0, 90], "f"), room="contrib", **options)[0]
    np.testing.assert_allclose(quarter[0], np.rot90(found[0], -1, axes=(1, 2)), rtol=1e-3, atol=1e-4)
    own = {**options, "sampling_ratio": -1}  # looks as many as a part has elements: as many, here
    np.testing.assert_allclose(run("RROIAlign", x, plain, room="contrib", **own)[0], found, rtol=1e-4, atol=1e-5)
    follows_differences("RROIAlign", x, plain, room="contrib", **options)


def test_proposals() -> None:
    options: dict[str, Any] = {
        "scales": (2.0,), "ratios": (1.0,), "feature_stride": 16, "rpn_min_size": 4, "threshold": 0.5,
        "rpn_post_nms_top_n": 3, "output_score": True,
    }  # fmt: skip
    chances = np.zeros((2, 2, 2, 3), "f")
    chances[:, 1] = np.array([[0.9, 0.2, 0.3], [0.8, 0.4, 0.5]])
    moves, sizes = np.zeros((2, 4, 2, 3), "f"), np.array([[32, 48, 1], [32, 48, 1]], "f")
    boxes, scores = run("MultiProposal", chances, moves, sizes, room="contrib", **options)
    # Anchors are 32 by 32 about (7.5, 7.5) and its neighbours, cut at the border of 48 by 32.
    assert boxes[0].tolist() == [0, 0, 0, 23, 23]
    assert scores[:, 0].tolist() == pytest.approx([0.9, 0.5, 0.8] * 2) or scores[0, 0] == pytest.approx(0.9)
    assert boxes[3:, 0].tolist() == [1, 1, 1]
    assert boxes[3:, 1:].tolist() == boxes[:3, 1:].tolist()
    one = run("Proposal", chances[:1], moves[:1], sizes[:1], room="contrib", **options)
    np.testing.assert_array_equal(one[0], boxes[:3])
    with pytest.raises(GraphError, match="MultiProposal"):
        nd.contrib.Proposal(weft.asarray(chances), weft.asarray(moves), weft.asarray(sizes), **options)
    with pytest.raises(GraphError, match="channels"):
        mx.contrib.Proposal(*map(mx.Variable, "abc"), scales=(2.0, 4.0), ratios=(1.0,)).infer_shape(a=(1, 2, 2, 3))


@pytest.mark.parametrize("is_linear", [False, True])
def test_margins_as_a_loss(is_linear: bool) -> None:
    x, labels = numbers(4, 5), np.array([0, 2, 4, 1], "f")
    options: dict[str, Any] = {"margin": 0.7, "regularization_coefficient": 0.5, "use_linear": is_linear}
    found = gradients("SVMOutput", x, labels, **options)[0]
    sign = np.where(np.arange(5) == labels[:, None], 1, -1)
    lack = np.maximum(0.7 - sign * x, 0)
    wanted = -sign * ((lack > 0) if is_linear else 2 * lack) * 0.5
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    eager = nd.array(x)
    eager.requires_grad = True
    slopes = weft.autograd.gradients(weft.sum(nd.SVMOutput(eager, nd.array(labels), **options) * 3))
    np.testing.assert_allclose(slopes[eager], wanted, rtol=1e-5, atol=1e-6)  # of a loss, whatever comes from behind
    np.testing.assert_array_equal(run("SVMOutput", x, labels, **options)[0], x)


def test_aligned_regions_with_channels_of_their_own() -> None:
    x, rois = numbers(1, 2 * 4, 6, 6), np.array([[0, 0.5, 1, 4.5, 4]], "f")
    options: dict[str, Any] = {"pooled_size": (2, 2), "spatial_scale": 1.0, "sample_ratio": 2}
    every = run("ROIAlign", x, rois, room="contrib", **options)[0]
    (found,) = run("ROIAlign", x, rois, room="contrib", position_sensitive=True, **options)
    for c, i, j in itertools.product(range(2), range(2), range(2)):
        assert found[0, c, i, j] == every[0, c * 4 + i * 2 + j, i, j]
    with pytest.raises(ShapeError, match="divide"):
        nd.contrib.ROIAlign(nd.ones((1, 6, 4, 4)), weft.asarray(rois), position_sensitive=True, **options)
