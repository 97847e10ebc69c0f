"""``weft bench overlap``."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._command.arguments import positive
from weft._command.outputs import PICTURES, check_picture, check_trace
from weft._command.tables import show_all
from weft.bench.tables import number

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction
    from collections.abc import Sequence

    import weft
    from weft.bench.overlap.measuring import Overlap

_DESCRIPTION = """\
Time a pipeline over chunks, which copies each to another device, computes with it there and copies the result back. On a
GPU, the first if there is one: the serial loop of weft, beside CuPy with streams and events by hand and on one stream;
kernels take as long as the copies. On CPU devices, products with a matrix: the serial loop on arrays under the policies
per_device and serial, with threads by hand, and in NumPy on one thread; these devices are logical and share the machine's
cores: it takes two. Each is compared with its copies alone and its computing alone: 'hidden' is the share of the smaller
part that the pipeline hides behind the larger.
"""
_COLUMNS = 32
_ITEM_BYTES = 4
_MIB = 2**20
#: Chunks, and MiB of each. On a GPU they are many, so that the first and the last weigh little.
_CPU_SIZES, _GPU_SIZES = (16, 4), (64, 8)


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser("overlap", help="copies beside compute, with a picture", description=_DESCRIPTION)
    (chunks, mib), (gpu_chunks, gpu_mib) = _CPU_SIZES, _GPU_SIZES
    parser.add_argument("--device", metavar="NAME", help="cpu, or cuda:0 and the like (default: a GPU if there is one)")
    parser.add_argument(
        "--chunks", type=positive, metavar="N", help=f"how many (default: {chunks}, on a GPU {gpu_chunks})"
    )
    parser.add_argument(
        "--mib", type=positive, metavar="N", help=f"size of each in MiB (default: {mib}, on a GPU {gpu_mib})"
    )
    parser.add_argument("--reps", type=positive, metavar="N", default=15, help="repetitions (default: %(default)s)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help=f"draw the times: {', '.join(PICTURES)}")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the trace of one run, as weft trace -o does")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(command=_overlap)


@dataclass(frozen=True, slots=True)
class _Found:
    """What a run on one kind of device gives."""

    overlaps: list[Overlap]
    machine: dict[str, str]
    sizes: dict[str, int]
    title: str
    where: str


def _overlap(options: Namespace) -> int:
    from weft.bench.samples import VerificationError  # noqa: PLC0415 - --help needs nothing of it

    if options.figure is not None:
        check_picture(options.figure)
    if options.trace is not None:
        check_trace(options.trace)
    device = _device(options.device)
    sizes = _CPU_SIZES if device.kind == "cpu" else _GPU_SIZES
    chunks, mib = (given or usual for given, usual in zip((options.chunks, options.mib), sizes, strict=True))
    run = _on_cpus if device.kind == "cpu" else _on_gpu
    try:
        found = run(device, chunks, mib, options)
    except VerificationError as error:
        print(f"verification failed, nothing was timed: {error}", file=sys.stderr)
        return 1
    _tell(found, options)
    return 0


def _device(name: str | None) -> weft.Device:
    import weft  # noqa: PLC0415

    if name is not None:
        return weft.Device(name)
    return weft.gpu(0) if weft.cuda.is_available() else weft.cpu(0)


def _on_cpus(_device: weft.Device, chunks: int, mib: int, options: Namespace) -> _Found:
    from weft.bench.machine import describe  # noqa: PLC0415
    from weft.bench.overlap.measuring import measure  # noqa: PLC0415

    rows = mib * _MIB // _ITEM_BYTES // _COLUMNS
    machine = describe()
    overlaps = measure(chunks, rows, _COLUMNS, options.reps, options.trace)
    sizes = {"chunks": chunks, "rows": rows, "columns": _COLUMNS, "reps": options.reps}
    title = f"{chunks} chunks of {mib} MiB, copied in, multiplied, copied out"
    return _Found(overlaps, machine, sizes, title, f"{machine['CPUs usable']} CPUs")


def _on_gpu(device: weft.Device, chunks: int, mib: int, options: Namespace) -> _Found:
    from weft.bench.gpu.machine import describe  # noqa: PLC0415
    from weft.bench.gpu.settings import Settings  # noqa: PLC0415
    from weft.bench.gpu.setup import Setup  # noqa: PLC0415
    from weft.bench.overlap.on_gpu import measure  # noqa: PLC0415

    setup = Setup(Settings(reps=options.reps, chunks=chunks, chunk_bytes=mib * _MIB), device)
    machine = describe(setup)
    if setup.cupy is None:
        print(f"{setup.without_cupy}: its pipelines are left out", file=sys.stderr)
    overlaps = measure(setup, options.trace)
    sizes = {"chunks": chunks, "bytes": mib * _MIB, "reps": options.reps}
    title = f"{chunks} chunks of {mib} MiB in pinned memory, copied in, a kernel, copied out"
    return _Found(overlaps, machine, sizes, title, machine["device"])


def _tell(found: _Found, options: Namespace) -> None:
    if options.json:
        entries = [overlap.json() for overlap in found.overlaps]
        print(
            json.dumps({"machine": found.machine, "settings": found.sizes, "unit": "ms", "overlap": entries}, indent=1)
        )
    else:
        show_all(found.machine, [(f"{found.title} (ms, minimum)", _rows(found.overlaps))])
    if options.figure is not None:
        from weft.bench.overlap.figure import draw  # noqa: PLC0415 - matplotlib takes a second

        draw(options.figure, found.overlaps, f"{found.title}, on {found.where}")
    for path in filter(None, [options.figure, options.trace]):
        print(f"written: {path}", file=sys.stderr)


def _rows(found: Sequence[Overlap]) -> list[list[str]]:
    header = ["", "copies", "compute", "larger", "sum", "pipeline", "pipeline / larger", "hidden"]
    return [
        header,
        *(
            [
                o.name,
                *map(number, (o.copy, o.compute, o.larger, o.sum, o.pipeline, o.pipeline / o.larger)),
                f"{o.hidden:.0%}",
            ]
            for o in found
        ),
    ]
