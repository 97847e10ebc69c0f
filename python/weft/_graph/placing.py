"""Nodes on devices: the pass that places them, and the op that copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import as_device
from weft._core import GraphCore, NDArray, graph_place_device
from weft._engine.labels import cpu
from weft._graph.graphs import Graph, core_of
from weft._graph.passes import own_pass
from weft._registry.defaults import state
from weft._registry.op import get_op, register_op
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft._registry.avals import Aval


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
state(_copy_to, infer_shape="like_first")
_copy_to.set_attribute("shares_memory", value=True)  # on the device where it lies already
_copy_to.set_attribute("gradient", _copy_back)


@own_pass(
    "place_device",
    "PlaceDevice",
    change_graph=True,
    requires=["device_assign_map"],
    provides=["device"],
    group_key="device_group_attr_key",
    assign="device_assign_map",
    copy_op="device_copy_op",
)
def place_device(
    graph: Graph,
    group_key: str = "ctx_group",
    assign: Mapping[str, Any] | None = None,
    copy_op: str = "copy_to",
    default: Any = None,
) -> Graph:
    """Return the graph with nodes on the devices of their groups, and copies between (PlaceDevice).

    Parameters
    ----------
    graph : Graph
        The graph.
    group_key : str, default: "ctx_group"
        The note on nodes that has their group, with or without underscores.
    assign : dict of str to Device or str
        The device of each group.
    copy_op : str, default: "copy_to"
        The op that copies: it has an attribute `device`.
    default : Device or str, optional
        Where nodes go that belong to no group and take nothing that does.

    Returns
    -------
    Graph
        With `device`, a name or None for each node. Each value is copied once to each device that takes it.

    Raises
    ------
    GraphError
        If a group has no device.

    Examples
    --------
    >>> import weft
    >>> with weft.symbol.AttrScope(ctx_group="first"):
    ...     y = weft.symbol.exp(weft.symbol.Variable("x"), name="e")
    >>> with weft.symbol.AttrScope(ctx_group="second"):
    ...     z = weft.symbol.log(y, name="l")
    >>> graph = weft.graph.place_device(weft.graph.Graph(z), assign={"first": "cpu:0", "second": "cpu:1"})
    >>> [node.name for node in graph.indexed_graph().nodes], graph.attrs["device"]
    (['x', 'e', 'e_copy_0_cpu:1', 'l'], ['cpu:0', 'cpu:0', 'cpu:1', 'cpu:1'])
    """
    names, where = device_names(assign or {}, default)
    try:
        copy = get_op(copy_op)._entry
    except KeyError:
        raise GraphError(f"no op is named {copy_op!r}, which is to copy: weft.ops.list_ops() names them all") from None
    return Graph._of(graph_place_device(core_of(graph), group_key, names, copy, where))


def place_groups(graph: GraphCore, device: Any, groups: Mapping[str, Any]) -> GraphCore:
    """Return an executor's graph where groups of nodes have devices of their own."""
    return place_device(Graph._of(graph), assign=groups, default=cpu(0) if device is None else device)._core
