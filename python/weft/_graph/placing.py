"""Devices by name for the pass that places nodes, and the op that copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import as_device
from weft._core import NDArray
from weft._registry.op import register_op

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft._registry.avals import Aval

__all__ = ["device_names"]


def device_names(assign: Mapping[str, Any], default: Any) -> tuple[dict[str, str], str | None]:
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
    return NDArray.to_device(x, device)  # a tensor stays where it is


def _copy_back(node: Any, grads: Any) -> Any:
    del node
    return (grads[0],)


_copy_to.set_attribute("view", _show)
_copy_to.set_attribute("shares_memory", value=True)  # on the device where it lies already
_copy_to.set_attribute("gradient", _copy_back)
