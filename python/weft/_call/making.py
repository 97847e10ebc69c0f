"""Arrays made from numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._call import inline
from weft._call.backends import backend_named
from weft._call.calls import one
from weft._call.devices import as_device, new, place
from weft._call.operands import engine_of

if TYPE_CHECKING:
    from weft._call.devices import Where
    from weft._core import Engine, NDArray
    from weft._registry.avals import DType
    from weft._registry.op import Op


def made(
    op: Op,
    shape: tuple[int, ...],
    dtype: DType,
    device: Where,
    engine: Engine | None,
    **attributes: Any,
) -> NDArray:
    """Push an op that makes an array from numbers: by a kernel on a device with memory of its own, else on the host."""
    where, engine = as_device(device), engine or engine_of()
    if where.kind != "cpu":
        made = new(shape, dtype, engine, where)
        if backend_named(where.kind).launch(op, (made,), (), {"dtype": dtype, **attributes}):
            return made
    host = where if where.kind == "cpu" else as_device(None)
    result = new(shape, dtype, engine, host)
    if not inline.made(op, result, {"dtype": dtype, **attributes}):
        result = one(op, out=result, engine=engine, dtype=dtype, **attributes)
    return result if host is where else place(result, where)
