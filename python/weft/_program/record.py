"""One recording of a function."""

from __future__ import annotations

import sys
import weakref
from contextvars import ContextVar
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import _core
from weft._core import NDArray, Scope
from weft._engine.default import get_engine
from weft._engine.guards import end_recording
from weft._ops.creation import asarray
from weft._program.backward import Graded, Inseparable
from weft._program.foreign_rng import Generators
from weft._program.guards import Name, names_of
from weft._program.trees import arrays_of, check_kept, describe, replaced, structure_of
from weft._tape.leaves import is_own_leaf, is_stored
from weft.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType

    from weft._core import Compiled, Engine
    from weft._program.backward import Pull
    from weft._program.tape_node import Parted
    from weft._program.trees import Structure

#: What stands for the arrays of a call in the recording of this context, each with its array.
_ARGUMENTS: ContextVar[tuple[tuple[NDArray, Any], ...]] = ContextVar("weft.program.arguments", default=())


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `weft.program` for plans and runs."""

    memory: str = "balanced"
    sequential: bool = False
    passes: tuple[str, ...] | None = None
    donate: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """A planned recording.

    Parameters
    ----------
    compiled : Compiled
        The compiled recording.
    structure : tuple
        The structure of a call's result, made from a replay's results.
    names : sequence of Name
        The outer names of the function, and of programs inlined in it, before the recording.
    arguments : sequence of str
        For each array that a replay takes, the parameter that it comes from.
    known : sequence of NDArray
        The arrays among the bindings of those names.
    drawn : sequence of str
        Generators of other libraries that were drawn from.
    heard : bool
        Whether a gradient may be requested of a call's results or changes: a replay would not be on the tape.
    pull, parted : optional
        The way back, if it is a program of its own, and both parts. `compiled` is the first one then.
    """

    compiled: Compiled
    structure: Structure
    names: Sequence[Name]
    arguments: Sequence[str]
    heard: bool
    pull: Pull | None = None
    parted: Parted | None = None
    known: Sequence[NDArray] = ()
    drawn: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tape:
    """How the tape knows the arguments of a recorded call, and whether the way back is wanted.

    Parameters
    ----------
    standings : sequence of int
        Of each array: 0 not at all, 1 as a leaf by `requires_grad`, 3 as one whose gradient nobody stores, 2 as anything else.
    readonly : sequence of bool
        Whether the function may not write to it.
    parts : bool
        Whether the way back from results that have gradients is to be recorded, too.
    dys, sums : sequence of (NDArray or None), optional
        For which gradients of results it is, and sums to begin with; by default for each result one that lies row after row.
    """

    standings: Sequence[int]
    readonly: Sequence[bool]
    parts: bool = True
    dys: Sequence[NDArray | None] | None = None
    sums: Sequence[NDArray | None] = ()

    @classmethod
    def of(cls, leaves: Sequence[Any], *, parts: bool) -> Tape:
        """Describe the arrays of a call."""
        graded = [isinstance(leaf, NDArray) and leaf.requires_grad for leaf in leaves]
        standings = [
            0 if not known else 2 if not is_own_leaf(leaf) else 1 if is_stored(leaf) else 3
            for known, leaf in zip(graded, leaves, strict=True)
        ]
        return cls(standings, [isinstance(leaf, np.ndarray) or leaf.readonly for leaf in leaves], parts)


def argument_of(x: object) -> object:
    """Return the array of a call that an array stands for in the recording of this context; None for any other."""
    return next((leaf for placeholder, leaf in _ARGUMENTS.get() if placeholder is x), None)


def engine_for(leaves: Sequence[Any]) -> Engine:
    """Return the engine of a call: that of its arrays, or else the default one."""
    return next((leaf.engine for leaf in leaves if isinstance(leaf, NDArray)), None) or get_engine()


def copied(leaves: Sequence[Any], engine: Engine) -> tuple[NDArray, ...]:
    """Return the arrays of a call, with copies of NumPy's."""
    return tuple(leaf if isinstance(leaf, NDArray) else asarray(leaf, copy=True, engine=engine) for leaf in leaves)


def inlining(function: Callable[..., Any], instance: object) -> bool:
    """Note the outer names of a function called while this thread records, and return whether it does."""
    recording = _core.recording()
    names: dict[Any, Name] | None = None if recording is None else recording.names
    if names is None:
        return False
    for name in names_of(function, instance, _calls_under_way()):
        if instance is not None and name.guard[0] == "instance":
            name = _rooted(name, instance)  # noqa: PLW2901 - the same name, seen from outside
        names.setdefault((name.text, id(name.guard[1])), name)
    return True


def _calls_under_way() -> list[FrameType]:
    """Return the calls that the recording of this thread has begun, the last one first."""
    found: list[FrameType] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not record.__code__:
        found.append(frame)
        frame = frame.f_back
    return found


def is_recording() -> bool:
    """Return whether this thread records."""
    return _core.recording() is not None


