"""Loops and branches of scripts: MXNet's ``contrib.foreach``, ``while_loop`` and ``cond``, of arrays and of symbols.

Over symbols they are nodes of weft's own `scan` and `cond`, with bodies inside. Over arrays they are Python's loops and
branches, as in MXNet: a body sees arrays, and may do anything with them.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from weft._core import NDArray
from weft._graph.naming import hinted
from weft._graph.symbols import Symbol as _Symbol
from weft._mxnet.loops import data_first, with_rows, zeros_for
from weft._mxnet.script_shapes import is_np_shape
from weft._mxnet.script_symbols import Symbol, is_operand
from weft._numpy import namespace
from weft._program.control import cond as _cond, scan
from weft._tape.pytree import unflattened, walk
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable


def control_function(name: str, module: str) -> Callable[..., Any] | None:
    """Return a function of loops or branches of one of the two modules; None if none has this name.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> outs, last = nd.contrib.foreach(lambda x, s: (x + s, s + 1), nd.array([[1], [2]]), nd.zeros(1))
    >>> outs.tolist(), last.tolist()
    ([[1.0], [3.0]], [2.0])
    """
    return _FUNCTIONS[module].get(name)


def _leaves(what: str, value: Any, kind: type[Any]) -> Any:
    """Return a structure of lists with symbols of one output each, or arrays, as leaves; None is an empty list.

    Raises
    ------
    ArgumentTypeError
        If something else is in it.
    """
    parts: Any = value
    if isinstance(value, kind):
        return value if not is_operand(value) or len(parts) == 1 else list(parts)
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [_leaves(what, each, kind) for each in parts]
    wanted = "symbols" if kind is _Symbol else "arrays"
    raise ArgumentTypeError(f"{what} are {wanted}, or nested lists of them, and {type(value).__name__} was given")


def _scripted(value: Any) -> Any:
    """Return a structure with symbols that have MXNet's operators."""
    return unflattened(value, map(_of, walk(value, _Symbol)), _Symbol)


def _plain(value: Any) -> Any:
    """Return a structure with weft's own symbols."""
    return unflattened(value, (_Symbol(each._core) for each in walk(value, _Symbol)), _Symbol)


def _along(rows: Any) -> Any:
    """Return a structure with symbols of data whose rows are no scalars, but in blocks of `np_shape`."""
    found = _plain(rows)
    return found if is_np_shape() else unflattened(found, map(with_rows, walk(found, _Symbol)), _Symbol)


def _of(symbol: _Symbol) -> Symbol:
    return Symbol(symbol._core)


def _same(what: str, before: Any, after: Any) -> Any:
    """Return states after a turn; they have the structure that they had before."""
    if _form(before) != _form(after):
        raise ArgumentValueError(f"{what}: the body returns as many states as it was given, in lists alike")
    return after


def _listed(value: Any) -> list[Any]:
    """Return a list of one, or the list that it is."""
    parts: list[Any] = value  # if it is one
    return parts if isinstance(value, list) else [value]


def _form(value: Any) -> Any:
    parts: list[Any] = value  # if it is one
    return [_form(each) for each in parts] if isinstance(value, list) else None


# Of symbols


def foreach_symbol(
    body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any, name: str = "foreach"
) -> tuple[Any, Any]:
    """Return the symbols of ``out, states = body(row, states)`` for each row of data: outs in rows, and the last states.

    Parameters
    ----------
    body : callable
        A turn. It may refer to symbols outside of it.
    data, init_states : Symbol, or nested lists of them
        The rows, along axis 0, and the first states.
    name : str, default: "foreach"
        The beginning of the node's name, before a number.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> x, s = S.Variable("x"), S.Variable("s")
    >>> outs, last = S.contrib.foreach(lambda row, states: (row + states[0], [states[0] * 2]), x, [s])
    >>> outs.eval(x=[[1.0], [2.0]], s=[1.0]), last[0].eval(x=[[1.0], [2.0]], s=[1.0])
    ([NDArray([[2.],
             [4.]])], [NDArray([4.])])
    """
    rows = _leaves("foreach: data", data, _Symbol)
    init = _leaves("foreach: states", init_states, _Symbol)

    def turn(states: Any, row: Any) -> tuple[Any, Any]:
        out, after = body(_scripted(row), _scripted(states))
        kept = _same("foreach", init, _leaves("foreach: states", after, _Symbol))
        return _plain(kept), _plain(_leaves("foreach: outputs", out, _Symbol))

    data_rows = _along(rows)
    with hinted(name):
        last, outs = scan(turn, _plain(init), data_rows)
    found = map(_of, data_first(list(walk((last, outs), _Symbol))))
    return unflattened(outs, found, _Symbol), unflattened(last, found, _Symbol)


