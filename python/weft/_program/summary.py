"""A program as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._trace.units import amount

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._core import Compiled, _View


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as text, their columns padded with blanks.

    Examples
    --------
    >>> from weft._program.summary import aligned
    >>> print(aligned([("op", "result"), ("multiply", "float32[3]")]))
    op        result
    multiply  float32[3]
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def shown_view(view: _View) -> str:
    """Return an operand in words: its kind and its layout."""
    text = f"{view['dtype']}[{', '.join(map(str, view['shape']))}]"
    kind = view["kind"]
    number = view["buffer"] if view["number"] is None else view["number"]
    return f"{kind} {number}: {text}"


class Summary:
    """The ops of a program and its plan.

    Parameters
    ----------
    name : str
        The program's.
    compiled : Compiled
        The compiled recording.

    Attributes
    ----------
    rows : list of tuple of str
        For each op its number, name, operands, results, the ops that it waits for, and the place of its call.
    """

    def __init__(self, name: str, compiled: Compiled) -> None:
        self._name = name
        self.rows: list[tuple[str, ...]] = [
            (
                str(step["number"]),
                step["name"],
                ", ".join(map(shown_view, step["inputs"])),
                ", ".join(map(shown_view, step["outputs"])),
                " ".join(map(str, step["dependencies"])),
                _offsets(step["outputs"]),
                step["location"] or "",
            )
            for step in compiled.describe()
        ]
        saved = 1 - compiled.nbytes / compiled.eager_nbytes if compiled.eager_nbytes else 0.0
        self.figures: list[tuple[str, str]] = [
            ("ops", str(compiled.ops)),
            ("arena", amount(compiled.nbytes)),
            ("sum of all results", amount(compiled.eager_nbytes) + (f" ({saved:.0%} saved)" if saved > 0 else "")),
            ("peak of live bytes, recorded order", amount(compiled.eager_peak_nbytes)),
            ("peak of live bytes, planned order", amount(compiled.peak_live_nbytes)),
            ("states", str(len(compiled.states))),
        ]

    _HEADER = ("", "op", "reads", "writes", "after", "at", "called in")

    def __str__(self) -> str:
        """Return the figures and the table."""
        return f"program {self._name!r}\n{aligned(self.figures)}\n\n{aligned([self._HEADER, *self.rows])}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        from html import escape  # noqa: PLC0415 - notebooks have it

        def table(rows: list[tuple[str, ...]]) -> str:
            cells = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
            return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

        figures: list[tuple[str, ...]] = [*self.figures]
        return f"<b>program {escape(self._name)}</b>{table(figures)}{table([self._HEADER, *self.rows])}"


def _offsets(views: Sequence[_View]) -> str:
    """Return the places of results in the arena."""
    return " ".join("" if view["arena_offset"] is None else str(view["arena_offset"]) for view in views).strip()
