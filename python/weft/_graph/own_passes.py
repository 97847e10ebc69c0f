"""The registry's own passes that take parameters, under their names here and in NNVM.

They read them from attributes of the graph, as NNVM's do. Passes that take nothing but a graph are registered by the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._graph import differentiating, inferring, passes as registered, placing, rewriting, texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._graph.graphs import Graph


def _attribute(graph: Graph, name: str, default: Any = None) -> Any:
    return graph.attrs.get(name, default)


def _infer_shape(graph: Graph) -> Graph:
    return inferring.infer_shape(
        graph, _attribute(graph, "shape_inputs"), _attribute(graph, "shape_attr_key", "__shape__")
    )


def _infer_type(graph: Graph) -> Graph:
    return inferring.infer_type(
        graph, _attribute(graph, "dtype_inputs"), _attribute(graph, "dtype_attr_key", "__dtype__")
    )


def _load_json(graph: Graph) -> Graph:
    return texts.load_json(graph.attrs["json"])


def _place_device(graph: Graph) -> Graph:
    return placing.place_device(
        graph,
        _attribute(graph, "device_group_attr_key", "ctx_group"),
        _attribute(graph, "device_assign_map"),
        _attribute(graph, "device_copy_op", "copy_to"),
    )


def _gradient(graph: Graph) -> Graph:
    return differentiating.gradient(
        graph, graph.attrs["grad_ys"], graph.attrs["grad_xs"], _attribute(graph, "grad_ys_out_grad")
    )


def _correct_layout(graph: Graph) -> Graph:
    return rewriting.correct_layout(graph, _attribute(graph, "layout_inputs"))


def _print_ir(graph: Graph) -> Graph:
    graph.attrs["graphir"] = texts.print_ir(
        graph, _attribute(graph, "join_entry_attrs", ()), _attribute(graph, "join_node_attrs", ())
    )
    return graph


def register_own() -> None:
    """Register them, once.

    Examples
    --------
    >>> import weft
    >>> weft.graph.get_pass("Gradient").requires
    ('grad_ys', 'grad_xs')
    """
    passes: list[tuple[tuple[str, str], Callable[[Graph], Graph], dict[str, Any]]] = [
        (("infer_shape", "InferShape"), _infer_shape, {"provides": ["shape", "shape_num_unknown_nodes"]}),
        (("infer_type", "InferType"), _infer_type, {"provides": ["dtype"]}),
        (("load_json", "LoadJSON"), _load_json, {"change_graph": True, "requires": ["json"]}),
        (
            ("place_device", "PlaceDevice"),
            _place_device,
            {"change_graph": True, "requires": ["device_assign_map"], "provides": ["device"]},
        ),
        (("gradient", "Gradient"), _gradient, {"change_graph": True, "requires": ["grad_ys", "grad_xs"]}),
        (("correct_layout", "CorrectLayout"), _correct_layout, {"change_graph": True, "provides": ["layout"]}),
        (("print_ir", "PrintGraphIR"), _print_ir, {"provides": ["graphir"]}),
        (("fold_constants", "FoldConstants"), rewriting.fold_constants, {"change_graph": True}),
    ]
    known = registered.list_passes()
    for names, function, options in passes:
        for name in names:
            if name not in known:
                registered.register_pass(name, **options)(function)
