"""Each op goes for many examples as it goes for each: by its rule, where it has one, and else one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft._batch import rules
from weft.errors import ArgumentTypeError, ArgumentValueError, GradientError

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 20261127
SIZE = 3


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(SEED)
    return [rng.standard_normal(shape) for shape in shapes]


def leaves(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple | list) else [found]


def check(fn: Callable[..., Any], operands: list[Any], mapped: tuple[bool, ...]) -> None:
    """Compare with calls for each example, which lie along the first axis of `mapped` operands."""
    axes = tuple(0 if each else None for each in mapped)
    size = next(x.shape[0] for x, each in zip(operands, mapped, strict=True) if each)
    given = [weft.asarray(x) for x in operands]
    found = leaves(weft.vmap(fn, in_axes=axes)(*given))
    each = [
        leaves(fn(*(x[at] if is_mapped else x for x, is_mapped in zip(given, mapped, strict=True))))
        for at in range(size)
    ]
    for one, several in zip(found, zip(*each, strict=True), strict=True):
        wanted = np.stack([np.asarray(weft.asarray(x).numpy()) for x in several])
        assert one.shape == wanted.shape
        assert one.dtype == wanted.dtype
        np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-12, atol=1e-12)


UNARY: list[Callable[[Any], Any]] = [
    weft.exp,
    lambda x: -abs(x) + x**2 / 3,
    lambda x: x > 0,
    lambda x: weft.where(x > 0, x, 0.5),
    lambda x: weft.clip(x, -0.5, 0.5),
    lambda x: weft.clip(x, x.min(), 0.5),
    lambda x: weft.round(x, 1),
    lambda x: weft.nan_to_num(x),
    lambda x: weft.isclose(x, 0.1),
    lambda x: x.astype("float32"),
    lambda x: weft.real(x + 1j),
    lambda x: weft.imag(x * 1j),
    lambda x: weft.angle(x + 1j),
    weft.sum,
    lambda x: x.sum(axis=0),
    lambda x: x.sum(axis=-1, keepdims=True),
    lambda x: x.sum(axis=(0, 1)),
    lambda x: weft.sum(x, axis=0, where=x > 0),
    lambda x: weft.prod(x),
    lambda x: x.max(axis=1),
    lambda x: x.min(),
    lambda x: weft.all(x > -9),
    lambda x: weft.any(x > 0, axis=0),
    lambda x: x.mean(axis=0),
    lambda x: x.var(axis=1, correction=1),
    lambda x: x.std(),
    lambda x: weft.ptp(x, axis=1),
    lambda x: weft.count_nonzero(x > 0, axis=1),
    lambda x: weft.nanmean(x, axis=0),
    lambda x: weft.median(x, axis=0),
    lambda x: x.argmax(),
    lambda x: weft.argmax(x, keepdims=True),
    lambda x: x.argmin(axis=1),
    lambda x: x.argmin(axis=-2),
    lambda x: weft.cumulative_sum(x, axis=0),
    lambda x: x.cumsum(axis=1),
    lambda x: weft.cumsum(x),
    lambda x: weft.cumprod(x, axis=-1),
    lambda x: weft.diff(x, axis=0),
    lambda x: weft.sort(x, axis=0),
    lambda x: weft.sort(x, axis=-1, descending=True),
    lambda x: weft.argsort(x, axis=1),
    lambda x: weft.partition(x, 1, axis=0),
    lambda x: x.reshape(-1),
    lambda x: x.reshape(2, -1, 2),
    lambda x: weft.ravel(x),
    lambda x: x.T,
    lambda x: x.mT,
    lambda x: weft.permute_dims(x, (1, 0)),
    lambda x: weft.moveaxis(x, 0, -1),
    lambda x: weft.swapaxes(x, 0, 1),
    lambda x: weft.expand_dims(x, 0),
    lambda x: weft.expand_dims(x, -1),
    lambda x: weft.squeeze(weft.expand_dims(x, 1), 1),
    lambda x: weft.squeeze(x[:1]),
    lambda x: weft.flip(x),
    lambda x: weft.flip(x, axis=1),
    lambda x: weft.roll(x, 1, axis=0),
    lambda x: weft.rot90(x),
    lambda x: weft.broadcast_to(x, (2, *x.shape)),
    lambda x: weft.atleast_3d(x),
    lambda x: weft.concat([x, x * 2], axis=0),
    lambda x: weft.concat([x, weft.ones((4, 1))], axis=1),
    lambda x: weft.stack([x, x + 1], axis=-1),
    lambda x: weft.stack([weft.ones((4, 4)), x], axis=1),
    lambda x: weft.hstack([x, x]),
    lambda x: weft.vstack([x, x]),
    lambda x: weft.split(x, 2, axis=1)[1],
    lambda x: weft.repeat(x, 2, axis=0),
    lambda x: weft.pad(x, ((1, 0), (0, 2))),
    lambda x: x[0],
    lambda x: x[-1, 2],
    lambda x: x[..., None, 1:3],
    lambda x: x[::-1, ::2],
    lambda x: x[[0, 2]],
    lambda x: x[:, [0, 2, 1]],
    lambda x: x[[0, 2], [1, 1]],
    lambda x: x.reshape(2, 2, 4)[None, [0, 1], :, [1, 3]],
    lambda x: weft.take(x, weft.asarray([2, 0]), axis=1),
    lambda x: weft.take(x, [2, 0], axis=0),
    lambda x: x[x.argmax(axis=1)],
    lambda x: x[0, x.argmax(axis=1)],
    lambda x: x[:, x[0].argmax()],
    lambda x: x[:, None, x.argmax(axis=1)],
    lambda x: x[x.argmax(axis=1), :, None],
    lambda x: weft.take(x, x.argmax(axis=1), axis=1),
    lambda x: weft.take_along_axis(x, x.argsort(axis=1), axis=1),
    lambda x: weft.tril(x),
    lambda x: weft.triu(x, k=1),
    lambda x: weft.diagonal(x),
    lambda x: weft.linalg.trace(x),
    lambda x: x.trace(),
    lambda x: weft.linalg.inv(x),
    lambda x: weft.linalg.det(x),
    lambda x: weft.linalg.slogdet(x)[1],
    lambda x: weft.linalg.cholesky(x @ x.mT + 4 * weft.eye(4)),
    lambda x: weft.linalg.eigvalsh(x + x.mT),
    lambda x: weft.linalg.svdvals(x),
    lambda x: weft.linalg.matrix_norm(x),
    lambda x: weft.linalg.vector_norm(x, axis=0),
    lambda x: weft.linalg.matrix_power(x, 3),
    lambda x: weft.linalg.pinv(x),
    lambda x: weft.linalg.qr(x)[1],
    lambda x: weft.fft.fft(x, axis=0),
    lambda x: weft.fft.rfft2(x),
    weft.nn.relu,
    weft.nn.gelu,
    weft.nn.sigmoid,
    lambda x: weft.nn.softmax(x, axis=0),
    lambda x: weft.nn.softmax(x),
    lambda x: weft.nn.log_softmax(x, axis=-1),
    lambda x: weft.einsum("ij->ji", x),
    lambda x: weft.einsum("ii", x),
    lambda x: weft.autograd.stop_gradient(x) * x,
    lambda x: weft.zeros_like(x),
    lambda x: sum(row.sum() for row in x),
    lambda x: len(x) * x,
    lambda x: weft.divmod(x, 0.5),
]


@pytest.mark.parametrize("fn", UNARY, ids=range(len(UNARY)))
def test_one_operand(fn: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_one_by_one", refused)
    check(fn, arrays((SIZE, 4, 4)), (True,))


def refused(op: Any, *_: object) -> Any:
    pytest.fail(f"{op.name} went one by one")


BINARY: list[tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = [
    (lambda x, y: x + y, (4,), (4,)),
    (lambda x, y: x * y, (4,), (2, 4)),
    (lambda x, y: x - y, (2, 1, 4), (5, 1)),
    (lambda x, y: x / y, (), (5, 1)),
    (lambda x, y: weft.hypot(x, y), (2, 3), ()),
    (lambda x, y: weft.where(x > y, x, y), (2, 3), (3,)),
    (lambda x, y: weft.maximum(x, y), (3,), (2, 3)),
    (lambda x, y: weft.clip(x, None, y), (2, 3), (3,)),
    (lambda x, y: x @ y, (2, 3), (3, 4)),
    (lambda x, y: x @ y, (3,), (3, 4)),
    (lambda x, y: x @ y, (2, 3), (3,)),
    (lambda x, y: x @ y, (3,), (3,)),
    (lambda x, y: x @ y, (5, 2, 3), (3, 4)),
    (lambda x, y: x @ y, (2, 3), (5, 3, 4)),
    (lambda x, y: x @ y, (3,), (5, 3, 4)),
    (lambda x, y: weft.dot(x, y), (3,), (3,)),
    (lambda x, y: weft.vdot(x, y), (2, 3), (2, 3)),
    (lambda x, y: weft.vecdot(x, y), (2, 3), (3,)),
    (lambda x, y: weft.vecdot(x, y, axis=0), (3, 2), (3, 2)),
    (lambda x, y: weft.inner(x, y), (2, 3), (4, 3)),
    (lambda x, y: weft.outer(x, y), (3,), (4,)),
    (lambda x, y: weft.tensordot(x, y, axes=1), (2, 3), (3, 4, 2)),
    (lambda x, y: weft.tensordot(x, y, axes=((0, 2), (1, 0))), (2, 5, 3), (3, 2)),
    (lambda x, y: weft.kron(x, y), (2,), (3,)),
    (lambda x, y: weft.einsum("ij,jk->ik", x, y), (2, 3), (3, 4)),
    (lambda x, y: weft.einsum("ij,jk", x, y), (2, 3), (3, 4)),
    (lambda x, y: weft.einsum("...j,jk->...k", x, y), (5, 2, 3), (3, 4)),
    (lambda x, y: weft.linalg.solve(x + 9 * weft.eye(3), y), (3, 3), (3, 2)),
    (lambda x, y: weft.linalg.solve(x + 9 * weft.eye(3), y), (3, 3), (3,)),
    (lambda x, y: weft.concat([x, y]), (2, 3), (1, 3)),
    (lambda x, y: weft.stack([x, y], axis=1), (2, 3), (2, 3)),
    (lambda x, y: weft.nn.dense(x, y), (3,), (4, 3)),
    (lambda x, y: weft.nn.dense(x, y), (5, 3), (4, 3)),
    (lambda x, y: weft.nn.dense(x, y, flatten=True), (5, 2, 3), (4, 6)),
]


@pytest.mark.parametrize("mapped", [(True, True), (True, False), (False, True)], ids=["both", "left", "right"])
@pytest.mark.parametrize("case", BINARY, ids=range(len(BINARY)))
def test_two_operands(case: Any, mapped: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_one_by_one", refused)
    fn, *shapes = case
    check(fn, arrays(*((SIZE, *s) if each else s for s, each in zip(shapes, mapped, strict=True))), mapped)


def test_indices_that_differ_and_a_table_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_one_by_one", refused)
    (table,) = arrays((6, 4))
    indices = np.arange(SIZE * 2).reshape(SIZE, 2) % 4
    check(lambda table, i: table[i], [table, indices], (False, True))
    check(lambda table, i: weft.take(table, i, axis=1), [table, indices], (False, True))
    check(lambda table, i: weft.nn.embedding(i, table), [table, indices], (False, True))
    check(lambda table, i: weft.nn.cross_entropy(table[:2], i), [table, indices], (False, True))
    with pytest.raises(IndexError):
        weft.vmap(lambda x, i: x[i])(weft.ones((SIZE, 2)), weft.asarray([0, 1, 2])).wait_to_read()


def test_layers_take_examples_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_one_by_one", refused)
    x, weight = arrays((SIZE, 2, 3, 8, 8), (4, 3, 3, 3))
    check(lambda x, w: weft.nn.conv(x, w), [x, weight], (True, False))
    check(lambda x: weft.nn.max_pool(x, (2, 2)), [x], (True,))
    check(lambda x: weft.nn.avg_pool(x, (2, 2)), [x], (True,))
    check(lambda x: weft.nn.layer_norm(x, weft.ones(8), weft.zeros(8)), [x], (True,))


def test_without_a_rule_examples_go_one_by_one() -> None:
    x, weight = arrays((SIZE, 2, 3, 8, 8), (SIZE, 4, 3, 3, 3))
    check(lambda x, w: weft.nn.conv(x, w), [x, weight], (True, True))
    check(lambda x: weft.quantile(x, 0.3, axis=0), [x], (True,))
    check(lambda x: weft.tile(x, (2, 1)), [x], (True,))
    check(lambda x: weft.roll(x, 3), [x], (True,))
    check(lambda x: weft.interp(x.ravel(), [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]), [x], (True,))


@weft.register_op("test_batch_halve", infer=lambda x: weft.Aval(x.shape, x.dtype))
def _halve(out: np.ndarray, x: np.ndarray) -> None:
    np.divide(x, 2, out=out)


def test_an_op_of_ones_own_goes_one_by_one_until_it_says_more(monkeypatch: pytest.MonkeyPatch) -> None:
    (x,) = arrays((SIZE, 4))
    check(_halve, [x], (True,))
    _halve.set_attribute("batch", "broadcast")
    monkeypatch.setattr(rules, "_one_by_one", refused)
    check(_halve, [x], (True,))


def test_results_of_other_shapes_are_refused_by_the_name_of_the_op() -> None:
    with pytest.raises(ArgumentTypeError, match=r"nonzero\(\) looks at values, which under weft.vmap differ"):
        weft.vmap(weft.nonzero)(weft.asarray([[0, 1], [1, 1]]))


def test_no_examples() -> None:
    assert weft.vmap(lambda x: x.sum() + 1)(weft.ones((0, 3))).shape == (0,)
    with pytest.raises(ArgumentValueError, match="no example to call the op 'quantile'"):
        weft.vmap(lambda x: weft.quantile(x, 0.5))(weft.ones((0, 3)))


def total(fn: Callable[[Any], Any], x: Any) -> Any:
    """A real scalar of all that a function returns of floating-point numbers, or None."""
    squares = [weft.sum(weft.real(y) ** 2) for y in leaves(fn(x)) if weft.real(y).dtype.kind == "f"]
    return sum(squares[1:], start=squares[0]) if squares else None


@pytest.mark.parametrize("fn", UNARY, ids=range(len(UNARY)))
def test_nested_and_differentiated(fn: Callable[[Any], Any]) -> None:
    (given,) = arrays((2, SIZE, 4, 4))
    x = weft.asarray(given)
    each = [leaves(fn(x[i, j])) for i in range(2) for j in range(SIZE)]
    for one, several in zip(leaves(weft.vmap(weft.vmap(fn))(x)), zip(*each, strict=True), strict=True):
        wanted = np.stack([np.asarray(weft.asarray(y).numpy()) for y in several])
        np.testing.assert_allclose(one.numpy(), wanted.reshape(one.shape), rtol=1e-10, atol=1e-10)
    if total(fn, x[0, 0]) is None:
        return
    try:
        gradients = [weft.grad(lambda x: total(fn, x))(x[0, j]) for j in range(SIZE)]
    except GradientError:
        return  # the op has none
    wanted = np.stack([each.numpy() for each in gradients])
    inside = weft.vmap(weft.grad(lambda x: total(fn, x)))
    around = weft.grad(lambda x: weft.vmap(lambda x: total(fn, x))(x).sum())
    for found in (inside(x[0]), around(x[0]), weft.program(inside)(x[0])):
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-8, atol=1e-8)
