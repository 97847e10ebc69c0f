"""The report of ``weft info``: gathered without starting a thread or importing CuPy, and fit for JSON."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import Any, TypeAlias

import weft
from weft._command.environment import VARIABLES, unknown
from weft._core import _debug_build, vectors
from weft._machine.gpus import cupy, gpus
from weft._machine.platforms import platform
from weft._machine.processors import cpu_quota, processor_name, system, usable_cpus
from weft._machine.software import blas, python, version_of
from weft._nn.onednn import onednn
from weft.errors import ArgumentValueError

#: Values by name, by section.
Facts: TypeAlias = dict[str, dict[str, Any]]

_OPTIONAL = ("rich", "matplotlib", "safetensors", "nvtx")
_LIMITS = ("max_pending_ops", "max_pending_bytes", "on_limit")


def facts() -> Facts:
    """Return the facts, by section and name.

    Examples
    --------
    >>> import weft
    >>> from weft._command.environment_report import facts
    >>> facts()["versions"]["weft"] == weft.__version__
    True
    """
    return {
        "versions": _versions(),
        "processors": {
            "model": processor_name(),
            "system": system(),
            "cpus_usable": usable_cpus(),
            "cpus_in_the_machine": os.cpu_count(),
            "cpu_quota": cpu_quota(),
        },
        "gpus": {**gpus(), "cupy": cupy()},
        "blas": {"libraries": blas()},
        "kernels": _kernels(),
        "default_engine": _default_engine(),
        "environment": {
            **{name: {"value": os.environ.get(name), "sets": text} for name, text in VARIABLES.items()},
            **{name: {"value": os.environ[name], "sets": None} for name in unknown()},
        },
    }


def _versions() -> dict[str, str | float | None]:
    wheel = metadata.distribution("weft").read_text("WHEEL") or ""
    tags = [line.partition(":")[2].strip() for line in wheel.splitlines() if line.startswith("Tag:")]
    return {
        "weft": weft.__version__,
        "build": "debug: times mean nothing" if _debug_build else "release",
        "wheel": ", ".join(tags) or None,
        "platform": platform(),
        "python": python(),
        "switch_interval": sys.getswitchinterval(),
        "numpy": version_of("numpy"),
        **{package: version_of(package) for package in _OPTIONAL},
    }


def _kernels() -> dict[str, str]:
    """Return the libraries of kernels of networks."""
    version, where = onednn()
    taken, available = vectors()
    few, own = "of few channels: sums along rows", "weft's own products of columns"
    return {
        "onednn": f"not used: {where}" if version is None else f"{version}, {where}",
        "convolutions_float32": f"{few}; others: {own}" if version is None else f"oneDNN; {few}; small ones: {own}",
        "convolutions_float64": own,
        "others": "weft's own loops; on GPUs: CuPy",
        "vectors": f"{taken}, of {', '.join(available)}",
    }


def _default_engine() -> dict[str, Any]:
    try:
        engine = weft.get_engine()
    except ArgumentValueError as error:
        return {"problem": str(error)}
    return {"policy": engine.policy, "workers": engine.workers, **{limit: getattr(engine, limit) for limit in _LIMITS}}
