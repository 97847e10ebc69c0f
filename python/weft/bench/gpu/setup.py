"""The start of every line of the benchmark: the device, the sizes, CuPy if it is there, and the waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import weft
from weft._core import cuda_properties
from weft.bench.gpu.kernels import STEP, THREADS, numbers
from weft.bench.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.gpu.bounds import Bound
    from weft.bench.gpu.settings import Settings
    from weft.bench.samples import Job
    from weft.bench.tables import Table

#: How the rows are called that most tables have.
WEFT, CUPY, DRIVER = "weft", "CuPy", "the driver, back to back"


@dataclass(slots=True)
class Setup:
    """The device and the libraries on it.

    Attributes
    ----------
    settings : Settings
        How large.
    device : weft.Device
        Where.
    samples : Samples
        The times, and the missing rows.
    cupy : module or None
        CuPy, if it works here.
    without_cupy : str
        Why not.
    """

    settings: Settings
    device: weft.Device
    samples: Samples = field(default_factory=Samples)
    cupy: Any = None
    without_cupy: str = ""

    def __post_init__(self) -> None:
        """Look for CuPy."""
        try:
            self.cupy = import_module("cupy")
            # It imports without a driver and without a compiler; this asks for both.
            self.cupy.cuda.Device(self.device.index).use()
            self.cupy.RawKernel(STEP, "step_once")((1,), (THREADS,), (self.cupy.asarray(numbers(THREADS)),))
            self.cupy.cuda.Device().synchronize()
        except Exception as error:  # noqa: BLE001 - with any fault, it is missing here
            self.cupy, self.without_cupy = None, f"CuPy is missing: {error}"

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability."""
        found: tuple[int, int] = cuda_properties(self.device.index)["capability"]
        return found

    @property
    def multiprocessors(self) -> int:
        """How many multiprocessors the device has."""
        return int(cuda_properties(self.device.index)["multiprocessors"])

    def has_cupy(self, table: str, *rows: str) -> bool:
        """Return whether CuPy is there; if not, say in the table why these rows are empty."""
        if self.cupy is None:
            for row in rows or (CUPY,):
                self.samples.missing[table, row] = self.without_cupy
        return self.cupy is not None

    def stream(self) -> Any:
        """Return a stream of CuPy's that does not wait for the default one."""
        return self.cupy.cuda.Stream(non_blocking=True)


Prepare: TypeAlias = "Callable[[Setup], list[Job]]"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the benchmark.

    Attributes
    ----------
    key : str
        Its name on the command line.
    tables : tuple of Table
        Its tables.
    bounds : callable
        Returns the promises, for these sizes.
    prepare : callable
        Verifies every implementation, and returns the jobs that time them.
    """

    key: str
    tables: tuple[Table, ...]
    bounds: Callable[[Settings], tuple[Bound, ...]]
    prepare: Prepare


def wait() -> None:
    """Wait until weft has issued all that was pushed, and the devices have done it."""
    weft.get_engine().wait_for_all()
