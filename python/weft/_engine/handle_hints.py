"""Errors of the use of a task's handle as if it were its result, which say what to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from weft._core import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

#: Replacements for methods of other libraries' handles on results. Other names are looked for in the result.
INSTEAD_OF_RESULTS = {
    "cancel": "weft.Executor().submit(function), whose future has cancel(): what a task was pushed for runs",
    "compute": "handle.result()",
    "get": "handle.result()",
    "key": "handle, as an argument of the next task",
    "numpy": "handle.result()",
    "persist": "handle.wait(): the task runs without being asked for",
}
#: What operators on a handle are replaced by.
INSTEAD_OF_OPERATORS = "handle.result(), or a task that takes the handle as an argument"
_ARITHMETIC = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "matmul": "@",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_EQUALITIES = ("==", "!=")
#: Objects with which only a result can be meant to be equal.
_PLAIN = (int, float, complex, str, bytes)


def refuse_results(kind: type) -> None:
    """Let errors of the use of a handle, of this class, as if it were its result name the replacement.

    A handle equals nothing but itself, and says so where it is compared with numbers and texts. Arrays of NumPy's and of other libraries on
    the other side of an operator take it as an array; weft's do not.
    """

    def attribute(x: object, name: str) -> NoReturn:
        instead = INSTEAD_OF_RESULTS.get(name, f"handle.result().{name}")
        hint = "" if name.startswith("_") else f": write {instead}"
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{hint}", name=name, obj=x)

    def item(_: object, _index: object) -> NoReturn:
        raise TypeError(
            f"{kind.__name__!r} object has no items: write handle.result()[i], or for item in handle.result()"
        )

    def length(_: object) -> NoReturn:
        raise TypeError(f"object of type {kind.__name__!r} has no len(): write len(handle.result())")

    def operator(sign: str, *, is_reflected: bool = False) -> Callable[[Any, Any], Any]:
        def refused(x: Any, other: Any) -> Any:
            is_array = hasattr(other, "__array__") and not isinstance(other, (kind, NDArray))
            if is_array or (sign in _EQUALITIES and not isinstance(other, _PLAIN)):
                return NotImplemented
            left, right = (other, x) if is_reflected else (x, other)
            names = f"{type(left).__name__!r} and {type(right).__name__!r}"
            raise TypeError(f"unsupported operand types for {sign}: {names}: write {INSTEAD_OF_OPERATORS}")

        return refused

    for name, method in {"getattr": attribute, "getitem": item, "len": length}.items():
        setattr(kind, f"__{name}__", method)
    for name, sign in (_ARITHMETIC | _COMPARISONS).items():
        setattr(kind, f"__{name}__", operator(sign))
    for name, sign in _ARITHMETIC.items():
        setattr(kind, f"__r{name}__", operator(sign, is_reflected=True))
