"""The references of code: names outside of it, and expressions of names with values that it uses."""

from __future__ import annotations

import dis
import types
import weakref
from typing import NamedTuple

#: Attributes of an array that say nothing of its values.
METADATA = frozenset({"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags", "device", "engine"})
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"}
_QUIET = {"CACHE", "PRECALL", "KW_NAMES", "EXTENDED_ARG", "NOP", "RESUME", "COPY_FREE_VARS", "MAKE_CELL", "NOT_TAKEN"}
#: Code inside of a function that runs where it stands.
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
#: Names of functions that reach memory in ways that no expression shows.
_DYNAMIC = {
    "globals",
    "locals",
    "vars",
    "getattr",
    "eval",
    "exec",
    "ctypes",
    "memmove",
    "string_at",
    "as_array",
    "frombuffer",
}

#: One step of an expression behind its name: an attribute, or an item with a constant key.
Step = tuple[str, object]


class Path(NamedTuple):
    """An expression of a name, attributes and constant items, as ``self.totals`` and ``state["mean"]``.

    Parameters
    ----------
    name : str
        A global, a name of an enclosing function, or a parameter.
    steps : tuple of (str, object)
        ``(".", "totals")`` and ``("[]", "mean")``.
    """

    name: str
    steps: tuple[Step, ...] = ()


class Passed(NamedTuple):
    """An expression with a value that is an argument of a call, and nothing else.

    Parameters
    ----------
    callee : Path
        The called expression.
    position : int
        Which argument it is; -1 for one with a name.
    value : Path
        The argument.
    """

    callee: Path
    position: int
    value: Path


class Names(NamedTuple):
    """The references of code.

    Parameters
    ----------
    outside : frozenset of str
        Globals and names of enclosing functions.
    attributes : frozenset of str
        All attributes that it names.
    loaded : frozenset of Path
        Expressions with values that it uses.
    passed : frozenset of Passed
        Expressions with values that it passes on.
    """

    outside: frozenset[str]
    attributes: frozenset[str]
    loaded: frozenset[Path]
    passed: frozenset[Passed]

    @property
    def is_dynamic(self) -> bool:
        """Whether it may reach memory in ways that no expression shows."""
        return not _DYNAMIC.isdisjoint(self.outside | self.attributes)


_names: weakref.WeakKeyDictionary[types.CodeType, Names] = weakref.WeakKeyDictionary()


def names_of(code: types.CodeType) -> Names:
    """Return the references of a code object and those inside it.

    Examples
    --------
    >>> from weft._doctor.code import names_of
    >>> names = names_of((lambda x: state["mean"].sum() + x.shape[0] + scaled(x)).__code__)
    >>> sorted(path.name for path in names.loaded), [(one.callee.name, one.value.name) for one in names.passed]
    (['scaled', 'state'], [('scaled', 'x')])
    """
    known = _names.get(code)
    if known is not None:
        return known
    reading = _Reading(code)
    for step in dis.get_instructions(code):
        reading.take(step)
    reading.end()
    outside, attributes, loaded, passed = reading.outside, reading.attributes, reading.loaded, reading.passed
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            deeper = names_of(inner)
            outside |= deeper.outside
            attributes |= deeper.attributes
            if inner.co_name in _COMPREHENSIONS:
                loaded |= {path for path in deeper.loaded if path.name in deeper.outside}
                passed |= {one for one in deeper.passed if one.value.name in deeper.outside}
    found = Names(frozenset(outside), frozenset(attributes), frozenset(loaded), frozenset(passed))
    _names[code] = found
    return found


class _Constant(NamedTuple):
    value: object


class _Reading:
    """The stack of one code object, as far as it holds expressions, instruction by instruction."""

    def __init__(self, code: types.CodeType) -> None:
        self.outside: set[str] = set()
        self.attributes: set[str] = set()
        self.loaded: set[Path] = set()
        self.passed: set[Passed] = set()
        self._parameters = {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}
        self._stack: list[Path | _Constant | None] = []

    def take(self, step: dis.Instruction) -> None:
        """Go on with an instruction."""
        if step.is_jump_target:
            self.end()
        if step.opname not in _QUIET and not self._load(step) and not self._take_up(step):
            effect = dis.stack_effect(step.opcode, step.arg, jump=False)
            taken = max(0, 1 - effect)
            for _ in range(min(taken, len(self._stack))):
                self._use(self._stack.pop())
            self._stack += [None] * (taken + effect)

    def _load(self, step: dis.Instruction) -> bool:
        """Put a name or a constant on the stack."""
        opname, value, stack = step.opname, step.argval, self._stack
        if opname in _LOADS:
            self.outside.add(value)
            stack += [Path(value), None] if "NULL" in step.argrepr else [Path(value)]
        elif opname.startswith("LOAD_FAST"):
            names: list[str] = [*value] if isinstance(value, tuple) else [value]  # pyright: ignore[reportUnknownVariableType]
            stack += [Path(name) if name in self._parameters else None for name in names]
        elif opname in {"LOAD_CONST", "LOAD_SMALL_INT"}:
            stack.append(_Constant(value))
        elif opname == "PUSH_NULL":
            stack.append(None)
        else:
            return False
        return True

    def _take_up(self, step: dis.Instruction) -> bool:
        """Go on from the top of the stack: by an attribute, an item, a call."""
        opname, value, stack = step.opname, step.argval, self._stack
        if opname in {"LOAD_ATTR", "LOAD_METHOD"}:
            self.attributes.add(value)
            found = self._next(".", value)
            stack += [found, None] if "NULL" in step.argrepr or opname == "LOAD_METHOD" else [found]
        elif opname == "BINARY_SUBSCR" or (opname == "BINARY_OP" and step.argrepr == "[]"):
            key = stack.pop() if stack else None
            if isinstance(key, _Constant):
                stack.append(self._next("[]", key.value))
            else:
                self._use(key)
                self._use(stack.pop() if stack else None)
                stack.append(None)
        elif opname == "COPY":
            stack.append(stack[-int(value)] if len(stack) >= value else None)
        elif opname == "SWAP":
            if len(stack) >= value:
                stack[-1], stack[-value] = stack[-value], stack[-1]
        elif opname in {"CALL", "CALL_KW"}:
            self._call(value, is_named=opname == "CALL_KW")
        else:
            return False
        return True

    def _next(self, kind: str, value: object) -> Path | None:
        """Return the expression that goes on from the last one on the stack."""
        path = self._stack.pop() if self._stack else None
        if not isinstance(path, Path) or (kind == "." and value in METADATA):
            return None
        return Path(path.name, (*path.steps, (kind, value)))

    def _call(self, count: int, *, is_named: bool) -> None:
        stack = self._stack
        if is_named and stack:
            stack.pop()  # the names
        arguments = stack[-count:] if count else []
        del stack[len(stack) - len(arguments) :]
        callee = next((one for one in reversed(stack[-2:]) if isinstance(one, Path)), None)
        for _ in range(min(2, len(stack))):
            self._use(stack.pop())
        for position, one in enumerate(arguments):
            if isinstance(one, Path) and callee is not None:
                self.passed.add(Passed(callee, -1 if is_named else position, one))
            else:
                self._use(one)
        stack.append(None)

    def _use(self, entry: object) -> None:
        if isinstance(entry, Path):
            self.loaded.add(entry)

    def end(self) -> None:
        """Note all expressions on the stack: their values are used."""
        for entry in self._stack:
            self._use(entry)
        self._stack.clear()
