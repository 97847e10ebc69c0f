"""What a GPU machine is: its driver and compiler, what the driver's own calls take, how streams, copies and captures behave.

    python benches/gpu/first.py [--json OUT] [--quick]

The first thing to run on a machine that weft has not seen: it needs the wheel alone, and each part that fails is told
and left. The figures are the floors that `weft bench gpu` is read against: "launch + event" is what a launch costs that
others can wait for.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft import _core
from weft._cuda.nvrtc import build, headers, libraries

if TYPE_CHECKING:
    from collections.abc import Callable

THREADS = 64
SPIN = """
extern "C" __global__ void spin(unsigned* x, int rounds) {
    unsigned value = x[threadIdx.x];
    for (int at = 0; at < rounds; ++at) value = value * 1664525u + 1013904223u;
    x[threadIdx.x] = value;
}
"""
STEP = 'extern "C" __global__ void step_once(unsigned* x) { x[threadIdx.x] += 1; }'
#: CUDA's capture mode that forbids other threads calls, too.
GLOBAL = 0
MIB = 1 << 20


def machine() -> dict[str, Any]:
    """The device, the driver, the compiler, and what the process was told of them."""
    properties = _core.cuda_properties(0)
    version = ctypes.c_int()
    driver().cuDriverGetVersion(ctypes.byref(version))
    nvrtc = _core.cuda_compiler_version(libraries())
    return {
        **properties,
        "driver": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "nvrtc": ".".join(map(str, nvrtc)),
        "headers": headers(nvrtc[0]),
        "connections": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "8, the default"),
        "memory": weft.cuda.memory_stats(0)._asdict(),
        "python": sys.version.split()[0],
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def driver() -> ctypes.CDLL:
    """The driver's library, which weft has loaded."""
    return ctypes.CDLL(os.environ.get("WEFT_CUDA_LIBRARY") or ("nvcuda.dll" if os.name == "nt" else "libcuda.so.1"))


def capability() -> tuple[int, int]:
    found: tuple[int, int] = _core.cuda_properties(0)["capability"]
    return found


def calls(count: int, runs: int) -> dict[str, Any]:
    """Microseconds of each of the driver's calls, in a loop without Python: minimum and median of some runs."""
    x = weft.zeros(THREADS, dtype="uint32", device="cuda:0")
    bare = _core.BareLaunch(x, build("step_once", STEP, capability()), "step_once", 1, THREADS)
    found: dict[str, list[float]] = {}
    for _ in range(runs):
        for name, seconds in bare.calls(count):
            found.setdefault(name, []).append(seconds * 1e6)
    return {name: {"min": min(each), "median": sorted(each)[len(each) // 2]} for name, each in found.items()}


def pageable(mib: int) -> dict[str, Any]:
    """A copy from pageable memory, the first and the second: what pinning costs, and how much stays pinned."""
    host, figures = np.ones(mib * MIB // 4, np.float32), {}
    for run in ("first", "second"):
        start = time.perf_counter()
        x = weft.asarray(host, device="cuda:0")
        weft.cuda.synchronize(0)
        seconds = time.perf_counter() - start
        figures[run] = {"ms": seconds * 1e3, "GB/s": host.nbytes / seconds / 1e9}
        assert x[-1].item() == 1
        del x
    return {**figures, "pinned bytes": weft.cuda.memory_stats(0).pinned}


class Streams:
    """Kernels on streams of their own, by the driver alone."""

    def __init__(self) -> None:
        self._driver, self._context = driver(), ctypes.c_void_p()
        self._check(self._driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), 0))
        self._check(self._driver.cuCtxSetCurrent(self._context))
        module, self._kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(self._driver.cuModuleLoadData(ctypes.byref(module), build("spin", SPIN, capability())))
        self._check(self._driver.cuModuleGetFunction(ctypes.byref(self._kernel), module, b"spin"))
        self._memory = ctypes.c_uint64()
        self._check(self._driver.cuMemAlloc_v2(ctypes.byref(self._memory), ctypes.c_size_t(16 * THREADS * 4)))

    @staticmethod
    def _check(code: int) -> None:
        assert code == 0, f"the driver answered {code}"

    def make(self, count: int) -> list[ctypes.c_void_p]:
        streams = [ctypes.c_void_p() for _ in range(count)]
        for stream in streams:
            self._check(self._driver.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0))
        return streams

    def run(self, streams: list[ctypes.c_void_p], rounds: int) -> float:
        """Milliseconds that a kernel on each of the streams takes, all together."""
        start = time.perf_counter()
        for at, stream in enumerate(streams):
            address, turns = ctypes.c_uint64(self._memory.value + at * THREADS * 4), ctypes.c_int(rounds)
            pointers = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(turns))
            self._check(self._driver.cuLaunchKernel(self._kernel, 1, 1, 1, THREADS, 1, 1, 0, stream, pointers, None))
        for stream in streams:
            self._check(self._driver.cuStreamSynchronize(stream))
        return (time.perf_counter() - start) * 1e3


def side_by_side(rounds: int) -> dict[str, Any]:
    """Milliseconds of 1 to 16 kernels on as many streams: where they begin to take turns, connections are used up."""
    streams = Streams()
    made = streams.make(16)
    streams.run(made, 1)  # the kernel is on the device
    return {
        str(count): min(streams.run(made[:count], rounds) for _ in range(3)) for count in (1, 2, 4, 6, 8, 9, 10, 12, 16)
    }


def captured() -> dict[str, Any]:
    """What a capture in CUDA's global mode, as torch's, says of a plain query, and of what weft does meanwhile."""
    x = weft.zeros(THREADS, dtype="float32", device="cuda:0")
    weft.cuda.synchronize(0)
    streams, event, graph = Streams(), ctypes.c_void_p(), ctypes.c_void_p()
    library, (stream,) = driver(), streams.make(1)
    assert library.cuEventCreate(ctypes.byref(event), 2) == 0
    figures: dict[str, Any] = {}
    for name in ("weft's ops", "a plain query"):
        figures[f"begin, {name}"] = library.cuStreamBeginCapture_v2(stream, GLOBAL)
        if name == "weft's ops":
            for _ in range(100):
                x += 1.0
            figures["sum"] = float(x.numpy().sum())
        else:
            figures["query"] = library.cuEventQuery(event)
        figures[f"end, {name}"] = library.cuStreamEndCapture(stream, ctypes.byref(graph))
    return {**figures, "device lost": weft.cuda.memory_stats(0).total == 0}


def in_child(timeout: float) -> dict[str, Any]:
    """The same in a process of its own: what it may break is not needed any more."""
    command = [sys.executable, __file__, "--child"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if answer.returncode:
        raise RuntimeError(answer.stderr[-2000:])
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there, too")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: see that all works")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(captured()))
        return 0
    quick: bool = options.quick
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "machine": machine,
        "driver's calls, us": lambda: calls(10 if quick else 400, 2 if quick else 15),
        "pageable copy": lambda: pageable(1 if quick else 256),
        "kernels on as many streams, ms": lambda: side_by_side(1_000 if quick else 4_000_000),
        "during a global capture": lambda: in_child(30),
    }
    found, failed = {}, 0
    for name, part in parts.items():
        try:
            found[name] = part()
        except Exception:  # noqa: BLE001 - the others go on
            found[name], failed = {"failed": traceback.format_exc()}, failed + 1
        print(f"\n{name}", flush=True)
        for key, value in found[name].items():
            print(f"  {key:<20} {value}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
