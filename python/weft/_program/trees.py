"""Nested arguments and results of programs; arrays are their leaves. `weft._tape.pytree` takes them apart."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft._core import NDArray
from weft._tape.pytree import class_of, fields_of, is_named, of_fields, parts_of, rebuilt, walk
from weft.errors import ArgumentTypeError, CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The results of a call in the form of `weft._core.Signatures`: a kind, its data, its parts.
Structure: TypeAlias = "tuple[Any, ...]"


def arrays_of(value: object) -> list[Any]:
    """Return the arrays in `value`, weft's and NumPy's, in the order in which programs take them.

    Examples
    --------
    >>> import weft
    >>> from weft._program.trees import arrays_of
    >>> len(arrays_of({"w": weft.ones(2), "layers": [weft.ones(3), 1.5]}))
    2
    """
    return [leaf for leaf in walk(value, NDArray) if isinstance(leaf, (NDArray, np.ndarray))]


def replaced(value: Any, replace: Callable[[Any], NDArray]) -> Any:
    """Return `value` with other arrays in it; parts without arrays stay the same objects, except lists and dicts.

    Examples
    --------
    >>> import weft
    >>> from weft._program.trees import replaced
    >>> replaced(("a", [weft.ones(2)]), lambda x: x + 1)
    ('a', [NDArray([2., 2.])])
    """
    if isinstance(value, (NDArray, np.ndarray)):
        return replace(value)
    parts = parts_of(value)
    if parts is None:
        return value
    found = [replaced(part, replace) for part in parts]
    same = all(new is old for new, old in zip(found, parts, strict=True))
    return value if same and type(value) not in {list, dict} else rebuilt(value, found)


def leaves_of(value: object, whole: type[Any] = NDArray) -> list[Any]:
    """Return all values in `value` that are not containers, in order; a value of the class `whole` is not one.

    Examples
    --------
    >>> from weft._program.trees import leaves_of
    >>> leaves_of((1, [2, {"a": 3}]))
    [1, 2, 3]
    """
    return list(walk(value, whole))


def check_kept(name: str, value: Any, copy: Any) -> None:
    """Raise if a recorded function has changed a list, a dict or a dataclass among its arguments: no replay would.

    Parameters
    ----------
    name : str
        The argument's name.
    value : object
        The argument in its present state.
    copy : object
        The argument, made anew.

    Raises
    ------
    CaptureError
        If they differ.
    """
    ours, theirs = parts_of(copy), parts_of(value)
    if ours is None or theirs is None:
        return
    keys = class_of(value) is not dict or class_of(copy) is not dict or list(value) == list(copy)
    if not keys or len(ours) != len(theirs):
        raise _changed(name, value)
    for mine, other in zip(ours, theirs, strict=True):
        if parts_of(mine) is None:
            if mine is not other:
                raise _changed(name, value)
        elif class_of(mine) is not class_of(other):
            raise _changed(name, value)
        else:
            check_kept(name, other, mine)


def _changed(name: str, value: object) -> CaptureError:
    return CaptureError(
        f"the function changed the {type(value).__name__} in its argument {name!r}, which a replay would not do: "
        "return what is new, or write into the arrays"
    )


def structure_of(
    result: object, made: list[NDArray], given: dict[int, int], always: Callable[[NDArray], bool]
) -> Structure:
    """Describe a result, and collect the arrays for a replay to make.

    Parameters
    ----------
    result : object
        The function's result.
    made : list of NDArray
        Gets the arrays that are neither arguments nor states.
    given : dict
        The argument of an array, by the array's identity.
    always : callable
        Whether an array is from before the recording, and is returned as it is.

    Raises
    ------
    ArgumentTypeError
        If the result holds a value that is neither an array nor unchangeable.
    """
    if isinstance(result, NDArray):
        return _array_of(result, made, given, always)
    parts = parts_of(result)
    if parts is not None:
        return _container(result, [structure_of(part, made, given, always) for part in parts])
    if isinstance(result, np.ndarray):
        return "built", partial(np.array, result), ()
    if not _is_value(result):
        raise ArgumentTypeError(
            f"a program returns arrays, numbers, strings, and lists, tuples, dicts and dataclasses of them, not "
            f"{type(result).__name__}"
        )
    return "always", result


def _array_of(
    array: NDArray, made: list[NDArray], given: dict[int, int], always: Callable[[NDArray], bool]
) -> Structure:
    if id(array) in given:
        return "given", given[id(array)]
    if always(array):
        return "always", array
    for at, known in enumerate(made):
        if known is array:
            return "made", at
    made.append(array)
    return "made", len(made) - 1


def _is_value(result: Any) -> bool:
    """Return whether a result never changes, and can equal other objects."""
    kind = class_of(result)
    hashes: Any = kind.__hash__
    return issubclass(kind, (type, type(None), slice)) or (hashes is not None and hashes is not object.__hash__)


def _container(result: Any, parts: list[Structure]) -> Structure:
    kind = class_of(result)
    if kind is list or kind is tuple:
        return str(kind.__name__), None, parts
    if kind is dict:
        return "dict", list(result), parts
    if is_named(kind):
        return "built", partial(_named, kind), parts
    return "built", partial(of_fields, kind, fields_of(kind)), parts


def _named(kind: Any, *parts: object) -> Any:
    return kind._make(parts)


def describe(value: Any) -> str:
    """Return a signature's knowledge of a value, in words.

    Examples
    --------
    >>> import weft
    >>> from weft._program.trees import describe
    >>> describe([weft.ones((2, 3)), 0.5])
    '[float64[2, 3], 0.5]'
    """
    if isinstance(value, (NDArray, np.ndarray)):
        return _array(value)
    parts = parts_of(value)
    if parts is None:
        return _shortened(repr(value))
    inner = [describe(part) for part in parts]
    if class_of(value) is dict:
        return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(value, inner, strict=True)) + "}"
    if class_of(value) is list:
        return f"[{', '.join(inner)}]"
    name: str = "" if type(value) is tuple else type(value).__name__
    return f"{name}({', '.join(inner)})"


def _array(array: Any) -> str:
    text = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    if isinstance(array, np.ndarray):
        return f"NumPy {text}" + ("" if array.flags.c_contiguous else f" with strides {array.strides}")
    notes = [] if array._contiguous else [f"strides {array.strides}"]
    if array.requires_grad:
        notes.append("requires_grad")
    if array.readonly:
        notes.append("read-only")
    if str(array.device) != "cpu:0":
        notes.append(f"device {array.device}")
    return text + (f" with {', '.join(notes)}" if notes else "")


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."  # half a line
