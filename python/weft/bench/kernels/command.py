"""``weft bench kernels``."""

from __future__ import annotations

import json
from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Any

from weft._command.arguments import positive
from weft._command.tables import show_all

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction

    from weft.bench.kernels.measuring import Measured

_DESCRIPTION = """\
Time three convolutions, forwards and backwards, and a training step of a small network (two convolutions, two dense layers,
SGD with momentum, batch 64), with oneDNN and without, in turns with PyTorch and ONNX Runtime where they are installed, or
--torch and --onnxruntime name the interpreter that has them. ONNX Runtime goes forwards alone.
"""


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser("kernels", help="table T: convolutions and a training step", description=_DESCRIPTION)
    parser.add_argument(
        "--threads", type=positive, nargs="+", metavar="N", default=[1, 2], help="of each library (default: 1 2)"
    )
    parser.add_argument("--reps", type=positive, metavar="N", default=9, help="turns (default: %(default)s)")
    parser.add_argument("--torch", metavar="PYTHON", help="the interpreter that has PyTorch (default: this one)")
    parser.add_argument(
        "--onnxruntime", metavar="PYTHON", help="the interpreter that has onnxruntime and onnx (default: this one)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(command=_kernels)


def _kernels(options: Namespace) -> int:
    # Imported here: --help needs nothing of it.
    from weft.bench.kernels.measuring import PEERS, measure  # noqa: PLC0415
    from weft.bench.machine import describe  # noqa: PLC0415

    machine = describe()
    pythons = {name: getattr(options, name) for name in PEERS}
    found = [measure(threads, options.reps, pythons) for threads in options.threads]
    if options.json:
        print(json.dumps({"machine": machine, "runs": [asdict(one) for one in found]}, indent=1))
        return 0
    title = "T. Kernels, threads: {} (ms: minimum / median; GFLOP/s at the minimum)"
    show_all(machine, [(title.format(one.threads), _rows(one)) for one in found])
    return 0


def _rows(found: Measured) -> list[list[str]]:
    from weft.bench.kernels.host import CONVOLUTIONS, flops  # noqa: PLC0415 - as above

    libraries = list(dict.fromkeys(name for times in found.times.values() for name in times))
    rows = [["", *libraries, *(["weft's best / torch"] if "torch" in libraries else [])]]
    for case, times in found.times.items():
        row = [case]
        for name in libraries:
            values = times.get(name)
            if values is None:
                row.append("")
                continue
            text = f"{min(values):.2f} / {median(values):.2f}"
            if case.partition(": ")[0] in CONVOLUTIONS:
                text += f" ({flops(case) / min(values) / 1e6:.0f})"
            row.append(text)
        if "torch" in times:
            own = min(min(values) for name, values in times.items() if name.startswith("weft"))
            row.append(f"{own / min(times['torch']):.2f}")
        elif "torch" in libraries:
            row.append("")
        rows.append(row)
    return rows
