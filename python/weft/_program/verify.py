"""Checks of calls against eager ones."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._program.dummies import blank, layouts_of
from weft._program.record import record
from weft._program.switch import eager
from weft._program.trees import leaves_of, replaced
from weft._tape.modes import paused
from weft._tape.pytree import class_of
from weft.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import Compiled, _View
    from weft._program.function import ProgramFunction
    from weft._program.program import Program

#: Up to this many bytes a copy costs less than the test whether one is needed.
_FEW = 1 << 14


class _Bits:
    """An array's values, or the reason why it has none."""

    __slots__ = ("data", "facts")

    def __init__(self, value: Any, overwritten: Sequence[NDArray] = ()) -> None:
        """Take the bits in place; as a copy, if they are few or overlap arrays that are about to be overwritten."""
        self.data: bytes | np.ndarray[Any, Any] = b""
        self.facts: tuple[Any, ...]
        if not isinstance(value, (NDArray, np.ndarray, np.generic)):
            self.facts = class_of(value), repr(value)
            return
        try:
            array = _host(value)
        except Exception as error:  # noqa: BLE001 - the exceptions of ops are compared
            self.facts = type(error), str(error)
            return
        self.facts = array.shape, array.dtype
        if array.nbytes <= _FEW:
            self.data = array.tobytes()
        elif any(other is value or _overlap(array, other) for other in overwritten):
            self.data = np.array(array, order="C")
        else:
            self.data = np.ascontiguousarray(array)

    def differs(self, other: _Bits) -> bool:
        """Whether a bit, a shape, a dtype or an error differs."""
        if self.facts != other.facts:
            return True
        if isinstance(self.data, bytes) or isinstance(other.data, bytes):
            return self.data != other.data
        return any((ours != theirs).any() for ours, theirs in zip(_words(self.data), _words(other.data), strict=True))


