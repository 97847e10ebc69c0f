"""Arrays that require a gradient, and arrays without one."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from weft._call.operands import as_array
from weft._core import NDArray, TapeNode, tape_apart, tape_entry, tape_forget, tape_hears, tape_leaf, tape_walk
from weft._registry.avals import like_first
from weft._registry.gradients import no_gradient
from weft._registry.op import get_op, register_op
from weft._registry.symbol_hook import compose, is_symbol
from weft._tape.modes import flag, paused
from weft.errors import GradientError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._graph.symbols import Symbol


def check_differentiable(x: NDArray, name: str) -> None:
    """Raise GradientError unless elements of this dtype have derivatives."""
    if x.dtype.kind not in "fc":
        raise GradientError(
            f"{name} has the dtype {x.dtype}, and only floating-point and complex numbers have gradients: cast it by "
            f"astype(), or leave it out"
        )


def _requires_grad(self: NDArray) -> bool:
    """Whether gradients are wanted for this array, or for one that it was computed from; True makes it a leaf.

    A leaf keeps its values while the tape listens: write to it in a block of `weft.autograd.no_grad`.
    """
    return tape_entry(self) is not None


def _require_grad(self: NDArray, value: bool) -> None:
    if not flag(value, "requires_grad"):
        tape_forget(self)
    elif tape_entry(self) is None:
        check_differentiable(self, f"an array of shape {self.shape}")
        tape_leaf(self, weakref.ref(self))


def is_leaf(x: NDArray) -> bool:
    """Return whether gradients are wanted for this very array."""
    found = tape_entry(x)
    return found is not None and found[0].is_leaf


def is_own_leaf(x: NDArray) -> bool:
    """Return whether `requires_grad` was set on this very array, not by `weft.grad` on an argument."""
    found = tape_entry(x)
    return found is not None and found[0].leaf is not None


def is_stored(x: NDArray) -> bool:
    """Return whether this very array is a leaf that walks back yield by themselves, as optimizers take it."""
    found = tape_entry(x)
    return found is not None and found[0].leaf is not None and found[0].stores


def make_leaf(x: NDArray, *, stores: bool) -> None:
    """Let gradients be wanted for an array, which walks back yield by themselves or, else, only those who ask for it find."""
    check_differentiable(x, f"an array of shape {x.shape}")
    tape_forget(x)
    tape_leaf(x, weakref.ref(x), stores)


def is_open(x: NDArray) -> bool:
    """Return whether a gradient of `x` can be requested: it was computed from a leaf, and no walk has passed since."""
    found = tape_entry(x)
    if found is None:
        return False
    try:
        tape_walk([found[0]])
    except GradientError:
        return False
    return True


requires_grad = property(_requires_grad, _require_grad, doc=_requires_grad.__doc__)
setattr(NDArray, "requires_grad", requires_grad)  # noqa: B010 - the class is made elsewhere, without it


def is_constant(x: object) -> bool:
    """Return whether a value has no gradient, being no array and no floating-point number."""
    return isinstance(x, bool | int | str | bytes | np.integer | np.bool_) or x is None


def as_leaf(x: ArrayLike, name: str, instead: str = "do not name it in argnums") -> tuple[NDArray, TapeNode]:
    """Return a new handle on an array-like, and the node for its gradient."""
    if is_constant(x):
        raise GradientError(
            f"{name} is {x!r}, and only arrays of floating-point or complex numbers, and such numbers, have gradients: "
            f"write 2.0 for 2, or {instead}"
        )
    array = as_array(x)
    check_differentiable(array, name)
    outer = tape_hears((array,))
    handle, node = tape_apart(array, get_op("tape.identity") if outer else None, leaf=True)
    assert node is not None  # a leaf has one
    return handle, node


def apart(x: Any) -> Any:
    """Return a handle on the same values that the tape does not know."""
    return tape_apart(x, None, leaf=False)[0] if isinstance(x, NDArray) and x._known else x


def _constant(x: Any) -> Any:
    if is_symbol(x):
        return compose(_op, (x,), {})
    with paused():
        array = as_array(x)
    return tape_apart(array, None, leaf=False)[0]


@register_op("stop_gradient", infer=like_first, inplace=[(0, 0)])
def _op(out: Elements, x: Elements) -> None:
    np.copyto(out, x)


no_gradient("stop_gradient")


_op.set_attribute("inplace_identity", [True])
_op.set_attribute("infer_shape", "like_first")
_op.set_attribute("batch", "broadcast")
_op.set_attribute("infer_type", "same")
_op.set_attribute("view", _constant)
_op.set_attribute("shares_memory", value=True)
_op.describe("The array as a constant: what is computed from it has no gradient for what it was computed from.")
_op.add_argument("x", "array", "What becomes a constant.")


@overload
def stop_gradient(  # pyright: ignore[reportOverlappingOverload] - a symbol is no array-like, but has what one has
    x: Symbol, /
) -> Symbol: ...
@overload
def stop_gradient(x: ArrayLike, /) -> NDArray: ...
def stop_gradient(x: ArrayLike | Symbol, /) -> NDArray | Symbol:
    """Return the array as a constant: results computed from it have no gradient through it.

    The result shares the memory of `x`, and nothing is copied. For a symbol it is a call of the op ``stop_gradient``.

    Examples
    --------
    >>> import weft
    >>> weft.grad(lambda x: x * weft.autograd.stop_gradient(x))(3.0)
    NDArray(3.)
    >>> x = weft.symbol.Variable("x")
    >>> (x * weft.autograd.stop_gradient(x)).gradient("x").eval(x=3.0)
    [NDArray(3.)]
    """
    found: NDArray | Symbol = _constant(x)
    return found
