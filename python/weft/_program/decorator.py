"""`weft.program`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from weft._program.function import ProgramFunction, Settings
from weft._program.record import Options
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

_MEMORY = ("min", "balanced", "speed")
P = ParamSpec("P")
R = TypeVar("R")


@overload
def program(
    function: Callable[P, R],
    /,
    *,
    static_argnames: str | Iterable[str] = (),
    donate: str | Iterable[str] = (),
    memory: Literal["min", "balanced", "speed"] = "balanced",
    sequential: bool = False,
    verify: int = 0,
    max_programs: int = 32,
    passes: Iterable[str] | None = None,
) -> ProgramFunction[P, R]: ...
@overload
def program(
    *,
    static_argnames: str | Iterable[str] = (),
    donate: str | Iterable[str] = (),
    memory: Literal["min", "balanced", "speed"] = "balanced",
    sequential: bool = False,
    verify: int = 0,
    max_programs: int = 32,
    passes: Iterable[str] | None = None,
) -> Callable[[Callable[P, R]], ProgramFunction[P, R]]: ...
def program(
    function: Callable[..., Any] | None = None,
    /,
    *,
    static_argnames: str | Iterable[str] = (),
    donate: str | Iterable[str] = (),
    memory: str = "balanced",
    sequential: bool = False,
    verify: int = 0,
    max_programs: int = 32,
    passes: Iterable[str] | None = None,
) -> Any:
    """Record a function's ops at its first call, plan their memory, and replay them at the calls that follow.

    Calls of the program equal calls of the function, bit for bit: in results, mutations of arguments and of closure
    arrays, draws, failures. A call pushes one op and returns at once. The function's Python runs once for each program.

    A call belongs to another program if an array differs in shape, dtype, strides, device, writability,
    `requires_grad`, or in the arrays that share its memory; if `weft.autograd.training` differs; if any other argument
    differs in value or type; if an outer name of the function was rebound: a closure cell, a global, an attribute path
    of these or of ``self``. Lists, tuples, dicts, named tuples and dataclasses count by their items. NumPy arrays are
    copied at the call; inside they are read-only NDArrays.

    Parameters
    ----------
    function : callable
        A function or a method. Without it, a decorator is returned.
    static_argnames : str or iterable of str, optional
        Parameters with arguments compared by ``==``. They may be objects that only equal themselves.
    donate : str or iterable of str, optional
        Parameters with arrays that a call may consume: a result of as many bytes takes the memory of each, if the order
        of the ops allows it. The array raises `VariableDeletedError` from then on. An array is kept if another handle,
        a view or an export shares its memory, or a running op reads it. No other thread may use such an argument at the
        same time; without the GIL it could read the result's values.
    memory : {"balanced", "min", "speed"}, default: "balanced"
        The price of a smaller arena, as growth of the critical path: 5 %, any amount, none.
    sequential : bool, default: False
        Whether the ops of a replay run one by one, in recorded order.
    verify : int, default: 0
        Check every `verify`-th call of a program against an eager one, and raise at a different bit. 0 checks none.
        From 100 on, checks become rarer if they take more than 0.25 % of the time.
    max_programs : int, default: 32
        The number of programs kept; the one used longest ago goes first.
    passes : iterable of str, optional
        The passes to apply to the recorded graph, of ``"dead"``, ``"common"``, ``"follow"``, ``"layout"``, ``"early"``,
        ``"fuse"`` and ``"graphs"``; all by default, none if empty.

    Returns
    -------
    ProgramFunction
        To be called like the function, with ``programs``, ``lower()``, ``why()``, ``clear()`` and ``__wrapped__``.

    Raises
    ------
    ArgumentTypeError
        If an option is of the wrong type, or names no parameter. At a call: if an argument, other than a static one, holds
        an object that is equal to itself alone, or one that is not hashable.
    CaptureError
        At a call that is recorded: if the function asks for a value that is not known yet. Nothing has changed then.

    Warns
    -----
    RecordingWarning
        When one argument alone has made 8 programs; when numbers were drawn from generators that are not weft's while the
        function was recorded.

    See Also
    --------
    capture : Record a block.
    eager : Switch all programs off.

    Examples
    --------
    >>> import weft
    >>> @weft.program
    ... def step(x, w):
    ...     h = weft.tanh(x @ w)
    ...     w -= 0.1 * (x.T @ h)
    ...     return h.sum()
    >>> x, w = weft.ones((4, 3)), weft.ones((3, 3))
    >>> losses = [step(x, w) for _ in range(3)]
    >>> len(step.programs)
    1
    """
    if function is None:
        made: Any = program
        return functools.partial(
            made,
            static_argnames=static_argnames,
            donate=donate,
            memory=memory,
            sequential=sequential,
            verify=verify,
            max_programs=max_programs,
            passes=passes,
        )
    _check_callable(function)
    if memory not in _MEMORY:
        raise ArgumentValueError(f"weft.program: memory is one of {', '.join(map(repr, _MEMORY))}, not {memory!r}")
    if not isinstance(sequential, bool):
        raise ArgumentTypeError(f"weft.program: sequential is a bool, not {type(sequential).__name__}")
    for option, number, least in (("verify", verify, 0), ("max_programs", max_programs, 1)):
        if type(number) is not int:
            raise ArgumentTypeError(f"weft.program: {option} is an int, not {type(number).__name__}")
        if number < least:
            raise ArgumentValueError(f"weft.program: {option} is at least {least}, not {number}")
    given = _names("donate", donate)
    options = Options(memory, sequential, None if passes is None else _names("passes", passes), given)
    return ProgramFunction(
        Settings(function, options, frozenset(_names("static_argnames", static_argnames)), verify, max_programs)
    )


def _names(option: str, given: str | Iterable[str]) -> tuple[str, ...]:
    """Return names given as one or as several."""
    if not isinstance(given, Iterable):
        raise ArgumentTypeError(f"weft.program: {option} is a name or several, not {type(given).__name__}")
    names: tuple[Any, ...] = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"weft.program: {option} holds names, not {type(name).__name__}")
    return names


def _check_callable(function: object) -> None:
    """Reject callables that cannot be recorded from start to end."""
    if not callable(function):
        raise ArgumentTypeError(
            f"weft.program takes a function, not {type(function).__name__}; put it below @classmethod or @property"
        )
    name = getattr(function, "__name__", type(function).__name__)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentTypeError(
            f"weft.program: {name!r} is a coroutine function: record the part of it that does not await"
        )
    if inspect.isgeneratorfunction(function):
        raise ArgumentTypeError(f"weft.program: {name!r} is a generator function: make it a plain function")
