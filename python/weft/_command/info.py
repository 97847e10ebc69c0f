"""``weft info``: versions, processors, GPUs, linear algebra, the default engine, the environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from weft._command.tables import show

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction

    from weft._command.environment_report import Facts

_GIB = 2**30


def add_to(commands: _SubParsersAction[Any]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "info",
        help="say what weft runs on here",
        description="Say what weft runs on here: versions, CPUs, GPUs, BLAS, the default engine's policy, workers and "
        "limits, and the environment variables that weft reads. Exits with 1 if they make no engine.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(command=_info)


def _info(options: Namespace) -> int:
    from weft._command.environment_report import facts  # noqa: PLC0415 - asks the driver and BLAS: for this command alone

    found = facts()
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for title, rows in _tables(found):
            show(title, rows, header=False)
    return int("problem" in found["default_engine"])


def _tables(found: Facts) -> list[tuple[str, list[list[str]]]]:
    """Return a title and rows for each section."""
    engine = found["default_engine"]
    return [
        ("Versions", _rows(found["versions"])),
        ("Processors", _rows(found["processors"])),
        ("GPUs", _gpu_rows(found["gpus"])),
        (
            "BLAS",
            [
                [
                    library["library"],
                    f"{library['version'] or 'unknown version'}, {_count(library['threads'], 'thread')}",
                ]
                for library in found["blas"]["libraries"]
            ]
            or [["none", "none that threadpoolctl knows, or it is not installed: pip install threadpoolctl"]],
        ),
        ("Kernels of networks", [[_named(name), value] for name, value in found["kernels"].items()]),
        ("Default engine", _rows(engine)),
        (
            "Environment",
            [[name, _setting(entry["value"], entry["sets"])] for name, entry in found["environment"].items()],
        ),
    ]


def _rows(values: dict[str, Any]) -> list[list[str]]:
    return [[name.replace("_", " ").replace("cpu", "CPU"), _text(value)] for name, value in values.items()]


def _named(name: str) -> str:
    return "oneDNN" if name == "onednn" else name.replace("_", ", ")


def _text(value: object) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _gpu_rows(found: dict[str, Any]) -> list[list[str]]:
    rows = [["driver", found["driver"] or found["problem"]]]
    if found["driver"] and found["problem"]:
        rows.append(["problem", found["problem"]])
    rows += [
        [
            f"device {number}",
            f"{gpu['name']}, compute capability {gpu['compute_capability']}, {gpu['memory_bytes'] / _GIB:.0f} GiB",
        ]
        for number, gpu in enumerate(found["devices"])
    ]
    rows.append(["cupy", found["cupy"] or "not installed"])
    return rows


def _setting(value: str | None, sets: str | None) -> str:
    if sets is None:
        return f"{value!r}, but weft reads no such variable"
    return f"{sets} ({'not set' if value is None else repr(value)})"
