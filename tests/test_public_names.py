"""The public names stay: what is importable from `weft`, with each signature, is compared with `tests/public_names.txt`.

A rename, a lost keyword or a new name shows as a line of difference. If the change is wanted, write the list anew::

    python tests/test_public_names.py > tests/public_names.txt
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import weft
from weft._numpy.hints import Absent

LIST = Path(__file__).with_name("public_names.txt")
PACKAGE = Path(weft.__file__).parent
#: A command; its modules are no library.
COMMANDS = {"bench", "__main__"}
STUB = "stub "
#: Defaults that read the same in every process.
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def modules() -> list[str]:
    """Return the names of the public modules."""
    files = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
    names = (path.parent if path.name == "__init__" else path for path in files)
    return sorted(
        ".".join(("weft", *path.parts))
        for path in names
        if not any(part.startswith("_") for part in path.parts) and not COMMANDS & set(path.parts)
    )


def default(value: object) -> str:
    """Return a parameter's default as text."""
    return repr(value) if type(value) in PLAIN else "..."


def signature(value: object) -> str:
    """Return the parameters of a callable without their types; nothing where Python does not know them."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type] # others raise
    except (TypeError, ValueError):
        return ""
    parts, kinds = [], [parameter.kind for parameter in found.parameters.values()]
    for at, parameter in enumerate(found.parameters.values()):
        if (
            parameter.kind is parameter.KEYWORD_ONLY
            and parameter.VAR_POSITIONAL not in kinds
            and (at == 0 or kinds[at - 1] is not parameter.KEYWORD_ONLY)
        ):
            parts.append("*")
        stars = "*" * (
            int(parameter.kind is parameter.VAR_POSITIONAL) + 2 * int(parameter.kind is parameter.VAR_KEYWORD)
        )
        given = "" if parameter.default is parameter.empty else f"={default(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{given}")
        if parameter.kind is parameter.POSITIONAL_ONLY and (
            at + 1 == len(kinds) or kinds[at + 1] is not parameter.POSITIONAL_ONLY
        ):
            parts.append("/")
    return f"({', '.join(parts)})"


def members(cls: type) -> dict[str, object]:
    """Return the public members that a class of weft's has of its own or from another class of weft's."""
    own = [each for each in cls.__mro__ if each.__module__.partition(".")[0] == "weft"]
    found = {name: each for of in reversed(own) for name, each in vars(of).items() if not name.startswith("_")}
    return {name: each for name, each in found.items() if not isinstance(each, Absent)}


def described(path: str, value: object) -> list[str]:
    """Return the lines of a name: a class has one for each public member."""
    if isinstance(value, type) and value.__module__.partition(".")[0] == "weft":
        lines = [f"{path}{signature(value)}"]
        for name, member in members(value).items():
            function = getattr(member, "__func__", member)
            shown = signature(function) if isinstance(function, FunctionType) or callable(function) else ""
            lines.append(f"{path}.{name}{shown}")
        return lines
    if callable(value) and not isinstance(value, type):
        return [f"{path}{signature(value)}"]
    return [path]


def shown(module: ModuleType) -> list[str]:
    """Return the names of a module's `__all__`, or else those of its functions and classes of weft's."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and str(getattr(value, "__module__", "")).partition(".")[0] == "weft"
    ]
    return list(getattr(module, "__all__", own))


def importable() -> list[str]:
    """Return the public names of the public modules."""
    lines: list[str] = []
    for name in modules():
        module = importlib.import_module(name)
        for each in shown(module):
            lines += described(f"{name}.{each}", getattr(module, each))
    return lines


def stubbed() -> list[str]:
    """Return the members of the stub's public classes, and their parameters."""
    public = {each for name in modules() for each in shown(importlib.import_module(name))}
    tree = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))
    lines: list[str] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef) and child.name in public:
                lines.append(f"{prefix}{child.name}")
                visit(child, f"{prefix}{child.name}.")
            elif (
                isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                and not child.name.startswith("_")
                and prefix != STUB
            ):
                arguments = child.args
                for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                    argument.annotation = None
                for rest in (arguments.vararg, arguments.kwarg):
                    if rest is not None:
                        rest.annotation = None
                lines.append(f"{prefix}{child.name}({ast.unparse(arguments)})")

    visit(tree, STUB)
    return lines


def public_names() -> list[str]:
    """Return all lines, sorted."""
    return sorted({*importable(), *stubbed()})


def test_public_names_are_those_of_the_list() -> None:
    listed = LIST.read_text(encoding="utf-8").splitlines()
    difference = [line for line in difflib.ndiff(listed, public_names()) if line[0] in "+-"]
    assert not difference, "\n".join(
        ["public names have changed; if that is wanted, write the list anew:", *difference]
    )


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in public_names())
