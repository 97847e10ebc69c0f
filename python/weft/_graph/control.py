"""`weft.scan` and `weft.cond` of symbols: nodes with symbols of their own as bodies, written into attributes."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import Node, NodeEntry, SymbolCore, graph_load_json
from weft._graph.composite import make_node, register
from weft._graph.differentiating import gradient
from weft._graph.evaluation import Schedule
from weft._graph.graphs import Graph
from weft._graph.naming import NameManager, next_name
from weft._graph.symbols import Symbol
from weft._program.branches import pairs
from weft._program.control import cond, scan
from weft._program.loops import pair
from weft._program.trees import leaves_of
from weft._registry.avals import Aval
from weft._registry.op import get_op
from weft._registry.symbol_hook import is_symbol
from weft._tape.pytree import unflattened
from weft.errors import ArgumentTypeError, ArgumentValueError, GradientError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._core import NDArray


class _Noting(NameManager):
    """Names as another manager does, and notes which."""

    __slots__ = ("_outer", "names")

    def __init__(self, outer: NameManager) -> None:
        super().__init__()
        self._outer = outer
        self.names: set[str] = set()

    def get(self, name: str | None, hint: str) -> str:
        """Return the other manager's answer."""
        found = self._outer.get(name, hint)
        self.names.add(found)
        return found


def scanned(f: Callable[..., Any], init: Any, xs: Any, length: int | None, *, reverse: bool) -> tuple[Any, Any]:
    """Return the symbols of a loop: the last carry, and the rows."""
    carries, rows = _symbols("scan", init), _symbols("scan", xs)
    if not rows and length is None:
        raise ArgumentValueError("scan: xs and length say one number of rows, and they say nothing")
    name, texts = next_name("scan")
    given = [_stand_in(f"{name}_carry{at}", x) for at, x in enumerate(carries)]
    parts = [_stand_in(f"{name}_row{at}", x, row=True) for at, x in enumerate(rows)]
    noting = _Noting(_manager())
    with noting:
        returned: Any = f(_like(init, given), _like(xs, parts))
    carry, y = pair(returned)
    kept, made = [x for x in leaves_of(carry) if is_symbol(x)], [x for x in leaves_of(y) if is_symbol(x)]
    if len(kept) != len(carries):
        raise ArgumentValueError(
            f"scan: the body was given a carry of {len(carries)} symbols, and returned one of {len(kept)}"
        )
    if any(not is_symbol(x) and x is not None for x in leaves_of(y)):
        raise ArgumentTypeError("scan: the rows that a body over symbols returns are symbols, or None")
    names = [x.list_inputs()[0] for x in (*given, *parts)]
    body, outside = _closed([*kept, *made], names, noting.names, name)
    attributes = {
        "body": text_of(body),
        "inputs": (*names, *outside),
        "carries": len(carries),
        "rows": len(rows),
        "length": length,
        "reverse": reverse,
        "results": len(kept) + len(made),
    }
    results = make_node(_scan, name, attributes, [*carries, *rows, *outside.values()], texts)
    return _like(init, results[: len(kept)]), _like(y, results[len(kept) :])


