"""The packages of `weft[trace]`: imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(name: str) -> Any:
    """Return a module of a package that need not be installed.

    Parameters
    ----------
    name : str
        The module's full name.

    Raises
    ------
    ImportError
        If its package is missing; the message says how to install it.

    Examples
    --------
    >>> from weft._trace.optional import need
    >>> need("no_such_package")
    Traceback (most recent call last):
    ...
    ImportError: ...
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        raise ImportError(f"this needs {package}: pip install {package}", name=package) from error
