"""The replay of an executor: calls of a schedule, recorded over the executor's own arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft import _core
from weft._core import NDArray
from weft._program.program import Program
from weft.errors import WeftError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weft._core import Compiled


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording, and where in the values of a schedule its results go.

    Parameters
    ----------
    program : Program
        The replayed program.
    compiled : Compiled
        The same, as the core has it.
    made : tuple of int
        The entries that are results of a replay, in order.
    known : tuple of (int, NDArray)
        The entries that are states themselves.
    states : tuple
        The arrays over which it was recorded: with others in their place it is another program.
    """

    program: Program
    compiled: Compiled
    made: tuple[int, ...]
    known: tuple[tuple[int, NDArray], ...]
    states: tuple[Any, ...]

    def replay(self, values: list[Any], arguments: tuple[NDArray, ...] = ()) -> None:
        """Push the program once more, and put its results into `values`."""
        for at, array in zip(self.made, self.compiled.run(arguments), strict=True):
            values[at] = array
        for at, array in self.known:
            values[at] = array


def can_record(arrays: Iterable[Any]) -> bool:
    """Return whether calls over these arrays may be replayed now.

    They are not where programs are switched off, where this thread records already, where the tape is to hear of each
    call, and where an array is not on the first CPU device.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.replayed import can_record
    >>> can_record([weft.ones(2)])
    True
    >>> with weft.eager():
    ...     can_record([weft.ones(2)])
    False
    """
    if _core.is_eager() or _core.recording() is not None:
        return False
    return not any(array.requires_grad or array._device or array._elsewhere for array in arrays)


def record(
    name: str,
    values: list[Any],
    states: Sequence[NDArray],
    arguments: Sequence[int],
    wanted: Iterable[int],
    run: Callable[[list[Any]], None],
) -> Recorded | None:
    """Record calls without running them, and plan them.

    Parameters
    ----------
    name : str
        The program's name.
    values : list
        The values of entries from before.
    states : sequence of NDArray
        The arrays that the calls read and write where they lie.
    arguments : sequence of int
        The entries whose arrays each replay is given.
    wanted : iterable of int
        The entries that a replay is to give.
    run : callable
        Makes the calls, on values.

    Returns
    -------
    Recorded or None
        None if the calls cannot be recorded: the caller makes them one by one, and meets the fault.
    """
    inside = list(values)
    engine = next((array.engine for array in (*states, *values) if isinstance(array, NDArray)), None)
    if engine is None:
        return None
    recording = _core.Recording(engine, name)
    try:
        recording.begin()
        for at in arguments:
            inside[at] = recording.argument(values[at])
        run(inside)
        recording.end()
        given = {id(array) for array in values if array is not None}
        listed = tuple(wanted)
        made = tuple(at for at in listed if id(inside[at]) not in given)
        known = tuple((at, inside[at]) for at in listed if id(inside[at]) in given)
        compiled = recording.finish(tuple(inside[at] for at in made))
    except WeftError:  # of another engine, say
        recording.abort()
        return None
    except BaseException:
        recording.abort()
        raise
    if compiled.states_version():  # calls that looked at values answer for these alone
        return None
    return Recorded(Program(name, compiled), compiled, made, known, tuple(states))
