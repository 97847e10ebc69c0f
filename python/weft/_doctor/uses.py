"""The arrays that a callable is certain to use: names, attributes, constant items, methods and properties behind them."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from weft._doctor.code import names_of
from weft._doctor.guards import is_array, is_mapping, is_row
from weft._doctor.reach import arguments_of, attributes_of, functions_of, is_foreign, module_of
from weft._engine.observers import PACKAGE
from weft._engine.task_call import GuardedCall

if TYPE_CHECKING:
    from weft._doctor.code import Passed, Path

#: Functions that are read for one callable.
_BUDGET = 200
_MISSING = object()
#: Methods and functions that wait for their arguments, or declare them.
_PUSHES = frozenset(
    {"push", "push_async", "push_native", "variable_of", "wait", "wait_to_read", "wait_for_var", "submit"}
)


def used(callable_: object) -> dict[int, tuple[str, Any]]:
    """Return the arrays that a callable uses, by their identities, with expressions that reach them.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.uses import used
    >>> totals = np.zeros(3)
    >>> [name for name, _ in used(lambda x: x * totals[0]).values()], used(lambda: totals.shape)
    (['totals'], {})
    """
    uses = _Uses()
    uses.call(callable_)
    return uses.found


def is_dynamic(callable_: object) -> bool:
    """Return whether a callable may reach memory in ways that no expression shows.

    Examples
    --------
    >>> from weft._doctor.uses import is_dynamic
    >>> is_dynamic(lambda: globals()["table"]), is_dynamic(lambda: table)
    (True, False)
    """
    return any(names_of(function.__code__).is_dynamic for function in functions_of(callable_))


class _Uses:
    """One walk over the functions that a callable runs."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[str, Any]] = {}
        self._seen: set[tuple[object, int]] = set()
        self._left = _BUDGET

    def call(self, callable_: Any, given: dict[str, tuple[str, Any]] | None = None) -> None:
        """Walk over a callable with some of its arguments, and how expressions name these."""
        if isinstance(callable_, GuardedCall):
            callable_ = callable_._call
        known = arguments_of(callable_)
        if known is not None:
            function, arguments = known
            self.call(function, {**{name: (name, value) for name, value in arguments.items()}, **(given or {})})
        elif isinstance(callable_, types.MethodType):
            owner: Any = callable_.__self__
            shown = str(owner.__name__) if isinstance(owner, type) else "self"
            self._method(callable_.__func__, shown, owner, given)
        elif isinstance(callable_, types.FunctionType):
            self._function(callable_, given or {})
        elif isinstance(callable_, types.BuiltinMethodType):
            self._end("", callable_.__self__)
        elif not isinstance(callable_, type):
            for function in functions_of(callable_):
                self._method(function, "self", callable_, given)

    def _method(self, function: Any, path: str, owner: Any, given: dict[str, tuple[str, Any]] | None = None) -> None:
        if isinstance(function, types.FunctionType):
            first = function.__code__.co_varnames[:1]
            self._function(function, {**dict.fromkeys(first, (path, owner)), **(given or {})})

    def _function(self, function: types.FunctionType, given: dict[str, tuple[str, Any]]) -> None:
        code = function.__code__
        key = code, hash(tuple(id(value) for _, value in given.values()))
        if self._left <= 0 or key in self._seen:
            return
        self._left -= 1
        self._seen.add(key)
        roots = _roots(function, given)
        local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}

        def root_of(path: Path) -> tuple[str, Any] | None:
            if path.name in roots or path.name in local or path.name not in function.__globals__:
                return roots.get(path.name)
            return path.name, function.__globals__[path.name]

        names = names_of(code)
        for path in names.loaded:
            root = root_of(path)
            if root is not None:
                self._end(*self._follow(path, *root))
        for one in names.passed:
            root, callee = root_of(one.value), root_of(one.callee)
            if root is not None:
                self._pass(one, root, callee)
        wrapped = function.__dict__.get("__wrapped__")
        if isinstance(wrapped, types.FunctionType):
            self._function(wrapped, given)

    def _pass(self, one: Passed, root: tuple[str, Any], callee: tuple[str, Any] | None) -> None:
        """Follow an argument into the callee: a task declares it, or it is an op of its own that reads it."""
        if one.callee.steps and one.callee.steps[-1][1] in _PUSHES:
            return
        found = self._follow(one.value, *root)
        called = None if callee is None else self._follow(one.callee, *callee)[1]
        if isinstance(called, types.FunctionType):
            if called.__code__.co_filename.startswith(PACKAGE) and hasattr(called, "__wrapped__"):
                return
            names = called.__code__.co_varnames[: called.__code__.co_argcount]
            if not is_foreign(module_of(called)) and 0 <= one.position < len(names):
                self._function(called, {names[one.position]: found})
                return
        self._end(*found)

    def _follow(self, path: Path, shown: str, value: Any) -> tuple[str, Any]:
        """Return the expression and the object that a path reaches from an object on; code that runs on the way is walked over."""
        for kind, step in path.steps:
            if is_array(value):
                break
            if kind == ".":
                held = _attribute(value, str(step))
                if self._runs(held, shown, value):
                    return shown, None
                value, shown = held, f"{shown}.{step}"
            else:
                value, shown = _item(value, step), f"{shown}[{step!r}]"
        return shown, value

    def _runs(self, held: Any, shown: str, owner: Any) -> bool:
        """Walk over the code of an attribute of an object, that of a property or of a method. Return whether it has any."""
        if isinstance(held, (property, functools.cached_property)):
            self._method(held.fget if isinstance(held, property) else held.func, shown, owner)
        elif isinstance(held, classmethod):
            function: Any = held.__func__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            self._method(function, shown, owner if isinstance(owner, type) else type(owner))
        elif isinstance(held, staticmethod):
            self._end(shown, held.__func__)
        elif isinstance(held, types.FunctionType) and not isinstance(owner, (type, types.ModuleType)):
            if not is_foreign(module_of(held)):
                self._method(held, shown, owner)
        else:
            return False
        return True

    def _end(self, shown: str, value: Any) -> None:
        if is_array(value) or value.__class__ is memoryview:
            self.found.setdefault(id(value), (shown, value))
        elif isinstance(value, functools.partial) or (
            isinstance(value, (types.FunctionType, types.MethodType)) and not is_foreign(module_of(value))
        ):
            self.call(value)


def _roots(function: types.FunctionType, given: dict[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    """Return the values of a function's parameters and of the names of its enclosing functions, as far as they are known."""
    code = function.__code__
    defaults = dict(
        zip(reversed(code.co_varnames[: code.co_argcount]), reversed(function.__defaults__ or ()), strict=False)
    )
    roots = {name: (name, value) for name, value in {**defaults, **(function.__kwdefaults__ or {})}.items()} | given
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            roots[name] = name, cell.cell_contents
        except ValueError:  # assigned later
            continue
    return roots


def _item(value: Any, key: Any) -> Any:
    if is_row(value) or is_mapping(value):
        try:
            return value[key]
        except (LookupError, TypeError):
            pass
    return None


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute without running anything of a user's: the class's object, for a property or a method."""
    if isinstance(value, types.ModuleType):
        return vars(value).get(name, _MISSING)
    kind = value if isinstance(value, type) else type(value)
    if is_foreign(kind.__module__):
        return _MISSING
    for known, item in attributes_of(value):
        if known == name:
            return item
    for each in type.mro(kind):
        if name in vars(each):
            return vars(each)[name]
    return _MISSING
