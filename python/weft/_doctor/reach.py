"""The arrays that a callable reaches by name: closures, globals, attributes, lists, arguments."""

from __future__ import annotations

import dis
import functools
import types
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft._core import Engine, Variable
from weft._doctor.guards import is_array, is_mapping, is_row
from weft._engine.task_call import TaskCall
from weft._engine.task_handle import TaskHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Objects that are looked at for one callable.
_BUDGET = 4000
#: Items of a list or a dict that are looked at.
_ITEMS = 256
_DEPTH = 5
#: Attributes of an array that say nothing of its values.
_METADATA = frozenset({"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags", "device", "engine"})
_LEAVES = (str, bytes, int, float, complex, bool, type(None), np.generic, np.dtype, Engine, Variable, TaskHandle)
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_FOREIGN = {"numpy", "weft", "builtins", "threading", "logging", "functools", "typing", "asyncio"}


class Names(NamedTuple):
    """What code refers to.

    Parameters
    ----------
    outside : frozenset of str
        Globals and names of enclosing functions.
    attributes : frozenset of str
        All attributes that it names.
    loaded : frozenset of str
        Expressions of names and attributes whose values it uses, as ``totals`` and ``self.totals``.
    """

    outside: frozenset[str]
    attributes: frozenset[str]
    loaded: frozenset[str]


_names: weakref.WeakKeyDictionary[types.CodeType, Names] = weakref.WeakKeyDictionary()


def names_of(code: types.CodeType) -> Names:
    """Return what a code object and those inside it refer to."""
    known = _names.get(code)
    if known is not None:
        return known
    outside: set[str] = set()
    attributes: set[str] = set()
    loaded: set[str] = set()
    path = ""
    first = code.co_varnames[0] if code.co_argcount else None
    for step in dis.get_instructions(code):
        name = str(step.argval)
        if step.opname in _LOADS or (step.opname.startswith("LOAD_FAST") and name == first):
            loaded.add(path)
            path = name
            if step.opname in _LOADS:
                outside.add(name)
        elif step.opname in _ATTRIBUTES:
            attributes.add(name)
            if path:
                path = "" if name in _METADATA else f"{path}.{name}"
        elif step.opname not in {"CACHE", "PRECALL", "EXTENDED_ARG", "PUSH_NULL", "NOP"}:
            loaded.add(path)
            path = ""
    loaded.add(path)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            deeper = names_of(inner)
            outside |= deeper.outside
            attributes |= deeper.attributes
            loaded |= {each for each in deeper.loaded if each.partition(".")[0] in deeper.outside}
    found = Names(frozenset(outside), frozenset(attributes), frozenset(loaded - {""}))
    _names[code] = found
    return found


def reached(callable_: object) -> dict[str, Any]:
    """Return the arrays that a callable reaches, by the expressions that reach them.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.reach import reached
    >>> totals, rows = np.zeros(3), [np.ones(2), np.ones(2)]
    >>> sorted(reached(lambda: totals.sum() + rows[0].sum()))
    ['rows[0]', 'rows[1]', 'totals']
    """
    walk = _Walk()
    walk.call(callable_, 0)
    return walk.found


def loaded(callable_: object) -> frozenset[str]:
    """Return the expressions of names that a callable loads to use their values.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.reach import loaded
    >>> totals = np.zeros(3)
    >>> sorted(loaded(lambda x: x * totals[0])), sorted(loaded(lambda: totals.shape))
    (['totals'], [])
    """
    found: set[str] = set()
    for function in functions_of(callable_):
        names = names_of(function.__code__)
        found |= {each for each in names.loaded if each.partition(".")[0] in names.outside}
        first = function.__code__.co_varnames[:1]
        if function is not callable_ and first == ("self",):
            found |= {each for each in names.loaded if each.startswith("self.")}
    return frozenset(found)


def functions_of(callable_: Any) -> Iterator[types.FunctionType]:
    """Yield the Python functions that a callable runs first: without tasks, partials, bound methods, decorators."""
    for _ in range(16):
        if isinstance(callable_, TaskCall):
            callable_ = callable_._function
        elif isinstance(callable_, functools.partial):
            callable_ = callable_.func
        elif isinstance(callable_, types.MethodType):
            callable_ = callable_.__func__
        elif isinstance(callable_, types.FunctionType):
            yield callable_
            if "__wrapped__" not in callable_.__dict__:
                return
            callable_ = callable_.__dict__["__wrapped__"]
        else:
            method = None if isinstance(callable_, type) else vars(_class_of(callable_)).get("__call__")
            if not isinstance(method, types.FunctionType):
                return
            callable_ = method


