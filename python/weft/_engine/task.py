"""The `task` decorator: a call becomes a push."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast, overload

import numpy as np

from weft._core import Engine, NDArray, Variable
from weft._engine.access import Access
from weft._engine.closures import undeclared_arrays
from weft._engine.default import get_engine
from weft._engine.guards import Guard, guarded
from weft._engine.labels import Device
from weft._engine.signature import TaskSignature
from weft._engine.task_bytes import holding
from weft._engine.task_call import TaskCall, payload_of
from weft._engine.task_handle import Outcome, TaskHandle, handles_in
from weft.errors import ArgumentTypeError, ArgumentValueError, UndeclaredAccessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

P = ParamSpec("P")
R = TypeVar("R")
_Tracked: TypeAlias = Variable | NDArray
_Variables: TypeAlias = tuple[list[_Tracked], list[_Tracked], list[_Tracked]]


@overload
def task(function: Callable[P, R], /) -> Callable[P, TaskHandle[R]]: ...
@overload
def task(
    *,
    engine: Engine | None = None,
    priority: int = 0,
    device: Device | None = None,
    name: str | None = None,
    reads: Iterable[object] = (),
    mutates: Iterable[object] = (),
    retries: int = 0,
) -> Callable[[Callable[P, R]], Callable[P, TaskHandle[R]]]: ...
def task(
    function: Callable[..., object] | None = None,
    /,
    *,
    engine: Engine | None = None,
    priority: int = 0,
    device: Device | None = None,
    name: str | None = None,
    reads: Iterable[object] = (),
    mutates: Iterable[object] = (),
    retries: int = 0,
) -> Callable[..., Any]:
    """Make calls of a function run in the background, in the order that their arguments need.

    A call pushes an op and returns a handle of it, without waiting; `TaskHandle.result` waits for the return value. The op
    accesses the arguments as the parameters' annotations say: ``weft.Read``, ``weft.Mutate`` or ``weft.Overwrite``, bare or
    with a type, as in ``weft.Read[numpy.ndarray]``. Other arguments are passed on untouched, but for handles of tasks: each
    is a dependency, and its result arrives in its place. All arguments are kept alive until the op has run. The function
    itself stays available as ``__wrapped__``.

    Parameters
    ----------
    function : Callable
        The function. It may return any object.
    engine : Engine, optional
        Where to push; by default the answer of `get_engine` at each call.
    priority : int, default: 0
        Among ready ops, higher ones start first.
    device : Device, optional
        Where the op belongs.
    name : str, optional
        The op's name in errors and statistics; by default the function's.
    reads, mutates : iterable of object, optional
        Arrays, variables or objects that the function reads or changes without being given them: globals, arrays of an
        enclosing function, attributes.
    retries : int, default: 0
        How often the function is called again after an `Exception`. It finds its arguments as the failed call left them.

    Returns
    -------
    Callable
        A function of the same parameters that returns a `TaskHandle`; without `function`, a decorator.

    Warns
    -----
    UndeclaredAccessWarning
        If the function refers to a global array, or to one of an enclosing function, that is neither in `reads` nor in
        `mutates`: the engine orders declared accesses alone.

    Raises
    ------
    ArgumentTypeError
        If ``*args`` or ``**kwargs`` declares an access; if the function is a coroutine function or a generator function.
        At a call: if an argument with an access is None or can have no variable; NumPy arrays,
        memoryviews and instances of most classes can, numbers, strings, tuples, lists and dicts cannot.

    See Also
    --------
    wait : Wait for objects that tasks change.

    Notes
    -----
    A view of a NumPy array stands for the array that owns the memory, so two views of one array are ordered after each
    other. For an `NDArray` the function gets a NumPy array on its memory, read-only for ``weft.Read``; views of it are
    ordered by their shared memory. A NumPy array for ``weft.Read`` comes as a read-only view. The exception of a task
    that fails is raised by `wait` for the objects that it was to change, and for its handle.

    Examples
    --------
    >>> import numpy, weft
    >>> @weft.task
    ... def add(out: weft.Overwrite[numpy.ndarray], a: weft.Read[numpy.ndarray], b: weft.Read[numpy.ndarray]) -> None:
    ...     numpy.add(a, b, out=out)
    >>> a, b, c = numpy.ones(4), numpy.ones(4), numpy.empty(4)
    >>> first = add(c, a, b)
    >>> second = add(a, c, b)  # after the first, as it reads c
    >>> second.wait()
    >>> a
    array([3., 3., 3., 3.])
    """
    _check_options(engine, device, name)
    options = _Options(
        engine, priority, device, name, _objects("reads", reads), _objects("mutates", mutates), _count(retries)
    )
    if function is None:

        def decorate(function: Callable[..., object]) -> Callable[..., Any]:
            return _static_or_not(function, options=options)

        return decorate  # no `functools.partial`: warnings count on a frame between, as `task` is one below
    return _static_or_not(function, options=options)


class _Options(NamedTuple):
    """The arguments of the decorator."""

    engine: Engine | None
    priority: int
    device: Device | None
    name: str | None
    reads: tuple[object, ...]
    mutates: tuple[object, ...]
    retries: int


def _static_or_not(function: Callable[..., object], *, options: _Options) -> Callable[..., Any]:
    """Return the pushing function; for a static method a static method again, lest it be called with the instance."""
    static: Any = function
    if isinstance(static, staticmethod):
        pushing: Callable[..., Any] = _task(static.__func__, options=options)
        return staticmethod(pushing)
    return _task(function, options=options)


def _task(function: Callable[P, R], *, options: _Options) -> Callable[P, TaskHandle[R]]:
    """Read the signature once and return the pushing function."""
    engine, priority, device, name, reads, mutates, retries = options
    label: str = getattr(function, "__name__", type(function).__name__) if name is None else name
    _check_callable(function, label)
    try:
        signature = TaskSignature(function)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"task {label!r}: {error}") from None
    _warn_of_undeclared(function, label, (*reads, *mutates))
    kinds = list(Access)
    parameters = [(kinds.index(access), parameter, access) for parameter, access in signature.accesses]
    outside = [(0, each, "reads", Access.READ) for each in reads] + [
        (1, each, "mutates", Access.MUTATE) for each in mutates
    ]

    @functools.wraps(function)
    def pushed(*args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        target = get_engine() if engine is None else engine
        variables: _Variables = [], [], []  # in the order of Access
        try:
            arguments, positional, named = signature.arguments(args, kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"task {label!r}: {error}") from None
        shown, arrays = _accessed(target, label, parameters, arguments, variables)
        replaced = bool(shown)
        for given in handles_in((*positional, *named.values()) if named else positional):
            variables[0].append(given._variable)
            replaced = True
        for kind, each, option, access in outside:
            variables[kind].append(_tracked(target, each, label, option, access))
        variable, outcome = target.new_variable(label), Outcome()
        variables[2].append(variable)
        held = holding(arrays)
        guard = Guard(label, variable) if target.check else None
        if guard is not None:
            positional, named = guarded(guard, (arrays, shown), (reads, mutates), positional, named)
        call = TaskCall(
            function, positional, named, shown, replaced=replaced, retries=retries, outcome=outcome, held=held
        )
        try:
            target.push(
                payload_of(call, guard, mutates),
                variables[0],
                variables[1],
                overwrite_vars=variables[2],
                priority=priority,
                name=label,
                device=device,
                nbytes=0 if held is None else held.nbytes,
            )
        except BaseException:
            if guard is not None:
                guard.release()
            raise
        return TaskHandle(variable, outcome)

    return pushed


def _accessed(
    engine: Engine, label: str, parameters: list[tuple[int, str, Access]], arguments: list[Any], variables: _Variables
) -> tuple[set[int], list[Any]]:
    """Add the variables of the tagged arguments.

    Returns
    -------
    set of int
        The identities of the arguments that the function gets as others: those that are only read, and arrays of weft's.
    list
        The arrays among the arguments.
    """
    shown: set[int] = set()
    changed: set[int] = set()
    opened: set[int] = set()
    arrays: list[Any] = []
    for (kind, parameter, access), argument in zip(parameters, arguments, strict=True):
        found = _tracked(engine, argument, label, parameter, access)
        is_handle, is_array = argument.__class__ is TaskHandle, isinstance(argument, np.ndarray)
        # The result of a handle is there to be changed, not to be forgotten.
        variables[min(kind, 1) if is_handle else kind].append(found)
        if is_handle or is_array:
            (changed if kind else shown).add(id(argument))
        if is_array:
            arrays.append(argument)
        elif found is argument and isinstance(found, NDArray):
            opened.add(id(found))
            arrays.append(found)
    return (shown - changed) | opened, arrays


def _warn_of_undeclared(function: Callable[..., object], label: str, declared: tuple[object, ...]) -> None:
    """Warn of arrays that the function refers to, and that nothing declares."""
    for name, value in undeclared_arrays(function, declared):
        kind = "an NDArray" if isinstance(value, NDArray) else "a NumPy array"
        warnings.warn(
            f"task {label!r} refers to {name!r}, {kind} that is no argument, so its calls are not ordered with other ops on it: "
            f"take it as an argument ({name}: weft.Mutate), or declare it by @weft.task(mutates=[{name}]), or reads=[{name}]",
            UndeclaredAccessWarning,
            stacklevel=5,
        )


def _tracked(engine: Engine, argument: Any, label: str, parameter: str, access: Access) -> _Tracked:
    """Return the variable of one argument in a push, naming the parameter in errors."""
    if isinstance(argument, (Variable, NDArray)):
        return argument
    if argument.__class__ is TaskHandle:
        return argument._variable
    try:
        return engine.variable_of(argument)
    except ArgumentTypeError as error:
        where = f"task {label!r}, parameter {parameter!r} (weft.{access.value})"
        raise ArgumentTypeError(f"{where}: {error}") from None


def _check_options(engine: object, device: object, name: object) -> None:
    """Reject options of the wrong type where the task is defined, not at its first call."""
    for option, value, kind in (("engine", engine, Engine), ("device", device, Device), ("name", name, str)):
        if value is not None and not isinstance(value, kind):
            raise ArgumentTypeError(f"weft.task: {option} is a {kind.__name__} or None, not {type(value).__name__}")


def _objects(option: str, given: Any) -> tuple[object, ...]:
    """Return the objects of `reads` or `mutates`."""
    kind: str = type(given).__name__
    if isinstance(given, (np.ndarray, NDArray, Variable, str)) or not hasattr(given, "__iter__"):
        raise ArgumentTypeError(f"weft.task: {option} is a list of objects, as in {option}=[x], not {kind}")
    objects = tuple(given)
    for each in objects:
        if isinstance(each, str):
            tag = "Read" if option == "reads" else "Mutate"
            raise ArgumentTypeError(
                f"weft.task: {option} is a list of objects, as in {option}=[x], and holds the name {each[:40]!r}: list the "
                f"object itself, or tag the parameter of this name by weft.{tag}"
            )
    return objects


def _count(retries: Any) -> int:
    if isinstance(retries, bool) or not isinstance(retries, int):
        raise ArgumentTypeError(f"weft.task: retries is a number of calls, not {type(retries).__name__}")
    if retries < 0:
        raise ArgumentValueError(f"weft.task: retries is at least 0, not {retries}")
    return retries


def _check_callable(function: object, label: str) -> None:
    """Reject a function that cannot run as an op from start to end."""
    if not callable(function):
        raise ArgumentTypeError(
            f"weft.task decorates functions, not {type(function).__name__}; put it below @classmethod or @property"
        )
    called: object = function
    while isinstance(called, functools.partial):
        called = cast("functools.partial[object]", called).func
    runs = (called, getattr(type(called), "__call__", None))  # noqa: B004 - the method of a callable instance
    if any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in runs):
        raise ArgumentTypeError(
            f"task {label!r} is a coroutine function: an op is a plain function; see Engine.push_async"
        )
    if any(map(inspect.isgeneratorfunction, runs)):
        raise ArgumentTypeError(
            f"task {label!r} is a generator function, of which a call runs nothing: make it a plain function"
        )
