"""The GPUs of ``weft info``: asked of a driver that a C compiler makes here, as few machines have one."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest

from weft._cuda.nvrtc import libraries
from weft._machine import gpus as module
from weft._machine.gpus import driver_version, gpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DRIVER = r"""
#include <stddef.h>
#include <stdio.h>

int cuDriverGetVersion(int *version) { *version = VERSION; return VERSION_STATUS; }
int cuInit(unsigned flags) { return flags ? 1 : INIT_STATUS; }
int cuDeviceGetCount(int *count) { *count = 2; return 0; }
int cuDeviceGet(int *device, int number) { *device = 70 + number; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "device at %d", device);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)(device - 60) << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 9 : 0;
    return 0;
}
"""


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a driver whose calls return these statuses in the place of the machine's."""

    def make(version_status: int = 0, init_status: int = 0, version: int = 13010) -> None:
        source = tmp_path / "driver.c"
        source.write_text(DRIVER, encoding="utf-8")
        library = tmp_path / f"driver{version}{sysconfig.get_config_var('SHLIB_SUFFIX') or '.so'}"
        statuses = [f"-DVERSION_STATUS={version_status}", f"-DINIT_STATUS={init_status}", f"-DVERSION={version}"]
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run([*compiler, "-shared", "-fPIC", *statuses, source, "-o", library], check=True)
        monkeypatch.delenv("WEFT_CUDA_LIBRARY", raising=False)  # of tests that have opened theirs
        monkeypatch.setitem(module._DRIVERS, sys.platform, str(library))

    return make


def test_the_driver_tells_its_devices(drive: Callable[..., None]) -> None:
    drive()
    assert gpus() == {
        "driver": "CUDA 13.1",
        "problem": None,
        "devices": [
            {"name": f"device at {70 + number}", "compute_capability": "9.0", "memory_bytes": (10 + number) << 30}
            for number in range(2)
        ],
    }


def test_a_driver_that_cannot_start_says_why(drive: Callable[..., None]) -> None:
    drive(init_status=100)
    assert gpus() == {"driver": "CUDA 13.1", "problem": "cuInit failed with CUDA error 100", "devices": []}


def test_a_driver_that_does_not_work_is_none(drive: Callable[..., None]) -> None:
    drive(version_status=999)
    found = gpus()
    assert found["driver"] is None
    assert "cuDriverGetVersion failed with CUDA error 999" in str(found["problem"])


def test_without_a_driver_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_CUDA_LIBRARY", raising=False)
    monkeypatch.setitem(module._DRIVERS, sys.platform, str(tmp_path / "missing.so"))
    found = gpus()
    assert found["driver"] is None
    assert found["devices"] == []
    assert "missing.so is not there" in str(found["problem"])


def test_the_machine_itself_gives_devices_or_a_reason() -> None:
    found = gpus()
    assert found["devices"] or found["problem"] or found["driver"]


def test_the_driver_that_the_environment_names_is_asked(
    drive: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(version=12040)
    monkeypatch.setenv("WEFT_CUDA_LIBRARY", module._DRIVERS[sys.platform])
    monkeypatch.delitem(module._DRIVERS, sys.platform)
    assert driver_version() == (12, 4)
    monkeypatch.setenv("WEFT_CUDA_LIBRARY", "/no/such/driver")
    assert driver_version() is None
    assert gpus()["problem"] == "no driver: /no/such/driver is not there"


def test_a_compiler_that_is_newer_than_the_driver_is_taken_last(
    drive: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WEFT_NVRTC_LIBRARY", raising=False)
    older, newer = ("nvrtc64_120", "nvrtc64_130") if sys.platform == "win32" else (".so.12", ".so.13")
    drive(version=13000)
    fitting = libraries()
    drive(version=12040)
    found = libraries()
    assert sorted(found) == sorted(fitting), "it is there still"
    assert {older in path for path in found} == {True, False}
    assert max(i for i, path in enumerate(found) if older in path) < min(
        i for i, path in enumerate(found) if newer in path
    )
