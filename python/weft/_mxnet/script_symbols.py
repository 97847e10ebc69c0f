"""Symbols for scripts of MXNet's: its functions by its names, with its arguments, automatic names and operators."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from weft._core import SymbolCore, graph_save_json
from weft._graph import making
from weft._graph.composing import compose_op
from weft._graph.naming import HIDDEN, named
from weft._graph.symbols import Symbol as _Symbol
from weft._mxnet.names import register_all
from weft._mxnet.operator import BY_NAME, Operator
from weft._mxnet.positions import arranged, count_name, input_names
from weft._mxnet.script_binding import simplified
from weft._mxnet.script_shapes import closed, is_np_shape, opened
from weft._registry.avals import as_dtype
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from weft._core import NDArray, Node
    from weft._graph.executor import Executor

_NUMBERS = (int, float, np.number, np.bool_)


def is_operand(each: Any) -> bool:
    """Return whether a value is a symbol."""
    return isinstance(each, _Symbol)


class Symbol(_Symbol):
    """A symbol with MXNet's operators and methods.

    ``+`` of two symbols is `elemwise_add`, which does not broadcast; `broadcast_add` does. In shapes 0 stands for a length
    that is not known, but for blocks of `weft.mxnet.np_shape`.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> x = S.Variable("x")
    >>> (x + 1).clip(0, 6).reshape((0, -1)).infer_shape(x=(2, 3, 4))[1]
    [(2, 12)]
    """

    __slots__ = ()
    __hash__ = _Symbol.__hash__

    def __add__(self, other: Any) -> Any:
        return _binary("_Plus", "_PlusScalar", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _binary("_Minus", "_MinusScalar", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary(None, "_RMinusScalar", self, other)

    def __mul__(self, other: Any) -> Any:
        return _binary("_Mul", "_MulScalar", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _binary("_Div", "_DivScalar", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary(None, "_RDivScalar", self, other)

    def __mod__(self, other: Any) -> Any:
        return _binary("_Mod", "_ModScalar", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _binary(None, "_RModScalar", self, other)

    def __pow__(self, other: Any) -> Any:
        return _binary("_Power", "_PowerScalar", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _binary(None, "_RPowerScalar", self, other)

    def __neg__(self) -> Any:
        return self * -1.0

    def __abs__(self) -> Any:
        return function("abs")(self)

    def __eq__(self, other: object) -> Any:  # a symbol, not a bool
        return _binary("_equal", "_equal_scalar", self, other)

    def __ne__(self, other: object) -> Any:  # likewise
        return _binary("_not_equal", "_not_equal_scalar", self, other)

    def __gt__(self, other: Any) -> Any:
        return _binary("_greater", "_greater_scalar", self, other)

    def __ge__(self, other: Any) -> Any:
        return _binary("_greater_equal", "_greater_equal_scalar", self, other)

    def __lt__(self, other: Any) -> Any:
        return _binary("_lesser", "_lesser_scalar", self, other)

    def __le__(self, other: Any) -> Any:
        return _binary("_lesser_equal", "_lesser_equal_scalar", self, other)

    def __getattr__(self, name: str) -> Any:
        """Return one of MXNet's functions as a method: ``x.softmax(axis=1)``."""
        if not name.startswith("_") and is_function(name):
            return partial(function(name), self)
        raise AttributeError(f"a symbol of MXNet's has no attribute {name!r}")

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the elements in another shape, which may have MXNet's codes 0, -1, -2, -3 and -4."""
        given = (shape[0] if len(shape) == 1 else shape,) if shape else ()
        return function("reshape")(self, *given, **options)

    def transpose(self, *axes: Any, **options: Any) -> Any:
        """Return the axes in another order; reversed where none are given."""
        given = (axes[0] if len(axes) == 1 else axes,) if axes else ()
        return function("transpose")(self, *given, **options)

    def flatten(self, **options: Any) -> Any:
        """Return the elements of all axes but the first along one."""
        return function("Flatten")(self, **options)

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Return the elements in another dtype."""
        return function("cast")(self, dtype=as_dtype(dtype), **options)

    def as_np_ndarray(self) -> NoReturn:
        """Raise GraphError: weft's own symbols have NumPy's meanings."""
        raise GraphError("weft.symbol has NumPy's functions of symbols")

    def asnumpy(self) -> NoReturn:
        """Raise GraphError: nothing is computed yet."""
        raise GraphError("a symbol has no values yet: compute it by eval(), or bind it")

    wait_to_read = asnumpy

    # Inference and uses, with MXNet's arguments

    def infer_shape(self, *args: Any, **known: Any) -> tuple[Any, Any, Any]:
        """Return the shapes of arguments, outputs and auxiliary states; three times None where some do not follow."""
        found = self._shapes(*map(opened, args), **{key: opened(each) for key, each in known.items()})
        unknown = any(shape is None or None in shape for shapes in found for shape in shapes)
        return (None, None, None) if unknown else found

    def infer_shape_partial(self, *args: Any, **known: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the answer of `infer_shape` as far as it follows: 0 for a length that does not, ``()`` for a shape.

        In blocks of `weft.mxnet.np_shape` these are -1 and None.
        """
        found = self._shapes(*map(opened, args), **{key: opened(each) for key, each in known.items()})
        arguments, outputs, states = ([closed(each) for each in shapes] for shapes in found)
        return arguments, outputs, states

    def tojson(self) -> str:
        """Return the symbol as JSON in MXNet's format; in blocks of `weft.mxnet.np_shape` it says `is_np_shape`."""
        return graph_save_json(self.graph.with_attribute("is_np_shape", "1") if is_np_shape() else self.graph)

    def atom(self, name: str | None = None) -> Symbol:
        """Return the call of the symbol's node without its inputs: called with others, it makes another node like it.

        Raises
        ------
        GraphError
            If the symbol has outputs of several nodes, or is a variable.

        Examples
        --------
        >>> import weft.mxnet.symbol as S
        >>> fc = S.FullyConnected(S.Variable("x"), num_hidden=2, name="fc")
        >>> half = fc.atom("half")(*(each.astype("float16") for each in fc.get_children()))
        >>> half.name, half.list_arguments(), half.infer_type(x="float32")[1]
        ('half', ['x', 'fc_weight', 'fc_bias'], [dtype('float16')])
        """
        node = self.get_node()
        if node.is_variable:
            raise GraphError(f"{node.name!r} is a variable: calls of ops have atoms")
        return Symbol(SymbolCore.atom(node.op._entry, name or node.name, node.attributes, _noted(node)))

    _gen_atomic_symbol = atom

    def eval(self, ctx: Any = None, **arrays: Any) -> list[NDArray]:
        """Compute the outputs from arrays for the variables."""
        del ctx
        return _Symbol.eval(self, **arrays)

    def bind(
        self, ctx: Any = None, *given: Any, group2ctx: Any = None, shared_exec: Any = None, **named_: Any
    ) -> Executor:
        """Return an executor on these arrays: `weft.symbol.Symbol.bind` with MXNet's names."""
        del shared_exec
        if "device" not in named_:
            named_["device"] = ctx
        return _Symbol.bind(simplified(self), *given, group2device=named_.pop("group2device", group2ctx), **named_)

    def simple_bind(  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride] # MXNet's names
        self,
        ctx: Any = None,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Any = None,
        group2ctx: Any = None,
        **named_: Any,
    ) -> Executor:
        """Return an executor on new arrays of zeros; names that the symbol does not have are ignored, as in MXNet."""
        del stype_dict
        names = {*self.list_inputs(), "device", "group2device", "mirror", "memory_limit"}
        shapes = {name: opened(each) for name, each in named_.items() if name in names}
        groups = shapes.pop("group2device", group2ctx)
        return _Symbol.simple_bind(simplified(self), shapes.pop("device", ctx), grad_req, type_dict, groups, **shapes)

    def attr(self, key: str) -> str | None:
        """Return what is noted on the node under `key`; of ``"name"`` and ``"op_name"`` the names of node and op."""
        node = self.get_node()
        if key == "name":
            return node.name
        if key == "op_name":
            return "null" if node.is_variable else str(getattr(node.op, "mxnet_name", node.op.name))
        return _Symbol.attr(self, key)

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """Return all that is noted on the node; with `recursive`, of all nodes, as ``<node>_<key>``."""
        if not recursive:
            return _Symbol.list_attr(self)
        return {f"{name}_{key}": text for name, texts in self.attr_dict().items() for key, text in texts.items()}


