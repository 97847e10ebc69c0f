"""A program as a `weft.graph.Graph`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import Input, Node, NodeEntry
from weft._graph.graphs import Graph
from weft._graph.recorded_ops import Placed, copy_op, fill_op, opaque_op, view_op, write_op
from weft._graph.symbols import Symbol
from weft._registry.avals import Aval
from weft._registry.op import get_op
from weft._registry.shapes import contiguous_strides
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import Compiled, _Step, _View
    from weft._program.dummies import Layout
    from weft._registry.op import Op


def graph_of(
    compiled: Compiled, arguments: Sequence[str], layouts: Sequence[Layout], first: int | None = None
) -> Graph:
    """Return the ops of a program as nodes; its outputs are the results and the last writes to arguments and states.

    Of the `first` ops alone, if that is given, and then all that they wrote is an output.

    An entry is a buffer in one of its versions. Ops of the registry are themselves, with their attributes; a step that
    reads a buffer in another layout than the buffer's own reads it by a node ``recorded_view``, and one that writes to
    a part of it makes its next version by a node ``recorded_write``. Callables, native functions and other steps
    without an op are nodes ``recorded``, with their names and results. Orders that follow from no value are control
    dependencies.
    """
    steps = compiled.describe()
    cut = first is not None and first < len(steps)
    return _Graph(steps[:first], arguments, layouts).graph(whole=not cut)


@dataclass(slots=True)
class _Buffer:
    """A buffer: how its elements lie, and the entry of its version now."""

    home: Placed
    entry: NodeEntry
    lasts: bool


class _Graph:
    """The nodes of a program, one step after the other."""

    def __init__(self, steps: Sequence[_Step], arguments: Sequence[str], layouts: Sequence[Layout]) -> None:
        self._steps, self._arguments, self._layouts = steps, arguments, layouts
        self._views: dict[int, list[_View]] = {}
        for step in steps:
            for view in (*step["inputs"], *step["outputs"]):
                self._views.setdefault(view["buffer"], []).append(view)
        self._buffers: dict[int, _Buffer] = {}
        self._shown_as: dict[tuple[NodeEntry, Placed], NodeEntry] = {}
        self._made: list[Node] = []

    def graph(self, *, whole: bool) -> Graph:
        """Return the graph."""
        for step in self._steps:
            self._add(step)
        heads = [buffer.entry for buffer in self._buffers.values() if buffer.lasts or not whole]
        return Graph(Symbol.of_entries(heads))

    def _add(self, step: _Step) -> None:
        inputs = [self._read(view) for view in step["inputs"]]
        op, attributes, shapes = _op_of(step)
        if op is opaque_op:
            # A call that changes an array reads it, too.
            changed = [
                view for view, access in zip(_in_order(step), step["accesses"], strict=True) if access == "mutate"
            ]
            inputs += [self._read(view) for view in changed]
        known = {entry.node for entry in inputs}
        after = [self._made[number] for number in step["dependencies"] if self._made[number] not in known]
        name = f"{step['name']}_{step['number']}"
        node = _node(op, name, attributes, inputs, after, step)
        self._made.append(node)
        for index, view in enumerate(step["outputs"]):
            self._write(view, NodeEntry(node, index), shapes[index])

    def _read(self, view: _View) -> NodeEntry:
        buffer = self._buffer(view)
        if buffer is None:
            buffer = self._variable(view)
        return self._shown(buffer, _placed(view))

    def _shown(self, buffer: _Buffer, placed: Placed) -> NodeEntry:
        if placed == buffer.home:
            return buffer.entry
        known = self._shown_as.get((buffer.entry, placed))
        if known is None:
            name = f"{buffer.entry.node.name}_view{len(self._shown_as)}"
            known = NodeEntry(Node(view_op, name, placed.within(buffer.home), [buffer.entry]))
            self._shown_as[buffer.entry, placed] = known
        return known

    def _buffer(self, view: _View) -> _Buffer | None:
        return self._buffers.get(view["buffer"])

    def _variable(self, view: _View) -> _Buffer:
        """Enter a buffer that is there before the program."""
        home = self._home(view)
        number = view["number"]
        name = self._arguments[number] if view["kind"] == "argument" and number is not None else view["kind"]
        texts = {"__shape__": repr(home.shape), "__dtype__": home.dtype}
        node = Node(None, f"{name}_{view['buffer']}", texts)
        buffer = self._buffers[view["buffer"]] = _Buffer(home, NodeEntry(node), lasts=False)
        return buffer

    def _home(self, view: _View) -> Placed:
        """Return how the elements of a buffer lie: as the argument's do, or in the layout that has them all."""
        found = [_placed(each) for each in self._views[view["buffer"]]]
        number = view["number"]
        if view["kind"] == "argument" and number is not None and number < len(self._layouts):
            layout = self._layouts[number]
            for each in found:
                if (each.shape, each.strides, each.dtype) == (layout.shape, layout.strides, layout.dtype.name):
                    return each
        low, high = min(each.low for each in found), max(each.high for each in found)
        for each in found:
            if (each.low, each.high) == (low, high) and each.is_dense:
                return each
        first = found[0]
        item = np.dtype(first.dtype).itemsize
        return Placed((-(-(high - low) // item),), (item,), low, first.dtype)

    def _write(self, view: _View, entry: NodeEntry, shape: tuple[int, ...]) -> None:
        buffer, placed = self._buffer(view), _placed(view)
        if shape != placed.shape:  # axes of one element more or less
            placed = Placed(
                shape, contiguous_strides(shape, np.dtype(view["dtype"]).itemsize), placed.offset, placed.dtype
            )
        lasts = view["kind"] != "temporary"
        home = self._home(view)
        is_all = placed.is_dense and (placed.low, placed.high) == (home.low, home.high)
        if buffer is None and is_all and view["kind"] in {"temporary", "result"}:
            self._buffers[view["buffer"]] = _Buffer(placed, NodeEntry(entry.node, entry.index, view["version"]), lasts)
            return
        if buffer is None:
            buffer = self._variable(view)
        if placed == buffer.home:
            buffer.entry = NodeEntry(entry.node, entry.index, view["version"])
        else:
            name = f"{entry.node.name}_write"
            node = Node(write_op, name, placed.within(buffer.home), [buffer.entry, entry])
            buffer.entry = NodeEntry(node, 0, view["version"])
        buffer.lasts = lasts


def _in_order(step: _Step) -> list[_View]:
    """Return a step's operands in the order of its accesses."""
    reads, writes = iter(step["inputs"]), iter(step["outputs"])
    return [next(reads) if access == "read" else next(writes) for access in step["accesses"]]


def _placed(view: _View) -> Placed:
    return Placed(tuple(view["shape"]), tuple(view["strides"]), view["offset"], view["dtype"])


def _op_of(step: _Step) -> tuple[Op, dict[str, Any], list[tuple[int, ...]]]:
    """Return the op of a step, its attributes, and the shapes that it makes: one of the registry if its rule fits."""
    op: Op | None = step["op"]
    attributes: dict[str, Any] = dict(step["attributes"] or {})
    operands = step["operands"]
    if op is None and operands is not None:
        try:
            found: Any = get_op(step["name"])
        except KeyError:
            found = None
        if found is not None and found.ufunc is not None and found.ufunc.nin == len(operands):
            op = found
            if any(each is not None for each in operands):
                attributes["operands"] = tuple(_INPUT if each is None else _number(*each) for each in operands)
    made = [Aval(tuple(view["shape"]), np.dtype(view["dtype"])) for view in step["outputs"]]
    shapes = [aval.shape for aval in made]
    if op is None and operands is not None and len(made) == 1 and len(operands) == 1:
        if operands[0] is not None and step["name"] == "fill":
            value = _number(*operands[0])
            return fill_op, {"value": value, "shape": made[0].shape, "dtype": made[0].dtype.name}, shapes
        if step["name"] == "copy" and tuple(step["inputs"][0]["shape"]) == made[0].shape:
            return copy_op, {}, shapes
    if op is not None and "mutate" not in step["accesses"]:
        found = _said(op, attributes, step, made)
        if found is not None:
            return op, attributes, found
    kinds = tuple((aval.shape, aval.dtype.name) for aval in made)
    return (
        opaque_op,
        {"name": step["name"], "results": kinds, "attributes": repr(attributes) if attributes else None},
        shapes,
    )


_INPUT = Input()


def _number(data: Sequence[int], dtype: str) -> Any:
    return np.frombuffer(bytes(data), np.dtype(dtype), 1)[0].item()


def _said(op: Op, attributes: dict[str, Any], step: _Step, made: Sequence[Aval]) -> list[tuple[int, ...]] | None:
    """Return the shapes that the op's rule gives for the step's operands, if they are those of the step's results.

    A reduction keeps axes of one element in the step, with or without ``keepdims``.
    """
    from weft._registry.forward import infer_forward  # noqa: PLC0415 - only graphs of programs need it

    shapes = [tuple(view["shape"]) for view in step["inputs"]]
    dtypes = [np.dtype(view["dtype"]) for view in step["inputs"]]
    try:
        found = infer_forward(op, attributes, shapes, dtypes)
    except Exception:  # noqa: BLE001 - a user's rule may raise anything: then it states nothing
        return None
    alike = len(found) == len(made) and all(
        dtype == aval.dtype and [n for n in shape if n != 1] == [n for n in aval.shape if n != 1]
        for (shape, dtype), aval in zip(found, made, strict=True)
    )
    return [tuple(shape) for shape, _ in found] if alike else None


def _node(
    op: Op, name: str, attributes: dict[str, Any], inputs: list[NodeEntry], after: list[Node], step: _Step
) -> Node:
    try:
        return Node(op, name, attributes, inputs, after)
    except (GraphError, TypeError):  # an attribute that is no value of a graph's
        kinds = tuple((tuple(view["shape"]), view["dtype"]) for view in step["outputs"])
        said = {"name": step["name"], "results": kinds, "attributes": repr(attributes)}
        return Node(opaque_op, name, said, inputs, after)
