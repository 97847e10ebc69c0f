"""Arrays that are made out of numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._array import here
from weft._array.calls import one
from weft._array.devices import as_device, new, place
from weft._array.operands import engine_of

if TYPE_CHECKING:
    from weft._array.devices import Where
    from weft._array.rules import DType
    from weft._core import Engine, NDArray
    from weft.ops import Op

__all__ = ["made"]


def made(
    op: Op,
    shape: tuple[int, ...],
    dtype: DType,
    device: Where,
    engine: Engine | None,
    **attributes: Any,  # noqa: ANN401 - the op's own
) -> NDArray:
    """Push an op that makes an array out of numbers: on a device of its own memory by a kernel, or else on the host."""
    where, engine = as_device(device), engine or engine_of()
    if where.kind != "cpu":
        from weft._cuda import functions  # noqa: PLC0415 - for those alone who have a device

        made = new(shape, dtype, engine, where)
        name = op.attribute("kernels", None)
        if name is not None and functions.push(name, (made,), (), {"dtype": dtype, **attributes}):
            return made
    host = where if where.kind == "cpu" else as_device(None)
    result = new(shape, dtype, engine, host)
    if not here.made(op, result, {"dtype": dtype, **attributes}):
        result = one(op, out=result, engine=engine, dtype=dtype, **attributes)
    return result if host is where else place(result, where)
