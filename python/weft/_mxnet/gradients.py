"""Gradients of MXNet's ops: for each op another one, which computes the gradients of its inputs.

The rule of an op makes a node of that op; its shapes follow from its inputs: so a graph knows its gradient's memory.
Without a rule of its own it differentiates the op's computation, and a program drops the parts that no gradient needs.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from weft._mxnet.partial_shapes import as_pair
from weft._mxnet.settings import REQUIRED, Settings, integer
from weft._ops.creation import zeros_like
from weft._tape.transforms import vjp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._mxnet.operator import Operator


@dataclass(frozen=True, slots=True)
class Backward:
    """The computation of the gradients of an op's inputs.

    Parameters
    ----------
    function : callable or None
        ``function(settings, grads, inputs, outputs)`` returns one gradient for each input, None being zeros; `grads` has
        the gradients of visible results. None: nothing has a gradient.
    inputs : tuple of int or None
        The inputs that it takes by value, None being all. The others' places are None, and their gradients have the
        shape of the first result's.
    outputs : tuple of int, or callable
        The results that it takes by value; a function returns them for settings.
    heads : bool
        Whether it looks at the gradients of results; losses do not.
    of_shapes : bool
        Whether only the shapes of inputs count: as where an op is linear.
    """

    function: Callable[[Any, Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]] | None
    inputs: tuple[int, ...] | None = None
    outputs: tuple[int, ...] | Callable[[Any], tuple[int, ...]] = ()
    heads: bool = True
    of_shapes: bool = False


def _again(op: Operator, settings: Any, grads: Sequence[Any], inputs: Sequence[Any], drawn: Sequence[Any]) -> list[Any]:
    """Differentiate the op's computation on its inputs, with the numbers that it drew."""
    moving = [at for at, each in enumerate(inputs) if each.dtype.kind == "f" and at not in op.mutates]
    if not moving:
        return [None] * len(inputs)

    def changed(*some: Any) -> Any:
        given = list(inputs)
        for at, each in zip(moving, some, strict=True):
            given[at] = each
        found = as_pair(op.apply(settings, *given, drawn=drawn) if drawn else op.apply(settings, *given))[: len(grads)]
        return found[0] if len(found) == 1 else found

    _, pull = vjp(changed, *(inputs[at] for at in moving))
    pulled = pull(grads[0] if len(grads) == 1 else tuple(grads))
    found: list[Any] = [None] * len(inputs)
    for at, grad in zip(moving, pulled, strict=True):
        found[at] = grad
    return found