class _Walk:
    """One walk over what a callable refers to."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._seen: set[int] = set()
        self._kept: list[object] = []  # whose identity is in `_seen`
        self._left = _BUDGET

    def call(self, callable_: Any, depth: int) -> None:
        """Walk over a callable."""
        if isinstance(callable_, TaskCall):
            names = _parameters(callable_._function, len(callable_._args))
            for name, value in zip(names, callable_._args, strict=False):
                self.visit(name, value, depth + 1)
            for name, value in callable_._kwargs.items():
                self.visit(name, value, depth + 1)
            self.call(callable_._function, depth)
        elif isinstance(callable_, functools.partial):
            names = _parameters(callable_.func, len(callable_.args))
            for name, value in (*zip(names, callable_.args, strict=False), *callable_.keywords.items()):
                self.visit(name, value, depth + 1)
            self.call(callable_.func, depth)
        elif isinstance(callable_, types.MethodType):
            self.visit("self", callable_.__self__, depth + 1)
            self.call(callable_.__func__, depth)
        elif isinstance(callable_, types.FunctionType):
            self._function(callable_, depth)
        elif not isinstance(callable_, (type, types.BuiltinFunctionType)):
            self.visit("self", callable_, depth + 1)
            for function in functions_of(callable_):
                self._function(function, depth)

    def _function(self, function: types.FunctionType, depth: int) -> None:
        if depth > _DEPTH or not self._enter(function):
            return
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                self.visit(name, cell.cell_contents, depth + 1, code)
            except ValueError:  # assigned later
                continue
        names = names_of(code)
        for name in sorted(names.outside & function.__globals__.keys()):
            self.visit(name, function.__globals__[name], depth + 1, code)
        for name, value in zip(
            reversed(code.co_varnames[: code.co_argcount]), reversed(function.__defaults__ or ()), strict=False
        ):
            self.visit(name, value, depth + 1)
        wrapped = function.__dict__.get("__wrapped__")
        if isinstance(wrapped, types.FunctionType):
            self._function(wrapped, depth + 1)

    def _enter(self, value: object) -> bool:
        if id(value) in self._seen or self._left <= 0:
            return False
        self._left -= 1
        self._seen.add(id(value))
        self._kept.append(value)
        return True

    def visit(self, path: str, value: Any, depth: int, code: types.CodeType | None = None) -> None:
        """Walk over an object that `path` names."""
        if isinstance(value, _LEAVES) or depth > _DEPTH:
            return
        if is_array(value):
            if self._enter(value):
                self.found.setdefault(path, value)
        elif isinstance(value, types.ModuleType):
            self._module(path, value, depth, code)
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            self._named(value, depth)
        elif self._enter(value):
            for name, item in _parts(value):
                self.visit(f"{path}{name}", item, depth + 1)
            if isinstance(value, memoryview):
                self.found.setdefault(path, value)

    def _named(self, function: Any, depth: int) -> None:
        if not _is_foreign(_module_of(function)):
            self.call(function, depth + 1)

    def _module(self, path: str, module: types.ModuleType, depth: int, code: types.CodeType | None) -> None:
        if code is not None and not _is_foreign(module.__name__):
            for name in sorted(names_of(code).attributes & vars(module).keys()):
                self.visit(f"{path}.{name}", vars(module)[name], depth + 1)


def _module_of(value: object) -> object:
    return getattr(value, "__module__", None)


def _is_foreign(module: object) -> bool:
    return str(module).partition(".")[0] in _FOREIGN


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a list, a dict or an object, with how an expression goes on that names them."""
    if is_row(value):
        yield from ((f"[{number}]", item) for number, item in enumerate(value[:_ITEMS]))
    elif is_mapping(value):
        for key, item in [*value.items()][:_ITEMS]:
            yield (f"[{key!r}]" if isinstance(key, (str, int)) else "", item)
    elif not _is_foreign(type(value).__module__):
        yield from ((f".{name}", item) for name, item in attributes_of(value))


def _class_of(value: object) -> type[Any]:
    return type(value)


def _own(value: object) -> dict[str, Any]:
    try:
        return {} if isinstance(value, type) else vars(value)
    except TypeError:
        return {}


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes that an object itself holds, without asking its class for any."""
    found = [*_own(value).items()][:_ITEMS]
    for kind in type.mro(_class_of(value)):
        for name, slot in vars(kind).items():
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    found.append((name, slot.__get__(value)))
                except AttributeError:
                    continue
    return [(name, item) for name, item in found if not str(name).startswith("__")]


def _parameters(function: Callable[..., object], count: int) -> list[str]:
    """Return names for so many positional arguments."""
    names: list[str] = []
    for plain in functions_of(function):
        names = [*plain.__code__.co_varnames[: plain.__code__.co_argcount]]
    return [names[at] if at < len(names) else f"argument {at}" for at in range(count)]
