"""``import weft`` starts no thread and imports nobody's GPU library."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import weft._core

if TYPE_CHECKING:
    from conftest import RunScript

#: The program header of what a library keeps for each thread.
PT_DYNAMIC, DT_FLAGS, DF_STATIC_TLS = 2, 30, 0x10  # of elf.h


def test_import_and_engine_start_no_thread(script: RunScript) -> None:
    done = script("""
        import threading
        import numpy  # whose BLAS may have threads of its own
        import psutil

        threads = psutil.Process().num_threads

        before = threads()
        import weft
        engine = weft.Engine(4)
        x = engine.new_variable()
        engine.wait_for_var(x)
        engine.stats()
        weft.get_engine().variable_of(weft)
        assert threads() == before, threads() - before
        assert threading.active_count() == 1
        weft.Engine(4).close()
        assert threads() == before
        engine.push(int, (), (x,))
        engine.wait_for_var(x)
        assert threads() > before
    """)
    assert done.returncode == 0, done.stderr


def test_serial_never_starts_one(script: RunScript) -> None:
    done = script("""
        import numpy, psutil, weft
        threads = psutil.Process().num_threads
        before = threads()
        engine = weft.Engine(policy="serial")
        x = engine.new_variable()
        for _ in range(100):
            engine.push(int, (), (x,))
        engine.wait_for_all()
        assert threads() == before
    """)
    assert done.returncode == 0, done.stderr


def test_imports_no_gpu_library_and_needs_only_numpy(script: RunScript) -> None:
    done = script("""
        import sys
        before = set(sys.modules)
        import weft
        weft.Engine().new_variable()
        roots = {name.partition(".")[0] for name in set(sys.modules) - before if not name.startswith("__")}
        print(*sorted(roots - set(sys.stdlib_module_names) - {"weft", "numpy"}))
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_engine_is_the_one_class(script: RunScript) -> None:
    done = script("""
        import weft, weft._core
        assert weft.Engine is weft._core.Engine
        assert weft.__version__
        for name in ("Engine", "Variable", "Operator", "Completion", "Device", "Executor", "Read", "Mutate", "Overwrite",
                     "cpu", "errors", "get_engine", "set_engine", "task", "wait"):
            assert hasattr(weft, name), name
            assert name in weft.__all__, name
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="it is glibc that has one small reserve for all libraries")
def test_the_reserve_for_variables_of_threads_is_left_to_others() -> None:
    """Libraries imported later, OpenMP's among them, fail with "cannot allocate memory in static TLS block" without it."""
    image = Path(weft._core.__file__).read_bytes()
    assert image[:5] == b"\x7fELF\x02"
    (start,) = struct.unpack_from("<Q", image, 0x20)
    size, count = struct.unpack_from("<HH", image, 0x36)
    headers = [struct.unpack_from("<IIQQQQQQ", image, start + number * size) for number in range(count)]
    (dynamic,) = [header for header in headers if header[0] == PT_DYNAMIC]
    entries = dict(struct.iter_unpack("<QQ", image[dynamic[2] : dynamic[2] + dynamic[5]]))
    assert not entries.get(DT_FLAGS, 0) & DF_STATIC_TLS
