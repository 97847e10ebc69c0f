"""NumPy's functions whose results depend on values: these wait, and compute in the calling thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.devices import device_of, place
from weft._call.inline import USUAL
from weft._call.listening import hear_nothing
from weft._call.operands import as_array, engine_of, listed, values
from weft._core import NDArray, values_here, wrap
from weft._registry.levels import is_examples
from weft._registry.sieve import sieved
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Functions that set no floating-point flags.
EXACT: set[Callable[..., Any]] = {np.nonzero, np.argwhere}


@sieved
def eager(name: str, func: Callable[..., Any], *arrays: Any, **kw: Any) -> Any:
    """Wait for `arrays`, call NumPy's `func` on them, and return the results as arrays.

    For results whose shape depends on values. `func` gets copies of small arrays and read-only views of others. If it
    raises on copies, it is called again with views, so it must have no effects.

    Parameters
    ----------
    name : str
        The name in errors: there is no gradient.
    func : callable
        Takes the arrays as NumPy arrays, and `kw`.
    *arrays : array-like
        The operands.
    **kw
        Passed on.

    Returns
    -------
    NDArray or tuple of NDArray
        The results of `func`, as independent arrays on the first one's device; a named tuple stays one.

    Raises
    ------
    ArgumentValueError
        If an array is on a device with memory of its own.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._call.blocking import eager
    >>> eager("unique", numpy.unique, weft.asarray([2, 1, 2]))
    NDArray([1, 2])
    """
    engine = engine_of(*arrays)
    found = tuple([x if x.__class__ is NDArray else as_array(x, engine=engine) for x in arrays])
    for x in found:
        if is_symbol(x) or x._elsewhere:
            return eager_once(name, func, *found, **kw)
        x.wait_to_read()
    if func in EXACT:
        made = values_here(func, name, found, USUAL, kw)
    else:
        with np.errstate(all="ignore"):
            made = values_here(func, name, found, USUAL, kw)
    return eager_once(name, func, *found, **kw) if made is None else made


def eager_once(name: str, func: Callable[..., Any], *arrays: Any, **kw: Any) -> Any:
    """Do the same for a user's function: it is called once, even if it raises.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._call.blocking import eager_once
    >>> eager_once("unique", numpy.unique, weft.asarray([2, 1, 2]))
    NDArray([1, 2])
    """
    engine = engine_of(*arrays)
    found = [as_array(x, engine=engine) for x in arrays]
    if any(map(is_examples, found)):
        raise ArgumentTypeError(
            f"{name}() looks at values, which under weft.vmap differ from example to example: call it outside"
        )
    where = device_of(found[0])
    if any(x._elsewhere for x in found):
        raise ArgumentValueError(
            f"the array is on {where}, and what this function returns depends on values, at which the CPU has to look: "
            "copy the array there by x.to_device('cpu')"
        )
    views = [values(x) for x in found]
    with np.errstate(all="ignore"):
        result: object = func(*views, **kw)

    def own(value: Any) -> NDArray:
        array = np.asarray(value)
        if not array.flags.writeable or any(np.may_share_memory(array, each) for each in views):
            array = array.copy()
        return place(wrap(array, engine, own=True), where)

    several = listed(result)
    made = list(map(own, several))
    hear_nothing(name, found, made)
    if several is not result:
        return made[0]
    make: Any = getattr(several, "_make", tuple)  # a named tuple
    return make(made)
