"""The displays of notebooks: an engine's figures, a trace's timeline, and a cell that is traced."""

from __future__ import annotations

from typing import Any

from weft._core import Engine
from weft._engine.recorder import Trace
from weft._trace.markup import table


def attach() -> None:
    """Give engines the methods for notebooks; done once, when weft is imported."""
    setattr(Engine, "_repr_html_", _engine)  # noqa: B010 - the class is made elsewhere, without it


def load_ipython_extension(ipython: Any) -> None:
    """Take in the cell magic ``%%weft_trace``: called by ``%load_ext weft``.

    Parameters
    ----------
    ipython : IPython.InteractiveShell
        The shell.

    Examples
    --------
    >>> import weft
    >>> class Shell:
    ...     def register_magic_function(self, function, kind, name):
    ...         print(kind, name)
    >>> weft.load_ipython_extension(Shell())
    cell weft_trace
    """

    def weft_trace(line: str, cell: str) -> object:
        """Run the cell, and show its timeline; a name in the line keeps the trace under it."""
        with Trace() as recorded:
            ran = ipython.run_cell(cell)
        if line.strip():
            ipython.push({line.strip(): recorded})
        return recorded if ran.success else None

    ipython.register_magic_function(weft_trace, "cell", "weft_trace")


def _engine(engine: Engine) -> str:
    """Return an engine's figures as a table."""
    return table([("engine", "")], engine.stats().items())