def _noted(node: Node) -> dict[str, Any] | None:
    """Return the notes on a node, without the attributes of its call."""
    return {key: each for key, each in node.attrs.items() if key not in node.attributes} or None


def _of(symbol: _Symbol) -> Symbol:
    return Symbol(symbol._core)


def _binary(of_two: str | None, of_number: str, one: Symbol, other: Any) -> Any:
    if isinstance(other, _Symbol) and of_two is not None:
        return function(of_two)(one, other)
    if isinstance(other, _NUMBERS):
        return function(of_number)(one, scalar=other.item() if isinstance(other, np.generic) else other)
    return NotImplemented


#: Where MXNet's rooms begin in the names of ops.
ROOMS = {
    "contrib": "_contrib_",
    "linalg": "_linalg_",
    "random": "_random_",
    "image": "_image_",
    "sparse": "_sparse_",
    "_internal": "_",
    "op": "",
}


def found_op(name: str, prefix: str = "") -> Operator | None:
    """Return the op that a function of MXNet's composes, if it is one.

    Examples
    --------
    >>> from weft._mxnet.script_symbols import found_op
    >>> found_op("elemwise_add").mxnet_name, found_op("box_nms", "_contrib_").mxnet_name
    ('elemwise_add', '_contrib_box_nms')
    """
    register_all()
    for full in (f"{prefix}{name}", name) if prefix == "_" else (f"{prefix}{name}",):
        found = BY_NAME.get(full)
        if found is not None:
            return found
    return None


