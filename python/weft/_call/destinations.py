"""Destinations of calls: the host, and each kind of device with memory of its own. Each pushes a call its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from weft._call import callables
from weft._call.outputs import check_writable
from weft._core import NDArray, push_compute

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.door import Call
    from weft._registry.op import Op


class Destination:
    """Where calls go. By itself it takes them as callables, which a worker runs with the GIL on views of the arrays.

    Attributes
    ----------
    kind : str
        The kind of device: that of an op's attribute ``"compute:kind"``.
    """

    kind: ClassVar[str]

    def elementwise(self, call: Call) -> None:
        """Push a call with a plan."""
        op, given, plan = call.op, call.given, call.plan
        own = op.compute.get(self.kind, op.compute["cpu"])
        inputs = tuple([x for x in given if isinstance(x, NDArray)])
        if op.ufunc is None or own is not op.ufunc:
            run = callables.of_compute(own, given, len(call.results))
            push_compute(run, call.results, inputs, name=op.name)
            return
        signature = plan.signature if plan is not None and call.exact else None
        run = callables.of_ufunc(op.ufunc, signature, given, masked=call.mask is not None)
        if call.mask is None:
            self.push(call, run, inputs, ())
        else:
            push_compute(run, (), (*inputs, call.mask), call.results, name=op.name)

    def whole(self, call: Call) -> None:
        """Push a call of an op without a ufunc."""
        op, given = call.op, call.given
        inputs = tuple([x for at, x in enumerate(given) if isinstance(x, NDArray) and at not in op.mutates])
        mutated: tuple[NDArray, ...] = ()
        if op.mutates:
            mutated = tuple([x for at, x in enumerate(given) if isinstance(x, NDArray) and at in op.mutates])
            for x in mutated:
                check_writable(x)
        run = callables.of_compute(self.compute_of(op), given, len(call.results), op.mutates, call.attributes)
        self.push(call, run, inputs, mutated)

    def compute_of(self, op: Op) -> Callable[..., object]:
        """Return the callable for an op without a kernel.

        A worker calls it with the GIL, and with views of the memory.
        """
        return op.compute.get(self.kind, op.compute["cpu"])

    def push(
        self, call: Call, run: Callable[..., None], inputs: tuple[NDArray, ...], mutated: tuple[NDArray, ...]
    ) -> None:
        """Push a callable over views of the results, the mutated arrays and the inputs."""
        push_compute(run, call.results, inputs, mutated, name=call.op.name)
