"""A function with its programs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
import sys
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Self, cast, overload

import numpy as np

from weft._core import NDArray, Scope, Signatures, empty, recording as open_recording, tape_standings, tape_surroundings
from weft._engine.default import get_engine
from weft._engine.signature import bind
from weft._program.backward import Inseparable
from weft._program.dummies import blank, layouts_of
from weft._program.history import Call, History
from weft._program.program import Program
from weft._program.record import Tape, copied, engine_for, inlining, record
from weft._program.tape_node import Taped
from weft._program.trees import describe, leaves_of, replaced, structure_of
from weft._registry.avals import Aval
from weft._registry.symbol_hook import is_symbol
from weft._tape.checkpoints import bound_now
from weft._tape.pytree import unflattened
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from typing_extensions import ParamSpec, TypeVar

    from weft._core import Compiled
    from weft._program.backward import Pull
    from weft._program.record import Options, Recorded
    from weft._program.tape_node import Arrays, Parted

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    Q = ParamSpec("Q")
    S = TypeVar("S")
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")

_MISSING = inspect.Parameter.empty
_BY_THE_CORE = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.KEYWORD_ONLY,
)


class Settings:
    """A function and the options of `weft.program`; its methods' instances share it.

    Parameters
    ----------
    function : callable
        The function to record.
    options : Options
        How programs are planned.
    static : frozenset of str
        Parameters with arguments that count as themselves.
    verify : int
        The interval of checked calls; 0 for none.
    max_programs : int
        The number of programs kept.
    """

    def __init__(
        self, function: Callable[..., Any], options: Options, static: frozenset[str], verify: int, max_programs: int
    ) -> None:
        self.function, self.options, self.static = function, options, static
        self.verify, self.max_programs = verify, max_programs
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.parameters = tuple(inspect.signature(function).parameters.values())
        self._signatures = tuple(inspect.Signature(self.of(bound)) for bound in (False, True))
        names = [parameter.name for parameter in self.parameters]
        for option, named in (("static_argnames", static), ("donate", options.donate)):
            for name in sorted(set(named) - set(names)):
                listed = ", ".join(names) or "none"
                raise ArgumentTypeError(f"weft.program: {option} names {name!r}, and {self.name} has {listed}")

    def of(self, bound: bool) -> tuple[inspect.Parameter, ...]:
        """Return the parameters that receive arguments in a call."""
        # A function of any number of arguments takes `self` among them.
        takes_all = self.parameters[:1] and self.parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
        return self.parameters if takes_all or not bound else self.parameters[1:]

    def bind(self, bound: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a call in the order of these parameters, bound by Python's rules."""
        try:
            found = bind(self._signatures[bound], args, kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.name}(): {error}") from None
        found.apply_defaults()
        return tuple(found.arguments.values())


def _positions(parameters: Sequence[inspect.Parameter]) -> tuple[int, bool] | None:
    """Return the number of positional parameters, and whether one takes all others; None if Python must bind them."""
    kinds = [parameter.kind for parameter in parameters]
    if not all(kind in _BY_THE_CORE for kind in kinds):
        return None
    return kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD), inspect.Parameter.VAR_POSITIONAL in kinds


