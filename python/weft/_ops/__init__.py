"""The families of ops: each says here what its ops compute, and how; a large family has its gradients in a file beside it.

A rule ``(node, out_grads) -> input grads`` is written once, with functions that take arrays and symbols alike, so that it
serves the tape and the pass over a graph. It asks no values. What a rule looks at is its op's attribute
``gradient_reads``: of other operands and results the tape keeps the outline alone (shape and dtype).

The gradient of a complex number is that of its real part plus i times that of its imaginary part, as in PyTorch: the
direction in which a real result grows. For an analytic function it is the gradient of the result times the conjugate of
the derivative. JAX's is the conjugate of it.
"""

from importlib import import_module as _import_module

_RULES = (
    "fft_gradients", "indexing_gradients", "joining_gradients", "linalg_gradients", "manipulation_gradients", "patches",
    "products_gradients", "recurrence", "reductions_gradients", "sorting_gradients",
)  # fmt: skip


def attach() -> None:
    """Give the ops of large families their rules; once, when weft is imported and all ops are there."""
    for module in _RULES:
        _import_module(f"weft._ops.{module}")