def record(
    title: str,
    function: Callable[..., Any],
    instance: object,
    arguments: dict[str, Any],
    options: Options,
    call: Callable[[Sequence[Any]], Any],
    tape: Tape | None = None,
) -> Recorded:
    """Run a function once without running any of its ops, and plan the run.

    Parameters
    ----------
    title : str
        The program's name.
    function : callable
        The function; its code names its outer names.
    instance : object
        The binding of its first parameter, or None.
    arguments : dict
        The arguments by name, in the order of the parameters.
    options : Options
        How to plan.
    call : callable
        Calls the function with arguments in that order.
    tape : Tape, optional
        How the tape knows the arguments; by default as they say, and heard calls are not parted.

    Raises
    ------
    CaptureError
        If the function asks for a value, or changes a container that it was given.
    Inseparable
        If the wanted way back cannot be a program of its own.
    """
    per_name = {name: arrays_of(value) for name, value in arguments.items()}
    leaves = [leaf for found in per_name.values() for leaf in found]
    engine = engine_for(leaves)
    given = copied(leaves, engine)
    names, generators = _read_by(function, instance)
    tape = Tape.of(leaves, parts=False) if tape is None else tape
    recording = _core.Recording(engine, title)
    made: list[NDArray] = []
    pull: Pull | None = None
    try:
        recording.begin(names)  # inside, because interrupts come at any line
        graded = Graded(
            [recording.argument(array, readonly=kept) for array, kept in zip(given, tape.readonly, strict=True)],
            tape.standings,
        )
        placeholders = graded.given
        passed, kept = (list(_replaced(arguments, iter(placeholders))) for _ in range(2))
        with graded.bounded(), Scope((_ARGUMENTS, tuple(zip(placeholders, leaves, strict=True)))):
            result = call(passed)
        if tape.parts:
            graded.check_bounds()
        for name, value, copy in zip(arguments, passed, kept, strict=True):
            check_kept(name, value, copy)
        places = {id(placeholder): at for at, placeholder in enumerate(placeholders)}
        known = (name.guard[-1] for name in names.values())
        # What a body or a branch refers to may be made by this recording, and is no array from outside then.
        before = (value for value in known if isinstance(value, NDArray) and value._recording is None)
        outside = [*before, *recording.states()]
        structure = structure_of(result, made, places, lambda array: any(array is each for each in outside))
        heard = graded.is_open(made)
        if heard and tape.parts:
            pull = graded.pull(recording, made, outside, tape.dys, tape.sums)
        recording.end()
    except RecursionError as error:
        recording.abort()
        raise CaptureError(f"the program {title!r} calls itself without end: {error}") from error
    except BaseException as error:
        recording.abort()
        _explain(error, title, arguments)
        raise
    finally:
        end_recording()
    read, drawn = tuple(name for name in names.values() if _counts(name, instance)), generators.drawn()
    owners = [name for name, found in per_name.items() for _ in found]
    if pull is not None:
        parted = recording.finish_parted(
            pull.at,
            tuple(made),
            tuple(each for each in pull.gradients if each is not None),
            pull.seeds,
            both=tape.dys is None,
            sequential=options.sequential,
            memory=options.memory,
            passes=options.passes,
        )
        if parted is None or (parted[0] is not None and parted[0].closed):
            raise Inseparable
        compiled = parted[0] or parted[1]
        return Recorded(compiled, structure, read, owners, heard, pull, parted, _bound(read, compiled), drawn)
    returned = {places.get(id(array)) for array in arrays_of(result)}
    compiled = recording.finish(
        tuple(made),
        sequential=options.sequential,
        memory=options.memory,
        passes=options.passes,
        donate=[number for number, name in enumerate(owners) if name in options.donate and number not in returned],
    )
    return Recorded(compiled, structure, read, owners, heard, known=_bound(read, compiled), drawn=drawn)


def _explain(error: BaseException, title: str, arguments: dict[str, Any]) -> None:
    """Add a note on what a recording has to do with an error of its function."""
    if isinstance(error, CaptureError) and arguments:
        shown = ", ".join(f"{name}: {describe(value)}" for name, value in arguments.items())
        error.add_note(f"while recording {title}({shown})")
    elif isinstance(error, AttributeError) and is_dataclass(error.obj) and not isinstance(error.obj, type):
        kind = type(error.obj).__name__
        error.add_note(
            f"weft: a program takes a dataclass apart and makes it anew of its fields alone: if {error.name!r} is set elsewhere, "
            f"in __post_init__ say, make it a field or a property of {kind}"
        )


def _read_by(function: Callable[..., Any], instance: object) -> tuple[dict[Any, Name], Generators]:
    """Return the outer names of a function, and generators that it may draw from, before it runs."""
    names = {(name.text, id(name.guard[1])): name for name in names_of(function, instance)}
    return names, Generators(names.values())


def _counts(name: Name, instance: object) -> bool:
    """Return whether a name is one of an object from outside, and was read before the function bound it anew, if at all."""
    is_gone = name.guard[0] == "object" and name.guard[1]() is None
    return not is_gone and not (name.is_late and name.is_rebound(instance))


def _bound(names: Iterable[Name], compiled: Compiled) -> list[NDArray]:
    """Return the states among the bindings of names."""
    found = [array for name in names for array in arrays_of(name.guard[-1]) if isinstance(array, NDArray)]
    return [array for array in found if any(array._shares_buffer(state) for state in compiled.states)]


def _replaced(arguments: dict[str, Any], placeholders: Iterator[NDArray]) -> Iterator[Any]:
    for value in arguments.values():
        yield replaced(value, lambda _: next(placeholders))


def _rooted(name: Name, instance: object) -> Name:
    """Return a name of ``self`` as one that starts from the instance itself."""
    guard = ("object", weakref.ref(instance), *name.guard[2:])
    return replace(name, text=f"{type(instance).__name__}.{name.text.partition('.')[2]}", guard=guard)