def _words(data: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the bytes as words of eight, and the rest: the fastest form to compare, for any dtype."""
    flat = data.reshape(-1).view(np.uint8)
    whole = flat.size // 8 * 8
    return flat[:whole].view(np.uint64), flat[whole:]


def _overlap(array: np.ndarray[Any, Any], other: NDArray) -> bool:
    """Return whether two arrays may share memory; a failed array has no known place."""
    return other.exception() is not None or np.may_share_memory(array, _host(other))


def _host(value: Any) -> Any:
    return np.asarray(value)


def verified(function: ProgramFunction, program: Program, arguments: tuple[Any, ...]) -> Any:
    """Call a function eagerly, undo its changes, replay its program, and compare bits.

    Returns
    -------
    object
        The result of the replay.

    Raises
    ------
    CaptureError
        If a result, an argument or a state differs in a bit; the first op that differs is named.
    """
    leaves = function._leaves(arguments)
    named = [(f"argument {name!r}", leaf) for name, leaf in zip(program.arguments, leaves, strict=True)]
    named += [(f"state {number}", state) for number, state in enumerate(program.states)]
    watched = [(name, array) for name, array in named if isinstance(array, NDArray)]
    with paused():
        before = [_copy(array) for _, array in watched]
    versions = [array.version for _, array in watched]
    with eager():
        expected = function._call_of(arguments)
    wanted = [_Bits(leaf, [array for _, array in watched]) for leaf in leaves_of(expected)]
    changed = [
        _Bits(array, [array]) if copy is None or array.version != version else _Bits(copy)
        for (_, array), copy, version in zip(watched, before, versions, strict=True)
    ]
    with paused():
        for (_, array), copy, version in zip(watched, before, versions, strict=True):
            if array.version != version and copy is not None:
                array.copyfrom(copy)
    made = program._compiled.run(function._copied(leaves))
    result = function._result(program._structured, made, leaves)
    results = leaves_of(result)
    there = [array._gone is None for _, array in watched]  # an argument that was given away has no values any more
    wanted += compress(changed, there)
    watched = list(compress(watched, there))
    found = [_Bits(leaf) for leaf in results] + [_Bits(array) for _, array in watched]
    if len(found) != len(wanted) or any(ours.differs(theirs) for ours, theirs in zip(found, wanted, strict=True)):
        names = [f"result {number}" for number in range(len(results))] + [name for name, _ in watched]
        raise CaptureError(
            _difference(function, program, arguments, names, found, wanted, _makers(program, made, results))
        )
    return result


def _makers(program: Program, made: tuple[NDArray, ...], results: list[Any]) -> dict[str, int]:
    """Return the number of the op that writes last to each result, argument and state, by its name in messages."""
    buffers = program._compiled.result_buffers
    of_result: dict[int, int] = {}
    makers: dict[str, int] = {}
    for step in program._compiled.describe():
        for view in step["outputs"]:
            of_result[view["buffer"]] = step["number"]
            if view["kind"] == "argument" and view["number"] is not None:
                makers[f"argument {program.arguments[view['number']]!r}"] = step["number"]
            elif view["kind"] == "state" and view["number"] is not None:
                makers[f"state {view['number']}"] = step["number"]
    for number, result in enumerate(results):
        at = next((at for at, array in enumerate(made) if array is result), None)
        if at is not None and buffers[at] in of_result:
            makers[f"result {number}"] = of_result[buffers[at]]
    return makers


def _copy(array: NDArray) -> NDArray | np.ndarray[Any, Any] | None:
    """Return a copy, or None for a failed array.

    NumPy copies the host's arrays: a push would still be pending when the function runs, and all its ops would wait.
    """
    if array.exception() is not None:
        return None
    return np.array(_host(array)) if str(array.device).startswith("cpu") else array.copy()


def _difference(
    function: ProgramFunction,
    program: Program,
    arguments: tuple[Any, ...],
    names: list[str],
    found: list[_Bits],
    wanted: list[_Bits],
    makers: dict[str, int],
) -> str:
    """Describe the difference, and the first op that shows it."""
    first = ""
    if len(found) != len(wanted):
        what = f"it returns {len(found) - len(names)} more values"
    else:
        first = next(name for name, ours, theirs in zip(names, found, wanted, strict=False) if ours.differs(theirs))
        what = f"{first} differs"
    ours, theirs = _steps(program._compiled), _steps(_anew(function, arguments))
    for number, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            return (
                f"the program {program.name!r} is not what its function does: {what}, and op {number}, {one[0]!r}"
                f"{_at(one)}, is {other[0]!r}{_at(other)} by now; what the function depends on has changed unnoticed: "
                "pass it as an argument, or call clear()"
            )
    if len(ours) != len(theirs):
        longer = max(ours, theirs, key=len)[min(len(ours), len(theirs))]
        return (
            f"the program {program.name!r} is not what its function does: {what}, and op {min(len(ours), len(theirs))}, "
            f"{longer[0]!r}{_at(longer)}, is in one of them alone"
        )
    said = f"the program {program.name!r} does not give what its function gives: {what}, though both are the same ops"
    return said + _origin(program, makers.get(first))


def _origin(program: Program, maker: int | None) -> str:
    """Name the op that makes the difference, and the first op before it that may vary from run to run."""
    if maker is None:
        return ""
    steps = program._compiled.describe()
    before, todo = {maker}, [maker]
    while todo:
        new = set(steps[todo.pop()]["dependencies"]) - before
        before |= new
        todo += new

    def named(number: int) -> str:
        return f"op {number}, {steps[number]['name']!r}{_at((steps[number]['location'],))}"

    said = f"; {named(maker)}, makes it"
    unsure = next((number for number in sorted(before) if steps[number]["opaque"]), None)
    if unsure is None:
        return said
    which = "that" if unsure == maker else named(unsure)
    return f"{said}, and {which} is a callable, which need not do the same each time"


def _anew(function: ProgramFunction, arguments: tuple[Any, ...]) -> Compiled:
    settings = function._settings
    names = [parameter.name for parameter in settings.of(function._instance is not None)]
    by_name = {name: replaced(value, _there) for name, value in zip(names, arguments, strict=True)}
    return record(
        settings.name, settings.function, function._instance, by_name, settings.options, function._call_of
    ).compiled


def _there(array: Any) -> Any:
    """Return an array, or one of zeros in place of one that was given away to a replay."""
    if isinstance(array, NDArray) and array._gone is not None:
        return blank(layouts_of((array,), ()), array.engine)[0]
    return array


def _steps(compiled: Compiled) -> list[tuple[Any, ...]]:
    """Return the data of each op for comparisons; its name first, its line last."""

    def layout(view: _View) -> tuple[Any, ...]:
        return view["kind"], view["number"], view["shape"], view["dtype"], view["strides"], view["offset"]

    return [
        (
            step["name"],
            tuple(map(layout, step["inputs"])),
            tuple(map(layout, step["outputs"])),
            repr(step["numbers"]),
            step["location"],
        )
        for step in compiled.describe()
    ]


def _at(step: tuple[Any, ...]) -> str:
    return f" ({step[-1]})" if step[-1] else ""
