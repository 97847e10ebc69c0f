"""The device, and the versions that a result on it belongs to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from weft._core import cuda_properties
from weft._machine import gpus
from weft._machine.processors import processor_name, system, usable_cpus
from weft._machine.software import python, version_of

if TYPE_CHECKING:
    from weft.bench.gpu.setup import Setup

#: Where Linux tells the version of the kernel's part of the driver.
_DRIVER = Path("/proc/driver/nvidia/version")
_GIB = 1 << 30


def describe(setup: Setup) -> dict[str, str]:
    """Return the facts that a reader needs to compare figures; no host or user names."""
    found = cuda_properties(setup.device.index)
    major, minor = found["capability"]
    return {
        "device": found["name"],
        "compute capability": f"{major}.{minor}",
        "multiprocessors": str(found["multiprocessors"]),
        "memory": f"{found['memory'] / _GIB:.0f} GiB",
        "driver": _driver(),
        "CUDA of the driver": (gpus.gpus()["driver"] or "unknown").removeprefix("CUDA "),
        "CUDA of CuPy": _cupys_cuda(setup),
        "CuPy": gpus.cupy() or "not installed",
        "weft": version_of("weft") or "unknown",
        "NumPy": version_of("numpy") or "unknown",
        "torch": version_of("torch") or "not installed",
        "Python": python(),
        "processor": processor_name(),
        "CPUs usable": str(usable_cpus()),
        "system": system(),
    }


def file_stem(device: str) -> str:
    """Return the name of a device's files of results.

    Examples
    --------
    >>> from weft.bench.gpu.machine import file_stem
    >>> file_stem("NVIDIA H100 80GB HBM3")
    'gpu-nvidia-h100-80gb-hbm3'
    """
    return "gpu-" + re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def _driver() -> str:
    try:
        text = _DRIVER.read_text("utf-8")
    except OSError:
        return "unknown"
    found = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", text)
    return found[0] if found else "unknown"


def _cupys_cuda(setup: Setup) -> str:
    if setup.cupy is None:
        return setup.without_cupy
    version = int(setup.cupy.cuda.runtime.runtimeGetVersion())
    return f"{version // 1000}.{version % 1000 // 10}"
