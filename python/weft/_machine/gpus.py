"""The GPUs, as the driver tells: no library but the driver is opened, and no context is made."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from typing import TypedDict

from weft._machine.software import version_of

#: The environment variables that name libraries for GPUs.
VARIABLES = {
    "WEFT_CUDA_LIBRARY": "path of the NVIDIA driver's library, where it is not in its usual place",
    "WEFT_NVRTC_LIBRARY": "path of NVRTC's library, where it is not in its usual place",
}
_DRIVERS = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}
_NAME_LENGTH = 256
#: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
_CAPABILITY = (75, 76)


class Gpu(TypedDict):
    """One device."""

    name: str
    compute_capability: str
    memory_bytes: int


class Gpus(TypedDict):
    """The driver's answer."""

    driver: str | None
    problem: str | None
    devices: list[Gpu]


class _DriverError(RuntimeError):
    """There is no driver, or a call of it failed."""


def gpus() -> Gpus:
    """Return the CUDA devices of this machine.

    Returns
    -------
    Gpus
        ``driver``, the CUDA version that the driver supports, None without a driver; ``problem``, why the driver shows
        no devices, or None; and ``devices``.
    """
    try:
        driver, (major, minor) = _open()
    except _DriverError as error:
        return Gpus(driver=None, problem=str(error), devices=[])
    text = f"CUDA {major}.{minor}"
    try:
        return Gpus(driver=text, problem=None, devices=_devices(driver))
    except (_DriverError, AttributeError) as error:
        return Gpus(driver=text, problem=str(error), devices=[])


def driver_version() -> tuple[int, int] | None:
    """Return the CUDA version that the driver supports, or None without a driver. The driver is not initialized.

    Returns
    -------
    (int, int) or None
        As ``(13, 0)``.
    """
    try:
        return _open()[1]
    except _DriverError:
        return None


def _open() -> tuple[ctypes.CDLL, tuple[int, int]]:
    library = os.environ.get("WEFT_CUDA_LIBRARY") or _DRIVERS.get(sys.platform)
    if library is None:
        raise _DriverError(f"there is no CUDA driver for {sys.platform}")
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        raise _DriverError(f"no driver: {library} is not there") from None
    version = ctypes.c_int()
    try:
        # The one call that works before the driver is initialized.
        _check("cuDriverGetVersion", driver.cuDriverGetVersion(ctypes.byref(version)))
    except (_DriverError, AttributeError) as error:
        raise _DriverError(f"{library} is no working driver: {error}") from None
    return driver, (version.value // 1000, version.value % 1000 // 10)


def _devices(driver: ctypes.CDLL) -> list[Gpu]:
    _check("cuInit", driver.cuInit(0))
    count = ctypes.c_int()
    _check("cuDeviceGetCount", driver.cuDeviceGetCount(ctypes.byref(count)))
    return [_device(driver, number) for number in range(count.value)]


def _device(driver: ctypes.CDLL, number: int) -> Gpu:
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(_NAME_LENGTH)
    _check("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), number))
    _check("cuDeviceGetName", driver.cuDeviceGetName(name, _NAME_LENGTH, device))
    _check("cuDeviceTotalMem", driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device))
    capability: list[str] = []
    for attribute in _CAPABILITY:
        value = ctypes.c_int()
        _check("cuDeviceGetAttribute", driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
        capability.append(str(value.value))
    return Gpu(name=name.value.decode(), compute_capability=".".join(capability), memory_bytes=memory.value)


def _check(call: str, status: int) -> None:
    if status:
        raise _DriverError(f"{call} failed with CUDA error {status}")


def cupy() -> str | None:
    """Return the version of CuPy, or None if it is not installed. It is not imported.

    Examples
    --------
    >>> import sys
    >>> from weft._machine.gpus import cupy
    >>> _ = cupy()
    >>> "cupy" in sys.modules
    False
    """
    if find_spec("cupy") is None:
        return None
    # Its distribution has the CUDA version in its name: cupy-cuda12x, cupy-cuda13x.
    names = packages_distributions().get("cupy", ())
    return next((version for name in names if (version := version_of(name))), "of an unknown version")