def while_loop_symbol(
    cond: Callable[..., Any],
    func: Callable[..., tuple[Any, Any]],
    loop_vars: Any,
    max_iterations: Any = None,
    name: str = "while_loop",
) -> tuple[Any, Any]:
    """Return the symbols of ``out, loop_vars = func(*loop_vars)`` while ``cond(*loop_vars)`` is not 0.

    Parameters
    ----------
    cond, func : callable
        The condition, and a turn. They may refer to symbols outside of them.
    loop_vars : Symbol, or nested lists of them
        The first values of the loop's variables.
    max_iterations : int
        As many rows have the outputs, and so many turns are the most; rows of turns that were not taken are zeros.
    name : str, default: "while_loop"
        The beginning of the node's name, before a number.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> i, s = S.Variable("i"), S.Variable("s")
    >>> outs, last = S.contrib.while_loop(lambda i, s: i <= 2, lambda i, s: (i + s, (i + 1, s + i)), (i, s), 4)
    >>> [each.eval(i=[1.0], s=[1.0])[0].tolist() for each in (outs, *last)]
    [[[2.0], [4.0], [0.0], [0.0]], [3.0], [4.0]]
    """
    init = _leaves("while_loop: loop_vars", loop_vars, _Symbol)
    several = _listed(init)
    made: list[Any] = []

    def taken(*states: Any) -> Any:
        out, after = func(*_scripted(list(states)))
        kept = _same("while_loop", several, _listed(_leaves("while_loop: loop_vars", after, _Symbol)))
        made.append(_plain(_leaves("while_loop: outputs", out, _Symbol)))
        return _plain(kept), made[0]

    def left(*states: Any) -> Any:
        [outs] = made  # of the same states, in the other branch
        found = list(walk(outs, _Symbol))
        return list(states), unflattened(outs, iter(zeros_for(found) if found else ()), _Symbol)

    def turn(states: Any, row: Any) -> tuple[Any, Any]:
        del row
        choice = _plain(_leaves("while_loop: conditions", cond(*_scripted(states)), _Symbol))
        return _cond(choice, taken, left, *states)  # type: ignore[no-any-return]

    with hinted(name):
        last, outs = scan(turn, _plain(several), None, length=_count(several, max_iterations))
    found = _scripted(last)
    return _scripted(outs), found if isinstance(init, list) else found[0]


