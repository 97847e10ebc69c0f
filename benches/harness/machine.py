"""The machine and the versions that a result belongs to."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path


def describe() -> dict[str, str]:
    """Return what a reader needs in order to compare figures; no host or user names."""
    facts = {
        "processor": _processor(),
        "CPUs usable": str(_usable_cpus()),
        "load average at the start": _load(),
        "system": f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}, {_gil()}",
        "g++": _first_line("g++", "--version"),
        "rustc": _first_line("rustc", "--version"),
        "oneTBB": _tbb(),
    }
    for package in ("weft", "numpy", "torch", "jax", "numexpr", "dask"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def _gil() -> str:
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    return "GIL" if enabled else "free-threaded"


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return "not found"
    return done.stdout.splitlines()[0]


def _tbb() -> str:
    for name in ("libtbb.so.12", "libtbb.so", "libtbb.12.dylib"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.TBB_runtime_version.restype = ctypes.c_char_p
        version: bytes = library.TBB_runtime_version()
        return version.decode()
    return "not found"
