"""The interpreter, the installed packages, the libraries of linear algebra."""

from __future__ import annotations

import platform
import sys
from importlib import import_module, metadata
from typing import Any, TypedDict


class Blas(TypedDict):
    """A library of linear algebra that is loaded."""

    library: str
    version: str | None
    threads: int


def python() -> str:
    """Return the interpreter's name and version, and whether it has a GIL.

    Examples
    --------
    >>> from weft._machine.software import python
    >>> python().startswith(("CPython", "PyPy"))
    True
    """
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return f"{platform.python_implementation()} {platform.python_version()}, {'GIL' if gil else 'free-threaded'}"


def version_of(package: str) -> str | None:
    """Return the version of a distribution; None if it is not installed. Nothing is imported.

    Examples
    --------
    >>> from weft._machine.software import version_of
    >>> version_of("numpy") is None, version_of("not-a-package") is None
    (False, True)
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def blas() -> list[Blas]:
    """Return the libraries of linear algebra that this process has loaded, by threadpoolctl; none without it (extra ``machine``)."""
    import_module("numpy.linalg")
    try:
        threadpoolctl: Any = import_module("threadpoolctl")  # ships no types
    except ImportError:
        return []
    return [
        Blas(library=pool["internal_api"], version=pool["version"], threads=pool["num_threads"])
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"
    ]
