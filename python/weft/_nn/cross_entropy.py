"""The cross entropy of logits with labels, the loss of a network, and the ops of its gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._call.filling import fill
from weft._call.operands import as_array
from weft._call.views import view
from weft._core import Native, NDArray, kernel_cross_entropy
from weft._nn.arguments import chosen, floating, refuse, spoiled
from weft._nn.softmax import log_softmax, log_softmax_of, softmax, total
from weft._ops.unbroadcast import apply, is_known
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._core import Kernel


def _check_labels(op: str, logits: Aval, labels: Aval) -> bool:
    """Return whether labels are classes, not rows of probabilities."""
    if not logits.shape or not logits.shape[-1]:
        raise refuse(op, "logits (..., classes) of at least one class are taken", logits=logits, labels=labels)
    if labels.shape == logits.shape:
        if labels.dtype.kind == "c":
            raise ArgumentTypeError(f"{op}: probabilities are real, and labels have dtype {labels.dtype}")
        return False
    if labels.shape != logits.shape[:-1]:
        why = f"labels are classes of shape {logits.shape[:-1]} or rows of probabilities of shape {logits.shape}"
        raise refuse(op, why, logits=logits, labels=labels)
    if labels.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"{op}: classes are integers, and labels of shape {labels.shape} have dtype {labels.dtype}"
        )
    return True


def _make_cross_entropy(results: tuple[Aval, ...], operands: tuple[Aval, ...]) -> Kernel | None:
    """Return the kernel of the loss of logits and labels, or, with gradients before them, of its gradient."""
    logits, labels = operands[-2:]
    shape, gradient = logits.shape, len(operands) == 3  # gradients, logits, labels
    if 0 in shape:
        return None
    name = "nn.cross_entropy_data" if gradient else "nn.cross_entropy"
    classes = None if len(labels.shape) == len(shape) else labels.dtype
    return kernel_cross_entropy(name, results[0].dtype, [math.prod(shape[:-1]), shape[-1]], gradient, classes)


def _infer_cross_entropy(logits: Aval, labels: Aval) -> Aval:
    _check_labels("nn.cross_entropy", logits, labels)
    return Aval(logits.shape[:-1], floating("nn.cross_entropy", logits=logits))


def _classes(labels: Elements, count: int) -> tuple[Elements, Elements | None]:
    return chosen(
        labels, count, lambda wrong: f"nn.cross_entropy: there is no class {wrong} among {count}: classes count from 0"
    )


@register_op("nn.cross_entropy", infer=_infer_cross_entropy)
def _cross_entropy(out: Elements, logits: Elements, labels: Elements) -> None:
    found = log_softmax_of(logits, -1)
    if labels.ndim == logits.ndim:
        out[...] = -(found * labels.astype(logits.dtype)).sum(axis=-1)
        return
    classes, wrong = _classes(labels, logits.shape[-1])
    out[...] = spoiled(-np.take_along_axis(found, classes[..., None], -1)[..., 0], wrong)


state(_cross_entropy, batch="together")


def _infer_cross_entropy_data(g: Aval, logits: Aval, labels: Aval) -> Aval:
    op = "nn.cross_entropy_data"
    _check_labels(op, logits, labels)
    if g.shape != logits.shape[:-1]:
        raise refuse(op, f"gradients are to have shape {logits.shape[:-1]}", g=g, logits=logits)
    return Aval(logits.shape, floating(op, g=g, logits=logits))


@register_op("nn.cross_entropy_data", infer=_infer_cross_entropy_data, inplace=[(1, 0)])
def _cross_entropy_data(out: Elements, g: Elements, logits: Elements, labels: Elements) -> None:
    chances = np.exp(log_softmax_of(logits, -1))
    if labels.ndim == logits.ndim:
        rows = labels.astype(logits.dtype)
        out[...] = (chances * rows.sum(axis=-1, keepdims=True) - rows) * g[..., None]
        return
    count = logits.shape[-1]
    classes, wrong = _classes(labels, count)
    flat, rows = chances.reshape(-1), classes.reshape(-1)
    flat[np.add.accumulate(np.full_like(rows, count)) - count + rows] -= 1
    out[...] = flat.reshape(chances.shape) * spoiled(g, wrong)[..., None]


for _op in (_cross_entropy, _cross_entropy_data):
    _op._run_by(Native.by(_make_cross_entropy))


@gradient_of("nn.cross_entropy", inputs=[0, 1])
def _cross_entropy_rule(node: Any, grads: Any) -> Any:
    (logits, labels), g = node.inputs, grads[0]
    dx = get_op("nn.cross_entropy_data")(g, logits, labels) if needs(node, 0) else None
    return dx, _label_gradient(node, 1, lambda: get_op("nn.cross_entropy_labels")(g, logits, labels))


def _label_gradient(node: Any, at: int, gradient: Callable[[], Any]) -> Any:
    """Return the gradient of labels, which classes do not have; of a symbol it is not known whether it is of those."""
    labels = node.inputs[at]
    if not needs(node, at) or (is_known(labels) and labels.dtype.kind != "f"):
        return None
    return gradient()


def _infer_labels(g: Aval, logits: Aval, labels: Aval) -> Aval:
    _check_labels("nn.cross_entropy_labels", logits, labels)
    del g
    return labels


@register_op("nn.cross_entropy_labels", infer=_infer_labels)
def _cross_entropy_labels(out: Elements, g: Elements, logits: Elements, labels: Elements) -> None:
    if labels.ndim == logits.ndim:
        np.copyto(out, log_softmax_of(logits, -1) * -g[..., None], casting="unsafe")
    else:
        out.fill(0)


def _push_labels(outputs: tuple[NDArray], operands: tuple[Any, ...]) -> bool:
    """Push the gradient of rows of probabilities: logarithms of the softmax times those of the losses, turned round."""
    (out,), (g, logits, labels) = outputs, operands
    if labels.ndim != logits.ndim:
        fill(out, 0)
        return True
    if any(not isinstance(x, NDArray) or x.dtype != out.dtype for x in operands) or not out.size:
        return False
    get_op("nn.log_softmax")(logits, out=out)
    spread = view(g, (*g.shape, 1), (*g.strides, 0))
    get_op("multiply")(out, spread, out=out)
    get_op("negative")(out, out=out)
    return True


state(_cross_entropy_labels, push=_push_labels)


@gradient_of("nn.cross_entropy_labels", inputs=[0, 1])
def _cross_entropy_labels_rule(node: Any, grads: Any) -> Any:
    """Of ``-g log_softmax(x)``."""
    (g, logits, _), t = node.inputs, grads[0]
    found = log_softmax(logits)
    dg = -apply("sum", t * found, axis=(-1,)) if needs(node, 0) else None
    spread = apply("expand_dims", g, axes=(-1,))
    return dg, get_op("nn.log_softmax_data")(-t * spread, found) if needs(node, 1) else None, None


@gradient_of("nn.cross_entropy_data", inputs=[0, 1, 2])
def _cross_entropy_data_rule(node: Any, grads: Any) -> Any:
    """Of ``(softmax(x) sum(labels) - labels) g``; classes stand for rows with the sum 1."""
    (g, logits, labels), t = node.inputs, grads[0]
    spread = apply("expand_dims", g, axes=(-1,))
    weight: Any = get_op("nn.label_weight")(logits, labels)
    y = softmax(logits)
    dg = None
    if needs(node, 0):
        slope: Any = get_op("nn.cross_entropy_data")(g * 0 + 1, logits, labels)
        dg = apply("sum", t * slope, axis=(-1,))
    moved: Any = get_op("nn.softmax_data")(t * spread, y) if needs(node, 1) else None
    dx = None if moved is None else moved * weight
    return dg, dx, _label_gradient(node, 2, lambda: total(t * spread * y, -1) - t * spread)


def _infer_label_weight(logits: Aval, labels: Aval) -> Aval:
    _check_labels("nn.label_weight", logits, labels)
    return Aval((*logits.shape[:-1], 1), logits.dtype)


@register_op("nn.label_weight", infer=_infer_label_weight)
def _label_weight(out: Elements, logits: Elements, labels: Elements) -> None:
    """Write the sums of rows of probabilities; ones for classes."""
    if labels.ndim == logits.ndim:
        out[...] = labels.astype(logits.dtype).sum(axis=-1, keepdims=True)
    else:
        out.fill(1)


def _push_label_weight(outputs: tuple[NDArray], operands: tuple[Any, ...]) -> bool:
    (out,), (logits, labels) = outputs, operands
    if labels.ndim != logits.ndim:
        fill(out, 1)
        return True
    if not isinstance(labels, NDArray) or labels.dtype != out.dtype or not labels.size:
        return False
    get_op("sum")(labels, axis=(-1,), keepdims=True, out=out)
    return True


state(_label_weight, push=_push_label_weight)


@gradient_of("nn.label_weight")
def _label_weight_rule(node: Any, grads: Any) -> Any:
    del node, grads
    return None, None


def cross_entropy(logits: ArrayLike, labels: ArrayLike) -> NDArray:
    """Return the cross entropy of each row of logits with its label: the negative logarithm of the label's softmax.

    Parameters
    ----------
    logits : array_like
        Shape ``(..., classes)``.
    labels : array_like
        Integer classes of shape ``(...)``, or probabilities (one-hot rows, say) of the shape of `logits`.

    Returns
    -------
    NDArray
        A loss for each row, shape ``(...)``.

    Raises
    ------
    IndexError
        When the loss is waited for, if there is no such class.

    Examples
    --------
    >>> import weft
    >>> weft.nn.cross_entropy([[0.0, 0.0], [5.0, 0.0]], [1, 0])
    NDArray([0.69314718, 0.00671535])
    """
    logits = as_array(logits)
    return one(_cross_entropy, logits, as_array(labels, logits))
