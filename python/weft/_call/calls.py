"""The core's `call`, typed for ops with a known number of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from weft import _core
from weft._call import dispatch  # noqa: F401 # pyright: ignore[reportUnusedImport] # it carries on where the core's walk ends

if TYPE_CHECKING:
    from typing import Protocol

    from weft._core import Engine, NDArray
    from weft._registry.op import Op

    class _One(Protocol):
        """Pushes an op of one result and returns it."""

        def __call__(
            self,
            op: Op,
            *arrays: Any,
            out: NDArray | None = None,
            engine: Engine | None = None,
            **attributes: Any,
        ) -> NDArray: ...

    class _Over(Protocol):
        """Pushes an op of one result over a sequence of operands and returns it."""

        def __call__(
            self,
            op: Op,
            arrays: list[Any] | tuple[Any, ...],
            /,
            *,
            out: NDArray | None = None,
            **attributes: Any,
        ) -> NDArray: ...

    class _Several(Protocol):
        """Pushes an op of several results and returns them."""

        def __call__(self, op: Op, *arrays: Any, **attributes: Any) -> tuple[NDArray, ...]: ...


#: Pushes an op of any number of results.
call = _core.call
DType: TypeAlias = np.dtype[Any]
Elements: TypeAlias = np.ndarray[Any, Any]

#: Names for types alone: a function around `call` would add a frame to every call.
one = cast("_One", call)
over = cast("_Over", _core.call_over)
several = cast("_Several", call)
