"""`weft.symbol.Symbol`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from weft._core import (
    GraphCore,
    SymbolCore,
    format_value,
    graph_draw,
    graph_infer_shape,
    graph_infer_type,
    graph_inferred,
    graph_load_json,
    graph_save_json,
)
from weft._graph import later
from weft._graph.naming import HIDDEN
from weft._graph.operators import Operators
from weft._registry.brief import brief
from weft._registry.symbol_hook import UnknownFactError, UnknownRank
from weft.errors import ArgumentIndexError, ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from weft._core import NDArray, Node, NodeEntry
    from weft._engine.labels import Device
    from weft._graph.executor import Executor
    from weft._registry.avals import DType

Shape = tuple[int | None, ...]


class Symbol(Operators):
    """A composed computation: results of nodes, which are calls of ops on other symbols, or variables.

    Operators and weft's functions take symbols beside arrays and compose; nothing runs until `eval` or an executor.

    Examples
    --------
    >>> import weft
    >>> x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
    >>> y = weft.tanh(x @ w)
    >>> y.list_arguments(), y.infer_shape(x=(2, 3), w=(3, 4))[1]
    (['x', 'w'], [(2, 4)])
    """

    __slots__ = ("_core",)

    def __init__(self, core: SymbolCore) -> None:
        self._core = core

    @classmethod
    def of_entries(cls, entries: list[NodeEntry]) -> Symbol:
        """Return the symbol of entries of nodes."""
        return cls(SymbolCore.of_entries(entries))

    @property
    def entries(self) -> list[NodeEntry]:
        """The entries that it stands for."""
        return self._core.entries()

    def get_node(self) -> Node:
        """Return the node of the result.

        Raises
        ------
        GraphError
            If it has results of several nodes.
        """
        node = self._core.head()
        if node is None:
            raise GraphError(f"the symbol has outputs of several nodes: {', '.join(self.list_outputs())}")
        return node

    # Lists

    @property
    def name(self) -> str | None:
        """The name of the node, None where there are several."""
        node = self._core.head()
        return None if node is None else node.name

    def list_arguments(self) -> list[str]:
        """Return the names of the variables that no op mutates, inputs first."""
        return self._core.list_inputs("arguments")

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of the variables that an op mutates."""
        return self._core.list_inputs("auxiliary")

    def list_inputs(self) -> list[str]:
        """Return the names of all variables."""
        return self._core.list_inputs("all")

    def list_outputs(self) -> list[str]:
        """Return the names of the outputs."""
        return self._core.list_outputs()

    def get_internals(self) -> Symbol:
        """Return a symbol of all outputs of all nodes.

        Examples
        --------
        >>> import weft
        >>> y = weft.symbol.exp(weft.symbol.Variable("x"), name="e")
        >>> y.get_internals().list_outputs()
        ['x', 'e_output']
        """
        return self.__class__(self._core.internals())

    def get_children(self) -> Symbol | None:
        """Return a symbol of the inputs of its nodes; None of a variable."""
        children = self._core.children()
        return None if children is None else self.__class__(children)

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._core)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return len(self._core)

    def __getitem__(self, key: Any) -> Symbol:
        """Return one output, by index or by name; of one output its elements, by a slice, a tuple, a list or a symbol.

        Examples
        --------
        >>> import weft
        >>> x = weft.symbol.Variable("x")
        >>> x[0].name, x[:, 0].infer_shape(x=(2, 3))[1]
        ('x', [(2,)])
        """
        if isinstance(key, str):
            return self.__class__(self._core.named(key))
        if not isinstance(key, int) or isinstance(key, bool):
            self._single(self.list_outputs())
            found_part: Symbol = later.indexed(self, key)
            return found_part
        found = self._core.output(key + len(self) if key < 0 else key) if key >= -len(self) else None
        if found is None:
            raise ArgumentIndexError(f"the symbol has {len(self)} outputs, and output {key} was asked for")
        return self.__class__(found)

    def __iter__(self) -> Iterator[Symbol]:
        """Iterate over the outputs."""
        return (self[at] for at in range(len(self)))

    def __contains__(self, name: object) -> bool:
        """Return whether an output has this name."""
        return name in self.list_outputs()

    def __repr__(self) -> str:
        """Return the name, and those of outputs."""
        name = self.name
        return f"<Symbol {name}>" if name is not None else f"<Symbol group [{', '.join(self.list_outputs())}]>"

    def _repr_html_(self) -> str:
        """Return the symbol's drawing, for a notebook."""
        from weft._trace.markup import pictured  # noqa: PLC0415 - for notebooks

        return pictured("", graph_draw(self.graph, True))

    def __bool__(self) -> bool:
        """Raise TypeError: nothing is computed yet."""
        raise ArgumentTypeError("a symbol has no value to branch on: compute it by eval(), or use weft.where")

    def __copy__(self) -> Symbol:
        """Return another symbol of the same nodes, which are immutable."""
        return self.__class__(self._core)

    def __deepcopy__(self, memo: object) -> Symbol:
        """Return a symbol of nodes of its own, which may bear other notes."""
        del memo
        return self.__class__(graph_load_json(self.tojson()).symbol())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON."""
        return _unpickle, (self.tojson(), self.__class__)

    # Composition

    def __call__(self, *args: Symbol, name: str | None = None, **kwargs: Symbol) -> Symbol:
        """Return this symbol with others in the place of its variables, or of the inputs of an atom.

        Parameters
        ----------
        *args, **kwargs : Symbol
            By position in the order of `list_inputs`, or by name.
        name : str, optional
            The name of the node, where this is an atom.

        Examples
        --------
        >>> import weft
        >>> x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
        >>> (x * 2)(x=y + 1).list_arguments()
        ['y']
        """
        for given in (*args, *kwargs.values()):
            if not isinstance(given, Symbol):
                raise ArgumentTypeError(f"a symbol is composed with symbols, and {type(given).__name__} was given")
        keyword = {key: each._core for key, each in kwargs.items()}
        return self.__class__(self._core.composed(name, [each._core for each in args], keyword))

    # Notes

    def attr(self, key: str) -> str | None:
        """Return the note on the node under `key`, or its attribute of that name as text; None if there is none.

        Examples
        --------
        >>> import weft
        >>> weft.symbol.Variable("w", lr_mult=2).attr("lr_mult")
        '2'
        """
        return _texts(self.get_node()).get(key, _texts(self.get_node()).get(f"__{key}__"))

    def set_attr(self, **attrs: str) -> None:
        """Note texts on the node."""
        node = self.get_node()
        for key, text in attrs.items():
            if not isinstance(text, str):
                raise ArgumentTypeError(f"set_attr({key}=...) takes a text, and {brief(text)} was given")
            plain = node.is_variable and key not in HIDDEN
            node.set_attr(key if plain or key.startswith("__") else f"__{key}__", text)

    _set_attr = set_attr

    def list_attr(self) -> dict[str, str]:
        """Return all that is noted on the node, and the attributes of its call as texts."""
        return _texts(self.get_node())

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Return the same for all nodes with notes, by name."""
        found = {node.name: _texts(node) for node in self._core.nodes()}
        return {name: texts for name, texts in found.items() if texts}

    # Inference

    @property
    def graph(self) -> GraphCore:
        """The graph of its outputs, as passes take it."""
        return GraphCore(self._core)

    def infer_shape(self, *args: Any, **known: Any) -> tuple[Any, Any, Any]:
        """Return the shapes of arguments, outputs and auxiliary states from those that are given.

        Parameters
        ----------
        *args, **known : tuple of int
            Shapes of arguments, by position or by name. In a shape None stands for a length that is not known.

        Returns
        -------
        tuple of three lists of tuples
            In the order of `list_arguments`, `list_outputs` and `list_auxiliary_states`; three times None where some do
            not follow. `infer_shape_partial` returns those that do.

        Raises
        ------
        ShapeError
            If shapes contradict each other; it names the node, the input and both shapes.

        Examples
        --------
        >>> import weft
        >>> x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
        >>> (x @ w).infer_shape(x=(2, 3), w=(None, 4))
        ([(2, 3), (3, 4)], [(2, 4)], [])
        """
        found = self.infer_shape_partial(*args, **known)
        unknown = any(shape is None or None in shape for shapes in found for shape in shapes)
        return (None, None, None) if unknown else found

    def infer_shape_partial(self, *args: Any, **known: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the answer of `infer_shape` as far as it follows: None for a shape, or a length, that does not."""
        return self._shapes(*args, **known)

    def _shapes(self, *args: Any, **known: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the answer of `infer_shape_partial` in classes that spell shapes in another way, too."""
        return self._inferred("shape", graph_infer_shape(self.graph, self._known(args, known), "__shape__"))

    def infer_type(self, *args: Any, **known: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the dtypes of arguments, outputs and auxiliary states from those that are given.

        An unknown one takes the dtype of its neighbours in a call, or float32.

        Examples
        --------
        >>> import weft
        >>> x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
        >>> (x @ w).infer_type(x="float64")
        ([dtype('float64'), dtype('float64')], [dtype('float64')], [])
        """
        return self._inferred("dtype", graph_infer_type(self.graph, self._known(args, known), "__dtype__"))

    def infer_type_partial(self, *args: Any, **known: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the answer of `infer_type` as far as it follows: None for a dtype that does not.

        Examples
        --------
        >>> import weft
        >>> x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
        >>> (x @ w).infer_type_partial()
        ([None, None], [None], [])
        """
        graph = graph_infer_type(self.graph, self._known(args, known), "__dtype__", assume=False)
        return self._inferred("dtype", graph)

    def _known(self, args: tuple[Any, ...], known: Mapping[str, Any]) -> dict[str, Any]:
        if not args:
            return {name: each for name, each in known.items() if each is not None}
        names = self.list_arguments()
        if len(args) > len(names):
            raise GraphError(f"the symbol has {len(names)} arguments, and {len(args)} were given: {', '.join(names)}")
        if known:
            raise GraphError("arguments are given by position or by name, not by both")
        return {name: each for name, each in zip(names, args, strict=False) if each is not None}

    def _inferred(self, key: str, graph: GraphCore) -> tuple[list[Any], list[Any], list[Any]]:
        arguments, outputs, states = graph_inferred(graph, key)
        return arguments, outputs, states

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a symbol of one output, where it follows from those of variables.

        Raises
        ------
        GraphError
            If it does not, or not wholly: `infer_shape_partial` tells the known part.
        """
        shape: Shape | None = self._single(self._shapes()[1])
        if shape is None or None in shape:
            so_far = "" if shape is None else f", but for {shape}"
            raise UnknownFactError(
                f"the shape of {self.name!r} is not known{so_far}: give shapes to its variables, as in "
                "weft.symbol.Variable('x', shape=(2, 3))"
            )
        return cast("tuple[int, ...]", shape)

    @property
    def ndim(self) -> Any:
        """The number of axes, or a stand-in where it is not known."""
        shape = self._single(self._shapes()[1])
        return UnknownRank(self.name or "a group") if shape is None else len(shape)

    @property
    def size(self) -> int:
        """The number of elements; `GraphError` if the shape is not known."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> DType:
        """The dtype of a symbol of one output, where it follows from those of variables; `GraphError` if it does not."""
        found: DType | None = self._single(
            self._inferred("dtype", graph_infer_type(self.graph, {}, "__dtype__", assume=False))[1]
        )
        if found is None:
            raise UnknownFactError(
                f"the dtype of {self.name!r} is not known: give dtypes to its variables, as in "
                "weft.symbol.Variable('x', dtype='float32')"
            )
        return found

    def _single(self, values: list[Any]) -> Any:
        if len(values) != 1:
            raise GraphError(
                f"the symbol has {len(values)} outputs ({', '.join(self.list_outputs())}): choose one by [index]"
            )
        return values[0]

    # Files

    def tojson(self) -> str:
        """Return the symbol as JSON in NNVM's format."""
        return graph_save_json(self.graph)

    def save(self, path: str | Path) -> None:
        """Write the symbol to a file that `weft.symbol.load` reads."""
        Path(path).write_text(self.tojson(), encoding="utf-8")

    # Uses

    def gradient(self, wrt: str | Symbol | Sequence[str | Symbol]) -> Symbol:
        """Return a symbol of the gradients of the outputs, one for each name or variable; the heads are ones.

        Examples
        --------
        >>> import weft
        >>> x = weft.symbol.Variable("x")
        >>> weft.symbol.copy_to(x, device="cpu:0").gradient(["x"]).eval(x=[3.0, 4.0])
        [NDArray([1., 1.])]
        """
        several = [wrt] if isinstance(wrt, str | Symbol) else wrt
        names = [each if isinstance(each, str) else _variable_of(each) for each in several]
        found: Symbol = later.gradient_symbol(self, names, None)
        return found

    def eval(self, **arrays: Any) -> list[NDArray]:
        """Compute the outputs from arrays for the variables.

        Warns
        -----
        UserWarning
            If an array is given for a name that no variable has; it is ignored.

        Examples
        --------
        >>> import weft
        >>> x = weft.symbol.Variable("x")
        >>> (x + 1).eval(x=[1, 2])
        [NDArray([2, 3])]
        """
        found: list[NDArray] = later.evaluate(self, arrays)
        return found

    def bind(
        self,
        *given: Any,
        args: Any = None,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        device: Device | str | None = None,
        group2device: Mapping[str, Any] | None = None,
        mirror: bool = False,
        memory_limit: int | None = None,
    ) -> Executor:
        """Return an executor on these arrays, which it reads and writes in place.

        Parameters
        ----------
        *given
            `args`, `args_grad`, `grad_req` and `aux_states` by position; a device may stand before them, as in MXNet.
        args : dict or list of NDArray
            The arguments, by name or in the order of `list_arguments`.
        args_grad : dict or list of NDArray, optional
            Where gradients go; for a missing name none is computed.
        grad_req : str, list or dict
            "write", "add" or "null": of all, or of each.
        aux_states : dict or list of NDArray, optional
            The auxiliary states.
        device : Device or str, optional
            Where nodes without a group run.
        group2device : dict, optional
            Where nodes with a note `ctx_group` run.
        mirror : bool, default: False
            Whether results forwards are computed again backwards, instead of kept, where the plan of memory gets smaller.
        memory_limit : int, optional
            Bytes that the plan of forwards and backwards, without arguments and gradients, may have: the cheapest
            results are computed again for it to fit. `PlanError` names the bound if nothing does.

        Examples
        --------
        >>> import weft
        >>> x = weft.symbol.Variable("x")
        >>> (x * 2).bind({"x": weft.ones(2)}).forward()
        [NDArray([2., 2.])]
        >>> (x * 2).bind(weft.cpu(0), {"x": weft.ones(2)}).forward()
        [NDArray([2., 2.])]
        """
        arrays = args, args_grad, grad_req, aux_states
        found: Executor = later.bind(self, given, device, arrays, group2device, mirror, memory_limit)
        return found

    def simple_bind(
        self,
        device: Device | str | None = None,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        group2device: Mapping[str, Any] | None = None,
        *,
        mirror: bool = False,
        memory_limit: int | None = None,
        **shapes: Any,
    ) -> Executor:
        """Return an executor on new arrays of zeros, of the shapes that follow from those that are given.

        `mirror` and `memory_limit` are as for `bind`.

        Raises
        ------
        ShapeError
            If a shape does not follow.
        PlanError
            If nothing was found that fits the limit; it names the bound.

        Examples
        --------
        >>> import weft
        >>> x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
        >>> executor = (x @ w).simple_bind(x=(2, 3), w=(3, 4))
        >>> executor.arg_dict["w"].shape, executor.grad_dict["w"].shape
        ((3, 4), (3, 4))
        """
        how = mirror, memory_limit
        found: Executor = later.simple_bind(self, device, grad_req, type_dict or {}, group2device, shapes, how)
        return found

    def summary(self, known: Mapping[str, Any] | None = None, /, **shapes: Any) -> str:
        """Return a table of the nodes: shapes, parameters, bytes.

        Shapes of variables are given by name, or all in a dict.

        Examples
        --------
        >>> import weft
        >>> x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
        >>> w = weft.symbol.Variable("w", shape=(3, 4))
        >>> print((x @ w).summary(x=(2, 3)).splitlines()[-1])
        parameters: 12 (48 bytes); results: 32 bytes
        """
        found: str = later.summarize(self, {**(known or {}), **shapes})
        return found

    def debug_str(self) -> str:
        """Return the nodes as text, each with its inputs and attributes.

        Examples
        --------
        >>> import weft
        >>> print(weft.symbol.exp(weft.symbol.Variable("x"), name="e").debug_str())
        Symbol Outputs:
            output[0]=e(0)
        Variable:x
        --------------------
        Op:exp, Name=e
        Inputs:
            arg[0]=x(0) version=0
        <BLANKLINE>
        """
        found: str = later.described(self)
        return found


def _variable_of(given: Any) -> str:
    """Return the name of a variable."""
    if isinstance(given, Symbol) and len(given) == 1 and given.get_node().is_variable:
        return given.get_node().name
    raise GraphError(
        f"gradient() takes variables or their names, and {brief(given)} was given: weft.graph.gradient takes other values, too"
    )


def _unpickle(text: str, kind: type[Symbol] = Symbol) -> Symbol:
    return kind(graph_load_json(text).symbol())


def _texts(node: Node) -> dict[str, str]:
    """Return a node's notes and attributes as texts; hidden keys in both spellings."""
    texts = {key: each if isinstance(each, str) else format_value(each) for key, each in node.attrs.items()}
    for key in HIDDEN:
        noted = texts.get(f"__{key}__")
        if noted is not None:
            texts[key] = noted
    return texts
