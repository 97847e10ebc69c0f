"""Devices under SINGA's names: the class and the functions of `weft.device`."""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

from weft._call.devices import as_device
from weft._core import NDArray, Variable, cuda_device_count, cuda_memory_stats, cuda_properties
from weft._engine.array_waits import wait_all
from weft._engine.default import get_engine
from weft._engine.labels import Device as _Device, gpu
from weft._registry.brief import brief
from weft._registry.shapes import is_index
from weft._singa.models.deferred import Deferred, deferred_of
from weft._singa.models.generators import generator_of, seed
from weft.errors import ArgumentTypeError, ArgumentValueError, CudaUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from weft._ops.random import Generator


class Device(_Device):
    """A device as `weft.Device`, with SINGA's methods. Equal to the `weft.Device` of the same name.

    Examples
    --------
    >>> import weft
    >>> from weft import device
    >>> device.get_default_device() == weft.cpu(0)
    True
    """

    __module__ = "weft.device"
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same device."""
        if not isinstance(other, _Device):
            return NotImplemented
        return (self.kind, self.index, self.lane) == (other.kind, other.index, other.lane)

    def __hash__(self) -> int:
        """Return a number that equal devices share."""
        return hash((self.kind, self.index, self.lane))

    @property
    def _deferred(self) -> Deferred:
        return deferred_of(self.kind, self.index)

    @property
    def generator(self) -> Generator:
        """The generator that initialisers, dropout and ``Tensor.gaussian`` draw from."""
        return generator_of(self)

    def id(self) -> int:
        """Return the number of a GPU, and -1 for the CPU, as SINGA does."""
        return self.index if self.kind == "cuda" else -1

    def SetRandSeed(self, seed_value: int) -> None:  # noqa: N802 - SINGA's name
        """Begin the device's random numbers anew, from a seed."""
        seed(self, seed_value)

    def Exec(  # noqa: N802 - SINGA's name
        self,
        function: Callable[[], object],
        read_blocks: Iterable[Variable | NDArray] = (),
        write_blocks: Iterable[Variable | NDArray] = (),
        op_name: str = "no_name",
        use_rand_generator: bool = False,
    ) -> None:
        """Push a function, as `weft.Engine.push` does; inside a graph it runs at each `RunGraph`.

        Parameters
        ----------
        function : callable
            The function to run. Inside, arrays that are named here have their values.
        read_blocks, write_blocks : iterable of NDArray or Variable
            The arrays and variables that it reads, and those that it reads and writes.
        op_name : str, default: "no_name"
            Its name in traces and errors.
        use_rand_generator : bool, default: False
            Whether it draws from `generator`, in the order of the pushes.

        Examples
        --------
        >>> import numpy as np
        >>> import weft
        >>> from weft import device
        >>> dev, x, y = device.get_default_device(), weft.ones(2), weft.zeros(2)
        >>> dev.Exec(lambda: np.add(y, x, out=np.asarray(y)), [x], [y], "add")
        >>> y
        NDArray([1., 1.])
        """
        if not callable(function):
            raise ArgumentTypeError(f"Exec takes a function, not {type(function).__name__}")
        try:
            reads, writes = list(read_blocks), list(write_blocks)
        except TypeError:
            raise ArgumentTypeError(
                "Exec takes lists of the arrays that the function reads and writes: read_blocks=[x], write_blocks=[y]"
            ) from None
        for block in (*reads, *writes):
            if not isinstance(block, NDArray | Variable):
                raise ArgumentTypeError(f"read_blocks and write_blocks hold arrays and variables, not {brief(block)}")
        if use_rand_generator:
            writes.append(self.generator._state)
        blocks = [*writes, *reads]
        engine = blocks[0].engine if blocks else get_engine()
        engine.push(function, reads, writes, name=op_name, device=_Device(str(self)))

    def EnableGraph(self, enable: bool) -> None:  # noqa: N802 - SINGA's
        """Begin to keep this thread's pushes instead of running them, or end that.

        Examples
        --------
        >>> import weft
        >>> from weft import device
        >>> dev, x = device.get_default_device(), weft.zeros(2)
        >>> dev.EnableGraph(True)
        >>> x += 1
        >>> dev.EnableGraph(False)
        >>> dev.RunGraph(); dev.RunGraph(sequential=True)
        >>> x
        NDArray([2., 2.])
        >>> dev.ResetGraph()
        """
        self._deferred.enable(bool(enable))

    def graph_enabled(self) -> bool:
        """Return whether this thread's pushes are kept."""
        return self._deferred.is_open

    def RunGraph(self, sequential: bool = False) -> None:  # noqa: N802 - SINGA's
        """Run the kept graph once more: op by op in its order if `sequential`."""
        self._deferred.enable(on=False)
        self._deferred.run(bool(sequential))

    def ResetGraph(self) -> None:  # noqa: N802 - SINGA's name
        """Forget the kept graph."""
        self._deferred.reset()

    def Sync(self) -> None:  # noqa: N802 - SINGA's name
        """Wait until all pushed ops have run. The ops of a kept graph stay unrun."""
        wait_all()

    def Reset(self) -> None:  # noqa: N802 - SINGA's name
        """Forget the graph, the times and the settings."""
        deferred = self._deferred
        deferred.reset()
        deferred.verbosity, deferred.skipped = 0, 5

    def verbosity(self) -> int:
        """Return the verbosity, as `SetVerbosity` has set it."""
        return self._deferred.verbosity

    def skip_iteration(self) -> int:
        """Return the number of iterations without times, as `SetSkipIteration` has set it."""
        return self._deferred.skipped

    def SetVerbosity(self, verbosity: int) -> None:  # noqa: N802 - SINGA's name
        """Choose the times that are taken of models and graphs on this device.

        Parameters
        ----------
        verbosity : int
            0: none, the default. 1: of forward and of backward propagation. 2: of each op. Iterations that are timed wait
            for their end.
        """
        if verbosity not in (0, 1, 2):
            raise ArgumentValueError(f"the verbosity is 0, 1 or 2, not {verbosity!r}")
        self._deferred.verbosity = verbosity

    def SetSkipIteration(self, skip_iteration: int) -> None:  # noqa: N802 - SINGA's name
        """Say how many first iterations are not timed; 5 by default."""
        number: object = skip_iteration
        if not is_index(number) or operator.index(number) < 0:
            raise ArgumentValueError(f"a number of iterations is 0 or more, not {skip_iteration!r}")
        self._deferred.skipped = skip_iteration

    def PrintTimeProfiling(self) -> None:  # noqa: N802 - SINGA's name
        """Print the times of models and graphs on this device since `SetVerbosity`."""
        deferred = self._deferred
        lines = ["Time Profiling:"]
        for name, times in deferred.times.items():
            lines += [f"{name}:", *(f"  {line}" for line in times.lines(deferred.verbosity))]
        if len(lines) == 1:
            lines.append("nothing was timed: call SetVerbosity(1) before the steps to be timed")
        sys.stdout.write("\n".join(lines) + "\n")


