"""NVRTC, CUDA's compiler: where it is, and images made by it."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

from weft._core import cuda_compile, cuda_compiler_version
from weft.errors import CudaUnavailableError, KernelCompileError

#: Packages that ship it, newest first, with where it is in them.
_PACKAGES = (
    (("nvidia.cu13", "bin/x86_64"), ("nvidia.cuda_nvrtc", "bin"))
    if sys.platform == "win32"
    else (("nvidia.cu13", "lib"), ("nvidia.cuda_nvrtc", "lib"))
)
#: Packages with CUDA's headers, by the major version of CUDA, and the folders of these in them.
_HEADERS = {
    13: (("nvidia.cu13", "include"), ("nvidia.cu13", "include/cccl")),
    12: (("nvidia.cuda_runtime", "include"), ("nvidia.cuda_cccl", "include")),
}
#: One header of each package of CUDA's that ships some: where one is missing, a toolkit may have it.
_PIECES = ("cuda_fp16.h", "nv/target", "crt/mma.h")
_VERSION = re.compile(r"#define\s+CUDA_VERSION\s+(\d+)")
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

    ``WEFT_NVRTC_LIBRARY``, where it is set, is the only one. One that is newer than the driver comes last: the driver
    may not load its images.

    Examples
    --------
    >>> from weft._cuda.nvrtc import libraries
    >>> all("nvrtc" in path for path in libraries())
    True
    """
    named = os.environ.get("WEFT_NVRTC_LIBRARY")
    if named:
        return [named]
    from weft._machine.gpus import driver_version  # noqa: PLC0415 - needed for compilations alone

    found: list[tuple[int, str]] = []
    for package, folder in _PACKAGES:
        for root in _roots(package):
            found += _in(root / folder)
    # By name the loader's own places are searched, and libraries that the process has loaded already.
    found += _NAMES.items()
    for toolkit in _toolkits():
        found += _in(toolkit / _TOOLKIT)
    driver = driver_version()
    newest = max(_NAMES) if driver is None else driver[0]
    return [path for _, path in sorted(found, key=lambda each: each[0] > newest)]


def headers(major: int) -> list[str]:
    """Return the folders with CUDA's headers for a compiler of a major version: ``cuda_fp16.h``, ``cooperative_groups.h``.

    Those of installed packages come first; where one of these packages is missing, those of a toolkit follow. ``stdint.h``
    needs none.

    Examples
    --------
    >>> from weft._cuda.nvrtc import headers
    >>> isinstance(headers(12), list)
    True
    """
    folders = [root / folder for package, folder in _HEADERS.get(major, ()) for root in _roots(package)]
    if not all(any((folder / piece).exists() for folder in folders) for piece in _PIECES):
        toolkits = [toolkit / "include" for toolkit in _toolkits() if _has_headers(toolkit, major)]
        folders += [folder for include in toolkits for folder in (include, include / "cccl")]
    return [str(folder) for folder in folders if folder.is_dir()]


def _roots(package: str) -> list[Path]:
    """Return the folders of a package, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(root) for root in (spec.submodule_search_locations or ())] if spec else []


def _toolkits() -> list[Path]:
    named = (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    return [Path(toolkit) for toolkit in named if toolkit]


def _has_headers(toolkit: Path, major: int) -> bool:
    """Return whether the headers of a toolkit are for a compiler of a major version."""
    try:
        found = _VERSION.search((toolkit / "include" / "cuda.h").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False
    return found is not None and int(found[1]) // 1000 == major


def _in(folder: Path) -> list[tuple[int, str]]:
    return [(major, str(path)) for major, name in _NAMES.items() if (path := folder / name).exists()]


def build(name: str, source: str, capability: tuple[int, int], options: tuple[str, ...] = ()) -> bytes:
    """Compile CUDA C++ for devices of a compute capability.

    Parameters
    ----------
    name : str
        The name of the source in messages.
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
        paths = libraries()
        if "#include" in source:
            folders = headers(cuda_compiler_version(paths)[0])
            options = (*options, *(f"--include-path={folder}" for folder in folders))  # the user's come first
        return cuda_compile(paths, name, source, capability, list(options))
    except KernelCompileError as error:
        if "open source file" in str(error):
            error.add_note(
                "CUDA's own headers come with: pip install nvidia-cuda-runtime nvidia-cuda-cccl, or "
                "nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12 for an NVRTC of CUDA 12; other folders are named by "
                'options=("--include-path=FOLDER",)'
            )
        raise
    except CudaUnavailableError as error:
        raise CudaUnavailableError(
            f"{error}; kernels need it: pip install nvidia-cuda-nvrtc, or nvidia-cuda-nvrtc-cu12 for a driver for CUDA 12, "
            "or name the library by WEFT_NVRTC_LIBRARY"
        ) from None
