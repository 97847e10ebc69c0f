"""``weft graph FILE``: a model file as a table, with its memory plan."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._command.running import CommandError

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction


def add_to(commands: _SubParsersAction[Any]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "graph",
        help="print a model file, with its memory plan",
        description="Print a model file in NNVM's format: a table of its nodes or, with --ir, its text; and, where the "
        "shapes that are given determine all others, the plan of its memory.",
    )
    parser.add_argument("file", type=Path, help="the file, such as net-symbol.json")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=N,N,...",
        help="the shape of a variable; may be given several times",
    )
    parser.add_argument("--ir", action="store_true", help="print the graph as text instead of a table")
    parser.add_argument(
        "--draw", type=Path, metavar="PATH", help="write a picture, .dot, .svg or, by Graphviz, .png or .pdf"
    )
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module first, which registers ops; may be given several times",
    )
    parser.set_defaults(command=_graph)


def _graph(options: Namespace) -> int:
    from weft import graph, symbol  # noqa: PLC0415 - for this command alone
    from weft.errors import GraphError  # noqa: PLC0415 - as above

    for module in options.modules:
        _import(module)
    shapes = dict(_shape(text) for text in options.shape)
    try:
        net = symbol.load(options.file)
    except OSError as error:
        raise CommandError(f"{options.file}: {error.strerror or error}") from error
    except GraphError as error:
        raise CommandError(f"{options.file}: {error}") from error
    unknown = sorted({node.op.name for node in net.get_internals().graph.indexed().nodes if _is_unknown(node)})
    known = graph.Graph(net)
    if not unknown:
        known = graph.infer_type(graph.infer_shape(known, shapes))
    if options.draw is not None:
        try:
            graph.draw(known, options.draw)
        except OSError as error:
            raise CommandError(f"{options.draw}: {error.strerror or error}") from error
    if options.ir or unknown:
        print(graph.print_ir(known, [] if unknown else ["shape", "dtype"]), end="")
    else:
        print(net.summary(**shapes))
    if unknown:
        print(f"no memory plan: no op is registered as {', '.join(unknown)}")
    elif known.attrs["shape_num_unknown_nodes"]:
        print(f"no memory plan: {known.attrs['shape_num_unknown_nodes']} shapes do not follow; give more by --shape")
    else:
        plan = graph.plan_memory(known).attrs
        live, arena = plan["storage_peak_live_bytes"], plan["storage_allocated_bytes"]
        storages = len({each for each in plan["storage_id"] if each >= 0})
        print(f"memory plan: {arena} bytes in {storages} storages; at most {live} bytes are live at the same time")
    return 0


def _import(module: str) -> None:
    """Import a module of the user's, also one beside where the command runs.

    Raises
    ------
    CommandError
        If it cannot be imported.
    """
    sys.path.insert(0, str(Path.cwd()))
    try:
        importlib.import_module(module)
    except Exception as error:
        raise CommandError(f"--import {module}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)


def _is_unknown(node: Any) -> bool:
    return not node.is_variable and not node.op._entry.is_registered


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Read ``name=2,3``.

    Raises
    ------
    ArgumentValueError
        If it is not that.
    """
    from weft.errors import ArgumentValueError  # noqa: PLC0415 - for the mistaken

    name, equals, lengths = text.partition("=")
    parts = [part for part in lengths.strip("()").split(",") if part.strip()]
    if not name or not equals or not all(part.strip().isdecimal() for part in parts):
        raise ArgumentValueError(f"--shape {text}: write a name and lengths, as in data=1,3,224,224")
    return name, tuple(int(part) for part in parts)
