"""Lines of source files: where a name is made, and which loop a line stands in."""

from __future__ import annotations

import ast
import functools
import linecache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOPS = (ast.For, ast.While, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@functools.lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=64)
def may_call(file: str, names: frozenset[str]) -> bool:
    """Return whether the text of a file may call functions of these names, or use ``@``; sooner than its parts say."""
    rows = linecache.getlines(file)
    text = "".join(rows)
    return any(f"{name}(" in text or f".{name}" in text for name in names) or text.count("@") > sum(
        row.lstrip().startswith("@") for row in rows
    )


def split_place(place: str | None) -> tuple[str, int]:
    """Return file and line of ``file.py:12``; the line is 0 if there is none.

    Examples
    --------
    >>> from weft._doctor.sources import split_place
    >>> split_place("C:/a.py:12"), split_place(None)
    (('C:/a.py', 12), ('', 0))
    """
    file, colon, line = (place or "").rpartition(":")
    return (file, int(line)) if colon and line.isdecimal() else (place or "", 0)


def lines(first: int, last: int) -> str:
    """Return how a message names lines.

    Examples
    --------
    >>> from weft._doctor.sources import lines
    >>> lines(3, 3), lines(3, 5)
    ('line 3', 'lines 3-5')
    """
    return f"line {first}" if first == last else f"lines {first}-{last}"


def made_at(file: str, path: str) -> int:
    """Return the first line of a file that assigns an expression like ``totals`` or ``self.totals``; 0 if none does."""
    last = path.partition("[")[0].rpartition(".")[2]
    tree = _tree(file)
    if tree is None or not last:
        return 0
    lines = [line for node in ast.walk(tree) for name, line in _assigned(node) if name == last]
    return min(lines, default=0)


def _assigned(node: ast.AST) -> Iterator[tuple[str, int]]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        targets = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    while targets:
        target = targets.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            targets += target.elts
        elif isinstance(target, ast.Starred):
            targets.append(target.value)
        elif isinstance(target, ast.Name):
            yield target.id, target.lineno
        elif isinstance(target, ast.Attribute):
            yield target.attr, target.lineno


def loop_around(file: str, line: int) -> tuple[int, int] | None:
    """Return first and last line of the innermost loop around a line.

    None if it stands in no loop, or the source is not there.
    """
    return _innermost(file, line, _LOOPS)


def function_around(file: str, line: int) -> tuple[int, int] | None:
    """Return first and last line of the innermost function around a line; None if there is none."""
    return _innermost(file, line, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))


def function_named(file: str, line: int, name: str) -> Iterator[ast.AST]:
    """Yield the functions of a file that have a name; for ``<lambda>`` those of a line."""
    tree = _tree(file)
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name == name:
                yield node
        elif isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno <= line <= (node.end_lineno or line):
            yield node


def _innermost(file: str, line: int, kinds: tuple[type[ast.AST], ...]) -> tuple[int, int] | None:
    tree = _tree(file)
    if tree is None:
        return None
    found: tuple[int, int] | None = None
    for node in ast.walk(tree):
        if isinstance(node, kinds):
            each: Any = node
            span = each.lineno, each.end_lineno or each.lineno
            if not span[0] <= line <= span[1]:
                continue
            if found is None or span[1] - span[0] <= found[1] - found[0]:
                found = span
    return found
