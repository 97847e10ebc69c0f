"""The compilers and the library that the programs in C++ and Rust were built with."""

from __future__ import annotations

import ctypes
import subprocess


def versions() -> dict[str, str]:
    """Return the versions of g++, rustc and oneTBB."""
    return {
        "g++": _first_line("g++", "--version"),
        "rustc": _first_line("rustc", "--version"),
        "oneTBB": _tbb(),
    }


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
