"""Devices by name: what the pass that places nodes knows of them, and the op that copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._array.devices import as_device
from weft._array.rules import Aval
from weft.ops import register_op

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft._core import NDArray

__all__ = ["device_names"]


def device_names(assign: Mapping[str, Any], default: Any) -> tuple[dict[str, str], str | None]:  # noqa: ANN401 - a device
    """Return devices, given as such or by name, by name.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.placing import device_names
    >>> device_names({"first": weft.cpu(1)}, None)
    ({'first': 'cpu:1'}, None)
    """
    return {group: str(as_device(each)) for group, each in assign.items()}, None if default is None else str(
        as_device(default)
    )


def _infer_copy(x: Aval, *, device: str) -> Aval:
    del device  # the values are the same everywhere
    return x


@register_op("copy_to", infer=_infer_copy)
def _copy_to(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], *, device: str) -> None:
    del device
    np.copyto(out, x)


def _show(x: NDArray, *, device: str) -> NDArray:
    return x.to_device(device)


def _copy_back(node: Any, grads: Any) -> Any:  # noqa: ANN401 - a rule
    del node
    return (grads[0],)


_copy_to.set_attribute("view", _show)
_copy_to.set_attribute("shares_memory", value=True)  # on the device where it lies already
_copy_to.set_attribute("gradient", _copy_back)


def _infer_like(x: Aval) -> Aval:
    return Aval(x.shape, x.dtype)


def _no_gradient(node: Any, grads: Any) -> tuple[None]:  # noqa: ANN401 - a rule
    del node, grads
    return (None,)


# Below the level of a registration by who has more to say of them.
@register_op("ones_like", infer=_infer_like, level=5)
def _ones_like(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    del x
    out.fill(1)


@register_op("zeros_like", infer=_infer_like, level=5)
def _zeros_like(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    del x
    out.fill(0)


for _op in (_ones_like, _zeros_like):
    _op.set_attribute("infer_shape", "like_first")
    _op.set_attribute("infer_type", "like_first")
    _op.set_attribute("ignores", (0,))
    _op.set_attribute("gradient", _no_gradient)