def cond_symbol(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond") -> Any:
    """Return the symbols of ``then_func()`` where `pred` is not 0, and of ``else_func()`` where it is.

    Parameters
    ----------
    pred : Symbol
        One number.
    then_func, else_func : callable
        The branches, of as many results alike. They refer to symbols outside of them.
    name : str, default: "cond"
        The beginning of the node's name, before a number.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> a, b = S.Variable("a"), S.Variable("b")
    >>> y = S.contrib.cond(a * b < 5, lambda: (a + 5) * (b + 5), lambda: (a - 5) * (b - 5))
    >>> y.eval(a=[1.0], b=[2.0]), y.eval(a=[6.0], b=[7.0])
    ([NDArray([42.])], [NDArray([2.])])
    """
    choice = _plain(_leaves("cond: conditions", pred, _Symbol))

    def branch(function: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: _plain(_leaves("cond: outputs", function(), _Symbol))

    with hinted(name):
        found = _cond(choice, branch(then_func), branch(else_func))
    return _scripted(found)


# Of arrays


def foreach_array(body: Callable[[Any, Any], tuple[Any, Any]], data: Any, init_states: Any) -> tuple[Any, Any]:
    """Return ``out, states = body(row, states)`` for each row of data: outs in rows, and the last states.

    Parameters
    ----------
    body : callable
        A turn.
    data, init_states : NDArray, or nested lists of them
        The rows, along axis 0, and the first states. A row of one axis has the shape ``(1,)``, but in blocks of `np_shape`.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> outs, last = nd.contrib.foreach(lambda row, s: (row + s[0], [s[0] * 2]), nd.array([1, 2]), [nd.ones(1)])
    >>> outs.tolist(), last[0].tolist()
    ([[2.0], [4.0]], [4.0])
    """
    rows = _leaves("foreach: data", data, NDArray)
    states = _leaves("foreach: states", init_states, NDArray)
    listed = list(walk(rows, NDArray))
    if not listed:
        raise ArgumentValueError("foreach: data has no array, so the number of rows is not known")
    made: list[Any] = []
    for at in range(len(listed[0])):
        row = (each[at] if each.ndim > 1 or is_np_shape() else each[at : at + 1] for each in listed)
        out, after = body(unflattened(rows, row, NDArray), states)
        states = _same("foreach", states, _leaves("foreach: states", after, NDArray))
        made.append(_leaves("foreach: outputs", out, NDArray))
    return _stacked(made, len(made)), states


def while_loop_array(
    cond: Callable[..., Any], func: Callable[..., tuple[Any, Any]], loop_vars: Any, max_iterations: Any = None
) -> tuple[Any, Any]:
    """Return ``out, loop_vars = func(*loop_vars)`` while ``cond(*loop_vars)`` is not 0, whose values are waited for.

    Parameters
    ----------
    cond, func : callable
        The condition, and a turn.
    loop_vars : NDArray, or nested lists of them
        The first values of the loop's variables.
    max_iterations : int
        As many rows have the outputs, and so many turns are the most; rows of turns that were not taken are zeros. If
        none was taken there are no outputs.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> i, s = nd.array([1]), nd.array([1])
    >>> outs, last = nd.contrib.while_loop(lambda i, s: i <= 2, lambda i, s: (i + s, (i + 1, s + i)), (i, s), 4)
    >>> outs.tolist(), [each.tolist() for each in last]
    ([[2.0], [4.0], [0.0], [0.0]], [[3.0], [4.0]])
    """
    init = _leaves("while_loop: loop_vars", loop_vars, NDArray)
    states = _listed(init)
    most = _count(states, max_iterations)
    made: list[Any] = []
    while len(made) < most and bool(cond(*states)):
        out, after = func(*states)
        states = _same("while_loop", states, _listed(_leaves("while_loop: loop_vars", after, NDArray)))
        made.append(_leaves("while_loop: outputs", out, NDArray))
    return _stacked(made, most), states if isinstance(init, list) else states[0]


def cond_array(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any]) -> Any:
    """Return ``then_func()`` if `pred` is not 0, else ``else_func()``; its value is waited for.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> nd.contrib.cond(nd.array([1]) < 5, lambda: "small", lambda: "large")
    'small'
    """
    return then_func() if bool(pred) else else_func()


def _count(states: list[Any], most: Any) -> int:
    """Return the most turns of a loop."""
    if not states:
        raise ArgumentValueError("while_loop: loop_vars has one symbol or array at least")
    if most is None:
        raise ArgumentValueError("while_loop: max_iterations says how many rows the outputs have: give it")
    return int(most) if isinstance(most, NDArray) else operator.index(most)


def _stacked(made: list[Any], rows: int) -> Any:
    """Return the outputs of turns as one structure of arrays with so many rows, the last ones zeros."""
    if not made:
        return []
    first = made[0]
    if any(_form(each) != _form(first) for each in made):
        raise ArgumentValueError("a body returns as many outputs in each turn, in lists alike")

    def joined(*parts: Any) -> Any:
        found = namespace.stack(parts)
        if len(parts) == rows:
            return found
        return namespace.concat([found, namespace.zeros((rows - len(parts), *found.shape[1:]), dtype=found.dtype)])

    return unflattened(first, map(joined, *(walk(each, NDArray) for each in made)), NDArray)


_FUNCTIONS: dict[str, dict[str, Callable[..., Any]]] = {
    "symbol": {"foreach": foreach_symbol, "while_loop": while_loop_symbol, "cond": cond_symbol},
    "ndarray": {"foreach": foreach_array, "while_loop": while_loop_array, "cond": cond_array},
}
#: The names of these functions.
CONTROL = tuple(_FUNCTIONS["symbol"])
