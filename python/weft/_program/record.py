"""One recording of a function."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import _core
from weft._array.creation import asarray
from weft._core import NDArray
from weft._default import get_engine
from weft._program.names import Name, names_of
from weft._program.trees import arrays_of, check_kept, describe, replaced, structure_of
from weft._tape.leaves import is_leaf, is_open
from weft.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from weft._core import Compiled, Engine
    from weft._program.trees import Structure

__all__ = [
    "Options",
    "Recorded",
    "copied",
    "engine_for",
    "inlining",
    "is_recording",
    "noting",
    "record",
]

_threads = threading.local()


@dataclass(frozen=True, slots=True)
class Options:
    """How programs are planned and run, as given to `weft.program`."""

    memory: str = "balanced"
    sequential: bool = False
    passes: tuple[str, ...] | None = None
    donate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording, planned.

    Parameters
    ----------
    compiled : Compiled
        What is replayed.
    structure : tuple
        What a call returns, made of what a replay returns.
    names : sequence of Name
        What the function, and programs inlined in it, read elsewhere: as it was before the recording.
    arguments : sequence of str
        For each array that a replay takes, the parameter that it comes from.
    known : sequence of NDArray
        The arrays among what those names are bound to.
    heard : bool
        Whether gradients may be asked for of what a call returns or changes: a replay would not be on the tape.
    """

    compiled: Compiled
    structure: Structure
    names: Sequence[Name]
    arguments: Sequence[str]
    heard: bool
    known: Sequence[NDArray]


def engine_for(leaves: Sequence[Any]) -> Engine:
    """Return the engine of a call: that of its arrays, or else the default one."""
    return next((leaf.engine for leaf in leaves if isinstance(leaf, NDArray)), None) or get_engine()


def copied(leaves: Sequence[Any], engine: Engine) -> tuple[NDArray, ...]:
    """Return the arrays of a call with NumPy's copied."""
    return tuple(leaf if isinstance(leaf, NDArray) else asarray(leaf, copy=True, engine=engine) for leaf in leaves)


def inlining(function: Callable[..., Any], instance: object) -> bool:
    """Note what a program reads that is called while this thread records another, and return whether it does."""
    names: dict[Any, Name] | None = getattr(_threads, "names", None)
    if names is None:
        return False
    for name in names_of(function, instance):
        if instance is not None and name.guard[0] == "instance":
            name = _rooted(name, instance)  # noqa: PLW2901 - the same name, seen from outside
        names.setdefault((name.text, id(name.guard[1])), name)
    return True


def is_recording() -> bool:
    """Return whether this thread records."""
    return _core.recording() is not None


def noting(names: dict[Any, Name] | None) -> None:
    """Note what inlined programs read here, while this thread records; None ends it."""
    _threads.names = names


def record(
    title: str,
    function: Callable[..., Any],
    instance: object,
    arguments: dict[str, Any],
    options: Options,
    call: Callable[[Sequence[Any]], Any],
) -> Recorded:
    """Run a function once without running any of its ops, and plan what it would do.

    Parameters
    ----------
    title : str
        The program's name.
    function : callable
        Whose code says what is read elsewhere.
    instance : object
        What its first parameter is bound to, or None.
    arguments : dict
        The arguments by name, in the order of the parameters.
    options : Options
        How to plan.
    call : callable
        Calls the function with arguments in that order.

    Raises
    ------
    CaptureError
        If the function asks for a value, or changes a container that it was given.
    """
    per_name = {name: arrays_of(value) for name, value in arguments.items()}
    leaves = [leaf for found in per_name.values() for leaf in found]
    engine = engine_for(leaves)
    given = copied(leaves, engine)
    names = {(name.text, id(name.guard[1])): name for name in names_of(function, instance)}
    recording = _core.Recording(engine, title)
    recording.begin()
    noting(names)
    try:
        placeholders = [
            recording.argument(array, readonly=isinstance(leaf, np.ndarray))
            for array, leaf in zip(given, leaves, strict=True)
        ]
        for placeholder, leaf in zip(placeholders, leaves, strict=True):
            if isinstance(leaf, NDArray) and leaf.requires_grad:
                placeholder.requires_grad = True
        passed = list(_replaced(arguments, iter(placeholders)))
        kept = list(_replaced(arguments, iter(placeholders)))
        result = call(passed)
        for name, value, copy in zip(arguments, passed, kept, strict=True):
            check_kept(name, value, copy)
    except RecursionError as error:
        recording.abort()
        raise CaptureError(f"the program {title!r} calls itself without end: {error}") from error
    except BaseException as error:
        recording.abort()
        if isinstance(error, CaptureError) and arguments:
            shown = ", ".join(f"{name}: {describe(value)}" for name, value in arguments.items())
            error.add_note(f"while recording {title}({shown})")
        raise
    finally:
        noting(None)
    try:
        recording.end()
        made: list[NDArray] = []
        known = [name.guard[-1] for name in names.values() if isinstance(name.guard[-1], NDArray)]
        known.extend(recording.states())
        places = {id(placeholder): at for at, placeholder in enumerate(placeholders)}
        structure = structure_of(result, made, places, lambda array: any(array is each for each in known))
        heard = any(is_open(array) for array in (*made, *(x for x in (*placeholders, *known) if not is_leaf(x))))
    except BaseException:
        recording.abort()
        raise
    owners = [name for name, found in per_name.items() for _ in found]
    returned = {places.get(id(array)) for array in arrays_of(result)}
    compiled = recording.finish(
        tuple(made),
        sequential=options.sequential,
        memory=options.memory,
        passes=options.passes,
        donate=[number for number, name in enumerate(owners) if name in options.donate and number not in returned],
    )
    bound = [array for name in names.values() for array in arrays_of(name.guard[-1]) if isinstance(array, NDArray)]
    bound = [array for array in bound if any(array._shares_buffer(state) for state in compiled.states)]
    return Recorded(compiled, structure, tuple(names.values()), owners, heard, bound)


def _replaced(arguments: dict[str, Any], placeholders: Iterator[NDArray]) -> Iterator[Any]:
    for value in arguments.values():
        yield replaced(value, lambda _: next(placeholders))


def _rooted(name: Name, instance: object) -> Name:
    """Return a name of ``self`` as one that starts from the instance itself."""
    guard = ("object", weakref.ref(instance), *name.guard[2:])
    return Name(f"{type(instance).__name__}.{name.text.partition('.')[2]}", name.shown, name.token, guard)
