"""The arrays that a callable reaches by name: closures, globals, attributes, lists, arguments."""

from __future__ import annotations

import functools
import types
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import Engine, Variable
from weft._doctor.code import names_of
from weft._doctor.guards import as_row, is_array, is_mapping, is_scalar
from weft._engine.task_call import GuardedCall, TaskCall
from weft._engine.task_handle import TaskHandle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Objects that are looked at for one callable.
_BUDGET = 4000
#: Items of a list or a dict that are looked at.
_ITEMS = 256
_DEPTH = 5
_LEAVES = (str, bytes, int, float, complex, bool, type(None), np.generic, np.dtype, Engine, Variable, TaskHandle)
_FOREIGN = {"numpy", "weft", "builtins", "threading", "logging", "functools", "typing", "asyncio"}


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


def _called_by(callable_: Any) -> Any:
    """Return what a task's call, a partial or a bound method calls, or None."""
    if isinstance(callable_, GuardedCall):
        return callable_._call
    if isinstance(callable_, TaskCall):
        return callable_._function
    if isinstance(callable_, functools.partial):
        return callable_.func
    return callable_.__func__ if isinstance(callable_, types.MethodType) else None


def functions_of(callable_: Any) -> Iterator[types.FunctionType]:
    """Yield the Python functions that a callable runs first: without tasks, partials, bound methods, decorators."""
    for _ in range(16):
        called = _called_by(callable_)
        if called is not None:
            callable_ = called
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


def code_of(callable_: Any) -> object:
    """Return the code that a callable runs first, or its class.

    Examples
    --------
    >>> from weft._doctor.reach import code_of
    >>> makers = [lambda: turn for turn in range(2)]
    >>> code_of(makers[0]) is code_of(makers[1]), code_of(print).__name__
    (True, 'builtin_function_or_method')
    """
    for _ in range(16):
        called = _called_by(callable_)
        if called is None:
            break
        callable_ = called
    return callable_.__code__ if isinstance(callable_, types.FunctionType) else _class_of(callable_)


class _Walk:
    """One walk over the references of a callable."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._seen: set[int] = set()
        self._kept: list[object] = []  # as long as their identities are in `_seen`
        self._left = _BUDGET

    def call(self, callable_: Any, depth: int) -> None:
        """Walk over a callable."""
        if isinstance(callable_, GuardedCall):
            callable_ = callable_._call
        given = arguments_of(callable_)
        if given is not None:
            function, arguments = given
            for name, value in arguments.items():
                self.visit(name, value, depth + 1)
            self.call(function, depth)
        elif isinstance(callable_, types.MethodType):
            owner = callable_.__self__
            self.visit(owner.__name__ if isinstance(owner, type) else "self", owner, depth + 1)
            self.call(callable_.__func__, depth)
        elif isinstance(callable_, types.FunctionType):
            self._function(callable_, depth)
        elif isinstance(callable_, types.BuiltinMethodType):
            self.visit("", callable_.__self__, depth + 1)
        elif not isinstance(callable_, type):
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
        elif type(value) is weakref.ref:  # not one of a class of the script's
            self.visit(f"{path}()", value(), depth, code)
        elif self._enter(value):
            for name, item in _parts(value):
                self.visit(f"{path}{name}".lstrip("."), item, depth + 1)
            if isinstance(value, memoryview):
                self.found.setdefault(path, value)

    def _named(self, function: Any, depth: int) -> None:
        if isinstance(function, functools.partial) or not is_foreign(module_of(function)):
            self.call(function, depth + 1)

    def _module(self, path: str, module: types.ModuleType, depth: int, code: types.CodeType | None) -> None:
        if code is not None and not is_foreign(module.__name__):
            for name in sorted(names_of(code).attributes & vars(module).keys()):
                self.visit(f"{path}.{name}", vars(module)[name], depth + 1)


def module_of(value: object) -> object:
    """Return the module that an object says it is of."""
    return getattr(value, "__module__", None)


def is_foreign(module: object) -> bool:
    """Return whether nothing of a user's is in a module."""
    return str(module).partition(".")[0] in _FOREIGN


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a list, a dict, an object or a class, with how an expression goes on that names them."""
    row = as_row(value, _ITEMS)
    if row is not None:
        yield from ((f"[{number}]", item) for number, item in enumerate(row))
    elif is_mapping(value):
        for key, item in [*value.items()][:_ITEMS]:
            yield (f"[{key!r}]" if isinstance(key, (str, int)) else "", item)
    if not is_foreign((value if isinstance(value, type) else type(value)).__module__):
        yield from ((f".{name}", item) for name, item in attributes_of(value))


def _class_of(value: object) -> type[Any]:
    return type(value)


def _own(value: object) -> dict[str, Any]:
    try:
        return {} if isinstance(value, type) else vars(value)
    except TypeError:
        return {}


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes that an object itself holds, and values that its classes do, without asking these for any."""
    own = _own(value)
    found = [*own.items()][:_ITEMS]
    for kind in type.mro(value if isinstance(value, type) else _class_of(value)):
        for name, held in [*vars(kind).items()]:
            if isinstance(held, types.MemberDescriptorType) and not isinstance(value, type):
                try:
                    found.append((name, held.__get__(value)))
                except AttributeError:
                    continue
            elif name not in own and (is_array(held) or is_mapping(held) or as_row(held, 0) is not None):
                found.append((name, held))
    return [(name, item) for name, item in found if not str(name).startswith("__")]


def arguments_of(callable_: Any) -> tuple[Callable[..., object], dict[str, Any]] | None:
    """Return the function of a task's call or of a partial, and its arguments by the names of their parameters; None for others."""
    if isinstance(callable_, TaskCall):
        function, args, kwargs = callable_._function, callable_._args, callable_._kwargs
    elif isinstance(callable_, functools.partial):
        function, args, kwargs = callable_.func, callable_.args, callable_.keywords
    else:
        return None
    names: list[str] = []
    for plain in functions_of(function):
        names = [*plain.__code__.co_varnames[: plain.__code__.co_argcount]]
        if isinstance(function, types.MethodType):
            names = names[1:]
    numbered = [names[at] if at < len(names) else f"argument {at}" for at in range(len(args))]
    return function, {**dict(zip(numbered, args, strict=True)), **kwargs}


def closed_over(callable_: Any) -> Iterator[object]:
    """Yield the numbers and texts in the closures, defaults and arguments of a callable.

    Examples
    --------
    >>> from weft._doctor.reach import closed_over
    >>> rate = 0.5
    >>> [*closed_over(lambda turn=3: turn)]
    [3]
    """
    if isinstance(callable_, functools.partial):
        yield from filter(is_scalar, (*callable_.args, *callable_.keywords.values()))
    for function in functions_of(callable_):
        yield from filter(is_scalar, (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # assigned later
                continue
            if is_scalar(value):
                yield value