class ProgramFunction(Signatures, Generic[P, R]):
    """A function whose calls are recorded once and replayed. Made by `weft.program`."""

    if TYPE_CHECKING:  # the core takes calls

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    # The core takes calls first: it calls `_record` for unknown signatures, and the other methods of one underscore.
    __wrapped__: Callable[..., Any]
    __qualname__: str

    def __new__(cls, settings: Settings, instance: object = None, of: ProgramFunction | None = None) -> Self:
        """Replace a function, or a method of an instance; the programs are those of `of`."""
        parameters = settings.of(instance is not None)
        return super().__new__(
            cls,
            settings.name,
            [parameter.name for parameter in parameters],
            [() if parameter.default is _MISSING else (parameter.default,) for parameter in parameters],
            [parameter.name in settings.static for parameter in parameters],
            _positions(parameters),
            settings.verify,
            instance,
            of,
        )

    def __init__(self, settings: Settings, instance: object = None, of: ProgramFunction | None = None) -> None:  # noqa: ARG002 - as `__new__`
        functools.update_wrapper(cast("Any", self), settings.function)
        self._settings = settings
        self.history: History = History(settings.name) if of is None else of.history
        self._methods: dict[int, tuple[weakref.ref[Any], ProgramFunction]] = {}

    # For users.

    @property
    def programs(self) -> tuple[Program, ...]:
        """The recorded programs, in order of use, the last one at the end."""
        return tuple(self._programs())

    def lower(self, *args: Any, **kwargs: Any) -> Program:
        """Record and plan a call without running it.

        Parameters
        ----------
        *args, **kwargs
            As for a call; `weft.Aval` may stand in place of an array.

        Returns
        -------
        Program
            The call's program, which later calls replay.

        Examples
        --------
        >>> import numpy, weft
        >>> @weft.program
        ... def step(x, w):
        ...     return weft.tanh(x @ w).sum()
        >>> x = weft.Aval((64, 32), numpy.dtype("float32"))
        >>> w = weft.Aval((32, 32), numpy.dtype("float32"))
        >>> step.lower(x, w).ops >= 3
        True
        """
        return self._lowered(self._bind(args, kwargs))

    def why(self) -> str:
        """Return the reason for the last recording: the differences from the nearest earlier call.

        Examples
        --------
        >>> import weft
        >>> @weft.program
        ... def scale(x, rate):
        ...     return x * rate
        >>> x = weft.ones(3)
        >>> _ = scale(x, 0.5), scale(x, 0.25)
        >>> scale.why()
        'scale: rate was 0.5, and is 0.25'
        """
        return self.history.why()

    def clear(self) -> None:
        """Forget all programs: the next call is recorded, also after changes that guards cannot see."""
        self._forget()
        self.history.clear()
        for _, method in tuple(self._methods.values()):
            method.clear()

    # Called by the core.

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> tuple[Any, ...]:
        """Return the arguments in the order of the parameters."""
        return self._settings.bind(self._instance is not None, args, kwargs or {})

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Call the function itself: programs are switched off, or this thread records another program."""
        inlining(self._settings.function, self._instance)
        first = () if self._instance is None else (self._instance,)
        recording = open_recording() if self._settings.options.sequential else None
        if recording is None:
            return self._settings.function(*first, *args, **(kwargs or {}))
        with Scope(in_order=True):
            return self._settings.function(*first, *args, **(kwargs or {}))

    def _composes(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether a call has symbols among its arguments: then it composes symbols, as the function does."""
        return any(is_symbol(leaf) for leaf in leaves_of(arguments))

    def _copied(self, leaves: tuple[Any, ...]) -> tuple[NDArray, ...]:
        return copied(leaves, engine_for(leaves))

    def _record(self, arguments: tuple[Any, ...]) -> Any:
        """Make a program for a new call, and call it."""
        if self._shares_a_leaf(arguments):
            return self._as_it_is(arguments)
        program = self._new(arguments, stacklevel=3)
        if program._heard:
            return self._heard(program, arguments)
        if self._settings.verify == 1:
            return self._verified(program, arguments)
        leaves = self._leaves(arguments)
        made = program._compiled.run(self._copied(leaves))
        return self._result(program._structured, made, leaves)

    def _heard(self, program: Program, arguments: tuple[Any, ...]) -> Any:
        """Make a call that the tape listens to, because it continues from the results: as one node, if possible."""
        taped = program._taped
        if taped is None:
            return self._as_it_is(arguments)
        if not taped.holds():
            self._forget(program)
            return self._record(arguments)
        leaves = self._leaves(arguments)
        return self._result(program._structured, taped.run(self, self._copied(leaves)), leaves)

    def _as_it_is(self, arguments: tuple[Any, ...]) -> Any:
        """Call the function itself."""
        leaves = self._leaves(arguments)
        if not all(isinstance(leaf, NDArray) for leaf in leaves):
            given = iter(self._copied(leaves))
            arguments = tuple(replaced(value, lambda _: next(given)) for value in arguments)
        return self._call_of(arguments)

    def _shares_a_leaf(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether an array on the tape shares memory with another argument: a recording cannot join the two."""
        if not tape_surroundings() & 1:
            return False
        leaves = self._leaves(arguments)
        graded = [isinstance(leaf, NDArray) and leaf.requires_grad for leaf in leaves]
        return any(graded) and any(graded[one] or graded[other] for one, other, _ in self._overlaps(leaves))

    # For calls on the tape.

    def pulled(self, taped: Taped, dys: Arrays, sums: Arrays) -> tuple[Pull, Parted]:
        """Record the way back for gradients and sums of these layouts; Inseparable if that is impossible."""
        arguments, layouts, tape = taped.template
        leaves = blank(layouts, engine_for([x for x in (*dys, *sums) if x is not None]))
        by_name = dict(zip(self._names(), self._filled(arguments, leaves), strict=True))
        wanted = dataclasses.replace(tape, dys=dys, sums=sums)
        settings = self._settings
        call = partial(self._call_of, function=taped.function)
        recorded = record(settings.name, taped.function, self._instance, by_name, settings.options, call, wanted)
        if recorded.pull is None or recorded.parted is None:
            raise Inseparable
        return recorded.pull, recorded.parted

    def made(self, taped: Taped, given: Sequence[NDArray]) -> list[NDArray]:
        """Call the function itself, and return the arrays that a replay would have made."""
        found: list[NDArray] = []
        result = self._call_of(self._filled(taped.template[0], given), function=taped.function)
        structure_of(result, found, {id(x): at for at, x in enumerate(given)}, lambda _: False)
        return found

    def rebound(self, taped: Taped) -> str | None:
        """Return an outer name that was bound anew since the recording; None if there is none.

        Variables of enclosing functions stay for `Taped.function` what they were, though not their attributes.
        """
        names = (name for name in taped.names if name.guard[0] != "cell" or name.guard[3])
        return next((name.text for name in names if name.is_rebound(self._instance)), None)

    def _filled(self, outlines: tuple[Any, ...], leaves: Sequence[NDArray]) -> tuple[Any, ...]:
        rest = iter(leaves)
        parts = [next(rest) if isinstance(leaf, Aval) else leaf for leaf in leaves_of(outlines, Aval)]
        filled: tuple[Any, ...] = unflattened(outlines, iter(parts), Aval)
        return filled

    def _names(self) -> list[str]:
        return [parameter.name for parameter in self._settings.of(self._instance is not None)]

    def _verified(self, program: Program, arguments: tuple[Any, ...]) -> Any:
        from weft._program.verify import verified  # noqa: PLC0415 - only verified calls need it

        return verified(self, program, arguments)

    # Making programs.

    def _lowered(self, arguments: tuple[Any, ...], stacklevel: int = 4) -> Program:
        """Return the program of a call, with or without `Aval`s in place of arrays."""
        given = tuple(_materialised(value) for value in arguments)
        found: Program | None = self._find(given)
        return found if found is not None else self._new(given, stacklevel)

    def _new(self, arguments: tuple[Any, ...], stacklevel: int) -> Program:
        settings = self._settings
        names = self._names()
        by_name = dict(zip(names, arguments, strict=True))
        parts = dict(zip(names, self._parts(arguments), strict=True))
        what = settings.name, settings.function, self._instance, by_name, settings.options, self._call_of
        leaves = self._leaves(arguments)
        tape = Tape.of(leaves, parts=bool(tape_surroundings() & 1))
        separable, function = True, bound_now(settings.function)  # it may bind its variables anew itself
        try:
            recorded = record(*what, tape)
        except Inseparable:
            separable = False
            recorded = record(*what)
        if recorded.drawn:
            self.history.warn_of_draws(recorded.drawn, stacklevel + 1)
        call: dict[str, tuple[Hashable, str]] = {name: (part, describe(by_name[name])) for name, part in parts.items()}
        call |= {name.text: ((name.text, name.token), name.shown) for name in recorded.names}
        owners = recorded.arguments
        overlaps = self._overlaps(leaves)
        shared = [f"{owners[one]} and {owners[other]} share it" for one, other, _ in overlaps]
        shared += [f"{owners[number]} is what the function itself refers to" for number in recorded.compiled.closed]
        distances = tuple(by for _, _, by in overlaps)
        call["memory"] = ((*shared, distances), ", ".join(shared) or "no two arrays'")
        engine = engine_for(leaves)
        call["engine"] = (id(engine), repr(engine))
        around = tape_surroundings()
        beside = _unnamed(recorded)
        if beside:
            known = [standing > 0 for standing in tape_standings(beside)]
            call["requires_grad of states without a name"] = (tuple(known), ", ".join(map(repr, known)))
        call["autograd.training"] = (around >> 1, repr(bool(around >> 1)))
        call["the tape"] = (around & 1, "listening" if around & 1 else "not listening")
        source = _again, partial(_found_again, settings.name, self._reference()), _outlined(arguments)
        layouts = layouts_of(leaves, overlaps)
        program = Program(settings.name, recorded.compiled, recorded.structure, owners, source, layouts, recorded.known)
        if recorded.pull is not None and recorded.parted is not None:
            template = source[-1], layouts, tape
            program._taped = Taped(
                settings.name, recorded.pull, recorded.parted, recorded.known, recorded.names, function, template
            )
        program._heard = (
            not separable
            or recorded.heard
            or any(
                isinstance(leaves[number], NDArray) and leaves[number].requires_grad
                for number in recorded.compiled.closed
            )
        )
        entered: Program = self._enter(
            arguments,
            program,
            recorded.compiled,
            recorded.structure,
            [name.guard for name in recorded.names],
            [
                *recorded.compiled.states,
                *recorded.compiled.looked_at,
                *(leaves[number] for number in recorded.compiled.closed),
            ],
            _versions(recorded.compiled),
            program._heard,
        )
        if entered is program:
            self.history.enter(Call(call), by_name, stacklevel + 1, settings.max_programs)
            kept = self._programs()
            for old in kept[: max(0, len(kept) - settings.max_programs)]:
                self._forget(old)
        return entered

    def _reference(self) -> Callable[[], ProgramFunction | None]:
        """Return a function that finds this one again, without keeping it or the instance."""
        if self._instance is None:
            return weakref.ref(self)
        instance, name = weakref.ref(self._instance), self._settings.name
        return lambda: getattr(instance(), name, None)

    def _call_of(self, arguments: Sequence[Any], function: Callable[..., Any] | None = None) -> Any:
        """Call the function, or one that stands for it, with arguments in the order of the parameters."""
        args: list[Any] = [] if self._instance is None else [self._instance]
        kwargs: dict[str, Any] = {}
        for parameter, value in zip(self._settings.of(self._instance is not None), arguments, strict=True):
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return (self._settings.function if function is None else function)(*args, **kwargs)

    # Called by Python.

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: ProgramFunction[Concatenate[S, Q], R], instance: S, owner: type | None = None
    ) -> ProgramFunction[Q, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Return the program function of an instance: each has programs of its own."""
        if instance is None:
            return self
        entry = self._methods.get(id(instance))
        if entry is None:
            entry = self._method(instance)
        return ProgramFunction(self._settings, instance, entry[1])

    def _method(self, instance: object) -> tuple[weakref.ref[Any], ProgramFunction]:
        """Make the place for the programs of an instance, without keeping the instance."""
        methods, key = self._methods, id(instance)
        try:
            reference = weakref.ref(instance, lambda _: methods.pop(key, None))
        except TypeError:
            raise ArgumentTypeError(
                f"the method {self._settings.name!r} is a program, which needs to know when its instance goes: give "
                f"{type(instance).__name__} a slot '__weakref__'"
            ) from None
        return methods.setdefault(key, (reference, ProgramFunction(self._settings)))

    def _repr_html_(self) -> str | None:
        """Return the drawing of the last program in use, for a notebook; None if there is none."""
        recorded = self._programs()
        return recorded[-1]._repr_html_() if recorded else None

    def __repr__(self) -> str:
        """Name the function and the number of its programs."""
        return f"<weft.program {self._settings.name!r}: {len(self._programs())} recorded>"

    def __copy__(self) -> Self:
        """Return itself, as functions do."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself, as functions do; bound to an object, that of the object's copy."""
        if self._instance is None:
            return self
        bound: Self = getattr(copy.deepcopy(self._instance, memo), self._settings.name)
        return bound

    def __reduce__(self) -> tuple[Any, ...] | str:
        """Pickle by reference, as functions do; programs are recorded anew."""
        if self._instance is not None:
            return getattr, (self._instance, self._settings.name)
        function, name = self._settings.function, self.__qualname__
        found: object = sys.modules.get(self.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        if found is not function:
            raise pickle.PicklingError(
                f"the program {name!r} cannot be pickled: it is not found as {self.__module__}.{name}. "
                "Define it at the top of a module, or send the function and make the program where it is used"
            )
        settings = self._settings
        return _made_again, (function, settings.options, settings.static, settings.verify, settings.max_programs)


def _unnamed(recorded: Recorded) -> list[NDArray]:
    """Return the states without a name, such as items of lists."""
    bound = [name.guard[-1] for name in recorded.names if isinstance(name.guard[-1], NDArray)]
    return [state for state in recorded.compiled.states if not any(x._shares_buffer(state) for x in bound)]


def _versions(compiled: Compiled) -> tuple[Callable[[], object], object] | None:
    """Return a function for the versions of the states read while recording, and its present answer."""
    now = compiled.states_version()
    return (compiled.states_version, now) if now else None


def _found_again(name: str, find: Callable[[], ProgramFunction | None]) -> ProgramFunction:
    """Return the function of a program, to be pickled with it."""
    found = find()
    if found is None:
        raise pickle.PicklingError(f"the program {name!r} cannot be pickled: its function is gone")
    return found


def _made_again(
    function: Callable[..., Any], options: Options, static: frozenset[str], verify: int, max_programs: int
) -> ProgramFunction:
    return ProgramFunction(Settings(function, options, static, verify, max_programs))


def _again(function: ProgramFunction, arguments: tuple[Any, ...]) -> Program:
    """Record a program anew after loading."""
    return function._lowered(arguments)


def _outlined(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments without the arrays' values, so that a program keeps none."""
    return tuple(replaced(value, cast("Any", _aval_of)) for value in arguments)


def _aval_of(array: Any) -> Aval:
    return Aval(array.shape, np.dtype(array.dtype))


def _materialised(value: Any) -> Any:
    """Return a value with arrays in place of avals; they have no memory until the first write."""
    leaves = [
        empty(leaf.shape, np.dtype(leaf.dtype), get_engine()) if isinstance(leaf, Aval) else leaf
        for leaf in leaves_of(value, Aval)
    ]
    return unflattened(value, iter(leaves), Aval)
