"""A symbol as a table."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from weft._core import graph_infer_shape, graph_infer_type, graph_plan_memory

if TYPE_CHECKING:
    from weft._graph.symbols import Symbol


def summarize(symbol: Symbol, shapes: dict[str, Any]) -> str:
    """Return a table of nodes: op, shape of the first result, parameters, bytes. Arguments without given shapes count as parameters, but for labels.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.symbol_summary import summarize
    >>> print(summarize(weft.symbol.exp(weft.symbol.Variable("x"), name="e"), {"x": (2,)}).splitlines()[2].split())
    ['e', 'exp', 'x', '(2,)', '0', '8']
    """
    graph = graph_infer_type(graph_infer_shape(symbol.graph, shapes, "__shape__"), {}, "__dtype__")
    indexed = graph.indexed()
    known: Any = graph.attribute("shape")
    dtypes: Any = graph.attribute("dtype")
    rows = [("name", "op", "inputs", "shape", "parameters", "bytes")]
    parameters = weights = total = 0
    counted: set[str] = _labels(indexed)  # nothing that is learned
    labels = set(counted)
    for number, node in enumerate(indexed.nodes):
        entries = [indexed.entry_id(number, index) for index in range(node.num_outputs)]
        sizes: list[Any] = [
            prod(known[at]) if known[at] is not None and None not in known[at] else None for at in entries
        ]
        nbytes = None if None in sizes else sum(n * dtypes[at].itemsize for n, at in zip(sizes, entries, strict=True))
        if node.is_variable:
            if node.name not in shapes and nbytes is not None and node.name not in counted:
                counted.add(node.name)
                parameters, weights = parameters + sizes[0], weights + nbytes
            continue
        own = 0
        for entry in node.inputs:
            if entry.node.is_variable and entry.node.name not in shapes and entry.node.name not in labels:
                shape = known[indexed.entry_id(entry)]
                own += prod(shape) if shape is not None and None not in shape else 0
        total += nbytes or 0
        names = ", ".join(entry.node.name for entry in node.inputs)
        shape = "?" if known[entries[0]] is None else str(known[entries[0]]).replace("None", "?")
        rows.append((node.name, node.op.name, names, shape, str(own), "?" if nbytes is None else str(nbytes)))
    widths = [min(max(len(row[at]) for row in rows), 40) for at in range(len(rows[0]))]
    lines = [
        "  ".join(cell[:width].ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines.append(f"parameters: {parameters} ({weights} bytes); results: {total} bytes")
    return "\n".join(lines)


def _labels(indexed: Any) -> set[str]:
    """Return the names of the variables that losses compare with: by the name of the op's input, or their own."""
    found: set[str] = set()
    for node in indexed.nodes:
        if node.is_variable:
            continue
        names: Any = node.op.attribute("input_names", ()) if node.op._entry.is_registered else ()
        given: list[str] = [] if callable(names) else list(names)
        for at, entry in enumerate(node.inputs):
            ends = (given[at] if at < len(given) else "", entry.node.name.rpartition("_")[2])
            if entry.node.is_variable and {"label", "labels"} & set(ends):
                found.add(entry.node.name)
    return found


def described(symbol: Symbol) -> str:
    """Return the nodes of a symbol as text, each with its inputs, attributes and notes.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.symbol_summary import described
    >>> described(weft.symbol.exp(weft.symbol.Variable("x"), name="e")).splitlines()[:3]
    ['Symbol Outputs:', '    output[0]=e(0)', 'Variable:x']
    """
    lines = ["Symbol Outputs:"]
    lines += [f"    output[{at}]={entry.node.name}({entry.index})" for at, entry in enumerate(symbol.entries)]
    for node in symbol.graph.indexed().nodes:
        texts = sorted(node.attrs.items())
        if node.is_variable:
            lines.append(f"Variable:{node.name}")
        else:
            lines += ["--------------------", f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
            inputs = enumerate(node.inputs)
            lines += [f"    arg[{at}]={e.node.name}({e.index}) version={e.version}" for at, e in inputs]
        if texts:
            lines += ["Attrs:", *(f"    {key}={text}" for key, text in texts)]
    return "\n".join(lines) + "\n"


def planned_bytes(symbol: Symbol, known: dict[str, tuple[Any, Any]]) -> int:
    """Return how large the arena of a symbol's plan is, its outputs included.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.symbol_summary import planned_bytes
    >>> planned_bytes(weft.symbol.exp(weft.symbol.Variable("x")), {"x": ((4,), "float32")})
    16
    """
    graph = graph_infer_shape(symbol.graph, {name: shape for name, (shape, _) in known.items()}, "__shape__")
    graph = graph_infer_type(graph, {name: dtype for name, (_, dtype) in known.items()}, "__dtype__")
    found: int = graph_plan_memory(graph, "min", False, []).attribute("storage_allocated_bytes")
    return found
