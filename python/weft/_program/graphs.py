"""A program as a `weft.graph.Graph`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from weft.graph import Graph, load_json

if TYPE_CHECKING:
    from weft._core import Compiled, _View

__all__ = ["graph_of"]


def graph_of(compiled: Compiled, arguments: tuple[str, ...]) -> Graph:
    """Return the ops of a program as nodes; its outputs are the results and the last writes to arguments and states.

    An entry is a buffer in one of its versions: a view of it is the same entry, and a write makes the next version. That the
    write comes after reads of the version before, control dependencies say. What a replay runs is no more than that, so
    the nodes' ops are named ``recorded.<name>`` and have no rules.
    """
    nodes: list[dict[str, Any]] = []
    current: dict[int, list[int]] = {}
    lasting: dict[int, None] = {}
    placed: list[int] = []

    def entry(view: _View) -> list[int]:
        found = current.get(view["buffer"])
        if found is None:
            number = view["number"]
            name = arguments[number] if view["kind"] == "argument" and number is not None else view["kind"]
            nodes.append({"op": "null", "name": f"{name}_{view['buffer']}", "inputs": []})
            found = current[view["buffer"]] = [len(nodes) - 1, 0, 0]
        return found

    for step in compiled.describe():
        changed = [view for view in step["outputs"] if view["kind"] in {"argument", "state"} or view["version"] > 1]
        inputs = [entry(view) for view in (*step["inputs"], *changed)]
        known = {given[0] for given in inputs}
        nodes.append(
            {
                "op": f"recorded.{step['name']}",
                "name": f"{step['name']}_{step['number']}",
                "inputs": inputs,
                "control_deps": [placed[before] for before in step["dependencies"] if placed[before] not in known],
            }
        )
        placed.append(len(nodes) - 1)
        for index, view in enumerate(step["outputs"]):
            current[view["buffer"]] = [placed[-1], index, view["version"]]
            if view["kind"] != "temporary":
                lasting[view["buffer"]] = None
    variables = [number for number, node in enumerate(nodes) if node["op"] == "null"]
    heads = [current[buffer] for buffer in lasting]
    return load_json(json.dumps({"nodes": nodes, "arg_nodes": variables, "heads": heads}))
