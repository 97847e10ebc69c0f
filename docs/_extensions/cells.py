"""Makes a notebook of a page: its text as cells of text, what it runs as cells of code.

Names with a role become names alone, and links within the documentation their text. A block whose run is drawn becomes a
traced cell.
"""

import json
import re

FENCE = re.compile(r"^```(\{run\}|python)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
OPTION = re.compile(r"\A(?::[a-z-]+:.*\n)+\n*")
OTHERS = re.compile(r"^```\{[a-z]+\}.*?^```\n", re.DOTALL | re.MULTILINE)
ROLE = re.compile(r"\{[a-z:]+\}`~?([^`<]+)`")
LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)[^)]*\)")


def cells_of(page: str) -> list[tuple[str, str]]:
    """Return the cells of a page of Markdown, each with its kind, "markdown" or "code"."""
    found: list[tuple[str, str]] = []
    end = 0
    for block in FENCE.finditer(page):
        found.append(("markdown", plain(page[end : block.start()])))
        kind, code = block.groups()
        options = OPTION.match(code) if kind == "{run}" else None
        code = code[options.end() :] if options else code
        if options and ":timeline:" in options.group():
            found.append(("code", "%load_ext weft"))
            code = f"%%weft_trace\n{code}"
        found.append(("code", code.rstrip()))
        end = block.end()
    found.append(("markdown", plain(page[end:])))
    return [(kind, text) for kind, text in found if text]


def plain(text: str) -> str:
    """Return text without what only the documentation knows."""
    return LINK.sub(r"\1", ROLE.sub(r"`\1`", OTHERS.sub("", text))).strip()


def notebook_of(page: str) -> str:
    """Return the notebook of a page, as its file has it."""
    cells: list[dict[str, object]] = [
        {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text}
        | ({"execution_count": None, "outputs": []} if kind == "code" else {})
        for number, (kind, text) in enumerate(cells_of(page))
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1) + "\n"
