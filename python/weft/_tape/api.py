"""`backward` and `gradients`: from a result back to all arrays with `requires_grad`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from weft._core import NDArray
from weft._ops.creation import zeros_like
from weft._tape.backward import head_of, walk
from weft._tape.leaves import is_own_leaf


class Gradients(Mapping[NDArray, NDArray]):
    """Gradients by their arrays, in the order of the walk; an array is found by identity, not by its values.

    Those of tensors that require gradients without storing them (`weft.tensor.Tensor.stores_grad`) are found when they are
    asked for, but are not among those that are listed: no optimizer takes these tensors for parameters.

    Examples
    --------
    >>> import weft
    >>> w = weft.ones(2)
    >>> w.requires_grad = True
    >>> found = weft.autograd.gradients((w * 3).sum())
    >>> found[w], len(found)
    (NDArray([3., 3.]), 1)
    """

    def __init__(self, pairs: Any, others: Any = ()) -> None:
        self._pairs: dict[int, tuple[NDArray, NDArray]] = {id(x): (x, gradient) for x, gradient in pairs}
        self._others: dict[int, tuple[NDArray, NDArray]] = {id(x): (x, gradient) for x, gradient in others}

    def __getitem__(self, x: NDArray | int) -> NDArray:
        """Return the gradient of an array; ``id(x)`` finds it, too, as in SINGA."""
        number = x if isinstance(x, int) else id(x)
        try:
            return (self._pairs.get(number) or self._others[number])[1]
        except KeyError:
            if isinstance(x, int):
                raise KeyError(f"no gradient of an array whose id() is {x}: name the array itself") from None
            why = "What was computed before requires_grad was set does not count: set it first"
            if getattr(x, "requires_grad", False) and not is_own_leaf(x):
                why = (
                    "It was computed itself, as by w = w - step: update w in place, w -= step, in a block of "
                    "weft.autograd.no_grad()"
                )
            raise KeyError(
                f"no gradient of an array of shape {getattr(x, 'shape', None)}: the result depends on no such leaf. {why}"
            ) from None

    def __contains__(self, x: object) -> bool:
        """Return whether there is a gradient of an array."""
        number = x if isinstance(x, int) else id(x)
        return number in self._pairs or number in self._others

    def __iter__(self) -> Iterator[NDArray]:
        """Return the arrays."""
        return (x for x, _ in self._pairs.values())

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._pairs)

    def __repr__(self) -> str:
        """Return the shapes."""
        return f"<weft.autograd.Gradients of shapes {', '.join(str(x.shape) for x in self)}>"


def backward(
    y: NDArray | list[NDArray] | tuple[NDArray, ...],
    dy: Any = None,
    *,
    retain: bool = False,
    create_graph: bool = False,
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield the arrays with `requires_grad` that `y` was computed from, each with its gradient when it is ready.

    Tensors whose `weft.tensor.Tensor.stores_grad` is False are left out: `gradients` has theirs. The last layer's come first, while the gradients of the layers before are still to be pushed: who sends or applies
    them begins with them.

    Parameters
    ----------
    y : NDArray, or list of NDArray
        The result, a scalar unless `dy` is given.
    dy : array-like, optional
        The gradient of `y`, of its shape; by default 1.
    retain : bool, default: False
        Whether the values that were saved for it stay, so that it can be computed again. They go as the walk passes
        otherwise.
    create_graph : bool, default: False
        Whether the gradients have gradients themselves.

    Yields
    ------
    (NDArray, NDArray)
        An array and its gradient.

    Raises
    ------
    GradientError
        If `y` is no scalar and `dy` is not given, or has the wrong shape; if nothing that `y` was computed from requires
        a gradient; if an op on the way has none; if a value that is needed was overwritten, with both lines; and if the
        gradient was computed before, without `retain`.

    Examples
    --------
    >>> import weft
    >>> w, x = weft.ones(2), weft.asarray([1.0, 2.0])
    >>> w.requires_grad = True
    >>> for parameter, gradient in weft.autograd.backward((w * x).sum()):
    ...     with weft.autograd.no_grad():
    ...         parameter -= 0.5 * gradient
    >>> w
    NDArray([0.5, 0. ])
    """
    heads = _heads(y, dy)
    found = _found(heads, retain=retain or create_graph, create_graph=create_graph)
    return ((x, gradient) for x, gradient, stores in found if stores)


def _heads(y: Any, dy: Any) -> list[Any]:
    if not isinstance(y, list | tuple):
        return [head_of(y, dy)]
    results = cast("list[Any]", y)
    seeds = [None] * len(results) if dy is None else list(dy)
    return [head_of(each, seed) for each, seed in zip(results, seeds, strict=True)]


def _found(heads: Any, *, retain: bool, create_graph: bool) -> Iterator[tuple[NDArray, NDArray, bool]]:
    """Yield leaves, their gradients, and whether these are stored."""
    for leaf, _, gradient in walk(heads, retain=retain, heard=create_graph):
        x: NDArray | None = leaf.leaf
        if x is not None:
            yield x, zeros_like(x) if gradient is None else gradient, leaf.stores


def gradients(
    y: NDArray | list[NDArray] | tuple[NDArray, ...],
    dy: Any = None,
    *,
    retain: bool = False,
    create_graph: bool = False,
) -> Gradients:
    """Return the gradients of `y` by all arrays with `requires_grad` that it was computed from.

    Parameters and errors are those of `backward`.

    Examples
    --------
    >>> import weft
    >>> w = weft.asarray([1.0, 2.0])
    >>> w.requires_grad = True
    >>> weft.autograd.gradients(weft.sum(w * w))[w]
    NDArray([2., 4.])
    """
    found = list(_found(_heads(y, dy), retain=retain or create_graph, create_graph=create_graph))
    stored = [(x, gradient) for x, gradient, stores in found if stores]
    return Gradients(stored, [(x, gradient) for x, gradient, stores in found if not stores])
