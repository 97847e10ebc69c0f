"""A user's operators: a computation and its gradient, as two methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from weft._call.operands import as_array
from weft._core import NDArray, tape_hears, tape_keep, tape_note
from weft._registry import hooks
from weft._registry.levels import is_examples
from weft._registry.symbol_hook import is_symbol
from weft._tape.modes import paused
from weft._tape.pytree import several
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Saved(Protocol):
    """The node of a call, on the tape or in a graph; its inputs are the arrays that `save` kept."""

    @property
    def inputs(self) -> tuple[Any, ...]: ...


class Operator:
    """An operator of a user's: `forward` computes it from arrays, `backward` the gradients of its inputs.

    Subclasses define both with functions of weft; neither may ask for values if the operator is to be used in programs.
    An instance is called with the inputs. `save` keeps values for the `backward` of that call; one that keeps them in attributes
    serves one call.

    Examples
    --------
    >>> import weft
    >>> class Softplus(weft.autograd.Operator):
    ...     def forward(self, x):
    ...         self.save(x)
    ...         return weft.logaddexp(x, 0.0)
    ...
    ...     def backward(self, dy):
    ...         (x,) = self.saved
    ...         return dy / (1 + weft.exp(-x))
    >>> x = weft.zeros(2)
    >>> Softplus()(x)
    NDArray([0.69314718, 0.69314718])
    >>> weft.grad(lambda x: weft.sum(Softplus()(x)))(x)
    NDArray([0.5, 0.5])
    """

    _node: _Saved | None = None
    _kept: tuple[Any, ...] = ()

    def __init__(self, name: str | None = None) -> None:
        """Make an operator, with its name in errors: that of its class, unless another one is given."""
        self.name = type(self).__name__ if name is None else name

    def forward(self, *arrays: Any) -> Any:
        """Return the result, or a tuple of results, for the inputs."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward()")

    def backward(self, *dys: Any) -> Any:
        """Return the gradient of the input, or one for each, given that of each result; None is zero."""
        raise NotImplementedError(f"{type(self).__name__} defines no backward()")

    def save(self, *arrays: NDArray) -> None:
        """Keep arrays for `backward`, which finds them in `saved`; called in `forward`.

        It keeps a reference, not a copy: a write to the memory before `backward` runs raises `GradientError` with both
        lines. Gradients of gradients go through the kept arrays.
        """
        self._kept = arrays

    @property
    def saved(self) -> tuple[Any, ...]:
        """The arrays kept by `save`."""
        return self._kept if self._node is None else self._node.inputs

    def __call__(self, *arrays: Any) -> Any:
        """Compute the results; the tape hears one op with `backward` as its gradient. Over symbols, compose one."""
        if any(map(is_symbol, arrays)):
            applied = hooks.apply_to_examples if any(map(is_examples, arrays)) else hooks.apply_operator
            return applied(self, arrays)
        like = next((x for x in arrays if isinstance(x, NDArray)), None)
        given = tuple(x if isinstance(x, NDArray | bool | int | float | complex) else as_array(x, like) for x in arrays)
        if not tape_hears(given):
            return self.forward(*given)
        with paused():
            answer = self.forward(*given)
        results = several(answer)
        for result in results:
            if not isinstance(result, NDArray):
                raise GradientError(f"{type(self).__name__}.forward() returned {type(result).__name__}, not an array")
        # A result that is an input, or a view of one, becomes a new array, because it has another gradient.
        inputs = [x for x in given if isinstance(x, NDArray)]
        with paused():
            results = tuple(x.copy() if any(x._shares_buffer(y) for y in inputs) else x for x in results)
        call = _Bound(self)
        if self._kept:
            self._node = call.node = tape_keep(call, self._kept)
            self._kept = ()
        tape_note(call, None, given, results, 0, False)
        return results[0] if isinstance(answer, NDArray) else results


class _Bound:
    """The op of a node that stands for a call of an operator, as the tape sees it."""

    __slots__ = ("_operator", "name", "node")

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        #: What this call has saved, if it has: the operator may be called again before its gradient is asked for.
        self.node: _Saved | None = None
        self.name: str = getattr(operator, "name", type(operator).__name__)

    def attribute(self, key: str, default: object = None) -> Any:
        """Return the rule, under the names of an op's attributes."""
        return self._rule if key == "gradient" else default

    def _rule(self, node: Any, grads: Sequence[Any]) -> Any:
        del node
        self._operator._node = self.node
        return self._operator.backward(*grads)