def _marker(settings: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
    """Stand for differentiating the op itself."""
    del settings, grads, outputs
    return inputs


#: The beginning of the name of an op of gradients, as in MXNet.
_BACK = "_backward_"

#: Differentiates the op's computation.
AGAIN = Backward(_marker)


def again_as_drawn(results: Callable[[Any], tuple[int, ...]]) -> Backward:
    """Return the same of an op that draws: these results, for settings, are what it drew, which its computation takes as ``drawn=``."""
    return Backward(_marker, outputs=results)


#: The same of an op that is linear.
LINEAR = Backward(_marker, of_shapes=True)
#: The results are no numbers that change with the inputs.
NONE = Backward(None)


def gradient_rule(op: Operator) -> Callable[[Any, Sequence[Any]], Sequence[Any]]:
    """Return the rule for a graph's gradient through `op`."""
    places = _Places(op, op.backward)

    def rule(node: Any, grads: Sequence[Any]) -> Sequence[Any]:
        shown = op.shown(op.read(node.attributes)) if callable(op.shown) else op.shown
        counts = dict(zip(places.counts, (len(node.inputs), shown), strict=True))
        settings = SimpleNamespace(**counts)
        given = [
            *grads[: places.heads(settings)],
            *(node.inputs[at] for at in places.taken(settings)),
            *(node.outputs[at] for at in places.results(op.read(node.attributes))),
        ]
        answer = backward_of(op)(*given, **{**node.attributes, **counts})
        found: list[Any] = [None] * len(node.inputs)
        for at, grad in zip(places.kept(settings), list(answer), strict=True):
            found[at] = grad
        return found

    return rule


def handed_on(settings: Any, node: Any, grads: Sequence[Any]) -> list[Any]:
    """Give each input the gradient of the result: the rule of a sum."""
    del settings
    return [grads[0]] * len(node.inputs)


_made: dict[str, Operator] = {}


def backward_of(op: Operator) -> Operator:
    """Return the op that computes the gradients of the inputs of `op`; it is registered when it is first asked for."""
    found = _made.get(op.mxnet_name)
    return _register(op) if found is None else found


class _Places:
    """The places of gradients, inputs and results among the inputs of an op of gradients, and of its answers."""

    def __init__(self, op: Operator, how: Backward) -> None:
        self._op, self._how = op, how
        # Gradients of gradients have the counts of both.
        level = op.mxnet_name.count(_BACK)
        self.counts = tuple(f"of_{which}{level or ''}" for which in ("inputs", "outputs"))

    def _inputs(self, settings: Any) -> int:
        count: int = getattr(settings, self.counts[0])
        return count

    def kept(self, settings: Any) -> list[int]:
        """Return the inputs that get a gradient: states have none."""
        return [at for at in range(self._inputs(settings)) if at not in self._op.mutates]

    def taken(self, settings: Any) -> list[int]:
        """Return the inputs that it takes."""
        count = self._inputs(settings)
        return list(range(count)) if self._how.inputs is None else [at for at in self._how.inputs if at < count]

    def heads(self, settings: Any) -> int:
        """Return the number of gradients of results that it takes."""
        count: int = getattr(settings, self.counts[1]) if self._how.heads else 0
        return count

    def results(self, settings: Any) -> tuple[int, ...]:
        """Return the results that it takes."""
        outputs = self._how.outputs
        return outputs(settings) if callable(outputs) else outputs

    def split(self, settings: Any, given: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Return gradients of results, inputs (None for those that it does not take), and results."""
        heads, taken = self.heads(settings), self.taken(settings)
        inputs: list[Any] = [None] * self._inputs(settings)
        for at, each in zip(taken, given[heads:], strict=False):
            inputs[at] = each
        return list(given[:heads]), inputs, list(given[heads + len(taken) :])

    def names(self, settings: Any) -> tuple[str, ...]:
        """Return the names of its inputs."""
        return (
            *(f"grad{at}" for at in range(self.heads(settings))),
            *(f"input{at}" for at in self.taken(settings)),
            *(f"result{at}" for at in self.results(settings)),
        )

    def likes(self, settings: Any) -> list[int]:
        """Return, for each answer, the place of an input of its shape."""
        heads, inputs, results = self.split(settings, list(range(len(self.names(settings)))))
        like = (heads or results)[0]
        return [like if inputs[at] is None else inputs[at] for at in self.kept(settings)]

    def of_shapes(self, settings: Any) -> list[int]:
        """Return the places of inputs."""
        _, inputs, _ = self.split(settings, list(range(len(self.names(settings)))))
        return [at for at in inputs if at is not None]


def _register(op: Operator) -> Operator:
    how = op.backward
    places = _Places(op, how)

    def known(settings: Any, ins: Any, outs: Any) -> None:
        for at, place in enumerate(places.likes(settings)):
            ins.alike(outs, [place], [at])

    def apply(settings: Any, *given: Any) -> Any:
        heads, inputs, results = places.split(settings, given)
        if how.function is _marker:
            found: Sequence[Any] = _again(op, settings, heads, inputs, results)
        else:
            assert how.function is not None
            found = how.function(settings, heads, inputs, results)
        kept = zip(places.kept(settings), places.likes(settings), strict=True)
        answer = [zeros_like(given[like]) if found[at] is None else found[at] for at, like in kept]
        return answer[0] if len(answer) == 1 else tuple(answer)

    numbers = dict.fromkeys(places.counts, (integer, REQUIRED))
    kind: type[Settings] = type(op.settings)
    settings = kind(op.settings.without_effect, **op.settings.known, **numbers)
    back = op.derive(
        f"{_BACK}{op.mxnet_name}",
        settings=settings,
        inputs=places.names,
        outputs=lambda settings: len(places.kept(settings)),
        shapes=known,
        dtypes=known,
        inplace=((0, 0),) if how.inputs is not None and how.heads else (),
        records=bool(op.attribute("records", default=True)),
    )(apply)
    if how.of_shapes:
        back.set_attribute("ignores", lambda attributes: places.of_shapes(back.read(attributes)))
    _made[op.mxnet_name] = back
    return back
