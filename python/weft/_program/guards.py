"""The outer names of a function: closure cells, globals and attributes of `self`.

A rebound outer name makes another program. The names are read off the function's code once, and looked up before the
recording; the core then compares them at each call. The methods that a method calls on `self`, and functions of the
same module, are followed, too. The attributes of a bound method's object, of a callable object or of a
`functools.partial` are followed like those of `self`. A variable that is bound once, to such a path, stands for it.
Changes behind an item (``params["w"]``), a call or a property go unnoticed.
"""

from __future__ import annotations

import dis
import inspect
import types
import weakref
from abc import ABCMeta
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from weft._core import ArrayFunction, NDArray, Signatures
from weft._program.trees import describe
from weft._tape.pytree import class_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

#: Libraries whose modules keep their names while a program runs.
_SETTLED = ("weft", "numpy", "cupy", "scipy", "math", "builtins")
_EQUAL = (int, float, str)
_KEPT = (types.ModuleType, types.FunctionType, ArrayFunction, types.BuiltinFunctionType, type, type(None), bool)
#: Instructions that leave a value on the stack.
_TRANSPARENT = frozenset({"CACHE", "COPY", "DUP_TOP", "PUSH_NULL", "EXTENDED_ARG"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR"})
#: Instructions between the name `super` and the attribute of a `super()` without arguments.
_OF_SUPER = frozenset({"PRECALL", "CALL", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_BORROW"})
_STORES = ("STORE_FAST", "STORE_DEREF")
_TAKES_OTHERS = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
_MISSING = object()
#: Kinds of roots that are objects with attributes: the object itself stays the same.
_OWNERS = ("instance", "object")
#: The usual look-ups of attributes.
_PLAIN_LOOKUPS = (object.__getattribute__, types.SimpleNamespace.__getattribute__)
#: Metaclasses with Python's look-up of attributes.
_PLAIN_METACLASSES = (type, ABCMeta)


@dataclass(frozen=True, slots=True)
class Name:
    """A name, and its binding.

    Parameters
    ----------
    text : str
        As in the source: ``self.rate``.
    shown : str
        Its binding in words.
    token : object
        Equal for two of the same name with the same binding.
    guard : tuple
        For the core: kind of the root, its place, first name, further ones, kind of comparison, value to compare with.
    is_late : bool, default: False
        Whether the code may bind it anew before it reads it.
    """

    text: str
    shown: str
    token: object
    guard: tuple[Any, ...]
    is_late: bool = False

    def value(self) -> object:
        """Return the bound object; None if it is gone, or there was none."""
        how, what = self.guard[-2:]
        return what() if how == "alive" else what

    def is_rebound(self, instance: object) -> bool:
        """Return whether it has another binding by now; `instance` is that of a method."""
        kind, where, first, path, how, what = self.guard
        if kind in _OWNERS:
            value = instance if kind == "instance" else where()
        else:
            value = _contents(where) if kind == "cell" else where.get(first, _MISSING)
        for name in path:
            inner = _plain(value, name)
            value = _MISSING if inner is None else inner[0]
        return what() is not value if how == "alive" else _token(value) != self.token


@dataclass(frozen=True, slots=True)
class _Read:
    """One place in a code that reads a name: the kind of variable, its name, the attributes read from it.

    It is late if a place before it binds the name, or one that it begins with, anew.
    """

    kind: str
    name: str
    path: tuple[str, ...]
    is_late: bool = False


#: The beginning of what a method reads by `super()`.
_SUPER = _Read("super", "super", ())
#: Paths by the variables that stand for them.
_Aliases: TypeAlias = dict[str, _Read]


def names_of(
    function: Callable[..., Any], instance: object = None, running: Sequence[types.FrameType] = ()
) -> list[Name]:
    """Look up the outer names of a function in their present bindings.

    Parameters
    ----------
    function : callable
        A function of Python; others read nothing that can be seen.
    instance : object, optional
        The binding of its first parameter.
    running : sequence of frame, optional
        Calls under way whose variables are no outer names: each call of these has variables of its own.

    Returns
    -------
    list of Name
        Each name once.
    """
    found = _Found(running=running)
    first = () if instance is None else (_Bound(instance, ("instance", None, "self")),)
    _follow(function, first, found)
    return list(found.names.values())


@dataclass(slots=True)
class _Found:
    """The names found so far, and the code that was read for them."""

    names: dict[tuple[Any, ...], Name] = field(default_factory=dict)
    seen: set[tuple[int, ...]] = field(default_factory=set)
    running: Sequence[types.FrameType] = ()


@dataclass(frozen=True, slots=True)
class _Bound:
    """An object bound to a parameter in every call: its place for the core, and its name there."""

    value: object
    root: tuple[str, Any, str]


#: The values of the first parameters; None if their attributes are not read.
_Firsts: TypeAlias = "tuple[_Bound | None, ...]"


def _held(value: object, text: str) -> _Bound | None:
    """Return the object that a given function has bound to a parameter, as a method to `self`; None for a library's."""
    if _is_of_a_library(class_of(value)):
        return None
    return _Bound(value, ("object", partial(_itself, value), text))  # kept: it may exist only for this call


def _reference(value: object) -> Callable[[], object]:
    """Return a function for an object that keeps it only if there is no other way."""
    try:
        return weakref.ref(value)
    except TypeError:
        return partial(_itself, value)


def _itself(value: object) -> object:
    return value


def _opened(function: Any, first: _Firsts) -> tuple[Any, _Firsts]:
    """Return the Python function that runs in the end, or None, and the bindings of its first parameters."""
    while not isinstance(function, types.FunctionType):
        if isinstance(function, partial):  # a value given by name is a default, and counts as an argument
            first, function = (*(_held(value, "") for value in function.args), *first), function.func
        elif isinstance(function, types.MethodType):
            first, function = (_held(function.__self__, "self"), *first), function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            called = inspect.getattr_static(class_of(function), "__call__", None)
            if not isinstance(called, types.FunctionType):
                return None, ()
            first, function = (_held(function, "self"), *first), called
    return function, first


def _follow(function: Any, first: _Firsts, found: _Found) -> None:
    function, first = _opened(function, first)
    if function is None:
        return
    code = function.__code__
    parameters = zip(code.co_varnames[: code.co_argcount], first, strict=False)
    bound = {name: each for name, each in parameters if each is not None}
    key = id(code), *(id(each.value) for each in bound.values())
    if key in found.seen:
        return
    found.seen.add(key)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for read in _reads(code):
        if read.name in bound and read.kind in {"local", "cell"}:
            owner = bound[read.name]
            own = owner.root[0] == "instance" or not _is_of_a_library(function)
            _attribute(read, owner, found, enter=own)
        elif read.kind == "cell" and read.name in cells:
            _cell(read, cells[read.name], function, found)
        elif read.kind == "global":
            value = function.__globals__.get(read.name, _MISSING)
            _enter(found, read, value, ("global", function.__globals__, read.name))
            _neighbour(value, function, found)
        elif read.kind == "super" and read.path:
            _follow_inherited(read.path[0], first, cells, found)
    if hasattr(function, "__wrapped__"):  # the function under a decorator
        _follow(function.__wrapped__, first, found)  # pyright: ignore[reportFunctionMemberAccess] # it is there


def _cell(read: _Read, cell: types.CellType, function: types.FunctionType, found: _Found) -> None:
    """Enter a variable of an enclosing function."""
    value = _contents(cell)
    if not any(_is_variable_of(frame, function.__code__, read.name, value) for frame in found.running):
        _enter(found, read, value, ("cell", cell, read.name))
    elif not _is_settled(value):  # bound at each call; what it is bound to may be from outside
        _enter(found, read, value, ("object", _reference(value), read.name))
    _neighbour(value, function, found)


def _is_variable_of(frame: types.FrameType, code: types.CodeType, name: str, value: object) -> bool:
    """Return whether a name that a function of this code reads is a variable of a call, which made the function."""
    if name not in frame.f_code.co_cellvars or not _holds(frame.f_code, code):
        return False
    return frame.f_locals.get(name, _MISSING) is value


def _holds(outer: types.CodeType, code: types.CodeType) -> bool:
    inner = [each for each in outer.co_consts if isinstance(each, types.CodeType)]
    return code in inner or any(_holds(each, code) for each in inner)


def _neighbour(value: object, function: types.FunctionType, found: _Found) -> None:
    """Follow a function of the same module."""
    if isinstance(value, types.FunctionType) and value.__globals__ is function.__globals__:
        _follow(value, (), found)


def _attribute(read: _Read, owner: _Bound, found: _Found, *, enter: bool) -> None:
    """Enter a path from `self`, or follow the method that it names."""
    if not read.path:
        return
    method = inspect.getattr_static(type(owner.value), read.path[0], None)
    if isinstance(method, types.FunctionType) and read.path[0] not in getattr(owner.value, "__dict__", {}):
        _follow(method, (owner,), found)
        return
    if not enter:
        return
    kind, where, text = owner.root
    _enter(found, read, owner.value, (kind, where, text or read.name))


def _follow_inherited(name: str, first: _Firsts, cells: Mapping[str, types.CellType], found: _Found) -> None:
    """Follow the method that ``super()`` finds, in a method of this first parameter."""
    if not first or first[0] is None or "__class__" not in cells:
        return
    order: tuple[type, ...] = class_of(first[0].value).__mro__
    below: Any = _contents(cells["__class__"])
    above = order[order.index(below) + 1 :] if below in order else ()
    method = next((vars(each)[name] for each in above if name in vars(each)), None)
    if isinstance(method, types.FunctionType):
        _follow(method, first[:1], found)


def _enter(found: _Found, read: _Read, value: object, root: tuple[str, Any, str]) -> None:
    """Enter a name with as much of its path as is plain attributes."""
    taken: list[str] = []
    if root[0] in _OWNERS or not _is_settled(value):
        for name in read.path:
            inner = _plain(value, name)
            if inner is None:
                break
            value = inner[0]
            taken.append(name)
    if root[0] in _OWNERS and not taken:
        return
    key = (root[0], id(root[1]), root[2], tuple(taken))
    if key not in found.names or (found.names[key].is_late and not read.is_late):
        how, what = _compared(value)
        shown = "unbound" if value is _MISSING else describe(value)
        guard = *root, tuple(taken), how, what
        found.names[key] = Name(".".join((root[2], *taken)), shown, _token(value), guard, read.is_late)


def _token(value: object) -> object:
    """Return what is equal for two bindings if they are the same."""
    return (type(value), repr(value)) if type(value) in _EQUAL else id(value)


def _compared(value: object) -> tuple[str, Any]:
    """Return the kind of comparison for a value, and the object to keep for it."""
    if value is _MISSING:
        return "unbound", None
    if type(value) in _EQUAL:
        return "equal", value
    if isinstance(value, (NDArray, *_KEPT)):
        return "same", value
    try:
        return "alive", weakref.ref(value)
    except TypeError:
        return "same", value


def _plain(value: Any, name: str) -> tuple[Any] | None:  # noqa: PLR0911 - any object; one line for each way to be read
    """Return an attribute that can be read without running code of a user's; None for others."""
    if isinstance(value, types.ModuleType):
        return (value.__dict__[name],) if name in value.__dict__ else None
    if isinstance(value, (NDArray, types.FunctionType, ArrayFunction, Signatures)):
        return None
    kind = class_of(value)
    if isinstance(value, type):
        found = inspect.getattr_static(value, name, _MISSING) if kind in _PLAIN_METACLASSES else _MISSING
        return None if found is _MISSING or hasattr(class_of(found), "__get__") else (found,)
    if kind.__getattribute__ not in _PLAIN_LOOKUPS:
        return None
    of_class = inspect.getattr_static(kind, name, _MISSING)
    if isinstance(of_class, types.MemberDescriptorType):
        inner = getattr(value, name, _MISSING)
        return None if inner is _MISSING else (inner,)
    if hasattr(class_of(of_class), "__set__"):
        return None
    own = getattr(value, "__dict__", {})
    if name in own:
        return (own[name],)
    if of_class is _MISSING or hasattr(class_of(of_class), "__get__"):
        return None
    return (of_class,)


def _is_settled(value: object) -> bool:
    """Return whether a value is a module of a library, with names that are never rebound."""
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _SETTLED


def _is_of_a_library(value: types.FunctionType | type) -> bool:
    """Return whether a function or a class comes from one of these: they look after their own state."""
    return (value.__module__ or "").partition(".")[0] in _SETTLED


def _contents(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


@cache
def _reads(code: types.CodeType) -> tuple[_Read, ...]:
    """Return the reads of a code, nested functions included."""
    written: set[tuple[str, tuple[str, ...]]] = set()
    found: dict[_Read, None] = {}
    for read, store in _occurrences(code):
        if store:
            written.add((read.name, read.path))
        else:
            late = any((read.name, read.path[:length]) in written for length in range(1, len(read.path) + 1))
            found[replace(read, is_late=late)] = None
    return tuple(found)


def _occurrences(code: types.CodeType, aliases: _Aliases | None = None) -> Iterator[tuple[_Read, bool]]:
    """Yield the reads and writes of a code in order, each with whether it writes.

    A variable that is bound once, to a path, stands for it; `aliases` has those of the functions around this one.
    """
    aliases, single = dict(aliases or {}), _bound_once(code)
    current: _Read | None = None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name in _TRANSPARENT or (current == _SUPER and name in _OF_SUPER):
            continue
        if current is not None and name in _ATTRIBUTES:
            current = replace(current, path=(*current.path, str(instruction.argval)))
            if name != "STORE_ATTR":
                continue
        if current is not None:
            yield current, name == "STORE_ATTR"
            target = _target(instruction)
            if target in single:
                aliases[target] = current
        current = _begun(instruction, aliases)
    if current is not None:
        yield current, False
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _occurrences(constant, _seen_from(constant, aliases))
            yield from (found for found in inner if found[0].kind != "local")


def _seen_from(inner: types.CodeType, aliases: _Aliases) -> _Aliases:
    """Return the aliases that a nested code refers to."""
    return {
        name: replace(read, kind="cell") if read.kind == "local" else read
        for name, read in aliases.items()
        if name in inner.co_freevars
    }


def _begun(instruction: dis.Instruction, aliases: _Aliases) -> _Read | None:
    """Return the read that an instruction begins, if it reads a variable."""
    name, argument = instruction.opname, instruction.argval
    if name == "LOAD_GLOBAL":
        return _SUPER if argument == _SUPER.name else _Read("global", str(argument), ())
    if name in {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}:
        return aliases.get(str(argument), _Read("cell", str(argument), ()))
    if "LOAD_FAST" in name:  # since Python 3.13 perhaps after another load, or a store, in one instruction
        last = str(argument if isinstance(argument, str) else argument[-1])
        return aliases.get(last, _Read("local", last, ()))
    return None


def _target(instruction: dis.Instruction) -> str:
    """Return the variable that an instruction stores the value on top of the stack in; no name for others."""
    if not instruction.opname.startswith(_STORES):
        return ""
    argument = instruction.argval
    return str(argument if isinstance(argument, str) else argument[0])


def _bound_once(code: types.CodeType) -> set[str]:
    """Return the variables that a code binds in one place, and that are no parameters."""
    stores: list[str] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith((*_STORES, "DELETE_FAST", "DELETE_DEREF")):
            argument = instruction.argval
            both = instruction.opname == "STORE_FAST_STORE_FAST"
            stores += argument if both else [argument if isinstance(argument, str) else argument[0]]
    count = code.co_argcount + code.co_kwonlyargcount + sum(bool(code.co_flags & flag) for flag in _TAKES_OTHERS)
    return {name for name in stores if stores.count(name) == 1 and name not in code.co_varnames[:count]}
