"""NVRTC, CUDA's compiler: where it is, and images made by it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from weft._core import cuda_compile
from weft.errors import CudaUnavailableError

__all__ = ["build", "libraries"]

#: Packages that ship it, newest first, with where it is in them.
_PACKAGES = (("nvidia.cu13", "lib"), ("nvidia.cuda_nvrtc", "lib"))
#: Where a toolkit that was installed by itself has it.
_TOOLKIT = "bin" if sys.platform == "win32" else "lib64"
#: Its names, by the major version of CUDA.
_NAMES = (
    {13: "nvrtc64_130_0.dll", 12: "nvrtc64_120_0.dll"}
    if sys.platform == "win32"
    else {13: "libnvrtc.so.13", 12: "libnvrtc.so.12"}
)


def libraries() -> list[str]:
    """Return the paths at which to look for NVRTC, the likeliest first.

    ``WEFT_NVRTC_LIBRARY``, where it is set, is the only one. One that is newer than the driver comes last: the driver may
    not load what it makes.

    Examples
    --------
    >>> from weft._cuda.nvrtc import libraries
    >>> all("nvrtc" in path for path in libraries())
    True
    """
    named = os.environ.get("WEFT_NVRTC_LIBRARY")
    if named:
        return [named]
    from weft._machine.gpus import driver_version  # noqa: PLC0415 - for those alone who compile

    found: list[tuple[int, str]] = []
    for package, folder in _PACKAGES:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for root in (spec.submodule_search_locations or ()) if spec else ():
            found += _in(Path(root) / folder)
    # By name the loader's own places are searched, and what the process has loaded already.
    found += _NAMES.items()
    for toolkit in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        found += _in(Path(toolkit) / _TOOLKIT) if toolkit else ()
    driver = driver_version()
    newest = max(_NAMES) if driver is None else driver[0]
    return [path for _, path in sorted(found, key=lambda each: each[0] > newest)]


def _in(folder: Path) -> list[tuple[int, str]]:
    return [(major, str(path)) for major, name in _NAMES.items() if (path := folder / name).exists()]


def build(name: str, source: str, capability: tuple[int, int], options: tuple[str, ...] = ()) -> bytes:
    """Compile CUDA C++ for devices of a compute capability.

    Parameters
    ----------
    name : str
        What the source is called in messages.
    source : str
        The source.
    capability : (int, int)
        As ``(9, 0)``.
    options : tuple of str, optional
        Options of NVRTC.

    Returns
    -------
    bytes
        The image, which the driver loads.

    Raises
    ------
    CudaUnavailableError
        If there is no NVRTC.
    KernelCompileError
        If the source is wrong.
    """
    try:
        return cuda_compile(libraries(), name, source, capability, list(options))
    except CudaUnavailableError as error:
        raise CudaUnavailableError(
            f"{error}; kernels need it: pip install nvidia-cuda-nvrtc, or nvidia-cuda-nvrtc-cu12 for a driver for CUDA 12, "
            "or name the library by WEFT_NVRTC_LIBRARY"
        ) from None
