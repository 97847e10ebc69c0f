"""The `task` decorator: a call becomes a push."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, overload

import numpy as np

from weft._core import Engine, NDArray, Variable
from weft._engine.access import Access
from weft._engine.default import get_engine
from weft._engine.labels import Device
from weft._engine.signature import TaskSignature
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["TaskHandle", "task"]

P = ParamSpec("P")
_Tracked: TypeAlias = Variable | NDArray


class TaskHandle:
    """One call of a task: to wait for, or to await, even where the task changes nothing that others could wait for.

    Made by calling a `task`. Dropping it changes nothing: the op runs all the same.

    Examples
    --------
    >>> import numpy, weft
    >>> @weft.task
    ... def show(x: weft.Read[numpy.ndarray]) -> None:
    ...     print(x.sum())
    >>> show(numpy.ones(3)).wait()
    3.0
    """

    __slots__ = ("_variable",)

    def __init__(self, variable: Variable) -> None:
        self._variable = variable  # of this call alone, which is all that ever writes to it

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the op is done.

        Parameters
        ----------
        timeout : float, optional
            The most seconds to wait; None waits without limit.

        Raises
        ------
        WaitTimeoutError
            If the time runs out. The op goes on.
        BaseException
            What the op raised, or what an op raised whose result it was to read.
        """
        self._variable.engine.wait_for_var(self._variable, timeout)

    def done(self) -> bool:
        """Return whether the op has run, failed, or been dropped, without waiting."""
        return self._variable.is_ready()

    def exception(self) -> BaseException | None:
        """Return what the op failed with; None if it has not, or not yet."""
        return self._variable.exception()

    def __await__(self) -> Generator[Any, None, None]:
        """Wait in asyncio, without blocking the event loop or any thread."""
        yield from self._variable.__await__()

    def __repr__(self) -> str:
        """Return the task's name, and how its call stands."""
        state = "pending" if not self.done() else "done" if self.exception() is None else "failed"
        return f"<weft.TaskHandle of {self._variable.name!r}: {state}>"


@overload
def task(function: Callable[P, object], /) -> Callable[P, TaskHandle]: ...
@overload
def task(
    *,
    engine: Engine | None = None,
    priority: int = 0,
    device: Device | None = None,
    name: str | None = None,
) -> Callable[[Callable[P, object]], Callable[P, TaskHandle]]: ...
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

    A call pushes an op and returns a handle of it, without waiting. The op accesses the arguments as the parameters' annotations say:
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
        A function of the same parameters that returns a `TaskHandle`; without `function`, a decorator.

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
    it are ordered by what they share. A NumPy array for ``weft.Read`` comes as a read-only view. The exception of a task that fails is raised by `wait` for what it was to change, and for its handle.

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
    if function is None:
        return functools.partial(_task, engine=engine, priority=priority, device=device, name=name)
    return _task(function, engine=engine, priority=priority, device=device, name=name)


def _task(
    function: Callable[P, object], *, engine: Engine | None, priority: int, device: Device | None, name: str | None
) -> Callable[P, TaskHandle]:
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
    def pushed(*args: P.args, **kwargs: P.kwargs) -> TaskHandle:
        target = get_engine() if engine is None else engine
        variables: tuple[list[_Tracked], list[_Tracked], list[_Tracked]] = [], [], []  # in the order of Access
        try:
            arguments = signature.arguments(args, kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"task {label!r}: {error}") from None
        shown: set[int] = set()  # by identity: NumPy arrays that are only read
        replaced = False
        for (kind, parameter, access), argument in zip(parameters, arguments, strict=True):
            found = _tracked(target, argument, label, parameter, access)
            variables[kind].append(found)
            given: object = argument
            if isinstance(argument, np.ndarray):
                shown.add(id(given))
            elif found is argument and isinstance(found, NDArray):
                replaced = True
        if shown:
            shown.difference_update([id(each) for (kind, *_), each in zip(parameters, arguments, strict=True) if kind])
        call = functools.partial(function, *args, **kwargs)
        handle = target.new_variable(label)
        variables[2].append(handle)
        target.push(
            _OnValues(call, shown) if replaced or shown else call,
            variables[0],
            variables[1],
            overwrite_vars=variables[2],
            priority=priority,
            name=label,
            device=device,
        )
        return TaskHandle(handle)

    return pushed


class _OnValues:
    """A call that gets the values of arrays in their place, once its op runs.

    Parameters
    ----------
    call : functools.partial
        The call, as the task was called.
    shown : set of int
        The identities of the NumPy arrays that it gets as read-only views.
    """

    __slots__ = ("_call", "_shown")

    def __init__(self, call: functools.partial[object], shown: set[int]) -> None:
        self._call, self._shown = call, shown

    def __call__(self) -> None:
        args = [self._value(argument) for argument in self._call.args]
        try:
            self._call.func(*args, **{name: self._value(argument) for name, argument in self._call.keywords.items()})
        except ValueError as error:
            if "read-only" in str(error) and not getattr(error, "__notes__", ()):
                error.add_note(
                    "weft: in a task arrays are read-only, except for arguments tagged weft.Mutate or weft.Overwrite: tag the one "
                    "that it writes to"
                )
            raise

    def _value(self, argument: object) -> object:
        if isinstance(argument, NDArray):
            return argument._values()
        return _read_only(argument) if id(argument) in self._shown else argument


def _read_only(array: Any) -> object:
    """Return a view that cannot be written through: what a task only reads, it cannot change by mistake."""
    view = array.view()
    view.flags.writeable = False
    return view


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