def branched(p: Any, f: Callable[..., Any], g: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the symbols of a choice."""
    if not is_symbol(p):
        return f(*args) if p else g(*args)
    name, texts = next_name("cond")
    given = _symbols("cond", args)
    stand_ins = [_stand_in(f"{name}_argument{at}", x) for at, x in enumerate(given)]
    names = [x.list_inputs()[0] for x in stand_ins]
    bodies: list[tuple[Any, Symbol, dict[str, Symbol]]] = []
    for at, branch in enumerate((f, g)):
        noting = _Noting(_manager())
        with noting:
            returned = branch(*_like(args, stand_ins))
        found = leaves_of(returned)
        if not found or not all(is_symbol(x) for x in found):
            raise ArgumentTypeError("cond: branches over symbols return symbols")
        bodies.append((returned, *_closed(found, names, noting.names, f"{name}_{at}")))
    (taken, one, ours), (other, two, theirs) = bodies
    count = len(pairs(leaves_of(taken), leaves_of(other)))
    attributes = {
        "taken": text_of(one),
        "other": text_of(two),
        "inputs": tuple(names),
        "outside": (tuple(ours), tuple(theirs)),
        "results": count,
    }
    return _like(taken, make_node(_cond, name, attributes, [p, *given, *ours.values(), *theirs.values()], texts))


def _manager() -> NameManager:
    from weft._graph import naming  # noqa: PLC0415 - for the one that is in charge now

    return naming._manager.get()


def _symbols(what: str, value: Any) -> list[Any]:
    found = leaves_of(value)
    for x in found:
        if not is_symbol(x) and hasattr(x, "dtype") and getattr(x, "shape", None) is not None:
            raise GraphError(
                f"{what}() has symbols and {type(x).__name__} among its arguments: let a variable stand for the array, and give "
                "the array to eval() or bind()"
            )
    return [x for x in found if is_symbol(x)]


def _like(value: Any, symbols: Sequence[Any]) -> Any:
    """Return a structure with other symbols in it."""
    rest = iter(symbols)
    return unflattened(value, iter([next(rest) if is_symbol(x) else x for x in leaves_of(value)]))


def _stand_in(name: str, x: Symbol, *, row: bool = False) -> Symbol:
    """Return a variable that stands for a symbol, or for a row of it; of its shape, as far as that is known."""
    shape = x._single(x._shapes()[1])
    texts: dict[str, Any] = {}
    if shape is not None and (shape or not row):
        texts["__shape__"] = repr(tuple(shape[1:] if row else shape))
    return Symbol(SymbolCore.variable(name, texts or None))


def _closed(outs: list[Any], names: Sequence[str], made: set[str], prefix: str) -> tuple[Symbol, dict[str, Symbol]]:
    """Return the symbol of a body, and by their names in it the symbols from outside that it refers to.

    A node is inside if it was made by the body, or depends on a stand-in for its inputs. A node outside stays there: it
    is computed once.
    """
    group = Symbol(SymbolCore.group([x._core for x in outs]))
    known: dict[Node, bool] = {}
    for node in _ordered(group):
        own = any(known[entry.node] or entry.node.name in names for entry in node.inputs)
        known[node] = not node.is_variable and (own or node.name in made)
    used = [entry for node, inside in known.items() if inside for entry in node.inputs] + group.entries
    outside: dict[NodeEntry, None] = {
        entry: None
        for entry in used
        if not known[entry.node] and not (entry.node.is_variable and entry.node.name in names)
    }
    taken: dict[NodeEntry, NodeEntry] = {}
    closed: dict[str, Symbol] = {}
    for at, entry in enumerate(outside):
        name = entry.node.name if entry.node.is_variable else f"{prefix}_outside{at}"
        closed[name] = Symbol.of_entries([entry])
        if not entry.node.is_variable:
            taken[entry] = NodeEntry(Node(None, name))
    if not taken:
        return group, closed
    again: dict[Node, Node] = {}

    def moved(entry: NodeEntry) -> NodeEntry:
        if entry in taken:
            return taken[entry]
        return NodeEntry(again.get(entry.node, entry.node), entry.index, entry.version)

    for node, inside in known.items():
        if inside:
            again[node] = Node(
                node.op, node.name, {**node.attributes, **node.attrs}, [moved(each) for each in node.inputs]
            )
    return Symbol.of_entries([moved(entry) for entry in group.entries]), closed


def text_of(body: Symbol) -> str:
    """Return a body as an attribute: JSON in one line.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.control import body_of, text_of
    >>> body_of(text_of(weft.symbol.Variable("x") + 1)).shapes({"x": (2, 3)})
    ({'x': (2, 3)}, [(2, 3)])
    """
    return json.dumps(json.loads(body.tojson()), separators=(",", ":"))


def _ordered(symbol: Symbol) -> list[Node]:
    return Graph(symbol).indexed_graph().nodes


# The ops on arrays, and their rules for passes.


class _Body:
    """The symbol of a body, to be called."""

    def __init__(self, text: str) -> None:
        self.symbol = Symbol(graph_load_json(text).symbol())
        self.schedule = Schedule(self.symbol.graph)

    def __call__(self, arrays: dict[str, Any]) -> list[Any]:
        values = self.schedule.values({name: arrays[name] for name in self.schedule.variables})
        self.schedule.run(values)
        return [values[at] for at in self.schedule.outputs]

    def known(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the part of something given by name that concerns its variables."""
        return {name: each for name, each in given.items() if name in self.schedule.variables and each is not None}

    def shapes(self, given: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """Return the shapes of variables and results, as far as they follow."""
        ins, outs, states = self.symbol._shapes(**self.known(given))
        return self._by_name(ins, states), outs

    def types(self, given: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        """Return their dtypes."""
        ins, outs, states = self.symbol.infer_type(**self.known(given))
        return self._by_name(ins, states), outs

    def _by_name(self, arguments: list[Any], states: list[Any]) -> dict[str, Any]:
        symbol = self.symbol
        return dict(
            zip((*symbol.list_arguments(), *symbol.list_auxiliary_states()), (*arguments, *states), strict=True)
        )


@lru_cache(maxsize=256)
def body_of(text: str) -> _Body:
    """Return the body that an attribute holds."""
    return _Body(text)


class _Turn:
    """The body of a loop over arrays: values from outside go from turn to turn as they are."""

    def __init__(self, text: str, names: tuple[str, ...], carries: int, rows: int) -> None:
        self._body, self._names = body_of(text), names
        self._carries, self._rows = carries, rows

    def __call__(self, state: Any, row: Any) -> Any:
        carry, outside = state
        found = self._body(dict(zip(self._names, (*carry, *row, *outside), strict=True)))
        return (found[: self._carries], outside), found[self._carries :]


@lru_cache(maxsize=256)
def _turn_of(text: str, names: tuple[str, ...], carries: int, rows: int) -> Callable[[Any, Any], Any]:
    turn = _Turn(text, names, carries, rows)

    def body(state: Any, row: Any) -> Any:
        return turn(state, row)

    return body


def _run_scan(
    *arrays: NDArray,
    body: str,
    inputs: tuple[str, ...],
    carries: int,
    rows: int,
    length: int | None,
    reverse: bool,
    results: int,
) -> tuple[NDArray, ...]:
    del results
    turn = _turn_of(body, tuple(inputs), carries, rows)
    init, walked, outside = (
        list(arrays[:carries]),
        list(arrays[carries : carries + rows]),
        list(arrays[carries + rows :]),
    )
    (last, _), ys = scan(turn, (init, outside), walked, length=length, reverse=reverse)
    return (*last, *ys)


def _run_cond(
    p: NDArray,
    *arrays: NDArray,
    taken: str,
    other: str,
    inputs: tuple[str, ...],
    outside: Sequence[Sequence[str]],
    results: int,
) -> tuple[NDArray, ...]:
    del results
    first = len(inputs)
    middle = first + len(outside[0])

    def branch(text: str, names: Sequence[str], given: Sequence[NDArray]) -> Callable[[], list[NDArray]]:
        def run() -> list[NDArray]:
            return body_of(text)(dict(zip((*inputs, *names), (*arrays[:first], *given), strict=True)))

        return run

    return tuple(cond(p, branch(taken, outside[0], arrays[first:middle]), branch(other, outside[1], arrays[middle:])))


def _row_of(shape: Any) -> Any:
    return None if shape is None else tuple(shape[1:])


def _infer_scan_shape(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    carries, rows = attributes["carries"], attributes["rows"]
    names = attributes["inputs"]
    walked = [ins[at] for at in range(carries, carries + rows)]
    lengths = [
        attributes["length"],
        *(shape[0] for shape in walked if shape),
        *(shape[0] for shape in outs[carries:] if shape),
    ]
    length = next((each for each in lengths if each is not None), None)
    before = [known if known is not None else after for known, after in zip(ins[:carries], outs[:carries], strict=True)]
    known = dict(zip(names, (*before, *map(_row_of, walked), *ins[carries + rows :]), strict=True))
    found, made = body_of(attributes["body"]).shapes(known)
    inner = [found.get(name, each) for name, each in known.items()]
    again = [each if each is not None else after for each, after in zip(inner[:carries], made[:carries], strict=True)]
    spread = [None if each is None else (length, *each) for each in inner[carries : carries + rows]]
    ys = [None if each is None else (length, *each) for each in made[carries:]]
    return [*again, *spread, *inner[carries + rows :]], [*again, *ys]


def _infer_scan_type(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    carries = attributes["carries"]
    ins = [
        *(known if known is not None else after for known, after in zip(ins[:carries], outs, strict=False)),
        *ins[carries:],
    ]
    found, made = body_of(attributes["body"]).types(dict(zip(attributes["inputs"], ins, strict=True)))
    return [found.get(name, each) for name, each in zip(attributes["inputs"], ins, strict=True)], made


def forwards(infer_shape: Callable[..., Any], infer_type: Callable[..., Any]) -> Callable[..., tuple[Aval, ...]]:
    """Return the rule that both of these say forwards.

    Examples
    --------
    >>> import numpy
    >>> from weft._graph.control import forwards
    >>> from weft._registry.avals import Aval
    >>> rule = forwards(lambda given, ins, outs: (ins, ins), lambda given, ins, outs: (ins, ins))
    >>> [(x.shape, str(x.dtype)) for x in rule(Aval((2,), numpy.dtype("float32")))]
    [((2,), 'float32')]
    """

    def infer(*avals: Aval, **attributes: Any) -> tuple[Aval, ...]:
        nothing = [None] * attributes.get("results", 1)
        _, shapes = infer_shape(attributes, [x.shape for x in avals], nothing)
        _, dtypes = infer_type(attributes, [x.dtype for x in avals], nothing)
        return tuple(Aval(shape, np.dtype(dtype)) for shape, dtype in zip(shapes, dtypes, strict=True))

    return infer


def _branches(attributes: dict[str, Any]) -> list[tuple[_Body, list[str], list[int]]]:
    """Return for each branch its body, the names of its inputs, and which inputs of the op these are."""
    count, (ours, theirs) = len(attributes["inputs"]), attributes["outside"]
    shared = list(range(1, count + 1))
    own = list(range(count + 1, count + 1 + len(ours)))
    rest = list(range(count + 1 + len(ours), count + 1 + len(ours) + len(theirs)))
    return [
        (body_of(attributes["taken"]), [*attributes["inputs"], *ours], [*shared, *own]),
        (body_of(attributes["other"]), [*attributes["inputs"], *theirs], [*shared, *rest]),
    ]


def _infer_cond(what: str, attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    ins, outs = list(ins), list(outs)
    for body, names, places in _branches(attributes):
        given = {name: ins[at] for name, at in zip(names, places, strict=True)}
        found, made = body.shapes(given) if what == "shapes" else body.types(given)
        for name, at in zip(names, places, strict=True):
            ins[at] = found.get(name, ins[at]) if ins[at] is None else ins[at]
        outs = [each if known is None else known for known, each in zip(outs, made, strict=True)]
    return ins, outs


_cond_shape, _cond_type = partial(_infer_cond, "shapes"), partial(_infer_cond, "types")


# Gradients, of symbols: those of arrays are the tape's.


def _gradient_of(body: str, names: Sequence[str], prefix: str) -> tuple[Symbol, list[str]]:
    """Return the symbol of a body's gradients, one for each input, and the names of its variables for the heads."""
    symbol = body_of(body).symbol
    for node in _ordered(symbol):
        if not node.is_variable and _draws(node.op, node.attributes):
            raise GradientError(
                f"the op {node.name!r} ({node.op.name}) draws numbers in the body of {prefix!r}, and the gradient, which computes the "
                "body once more, would draw others: draw before, and give the body what was drawn"
            )
    known = {node.name: node.outputs[0] for node in symbol._core.inputs("all")}
    wanted = [known.get(name) or NodeEntry(Node(None, name)) for name in names]
    heads = [Symbol(SymbolCore.variable(f"{prefix}_gradient{at}", None)) for at in range(len(symbol))]
    found = gradient(None, symbol, wanted, heads).symbol
    return found, [f"{prefix}_gradient{at}" for at in range(len(symbol))]


def _draws(op: Any, attributes: dict[str, Any]) -> bool:
    """Return whether an op draws: what it says, else whether it is impure, and has no gradient or draws only where it trains."""
    said = op.attribute("draws_trained", None)
    if said is not None:
        return bool(said(attributes))
    pure = op.attribute("pure", None)
    pure = pure(attributes) if callable(pure) else pure
    return pure is False and (op.reads is None or op.attribute("draws_untrained", None) is not None)


def _composed(symbol: Symbol, given: dict[str, Symbol]) -> list[Symbol]:
    names = set(symbol.list_inputs())
    keyword: dict[str, Any] = {name: each for name, each in given.items() if name in names}
    return list(symbol(**keyword))


def _scan_gradient(node: Any, grads: Sequence[Any]) -> Any:
    """Walk back: from the carries before each row, which a loop over the same body gives."""
    zeros_like = get_op("zeros_like")
    attributes, carries, rows = node.attributes, node.attributes["carries"], node.attributes["rows"]
    names = attributes["inputs"]
    init, walked = list(node.inputs[:carries]), list(node.inputs[carries : carries + rows])
    outside = list(node.inputs[carries + rows :])
    back, heads = _gradient_of(attributes["body"], names, node.name)
    forward = body_of(attributes["body"]).symbol
    closed = dict(zip(names[carries + rows :], outside, strict=True))

    def ahead(carry: Any, row: Any) -> Any:
        found = _composed(forward, {**dict(zip(names, (*carry, *row), strict=False)), **closed})
        return found[:carries], carry

    def turn(state: Any, row: Any) -> Any:
        ends, sums = state
        saved, parts, dys = row
        given = {**dict(zip(names, (*saved, *parts), strict=False)), **closed}
        found = _composed(back, {**given, **dict(zip(heads, (*ends, *dys), strict=True))})
        more = [known + each for known, each in zip(sums, found[carries + rows :], strict=True)]
        return (found[:carries], more), found[carries : carries + rows]

    length, reverse = attributes["length"], attributes["reverse"]
    _, saved = scan(ahead, init, walked, length=length, reverse=reverse)
    start = (list(grads[:carries]), [zeros_like(x) for x in outside])
    (ends, sums), dxs = scan(turn, start, (saved, walked, list(grads[carries:])), length=length, reverse=not reverse)
    return (*ends, *dxs, *sums)


def _cond_gradient(node: Any, grads: Sequence[Any]) -> Any:
    """Walk back through the branch that was taken."""
    zeros_like = get_op("zeros_like")
    attributes = node.attributes
    p, given = node.inputs[0], list(node.inputs[1:])

    def back(at: int) -> Callable[..., Any]:
        _, names, places = _branches(attributes)[at]
        found, heads = _gradient_of(attributes["taken" if at == 0 else "other"], names, f"{node.name}_{at}")

        def run(inputs: Any, outs: Any) -> Any:
            own = {name: inputs[place - 1] for name, place in zip(names, places, strict=True)}
            made = dict(zip(places, _composed(found, {**own, **dict(zip(heads, outs, strict=True))}), strict=True))
            return [
                made[place] if place in made else zeros_like(inputs[place - 1]) for place in range(1, len(inputs) + 1)
            ]

        return run

    return (None, *cond(p, back(0), back(1), given, list(grads)))


def _count_scan(given: dict[str, Any]) -> int:
    return len(given["inputs"])


def _count_cond(given: dict[str, Any]) -> int:
    return 1 + len(given["inputs"]) + sum(map(len, given["outside"]))


def _count_results(given: dict[str, Any]) -> int:
    count: int = given["results"]
    return count


_scan = register(
    "scan",
    _run_scan,
    forwards(_infer_scan_shape, _infer_scan_type),
    num_inputs=_count_scan,
    num_outputs=_count_results,
    infer_shape=_infer_scan_shape,
    infer_type=_infer_scan_type,
    gradient=_scan_gradient,
)
_cond = register(
    "cond",
    _run_cond,
    forwards(_cond_shape, _cond_type),
    num_inputs=_count_cond,
    num_outputs=_count_results,
    infer_shape=_cond_shape,
    infer_type=_cond_type,
    gradient=_cond_gradient,
)
