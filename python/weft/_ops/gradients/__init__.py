"""Gradient rules of weft's ops, grouped as the ops are. `attach` gives them to the registry.

A rule ``(node, out_grads) -> input grads`` is written once, with functions that take arrays and symbols alike, so that it
serves the tape and the pass over a graph. It asks no values. What a rule looks at is its op's attribute
``gradient_reads``: of other operands and results the tape keeps the outline alone (shape and dtype).

The gradient of a complex number is that of its real part plus i times that of its imaginary part, as in PyTorch: the
direction in which a real result grows. For an analytic function it is the gradient of the result times the conjugate of
the derivative. JAX's is the conjugate of it.
"""

from __future__ import annotations

from importlib import import_module

_MODULES = (
    "calculus",
    "fourier",
    "indexing",
    "joining",
    "linalg",
    "matrices",
    "nondifferentiable",
    "patches",
    "products",
    "recurrence",
    "reductions",
    "shapes",
    "sorting",
    "statistics",
)


def attach() -> None:
    """Give all ops their rules; once, when weft is imported and all ops are there."""
    for module in _MODULES:
        import_module(f"weft._ops.gradients.{module}")
