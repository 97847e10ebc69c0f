"""Gradients between their walk and their step: bounded by their norm, summed over several batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._numpy import namespace
from weft._program.unrecorded import outside
from weft._singa.models.tensors import write
from weft._singa.optimizers.base import pairs_of
from weft._tape.api import Gradients
from weft._tape.modes import no_grad
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weft._core import NDArray

#: Keeps the quotient of a bound and a norm finite.
_LEAST = 1e-6


def clip_grad_norm(
    gradients: Mapping[NDArray, NDArray] | Iterable[tuple[NDArray, NDArray]], max_norm: float
) -> tuple[Gradients, NDArray]:
    """Return gradients with a Euclidean norm, over all of them, of at most `max_norm`, and the norm before.

    Each is multiplied by ``min(1, max_norm / (norm + 1e-6))``.

    Parameters
    ----------
    gradients : dict of NDArray to NDArray, or iterable of pairs
        Parameters and their gradients, as from `weft.autograd.gradients`.
    max_norm : float
        The bound.

    Returns
    -------
    gradients : weft.autograd.Gradients
        New gradients by parameter, for `Optimizer.apply_gradients`.
    norm : NDArray
        The norm before.

    Examples
    --------
    >>> import weft
    >>> from weft import autograd, opt
    >>> w = weft.asarray([3.0, 4.0])
    >>> w.requires_grad = True
    >>> gradients, norm = opt.clip_grad_norm(autograd.gradients((w * w).sum()), 5.0)
    >>> gradients[w].round(4), norm
    (NDArray([3., 4.]), NDArray(10.))
    """
    if not max_norm > 0:
        raise ArgumentValueError(f"clip_grad_norm: max_norm is a positive number, not {max_norm}")
    pairs = pairs_of("clip_grad_norm", gradients)
    if not pairs:
        return Gradients(()), namespace.zeros(())
    with no_grad():
        device = pairs[0][1].device
        squares = [namespace.sum(namespace.square(_wide(g))) for _, g in pairs]
        near = [each if each.device == device else each.to_device(device) for each in squares]
        norm = namespace.sqrt(sum(near[1:], near[0]))
        factor = namespace.minimum(max_norm / (norm + _LEAST), 1.0)
        clipped = [
            (p, g * (factor if g.device == device else factor.to_device(g.device)).astype(g.dtype)) for p, g in pairs
        ]
    return Gradients(clipped), norm


def _wide(x: NDArray) -> NDArray:
    """Return real numbers with the same squares, in a dtype that holds sums of these."""
    if x.dtype.kind == "c":
        return namespace.abs(x)
    return x.astype("float32") if x.dtype.itemsize < 4 else x  # half precision


class GradientSum:
    """Sums of gradients over several batches, so that a step follows from their mean.

    A model's `train_one_batch` adds the gradients of each batch, and takes their mean at the last. Whether one is the last
    is an argument: a recorded step of either kind is a program of its own. The sums are no part of a model's state files.

    Examples
    --------
    >>> import weft
    >>> from weft import autograd, opt
    >>> w = weft.asarray([1.0])
    >>> w.requires_grad = True
    >>> sums, descent = opt.GradientSum(), opt.SGD(1.0)
    >>> for factor in (1.0, 3.0):
    ...     sums.add(autograd.gradients((w * factor).sum()))
    >>> descent.apply_gradients(sums.take())
    >>> w
    NDArray([-1.])
    """

    def __init__(self) -> None:
        self._sums: dict[int, tuple[NDArray, NDArray]] = {}
        self._count: NDArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy, or a pickle, takes over: sums for the parameters that are copied with them."""
        return {**self.__dict__, "_sums": list(self._sums.values())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._sums = {id(kept[0]): kept for kept in state["_sums"]}

    def add(self, gradients: Mapping[NDArray, NDArray] | Iterable[tuple[NDArray, NDArray]]) -> None:
        """Add the gradients of a batch."""
        if self._count is None:
            self._count = outside(lambda: namespace.zeros((1,)))
        with no_grad():
            for parameter, gradient in pairs_of("GradientSum.add", gradients):
                kept = self._sums.get(id(parameter))
                if kept is None:
                    made = outside(lambda like=parameter: namespace.zeros_like(like))  # type: ignore[misc] # bound now
                    kept = self._sums[id(parameter)] = parameter, made
                total = kept[1]
                total += gradient
            self._count += 1

    def take(self) -> Gradients:
        """Return the means of the added gradients, and begin anew."""
        if self._count is None:
            raise ArgumentValueError("GradientSum.take: nothing was added: add(autograd.gradients(loss)) comes first")
        with no_grad():
            found = [(parameter, total / self._count.astype(total.dtype)) for parameter, total in self._sums.values()]
            for _, total in self._sums.values():
                write(total, namespace.zeros_like(total), 0)
            write(self._count, namespace.zeros_like(self._count), 0)
        return Gradients(found)

    def _arrays(self) -> list[NDArray]:
        """Return all arrays that a batch changes."""
        totals = [total for _, total in self._sums.values()]
        return totals if self._count is None else [*totals, self._count]
