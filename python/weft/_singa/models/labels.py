"""Labels that lie in the host's memory: a class that does not exist is refused where a batch is handed over.

Once it is an array of weft's, a label is looked at by an op, and one out of range fails the loss and all that follows from it. A
batch of NumPy's or torch's is there to be looked at. How many classes there are is known where the loss is computed, or recorded;
calls with labels of that shape in that place are compared with it from then on.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray, recording
from weft._program.record import argument_of
from weft.errors import ArgumentIndexError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Labels = npt.NDArray[np.integer[Any]]
    #: How many classes there are, by a call's kind, the place of its labels, and their shape.
    Bounds = dict[tuple[str, int | str, tuple[int, ...]], int]

#: DLPack's number of the host's memory.
_HOST = 1


class Handed:
    """The integers that a call of a model was given in the host's memory.

    Parameters
    ----------
    kind : str
        The kind of the call.
    arrays : dict of int or str to (object, numpy.ndarray)
        By the argument's place or name, the model's view of it, and the integers.
    bounds : dict of (str, int or str, tuple of int) to int
        The facts of earlier calls.
    """

    def __init__(self, kind: str, arrays: dict[int | str, tuple[object, Labels]], bounds: Bounds) -> None:
        self._kind, self._arrays, self._bounds = kind, arrays, bounds

    def check(self) -> None:
        """Raise `ArgumentIndexError` for a class that was not there in earlier calls."""
        for place, (_, array) in self._arrays.items():
            count = self._bounds.get((self._kind, place, array.shape))
            if count is not None:
                _check(array, count)

    def meet(self, x: object, count: int) -> None:
        """Note that an array holds classes, so many; raise if one of those in it is none."""
        for place, (seen, array) in self._arrays.items():
            if seen is x:
                self._bounds[self._kind, place, array.shape] = count
                _check(array, count)


#: Those of the call that runs in this context.
HANDED: ContextVar[Handed | None] = ContextVar("weft.model.labels", default=None)


def on_host(given: Mapping[int | str, Any], seen: Mapping[int | str, Any]) -> dict[int | str, tuple[object, Labels]]:
    """Return the integers among inputs that lie in the host's memory, by their places or names, with the model's view of them.

    Examples
    --------
    >>> import numpy as np
    >>> import weft
    >>> from weft._singa.models.labels import on_host
    >>> given = {0: weft.ones(2), "y": np.array([0, 1])}
    >>> list(on_host(given, given))
    ['y']
    """
    found: dict[int | str, tuple[object, Labels]] = {}
    for place, x in given.items():
        if not isinstance(x, NDArray) and _lies_on_host(x):
            array = np.asarray(x)
            if array.dtype.kind in "iu" and array.ndim:
                found[place] = seen[place], array
    return found


def _lies_on_host(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        return True
    where = getattr(x, "__dlpack_device__", None)
    if where is None or not hasattr(x, "__array__") or "int" not in str(getattr(x, "dtype", "")):
        return False
    return int(where()[0]) == _HOST


def check_classes(labels: Any, count: int) -> None:
    """Raise `ArgumentIndexError` if labels that lie in the host's memory name a class that does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._singa.models.labels import check_classes
    >>> check_classes(np.array([0, 1]), 2)
    """
    handed = HANDED.get()
    if handed is not None:
        handed.meet(argument_of(labels) if recording() is not None else labels, count)
    host: Any = labels
    if isinstance(labels, np.ndarray):
        _check(host, count)


def _check(labels: Labels, count: int) -> None:
    for wrong in (labels.min(initial=0), labels.max(initial=0)):
        if not 0 <= wrong < count:
            raise ArgumentIndexError(
                f"there is no class {wrong} among {count}: classes count from 0. No parameter has changed"
            )
