"""The processors: which, how many this process may use, and how busy they are."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from pathlib import Path
from typing import Any

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_PROCESSORS = Path("/proc/cpuinfo")


def processor_name(described: Path = _PROCESSORS) -> str:
    """Return the name of the processor's model.

    Linux names those of x86; elsewhere py-cpuinfo does (the extra ``machine``), which takes a second. Without it the
    architecture is the name.

    Parameters
    ----------
    described : Path
        Where Linux describes the processors.
    """
    if described.exists():
        for line in described.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    try:
        cpuinfo: Any = import_module("cpuinfo")  # ships no types
    except ImportError:
        return platform.processor() or platform.machine()
    name: str = cpuinfo.get_cpu_info().get("brand_raw", "")
    return name or platform.processor() or platform.machine()


def usable_cpus() -> int:
    """Return how many CPUs this process may be scheduled on.

    Examples
    --------
    >>> from weft._machine.processors import usable_cpus
    >>> usable_cpus() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_quota(cgroups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> float | None:
    """Return how many CPUs' worth of time the cgroups of this process leave it.

    Parameters
    ----------
    cgroups : Path
        Where the cgroups are mounted.
    membership : Path
        Which of them this process is in, as Linux tells it.

    Returns
    -------
    float or None
        CPU seconds per second, the smallest on the way up; None without a limit, or without cgroups.

    Notes
    -----
    Version 2 has one file, ``cpu.max``; version 1 has two, below the controller's name.
    """
    if not membership.exists():
        return None
    found: list[float] = []
    for line in membership.read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, read = cgroups, _quota_of_version_2
        elif "cpu" in controllers.split(","):
            root, read = cgroups / "cpu", _quota_of_version_1
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            quota = read(folder)
            if quota is not None:
                found.append(quota)
            if folder == root:
                break
    return min(found, default=None)


def _quota_of_version_2(folder: Path) -> float | None:
    file = folder / "cpu.max"
    if not file.exists():
        return None
    quota, period = file.read_text(encoding="utf-8").split()
    return None if quota == "max" else int(quota) / int(period)


def _quota_of_version_1(folder: Path) -> float | None:
    files = [folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us"]
    if not all(file.exists() for file in files):
        return None
    quota, period = (int(file.read_text(encoding="utf-8")) for file in files)
    return None if quota < 0 else quota / period


def load_average() -> float | None:
    """Return the load average of the last minute; None where neither the system keeps one nor psutil does."""
    if hasattr(os, "getloadavg"):
        return os.getloadavg()[0]
    try:
        psutil: Any = import_module("psutil")
    except ImportError:
        return None
    average: float = psutil.getloadavg()[0]
    return average


def system() -> str:
    """Return the operating system, the version of its kernel, and the architecture."""
    return f"{platform.system()} {platform.release().split('-')[0]} {platform.machine()}"
