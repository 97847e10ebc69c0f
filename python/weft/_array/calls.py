"""`dispatch.call` for ops whose number of results is known where they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from weft._array.dispatch import call

if TYPE_CHECKING:
    from typing import Protocol

    from weft._core import Engine, NDArray
    from weft.ops import Op

    class _One(Protocol):
        """Pushes an op of one result and returns that."""

        def __call__(
            self,
            op: Op,
            *arrays: Any,  # noqa: ANN401 - as `call`
            out: NDArray | None = None,
            engine: Engine | None = None,
            **attributes: Any,  # noqa: ANN401 - as `call`
        ) -> NDArray: ...

    class _Several(Protocol):
        """Pushes an op of several results and returns them."""

        def __call__(self, op: Op, *arrays: Any, **attributes: Any) -> tuple[NDArray, ...]: ...  # noqa: ANN401 - as `call`


__all__ = ["DType", "Elements", "one", "several"]

DType: TypeAlias = np.dtype[Any]
Elements: TypeAlias = np.ndarray[Any, Any]

#: Names for types alone: a function around `call` would be one more frame between a call and its caller.
one = cast("_One", call)
several = cast("_Several", call)
