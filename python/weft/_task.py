"""The `task` decorator: a call becomes a push."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, overload

from weft._access import Access
from weft._core import Engine, NDArray, Variable
from weft._default import get_engine
from weft._device import Device
from weft._signature import TaskSignature
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
_Tracked: TypeAlias = Variable | NDArray


@overload
def task(function: Callable[P, object], /) -> Callable[P, None]: ...
@overload
def task(
    *,
    engine: Engine | None = None,
    priority: int = 0,
    device: Device | None = None,
    name: str | None = None,
) -> Callable[[Callable[P, object]], Callable[P, None]]: ...
def task(
    function: Callable[..., object] | None = None,
    /,
    *,
    engine: Engine | None = None,
    priority: int = 0,
    device: Device | None = None,
    name: str | None = None,
) -> Callable[..., Any]:
    """Make calls of a function run in the background, in the order that their arguments need.

    A call pushes an op and returns None at once. The op accesses the arguments as the parameters' annotations say:
    ``weft.Read``, ``weft.Mutate`` or ``weft.Overwrite``, bare or with a type, as in ``weft.Read[numpy.ndarray]``.
    Arguments without such an annotation are passed on untouched. All arguments are kept alive until the op has run.
    The function itself stays available as ``__wrapped__``.

    Parameters
    ----------
    function : Callable
        The function. What it returns is dropped: write results into arguments.
    engine : Engine, optional
        Where to push; by default what `get_engine` returns at each call.
    priority : int, default: 0
        Among ready ops, higher ones start first.
    device : Device, optional
        Where the op belongs.
    name : str, optional
        The op's name in errors and statistics; by default the function's.

    Returns
    -------
    Callable
        A function of the same parameters that returns None; without `function`, a decorator.

    Raises
    ------
    ArgumentTypeError
        If no parameter, or ``*args`` or ``**kwargs``, declares an access; if the function is a coroutine function or
        a generator function. At a call: if an argument with an access is None or can have no variable; NumPy arrays,
        memoryviews and instances of most classes can, numbers, strings, tuples, lists and dicts cannot.

    See Also
    --------
    wait : Wait for objects that tasks change.

    Notes
    -----
    A view of a NumPy array stands for the array that owns the memory, so two views of one array are ordered after
    each other. For an `NDArray` the function gets a NumPy array on its memory, read-only for ``weft.Read``; views of
    it are ordered by what they share. The exception of a task that fails is raised by `wait` for what it was to change.

    Examples
    --------
    >>> import numpy, weft
    >>> @weft.task
    ... def add(out: weft.Overwrite[numpy.ndarray], a: weft.Read[numpy.ndarray], b: weft.Read[numpy.ndarray]) -> None:
    ...     numpy.add(a, b, out=out)
    >>> a, b, c = numpy.ones(4), numpy.ones(4), numpy.empty(4)
    >>> add(c, a, b)
    >>> add(a, c, b)  # after the first, as it reads c
    >>> weft.wait(a)
    >>> a
    array([3., 3., 3., 3.])
    """
    _check_options(engine, device, name)
    if function is None:
        return functools.partial(_task, engine=engine, priority=priority, device=device, name=name)
    return _task(function, engine=engine, priority=priority, device=device, name=name)


def _task(
    function: Callable[P, object], *, engine: Engine | None, priority: int, device: Device | None, name: str | None
) -> Callable[P, None]:
    """Read the signature once and return the pushing function."""
    label: str = getattr(function, "__name__", type(function).__name__) if name is None else name
    _check_callable(function, label)
    try:
        signature = TaskSignature(function)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"task {label!r}: {error}") from None
    kinds = list(Access)
    parameters = [(kinds.index(access), parameter, access) for parameter, access in signature.accesses]

    @functools.wraps(function)
    def pushed(*args: P.args, **kwargs: P.kwargs) -> None:
        target = get_engine() if engine is None else engine
        variables: tuple[list[_Tracked], list[_Tracked], list[_Tracked]] = [], [], []  # in the order of Access
        try:
            arguments = signature.arguments(args, kwargs)
        except TypeError as error:
            raise TypeError(f"task {label!r}: {error}") from None
        for (kind, parameter, access), argument in zip(parameters, arguments, strict=True):
            variables[kind].append(_tracked(target, argument, label, parameter, access))
        call = functools.partial(function, *args, **kwargs)
        target.push(
            call if not any(isinstance(item, NDArray) for items in variables for item in items) else _OnValues(call),
            variables[0],
            variables[1],
            overwrite_vars=variables[2],
            priority=priority,
            name=label,
            device=device,
        )

    return pushed


class _OnValues:
    """A call that gets the values of arrays in their place, once its op runs.

    Parameters
    ----------
    call : functools.partial
        The call, as the task was called.
    """

    __slots__ = ("_call",)

    def __init__(self, call: functools.partial[object]) -> None:
        self._call = call

    def __call__(self) -> None:
        args = [_value(argument) for argument in self._call.args]
        self._call.func(*args, **{name: _value(argument) for name, argument in self._call.keywords.items()})


def _value(argument: object) -> object:
    return argument._values() if isinstance(argument, NDArray) else argument  # noqa: SLF001 - the core's own package


def _tracked(engine: Engine, argument: object, label: str, parameter: str, access: Access) -> _Tracked:
    """Return what stands for one argument in a push, naming the parameter in errors."""
    if isinstance(argument, (Variable, NDArray)):
        return argument
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


def _check_callable(function: object, label: str) -> None:
    """Reject what cannot run as an op from start to end."""
    if not callable(function):
        raise ArgumentTypeError(
            f"weft.task decorates functions, not {type(function).__name__}; put it below @classmethod or @property"
        )
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentTypeError(
            f"task {label!r} is a coroutine function: an op is a plain function; see Engine.push_async"
        )
    if inspect.isgeneratorfunction(function):
        raise ArgumentTypeError(
            f"task {label!r} is a generator function, of which a call runs nothing: make it a plain function"
        )