def is_function(name: str) -> bool:
    """Return whether MXNet's module has a function of an op of this name."""
    return found_op(name) is not None


@cache
def function(name: str, prefix: str = "") -> Callable[..., Any]:
    """Return MXNet's function of a name, for symbols.

    Raises
    ------
    GraphError
        If there is no such op.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> from weft._mxnet.script_symbols import function
    >>> with S.NameManager():
    ...     function("FullyConnected")(S.Variable("x"), num_hidden=2).list_arguments()
    ['x', 'fullyconnected0_weight', 'fullyconnected0_bias']
    """
    op = found_op(name, prefix)
    if op is None:
        raise GraphError(f"no op of MXNet's is named {prefix}{name!r}: weft.mxnet.list_ops() names them all")

    def compose(*given: Any, name: str | None = None, attr: dict[str, str] | None = None, **named_: Any) -> Any:
        return composed(op, hint, given, name, attr, named_)

    hint = name.lower()
    compose.__name__ = compose.__qualname__ = name
    compose.__doc__ = (
        f"Compose MXNet's {op.mxnet_name}: {', '.join([*(input_names(op) or ('*data',)), *op.settings.names])}."
    )
    return compose


def composed(
    op: Operator,
    hint: str,
    given: tuple[Any, ...],
    name: str | None,
    attr: dict[str, str] | None,
    named_: dict[str, Any],
) -> Any:
    """Return the symbol of a call with MXNet's arguments: inputs and attributes by position or by name.

    Raises
    ------
    ArgumentTypeError
        If something that is no symbol stands where an input is wanted.
    """
    inputs, attributes = arranged(op, given, lambda each: isinstance(each, _Symbol), named_)
    twice = attributes.keys() & named_.keys()
    if twice:
        raise ArgumentTypeError(f"{op.mxnet_name}() got {', '.join(sorted(twice))} by position and by name")
    for key in ("out", "dtype") if named_.get("dtype", 0) is None else ("out",):
        named_.pop(key, None)
    names = input_names(op, {key: each for key, each in named_.items() if not isinstance(each, _Symbol)})
    if names is None:
        listed = {key: each for key, each in named_.items() if isinstance(each, _Symbol)}
        inputs += [named_.pop(key) for key in listed]
        named_.setdefault(count_name(op) or "num_args", len(inputs))
    else:
        for key in names:
            if key in named_ and named_[key] is None:
                del named_[key]
    attributes |= named_
    positional = inputs
    if None in inputs:  # an input that is left out becomes a variable
        assert names is not None
        attributes |= {key: each for key, each in zip(names, inputs, strict=False) if each is not None}
        positional = []
    chosen = named(name, hint)
    owned = _notes_of_inputs(attributes, names or ())
    symbol = _of(compose_op(op, tuple(positional), chosen, attr or {}, attributes, is_named=True))
    for owner, key, text in owned:
        for entry in symbol.get_node().inputs:
            if entry.node.name == f"{chosen}_{owner}":
                entry.node.set_attr(f"__{key}__", text)
    return symbol


