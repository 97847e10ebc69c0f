"""The door: a call with all its places leaves for its destination.

| destination | takes |
|---|---|
| `host.Host` | calls over arrays of the host's memory |
| `backends.Backend`, one a kind | calls over arrays on a device with memory of its own |
| `weft._graph.composing` | calls over symbols, from the core: they do not come here |

Both are a `destinations.Destination`. Each takes a call the fastest way that it knows, and at the end as a callable
that a worker runs with the GIL. All push, in the order of the accesses: to the engine, or to a recording, which takes
pushes in its place. Nothing here waits or reads values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft._call.backends import backend_of
from weft._call.host import HOST
from weft._core import Input, NDArray, note_call, recorded_calls

if TYPE_CHECKING:
    from weft._call.operands import Operand
    from weft._core import Plan, Way
    from weft._registry.op import Op

_INPUT = Input()


@dataclass(slots=True)
class Call:
    """An op with its operands and results.

    Parameters
    ----------
    op : Op
        The op.
    given : tuple of NDArray or Python scalar
        The operands.
    results : tuple of NDArray
        The places of the results.
    attributes : dict
        The op's attributes.
    plan : Plan or None
        For an op with a ufunc: its dtypes and loop.
    way : Way or None
        For an op without one: its avals and the core's run.
    mask : NDArray or None
        For an op with a ufunc: a mask of the elements to compute.
    exact : bool, default: True
        For an op with a ufunc: whether the scalars have the plan's dtypes.
    fresh : bool, default: False
        Whether the results are new arrays without other users.
    """

    op: Op
    given: tuple[Operand, ...]
    results: tuple[NDArray, ...]
    attributes: dict[str, Any]
    plan: Plan | None = None
    way: Way | None = None
    mask: NDArray | None = None
    exact: bool = True
    fresh: bool = False


def submit(call: Call) -> None:
    """Push a call to its destination."""
    elsewhere = bool(call.results) and call.results[0]._elsewhere
    destination = backend_of(call.results[0]) if elsewhere else HOST
    if call.plan is not None:
        destination.elementwise(call)
        return
    before = recorded_calls()
    destination.whole(call)
    if before is not None:
        note_call(call.op, _noted(call), before)


def _noted(call: Call) -> dict[str, Any]:
    """Return a call's attributes, with its numbers among them, as symbols keep them."""
    if all(isinstance(x, NDArray) for x in call.given):
        return call.attributes
    return {**call.attributes, "operands": tuple(_INPUT if isinstance(x, NDArray) else x for x in call.given)}
