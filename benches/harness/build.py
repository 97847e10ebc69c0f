"""Compile the C++ peers and weft's Rust benchmark; say why what is missing is missing."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BENCHES = Path(__file__).resolve().parent.parent
PEERS = BENCHES / "peers"
ROOT = BENCHES.parent
TRACED = "weft, traced"
PARKED_THREAD = "floor: a parked thread woken"


class BuildError(RuntimeError):
    """A compiler is missing or said no; the message is its last words."""


@dataclass(slots=True)
class Binaries:
    """What could be built, by implementation, and the reasons for the rest."""

    programs: dict[str, list[str]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    #: The same of graphs that are run again.
    replays: dict[str, list[str]] = field(default_factory=dict)
    replays_missing: dict[str, str] = field(default_factory=dict)
    floors: Path | None = None
    bell: Bell | None = None


class Bell:
    """The functions of ``bell.c``, through ctypes."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self.open = self._function("bench_bell_open")
        self.ring = self._function("bench_bell_ring")
        self.close = self._function("bench_bell_close")

    def _function(self, name: str) -> Callable[[int | None], int]:
        function = self._library[name]
        function.argtypes = [ctypes.c_void_p]
        function.restype = ctypes.c_int32
        return function


def _compile(compiler: str, *arguments: str) -> None:
    found = shutil.which(os.environ.get({"g++": "CXX", "cc": "CC"}[compiler], compiler))
    if found is None:
        message = f"no {compiler} on this machine"
        raise BuildError(message)
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(_first_error(done.stderr))


def _first_error(stderr: str) -> str:
    # A reason is printed and saved: it must not carry the folder of this checkout.
    lines = [line.strip().replace(f"{ROOT}/", "") for line in stderr.splitlines()]
    return next((line for line in lines if "error" in line), "the compiler failed")


def _peer(source: str, folder: Path, *flags: str) -> Path:
    target = folder / Path(source).stem
    _compile("g++", "-std=c++17", "-O3", "-Wall", "-pthread", str(PEERS / source), "-o", str(target), *flags)
    return target


def _weft(bench: str) -> list[str]:
    """Build a benchmark of weft's own once, and return its command: cargo's start-up stays out of the repetitions."""
    given = os.environ.get(f"WEFT_BENCH_{bench.upper()}")
    if given:
        return [given]
    cargo = shutil.which("cargo")
    if cargo is None:
        message = "no cargo on this machine"
        raise BuildError(message)
    command = [cargo, "bench", "-p", "weft-engine", "--bench", bench, "--no-run", "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(_first_error(done.stderr))
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == bench:
            return [message["executable"]]
    message = f"cargo built no benchmark named {bench}"
    raise BuildError(message)


def build(folder: Path, tables: tuple[str, ...]) -> Binaries:
    """Build everything that the tables need.

    Parameters
    ----------
    folder
        Where compiled files go.
    tables
        Names of the tables to be timed.
    """
    binaries = Binaries()
    if "A" in tables:
        makers: dict[str, Callable[[], list[str]]] = {
            "weft": lambda: _weft("patterns"),
            "OpenMP": lambda: [str(_peer("openmp.cpp", folder, "-fopenmp"))],
            "oneTBB": lambda: [str(_peer("onetbb.cpp", folder, "-ltbb"))],
            "Taskflow": lambda: [str(_peer("taskflow.cpp", folder, "-std=c++20"))],
        }
        _make(makers, binaries.programs, binaries.missing)
        if "weft" in binaries.programs:
            binaries.programs[TRACED] = [*binaries.programs["weft"], "--trace", "on"]
    if "R" in tables:
        makers = {
            "weft": lambda: _weft("replays"),
            "Taskflow static": lambda: [str(_peer("taskflow.cpp", folder, "-std=c++20")), "--again", "on"],
            "oneTBB": lambda: [str(_peer("onetbb.cpp", folder, "-ltbb")), "--again", "on"],
        }
        _make(makers, binaries.replays, binaries.replays_missing)
    try:
        binaries.floors = _peer("floors.cpp", folder)
    except BuildError as error:
        binaries.missing["floors"] = f"not available: {error}"
    try:
        library = folder / "libbell.so"
        _compile("cc", "-O2", "-pthread", "-shared", "-fPIC", str(BENCHES / "harness" / "bell.c"), "-o", str(library))
        binaries.bell = Bell(library)
    except BuildError as error:
        binaries.missing[PARKED_THREAD] = f"not available: {error}"
    return binaries


def build_grids(folder: Path) -> Binaries:
    """Build what runs grids of tasks, for ``benches/metg.py``; see `build`."""

    def taskflow() -> str:
        return str(_peer("taskflow.cpp", folder, "-std=c++20"))

    def onetbb() -> str:
        return str(_peer("onetbb.cpp", folder, "-ltbb"))

    makers: dict[str, Callable[[], list[str]]] = {
        "weft, pushed": lambda: _weft("metg"),
        "weft, replayed": lambda: [*_weft("metg"), "--again", "on"],
        "OpenMP": lambda: [str(_peer("openmp.cpp", folder, "-fopenmp"))],
        "oneTBB": lambda: [onetbb()],
        "Taskflow": lambda: [taskflow()],
        "oneTBB, run again": lambda: [onetbb(), "--again", "on"],
        "Taskflow static": lambda: [taskflow(), "--again", "on"],
    }
    binaries = Binaries()
    _make(makers, binaries.programs, binaries.missing)
    return binaries


def _make(makers: dict[str, Callable[[], list[str]]], made: dict[str, list[str]], missing: dict[str, str]) -> None:
    for name, make in makers.items():
        try:
            made[name] = make()
        except BuildError as error:
            missing[name] = f"not available: {error}"


def workshop() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for compiled files that goes away by itself."""
    return tempfile.TemporaryDirectory(prefix="weft-bench-", ignore_cleanup_errors=True)
