"""`Custom`: operators that a script defines in Python, by MXNet's two classes."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import Backward
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, text
from weft._numpy import namespace
from weft._registry.avals import as_dtype
from weft._tape.modes import TRAINING
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weft._core import NDArray
    from weft._mxnet.partial_shapes import Dtypes, Shapes


class CustomOp:
    """The computation of a custom operator, as in MXNet: subclasses define `forward` and `backward`.

    Both run when they are called, on the calling thread, and may ask arrays for values.
    """

    def forward(self, is_train: bool, req: Sequence[str], in_data: Any, out_data: Any, aux: Any) -> None:
        """Write the results of `in_data` into `out_data`, by `assign`."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def backward(self, req: Sequence[str], out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        """Write the gradients of inputs into `in_grad`, by `assign`."""
        raise NotImplementedError(f"{type(self).__name__} defines no backward()")

    def assign(self, dst: NDArray, req: str, src: Any) -> None:
        """Write, or add, a value where `req` asks for it."""
        if req == "add":
            dst[...] = dst + src
        elif req != "null":
            dst[...] = src


class CustomOpProp:
    """The facts of a custom operator before it runs, as in MXNet: names, shapes, dtypes."""

    def __init__(self, need_top_grad: bool = True) -> None:
        """Say whether `backward` looks at the gradients of results; losses do not."""
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Return the names of inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Return the names of results."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Return the names of states, which `forward` may change in place: none by default."""
        return []

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Return the shapes of inputs, of results and of states; by default all are that of the first input."""
        return [in_shape[0]] * len(self.list_arguments()), [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> Any:
        """Return the dtypes of inputs, of results and of states; by default all are that of the first input."""
        return [in_type[0]] * len(self.list_arguments()), [in_type[0]] * len(self.list_outputs()), []

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        """Return the operator for inputs of these shapes and dtypes."""
        raise NotImplementedError(f"{type(self).__name__} defines no create_operator()")


_KNOWN: dict[str, type[Any]] = {}


def register(reg_name: str) -> Callable[[type[Any]], type[Any]]:
    """Let ``Custom(op_type=reg_name)`` mean the decorated subclass of `CustomOpProp`.

    Examples
    --------
    >>> import weft.mxnet as mx
    >>> class Twice(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 2)
    ...
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
    >>> @mx.operator.register("doctest_twice")
    ... class TwiceProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, in_shapes, in_dtypes):
    ...         return Twice()
    >>> mx.nd.Custom(mx.nd.ones(2), op_type="doctest_twice").tolist()
    [2.0, 2.0]
    """

    def take(kind: type[Any]) -> type[Any]:
        _KNOWN[reg_name] = kind
        return kind

    return take


class _Open(Settings):
    """Settings with names that only the operator's class knows: they are texts, as in MXNet."""

    __slots__ = ()

    is_open = True

    def values(self, op: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all that is given as texts."""
        del op
        return {name: str(value) for name, value in given.items()}

    def read(self, op: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the name of the operator, and its class's instance."""
        texts = self.values(op, given)
        name = texts.pop("op_type", "")
        for key in ("of_inputs", "of_outputs"):  # of the op of gradients
            texts.pop(key, None)
        kind = _KNOWN.get(name)
        if kind is None:
            raise GraphError(
                f"no custom operator is registered as {name!r}: weft.mxnet.operator.register({name!r}) decorates its class"
            )
        prop = kind(**texts)
        counts = {key: int(given[key]) for key in ("of_inputs", "of_outputs") if key in given}
        return {"op_type": name, "prop": prop, **counts}


def _shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    count = _arguments(s)
    first = ins[0] if count else ()
    if first is None or None in first:
        return
    known = [list(each) if each is not None and None not in each else [] for each in list(ins)[:count]]
    found = s.prop.infer_shape(known)
    for at, each in enumerate([*found[0], *_of_states(found)]):
        if ins[at] is None or each:
            ins.learn(at, each)
    for at, each in enumerate(found[1]):
        outs.learn(at, each)


def _arguments(s: Any) -> int:
    """Return the number of inputs before the states."""
    return len(s.prop.list_arguments())


def _states(s: Any) -> list[str]:
    return list(s.prop.list_auxiliary_states())


def _of_states(found: Sequence[Any]) -> list[Any]:
    """Return what an operator's class says of its states: it may leave that out where there are none."""
    return list(found[2]) if len(found) > 2 else []  # inputs, results, states


def _dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    count = _arguments(s)
    if count and ins[0] is None:
        return
    found = s.prop.infer_type([ins[at] or ins[0] for at in range(count)])
    for kinds, told in ((ins, [*found[0], *_of_states(found)]), (outs, found[1])):
        for at, each in enumerate(told):
            kinds.learn(at, as_dtype(each))


def _run(s: Any, arrays: Sequence[Any], *, is_train: bool) -> tuple[CustomOp, list[Any]]:
    """Return an operator that has computed its results, and these; it changes the states among the arrays in place."""
    count = _arguments(s)
    shapes = [list(each.shape) for each in arrays[:count]]
    kinds = [each.dtype for each in arrays[:count]]
    made, types = s.prop.infer_shape(shapes)[1], s.prop.infer_type(kinds)[1]
    own = s.prop.create_operator("cpu", shapes, kinds)
    engine = arrays[0].engine if arrays else None
    outs = [namespace.zeros(tuple(shape), dtype=kind, engine=engine) for shape, kind in zip(made, types, strict=True)]
    own.forward(is_train, ["write"] * len(outs), list(arrays[:count]), outs, list(arrays[count:]))
    return own, outs


def _backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Compute the results again, in an operator of its own: attributes that `forward` sets are there in `backward`.

    The states have changed already: the operator gets copies, which are not looked at after.
    """
    del outputs
    count = _arguments(s)
    given, states = list(inputs[:count]), inputs[count:]
    own, outs = _run(s, [*given, *(each.copy() for each in states)], is_train=True)
    found = [namespace.zeros_like(each) for each in given]
    own.backward(["write"] * count, list(grads), given, outs, found, [each.copy() for each in states])
    return [*found, *[None] * len(states)]


@operator(
    "Custom",
    settings=_Open(op_type=(text, REQUIRED)),
    inputs=lambda s: (*s.prop.list_arguments(), *_states(s)),
    outputs=lambda s: len(s.prop.list_outputs()),
    shapes=_shapes,
    dtypes=_dtypes,
    gradient=Backward(_backward),
    pure=False,
    records=False,
)
def _custom(s: Any, *arrays: Any) -> Any:
    _, outs = _run(s, arrays, is_train=bool(TRAINING.get()))
    return outs[0] if len(outs) == 1 else tuple(outs)


def _mutated(attributes: dict[str, Any]) -> tuple[int, ...]:
    s = _custom.read(attributes)
    return tuple(range(_arguments(s), _arguments(s) + len(_states(s))))


_custom.set_attribute("mutates", _mutated)