def _notes_of_inputs(attributes: dict[str, Any], names: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Take ``weight_lr_mult=`` and the like out of attributes: they belong to the variables that are made."""
    found: list[tuple[str, str, str]] = []
    for key in list(attributes):
        for hidden in HIDDEN:
            owner = key[: -len(hidden) - 1]
            if key.endswith(f"_{hidden}") and owner in names:
                found.append((owner, hidden, str(attributes.pop(key))))
    return found


# Further functions of MXNet's module, besides those of ops.


def Variable(  # noqa: N802 - MXNet's name
    name: str,
    attr: dict[str, str] | None = None,
    shape: Any = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    stype: Any = None,
    **attrs: Any,
) -> Symbol:
    """Return a variable; in its shape 0 stands for a length that is not known.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> S.Variable("x", shape=(0, 3)).infer_shape_partial()[0]
    [(0, 3)]
    """
    del stype
    notes = {key: each for key, each in (("lr_mult", lr_mult), ("wd_mult", wd_mult)) if each is not None}
    return _of(making.Variable(name, opened(shape), dtype, init, attr=attr, **notes, **attrs))


def Group(symbols: Any) -> Symbol:  # noqa: N802 - MXNet's name
    """Return a symbol of all outputs of several symbols."""
    return _of(making.Group(symbols))


def load(path: Any) -> Symbol:
    """Return the symbol in a file."""
    return _of(making.load(path))


def load_json(text: str) -> Symbol:
    """Return the symbol that a text in MXNet's format describes."""
    return _of(making.load_json(text))


def _made(op: str, **attributes: Any) -> Any:
    name = attributes.pop("name", None)
    return function(op)(name=name, **attributes)


def zeros(shape: Any, dtype: Any = None, **named_: Any) -> Symbol:
    """Return a symbol of zeros, of float32 by default.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> S.zeros((2, 3)).infer_shape()[1]
    [(2, 3)]
    """
    return cast("Symbol", _made("_zeros", shape=shape, dtype=dtype or "float32", **named_))


def ones(shape: Any, dtype: Any = None, **named_: Any) -> Symbol:
    """Return a symbol of ones, of float32 by default."""
    return cast("Symbol", _made("_ones", shape=shape, dtype=dtype or "float32", **named_))


def full(shape: Any, val: float, dtype: Any = None, **named_: Any) -> Symbol:
    """Return a symbol of one number, of float32 by default."""
    return cast("Symbol", _made("_full", shape=shape, value=float(val), dtype=dtype or "float32", **named_))


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Return a symbol of numbers in order, of float32 by default; with `infer_range`, as many as its readers take."""
    given = {"start": start, "stop": stop, "step": step, "repeat": repeat, "dtype": dtype or "float32"}
    return cast("Symbol", _made("_arange", name=name, infer_range=infer_range, **given))


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **named_: Any) -> Symbol:  # noqa: N803 - MXNet's names
    """Return a symbol of ones on a diagonal, of float32 by default; `M` of 0 is as many columns as rows."""
    return cast("Symbol", _made("_eye", N=N, M=M, k=k, dtype=dtype or "float32", **named_))


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Return a symbol of numbers in even steps, of float32 by default."""
    given = {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": dtype or "float32"}
    return cast("Symbol", _made("_linspace", name=name, **given))


def histogram(a: Symbol, bins: Any = 10, range: Any = None, **named_: Any) -> Symbol:  # noqa: A002 - MXNet's name
    """Return a symbol of how many elements lie in each bin, and of the bins' edges."""
    if is_operand(bins):
        return cast("Symbol", function("_histogram")(a, bins, **named_))
    return cast("Symbol", function("_histogram")(a, bin_cnt=bins, range=range, **named_))


def parts_of(indices_or_sections: Any) -> dict[str, Any]:
    """Return the attributes of the op of parts for a number of parts, or for their beginnings."""
    if isinstance(indices_or_sections, int):
        return {"sections": indices_or_sections}
    return {"indices": (0, *indices_or_sections)}


def split_v2(ary: Symbol, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Symbol:
    """Return a symbol of parts along an axis: as many alike as a number says, or those between indices."""
    given = parts_of(indices_or_sections)
    return cast("Symbol", function("_split_v2")(ary, axis=axis, squeeze_axis=squeeze_axis, **given))


def _either(of_two: str, of_number: str, of_reversed: str, one: Any, other: Any) -> Any:
    """Compose a function of two symbols, of a symbol and a number, or of a number and a symbol."""
    if isinstance(one, _Symbol) and isinstance(other, _Symbol):
        return function(of_two)(one, other)
    if isinstance(one, _Symbol):
        return function(of_number)(one, scalar=other)
    if isinstance(other, _Symbol):
        return function(of_reversed)(other, scalar=one)
    raise ArgumentTypeError(f"one operand at least is a symbol, and {one!r} and {other!r} were given")


def maximum(left: Any, right: Any) -> Any:
    """Return the larger of two elements each."""
    return _either("_Maximum", "_MaximumScalar", "_MaximumScalar", left, right)


def minimum(left: Any, right: Any) -> Any:
    """Return the smaller of two elements each."""
    return _either("_Minimum", "_MinimumScalar", "_MinimumScalar", left, right)


def hypot(left: Any, right: Any) -> Any:
    """Return the hypotenuse over two elements each."""
    return _either("_Hypot", "_HypotScalar", "_HypotScalar", left, right)


def power(base: Any, exp: Any) -> Any:
    """Return one element raised to the power of the other."""
    return _either("_Power", "_PowerScalar", "_RPowerScalar", base, exp)
