"""Constants of a graph: small arrays that stand in an attribute, so that files hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import Node
from weft._registry.avals import Aval, as_dtype
from weft._registry.op import register_op

if TYPE_CHECKING:
    from weft._core import NodeEntry

__all__ = ["LARGEST", "evaluate_constant"]

#: Elements that a constant has at most: larger results are computed anew.
LARGEST = 1024


def _infer(*, shape: tuple[int, ...], dtype: Any, values: tuple[Any, ...]) -> Aval:
    del values
    return Aval(tuple(shape), as_dtype(dtype))


@register_op("constant", infer=_infer)
def _constant(out: np.ndarray[Any, Any], *, shape: tuple[int, ...], dtype: Any, values: tuple[Any, ...]) -> None:
    del dtype
    out[...] = np.array(values, out.dtype).reshape(shape)


_constant.set_attribute("num_inputs", 0)


def evaluate_constant(node: Node) -> list[NodeEntry] | None:
    """Return constants for the results of a call that rests on constants; None where they are large.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.constants import evaluate_constant
    >>> two = weft.symbol.constant(shape=(1,), dtype="float32", values=(2.0,))
    >>> evaluate_constant(weft.exp(two).get_node())[0].node.op.name
    'constant'
    """
    from weft._graph.evaluation import Schedule  # noqa: PLC0415 - which knows the functions of arrays
    from weft._graph.symbols import Symbol  # noqa: PLC0415 - as above

    if node.op.name == "constant":
        return node.outputs
    schedule = Schedule(Symbol.of_entries(node.outputs).graph)
    values = schedule.values({})
    schedule.run(values)
    found: list[NodeEntry] = []
    for index, at in enumerate(schedule.outputs):
        array = values[at].numpy()
        if array.size > LARGEST:
            return None
        name = node.name if len(schedule.outputs) == 1 else f"{node.name}_{index}"
        attributes = {"shape": array.shape, "dtype": array.dtype, "values": tuple(array.ravel().tolist())}
        found.append(Node(_constant, name, attributes, []).outputs[0])
    return found