def face(device: _Device | str | None) -> Device:
    """Return a device with SINGA's methods.

    Examples
    --------
    >>> from weft._singa.device import face
    >>> face("cpu:1").id()
    -1
    """
    found = as_device(device)
    return found if isinstance(found, Device) else Device(str(found))


def get_default_device() -> Device:
    """Return the first CPU.

    Examples
    --------
    >>> from weft import device
    >>> device.get_default_device().kind
    'cpu'
    """
    return face("cpu:0")


#: The first CPU, which `get_default_device` returns.
default_device = get_default_device()


def create_cpu_device() -> Device:
    """Return the first CPU, as `get_default_device`."""
    return get_default_device()


def create_cuda_gpu() -> Device:
    """Return the first GPU; CudaUnavailableError if there is none."""
    return create_cuda_gpu_on(0)


def create_cuda_gpu_on(device_id: int) -> Device:
    """Return a GPU by its number; CudaUnavailableError if there is none of that number."""
    return create_cuda_gpus_on([device_id])[0]


def create_cuda_gpus(num: int) -> list[Device]:
    """Return the first GPUs."""
    return create_cuda_gpus_on(range(num))


def create_cuda_gpus_on(device_ids: Sequence[int]) -> list[Device]:
    """Return GPUs by their numbers; CudaUnavailableError if there are not as many."""
    there = get_num_gpus()
    for number in device_ids:
        if not 0 <= number < there:
            raise CudaUnavailableError(f"there is no GPU {number}: there are {there}, numbered from 0")
    return [face(gpu(number)) for number in device_ids]


def get_num_gpus() -> int:
    """Return how many GPUs there are; CudaUnavailableError, with the reason, if CUDA cannot be used."""
    cuda_properties(0)
    return cuda_device_count()


def get_gpu_ids() -> list[int]:
    """Return the numbers of the GPUs."""
    return list(range(get_num_gpus()))


def get_gpu_mem_size(id: int) -> tuple[int, int]:
    """Return the free and the whole memory of a GPU, in bytes."""
    found = cuda_memory_stats(gpu(id).index)
    return found["free"], found["total"]


def device_query(id: int, verbose: bool = False) -> dict[str, Any]:
    """Return CUDA's facts about a GPU."""
    found = dict(cuda_properties(id))
    if verbose:
        sys.stdout.write("".join(f"{name}: {value}\n" for name, value in found.items()))
    return found


def enable_lazy_alloc(enable: bool) -> None:
    """Do nothing: memory is always allocated when the op runs that fills it."""
