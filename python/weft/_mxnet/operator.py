"""An op of MXNet's: its settings, its rules both ways, and its computation by weft's functions."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Functions of settings take those of any kind.

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft._call.operands import as_array
from weft._core import NDArray, find_op
from weft._mxnet.gradients import AGAIN, NONE, Backward, gradient_rule
from weft._mxnet.partial_shapes import Dtypes, Shapes, as_pair, data_dtype
from weft._mxnet.settings import Settings
from weft._registry.avals import Aval
from weft._registry.op import Op
from weft._registry.symbol_hook import is_symbol
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Apply: TypeAlias = Callable[..., Any]
    ShapeRule: TypeAlias = Callable[[Any, Shapes, Shapes], None]
    TypeRule: TypeAlias = Callable[[Any, Dtypes, Dtypes], None]
    Names: TypeAlias = "tuple[str, ...] | Callable[[Any], tuple[str, ...] | None]"
    Count: TypeAlias = "int | Callable[[Any], int]"
    Compose: TypeAlias = Callable[[Any, Any, Sequence[Any]], Sequence[Any]]

#: Below the level of `weft.register_op`: an op that a user registers under one of these names counts.
_LEVEL = 0
#: The number of combinations of attributes that an op remembers the settings of.
_REMEMBERED = 512
#: The inputs behind the first: as many as any op has.
_BEHIND_DATA = tuple(range(1, 8))

#: The ops by all names that MXNet has for them.
BY_NAME: dict[str, Operator] = {}

_NOTHING = Settings()


class Operator(Op):
    """An op under MXNet's name, computed by weft's functions: a call pushes several ops, or none.

    Made by `operator`.

    Attributes
    ----------
    mxnet_name : str
        MXNet's name. It is the op's, too, unless another op of weft's is named so: then that has ``mxnet.`` before it.
    settings : Settings
        Its attributes.
    apply : callable
        ``apply(settings, *arrays)`` returns an array, or as many as there are results.
    inputs : tuple of str or callable
        The names of its inputs, or a function that returns them, or None, for settings.
    shown : int or callable
        The number of results that a composition sees.
    backward : Backward
        The computation of its inputs' gradients.
    """

    __slots__ = ("_fitting", "_read", "apply", "backward", "inputs", "mxnet_name", "settings", "shown")

    def __init__(
        self, name: str, apply: Apply, settings: Settings, inputs: Names, shown: Count, backward: Backward
    ) -> None:
        self.mxnet_name = name
        self.settings = settings
        self.apply = apply
        self.inputs: Any = inputs
        self.shown = shown
        self.backward = backward
        self._fitting: set[Any] = set()
        self._read: dict[Any, Any] = {}
        super().__init__(_free(name), self._infer, self._compute, level=_LEVEL)

    def __call__(self, *arrays: Any, out: Any = None, **attributes: Any) -> Any:
        """Push the op's computation, and return its result, or a tuple of results, at once."""
        if any(is_symbol(each) for each in arrays):
            from weft._graph.composing import compose_op  # noqa: PLC0415 - for symbols alone

            return compose_op(self, arrays, None, {}, attributes)
        if out is not None:
            raise GraphError(f"{self.name}() has no out=: it is made of several ops")
        like = next((each for each in arrays if isinstance(each, NDArray)), None)
        return self.apply(self.read(attributes), *(as_array(each, like) for each in arrays))

    def arranged(self, given: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        """Return the inputs among arguments by position, None for one that is left out, and the attributes behind them."""
        from weft._mxnet.positions import arranged  # noqa: PLC0415 - for arguments by position alone

        return arranged(self, given, lambda each: is_symbol(each) or isinstance(each, NDArray | np.ndarray))

    def check(self, arrays: Sequence[Any], attributes: dict[str, Any]) -> None:
        """Refuse arrays of shapes that the rule of the op refuses: its computation might broadcast them.

        Raises
        ------
        ShapeError
            If they do not fit.
        """
        key = (tuple(each.shape for each in arrays), *_key(attributes))
        if key in self._fitting:
            return
        rule: Any = self.attribute("infer_shape")
        rule(attributes, [each.shape for each in arrays], [None] * self._entry.num_outputs(attributes))
        if len(self._fitting) >= _REMEMBERED:
            self._fitting.clear()
        self._fitting.add(key)

    def read(self, attributes: dict[str, Any]) -> Any:
        """Return the settings that attributes say, defaults included, as a namespace."""
        key = _key(attributes)
        found = self._read.get(key)
        if found is None:
            found = SimpleNamespace(**self.settings.read(self.mxnet_name, attributes))
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[key] = found
        return found

    def derive(self, name: str, **facts: Any) -> Callable[[Apply], Operator]:
        """Register an op that follows from this one, as `operator` does."""
        return operator(name, **facts)

    def defaults(self) -> Any:
        """Return the settings where nothing is said, as a namespace."""
        return SimpleNamespace(**{name: default for name, (_, default) in self.settings.known.items()})

    def _infer(self, *avals: Aval, **attributes: Any) -> Any:
        """Follow the rules forwards."""
        count = self._entry.num_outputs(attributes)
        shape_rule: Any = self.attribute("infer_shape")
        type_rule: Any = self.attribute("infer_type")
        shapes = shape_rule(attributes, [each.shape for each in avals], [None] * count)[1]
        dtypes = type_rule(attributes, [each.dtype for each in avals], [None] * count)[1]
        found = tuple(Aval(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
        return found[0] if count == 1 else found

    def _compute(self, *arrays: np.ndarray[Any, Any], **attributes: Any) -> None:
        """Compute on a worker, where that is asked for: the calls inside are waited for."""
        count = self._entry.num_outputs(attributes)
        found = self(*arrays[count:], **attributes)
        for out, result in zip(arrays[:count], as_pair(found), strict=True):
            np.copyto(out, result.numpy())


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _key(attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Return attributes as a key; lists are as good as tuples."""
    return tuple((name, _frozen(value)) for name, value in attributes.items())


def _free(name: str) -> str:
    """Return the name for the registry: MXNet's own, if no op of weft's has it."""
    known = find_op(name)
    return f"mxnet.{name}" if known is not None and is_own(known) else name


def is_own(op: Op) -> bool:
    """Return whether an op is weft's, rather than a user's."""
    return str(getattr(op.infer, "__module__", "")).partition(".")[0] == "weft"


def operator(
    name: str,
    *aliases: str,
    settings: Settings = _NOTHING,
    inputs: Names = ("data",),
    outputs: Count = 1,
    visible: Count | None = None,
    output_names: Names | None = None,
    shapes: ShapeRule | None = None,
    dtypes: TypeRule | None = None,
    gradient: Backward | Compose | None = None,
    inplace: Sequence[tuple[int, int]] = (),
    identity: bool = False,
    mutates: tuple[int, ...] = (),
    pure: bool | Callable[[Any], bool] = True,
    layout: Any = None,
    places: tuple[int, ...] = (),
    records: bool = True,
) -> Callable[[Apply], Operator]:
    """Register the decorated ``apply(settings, *arrays)`` as an op of MXNet's.

    Parameters
    ----------
    name, *aliases : str
        MXNet's names of the op.
    settings : Settings, optional
        Its attributes.
    inputs : tuple of str, or callable
        The names of its inputs; a function of the settings returns them, or None where any number will do.
    outputs, visible : int or callable, optional
        The number of its results, and of those that a composition sees.
    output_names : tuple of str, or callable, optional
        The names of its results.
    shapes, dtypes : callable, optional
        ``rule(settings, ins, outs)`` writes inferred ones into both; by default all are the same.
    gradient : Backward or callable, optional
        How gradients go through it; by default `apply` is differentiated. A function ``rule(settings, node, grads)``
        composes them of symbols.
    inplace : sequence of (int, int), optional
        Pairs of an input and a result that may be the same memory.
    identity : bool, default: False
        Whether the first such result is the input, bit for bit.
    mutates : tuple of int, optional
        The inputs that training changes: auxiliary states.
    pure : bool or callable, default: True
        False for draws; a function of the settings tells it.
    places : tuple of int, optional
        The inputs that say where, or which: no dtypes follow from theirs. With the rule `data_dtype`, all but the first.
    records : bool, default: True
        Whether executors may record it: not if its call asks for values.
    layout : str or callable, optional
        Its rule for layouts, or the name of one; ops whose operands and results are all alike take any.
    """

    def register(apply: Apply) -> Operator:
        back = gradient if isinstance(gradient, Backward) else AGAIN
        op = Operator(name, apply, settings, inputs, outputs if visible is None else visible, back)
        said: dict[str, Any] = {
            "num_inputs": _counted(op, inputs),
            "input_names": _named(op, inputs),
            "num_outputs": _by_settings(op, outputs),
            "parse": lambda texts: settings.parse(name, texts),
            "infer_shape": _rule(op, shapes, Shapes, _all_alike),
            "infer_type": _rule(op, dtypes, Dtypes, _all_alike),
            "pure": _by_settings(op, pure) if callable(pure) else pure and not mutates,
        }
        said |= _said(
            layout="elementwise" if layout is None and shapes is None and inputs else layout,
            visible_outputs=None if visible is None else _by_settings(op, visible),
            output_names=None if output_names is None else _named(op, output_names),
            inplace=tuple(inplace) or None,
            inplace_identity=(identity, *[False] * (len(inplace) - 1)) if inplace else None,
            mutates=mutates or None,
            places=places or (_BEHIND_DATA if dtypes is data_dtype else None),
            records=None if records else False,
        )
        for key, value in said.items():
            op.set_attribute(key, value)
        if not settings.is_open:
            op._entry.set_attribute("attribute_names", settings.names, _LEVEL)
        if not name.startswith("_backward_"):  # settings of these are not MXNet's
            op.set_attribute("mxnet_name", name)
        if back is NONE:
            op.set_attribute("gradient_reads", None)
        elif gradient is None or isinstance(gradient, Backward):
            op.set_attribute("gradient", gradient_rule(op))
        else:
            op.set_attribute("gradient", _composed(op, gradient))
        others = [each for each in aliases if _free(each) == each]
        op._entry.register(others, _LEVEL, op)
        BY_NAME.update(dict.fromkeys((name, *aliases), op))
        return op

    return register


def _said(**given: Any) -> dict[str, Any]:
    """Return the given facts but None, which says nothing."""
    return {key: each for key, each in given.items() if each is not None}


def _composed(op: Operator, rule: Any) -> Any:
    """Return a rule of settings as a rule of attributes."""
    return lambda node, grads: rule(op.read(node.attributes), node, grads)


def _by_settings(op: Operator, given: Any) -> Any:
    """Return a value for all settings, or a function of attributes."""
    return (lambda attributes: given(op.read(attributes))) if callable(given) else given


def _named(op: Operator, names: Names) -> Any:
    return (lambda attributes: names(op.read(attributes)) or ()) if callable(names) else names


def _counted(op: Operator, names: Names) -> Any:
    if not callable(names):
        return len(names)

    def count(attributes: dict[str, Any]) -> int | None:
        found = names(op.read(attributes))
        return None if found is None else len(found)

    return count


def _all_alike(settings: Any, ins: Any, outs: Any) -> None:
    del settings
    ins.alike(outs)


def _rule(op: Operator, rule: Any, kind: Any, default: Any) -> Any:
    """Return a rule as graphs ask for it."""
    chosen = default if rule is None else rule

    def infer(attributes: dict[str, Any], ins: Any, outs: Any) -> tuple[list[Any], list[Any]]:
        found = kind(ins, "input"), kind(outs, "result")
        chosen(op.read(attributes), *found)
        return list(found[0]), list(found[1])

    return infer
