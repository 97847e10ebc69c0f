"""Tables on standard output: rich's where it is a terminal, aligned text where it is a pipe or a file."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from weft._trace.optional import need

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def show(title: str, rows: Sequence[Sequence[str]], *, header: bool = True) -> None:
    """Print a table.

    Parameters
    ----------
    title : str
        The line above it.
    rows : sequence of sequence of str
        Rows of the same length.
    header : bool, default: True
        Whether the first row names the columns; all columns but the first are figures.
    """
    if sys.stdout.isatty() and find_spec("rich") is not None:
        _show_rich(title, rows, header=header)
    else:
        print(f"{title}\n{aligned(rows)}\n")


def show_all(machine: Mapping[str, str], tables: Iterable[tuple[str, Sequence[Sequence[str]]]]) -> None:
    """Print facts on the machine, and tables behind their titles; their first rows name the columns."""
    show("Machine", [[name, value] for name, value in machine.items()], header=False)
    for title, rows in tables:
        show(title, rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text, their columns padded with blanks.

    Examples
    --------
    >>> from weft._command.tables import aligned
    >>> print(aligned([["", "ns"], ["push", "51.2"]]))
          ns
    push  51.2
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _show_rich(title: str, rows: Sequence[Sequence[str]], *, header: bool) -> None:
    text = need("rich.text").Text  # a name in brackets is no markup
    shown = need("rich.table").Table(title=text(title), title_justify="left", title_style="bold", show_header=header)
    for number, name in enumerate(rows[0]):
        justify = "right" if header and number else "left"
        shown.add_column(text(name) if header else "", justify=justify, overflow="fold")
    for row in rows[1 if header else 0 :]:
        shown.add_row(*map(text, row))
    need("rich.console").Console().print(shown)
