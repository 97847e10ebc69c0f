"""Graphs read from the text that `print_ir` writes: MLIR's habit, to see, edit and test the work of passes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NoReturn

from weft._core import graph_load_json
from weft._graph.graphs import Graph
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_WORD = re.compile(r"[^\W\d][\w.:/-]*")
_NUMBER = re.compile(r"\d+")
_OP = re.compile(r"[^\s(]+")
_GAP = re.compile(r"\s*")
_ESCAPES = {"n": "\n", "r": "\r"}


def parse_ir(text: str) -> Graph:
    """Return the graph that a text of `print_ir` describes.

    Parameters
    ----------
    text : str
        The text. Nodes may be named by any numbers, and may lack the name behind ``#``.

    Returns
    -------
    Graph
        The graph, without the findings of passes: shapes and the like, which the text shows without quotes, are read over, for the
        passes to find anew.

    Raises
    ------
    GraphError
        If the text is damaged, or names an op that is not registered; the message names the line.

    See Also
    --------
    load_json : The same for NNVM's format.

    Examples
    --------
    >>> import weft
    >>> graph = weft.graph.parse_ir('''
    ... Graph(%x) {
    ...   %x, __shape__='(2, 3)'
    ...   %1 = exp(%x)
    ...   %2 = sum(%1), axis='(1,)'  # total
    ...   ret %2
    ... }
    ... ''')
    >>> graph.symbol.eval(x=[[0.0, 0.0, 0.0]] * 2)
    [NDArray([3., 3.])]
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(
            f"parse_ir() reads the text that print_ir() returns, and {type(text).__name__} was given"
        )
    reader = _Reader(text)
    found = reader.graph()
    if reader.rest():
        reader.fail("the graph ends here, and more follows")
    return Graph._of(graph_load_json(json.dumps(found)))


class _Reader:
    """A place in a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def fail(self, why: str) -> NoReturn:
        """Raise an error that shows the line."""
        number = self._text.count("\n", 0, self._at) + 1
        line = self._text.split("\n")[number - 1].strip()
        raise GraphError(f"line {number} of the graph's text: {why}: {line}")

    def rest(self) -> str:
        """Return the rest of the text, but for blanks."""
        return self._text[self._at :].lstrip()

    def _takes(self, token: str) -> bool:
        start = self._past_blanks()
        if not self._text.startswith(token, start):
            return False
        self._at = start + len(token)
        return True

    def _past_blanks(self) -> int:
        found = _GAP.match(self._text, self._at)
        assert found is not None  # no blanks are some
        return found.end()

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            self._at = self._past_blanks()
            self.fail(f"{token!r} is missing")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._past_blanks())
        if found is not None:
            self._at = found.end()
        return found

    def _quoted(self) -> str | None:
        found = self._match(_QUOTED)
        if found is None:
            return None
        return re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[1]), found[1], flags=re.DOTALL)

    def _name(self, what: str) -> str:
        text = self._quoted()
        if text is not None:
            return text
        found = self._match(_WORD)
        return found[0] if found is not None else self.fail(f"{what} is missing")

    def _key(self) -> str:
        """Return the key behind a per cent sign: the number of a call, or the name of a variable."""
        self._expect("%")
        found = self._match(_NUMBER)
        return found[0] if found is not None else "%" + self._name("the name of a variable")

    def graph(self) -> dict[str, Any]:
        """Read a graph; return it as files have it."""
        self._expect("Graph")
        self._listed("(", ")", self._key)  # the variables, which have lines of their own
        self._expect("{")
        nodes: list[dict[str, Any]] = []
        numbers: dict[str, int] = {}
        while not self._takes("ret"):
            self._node(nodes, numbers)
        heads = [self._entry(numbers)]
        while self._takes(","):
            heads.append(self._entry(numbers))
        self._expect("}")
        variables = [at for at, node in enumerate(nodes) if node["op"] == "null"]
        return {"nodes": nodes, "arg_nodes": variables, "heads": heads}

    def _node(self, nodes: list[dict[str, Any]], numbers: dict[str, int]) -> None:
        start = self._past_blanks()
        key = self._key()
        if key in numbers:
            self._at = start
            self.fail("this node is named twice")
        if key.startswith("%"):
            node: dict[str, Any] = {"op": "null", "name": key[1:], "inputs": []}
        else:
            self._expect("=")
            op = self._match(_OP)
            if op is None:
                self.fail("the name of an op is missing")
            inputs = self._listed("(", ")", lambda: self._entry(numbers))
            node = {"op": op[0], "name": "", "inputs": inputs}
        node["attrs"] = self._attributes(node, numbers)
        if self._takes("#"):
            node["name"] = self._name("the name of the node")
        elif not node["name"]:
            node["name"] = f"{node['op']}{key}"
        numbers[key] = len(nodes)
        nodes.append(node)

    def _entry(self, numbers: dict[str, int]) -> list[int]:
        """Read a result of a node that was read."""
        key = self._key()
        if key not in numbers:
            self.fail(f"no node above is {key if key.startswith('%') else '%' + key}")
        index = self._count(".") if not key.startswith("%") else 0
        return [numbers[key], index, self._count("@")]

    def _count(self, mark: str) -> int:
        if not self._text.startswith(mark, self._at):
            return 0
        self._at += len(mark)
        found = self._match(_NUMBER)
        return int(found[0]) if found is not None else self.fail(f"a number is missing behind {mark!r}")

    def _attributes(self, node: dict[str, Any], numbers: dict[str, int]) -> dict[str, str]:
        found: dict[str, str] = {}
        while self._takes(","):
            key = self._name("the name of an attribute")
            self._expect("=")
            text = self._quoted()
            if text is not None:
                found[key] = text
            elif self.rest().startswith("Graph("):
                found[key] = json.dumps(self.graph())
            elif key == "after":
                node["control_deps"] = [entry[0] for entry in self._listed("[", "]", lambda: self._entry(numbers))]
            else:
                self._read_over()
        return found

    def _read_over(self) -> None:
        """Go past a finding of a pass: brackets are closed in it."""
        depth = 0
        for at in range(self._past_blanks(), len(self._text)):
            each = self._text[at]
            if depth == 0 and (each in ",\n" or self._text.startswith("  #", at)):
                self._at = at
                return
            depth += (each in "([") - (each in ")]")
        self.fail("the text ends here")

    def _listed(self, opening: str, closing: str, read: Callable[[], Any]) -> list[Any]:
        self._expect(opening)
        found: list[Any] = []
        while not self._takes(closing):
            if found:
                self._expect(",")
            found.append(read())
        return found
