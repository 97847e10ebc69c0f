"""Sequences as recurrent layers take them, and how several layers and directions run over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._registry.brief import brief
from weft._singa.elementwise import chosen
from weft._singa.networks import dropout
from weft.errors import ArgumentTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import NDArray

#: Of one direction of one layer: weights of the data and of the state, and their biases.
Weights = tuple["NDArray", "NDArray", "NDArray | None", "NDArray | None"]


def stacked(name: str, xs: Any, *, batch_first: bool) -> NDArray:
    """Return sequences as ``(T, N, F)``: of a list of steps ``(N, F)``, or of an array."""
    if isinstance(xs, list | tuple):
        steps: list[NDArray] = list(xs)  # pyright: ignore[reportUnknownArgumentType] # arrays, or the next line fails
        if not steps:
            raise ArgumentTypeError(f"{name} takes at least one step, and was given none")
        if not all(hasattr(step, "shape") for step in steps):
            raise ArgumentTypeError(f"{name} takes steps (N, F) that are arrays, and was given {brief(xs)}")
        if any(step.ndim != 2 or step.shape != steps[0].shape for step in steps):  # a batch of features
            raise ShapeError(f"{name} takes steps (N, F) of one shape, and was given {[step.shape for step in steps]}")
        return namespace.stack(steps)
    if not hasattr(xs, "shape"):
        raise ArgumentTypeError(
            f"{name} takes a list of steps (N, F), or an array of sequences, and was given {brief(xs)}"
        )
    if xs.ndim != 3:  # steps, batch, features
        order = "(N, T, F)" if batch_first else "(T, N, F)"
        raise ShapeError(
            f"{name} takes a list of steps (N, F), or sequences {order}, and was given the shape {xs.shape}"
        )
    return namespace.transpose(xs, (1, 0, 2)) if batch_first else xs


def as_many(x: NDArray, *states: NDArray | None) -> NDArray:
    """Return sequences; a single one is repeated for each of the states before the first step."""
    counts = [state.shape[-2] for state in states if state is not None and state.ndim >= 2]  # a batch of features
    count = max(counts, default=1)
    return namespace.broadcast_to(x, (x.shape[0], count, x.shape[2])) if x.shape[1] == 1 < count else x


def states_of(name: str, what: str, given: NDArray | None, count: int, x: NDArray, size: int) -> NDArray:
    """Return the states of all layers and directions before the first step, zeros if none are given."""
    shape = (count, x.shape[1], size)
    if given is None:
        return namespace.zeros(shape, x.dtype, device=x.device)
    whole = given.reshape((1, *given.shape)) if given.ndim == 2 and count == 1 else given  # a batch of features
    if whole.shape == shape:
        return whole
    wide = {1, size} if what == "c0" else {size}  # a state is multiplied by a matrix, a cell by numbers
    if whole.ndim == 3 and whole.shape[0] == count and whole.shape[1] in {1, shape[1]} and whole.shape[2] in wide:
        return namespace.broadcast_to(whole, shape)
    raise ShapeError(f"{name}: {what} has the shape {given.shape}, and {shape} is needed for sequences {x.shape}")


def over(
    x: NDArray,
    h0: NDArray,
    c0: NDArray | None,
    layers: Sequence[Sequence[Weights]],
    mode: str,
    ratio: float = 0.0,
    lengths: NDArray | None = None,
) -> tuple[NDArray, NDArray, NDArray | None]:
    """Return results ``(T, N, directions * H)`` and the last states, of layers one behind the other.

    Between layers elements are dropped with the probability `ratio`. With `lengths`, ``(N,)``, elements behind the end of a
    sequence are not looked at by the backward direction, and their results are 0.
    """
    hidden: list[NDArray] = []
    cells: list[NDArray] = []
    mask = None if lengths is None else namespace.arange(x.shape[0], dtype=lengths.dtype)[:, None] < lengths
    for number, directions in enumerate(layers):
        if number and ratio:
            x = dropout(x, ratio=ratio)
        parts: list[NDArray] = []
        for way, weights in enumerate(directions):
            at = number * len(directions) + way
            state = h0[at : at + 1]
            cell = None if c0 is None else c0[at : at + 1]
            order = _reversal(x, lengths) if way else None
            source = (
                x if order is None else namespace.take_along_axis(x, namespace.broadcast_to(order, x.shape), axis=0)
            )
            found = nn.rnn(source, state, [weights], mode=mode, c0=cell)
            y = found[0]
            parts.append(
                y if order is None else namespace.take_along_axis(y, namespace.broadcast_to(order, y.shape), axis=0)
            )
            hidden.append(found[1])
            if c0 is not None:
                cells.append(found[2])
        x = parts[0] if len(parts) == 1 else namespace.concatenate(parts, axis=-1)
        if mask is not None:
            x = chosen(mask[:, :, None], x, 0)
    return x, namespace.concatenate(hidden), namespace.concatenate(cells) if cells else None


def last_of(y: NDArray, lengths: NDArray | None) -> NDArray:
    """Return the results of each sequence's last step."""
    if lengths is None:
        return y[-1]
    at = namespace.broadcast_to((lengths.astype("int64") - 1)[None, :, None], (1, *y.shape[1:]))
    return namespace.take_along_axis(y, at, axis=0)[0]


def _reversal(x: NDArray, lengths: NDArray | None) -> NDArray:
    """Return, for each step, which step comes there in the sequence read backwards: ``(T, N, 1)``, or ``(T, 1, 1)``."""
    steps = namespace.arange(x.shape[0], dtype="int64")[:, None]
    if lengths is None:
        return (x.shape[0] - 1 - steps)[:, :, None]
    ends = lengths.astype("int64")
    return chosen(steps < ends, ends - 1 - steps, steps)[:, :, None]
