"""The families of ops, a file each; a large family has its gradients in a file beside it.

A rule ``(node, out_grads) -> input grads`` is written once, with functions that take arrays and symbols alike, so that
it serves the tape and the pass over a graph. It asks for no values. The op's attribute ``gradient_reads`` names the
operands and results that a rule reads; of all others the tape keeps only the outline (shape and dtype).

The gradient of a complex number is that of its real part plus i times that of its imaginary part, as in PyTorch: the
direction of growth of a real result. For an analytic function it is the gradient of the result times the conjugate of
the derivative. JAX uses the conjugate of this.
"""

from importlib import import_module as _import_module

_RULES = (
    "fft_gradients", "indexing_gradients", "joining_gradients", "linalg_gradients", "manipulation_gradients", "patches",
    "products_gradients", "recurrence", "reductions_gradients", "sorting_gradients",
)  # fmt: skip


def attach() -> None:
    """Give the ops of large families their rules; once, at the end of the import of weft."""
    for module in _RULES:
        _import_module(f"weft._ops.{module}")
