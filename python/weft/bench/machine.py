"""The machine and the versions that a result belongs to."""

from __future__ import annotations

from weft._machine.processors import cpu_quota, load_average, processor_name, system, usable_cpus
from weft._machine.software import python, version_of

_PACKAGES = ("weft", "numpy", "torch", "jax", "numexpr", "dask")


def describe() -> dict[str, str]:
    """Return the facts that a reader needs to compare figures; no host or user names.

    Examples
    --------
    >>> from weft.bench.machine import describe
    >>> describe()["weft"]
    '...'
    """
    load, quota = load_average(), cpu_quota()
    return {
        "processor": processor_name(),
        "CPUs usable": str(usable_cpus()) + ("" if quota is None else f", quota {quota:g}"),
        "load average at the start": "unknown" if load is None else f"{load:.2f}",
        "system": system(),
        "Python": python(),
        **{package: version_of(package) or "not installed" for package in _PACKAGES},
    }
